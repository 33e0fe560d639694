/* Rules as an egglog program. Tensors and arguments are one sort, A; kinds and shapes of tensors
 * are functions, whose values are for the user to set, and every precondition of a rule is in its
 * :when. */
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/rules/export.h"

typedef struct out {
  FILE *f;
  const rules_plan *p;
} out;

static size_t index_of(const rules_plan *p, const char *name) {
  for (size_t i = 0; i < p->n_bound; i++)
    if (strcmp(p->bound[i], name) == 0) return i;
  return 0;
}

static void real(FILE *f, double v) {
  char text[40];
  snprintf(text, sizeof text, "%.17g", v);
  if (isfinite(v)) fprintf(f, "%s%s", text, strpbrk(text, ".e") != NULL ? "" : ".0");
  else fputs(isnan(v) ? "NaN" : v > 0 ? "inf" : "-inf", f);
}

/* ---- terms ---- */

static bool is_list_name(const rules_plan *p, const char *name) {
  for (uint32_t i = 0; i < p->r->n_attrs; i++)
    if (strcmp(p->r->attr[i].name, name) == 0) return p->r->attr[i].kind == 'l';
  return false;
}

static void number(const out *o, const rule_term *t, bool as_real);

static void argument(const out *o, const rule_term *t) {
  FILE *f = o->f;
  switch (t->kind) {
  case RULE_VAR: fprintf(f, "v%" PRId64, t->u.i); break;
  case RULE_OP:
    fprintf(f, "(%s", t->u.s);
    for (uint32_t i = 0; i < t->n; i++) {
      fputc(' ', f);
      argument(o, t->child[i]);
    }
    fputc(')', f);
    break;
  case RULE_LIST:
    for (uint32_t i = 0; i < t->n; i++) {
      fputs("(Cons ", f);
      argument(o, t->child[i]);
      fputc(' ', f);
    }
    fputs("(Nil)", f);
    for (uint32_t i = 0; i < t->n; i++) fputc(')', f);
    break;
  case RULE_INT: fprintf(f, "(I %" PRId64 ")", t->u.i); break;
  case RULE_FLOAT:
    fputs("(F ", f);
    real(f, t->u.f);
    fputc(')', f);
    break;
  case RULE_BOOLEAN: fprintf(f, "(B %s)", t->u.i ? "true" : "false"); break;
  case RULE_NONE: fputs("(None)", f); break;
  case RULE_STRING: fprintf(f, "(S \"%s\")", t->u.s); break;
  case RULE_DTYPE: fprintf(f, "(D \"%s\")", rule_dtype_name((rule_dtype)t->u.i)); break;
  default:
    if (t->kind == RULE_NAME && is_list_name(o->p, t->u.s)) number(o, t, false);
    else {
      const bool r = rules_plan_is_real(o->p, t);
      fputs(r ? "(F " : "(I ", f);
      number(o, t, r);
      fputc(')', f);
    }
  }
}

static void number(const out *o, const rule_term *t, bool as_real) {
  FILE *f = o->f;
  if (t->kind == RULE_FLOAT) real(f, t->u.f);
  else if (t->kind == RULE_INT) fprintf(f, as_real ? "%" PRId64 ".0" : "%" PRId64, t->u.i);
  else if (t->kind == RULE_NAME)
    fprintf(f, as_real && !rules_plan_is_real(o->p, t) ? "(to-f64 n%zu)" : "n%zu",
            index_of(o->p, t->u.s));
  else if (strcmp(t->u.s, "dim") == 0) {
    const int64_t k = t->child[1]->u.i;
    if (k >= 0) fprintf(f, "(dim v%" PRId64 " %" PRId64 ")", t->child[0]->u.i, k);
    else
      fprintf(f, "(dim v%" PRId64 " (+ (rank v%" PRId64 ") %" PRId64 "))", t->child[0]->u.i,
              t->child[0]->u.i, k);
  } else if (strcmp(t->u.s, "mod") == 0) { /* with the divisor's sign */
    fputs("(% (+ (% ", f);
    for (int i = 0; i < 2; i++) number(o, t->child[i], false), fputc(i ? ')' : ' ', f);
    fputc(' ', f);
    number(o, t->child[1], false);
    fputs(") ", f);
    number(o, t->child[1], false);
    fputc(')', f);
  } else {
    fprintf(f, "(%s", t->n == 1 ? as_real ? "- 0.0" : "- 0" : t->u.s);
    for (uint32_t i = 0; i < t->n; i++) fputc(' ', f), number(o, t->child[i], as_real);
    fputc(')', f);
  }
}

