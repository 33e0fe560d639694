/* Rules for other tools (library.h): JSON, and Python modules for torch.fx and Inductor, which
 * carry the rules as JSON. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/embedded.h"
#include "cli/rules/export.h"

/* ---- a rule as JSON ---- */

static json_t *term_json(const rule_term *t);

static json_t *terms_json(const rule_term *const *t, size_t n) {
  json_t *a = json_array();
  for (size_t i = 0; i < n && a != NULL; i++)
    if (json_array_append_new(a, term_json(t[i])) != 0) {
      json_decref(a);
      return NULL;
    }
  return a;
}

/* NULL when there is no memory. */
static json_t *term_json(const rule_term *t) {
  switch (t->kind) {
  case RULE_VAR: return json_pack("{s:I}", "var", (json_int_t)t->u.i);
  case RULE_OP: return json_pack("{s:s, s:o}", "op", t->u.s, "args", terms_json(t->child, t->n));
  case RULE_LIST: return json_pack("{s:o}", "list", terms_json(t->child, t->n));
  case RULE_INT: return json_pack("{s:I}", "int", (json_int_t)t->u.i);
  case RULE_FLOAT:
    if (isfinite(t->u.f)) return json_pack("{s:f}", "float", t->u.f);
    return json_pack("{s:s}", "float", isnan(t->u.f) ? "nan" : t->u.f > 0 ? "inf" : "-inf");
  case RULE_BOOLEAN: return json_pack("{s:b}", "bool", (int)t->u.i);
  case RULE_STRING: return json_pack("{s:s}", "string", t->u.s);
  case RULE_DTYPE: return json_pack("{s:s}", "dtype", rule_dtype_name((rule_dtype)t->u.i));
  case RULE_NAME: return json_pack("{s:s}", "name", t->u.s);
  case RULE_EXPR:
    return json_pack("{s:s, s:o}", "expr", t->u.s, "args", terms_json(t->child, t->n));
  default: return json_pack("{s:n}", "none");
  }
}

static json_t *variable_json(const rule_variable *v) {
  const char *kind = rule_variable_kind(v);
  json_t *sizes = v->any_shape ? NULL : json_array(), *o;
  for (uint32_t k = 0; k < v->n_dims && sizes != NULL; k++)
    if (json_array_append_new(sizes, v->dim[k]->kind == RULE_NONE ? json_null()
                                                                  : term_json(v->dim[k])) != 0) {
      json_decref(sizes);
      return NULL;
    }
  if (v->any_shape) o = json_pack("{s:s, s:s, s:n}", "name", v->name, "kind", kind, "shape");
  else
    o = json_pack("{s:s, s:s, s:{s:b, s:o}}", "name", v->name, "kind", kind, "shape", "leading",
                  (int)v->leading, "sizes", sizes);
  if (o != NULL && (v->low != NULL || v->high != NULL))
    json_object_set_new(o, "range",
                        json_pack("[o, o]", v->low != NULL ? term_json(v->low) : json_null(),
                                  v->high != NULL ? term_json(v->high) : json_null()));
  return o;
}

static json_t *rule_json(const rule *r) {
  json_t *vars = json_array(), *attrs = json_object(), *relative = json_array();
  bool ok = vars != NULL && attrs != NULL && relative != NULL;
  for (uint32_t i = 0; i < r->n_vars && ok; i++)
    ok = json_array_append_new(vars, variable_json(&r->var[i])) == 0;
  for (uint32_t i = 0; i < r->n_attrs && ok; i++)
    ok = json_object_set_new(attrs, r->attr[i].name, json_stringn(&r->attr[i].kind, 1)) == 0;
  for (uint32_t i = 0; i < r->n_relative && ok; i++)
    ok = json_array_append_new(relative, json_string(r->relative_to[i])) == 0;
  json_t *o =
      !ok ? NULL
          : json_pack("{s:s, s:O, s:O, s:o, s:o, s:o, s:{s:s?, s:s?, s:o, s:O}, s:s?, s:s?}",
                      "name", r->name, "variables", vars, "attributes", attrs, "lhs",
                      term_json(r->lhs), "rhs", term_json(r->rhs), "where",
                      terms_json(r->where, r->n_where), "evidence", "status",
                      r->claimed ? rule_status_name(r->claimed) : NULL, "scope",
                      r->scope ? rule_scope_name(r->scope) : NULL, "rests_on",
                      rules_rests_json(r->rests_on), "relative_to", relative, "float",
                      r->float_class, "literals", r->reads_literals ? "read" : NULL);
  json_decref(vars);
  json_decref(attrs);
  json_decref(relative);
  return o;
}

