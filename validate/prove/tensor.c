/* Tensors of the symbolic prover: terms to shapes and elements, arguments of calls, case splits
 * that they ask for. */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "validate/prove/prove_int.h"

typedef struct sc_elem {
  const pt_tensor *t;
  uint32_t place;
  const sx *idx;
  sx value;
} sc_elem;

void *sc_take(sc *c, size_t n) {
  void *p = c->failed ? NULL : iso_arena_alloc(&c->arena, n);
  if (!p && !c->failed) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
  }
  return p;
}

/* ---- case splits ---- */

static void ask(sc *c, sx guard) {
  if (c->failed) return;
  c->choice[0] = (sc_guess){guard, true};
  c->choice[1] = (sc_guess){guard, false};
  c->n_choices = 2;
  sc_fail(c, "a case split");
}

static bool known(const sc *c, sx guard, bool *out) {
  for (size_t i = 0; i < c->n_path; i++)
    if (c->path[i].cond == guard) return *out = c->path[i].holds, true;
  return false;
}

bool sc_decide(sc *c, sx cond, bool *out) {
  while (!c->failed) {
    bool holds;
    if (cond == c->yes || cond == c->no) return *out = cond == c->yes, true;
    const sx g = sx_top_guard(c, cond);
    if (!known(c, g, &holds)) {
      ask(c, g);
      return false;
    }
    cond = sx_cofactor(c, cond, g, holds);
  }
  return false;
}

bool sc_require(sc *c, sx cond) {
  bool holds = false;
  if (!sc_decide(c, cond, &holds)) return false;
  if (holds) return true;
  c->undefined = true;
  sc_fail(c, "a side that is not defined");
  return false;
}

bool sc_require_modelled(sc *c, sx cond, const char *otherwise) {
  bool holds = false;
  if (!sc_decide(c, cond, &holds)) return false;
  if (!holds) sc_fail(c, "%s", otherwise);
  return holds;
}

bool sc_require_eq(sc *c, sx p, sx q) { return sx_same(c, p, q) || sc_require(c, sx_eq(c, p, q)); }

bool sc_multiple(sc *c, sx a, sx b, sx *out) {
  int64_t x, y;
  if (c->failed) return false; /* for a reason that need not be that there is no value */
  if (sx_divides(c, b, a, out)) return true;
  if (sx_is_int(c, a, &x) && sx_is_int(c, b, &y)) {
    c->undefined = true;
    sc_fail(c, "a size that is no multiple of another");
    return false;
  }
  const sx u = sc_derived(c, "times", sx_add(c, a, sx_mul(c, b, sc_symbol_named(c, "per"))), 1);
  if (c->failed) return false;
  const sx eq = sx_eq(c, a, sx_mul(c, b, u)), g = sx_top_guard(c, eq);
  bool gone;
  if (!g || known(c, g, &gone) || !sc_has(c, a, S_POS) || !sc_has(c, b, S_POS)) {
    sc_fail(c, "a size that is not known to be a multiple of another");
    return false;
  }
  c->choice[0] = (sc_guess){g, true};
  c->n_choices = 1;
  sc_fail(c, "a case split");
  return false;
}

void pt_join_leads(sc *c, uint64_t a, uint64_t b) {
  for (int i = 0; i < 64; i++)
    if ((a | b) >> i & 1) c->lead_of[i] |= a | b;
}

void sc_defined_if(sc *c, sx cond) {
  if (c->failed || cond == c->yes) return;
  for (size_t i = 0; i < c->n_domain; i++)
    if (c->domain[i] == cond) return;
  if (c->n_domain < SC_MAX_FACTS) c->domain[c->n_domain++] = cond;
}

/* ---- tensors ---- */

pt_tensor *pt_new(sc *c, char kind, pt_elem f) {
  pt_tensor *t = sc_take(c, sizeof *t);
  if (!t) return NULL;
  *t = (pt_tensor){.kind = kind, .elem = f, .id = ++c->n_tensors};
  return t;
}

