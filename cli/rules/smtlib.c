/* Proved rules as SMT-LIB: one script, each case of each proof by itself. The obligations are those
 * of isomer rules check --certificates. */
#include <stdlib.h>
#include <string.h>

#include "cli/rules/export.h"

static const char head[] =
    "; Proofs of rewrite rules, written by isomer rules export, for any solver with "
    "quantifier-free non-linear real and integer arithmetic and\n"
    "; uninterpreted functions: z3 -smt2 FILE, or cvc5 --incremental FILE. For each case it prints "
    "the rule's name, then unsat (its sides do not\n"
    "; differ) and sat (what was assumed has a model); of a case that no sizes meet, unsat "
    "alone. Equality is over the real numbers: a rule\n"
    "; that says so holds only where all parts of its sides are numbers.\n";

/* A name as a string of SMT-LIB: quotes are doubled. */
static void echo(FILE *f, const char *name, size_t k, size_t n) {
  fputs("(echo \"", f);
  for (; *name; name++) fputs(*name == '"' ? "\"\"" : (const char[]){*name, 0}, f);
  if (n > 1) fprintf(f, ", case %zu of %zu", k + 1, n);
  fputs("\")\n", f);
}

static iso_code one(FILE *f, const rule *r, rule_schemas *schemas, const val_options *o,
                    json_t *refused, iso_error *err) {
  val_obligations k;
  if (r->claimed == RULE_REFUTED)
    return json_object_set_new(refused, r->name, json_string("it is refuted")) ? ISO_NOMEM : ISO_OK;
  val_options whole = *o;
  whole.whole = true; /* as `rules check` says of each that it is about */
  iso_code c = val_write_obligations(r, schemas, &whole, false, &k, err);
  if (k.n > 0 && !c) fputc('\n', f);
  if (k.n > 0 && !c) rules_comment_rests(f, r, "; ");
  for (size_t i = 0; i < k.n && !c; i++) {
    fputs("\n(reset)\n(set-logic ALL)\n", f);
    echo(f, r->name, i, k.n);
    fputs(k.text[i], f);
  }
  if (!c && k.n == 0 && json_object_set_new(refused, r->name, json_string(k.reason)))
    c = iso_fail(err, ISO_NOMEM, "out of memory");
  val_obligations_free(&k);
  return c;
}

iso_code rules_smtlib(FILE *f, const rule_set *set, json_t *refused, iso_error *err) {
  const val_options o = val_options_default();
  rule_schemas *schemas = NULL;
  char *text = NULL;
  size_t len = 0;
  const char *name;
  json_t *why;
  FILE *body = open_memstream(&text, &len);
  iso_code c =
      body != NULL ? rule_schemas_new(&schemas, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < rule_set_count(set) && !c; i++)
    c = one(body, rule_set_at(set, i), schemas, &o, refused, err);
  if (body != NULL && fclose(body) != 0 && !c) c = iso_fail(err, ISO_NOMEM, "out of memory");
  fputs(head, f);
  json_object_foreach(refused, name, why)
      fprintf(f, "; not here: %s: %s\n", name, json_string_value(why));
  if (!c) fputs(text, f);
  free(text);
  rule_schemas_free(schemas);
  return c;
}
