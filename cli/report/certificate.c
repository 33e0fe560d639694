/* A comparison's certificate as JSON: one term, step and rule a line, so that two certificates can
 * be compared. */
#include "cli/report/certificate.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "cli/report/certificate_sizes.h"

static json_t *term(const synth_cert_term *t, const cap_graph *left, const cap_graph *right) {
  if (!t->call)
    return json_pack("{s:s}", t->right ? "right" : "left",
                     (t->right ? right : left)->node[t->node].id);
  json_t *args = json_array();
  for (uint32_t i = 0; args && i < t->call->n; i++)
    if (json_array_append_new(args, certificate_argument(t->call->child[i])))
      return json_decref(args), NULL;
  return json_pack("{s:s, s:o}", "op", t->call->u.s, "args", args);
}

/* Rules in the order of their first use. */
typedef struct rules {
  const rule **rule;
  size_t n;
} rules;

static size_t index_of(rules *x, const rule *r) {
  size_t i = 0;
  while (i < x->n && x->rule[i] != r) i++;
  if (i == x->n) x->rule[x->n++] = r;
  return i;
}

static json_t *step(const synth_cert_step *x, rules *all) {
  static const char *const name[] = {[SYNTH_CERT_LEAF] = "leaf",
                                     [SYNTH_CERT_BOUND] = "bound",
                                     [SYNTH_CERT_VALUE] = "value",
                                     [SYNTH_CERT_ROUNDING] = "rounding",
                                     [SYNTH_CERT_SAME] = "same"};
  const json_int_t a = x->a, b = x->b;
  if (x->kind != SYNTH_CERT_RULE) return json_pack("{s:[I, I]}", name[x->kind], a, b);
  json_t *var = json_array();
  for (uint32_t i = 0; var && i < x->applied->n_vars; i++)
    if (json_array_append_new(var, x->var[i] == UINT32_MAX ? json_null() : json_integer(x->var[i])))
      return json_decref(var), NULL;
  json_t *o = json_pack("{s:I, s:o, s:[I, I]}", "rule", (json_int_t)index_of(all, x->applied),
                        "vars", var, "terms", a, b);
  json_t *names = o && x->n_names ? json_object() : NULL;
  for (uint32_t i = 0; names && i < x->n_names; i++)
    if (json_object_set_new(names, x->name[i], certificate_argument(x->value[i])))
      return json_decref(names), json_decref(o), NULL;
  if (o && x->n_names && json_object_set_new(o, "names", names)) return json_decref(o), NULL;
  return o;
}

/* The rule in the rule language, which reads back the same: an operator of somebody's library may
 * have no schema there. */
static iso_code rule_text(const rule *r, json_t **out, iso_error *err) {
  rule_set *again = NULL;
  iso_error why = {0};
  char *text = rule_print(r);
  if (!text) return iso_fail(err, ISO_NOMEM, "out of memory");
  iso_code c = rule_set_parse(text, SIZE_MAX, "rule", &again, &why);
  if (c && c != ISO_NOMEM)
    c = iso_fail(err, ISO_UNSUPPORTED, "no certificate can be written: rule %s: %s", r->name,
                 why.msg);
  else if (c) c = iso_fail(err, ISO_NOMEM, "out of memory");
  else if (!rule_term_eq(rule_set_at(again, 0)->lhs, r->lhs) ||
           !rule_term_eq(rule_set_at(again, 0)->rhs, r->rhs))
    c = iso_fail(err, ISO_UNSUPPORTED,
                 "no certificate can be written: rule %s reads back as another one", r->name);
  if (!c && !(*out = json_string(text))) c = iso_fail(err, ISO_NOMEM, "out of memory");
  rule_set_free(again);
  free(text);
  return c;
}

static iso_code side(const cap_graph *g, const cap_options *from, json_t **out, iso_error *err) {
  iso_arena a;
  const chk_file *file;
  size_t n;
  iso_arena_init(&a);
  iso_code c = chk_files(g, from->inputs, from->n_inputs, &a, &file, &n, err);
  json_t *files = c ? NULL : json_object();
  for (size_t i = 0; i < n && !c; i++)
    json_object_set_new(files, file[i].name, json_string(file[i].digest));
  if (!c && !(*out = json_pack("{s:s, s:o}", "model", g->model, "files", files)))
    c = iso_fail(err, ISO_NOMEM, "out of memory");
  iso_arena_fini(&a);
  return c;
}

/* ---- text: the outer level by hand, a line for each entry ---- */