static size_t elem_slot(const sc *c, const pt_tensor *t, uint32_t place, const sx *idx) {
  size_t h =
      iso_hash(idx, t->rank * sizeof *idx, t->id + ((uint64_t)place << 32)) & (c->cap_elems - 1);
  for (; c->elems[h].t; h = (h + 1) & (c->cap_elems - 1))
    if (c->elems[h].t == t && c->elems[h].place == place &&
        (!t->rank || !memcmp(c->elems[h].idx, idx, t->rank * sizeof *idx)))
      break;
  return h;
}

static bool more_elems(sc *c) {
  sc_elem *old = c->elems;
  const size_t n = c->cap_elems;
  c->cap_elems = n ? 2 * n : 256;
  c->elems = calloc(c->cap_elems, sizeof *c->elems);
  if (!c->elems) {
    c->elems = old;
    c->cap_elems = n;
    return false;
  }
  for (size_t i = 0; i < n; i++)
    if (old[i].t) c->elems[elem_slot(c, old[i].t, old[i].place, old[i].idx)] = old[i];
  free(old);
  return true;
}

sx pt_at(sc *c, const pt_tensor *t, const sx *idx) {
  if (c->failed || !t) return c->zero;
  if (c->cap_elems) {
    const size_t h = elem_slot(c, t, c->at_place, idx);
    if (c->elems[h].t) return c->elems[h].value;
  }
  if (++c->depth > 400) sc_fail(c, "a term too deep");
  const sx v = c->failed ? c->zero : t->elem(c, t, idx);
  c->depth--;
  sx *copy = sc_take(c, (t->rank + 1) * sizeof *copy);
  if (c->failed || !copy) return c->zero;
  memcpy(copy, idx, t->rank * sizeof *copy);
  if (2 * (c->n_elems + 1) > c->cap_elems && !more_elems(c)) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
    return c->zero;
  }
  c->elems[elem_slot(c, t, c->at_place, copy)] = (sc_elem){t, c->at_place, copy, v};
  c->n_elems++;
  return v;
}

pt_value *pt_list(sc *c, const pt_tensor *const *t, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (!t[i]) return NULL;
  pt_value *v = sc_take(c, sizeof *v);
  const pt_tensor **copy = sc_take(c, (n + 1) * sizeof *copy);
  if (!v || !copy) return NULL;
  if (n) memcpy(copy, t, n * sizeof *copy);
  *v = (pt_value){.several = true, .n = n, .t = copy};
  return v;
}

pt_value *pt_one(sc *c, const pt_tensor *t) {
  pt_value *v = t ? pt_list(c, &t, 1) : NULL;
  if (v) v->several = false;
  return v;
}

const pt_tensor *pt_piece(sc *c, const pt_value *v, size_t k) {
  if (v->t) {
    if (k < v->n) return v->t[k];
    sc_fail(c, "getitem out of range");
    return NULL;
  }
  /* Piece k of equal ones: [k step, min((k + 1) step, size)); there is one where k step < size. */
  const sx size = v->base->dim[v->dim], start = sx_mul(c, sx_int(c, (int64_t)k), v->step),
           end = sx_add(c, start, v->step);
  bool whole;
  if (!(k == 0 ? sc_require(c, c->yes) : sc_require(c, sx_lt(c, start, size)))) return NULL;
  if (!sc_decide(c, sx_le(c, end, size), &whole)) return NULL;
  const rule_dtype type = v->base->narrow ? (rule_dtype)v->base->narrow : RULE_I64;
  if (v->unbind) return pt_typed(c, pt_drop(c, v->base, v->dim, start), type);
  return pt_typed(
      c, pt_slice(c, v->base, v->dim, start, whole ? v->step : sx_sub(c, size, start), c->one),
      type);
}

/* ---- variables ---- */

static sx bool_end(sc *c, sx x, const void *ctx) {
  (void)ctx;
  return sc_op(c, x) == X_LEAF ? sc_node(c, X_ITE, (uint32_t[3]){x, c->yes, c->no}, 3) : x;
}

