/* Analyses of workload files: constant folding over numbers and booleans, free variables of lambda
 * terms. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/saturate/saturate.h"
#include "egraph/base/vec.h"

static inline bool is_op(const eg_sat *s, eg_op op, const char *name) {
  const char *have = eg_sat_op_name(s, op);
  return *have == *name && strcmp(have, name) == 0;
}

static iso_code join_leaf(eg_sat *s, eg_class c, const char *name, iso_error *err) {
  eg_op op;
  eg_class leaf;
  iso_code code = eg_sat_op(s, name, strlen(name), 0, &op, err);
  if (!code) code = eg_sat_add(s, op, NULL, &leaf, err);
  return code ? code : eg_sat_merge(s, c, leaf, (eg_why){EG_WHY_GIVEN, 2}, err);
}

/* ---- numbers ---- */

typedef struct value {
  bool known;
  double v;
} value;

bool cli_sat_math_value(const eg_sat *s, eg_class c, double *out) {
  const value *v = eg_sat_data(s, c);
  if (v->known) *out = v->v;
  return v->known;
}

static void math_make(void *ctx, const eg_sat *s, eg_op op, const eg_class *child, size_t n,
                      void *data) {
  const cli_sat_language *l = ctx;
  const char *name = eg_sat_op_name(s, op);
  value *out = data;
  double a = 0, b = 0;
  if (n == 0 && cli_sat_leaf_kind(l, name) == SAT_NUMBER) *out = (value){true, strtod(name, NULL)};
  else if (n == 0) out->known = !strncmp(name, "#", 1) && sscanf(name + 1, "%la", &out->v) == 1;
  if (n != 2 || !cli_sat_math_value(s, child[0], &a) || !cli_sat_math_value(s, child[1], &b) ||
      name[1])
    return;
  if (*name == '+') *out = (value){true, a + b};
  else if (*name == '-') *out = (value){true, a - b};
  else if (*name == '*') *out = (value){true, a * b};
  else if (*name == '/' && b != 0) *out = (value){true, a / b};
}

static unsigned math_join(void *ctx, const eg_sat *s, void *into, void *from) {
  value *a = into;
  const value *b = from;
  (void)s;
  if (a->known && b->known && a->v != b->v)
    ((cli_sat_language *)ctx)->failed = "two numbers became equal";
  if (a->known == b->known) return 0;
  if (a->known) return EG_FROM_DIFFERS;
  *a = *b;
  return EG_INTO_CHANGED;
}

/* The leaf's text: decimal where it is an integer, else exact; `#` starts no number of a file. */
static iso_code math_repair(void *ctx, eg_sat *s, eg_class c, iso_error *err) {
  char name[64];
  double v;
  (void)ctx;
  if (!cli_sat_math_value(s, c, &v)) return ISO_OK;
  if (v == floor(v) && fabs(v) < 1e15) snprintf(name, sizeof name, "%lld", (long long)v);
  else snprintf(name, sizeof name, "#%a", v);
  const iso_code code = join_leaf(s, c, name, err);
  if (!code) eg_sat_prune(s, c);
  return code;
}

eg_sat_analysis cli_sat_fold_math(cli_sat_language *l) {
  return (eg_sat_analysis){
      .ctx = l, .size = sizeof(value), .make = math_make, .join = math_join, .repair = math_repair};
}

/* ---- booleans: -1 false, 1 true, 0 unknown ---- */

static int prop_of(const eg_sat *s, eg_class c) { return *(const signed char *)eg_sat_data(s, c); }

static void prop_make(void *ctx, const eg_sat *s, eg_op op, const eg_class *child, size_t n,
                      void *data) {
  signed char *out = data;
  (void)ctx;
  if (n == 0) {
    *out = is_op(s, op, "true") ? 1 : is_op(s, op, "false") ? -1 : 0;
    return;
  }
  const int a = prop_of(s, child[0]), b = n == 2 ? prop_of(s, child[1]) : 1;
  if (!a || !b) return;
  bool v;
  if (n == 1 && is_op(s, op, "~")) v = a < 0;
  else if (n == 2 && is_op(s, op, "&")) v = a > 0 && b > 0;
  else if (n == 2 && is_op(s, op, "|")) v = a > 0 || b > 0;
  else if (n == 2 && is_op(s, op, "->")) v = a < 0 || b > 0;
  else return;
  *out = v ? 1 : -1;
}

static unsigned prop_join(void *ctx, const eg_sat *s, void *into, void *from) {
  signed char *a = into;
  const signed char b = *(const signed char *)from;
  (void)s;
  if (*a && b && *a != b) ((cli_sat_language *)ctx)->failed = "true and false became equal";
  if ((*a != 0) == (b != 0)) return 0;
  if (*a) return EG_FROM_DIFFERS;
  *a = b;
  return EG_INTO_CHANGED;
}

static iso_code prop_repair(void *ctx, eg_sat *s, eg_class c, iso_error *err) {
  const int v = prop_of(s, c);
  (void)ctx;
  return v ? join_leaf(s, c, v > 0 ? "true" : "false", err) : ISO_OK;
}

eg_sat_analysis cli_sat_fold_prop(cli_sat_language *l) {
  return (eg_sat_analysis){
      .ctx = l, .size = 1, .make = prop_make, .join = prop_join, .repair = prop_repair};
}

/* ---- lambda: a set of classes as they were named when they were put in, and a constant ---- */

enum { FEW = 4 };
typedef struct lambda_data {
  uint32_t n;
  enum { L_NONE, L_NUMBER, L_BOOL } kind;
  int32_t v;
  union {
    uint32_t few[FEW]; /* where there are no more */
    uint32_t *many;
  } var;
} lambda_data;

