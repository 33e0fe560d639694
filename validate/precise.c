/* Both sides of a rule at one sample, in intervals (precise_int.h).
 *
 * Operators that only move numbers are run by libtorch on numbers that say where each stood; what libtorch does to integers and booleans it
 * does here too. The rest is computed element by element. */
#include "validate/precise_int.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"


#ifndef VAL_HAS_MPFR
iso_code val_precise_sides(val_engine *e, const rule *r, rule_tensor *const *bind, val_precise *out, iso_error *err) {
  (void)e, (void)r, (void)bind, (void)err;
  *out = (val_precise){.answer = VAL_PRECISE_LACKS, .index = -1};
  return ISO_OK;
}
#else

enum { LEAST_BITS = 192, MOST_BITS = 4096, MOST_WORK = 60000, MOST_DEPTH = 400, MOST_RESULTS = 64 };
static const double literal_rel = 1e-9; /* what the rounding of literals may do to a result */
static const double first_place = 0x1p40; /* numbers from here on are places: no rule has them as literals */

struct vp_done {
  const rule_term *t;
  vp_value value;
  struct vp_done *next;
};

bool vp_go(vp *v, int64_t cost) {
  const int64_t limbs = (int64_t)v->prec / LEAST_BITS + 1;
  v->work += cost * limbs;
  if (v->work > MOST_WORK) v->lacks = true;
  return !v->open && !v->lacks && !v->no_memory;
}

static void *take(vp *v, size_t n) {
  void *p = iso_arena_alloc(&v->arena, n);
  if (!p) v->no_memory = true;
  return p;
}

vp_tensor *vp_new(vp *v, rule_dtype d, const rule_shape *shape) {
  int64_t n = 1;
  iso_error local;
  if (!vp_go(v, 0)) return NULL;
  if (rule_shape_numel(shape, &n, &local) != ISO_OK || n > MOST_WORK) return v->lacks = true, NULL;
  vp_tensor *t = take(v, sizeof *t);
  if (!t) return NULL;
  *t = (vp_tensor){.dtype = d, .shape = *shape, .n = n};
  if (!rule_dtype_is_float(d)) {
    rule_tensor *plain = NULL;
    if (rule_dtype_is_complex(d)) return v->lacks = true, NULL;
    if (!iso_grow(v->owned, v->cap_owned, v->n_owned + 1) || rule_tensor_new(d, shape, &plain, &local) != ISO_OK) return v->no_memory = true, NULL;
    t->plain = v->owned[v->n_owned++] = plain;
    return t;
  }
  const size_t one = vn_limb_bytes(v);
  char *limbs = take(v, (size_t)n * one + 1);
  if (!limbs || !(t->x = take(v, (size_t)(n + 1) * sizeof *t->x))) return NULL;
  for (int64_t i = 0; i < n; i++) vn_init(v, &t->x[i], limbs + (size_t)i * one);
  return t;
}

/* ---- what a tensor of the program is, and back ---- */

static const vp_tensor *given(vp *v, rule_tensor *x) {
  vp_tensor *t = take(v, sizeof *t);
  if (!t) return NULL;
  if (rule_dtype_is_float(x->dtype)) {
    t = vp_new(v, RULE_F64, &x->shape);
    for (int64_t i = 0; t && i < t->n; i++) vn_double(v, &t->x[i], rule_tensor_get(x, i));
    return t;
  }
  if (rule_dtype_is_complex(x->dtype)) return v->lacks = true, NULL;
  if (!iso_grow(v->owned, v->cap_owned, v->n_owned + 1)) return v->no_memory = true, NULL;
  v->owned[v->n_owned++] = rule_tensor_ref(x);
  *t = (vp_tensor){.dtype = x->dtype, .shape = x->shape, .n = x->numel, .plain = x};
  return t;
}

/* Doubles near the numbers, or the places at which they stand, counted on from `*next`. */
static rule_tensor *as_doubles(vp *v, const vp_tensor *t, int64_t *next) {
  rule_tensor *x = NULL;
  iso_error local;
  if (t->plain) return rule_tensor_ref(t->plain);
  if (rule_tensor_new(RULE_F64, &t->shape, &x, &local) != ISO_OK) return v->no_memory = true, NULL;
  for (int64_t i = 0; i < t->n; i++) ((double *)x->data)[i] = next ? first_place + (double)(*next)++ : mpfr_get_d(&t->x[i].lo, MPFR_RNDN);
  return x;
}

/* ---- calls ---- */