static sx variable_elem(sc *c, const pt_tensor *t, const sx *idx) {
  sx at[RULE_MAX_RANK];
  if (c->look && c->look->witness && t->kind == 'f')
    return sx_int(c, c->look->witness == 1 ? 1 : 2 + t->which);
  memcpy(at, idx, t->rank * sizeof *at);
  /* Within a part of a concatenation of any shapes, the place among the open dimensions is another
   * one. */
  const bool moved = t->lead && c->at_place && t->rank < RULE_MAX_RANK;
  if (moved) at[t->rank] = sx_int(c, c->at_place);
  const sx x = sx_leaf(c, (uint32_t)t->which, at, t->rank + moved);
  return t->kind == 'b' ? sx_lift(c, x, bool_end, NULL) : x;
}

bool pt_is_variable(const pt_tensor *t) { return t->elem == variable_elem; }

static const pt_tensor *variable(sc *c, int64_t index) {
  if (index < 0 || index >= (int64_t)c->r->n_vars || index >= 64) {
    sc_fail(c, "too many variables");
    return NULL;
  }
  const rule_variable *v = &c->r->var[index];
  pt_tensor *t = pt_new(c, v->kind, variable_elem);
  if (!t) return NULL;
  if (!strchr("fib", v->kind)) sc_fail(c, "a variable of complex numbers");
  t->which = (int)index;
  if (v->any_shape || v->leading) t->lead = 1ULL << index;
  for (uint32_t k = 0; k < v->n_dims && !c->failed; k++) {
    char *name = v->dim[k]->kind == RULE_NONE
                     ? iso_arena_printf(&c->arena, "size %" PRId64 " %u", index, k)
                     : NULL; /* no name that a rule can give */
    const rule_term n = {.kind = RULE_NAME, .u.s = name};
    t->dim[t->rank++] = sc_size(c, name ? &n : v->dim[k]);
  }
  return c->failed ? NULL : t;
}

/* ---- terms ---- */

static const pt_value *getitem(sc *c, const rule_term *t) {
  int64_t i;
  if (t->n != 2 || t->child[1]->kind != RULE_INT) {
    sc_fail(c, "a getitem without a number");
    return NULL;
  }
  const pt_value *v = pt_eval(c, t->child[0]);
  if (!v) return NULL;
  i = t->child[1]->u.i;
  if (!v->several) {
    sc_fail(c, "getitem of one tensor");
    return NULL;
  }
  if (i < 0 && v->t) i += (int64_t)v->n;
  if (i < 0) {
    sc_fail(c, "getitem from the end of unknown many");
    return NULL;
  }
  return pt_one(c, pt_piece(c, v, (size_t)i));
}

void pt_note(sc *c, const char *op) {
  if (!strncmp(op, "aten::", 6) || !strncmp(op, "dist::", 6)) return;
  for (size_t i = 0; i < c->n_relative; i++)
    if (!strcmp(c->relative[i], op)) return;
  if (c->n_relative < SC_MAX_RELATIVE) c->relative[c->n_relative++] = op;
}

static bool own_definition(const char *op, pt_definition *out) {
  return pt_define_elementwise(op, out) || pt_define_layout(op, out) || pt_define_views(op, out) ||
         pt_define_cat(op, out) || pt_define_slice(op, out) || pt_define_pick(op, out) ||
         pt_define_fill(op, out) || pt_define_reduce(op, out) || pt_define_nn(op, out) ||
         pt_define_window(op, out) || pt_define_index(op, out) || pt_define_put(op, out) ||
         pt_define_order(op, out) || pt_define_dist(op, out) || pt_define_composite(op, out) ||
         pt_define_kernel(op, out) || pt_define_written(op, out);
}

/* "special_exp2" is exp2, and "view_copy" the view that it copies; their arguments have the same
 * names. */
static bool definition(const char *op, pt_definition *out) {
  static const char special[] = "aten::special_", copy[] = "_copy";
  char name[96];
  if (own_definition(op, out)) return true;
  if (strlen(op) >= sizeof name) return false;
  if (!strncmp(op, special, sizeof special - 1)) {
    snprintf(name, sizeof name, "aten::%s", op + sizeof special - 1);
    return own_definition(name, out);
  }
  const size_t base = strcspn(op, ".");
  if (base < sizeof copy || strncmp(op + base - (sizeof copy - 1), copy, sizeof copy - 1))
    return false;
  snprintf(name, sizeof name, "%.*s%s", (int)(base - (sizeof copy - 1)), op, op + base);
  return own_definition(name, out);
}

