/* Sizes and attributes that meet a rule's conditions, from Z3: where drawing found none, there may
 * be none.
 *
 * Integers are Z3's integers, attributes without a kind its reals; mod is over integers with the
 * divisor's sign for positive divisors (conditions divide by sizes). `unsat` means that the rule
 * speaks of nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "validate/sample/instance_int.h"
#include "validate/prove/z3_lazy.h"

typedef struct asker {
  const val_problem *p;
  Z3_context z;
  Z3_ast name[VAL_MAX_NAMES];
  bool failed;
} asker;

static Z3_ast term(asker *k, const rule_term *t);

static Z3_ast real(asker *k, Z3_ast a) {
  return z3.get_sort_kind(k->z, z3.get_sort(k->z, a)) == Z3_INT_SORT ? z3.mk_int2real(k->z, a) : a;
}

static Z3_ast number(asker *k, const rule_term *t) {
  if (t->kind == RULE_INT) return z3.mk_int64(k->z, t->u.i, z3.mk_int_sort(k->z));
  char text[64];
  snprintf(text, sizeof text, "%.17f", t->u.f);
  return z3.mk_numeral(k->z, text, z3.mk_real_sort(k->z));
}

static Z3_ast arithmetic(asker *k, const char *op, Z3_ast a, Z3_ast b) {
  if (strcmp(op, "mod") == 0) return z3.mk_mod(k->z, a, b);
  if (op[0] == '/') return z3.mk_div(k->z, real(k, a), real(k, b));
  if (z3.get_sort(k->z, a) != z3.get_sort(k->z, b)) a = real(k, a), b = real(k, b);
  const Z3_ast both[2] = {a, b};
  return op[0] == '+'   ? z3.mk_add(k->z, 2, both)
         : op[0] == '-' ? z3.mk_sub(k->z, 2, both)
                        : z3.mk_mul(k->z, 2, both);
}

static Z3_ast relation(asker *k, const char *op, Z3_ast a, Z3_ast b) {
  if (strcmp(op, "divides") == 0)
    return z3.mk_eq(k->z, z3.mk_mod(k->z, b, a), z3.mk_int64(k->z, 0, z3.mk_int_sort(k->z)));
  if (z3.get_sort(k->z, a) != z3.get_sort(k->z, b)) a = real(k, a), b = real(k, b);
  if (strcmp(op, "=") == 0) return z3.mk_eq(k->z, a, b);
  if (strcmp(op, "!=") == 0) return z3.mk_not(k->z, z3.mk_eq(k->z, a, b));
  if (strcmp(op, "<") == 0) return z3.mk_lt(k->z, a, b);
  if (strcmp(op, "<=") == 0) return z3.mk_le(k->z, a, b);
  if (strcmp(op, ">") == 0) return z3.mk_gt(k->z, a, b);
  return z3.mk_ge(k->z, a, b);
}

static Z3_ast logic(asker *k, const rule_term *t) {
  Z3_ast child[64];
  if (t->n > 64) k->failed = true;
  for (uint32_t i = 0; i < t->n && !k->failed; i++) child[i] = term(k, t->child[i]);
  if (k->failed) return z3.mk_true(k->z);
  if (t->u.s[0] == 'n') return z3.mk_not(k->z, child[0]);
  return t->u.s[0] == 'a' ? z3.mk_and(k->z, t->n, child) : z3.mk_or(k->z, t->n, child);
}

static Z3_ast term(asker *k, const rule_term *t) {
  if (t->kind == RULE_INT || t->kind == RULE_FLOAT) return number(k, t);
  if (t->kind == RULE_NAME)
    for (uint32_t i = 0; i < k->p->n_names; i++)
      if (strcmp(k->p->name[i].name, t->u.s) == 0 && k->name[i] != NULL) return k->name[i];
  if (t->kind != RULE_EXPR || t->n == 0) {
    k->failed = true;
    return z3.mk_int64(k->z, 0, z3.mk_int_sort(k->z));
  }
  const char *op = t->u.s;
  if (strcmp(op, "and") == 0 || strcmp(op, "or") == 0 || strcmp(op, "not") == 0) return logic(k, t);
  Z3_ast a = term(k, t->child[0]);
  if (t->n == 1) return z3.mk_unary_minus(k->z, a);
  if (strcmp(op, "in") == 0) {
    const Z3_ast both[2] = {relation(k, ">=", a, term(k, t->child[1])),
                            relation(k, "<", a, term(k, t->child[2]))};
    return z3.mk_and(k->z, 2, both);
  }
  if (strchr("+-*/", op[0]) == NULL && strcmp(op, "mod") != 0)
    return relation(k, op, a, term(k, t->child[1]));
  for (uint32_t i = 1; i < t->n; i++) a = arithmetic(k, op, a, term(k, t->child[i]));
  return a;
}

