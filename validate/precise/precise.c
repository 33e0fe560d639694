/* Terms at one sample, in intervals (precise_int.h).
 *
 * Operators that only move numbers are run by libtorch on the elements' places; calls on integers
 * and booleans are run by libtorch, too. The rest is computed element by element. */
#include "validate/precise/precise_int.h"
#include "rules/operators.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

#ifdef VAL_HAS_MPFR

enum { MOST_DEPTH = 400, MOST_RESULTS = 64 };
static const double first_place =
    0x1p40; /* numbers from here on are places: no rule has them as literals */

struct vp_done {
  const rule_term *t;
  vp_value value;
  struct vp_done *next;
};

bool vp_go(vp *v, int64_t cost) {
  const int64_t limbs = (int64_t)v->prec / VP_LEAST_BITS + 1;
  v->work += cost * limbs;
  if (v->work > VP_MOST_WORK) v->lacks = true;
  v->no_memory |= v->memory->needed;
  return !v->open && !v->lacks && !v->no_memory;
}

void vp_at_jump(vp *v) {
  v->jump |= !v->open;
  v->open = true;
}

void *vp_take(vp *v, size_t n) {
  void *p = iso_arena_alloc(&v->arena, n);
  if (!p) v->no_memory = true;
  return p;
}

vp_tensor *vp_new(vp *v, rule_dtype d, const rule_shape *shape) {
  int64_t n = 1;
  iso_error local;
  if (!vp_go(v, 0)) return NULL;
  if (rule_shape_numel(shape, &n, &local) != ISO_OK || n > VP_MOST_WORK)
    return v->lacks = true, NULL;
  vp_tensor *t = vp_take(v, sizeof *t);
  if (!t) return NULL;
  *t = (vp_tensor){.dtype = d, .shape = *shape, .n = n};
  if (!rule_dtype_is_float(d) && !rule_dtype_is_complex(d)) {
    rule_tensor *plain = NULL;
    if (!iso_grow(v->owned, v->cap_owned, v->n_owned + 1) ||
        rule_tensor_new(d, shape, &plain, &local) != ISO_OK)
      return v->no_memory = true, NULL;
    t->plain = v->owned[v->n_owned++] = plain;
    return t;
  }
  const size_t one = vn_limb_bytes(v);
  if (rule_dtype_is_complex(d)) n *= 2;
  char *limbs = vp_take(v, (size_t)n * one + 1);
  if (!limbs || !(t->x = vp_take(v, (size_t)(n + 1) * sizeof *t->x))) return NULL;
  for (int64_t i = 0; i < n; i++) vn_init(v, &t->x[i], limbs + (size_t)i * one);
  return t;
}

/* ---- tensors of the program, and back ---- */

const vp_tensor *vp_given(vp *v, rule_tensor *x) {
  vp_tensor *t = vp_take(v, sizeof *t);
  if (!t) return NULL;
  if (rule_dtype_is_float(x->dtype)) {
    t = vp_new(v, RULE_F64, &x->shape);
    for (int64_t i = 0; t && i < t->n; i++) vn_double(v, &t->x[i], rule_tensor_get(x, i));
    return t;
  }
  if (rule_dtype_is_complex(x->dtype)) {
    if (x->dtype != RULE_C128) return v->lacks = true, NULL;
    t = vp_new(v, RULE_C128, &x->shape);
    for (int64_t i = 0; t && i < 2 * t->n; i++) vn_double(v, &t->x[i], ((double *)x->data)[i]);
    return t;
  }
  if (!iso_grow(v->owned, v->cap_owned, v->n_owned + 1)) return v->no_memory = true, NULL;
  v->owned[v->n_owned++] = rule_tensor_ref(x);
  *t = (vp_tensor){.dtype = x->dtype, .shape = x->shape, .n = x->numel, .plain = x};
  return t;
}