typedef struct text {
  FILE *f;
  char *p;
  size_t n;
  bool failed;
} text;

/* Takes over `j`. */
static void put(text *t, const char *before, json_t *j) {
  char *s = j ? json_dumps(j, JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(17)) : NULL;
  t->failed |= !s || fprintf(t->f, "%s%s", before, s) < 0;
  free(s);
  json_decref(j);
}

static const char *between(size_t i) { return i ? ",\n  " : "\n  "; }

/* Lines, each a string. */
static void put_lines(text *t, const char *lines) {
  for (size_t i = 0, n; *lines; i++, lines += n + (lines[n] != 0)) {
    n = strcspn(lines, "\n");
    put(t, between(i), json_stringn(lines, n));
  }
}

static iso_code put_all(text *t, const synth_result *r, const cap_graph *left,
                        const cap_graph *right, json_t *sides[2], const certificate_of *of,
                        iso_error *err) {
  const synth_certificate *x = r->certificate;
  rules all = {calloc(x->n_steps + 1, sizeof *all.rule), 0};
  iso_code c = all.rule ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  if (c) return c;
  fprintf(t->f, "{\"format\": \"isomer-certificate\", \"version\": 1");
  if (x->masks_read[0] || x->masks_read[1])
    fprintf(t->f, ", \"masks_read\": [%s, %s]", x->masks_read[0] ? "true" : "false",
            x->masks_read[1] ? "true" : "false");
  if (of->unrun) fprintf(t->f, ", \"static\": true");
  if (of->pinned) fprintf(t->f, ", \"at_these_weights\": true");
  if (of->n_ranks) fprintf(t->f, ", \"roles\": %zu", of->n_ranks);
  if (*of->relations) {
    fprintf(t->f, ",\n \"relations\": [");
    put_lines(t, of->relations);
    fprintf(t->f, "]");
  }
  put(t, ",\n \"left\": ", json_incref(sides[0]));
  put(t, ",\n \"right\": ", json_incref(sides[1]));
  fprintf(t->f, ",\n \"evidence\": \"%s\",\n \"fixed\": [", rule_status_name(r->evidence));
  for (size_t i = 0; i < x->n_fixed; i++)
    put(t, between(i),
        json_pack("{s:s}", x->fixed[i].right ? "right" : "left",
                  (x->fixed[i].right ? right : left)->node[x->fixed[i].node].id));
  fprintf(t->f, "],\n \"terms\": [");
  for (size_t i = 0; i < x->n_terms; i++) put(t, between(i), term(&x->term[i], left, right));
  fprintf(t->f, "],\n \"steps\": [");
  for (size_t i = 0; i < x->n_steps; i++) put(t, between(i), step(&x->step[i], &all));
  fprintf(t->f, "],\n \"rules\": [");
  for (size_t i = 0; i < all.n && !c; i++) {
    json_t *s = NULL;
    if (!(c = rule_text(all.rule[i], &s, err))) put(t, between(i), s);
  }
  fprintf(t->f, "],\n \"outputs\": [");
  for (size_t i = 0; i < x->n_outputs; i++)
    put(t, between(i),
        json_pack("{s:s, s:s, s:[I, I]}", "left", r->pair[i].left, "right", r->pair[i].right,
                  "terms", (json_int_t)x->output[i][0], (json_int_t)x->output[i][1]));
  fprintf(t->f, "]");
  if (r->scope.all) put(t, ",\n \"sizes\": ", certificate_sizes(r));
  fprintf(t->f, "}");
  free(all.rule);
  return c;
}

iso_code certificate_text(const synth_result *r, const cap_graph *left, const cap_graph *right,
                          const certificate_of *of, char **out, iso_error *err) {
  json_t *sides[2] = {NULL, NULL};
  text t = {0};
  if (r->certificate->missing)
    return iso_fail(err, ISO_UNSUPPORTED, "no certificate can be written: %s",
                    r->certificate->missing);
  iso_code c = side(left, of->from, &sides[0], err);
  if (!c) c = side(right, of->from, &sides[1], err);
  if (!c && !(t.f = open_memstream(&t.p, &t.n))) c = iso_fail(err, ISO_NOMEM, "out of memory");
  if (!c) c = put_all(&t, r, left, right, sides, of, err);
  if (t.f && (fclose(t.f) != 0 || t.failed) && !c) c = iso_fail(err, ISO_NOMEM, "out of memory");
  json_decref(sides[0]);
  json_decref(sides[1]);
  if (c) {
    free(t.p);
    return c;
  }
  *out = t.p;
  return ISO_OK;
}