static const pt_value *call(sc *c, const rule_term *t) {
  if (!strcmp(t->u.s, "getitem")) return getitem(c, t);
  pt_definition d;
  const bool found = definition(t->u.s, &d);
  const rule_schema *schema = found ? rule_schemas_find(c->schemas, t->u.s) : NULL;
  if (!schema) {
    sc_fail(c, "%s has no definition here", t->u.s);
    return NULL;
  }
  if (t->n != schema->n_args) {
    sc_fail(c, "%s with %" PRIu32 " arguments instead of %zu", t->u.s, t->n, schema->n_args);
    return NULL;
  }
  pt_args a = {c, t, schema};
  const pt_value *v = d.f(&a, d.which);
  if (!v) sc_fail(c, "%s is not modelled with these arguments", t->u.s);
  else pt_note(c, t->u.s);
  if (v && !c->failed) v = pt_typed_results(&a, v);
  return c->failed ? NULL : v;
}

const pt_value *pt_eval(sc *c, const rule_term *t) {
  if (c->failed) return NULL;
  for (size_t i = 0; i < c->n_memo; i++)
    if (c->memo[i].t == t || (t->kind == RULE_OP && rule_term_eq(c->memo[i].t, t)))
      return c->memo[i].v;
  const pt_value *v = NULL;
  char kind = 'f';
  if (++c->depth > 400) sc_fail(c, "a term too deep");
  else if (t->kind == RULE_VAR) v = pt_one(c, variable(c, t->u.i));
  else if (t->kind == RULE_OP) {
    v = call(c, t);
    if (c->failed && c->otherwise) v = pt_one(c, c->otherwise(c, t));
    if (v && !c->failed) v = sc_cut_value(c, t, v);
  } else if (t->kind == RULE_INT || t->kind == RULE_FLOAT || t->kind == RULE_BOOLEAN ||
             t->kind == RULE_NAME || t->kind == RULE_EXPR) {
    const sx x = pt_scalar(c, t, &kind);
    v = c->failed ? NULL : pt_one(c, pt_scalar_tensor(c, x, kind));
  } else sc_fail(c, "a literal where a tensor belongs");
  c->depth--;
  if (!v || c->failed) return NULL;
  if (!iso_grow(c->memo, c->cap_memo, c->n_memo + 1)) {
    c->no_memory = true;
    sc_fail(c, "out of memory");
    return NULL;
  }
  c->memo[c->n_memo++] = (sc_memo){t, v};
  return v;
}

const pt_tensor *pt_eval_tensor(sc *c, const rule_term *t) {
  const pt_value *v = pt_eval(c, t);
  if (!v) return NULL;
  if (v->several) {
    sc_fail(c, "several tensors where one belongs");
    return NULL;
  }
  return v->t[0];
}

static sx scalar_elem(sc *c, const pt_tensor *t, const sx *idx) {
  (void)c;
  (void)idx;
  return t->p[0];
}

const pt_tensor *pt_scalar_tensor(sc *c, sx x, char kind) {
  pt_tensor *t = pt_new(c, kind, scalar_elem);
  if (t) t->p[0] = x, t->wrapped = true;
  return t;
}

/* ---- sizes and literals ---- */

static sx named_size(sc *c, const char *name) {
  for (size_t i = 0; i < c->n_syms; i++) {
    if (!strchr("sa", c->sym[i].role) || strcmp(c->sym[i].name, name)) continue;
    const sx x = sc_node(c, X_SYM, &(uint32_t){(uint32_t)i}, 1);
    sx_map map[SC_MAX_GUESSES];
    for (size_t k = 0; k < c->n_bound_sizes; k++)
      map[k] = (sx_map){c->bound_size[k].from, c->bound_size[k].to};
    return c->n_bound_sizes ? sx_subst(c, x, map, c->n_bound_sizes) : x;
  }
  sc_fail(c, "the name %.60s means nothing here", name);
  return c->zero;
}