bool cli_sat_lambda_is_const(const eg_sat *s, eg_class c) {
  return ((const lambda_data *)eg_sat_data(s, c))->kind != L_NONE;
}

static uint32_t *vars(lambda_data *d) { return d->n <= FEW ? d->var.few : d->var.many; }
static const uint32_t *vars_of(const lambda_data *d) {
  return d->n <= FEW ? d->var.few : d->var.many;
}

static bool has(const lambda_data *d, uint32_t v) {
  const uint32_t *var = vars_of(d);
  for (uint32_t i = 0; i < d->n; i++)
    if (var[i] == v) return true;
  return false;
}
bool cli_sat_lambda_is_free(const eg_sat *s, eg_class c, eg_class var) {
  return has(eg_sat_data(s, c), var.i);
}

static void put(cli_sat_language *l, lambda_data *d, uint32_t v) {
  if (has(d, v)) return;
  if (d->n >= FEW) {
    uint32_t *p = realloc(d->n > FEW ? d->var.many : NULL, (d->n + 1) * sizeof *p);
    if (!p) {
      l->failed = "out of memory for free variables";
      return;
    }
    if (d->n == FEW) memcpy(p, d->var.few, sizeof d->var.few);
    d->var.many = p;
  }
  d->n++;
  vars(d)[d->n - 1] = v;
}

static void put_all(cli_sat_language *l, lambda_data *d, const eg_sat *s, eg_class c,
                    uint32_t but) {
  const lambda_data *from = eg_sat_data(s, c);
  const uint32_t *var = vars_of(from);
  for (uint32_t i = 0; i < from->n; i++)
    if (var[i] != but) put(l, d, var[i]);
}

static void lambda_const(const cli_sat_language *l, const eg_sat *s, eg_op op,
                         const eg_class *child, size_t n, lambda_data *out) {
  const char *name = eg_sat_op_name(s, op);
  if (n == 0) {
    const unsigned kind = cli_sat_leaf_kind(l, name);
    char *end;
    const long long v = kind == SAT_NUMBER ? strtoll(name, &end, 10) : name[0] == 't';
    if (kind == SAT_SYMBOL || v != (int32_t)v) return;
    out->kind = kind == SAT_NUMBER ? L_NUMBER : L_BOOL;
    out->v = (int32_t)v;
    return;
  }
  if (n != 2) return;
  const lambda_data *a = eg_sat_data(s, child[0]), *b = eg_sat_data(s, child[1]);
  if (!a->kind || !b->kind) return;
  if (is_op(s, op, "+") && a->kind == L_NUMBER && b->kind == L_NUMBER &&
      !__builtin_add_overflow(a->v, b->v, &out->v))
    out->kind = L_NUMBER;
  if (is_op(s, op, "=")) {
    out->kind = L_BOOL;
    out->v = a->kind == b->kind && a->v == b->v;
  }
}

static void lambda_make(void *ctx, const eg_sat *s, eg_op op, const eg_class *child, size_t n,
                        void *data) {
  cli_sat_language *l = ctx;
  lambda_data *out = data;
  if (n == 1 && is_op(s, op, "var")) {
    put(l, out, child[0].i);
  } else if (n == 3 && is_op(s, op, "let")) {
    put_all(l, out, s, child[2], child[0].i);
    put_all(l, out, s, child[1], EG_NONE);
  } else if (n == 2 && (is_op(s, op, "lam") || is_op(s, op, "fix"))) {
    put_all(l, out, s, child[1], child[0].i);
  } else {
    for (size_t k = 0; k < n; k++) put_all(l, out, s, child[k], EG_NONE);
  }
  lambda_const(l, s, op, child, n, out);
}

static void lambda_free(void *ctx, void *data) {
  (void)ctx;
  lambda_data *d = data;
  if (d->n > FEW) free(d->var.many);
}

static unsigned lambda_join(void *ctx, const eg_sat *s, void *into, void *from) {
  lambda_data *a = into, *b = from;
  unsigned flags = 0;
  uint32_t n = 0;
  (void)ctx, (void)s;
  uint32_t *var = vars(a);
  for (uint32_t i = 0; i < a->n; i++)
    if (has(b, var[i])) var[n++] = var[i];
  if (n != a->n) flags |= EG_INTO_CHANGED;
  if (n != b->n) flags |= EG_FROM_DIFFERS;
  if (a->n > FEW && n <= FEW) {
    memcpy(a->var.few, var, n * sizeof *var);
    free(var);
  }
  a->n = n;
  if (!a->kind && b->kind) {
    a->kind = b->kind;
    a->v = b->v;
    flags |= EG_INTO_CHANGED;
  } else if (a->kind && !b->kind) {
    flags |= EG_FROM_DIFFERS;
  }
  lambda_free(NULL, b);
  return flags;
}

static iso_code lambda_repair(void *ctx, eg_sat *s, eg_class c, iso_error *err) {
  const lambda_data *d = eg_sat_data(s, c);
  char name[16];
  (void)ctx;
  if (d->kind == L_NONE) return ISO_OK;
  if (d->kind == L_BOOL) return join_leaf(s, c, d->v ? "true" : "false", err);
  snprintf(name, sizeof name, "%d", d->v);
  return join_leaf(s, c, name, err);
}

eg_sat_analysis cli_sat_lambda(cli_sat_language *l) {
  return (eg_sat_analysis){.ctx = l,
                           .size = sizeof(lambda_data),
                           .make = lambda_make,
                           .join = lambda_join,
                           .repair = lambda_repair,
                           .free = lambda_free};
}
