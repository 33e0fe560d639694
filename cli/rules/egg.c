/* Rules as Rust for egg: a pattern and a checked applier for each direction. Terms are
 * s-expressions over SymbolLang, with arguments in schema order; kinds and shapes of tensors are an
 * analysis (export_egg.rs), and every precondition of a rule is in its check. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/embedded.h"
#include "cli/rules/export.h"

/* As Rust's {:?} has it: one spelling of each number. `out` has 40 bytes. */
static void real_text(double v, char *out) {
  char e[40];
  int digits = 0;
  if (!isfinite(v)) {
    snprintf(out, 40, "%s", isnan(v) ? "NaN" : v > 0 ? "inf" : "-inf");
    return;
  }
  do snprintf(e, sizeof e, "%.*e", digits, v);
  while (strtod(e, NULL) != v && ++digits < 17);
  char *at = strchr(e, 'e');
  const int exponent = atoi(at + 1);
  if (fabs(v) > 0 && (fabs(v) < 1e-4 || fabs(v) >= 1e16))
    snprintf(out, 40, "%.*se%d", (int)(at - e), e, exponent);
  else snprintf(out, 40, "%.*f", digits - exponent > 1 ? digits - exponent : 1, v);
}

typedef struct writer {
  FILE *f;
  const rules_plan *p;
  const rule_term *computed[256]; /* expressions of the other side, ?e0 ... */
  size_t n_computed;
} writer;

static void put(writer *w, const rule_term *t) {
  FILE *f = w->f;
  char text[40];
  switch (t->kind) {
  case RULE_VAR: fprintf(f, "?v%" PRId64, t->u.i); break;
  case RULE_OP:
  case RULE_LIST:
    fprintf(f, "(%s", t->kind == RULE_OP ? t->u.s : "list");
    for (uint32_t i = 0; i < t->n; i++) fputc(' ', f), put(w, t->child[i]);
    fputc(')', f);
    break;
  case RULE_INT: fprintf(f, "%" PRId64, t->u.i); break;
  case RULE_FLOAT:
    real_text(t->u.f, text);
    fputs(text, f);
    break;
  case RULE_BOOLEAN: fputs(t->u.i ? "true" : "false", f); break;
  case RULE_STRING: fprintf(f, "str:%s", t->u.s); break;
  case RULE_DTYPE: fputs(rule_dtype_name((rule_dtype)t->u.i), f); break;
  case RULE_NAME: fprintf(f, "?n%zu", rules_code_index(w->p, t->u.s)); break;
  case RULE_EXPR:
    fprintf(f, "?e%zu", w->n_computed);
    w->computed[w->n_computed++] = t;
    break;
  default: fputs("none", f);
  }
}

static size_t count_expressions(const rule_term *t) {
  size_t n = 0;
  if (t->kind == RULE_EXPR) return 1;
  for (uint32_t i = 0; i < t->n; i++) n += count_expressions(t->child[i]);
  return n;
}

/* A string is one symbol of a term. */
static bool plain(const rule_term *t) {
  for (const char *c = t->kind == RULE_STRING || t->kind == RULE_OP ? t->u.s : ""; *c; c++)
    if (strchr(" \t\r\n()\"#;?\\", *c) != NULL) return false;
  if (t->kind == RULE_STRING && *t->u.s == 0) return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!plain(t->child[i])) return false;
  return true;
}

static const char *way(const rules_plan *p) {
  if (!plain(p->pattern) || !plain(p->other)) return "a string in it is no symbol";
  return count_expressions(p->other) > 256 ? "it computes more than 256 attributes" : NULL;
}

const char *rules_egg_refuse(const rule *r) { return rules_code_refuse(r, way); }

static void mark_names(const rules_plan *p, const rule_term *t, bool *in) {
  if (t->kind == RULE_NAME) in[rules_code_index(p, t->u.s)] = true;
  for (uint32_t i = 0; i < t->n && t->kind != RULE_EXPR; i++) mark_names(p, t->child[i], in);
}

/* The names that the check gives values for the other side. */
static bool put_made(writer *w, const rules_code *o) {
  const rules_plan *p = w->p;
  bool *in = calloc(p->n_bound + 1, 1);
  if (in == NULL) return false;
  mark_names(p, p->other, in);
  fputs("    Some(vec![", w->f);
  for (size_t i = p->n_pattern; i < p->n_bound; i++) {
    const rule_term name = {.kind = RULE_NAME, .u = {.s = p->bound[i]}};
    if (in[i])
      fprintf(w->f,
              rules_plan_is_real(p, &name) ? "(\"?n%zu\", Literal::Real(n%zu)), "
                                           : "(\"?n%zu\", made(n%zu)?), ",
              i, i);
  }
  for (size_t i = 0; i < w->n_computed; i++) {
    const bool r = rules_plan_is_real(p, w->computed[i]);
    fprintf(w->f, r ? "(\"?e%zu\", Literal::Real(" : "(\"?e%zu\", made(", i);
    rules_code_number(o, w->computed[i], r);
    fputs(r ? ")), " : ")?), ", w->f);
  }
  fputs("])\n", w->f);
  free(in);
  return true;
}

