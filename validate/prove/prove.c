/* Proving a rule: rules with names and rules with numbers are decided in the same way, from the one
 * definition of each operator. */
#include "validate/oracle_int.h"
#include "validate/prove/prove.h"

/* First with literals as the doubles they are, then as the numbers that they stand for. */
iso_code sc_prove_read(const rule *r, rule_schemas *schemas, const val_options *o,
                       rule_verdict *out, int64_t *work, iso_error *err) {
  sc_sight plain = {0}, reading = {0};
  rule_verdict read;
  iso_code code = sc_prove(&(sc_asked){r, schemas, o}, false, NULL, out, &plain, err);
  if (!code && out->status != RULE_PROVED && plain.readable) {
    code = sc_prove(&(sc_asked){r, schemas, o}, true, NULL, &read, &reading, err);
    if (!code && read.status == RULE_PROVED) *out = read;
  }
  *work = plain.work + reading.work;
  return code;
}

iso_code val_prove(const rule *r, rule_schemas *schemas, const val_options *o, rule_verdict *out,
                   iso_error *err) {
  return sc_prove_read(r, schemas, o, out, &(int64_t){0}, err);
}

iso_code val_prove_as_written(const rule *r, rule_schemas *schemas, const val_options *o,
                              rule_verdict *out, iso_error *err) {
  return sc_prove(&(sc_asked){r, schemas, o}, false, NULL, out, NULL, err);
}