/* ---- conditions ---- */

/* Integers divide exactly in a rule, and with a remainder in egglog. */
static const char *beyond(const rules_plan *p, const rule_term *t) {
  if (t->kind == RULE_EXPR && (strcmp(t->u.s, "or") == 0 || strcmp(t->u.s, "not") == 0))
    return "a condition is a choice (or, not), which :when does not have";
  if (t->kind == RULE_EXPR && strcmp(t->u.s, "/") == 0 && !rules_plan_is_real(p, t))
    return "a condition divides integers";
  if (t->kind == RULE_EXPR && t->n > 2 && strcmp(t->u.s, "and") != 0 && strcmp(t->u.s, "in") != 0)
    return "a condition or size has more than two operands";
  for (uint32_t i = 0; i < t->n; i++) {
    const char *no = beyond(p, t->child[i]);
    if (no != NULL) return no;
  }
  return NULL;
}

static void compare(const out *o, const char *op, const rule_term *a, const rule_term *b) {
  const bool r = rules_plan_is_real(o->p, a) || rules_plan_is_real(o->p, b);
  FILE *f = o->f;
  const bool close = r && (strcmp(op, "=") == 0 || strcmp(op, "!=") == 0);
  if (!close) {
    fprintf(f, " (%s ", op);
    number(o, a, r), fputc(' ', f), number(o, b, r);
    fputc(')', f);
    return;
  }
  /* A literal for 1/sqrt(n) is within an ulp of it; its square rounds again. */
  fprintf(f, " (%s (abs (- ", op[0] == '=' ? "<=" : ">");
  number(o, a, true), fputc(' ', f), number(o, b, true);
  fputs(")) (* 1e-15 (max (abs ", f);
  number(o, a, true), fputs(") (abs ", f), number(o, b, true);
  fputs("))))", f);
}

static void condition(const out *o, const rule_term *t) {
  if (strcmp(t->u.s, "and") == 0) {
    for (uint32_t i = 0; i < t->n; i++) condition(o, t->child[i]);
  } else if (strcmp(t->u.s, "in") == 0) {
    compare(o, "<=", t->child[1], t->child[0]);
    compare(o, "<", t->child[0], t->child[2]);
  } else if (strcmp(t->u.s, "divides") == 0) {
    fputs(" (= 0 (% ", o->f);
    number(o, t->child[1], false), fputc(' ', o->f), number(o, t->child[0], false);
    fputs("))", o->f);
  } else compare(o, t->u.s, t->child[0], t->child[1]);
}

/* ---- rules ---- */

static const char *plan(const rule *r, bool backward, rules_plan *p, iso_code *c) {
  const char *no = NULL;
  *c = rules_plan_make(r, backward, p, &no);
  for (uint32_t i = 0; i < r->n_where && no == NULL && !*c; i++) no = beyond(p, r->where[i]);
  for (uint32_t i = 0; i < r->n_vars && no == NULL; i++)
    if (r->var[i].low != NULL || r->var[i].high != NULL)
      no = "it holds for a range of values of a tensor, which no term tells";
  if (no == NULL && r->claimed == RULE_REFUTED) no = "it is refuted";
  return no;
}

const char *rules_egglog_refuse(const rule *r) {
  const char *no = NULL;
  for (int backward = 0; backward < 2; backward++) {
    rules_plan p;
    iso_code c;
    const char *why = plan(r, backward, &p, &c);
    rules_plan_free(&p);
    if (c) return "out of memory";
    if (why == NULL) return NULL;
    no = why;
  }
  return no;
}