/* How many numbers stand in it. */
static int64_t numbers(const vp_tensor *t) {
  return !t->x ? 0 : rule_dtype_is_complex(t->dtype) ? 2 * t->n : t->n;
}

/* Doubles near the numbers, or the places at which they stand, counted on from `*next`. */
static rule_tensor *as_doubles(vp *v, const vp_tensor *t, int64_t *next) {
  rule_tensor *x = NULL;
  iso_error local;
  if (t->plain) return rule_tensor_ref(t->plain);
  const rule_dtype d = rule_dtype_is_complex(t->dtype) ? RULE_C128 : RULE_F64;
  if (rule_tensor_new(d, &t->shape, &x, &local) != ISO_OK) return v->no_memory = true, NULL;
  for (int64_t i = 0; i < numbers(t); i++)
    ((double *)x->data)[i] =
        next ? first_place + (double)(*next)++ : mpfr_get_d(&t->x[i].lo, MPFR_RNDN);
  return x;
}

/* ---- calls ---- */

const vp_tensor *vp_tensor_of(vp *v, const rule_term *t) {
  const bool projected = t->kind == RULE_OP && rule_is_getitem(t->u.s);
  const rule_term *of = projected ? t->child[0] : t;
  const int64_t k = projected ? t->child[1]->u.i : 0;
  const vp_value *x = NULL;
  if (of->kind == RULE_VAR && (size_t)of->u.i < v->n_var) x = v->var[of->u.i];
  else if (of->kind == RULE_OP) x = vp_value_of(v, of);
  if (x && k >= 0 && (size_t)k < x->n && x->out[k]) return x->out[k];
  v->lacks |= x != NULL || of->kind != RULE_OP;
  return NULL;
}

/* The call's tensors, one after the other. */
typedef struct flat {
  const vp_tensor *in[64];
  size_t n;
} flat;

static const rule_term *flatten(vp *v, const rule_term *t, flat *f) {
  if (t->kind == RULE_OP || t->kind == RULE_VAR) {
    const vp_tensor *x = vp_tensor_of(v, t);
    if (!x) return NULL;
    if (f->n == sizeof f->in / sizeof *f->in) return v->lacks = true, NULL;
    f->in[f->n] = x;
    return rule_var(&v->arena, (uint32_t)f->n++);
  }
  if (t->kind != RULE_LIST) return t;
  const rule_term **child = vp_take(v, (t->n + 1) * sizeof *child);
  for (uint32_t i = 0; child && i < t->n; i++)
    if (!(child[i] = flatten(v, t->child[i], f))) return NULL;
  return child ? rule_list(&v->arena, child, t->n) : NULL;
}

/* libtorch's results, of doubles or of places. Returns: how many; 0: it refuses. */
static size_t run(vp *v, const rule_term *call, const flat *f, bool places, rule_tensor **got) {
  rule_tensor *bind[64];
  int64_t next = 0;
  size_t n = 0, n_got = 0;
  iso_error local = {0};
  for (; n < f->n; n++)
    if (!(bind[n] = as_doubles(v, f->in[n], places ? &next : NULL))) break;
  if (n == f->n &&
      val_call(v->e, call, bind, VAL_FLOAT64, got, MOST_RESULTS, &n_got, &local) != ISO_OK) {
    n_got = 0;
    if (local.code == ISO_NOMEM) v->no_memory = true;
    else v->lacks = true;
  }
  for (size_t i = 0; i < n; i++) rule_tensor_unref(bind[i]);
  return n_got;
}

/* The number whose place is `at`. */
static const vn *placed(const flat *f, int64_t at) {
  for (size_t i = 0; i < f->n; i++) {
    if (at < numbers(f->in[i])) return &f->in[i]->x[at];
    at -= numbers(f->in[i]);
  }
  return NULL;
}

/* A number of a result that was run on places: one that was given, its negative (conjugates have
 * such), or a number of the call. */