static const vp_value *value_of(vp *v, const rule_term *t);

static const vp_tensor *tensor_of(vp *v, const rule_term *t) {
  if (t->kind == RULE_VAR) {
    for (struct vp_done *d = v->done; d; d = d->next)
      if (d->t->kind == RULE_VAR && d->t->u.i == t->u.i) return d->value.out[0];
    return NULL;
  }
  const bool projected = t->kind == RULE_OP && strcmp(t->u.s, "getitem") == 0;
  const int64_t k = projected ? t->child[1]->u.i : 0;
  const vp_value *x = t->kind == RULE_OP ? value_of(v, projected ? t->child[0] : t) : NULL;
  if (!x || k < 0 || (size_t)k >= x->n || !x->out[k]) {
    v->lacks |= x != NULL || t->kind != RULE_OP;
    return NULL;
  }
  return x->out[k];
}

/* The call's tensors, one after the other. */
typedef struct flat {
  const vp_tensor *in[64];
  size_t n;
} flat;

static const rule_term *flatten(vp *v, const rule_term *t, flat *f) {
  if (t->kind == RULE_OP || t->kind == RULE_VAR) {
    const vp_tensor *x = tensor_of(v, t);
    if (!x) return NULL;
    if (f->n == sizeof f->in / sizeof *f->in) return v->lacks = true, NULL;
    f->in[f->n] = x;
    return rule_var(&v->arena, (uint32_t)f->n++);
  }
  if (t->kind != RULE_LIST) return t;
  const rule_term **child = take(v, (t->n + 1) * sizeof *child);
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
  if (n == f->n && val_call(v->e, call, bind, VAL_FLOAT64, got, MOST_RESULTS, &n_got, &local) != ISO_OK) {
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
    if (!f->in[i]->x) continue;
    if (at < f->in[i]->n) return &f->in[i]->x[at];
    at -= f->in[i]->n;
  }
  return NULL;
}

