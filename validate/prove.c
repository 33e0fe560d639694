/* Proving a rule: what is open in it and what is a number is decided in the same way, from the one definition of each operator. */
#include "validate/oracle_int.h"
#include "validate/prove_int.h"

/* First with literals as they stand, then as what they stand for. */
iso_code val_prove(const rule *r, rule_schemas *schemas, const val_options *o, rule_verdict *out, iso_error *err) {
  bool readable = false;
  iso_code code = sc_prove(r, schemas, o, false, NULL, out, &readable, err);
  if (code != ISO_OK || out->status == RULE_PROVED || !readable) return code;
  rule_verdict read;
  code = sc_prove(r, schemas, o, true, NULL, &read, NULL, err);
  if (code == ISO_OK && read.status == RULE_PROVED) *out = read;
  return code;
}

iso_code val_prove_as_written(const rule *r, rule_schemas *schemas, const val_options *o, rule_verdict *out, iso_error *err) {
  return sc_prove(r, schemas, o, false, NULL, out, NULL, err);
}