static void moved_number(vp *v, const flat *f, double d, vn *out) {
  const double at = fabs(d) - first_place;
  const vn *from = at >= 0 && at < 1e9 ? placed(f, (int64_t)at) : NULL;
  if (!from) {
    vn_literal(v, out, d);
    return;
  }
  vn_set(out, from);
  if (d < 0) vn_unary_find("neg", &(int){0})(v, out, from);
}

static const vp_tensor *moved(vp *v, const flat *f, rule_tensor *x) {
  const bool complex = rule_dtype_is_complex(x->dtype);
  if (!rule_dtype_is_float(x->dtype) && !complex) return vp_given(v, x);
  vp_tensor *t = vp_new(v, complex ? RULE_C128 : RULE_F64, &x->shape);
  for (int64_t i = 0; t && i < numbers(t) && vp_go(v, 1); i++)
    moved_number(v, f, complex ? ((double *)x->data)[i] : rule_tensor_get(x, i), &t->x[i]);
  return t;
}

/* Numbers as integers or booleans: where they are settled. */
static const vp_tensor *cast(vp *v, const vp_tensor *from, rule_dtype to, const rule_shape *shape) {
  vp_tensor *t = vp_new(v, to, shape);
  const vp_tensor *zero = vp_new(v, RULE_F64, &(rule_shape){0});
  for (int64_t i = 0; t && zero && i < t->n && vp_go(v, 1); i++) {
    const vn *x = &from->x[i];
    const int c = vn_compare(x, zero->x);
    const intmax_t a = mpfr_get_sj(&x->lo, MPFR_RNDZ), b = mpfr_get_sj(&x->hi, MPFR_RNDZ);
    if (to == RULE_BOOL ? c == 2 : a != b) vp_at_jump(v);
    v->open |= to != RULE_BOOL && (a > (1 << 24) || a < -(1 << 24));
    rule_tensor_set(t->plain, i, to == RULE_BOOL ? c != 0 : (double)a);
  }
  return t;
}

static bool all_plain(const flat *f) {
  for (size_t i = 0; i < f->n; i++)
    if (f->in[i]->x) return false;
  return true;
}

static bool one_of(const char *name, const char *const *list, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], name) == 0) return true;
  return false;
}

/* Several numbers written to one place are added up; some paddings keep the elements there. */
static bool not_by_places(vp *v, const rule_term *call) {
  const vp_call k = {.call = call,
                     .schema = rule_schemas_find(val_engine_schemas(v->e), call->u.s)};
  const rule_term *accumulate = vp_arg(&k, "accumulate"), *reduce = vp_arg(&k, "reduce"),
                  *mode = vp_arg(&k, "mode");
  if (mode && mode->kind == RULE_STRING && strcmp(mode->u.s, "circular") == 0) return true;
  return (accumulate && !(accumulate->kind == RULE_BOOLEAN && accumulate->u.i == 0)) ||
         (reduce && reduce->kind != RULE_NONE);
}

/* Parts of complex numbers are moved too, and turned round. */
static bool moves_numbers(const rule_operator *o, const char *name) {
  /* operator: of the parts of complex numbers, which only a computation by places tells apart */
  static const char *const parts[] = {"view_as_real", "view_as_complex", "complex",
                                      "conj",         "conj_physical",   "resolve_conj",
                                      "resolve_neg",  "masked_scatter"};
  return o->moves || one_of(name, parts, sizeof parts / sizeof *parts);
}

/* Floating casts are identities: it is about real numbers. */
static const vp_tensor *cast_result(vp *v, const flat *f, rule_tensor *got) {
  const vp_tensor *x = f->n ? f->in[0] : NULL;
  if (!x || !x->x) return vp_given(v, got);
  if (rule_dtype_is_complex(x->dtype) || rule_dtype_is_complex(got->dtype))
    return x->dtype == got->dtype ? x : NULL;
  return rule_dtype_is_float(got->dtype) ? x : cast(v, x, got->dtype, &got->shape);
}

