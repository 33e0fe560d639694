/* Sizes and attributes that meet a rule's conditions, from Z3: where drawing found none, there may be none.
 *
 * Integers are Z3's integers, attributes without a kind its reals; mod is over integers with the divisor's sign for
 * positive divisors (conditions divide by sizes). `unsat` means that the rule speaks of nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <z3.h>

#include "validate/instance_int.h"

typedef struct asker {
  const val_problem *p;
  Z3_context z;
  Z3_ast name[VAL_MAX_NAMES];
  bool failed;
} asker;

static void on_error(Z3_context z, Z3_error_code e) {
  (void)z;
  (void)e;
}

static Z3_ast term(asker *k, const rule_term *t);

static Z3_ast real(asker *k, Z3_ast a) {
  return Z3_get_sort_kind(k->z, Z3_get_sort(k->z, a)) == Z3_INT_SORT ? Z3_mk_int2real(k->z, a) : a;
}

static Z3_ast number(asker *k, const rule_term *t) {
  if (t->kind == RULE_INT) return Z3_mk_int64(k->z, t->u.i, Z3_mk_int_sort(k->z));
  char text[64];
  snprintf(text, sizeof text, "%.17f", t->u.f);
  return Z3_mk_numeral(k->z, text, Z3_mk_real_sort(k->z));
}

static Z3_ast arithmetic(asker *k, const char *op, Z3_ast a, Z3_ast b) {
  if (strcmp(op, "mod") == 0) return Z3_mk_mod(k->z, a, b);
  if (op[0] == '/') return Z3_mk_div(k->z, real(k, a), real(k, b));
  if (Z3_get_sort(k->z, a) != Z3_get_sort(k->z, b)) a = real(k, a), b = real(k, b);
  const Z3_ast both[2] = {a, b};
  return op[0] == '+' ? Z3_mk_add(k->z, 2, both) : op[0] == '-' ? Z3_mk_sub(k->z, 2, both) : Z3_mk_mul(k->z, 2, both);
}

static Z3_ast relation(asker *k, const char *op, Z3_ast a, Z3_ast b) {
  if (strcmp(op, "divides") == 0)
    return Z3_mk_eq(k->z, Z3_mk_mod(k->z, b, a), Z3_mk_int64(k->z, 0, Z3_mk_int_sort(k->z)));
  if (Z3_get_sort(k->z, a) != Z3_get_sort(k->z, b)) a = real(k, a), b = real(k, b);
  if (strcmp(op, "=") == 0) return Z3_mk_eq(k->z, a, b);
  if (strcmp(op, "!=") == 0) return Z3_mk_not(k->z, Z3_mk_eq(k->z, a, b));
  if (strcmp(op, "<") == 0) return Z3_mk_lt(k->z, a, b);
  if (strcmp(op, "<=") == 0) return Z3_mk_le(k->z, a, b);
  if (strcmp(op, ">") == 0) return Z3_mk_gt(k->z, a, b);
  return Z3_mk_ge(k->z, a, b);
}

static Z3_ast logic(asker *k, const rule_term *t) {
  Z3_ast child[64];
  if (t->n > 64) k->failed = true;
  for (uint32_t i = 0; i < t->n && !k->failed; i++) child[i] = term(k, t->child[i]);
  if (k->failed) return Z3_mk_true(k->z);
  if (t->u.s[0] == 'n') return Z3_mk_not(k->z, child[0]);
  return t->u.s[0] == 'a' ? Z3_mk_and(k->z, t->n, child) : Z3_mk_or(k->z, t->n, child);
}

static Z3_ast term(asker *k, const rule_term *t) {
  if (t->kind == RULE_INT || t->kind == RULE_FLOAT) return number(k, t);
  if (t->kind == RULE_NAME)
    for (uint32_t i = 0; i < k->p->n_names; i++)
      if (strcmp(k->p->name[i].name, t->u.s) == 0 && k->name[i] != NULL) return k->name[i];
  if (t->kind != RULE_EXPR || t->n == 0) {
    k->failed = true;
    return Z3_mk_int64(k->z, 0, Z3_mk_int_sort(k->z));
  }
  const char *op = t->u.s;
  if (strcmp(op, "and") == 0 || strcmp(op, "or") == 0 || strcmp(op, "not") == 0) return logic(k, t);
  Z3_ast a = term(k, t->child[0]);
  if (t->n == 1) return Z3_mk_unary_minus(k->z, a);
  if (strcmp(op, "in") == 0) {
    const Z3_ast both[2] = {relation(k, ">=", a, term(k, t->child[1])), relation(k, "<", a, term(k, t->child[2]))};
    return Z3_mk_and(k->z, 2, both);
  }
  if (strchr("+-*/", op[0]) == NULL && strcmp(op, "mod") != 0) return relation(k, op, a, term(k, t->child[1]));
  for (uint32_t i = 1; i < t->n; i++) a = arithmetic(k, op, a, term(k, t->child[i]));
  return a;
}