static bool json_document(FILE *f, const rule_set *set, bool unchecked) {
  json_t *rules = json_array(), *o = NULL;
  bool ok = rules != NULL;
  for (size_t i = 0; i < rule_set_count(set) && ok; i++)
    ok = json_array_append_new(rules, rule_json(rule_set_at(set, i))) == 0;
  if (ok) o = json_pack("{s:s, s:i, s:O}", "format", "isomer-rules", "version", 1, "rules", rules);
  if (ok && unchecked) ok = o != NULL && json_object_set_new(o, "unchecked", json_true()) == 0;
  ok = ok && o != NULL && json_dumpf(o, f, JSON_INDENT(1) | JSON_REAL_PRECISION(17)) == 0;
  fputc('\n', f);
  json_decref(o);
  json_decref(rules);
  return ok;
}

static bool export_json(FILE *f, const rule_set *set, const char *const *reason) {
  (void)reason;
  return json_document(f, set, false);
}

static bool export_json_unchecked(FILE *f, const rule_set *set, const char *const *reason) {
  (void)reason;
  return json_document(f, set, true);
}

/* ---- what a target cannot say ---- */

static const char *kernel_of(const rule_term *t) {
  const size_t n = t->kind == RULE_OP ? strlen(t->u.s) : 0;
  if (n > 7 && strcmp(t->u.s + n - 7, ".isomer") == 0) return t->u.s;
  for (uint32_t i = 0; i < t->n; i++) {
    const char *k = kernel_of(t->child[i]);
    if (k != NULL) return k;
  }
  return NULL;
}

/* NULL, or why no rule of this kind can be used where values are not known. */
static const char *not_static(const rule *r) {
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (r->var[i].low != NULL || r->var[i].high != NULL)
      return "it holds for a range of values of a tensor, which no graph tells";
  if (r->claimed == RULE_REFUTED) return "it is refuted";
  return NULL;
}

static const char *not_python(const rule *r) {
  const char *why = not_static(r);
  if (why != NULL) return why;
  if (kernel_of(r->lhs) != NULL || kernel_of(r->rhs) != NULL)
    return "it speaks of a kernel in its functional form, which no PyTorch graph has";
  for (int backward = 0; backward < 2; backward++) {
    rules_plan p;
    const char *no = NULL;
    const iso_code c = rules_plan_make(r, backward, &p, &no);
    rules_plan_free(&p);
    if (c) return "out of memory";
    if (no == NULL) return NULL;
    why = no;
  }
  return why;
}

/* NULL, or why a tool that rewrites graphs cannot know where the rule holds. */
static const char *not_everywhere(const rule *r) {
  if (r->rests_on & RULE_RESTS_ON_NUMBERS)
    return "it holds where all parts are numbers, which no graph tells";
  if (r->rests_on & RULE_RESTS_ON_WHOLE)
    return "it holds of integers that do not wrap, which no graph tells";
  return NULL;
}

/* ---- Python ---- */

static void comment(FILE *f, const char *text, const char *mark) {
  for (const char *line = text; *line;) {
    const size_t n = strcspn(line, "\n");
    fprintf(f, "%s%.*s\n", mark, (int)n, line);
    line += n + (line[n] == '\n');
  }
}

void rules_comment_rule(FILE *f, const rule *r, const char *mark) {
  char *text = rule_print(r);
  if (text != NULL) comment(f, text, mark);
  free(text);
  rules_comment_rests(f, r, mark);
}

void rules_comment_rests(FILE *f, const rule *r, const char *mark) {
  for (size_t i = 0; i < RULE_N_RESTS; i++)
    if (r->rests_on & rule_rests[i].bits) fprintf(f, "%sproved: %s\n", mark, rule_rests[i].text);
}

void rules_comment_refused(FILE *f, const rule_set *set, const char *const *reason,
                           const char *mark) {
  for (size_t i = 0; i < rule_set_count(set); i++)
    if (reason[i] != NULL)
      fprintf(f, "%snot here: %s: %s\n", mark, rule_set_at(set, i)->name, reason[i]);
}