/* A call that is no cast and moves nothing: computed here; or by the prover's definition of it;
 * integers alone by libtorch, whose are exact but for quotients and the like. */
static void compute(vp *v, const vp_call *k, const flat *f, const vp_tensor **out) {
  bool known = false;
  if (vp_by_ranks(v, k, out) || !vp_go(v, 0)) return;
  if (k->n_got == 1 || strcmp(k->name, "max") == 0 || strcmp(k->name, "min") == 0)
    out[0] = vp_compute(v, k, &known);
  if (known && out[0] && k->n_got == 1) return;
  if (!all_plain(f) || (known && !out[0])) {
    const vp_tensor *first = out[0];
    if (!vp_by_definition(v, k, out)) out[0] = first;
    return;
  }
  for (size_t i = 0; i < k->n_got && !known; i++)
    if (!rule_dtype_is_float(k->got[i]->dtype)) out[i] = vp_given(v, k->got[i]);
  if (!out[0] || rule_dtype_is_float(k->got[0]->dtype)) vp_by_definition(v, k, out);
}

static bool results(vp *v, const rule_term *call, const flat *f, const char *name, vp_value *out) {
  rule_tensor *got[MOST_RESULTS];
  const rule_operator *o = rule_operator_of(call->u.s);
  const bool moves = moves_numbers(o, name) && !not_by_places(v, call);
  const size_t n = run(v, call, f, moves, got);
  out->out = n ? vp_take(v, n * sizeof *out->out) : NULL;
  out->n = out->out ? n : 0;
  const vp_call k = {.call = call,
                     .schema = rule_schemas_find(val_engine_schemas(v->e), call->u.s),
                     .name = name,
                     .in = (const vp_tensor **)(uintptr_t)f->in,
                     .n = f->n,
                     .got = got,
                     .n_got = n};
  for (size_t i = 0; i < out->n && moves; i++) out->out[i] = moved(v, f, got[i]);
  if (out->n && !moves && o->cast) out->out[0] = cast_result(v, f, got[0]);
  else if (out->n && !moves) compute(v, &k, f, out->out);
  for (size_t i = 0; i < n; i++) rule_tensor_unref(got[i]);
  if (out->n && !out->out[0]) v->lacks |= !v->open && !v->no_memory;
  return out->n && vp_go(v, 0);
}

const vp_value *vp_value_of(vp *v, const rule_term *t) {
  for (struct vp_done *d = v->done; d; d = d->next)
    if (d->t == t || rule_term_eq(d->t, t)) return &d->value;
  if (++v->depth > MOST_DEPTH) return v->lacks = true, NULL;
  flat *f = vp_take(v, sizeof *f);
  struct vp_done *d = vp_take(v, sizeof *d);
  const rule_term **child = vp_take(v, (t->n + 1) * sizeof *child);
  if (!f || !d || !child) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = flatten(v, t->child[i], f))) return NULL;
  const rule_term *call = rule_op(&v->arena, t->u.s, child, t->n);
  char name[64];
  if (!call) return v->no_memory = true, NULL;
  if (!results(v, call, f, val_base_name(t->u.s, name), &d->value)) return NULL;
  d->t = t;
  d->next = v->done;
  v->done = d;
  v->depth--;
  return &d->value;
}

bool vp_start(vp *v) {
  mpfr_clear_underflow();
  for (int i = 0; i < VP_TEMPS; i++) {
    void *limbs = vp_take(v, vn_limb_bytes(v));
    if (!limbs) return false;
    vn_init(v, &v->tmp[i], limbs);
  }
  return true;
}

void vp_end(vp *v) {
  for (size_t i = 0; i < v->n_owned; i++) rule_tensor_unref(v->owned[i]);
  free(v->owned);
  iso_arena_fini(&v->arena);
}
#endif