sx sc_size(sc *c, const rule_term *t) {
  if (c->failed) return c->zero;
  switch (t->kind) {
  case RULE_INT: return sx_int(c, t->u.i);
  case RULE_BOOLEAN: return sx_int(c, t->u.i);
  case RULE_FLOAT: return pt_literal(c, t->u.f);
  case RULE_NAME: return named_size(c, t->u.s);
  case RULE_EXPR: break;
  default: sc_fail(c, "a size that is none"); return c->zero;
  }
  sx r = sc_size(c, t->child[0]);
  const char *op = t->u.s;
  if (t->n == 1 && !strcmp(op, "-")) return sx_neg(c, r);
  for (uint32_t i = 1; i < t->n && !c->failed; i++) {
    const sx y = sc_size(c, t->child[i]);
    if (!strcmp(op, "+")) r = sx_add(c, r, y);
    else if (!strcmp(op, "-")) r = sx_sub(c, r, y);
    else if (!strcmp(op, "*")) r = sx_mul(c, r, y);
    else if (!strcmp(op, "/")) r = sx_mul(c, r, sx_inv(c, y));
    else if (!strcmp(op, "mod")) r = sx_mod(c, r, y);
    else sc_fail(c, "%s in a size", op);
  }
  return r;
}

typedef enum root_kind { NO_ROOT, TWO_BY_PI, ROOT, INVERSE_ROOT, INVERSE_FOURTH } root_kind;

/* The root of a whole number, or its inverse, whose double `a` is. */
static root_kind root_of(double a, int64_t *n) {
  if (a < 1e-3 || a > 1e3) return NO_ROOT;
  const double up = nearbyint(a * a), down = nearbyint(1 / (a * a)),
               fourth = nearbyint(1 / (a * a * a * a));
  if (a == 0.79788456080286541) return TWO_BY_PI;
  if (up >= 2 && a == sqrt(up)) return *n = (int64_t)up, ROOT;
  if (down >= 2 && (a == 1 / sqrt(down) || a == (double)(1 / sqrtl((long double)down))))
    return *n = (int64_t)down, INVERSE_ROOT;
  if (fourth >= 2 && a == sqrt(1 / sqrt(fourth))) return *n = (int64_t)fourth, INVERSE_FOURTH;
  return NO_ROOT;
}

/* The shortest decimal that is this double, where it has at most 15 digits. */
static bool short_decimal(sc *c, double f, uint32_t *out) {
  enum { MOST_DIGITS = 15 };
  char text[40];
  for (int digits = 1; isfinite(f) && digits <= MOST_DIGITS; digits++) {
    int64_t n = 0;
    snprintf(text, sizeof text, "%.*e", digits - 1, f);
    const double d = strtod(text, NULL);
    if (d < f || d > f) continue;
    for (const char *p = text; *p && *p != 'e'; p++)
      if (*p >= '0' && *p <= '9') n = 10 * n + (*p - '0');
    const int e = atoi(strchr(text, 'e') + 1) - (digits - 1);
    *out =
        pv_q_mul(&c->q, pv_q_int(&c->q, f < 0 ? -n : n), pv_q_pow(&c->q, pv_q_int(&c->q, 10), e));
    return true;
  }
  return false;
}

/* A float literal: exact, or read as the root or the minus infinity that it stands for (assumption
 * `literal`, proofs.md). */
