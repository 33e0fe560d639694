/* Sizes, attributes and conditions of a rule as code in a language with calls and infix operators:
 * Rust (egg.c) and C++ (pdll.c). The names that it calls, add, sub, mul, quotient, mod_of, ratio,
 * close, size, real, are for the target to have: integers of 128 bits, with a way to give up
 * (`check`) where a number leaves them or a quotient is none; then the rule is not used. */
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "cli/rules/export.h"

size_t rules_code_index(const rules_plan *p, const char *name) {
  for (size_t i = 0; i < p->n_bound; i++)
    if (strcmp(p->bound[i], name) == 0) return i;
  return 0;
}

bool rules_code_is_list(const rules_plan *p, const char *name) {
  for (uint32_t i = 0; i < p->r->n_attrs; i++)
    if (strcmp(p->r->attr[i].name, name) == 0) return p->r->attr[i].kind == 'l';
  return false;
}

static void real(const rules_code *o, double v) {
  if (isfinite(v)) fprintf(o->f, "%.17e", v);
  else fputs(isnan(v) ? o->nan : v > 0 ? o->inf : o->minus_inf, o->f);
}

/* A name, or a call that gives an integer. */
static void as_call(const rules_code *o, const rule_term *t) {
  FILE *f = o->f;
  if (t->kind == RULE_NAME) fprintf(f, "n%zu", rules_code_index(o->p, t->u.s));
  else if (strcmp(t->u.s, "dim") == 0)
    fprintf(f, "size(v%" PRId64 ", %" PRId64 ")%s", t->child[0]->u.i, t->child[1]->u.i, o->check);
  else {
    fputs("mod_of(", f);
    rules_code_number(o, t->child[0], false), fputs(", ", f),
        rules_code_number(o, t->child[1], false);
    fprintf(f, ")%s", o->check);
  }
}

void rules_code_number(const rules_code *o, const rule_term *t, bool as_real) {
  /* operator: MLIR's names of arithmetic */
  static const char *const op[][3] = {
      {"+", "add", " + "}, {"-", "sub", " - "}, {"*", "mul", " * "}};
  FILE *f = o->f;
  if (t->kind == RULE_FLOAT) real(o, t->u.f);
  else if (t->kind == RULE_INT) fprintf(f, as_real ? "%" PRId64 ".0" : "%" PRId64, t->u.i);
  else if (t->kind == RULE_NAME || strcmp(t->u.s, "dim") == 0 || strcmp(t->u.s, "mod") == 0) {
    const bool cast = as_real && !rules_plan_is_real(o->p, t);
    fputs(cast ? "real(" : "", f);
    as_call(o, t);
    fputs(cast ? ")" : "", f);
  } else if (strcmp(t->u.s, "/") == 0) {
    fputs(as_real ? "ratio(" : "quotient(", f);
    rules_code_number(o, t->child[0], as_real), fputs(", ", f),
        rules_code_number(o, t->child[1], as_real);
    fprintf(f, ")%s", o->check);
  } else if (t->n == 1) {
    fputs(as_real ? "(-" : "sub(0, ", f);
    rules_code_number(o, t->child[0], as_real);
    fprintf(f, ")%s", as_real ? "" : o->check);
  } else {
    size_t k = 0;
    while (k < 2 && strcmp(op[k][0], t->u.s) != 0) k++;
    for (uint32_t i = t->n; i-- > 1;) fprintf(f, as_real ? "(" : "%s(", op[k][1]);
    rules_code_number(o, t->child[0], as_real);
    for (uint32_t i = 1; i < t->n; i++) {
      fputs(as_real ? op[k][2] : ", ", f);
      rules_code_number(o, t->child[i], as_real);
      fprintf(f, ")%s", as_real ? "" : o->check);
    }
  }
}

static void compare(const rules_code *o, const char *op, const rule_term *a, const rule_term *b) {
  const bool r = rules_plan_is_real(o->p, a) || rules_plan_is_real(o->p, b);
  const bool equal = op[0] == '=' || op[0] == '!', strict = !equal && op[1] == 0;
  FILE *f = o->f;
  fputc('(', f);
  if (!(r && equal)) {
    rules_code_number(o, a, r);
    fprintf(f, " %s ", strcmp(op, "=") == 0 ? "==" : op);
    rules_code_number(o, b, r);
  }
  if (r) { /* a literal for 1/sqrt(n) is within an ulp of it; its square rounds again */
    fputs(equal ? op[0] == '!' ? "!" : "" : strict ? " && !" : " || ", f);
    fputs("close(", f);
    rules_code_number(o, a, true), fputs(", ", f), rules_code_number(o, b, true);
    fputc(')', f);
  }
  fputc(')', f);
}