static void declare(asker *k, Z3_solver s) {
  for (uint32_t i = 0; i < k->p->n_names; i++) {
    const val_name *n = &k->p->name[i];
    if (n->kind == 'l') continue;
    Z3_sort sort = n->kind == 'f' ? Z3_mk_real_sort(k->z) : Z3_mk_int_sort(k->z);
    k->name[i] = Z3_mk_const(k->z, Z3_mk_string_symbol(k->z, n->name), sort);
    if (n->kind == 's') Z3_solver_assert(k->z, s, Z3_mk_ge(k->z, k->name[i], Z3_mk_int64(k->z, 1, sort)));
  }
}

/* The model's values into the names. Returns: false where one is no number. */
static bool read_model(asker *k, val_problem *p, Z3_solver s) {
  Z3_model m = Z3_solver_get_model(k->z, s);
  if (m == NULL) return false;
  Z3_model_inc_ref(k->z, m);
  bool ok = true;
  for (uint32_t i = 0; i < p->n_names && ok; i++) {
    val_name *n = &p->name[i];
    Z3_ast v = NULL;
    if (n->kind == 'l') continue;
    ok = Z3_model_eval(k->z, m, k->name[i], true, &v);
    if (ok && n->kind == 'f') n->f = Z3_get_numeral_double(k->z, v);
    else ok = ok && Z3_get_numeral_int64(k->z, v, &n->i);
    n->set = ok;
  }
  Z3_model_dec_ref(k->z, m);
  return ok;
}

val_truth val_ask_names(val_problem *p, uint64_t rlimit) {
  Z3_config cfg = Z3_mk_config();
  if (cfg == NULL) return VAL_OPEN;
  asker k = {.p = p, .z = Z3_mk_context(cfg)};
  Z3_del_config(cfg);
  if (k.z == NULL) return VAL_OPEN;
  Z3_set_error_handler(k.z, on_error);
  Z3_solver s = Z3_mk_solver(k.z);
  val_truth answer = VAL_OPEN;
  if (s != NULL) {
    Z3_solver_inc_ref(k.z, s);
    Z3_params limits = Z3_mk_params(k.z);
    Z3_params_inc_ref(k.z, limits);
    Z3_params_set_uint(k.z, limits, Z3_mk_string_symbol(k.z, "rlimit"), rlimit > UINT32_MAX ? UINT32_MAX : (unsigned)rlimit);
    Z3_params_set_uint(k.z, limits, Z3_mk_string_symbol(k.z, "timeout"), 20000); /* a backstop: rlimit comes first */
    Z3_solver_set_params(k.z, s, limits);
    Z3_params_dec_ref(k.z, limits);
    declare(&k, s);
    for (uint32_t i = 0; i < p->n_where && !k.failed; i++) Z3_solver_assert(k.z, s, term(&k, p->where[i]));
    if (!k.failed && Z3_get_error_code(k.z) == Z3_OK) {
      const Z3_lbool r = Z3_solver_check(k.z, s);
      if (r == Z3_L_FALSE) answer = VAL_FALSE;
      if (r == Z3_L_TRUE && read_model(&k, p, s)) answer = VAL_TRUE;
    }
    Z3_solver_dec_ref(k.z, s);
  }
  Z3_del_context(k.z);
  return answer;
}