sx pt_literal(sc *c, double f) {
  uint32_t decimal;
  if (f == -INFINITY) return c->neginf;
  if (c->decimals && short_decimal(c, f, &decimal)) return sx_q(c, decimal);
  if (c->read_masks && sc_mask_literal(f)) {
    c->literal = c->masks = true;
    return c->neginf;
  }
  if (!isfinite(f)) {
    sc_fail(c, "an infinite or undefined literal");
    return c->zero;
  }
  const uint32_t q = pv_q_double(&c->q, f);
  pv_q v;
  (void)pv_q_small(&c->q, q, &v); /* doubles have 53 bits */
  int64_t n = 0;
  const root_kind is = v.n < (1 << 24) && v.n > -(1 << 24) ? NO_ROOT : root_of(fabs(f), &n);
  if (is == NO_ROOT || !c->read_literals) {
    c->readable |= is != NO_ROOT;
    return sx_q(c, q);
  }
  sx r = is == TWO_BY_PI ? sc_symbol_named(c, "sqrt(2/pi)") : sx_sqrt(c, sx_int(c, n));
  if (is == INVERSE_FOURTH) r = sx_sqrt(c, r); /* attention's scale on each factor */
  if (is == INVERSE_ROOT || is == INVERSE_FOURTH) r = sx_inv(c, r);
  c->literal = true;
  return f < 0 ? sx_neg(c, r) : r;
}

sx pt_scalar(sc *c, const rule_term *t, char *kind) {
  *kind = 'f';
  sx x = c->zero;
  switch (t->kind) {
  case RULE_INT: *kind = 'i'; return sx_int(c, t->u.i);
  case RULE_BOOLEAN: *kind = 'b'; return t->u.i ? c->yes : c->no;
  case RULE_FLOAT: return pt_literal(c, t->u.f);
  case RULE_NAME:
  case RULE_EXPR:
    x = sc_size(c, t);
    *kind = sc_has(c, x, S_INT) ? 'i' : 'f';
    return x;
  default: break;
  }
  const pt_tensor *v = pt_eval_tensor(c, t);
  if (!v || v->rank || v->lead) {
    sc_fail(c, "a tensor where a number belongs");
    return x;
  }
  *kind = v->kind;
  return pt_at(c, v, NULL);
}

/* ---- arguments ---- */

const rule_term *pt_arg(pt_args *a, const char *name) {
  for (size_t i = 0; i < a->schema->n_args; i++)
    if (!strcmp(a->schema->arg[i].name, name))
      return a->t->child[i]->kind == RULE_NONE ? NULL : a->t->child[i];
  return NULL;
}
const pt_tensor *pt_arg_tensor(pt_args *a, const char *name) {
  const rule_term *t = pt_arg(a, name);
  return t ? pt_eval_tensor(a->c, t) : NULL;
}
sx pt_arg_size(pt_args *a, const char *name, int64_t if_none) {
  const rule_term *t = pt_arg(a, name);
  return t ? sc_size(a->c, t) : sx_int(a->c, if_none);
}
bool pt_arg_flag(pt_args *a, const char *name, bool if_none) {
  const rule_term *t = pt_arg(a, name);
  if (!t) return if_none;
  if (t->kind == RULE_BOOLEAN || t->kind == RULE_INT) return t->u.i != 0;
  sc_fail(a->c, "a flag that is not literal");
  return if_none;
}
bool pt_arg_is(pt_args *a, const char *name, const char *text) {
  const rule_term *t = pt_arg(a, name);
  return t && t->kind == RULE_STRING && !strcmp(t->u.s, text);
}
bool pt_arg_dtype(pt_args *a, const char *name, rule_dtype *out) {
  const rule_term *t = pt_arg(a, name);
  if (!t || t->kind != RULE_DTYPE) return false;
  *out = (rule_dtype)t->u.i;
  return true;
}
sx pt_arg_scalar(pt_args *a, const char *name, char *kind) {
  const rule_term *t = pt_arg(a, name);
  if (!t) {
    sc_fail(a->c, "%s without %s", a->schema->name, name);
    return a->c->zero;
  }
  return pt_scalar(a->c, t, kind);
}

/* An integer known by number; where it is a name, its value is asked for by cases within `low` and
 * `high`. */
static bool number_within(sc *c, sx x, int64_t low, int64_t high, int64_t *out) {
  if (sx_is_int(c, x, out)) return true;
  for (int64_t v = low; v < high && !c->failed; v++) {
    bool holds;
    if (!sc_decide(c, sx_eq(c, x, sx_int(c, v)), &holds)) return false;
    if (holds) return *out = v, true;
  }
  if (!c->failed) {
    c->undefined = true;
    sc_fail(c, "a dimension out of range");
  }
  return false;
}