/* A result that was run on places: each of its elements is one that was given, or a number of the call. */
static const vp_tensor *moved(vp *v, const flat *f, rule_tensor *x) {
  if (!rule_dtype_is_float(x->dtype)) return given(v, x);
  vp_tensor *t = vp_new(v, RULE_F64, &x->shape);
  for (int64_t i = 0; t && i < t->n && vp_go(v, 1); i++) {
    const double d = rule_tensor_get(x, i);
    const vn *from = d >= first_place && d < first_place + 1e9 ? placed(f, (int64_t)(d - first_place)) : NULL;
    if (from) vn_set(&t->x[i], from);
    else vn_literal(v, &t->x[i], d);
  }
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
    v->open |= to == RULE_BOOL ? c == 2 : a != b || a > (1 << 24) || a < -(1 << 24);
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

/* What writes several numbers to one place adds them up; and some paddings leave what is there. */
static bool not_by_places(vp *v, const rule_term *call) {
  const vp_call k = {.call = call, .schema = rule_schemas_find(val_engine_schemas(v->e), call->u.s)};
  const rule_term *accumulate = vp_arg(&k, "accumulate"), *reduce = vp_arg(&k, "reduce"), *mode = vp_arg(&k, "mode");
  if (mode && mode->kind == RULE_STRING && strcmp(mode->u.s, "circular") == 0) return true;
  return (accumulate && !(accumulate->kind == RULE_BOOLEAN && accumulate->u.i == 0)) || (reduce && reduce->kind != RULE_NONE);
}

static bool results(vp *v, const rule_term *call, const flat *f, const char *name, vp_value *out) {
  static const char *const casts[] = {"to", "_to_copy", "type_as"};
  if (not_by_places(v, call)) return v->lacks = true, false;
  rule_tensor *got[MOST_RESULTS];
  const bool casting = one_of(name, casts, sizeof casts / sizeof *casts), moves = !casting && val_moves_only(name);
  const size_t n = run(v, call, f, moves, got);
  out->out = n ? take(v, n * sizeof *out->out) : NULL;
  out->n = out->out ? n : 0;
  const vp_call k = {.call = call, .schema = rule_schemas_find(val_engine_schemas(v->e), call->u.s), .name = name, .in = (const vp_tensor **)(uintptr_t)f->in, .n = f->n, .got = got, .n_got = n};
  bool known = false;
  if (out->n && casting && f->n && f->in[0]->x) out->out[0] = rule_dtype_is_float(got[0]->dtype) ? f->in[0] : cast(v, f->in[0], got[0]->dtype, &got[0]->shape);
  else if (out->n && casting) out->out[0] = given(v, got[0]);
  else if (out->n && !moves && !rule_dtype_is_complex(got[0]->dtype)) out->out[0] = vp_compute(v, &k, &known);
  for (size_t i = 0; i < out->n && !casting && !known; i++) {
    /* Integers alone: what libtorch makes of them is exact, but for quotients and the like. */
    if (moves) out->out[i] = moved(v, f, got[i]);
    else if (all_plain(f) && !rule_dtype_is_float(got[i]->dtype)) out->out[i] = given(v, got[i]);
    else v->lacks = true;
  }
  for (size_t i = 0; i < n; i++) rule_tensor_unref(got[i]);
  if (out->n && !out->out[0]) v->lacks |= !v->open && !v->no_memory;
  return out->n && vp_go(v, 0);
}

static const vp_value *value_of(vp *v, const rule_term *t) {
  for (struct vp_done *d = v->done; d; d = d->next)
    if (d->t == t || rule_term_eq(d->t, t)) return &d->value;
  if (++v->depth > MOST_DEPTH) return v->lacks = true, NULL;
  flat *f = take(v, sizeof *f);
  struct vp_done *d = take(v, sizeof *d);
  const rule_term **child = take(v, (t->n + 1) * sizeof *child);
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

/* ---- both sides ---- */

static bool start(vp *v, const rule *r) {
  for (int i = 0; i < VP_TEMPS; i++) {
    void *limbs = take(v, vn_limb_bytes(v));
    if (!limbs) return false;
    vn_init(v, &v->tmp[i], limbs);
  }
  for (uint32_t i = 0; i < r->n_vars; i++) {
    struct vp_done *d = take(v, sizeof *d);
    if (!v->bind[i]) continue;
    const vp_tensor *x = d ? given(v, v->bind[i]) : NULL;
    const vp_tensor **out = x ? take(v, sizeof *out) : NULL;
    if (!out) return false;
    out[0] = x;
    *d = (struct vp_done){rule_var(&v->arena, i), {1, out}, v->done};
    if (!d->t) return v->no_memory = true, false;
    v->done = d;
  }
  return true;
}

static void stop(vp *v) {
  for (size_t i = 0; i < v->n_owned; i++) rule_tensor_unref(v->owned[i]);
  free(v->owned);
  iso_arena_fini(&v->arena);
}

/* Whether two intervals are so narrow that nothing which was met could hide in them. */
static bool narrow(const vp *v, const vn *a, const vn *b) {
  enum { MARGIN = 20 };
  mpfr_t w;
  mpfr_init2(w, 32);
  bool yes = true;
  for (int k = 0; k < 2 && yes; k++) {
    const vn *x = k ? b : a;
    if (mpfr_equal_p(&x->lo, &x->hi)) continue;
    mpfr_sub(w, &x->hi, &x->lo, MPFR_RNDU);
    yes = mpfr_number_p(w) && v->any && mpfr_get_exp(w) < v->low - MARGIN;
  }
  mpfr_clear(w);
  return yes;
}

static void note_apart(val_precise *out, int64_t i, const vn *a, const vn *b) {
  const double x = mpfr_get_d(&a->lo, MPFR_RNDN), y = mpfr_get_d(&b->lo, MPFR_RNDN), size = fmax(fabs(x), fabs(y));
  mpfr_t w;
  mpfr_init2(w, 64);
  mpfr_sub(w, &a->lo, &b->lo, MPFR_RNDN);
  const double d = fabs(mpfr_get_d(w, MPFR_RNDN)), rel = size > 0 && isfinite(d) ? d / size : 1;
  mpfr_clear(w);
  if (out->answer == VAL_PRECISE_APART && rel <= out->rel) return;
  out->answer = VAL_PRECISE_APART;
  out->index = i;
  out->abs = d;
  out->rel = rel;
}

static void compare(const vp *v, const vp_tensor *a, const vp_tensor *b, val_precise *out, bool *wide) {
  out->answer = VAL_PRECISE_SAME;
  for (int64_t i = 0; i < a->n; i++) {
    if (!a->x) {
      if (rule_tensor_get_int(a->plain, i) != rule_tensor_get_int(b->plain, i)) *out = (val_precise){VAL_PRECISE_APART, i, 1, 1, false};
      continue;
    }
    const int c = vn_compare(&a->x[i], &b->x[i]);
    if (c == 1 || c == -1) note_apart(out, i, &a->x[i], &b->x[i]);
    else if (c == 2) *wide |= !narrow(v, &a->x[i], &b->x[i]);
  }
}

/* One evaluation. `more`: the bits that it takes for an answer, where these are too few. */
static iso_code once(val_engine *e, const rule *r, rule_tensor *const *bind, long bits, vp_reading reading, val_precise *out, long *more, iso_error *err) {
  vp v = {.e = e, .bind = bind, .prec = bits, .reading = reading};
  bool wide = false;
  const vp_tensor *a = start(&v, r) ? tensor_of(&v, r->lhs) : NULL, *b = a ? tensor_of(&v, r->rhs) : NULL;
  *more = 0;
  out->answer = v.lacks ? VAL_PRECISE_LACKS : VAL_PRECISE_OPEN;
  out->index = -1;
  if (a && b && vp_go(&v, 0)) {
    if (!rule_shape_eq(&a->shape, &b->shape) || (a->x == NULL) != (b->x == NULL)) out->answer = VAL_PRECISE_LACKS;
    else compare(&v, a, b, out, &wide);
  }
  const long range = v.any ? v.high - v.low : 0;
  if (out->answer == VAL_PRECISE_SAME && (wide || bits < 2 * range + 64)) {
    out->answer = VAL_PRECISE_OPEN;
    *more = wide && bits >= 2 * range + 64 ? 2 * bits : 2 * range + 128;
  } else if (out->answer == VAL_PRECISE_OPEN && !v.lacks) {
    *more = 2 * bits;
  }
  const bool no_memory = v.no_memory;
  stop(&v);
  return no_memory ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
}

static iso_code at_reading(val_engine *e, const rule *r, rule_tensor *const *bind, vp_reading reading, val_precise *out, iso_error *err) {
  enum { ROUNDS = 4 };
  long bits = LEAST_BITS, more = 0;
  iso_code c = ISO_OK;
  for (int i = 0; i < ROUNDS && !c; i++) {
    c = once(e, r, bind, bits, reading, out, &more, err);
    if (out->answer != VAL_PRECISE_OPEN || more <= bits || bits == MOST_BITS) break;
    bits = more < MOST_BITS ? more : MOST_BITS;
  }
  mpfr_free_cache();
  return c;
}

static bool has_literal(const rule_term *t, double d) {
  if (t->kind == RULE_FLOAT) return !(t->u.f < d) && !(t->u.f > d);
  for (uint32_t i = 0; i < t->n; i++)
    if (has_literal(t->child[i], d)) return true;
  return false;
}
/* Every decimal of many digits in `a` is one of `b`. */
static bool same_literals(const rule_term *a, const rule_term *b) {
  if (a->kind == RULE_FLOAT) return !vn_long_decimal(a->u.f) || has_literal(b, a->u.f);
  for (uint32_t i = 0; i < a->n; i++)
    if (!same_literals(a->child[i], b)) return false;
  return true;
}

iso_code val_precise_sides(val_engine *e, const rule *r, rule_tensor *const *bind, val_precise *out, iso_error *err) {
  *out = (val_precise){.answer = VAL_PRECISE_LACKS, .index = -1};
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (bind[i] && (rule_dtype_is_complex(bind[i]->dtype) || bind[i]->numel > MOST_WORK)) return ISO_OK;
  iso_code c = at_reading(e, r, bind, VP_DOUBLES, out, err);
  /* A literal may stand for its decimal, or for a number of which it has the first digits: what differs by that alone is no difference. */
  if (c || out->answer != VAL_PRECISE_APART) return c;
  const bool far = out->rel > literal_rel;
  val_precise other;
  c = at_reading(e, r, bind, VP_DECIMALS, &other, err);
  if (!c && other.answer != VAL_PRECISE_SAME) {
    c = at_reading(e, r, bind, VP_WIDE, &other, err);
    if (!c && other.answer != VAL_PRECISE_APART) other.by_literals = !(same_literals(r->lhs, r->rhs) && same_literals(r->rhs, r->lhs));
    if (!c && other.answer != VAL_PRECISE_APART) other.answer = other.by_literals ? VAL_PRECISE_SAME : VAL_PRECISE_OPEN;
  }
  /* A decimal's last digits that decide everything are no reading of it: as the doubles that they are, they differ. */
  if (!c && other.answer != VAL_PRECISE_APART && far) other.answer = VAL_PRECISE_OPEN;
  if (!c && other.answer != VAL_PRECISE_APART) *out = other;
  return c;
}
#endif