static void declare(asker *k, Z3_solver s) {
  for (uint32_t i = 0; i < k->p->n_names; i++) {
    const val_name *n = &k->p->name[i];
    if (n->kind == 'l') continue;
    char symbol[24]; /* by number: what a name is called must not choose the model */
    snprintf(symbol, sizeof symbol, "n%u", (unsigned)i);
    Z3_sort sort = n->kind == 'f' ? z3.mk_real_sort(k->z) : z3.mk_int_sort(k->z);
    k->name[i] = z3.mk_const(k->z, z3.mk_string_symbol(k->z, symbol), sort);
    if (n->kind == 's')
      z3.solver_assert(k->z, s, z3.mk_ge(k->z, k->name[i], z3.mk_int64(k->z, 1, sort)));
  }
}

/* The model's values into the names. Returns: false where one is no number. */
static bool read_model(asker *k, val_problem *p, Z3_solver s) {
  Z3_model m = z3.solver_get_model(k->z, s);
  if (m == NULL) return false;
  z3.model_inc_ref(k->z, m);
  bool ok = true;
  for (uint32_t i = 0; i < p->n_names && ok; i++) {
    val_name *n = &p->name[i];
    Z3_ast v = NULL;
    if (n->kind == 'l') continue;
    ok = z3.model_eval(k->z, m, k->name[i], true, &v);
    if (ok && n->kind == 'f') n->f = z3.get_numeral_double(k->z, v);
    else ok = ok && z3.get_numeral_int64(k->z, v, &n->i);
    n->set = ok;
  }
  z3.model_dec_ref(k->z, m);
  return ok;
}

iso_code val_ask_names(val_problem *p, uint64_t rlimit, val_truth *out, iso_error *err) {
  asker k = {.p = p, .z = val_z3_context()};
  val_truth answer = *out = VAL_OPEN;
  bool overran = false;
  if (k.z == NULL) return ISO_OK;
  Z3_solver s = z3.mk_solver(k.z);
  if (s != NULL) {
    z3.solver_inc_ref(k.z, s);
    val_z3_limit(k.z, s, rlimit);
    declare(&k, s);
    for (uint32_t i = 0; i < p->n_where && !k.failed; i++)
      z3.solver_assert(k.z, s, term(&k, p->where[i]));
    if (!k.failed && z3.get_error_code(k.z) == Z3_OK) {
      const Z3_lbool r = z3.solver_check(k.z, s);
      if (r == Z3_L_FALSE) answer = VAL_FALSE;
      if (r == Z3_L_TRUE && read_model(&k, p, s)) answer = VAL_TRUE;
      overran = r == Z3_L_UNDEF && val_z3_overran(k.z, s);
    }
    z3.solver_dec_ref(k.z, s);
  }
  z3.del_context(k.z);
  *out = answer;
  return overran ? iso_fail(err, ISO_LIMIT, "%s on the conditions of rule %s", VAL_Z3_OVERRAN,
                            p->r->name)
                 : ISO_OK;
}