static void code_condition(const rules_code *o, const rule_term *t) {
  FILE *f = o->f;
  const bool all = strcmp(t->u.s, "and") == 0;
  if (all || strcmp(t->u.s, "or") == 0) {
    fputs(t->n ? "(" : all ? "(true" : "(false", f);
    for (uint32_t i = 0; i < t->n; i++) {
      fputs(!i ? "" : all ? " && " : " || ", f);
      code_condition(o, t->child[i]);
    }
    fputc(')', f);
  } else if (strcmp(t->u.s, "not") == 0) {
    fputc('!', f);
    code_condition(o, t->child[0]);
  } else if (strcmp(t->u.s, "in") == 0) {
    fputc('(', f);
    compare(o, "<=", t->child[1], t->child[0]);
    fputs(" && ", f);
    compare(o, "<", t->child[0], t->child[2]);
    fputc(')', f);
  } else if (strcmp(t->u.s, "divides") == 0) {
    fputs("(mod_of(", f);
    rules_code_number(o, t->child[1], false), fputs(", ", f),
        rules_code_number(o, t->child[0], false);
    fprintf(f, ")%s == 0)", o->check);
  } else compare(o, t->u.s, t->child[0], t->child[1]);
}

void rules_code_steps(const rules_code *o) {
  for (size_t i = 0; i < o->p->n_steps; i++) {
    const rules_step *s = &o->p->step[i];
    const bool r = s->name != NULL && rules_plan_is_real(o->p, s->value);
    if (s->name != NULL) fprintf(o->f, r ? o->let_real : o->let, rules_code_index(o->p, s->name));
    else fputs(o->require, o->f);
    if (s->name != NULL) rules_code_number(o, s->value, r);
    else code_condition(o, s->value);
    fputs(s->name != NULL ? ";\n" : o->require_end, o->f);
  }
}

static bool mod_of_reals(const rules_plan *p, const rule_term *t) {
  if (t->kind == RULE_EXPR && (strcmp(t->u.s, "mod") == 0 || strcmp(t->u.s, "divides") == 0) &&
      rules_plan_is_real(p, t))
    return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (mod_of_reals(p, t->child[i])) return true;
  return false;
}

/* The plan of one direction. Returns: NULL, or why there is none (static). */
static const char *plan_of(const rule *r, bool backward, rules_plan *p, iso_code *c) {
  const char *no = NULL;
  *c = rules_plan_make(r, backward, p, &no);
  for (uint32_t i = 0; i < r->n_vars && no == NULL; i++)
    if (r->var[i].low != NULL || r->var[i].high != NULL)
      no = "it holds for a range of values of a tensor, which no graph tells";
    else if (r->var[i].narrow) no = "it speaks of integers in fewer than 64 bits";
  for (uint32_t i = 0; i < r->n_where && no == NULL && !*c; i++)
    if (mod_of_reals(p, r->where[i])) no = "a condition is about the remainder of a real number";
  if (no == NULL && r->claimed == RULE_REFUTED) no = "it is refuted";
  return no;
}

bool rules_code_direction(FILE *f, const rule *r, bool backward, rules_code_way *way, rules_plan *p,
                          bool *fits) {
  iso_code c;
  const char *no = plan_of(r, backward, p, &c);
  if (!c && no == NULL) no = way(p);
  if (!c && no != NULL)
    fprintf(f, "// not from %s: %s\n", backward ? "right to left" : "left to right", no);
  *fits = !c && no == NULL;
  return c == ISO_OK;
}

const char *rules_code_refuse(const rule *r, rules_code_way *way) {
  const char *no = NULL;
  for (int backward = 0; backward < 2; backward++) {
    rules_plan p;
    iso_code c;
    const char *why = plan_of(r, backward, &p, &c);
    if (!c && why == NULL) why = way(&p);
    rules_plan_free(&p);
    if (c) return "out of memory";
    if (why == NULL) return NULL;
    no = why;
  }
  return no;
}