static bool python(FILE *f, const rule_set *set, const char *const *reason, const char *what,
                   const char *driver) {
  fprintf(
      f,
      "\"\"\"Rewrite rules for %s, written by isomer rules export.\n\nEach rule is used where its "
      "pattern matches and every precondition holds: kinds, shapes and sizes of its variables,\n"
      "values of its attributes, its conditions, and what follows from equality over the reals: "
      "one float dtype in all that is\n"
      "matched, and a result with the dtype, shape and strides of what it stands for.\"\"\"\n",
      what);
  rules_comment_refused(f, set, reason, "# ");
  fputs(export_rules, f);
  fputs("\n\n# ---- the rules ----\n\nRULES = [json.loads(text) for text in (\n", f);
  bool ok = true;
  for (size_t i = 0; i < rule_set_count(set) && ok; i++) {
    if (reason[i] != NULL) continue;
    json_t *o = rule_json(rule_set_at(set, i));
    char *text = o != NULL ? json_dumps(o, JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17)) : NULL;
    ok = text != NULL;
    rules_comment_rule(f, rule_set_at(set, i), "    # ");
    fputs("    r'''", f);
    for (const char *c = ok ? text : ""; *c; c++) {
      if (*c == '\'')
        fputs("\\u0027", f); /* JSON's own way: the raw string ends at three of them */
      else fputc(*c, f);
    }
    fputs("''',\n", f);
    free(text);
    json_decref(o);
  }
  fputs(")]\n", f);
  fputs(driver, f);
  return ok;
}

static bool export_to_fx(FILE *f, const rule_set *set, const char *const *reason) {
  return python(f, set, reason, "torch.fx.subgraph_rewriter: rewrite(gm)", export_fx);
}

static bool export_to_inductor(FILE *f, const rule_set *set, const char *const *reason) {
  return python(f, set, reason, "Inductor's pattern matcher: apply(graph), register(pass_dict)",
                export_inductor);
}

static const char *nothing(const rule *r) {
  (void)r;
  return NULL;
}

/* ---- all targets ---- */

typedef bool write_rules(FILE *f, const rule_set *set, const char *const *reason);

static const struct {
  const char *name;
  const char *(*refuse)(const rule *r); /* NULL, or why the target cannot say it */
  write_rules *write;                   /* NULL: smtlib, which asks the prover */
  const char *mark; /* of a comment; NULL: it has none, and a key says the same */
} targets[] = {{"egg", rules_egg_refuse, rules_egg, "// "},
               {"egglog", rules_egglog_refuse, rules_egglog, "; "},
               {"fx", not_python, export_to_fx, "# "},
               {"inductor", not_python, export_to_inductor, "# "},
               {"json", nothing, export_json, NULL},
               {"pdll", rules_pdll_refuse, rules_pdll, "// "},
               {"smtlib", NULL, NULL, "; "}};
const char rules_targets[] = "egg, egglog, fx, inductor, json, pdll or smtlib";

bool rules_is_target(const char *name) {
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (strcmp(targets[i].name, name) == 0) return true;
  return false;
}

static iso_code write_said(FILE *f, const rule_set *set, size_t target, bool unchecked,
                           json_t *refused, iso_error *err) {
  const size_t n = rule_set_count(set);
  const char **reason = calloc(n + 1, sizeof *reason);
  bool ok = reason != NULL;
  for (size_t i = 0; i < n && ok; i++) {
    const rule *r = rule_set_at(set, i);
    reason[i] = targets[target].mark != NULL ? not_everywhere(r) : NULL;
    if (reason[i] == NULL) reason[i] = targets[target].refuse(r);
    if (reason[i] != NULL) ok = json_object_set_new(refused, r->name, json_string(reason[i])) == 0;
  }
  write_rules *const write =
      unchecked && targets[target].mark == NULL ? export_json_unchecked : targets[target].write;
  ok = ok && write(f, set, reason);
  free(reason);
  return ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

static iso_code write_all(const rule_set *set, size_t target, bool unchecked, char **text,
                          json_t *refused, iso_error *err) {
  size_t len = 0;
  *text = NULL;
  FILE *f = refused != NULL ? open_memstream(text, &len) : NULL;
  if (f == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (unchecked && targets[target].mark != NULL)
    fprintf(f,
            "%sUNCHECKED: exported with --unchecked. Nobody has proved these rules; the evidence "
            "that they carry is what their file says.\n",
            targets[target].mark);
  iso_code c = targets[target].write != NULL ? write_said(f, set, target, unchecked, refused, err)
                                             : rules_smtlib(f, set, refused, err);
  if (fclose(f) != 0 && !c) c = iso_fail(err, ISO_NOMEM, "out of memory");
  if (!c) return ISO_OK;
  free(*text);
  *text = NULL;
  return c;
}

iso_code rules_export(const rule_set *set, const char *target, bool unchecked, char **text,
                      json_t **refused, iso_error *err) {
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
    if (strcmp(targets[i].name, target) != 0) continue;
    *refused = json_object();
    const iso_code c = write_all(set, i, unchecked, text, *refused, err);
    if (c) json_decref(*refused);
    return c;
  }
  return iso_fail(err, ISO_USAGE, "no such target: \"%s\" (%s)", target, rules_targets);
}