static bool put_check(writer *w, size_t id) {
  const rules_plan *p = w->p;
  const rule *r = p->r;
  FILE *f = w->f;
  const rules_code o = {.f = f,
                        .p = p,
                        .check = "?",
                        .inf = "f64::INFINITY",
                        .minus_inf = "f64::NEG_INFINITY",
                        .nan = "f64::NAN",
                        .let = "    let n%zu = ",
                        .let_real = "    let n%zu = ",
                        .require = "    if !",
                        .require_end = " {\n        return None;\n    }\n"};
  fprintf(f, "fn check_%zu(g: &Graph, s: &Subst) -> Made {\n", id);
  for (uint32_t i = 0; i < r->n_vars; i++) {
    const rule_variable *v = &r->var[i];
    char rank[24] = "None";
    if (!v->any_shape) snprintf(rank, sizeof rank, "Some(%" PRIu32 ")", v->n_dims);
    if (rules_plan_has(p, i))
      fprintf(f, "    let v%" PRIu32 " = tensor(g, s, \"?v%" PRIu32 "\", '%c', %s, %s)?;\n", i, i,
              v->kind, rank, v->leading ? "true" : "false");
  }
  for (size_t i = 0; i < p->n_pattern; i++) {
    const rule_term name = {.kind = RULE_NAME, .u = {.s = p->bound[i]}};
    const char *read = rules_code_is_list(p, p->bound[i]) ? "ints"
                       : rules_plan_is_real(p, &name)     ? "float"
                                                          : "int";
    fprintf(f, "    let n%zu = %s(g, s, \"?n%zu\")?;\n", i, read, i);
  }
  rules_code_steps(&o);
  const bool ok = put_made(w, &o);
  fputs("}\n", f);
  return ok;
}

/* The two texts of a direction, for rules(), and its check. */
static bool one_way(FILE *f, FILE *list, const rule *r, bool backward, size_t *id) {
  rules_plan p;
  bool fits, ok = rules_code_direction(f, r, backward, way, &p, &fits);
  if (fits) {
    writer w = {.f = list, .p = &p};
    fprintf(list, "        rewrite!(\"%s%s\"; r\"", r->name, backward ? "-back" : "");
    put(&w, p.pattern);
    fputs("\" => { when(r\"", list);
    put(&w, p.other);
    fprintf(list, "\", check_%zu) }),\n", *id);
    w.f = f;
    ok = put_check(&w, (*id)++);
  }
  rules_plan_free(&p);
  return ok;
}

bool rules_egg(FILE *f, const rule_set *set, const char *const *reason) {
  char *text = NULL;
  size_t len = 0, id = 0;
  FILE *list = open_memstream(&text, &len);
  bool ok = list != NULL;
  fputs("//! Rewrite rules for egg, written by isomer rules export. Equality is over the real "
        "numbers: casts between float dtypes are identities.\n"
        "//! Terms are s-expressions: arguments in schema order, complete; integers, reals (`0.5`, "
        "`1e-5`: as `{:?}` writes them), `true`, `none`, dtypes by\n"
        "//! name, strings as `str:tanh`, lists as `(list 0 2 1)`. A rule fires where the tensors "
        "that its variables stand for are known: leaves in\n"
        "//! `Tensors`, others by `set_tensor`.\n",
        f);
  rules_comment_refused(f, set, reason, "//! ");
  fputs("#![allow(dead_code, unused_variables, unused_parens)]\n\n", f);
  fputs(export_egg, f);
  fputs("\n// ---- the rules ----\n", f);
  for (size_t i = 0; i < rule_set_count(set) && ok; i++) {
    if (reason[i] != NULL) continue;
    fputc('\n', f);
    rules_comment_rule(f, rule_set_at(set, i), "// ");
    ok = one_way(f, list, rule_set_at(set, i), false, &id) &&
         one_way(f, list, rule_set_at(set, i), true, &id);
  }
  if (list != NULL && fclose(list) != 0) ok = false;
  fprintf(f, "\npub fn rules() -> Vec<Rewrite<SymbolLang, Tensors>> {\n    vec![\n%s    ]\n}\n",
          ok ? text : "");
  free(text);
  return ok;
}