static void preconditions(const out *o) {
  const rule *r = o->p->r;
  for (uint32_t i = 0; i < r->n_vars; i++) {
    if (!rules_plan_has(o->p, i)) continue;
    fprintf(o->f, " (= (kind v%" PRIu32 ") \"%s\")", i, rule_variable_kind(&r->var[i]));
    if (!r->var[i].any_shape)
      fprintf(o->f,
              r->var[i].leading ? " (<= %" PRIu32 " (rank v%" PRIu32 "))"
                                : " (= %" PRIu32 " (rank v%" PRIu32 "))",
              r->var[i].n_dims, i);
  }
  for (size_t i = 0; i < o->p->n_steps; i++) {
    const rules_step *s = &o->p->step[i];
    if (s->name == NULL) condition(o, s->value);
    else {
      fprintf(o->f, " (= n%zu ", index_of(o->p, s->name));
      number(o, s->value, rules_plan_is_real(o->p, s->value));
      fputc(')', o->f);
    }
  }
}

static bool one_way(FILE *f, const rule *r, bool backward) {
  rules_plan p;
  iso_code c;
  const char *no = plan(r, backward, &p, &c);
  const out o = {f, &p};
  if (!c && no != NULL)
    fprintf(f, "; not from %s: %s\n", backward ? "right to left" : "left to right", no);
  else if (!c) {
    fputs("(rewrite ", f);
    argument(&o, p.pattern);
    fputs("\n         ", f);
    argument(&o, p.other);
    fputs("\n         :when (", f);
    preconditions(&o);
    fputs("))\n", f);
  }
  rules_plan_free(&p);
  return c == ISO_OK;
}

static bool declare(FILE *f, const rule_term *t, json_t *seen) {
  if (t->kind == RULE_OP && json_object_get(seen, t->u.s) == NULL) {
    if (json_object_set_new(seen, t->u.s, json_true()) != 0) return false;
    fprintf(f, "(constructor %s (", t->u.s);
    for (uint32_t i = 0; i < t->n; i++) fputs(i ? " A" : "A", f);
    fputs(") A)\n", f);
  }
  for (uint32_t i = 0; i < t->n; i++)
    if (!declare(f, t->child[i], seen)) return false;
  return true;
}

bool rules_egglog(FILE *f, const rule_set *set, const char *const *reason) {
  json_t *seen = json_object();
  bool ok = seen != NULL;
  fputs("; Rewrite rules for egglog, written by isomer rules export. Equality is over the real "
        "numbers: casts between float dtypes are identities.\n"
        "; Arguments stand in schema order, complete. For every tensor that a rule's variable may "
        "stand for, set its kind (\"f\" float, \"i\" integer,\n"
        "; \"b\" bool, \"c\" complex), its rank and each of its sizes; a rule whose variables' "
        "shapes are not set does not fire.\n",
        f);
  rules_comment_refused(f, set, reason, "; ");
  fputs("(datatype A (I i64) (F f64) (B bool) (S String) (D String) (None) (Nil) (Cons A A))\n"
        "(function kind (A) String :no-merge)\n(function rank (A) i64 :no-merge)\n(function dim (A "
        "i64) i64 :no-merge)\n",
        f);
  for (size_t i = 0; i < rule_set_count(set) && ok; i++)
    if (reason[i] == NULL)
      ok = declare(f, rule_set_at(set, i)->lhs, seen) && declare(f, rule_set_at(set, i)->rhs, seen);
  for (size_t i = 0; i < rule_set_count(set) && ok; i++) {
    if (reason[i] != NULL) continue;
    fputc('\n', f);
    rules_comment_rule(f, rule_set_at(set, i), "; ");
    ok = one_way(f, rule_set_at(set, i), false) && one_way(f, rule_set_at(set, i), true);
  }
  json_decref(seen);
  return ok;
}