bool pt_int(sc *c, sx x, int64_t *out) {
  if (sx_is_int(c, x, out)) return true;
  sc_fail(c, "a number that is not literal");
  return false;
}

bool pt_dim(sc *c, const rule_term *t, const pt_tensor *x, uint32_t extra, uint32_t *out) {
  int64_t d, r = (int64_t)x->rank + extra;
  const bool open = x->lead != 0;
  if (!open && r == 0) r = 1; /* a 0-dim tensor takes dimensions 0 and -1 */
  if (!number_within(c, sc_size(c, t), -r, open ? 0 : r, &d)) return false;
  if (d < -r || d >= (open ? 0 : r)) {
    if (!open && !c->failed) c->undefined = true;
    sc_fail(c, "a dimension out of range");
    return false;
  }
  *out = (uint32_t)(d < 0 ? d + r : d);
  return true;
}

bool pt_arg_dim(pt_args *a, const char *name, int64_t if_none, const pt_tensor *x, uint32_t *out) {
  const rule_term *t = pt_arg(a, name), n = {.kind = RULE_INT, .u.i = if_none};
  return pt_dim(a->c, t ? t : &n, x, 0, out);
}

bool pt_arg_dims(pt_args *a, const char *name, const pt_tensor *x, uint32_t *out, uint32_t *n) {
  const rule_term *t = pt_arg(a, name);
  *n = 0;
  if (!t) return false;
  const uint32_t count = t->kind == RULE_LIST ? t->n : 1;
  if (count > RULE_MAX_RANK) return false;
  for (uint32_t i = 0; i < count; i++)
    if (!pt_dim(a->c, t->kind == RULE_LIST ? t->child[i] : t, x, 0, &out[(*n)++])) return false;
  return true;
}

bool pt_arg_sizes(pt_args *a, const char *name, sx *out, uint32_t *n) {
  const rule_term *t = pt_arg(a, name);
  *n = 0;
  if (!t) return false;
  if (t->kind != RULE_LIST) {
    out[(*n)++] = sc_size(a->c, t);
    return !a->c->failed;
  }
  if (t->n > RULE_MAX_RANK) return false;
  for (uint32_t i = 0; i < t->n; i++) out[(*n)++] = sc_size(a->c, t->child[i]);
  return !a->c->failed;
}

bool pt_arg_list(pt_args *a, const char *name, const pt_tensor *const **out, size_t *n) {
  sc *c = a->c;
  const rule_term *t = pt_arg(a, name);
  if (!t) return false;
  if (t->kind == RULE_OP) {
    const pt_value *v = pt_eval(c, t);
    if (!v || !v->several) return false;
    if (!v->t) { /* as many pieces as there are: only where that is a number */
      const sx size = v->base->dim[v->dim];
      int64_t k;
      if (!sx_is_int(c, sx_div(c, sx_add(c, size, sx_sub(c, v->step, c->one)), v->step), &k) ||
          k > 64 || k < 1) {
        sc_fail(c, "a list of unknown length");
        return false;
      }
      const pt_tensor **list = sc_take(c, (size_t)k * sizeof *list);
      for (int64_t i = 0; list && i < k; i++)
        if (!(list[i] = pt_piece(c, v, (size_t)i))) return false;
      *out = list;
      *n = (size_t)k;
      return list != NULL;
    }
    *out = v->t;
    *n = v->n;
    return true;
  }
  if (t->kind != RULE_LIST) return false;
  const pt_tensor **list = sc_take(c, (t->n + 1) * sizeof *list);
  for (uint32_t i = 0; list && i < t->n; i++) {
    list[i] = t->child[i]->kind == RULE_NONE ? NULL : pt_eval_tensor(c, t->child[i]);
    if (!list[i] && t->child[i]->kind != RULE_NONE) return false;
  }
  *out = list;
  *n = t->n;
  return list != NULL;
}
