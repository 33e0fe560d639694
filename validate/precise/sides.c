/* Whether two sides are one tensor of real numbers at a sample: a rule's, or the outputs of two
 * programs (precise_int.h). */
#include "validate/precise/precise_int.h"

#include <math.h>
#include <string.h>

#ifndef VAL_HAS_MPFR
iso_code val_precise_sides(val_engine *e, const rule *r, rule_tensor *const *bind, val_precise *out,
                           iso_error *err) {
  (void)e, (void)r, (void)bind, (void)err;
  *out = (val_precise){.answer = VAL_PRECISE_LACKS, .index = -1};
  return ISO_OK;
}

iso_code val_precise_programs(val_engine *e, const rule_program side[2], val_precise *out,
                              iso_error *err) {
  (void)e, (void)side, (void)err;
  *out = (val_precise){.answer = VAL_PRECISE_LACKS, .index = -1};
  return ISO_OK;
}
#else

static const double literal_rel = 1e-9; /* what the rounding of literals may do to a result */

/* Either a rule and its variables' values, or two programs. */
typedef struct question {
  const rule *r;
  rule_tensor *const *bind;
  const rule_program *side;
  gmp_memory *memory;
} question;

/* ---- the sides' values ---- */

static const vp_value *one_value(vp *v, const vp_tensor *x) {
  vp_value *one = x ? vp_take(v, sizeof *one) : NULL;
  const vp_tensor **out = one ? vp_take(v, sizeof *out) : NULL;
  if (!out) return NULL;
  out[0] = x;
  *one = (vp_value){1, out};
  return one;
}

static bool give_variables(vp *v, const question *q) {
  v->n_var = q->r->n_vars;
  if (!(v->var = vp_take(v, (v->n_var + 1) * sizeof *v->var))) return false;
  for (uint32_t i = 0; i < q->r->n_vars; i++)
    if (q->bind[i] && !(v->var[i] = one_value(v, vp_given(v, q->bind[i])))) return false;
  return true;
}

static void mark(const rule_term *t, bool *needed) {
  if (t->kind == RULE_VAR) needed[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark(t->child[i], needed);
}

static const vp_value *value_of_step(vp *v, const rule_step *s) {
  if (!s->call) return s->value ? one_value(v, vp_given(v, s->value)) : NULL;
  if (strcmp(s->call->u.s, "getitem") == 0) return one_value(v, vp_tensor_of(v, s->call));
  return vp_value_of(v, s->call);
}

/* The output of a program, step by step. */
static const vp_tensor *run_program(vp *v, const rule_program *p) {
  bool *needed = vp_take(v, p->n + 1);
  v->n_var = p->n;
  v->done = NULL; /* its variables are others */
  if (!needed || !(v->var = vp_take(v, (p->n + 1) * sizeof *v->var))) return NULL;
  needed[p->output] = true;
  for (size_t i = p->output + 1; i-- > 0;)
    if (needed[i] && p->step[i].call) mark(p->step[i].call, needed);
  for (size_t i = 0; i <= p->output; i++) {
    if (!needed[i]) continue;
    if (!(v->var[i] = value_of_step(v, &p->step[i]))) return NULL;
  }
  const vp_value *x = v->var[p->output];
  return x->n ? x->out[0] : NULL;
}

static bool both_sides(vp *v, const question *q, const vp_tensor *x[2]) {
  if (!vp_start(v) || (q->r && !give_variables(v, q))) return false;
  for (int side = 0; side < 2; side++) {
    x[side] = q->r ? vp_tensor_of(v, side ? q->r->rhs : q->r->lhs) : run_program(v, &q->side[side]);
    if (!x[side]) return false;
  }
  return vp_go(v, 0);
}

/* ---- comparing ---- */

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
  const double x = mpfr_get_d(&a->lo, MPFR_RNDN), y = mpfr_get_d(&b->lo, MPFR_RNDN),
               size = fmax(fabs(x), fabs(y));
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

static void compare(const vp *v, const vp_tensor *a, const vp_tensor *b, val_precise *out,
                    bool *wide) {
  out->answer = VAL_PRECISE_SAME;
  const int64_t n = rule_dtype_is_complex(a->dtype) ? 2 * a->n : a->n;
  for (int64_t i = 0; i < n; i++) {
    if (!a->x) {
      if (rule_tensor_get_int(a->plain, i) != rule_tensor_get_int(b->plain, i))
        *out = (val_precise){.answer = VAL_PRECISE_APART, .index = i, .abs = 1, .rel = 1};
      continue;
    }
    const int c = vn_compare(&a->x[i], &b->x[i]);
    if (c == 1 || c == -1) note_apart(out, i, &a->x[i], &b->x[i]);
    else if (c == 2) *wide |= !narrow(v, &a->x[i], &b->x[i]);
  }
}

static double magnitude(const vn *a) {
  return fmax(fabs(mpfr_get_d(&a->lo, MPFR_RNDA)), fabs(mpfr_get_d(&a->hi, MPFR_RNDA)));
}

/* How far apart two intervals may be. */
static double farthest(const vn *a, const vn *b) {
  mpfr_t w;
  mpfr_init2(w, 64);
  mpfr_sub(w, &a->hi, &b->lo, MPFR_RNDU);
  double d = mpfr_get_d(w, MPFR_RNDU);
  mpfr_sub(w, &b->hi, &a->lo, MPFR_RNDU);
  d = fmax(d, mpfr_get_d(w, MPFR_RNDU));
  mpfr_clear(w);
  return isnan(d) ? (double)INFINITY : d;
}

/* Whether float64 would have shown no difference, had it lost nothing on the way. Numbers beyond
 * 1e30 are masks, or large: they say nothing of their row. Near an infinity there is nothing. */
static bool close_by(const vp_tensor *a, const vp_tensor *b) {
  const int64_t n = rule_dtype_is_complex(a->dtype) ? 2 * a->n : a->n;
  const int64_t row = a->shape.rank ? n / (a->n / a->shape.dim[a->shape.rank - 1]) : n;
  for (int64_t from = 0; from < n; from += row) {
    double size = 0;
    for (int64_t i = from; i < from + row; i++)
      if (magnitude(&a->x[i]) < 1e30) size = fmax(size, magnitude(&a->x[i]));
    for (int64_t i = from; i < from + row; i++) {
      const double own = magnitude(&a->x[i]);
      if (isinf(own) && vn_compare(&a->x[i], &b->x[i]) != 0) return false;
      if (isfinite(own) && !(farthest(&a->x[i], &b->x[i]) <= 0x1p-36 * (own < 1e30 ? size : own)))
        return false;
    }
  }
  return true;
}

/* Bits for an answer. */
typedef struct bits_for {
  long wanted;     /* 0: no more than there were */
  long affordable; /* that the bound on operations leaves room for */
} bits_for;

/* An evaluation of `bits` costs in proportion to their limbs. */
static long affordable(const vp *v, long bits) {
  const int64_t limbs = bits / VP_LEAST_BITS + 1, work = v->work > limbs ? v->work / limbs : 1;
  const int64_t most = VP_MOST_WORK / (work + 1) * VP_LEAST_BITS - 1;
  return most < VP_MOST_BITS ? (long)most : VP_MOST_BITS;
}

/* One evaluation. A number below all that have an exponent is 0 and no more: two such are not the
 * same. */
static iso_code once(val_engine *e, const question *q, long bits, vp_reading reading,
                     val_precise *out, bits_for *more, iso_error *err) {
  vp v = {.e = e, .memory = q->memory, .prec = bits, .reading = reading};
  bool wide = false;
  const vp_tensor *x[2] = {NULL, NULL};
  const bool have = both_sides(&v, q, x), underflow = mpfr_underflow_p() != 0;
  *more = (bits_for){0};
  out->lost = false;
  out->jump = v.jump;
  out->answer = v.lacks ? VAL_PRECISE_LACKS : VAL_PRECISE_OPEN;
  out->index = -1;
  if (have) {
    const bool alike = rule_shape_eq(&x[0]->shape, &x[1]->shape) && !x[0]->x == !x[1]->x &&
                       rule_dtype_is_complex(x[0]->dtype) == rule_dtype_is_complex(x[1]->dtype);
    if (alike) compare(&v, x[0], x[1], out, &wide);
    if (alike) out->close |= x[0]->x && x[0]->n > 0 && close_by(x[0], x[1]);
    else out->answer = VAL_PRECISE_LACKS;
  }
  const long range = v.any ? v.high - v.low : 0;
  if (out->answer == VAL_PRECISE_SAME && (wide || underflow || bits < 2 * range + 64)) {
    out->answer = VAL_PRECISE_OPEN;
    out->lost = wide && range > bits;
    more->wanted = wide && bits >= 2 * range + 64 ? 2 * bits : 2 * range + 128;
  } else if (out->answer == VAL_PRECISE_OPEN && !v.lacks) {
    more->wanted = 2 * bits;
  }
  more->affordable = affordable(&v, bits);
  const bool no_memory = v.no_memory || q->memory->needed;
  vp_end(&v);
  return no_memory ? iso_fail(err, ISO_NOMEM, "out of memory") : ISO_OK;
}

static iso_code at_reading(val_engine *e, const question *q, vp_reading reading, val_precise *out,
                           iso_error *err) {
  enum { ROUNDS = 4 };
  long bits = VP_LEAST_BITS;
  bits_for more = {0};
  bool dear = false;
  iso_code c = ISO_OK;
  for (int i = 0; i < ROUNDS && !c; i++) {
    c = once(e, q, bits, reading, out, &more, err);
    long next = more.wanted < VP_MOST_BITS ? more.wanted : VP_MOST_BITS;
    if (out->answer != VAL_PRECISE_OPEN || next <= bits) break;
    dear = next > more.affordable;
    if (dear) next = more.affordable;
    if (next <= bits) break;
    bits = next;
  }
  /* As many digits as there is room for may still show that the sides are close. */
  if (dear && out->answer == VAL_PRECISE_OPEN) out->answer = VAL_PRECISE_LACKS;
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

static bool by_literals(const question *q) {
  return !q->r || !same_literals(q->r->lhs, q->r->rhs) || !same_literals(q->r->rhs, q->r->lhs);
}

/* A literal may stand for its decimal, or for a number of which it has the first digits: a
 * difference by that alone is none. */
static iso_code answer(val_engine *e, const question *q, val_precise *out, iso_error *err) {
  iso_code c = at_reading(e, q, VP_DOUBLES, out, err);
  if (c || out->answer != VAL_PRECISE_APART) return c;
  const bool far = out->rel > literal_rel;
  val_precise other = {.answer = VAL_PRECISE_LACKS, .index = -1};
  c = at_reading(e, q, VP_DECIMALS, &other, err);
  if (!c && other.answer != VAL_PRECISE_SAME) {
    c = at_reading(e, q, VP_WIDE, &other, err);
    if (c || other.answer == VAL_PRECISE_APART) return c;
    other.by_literals = by_literals(q);
    other.answer = other.by_literals ? VAL_PRECISE_SAME : VAL_PRECISE_OPEN;
  }
  /* A decimal's last digits that decide everything are no reading of it: as the doubles that they
   * are, they differ. */
  if (!c && far) other.answer = VAL_PRECISE_OPEN;
  other.close = out->close;
  other.lost = false;
  if (!c) *out = other;
  return c;
}

static iso_code with_memory(val_engine *e, question *q, val_precise *out, iso_error *err) {
  gmp_memory memory;
  if (!gmp_memory_begin(&memory)) return iso_fail(err, ISO_NOMEM, "out of memory");
  q->memory = &memory;
  const iso_code c = answer(e, q, out, err);
  mpfr_free_cache(); /* some of it may lie in the reserve */
  gmp_memory_end(&memory);
  return c;
}

iso_code val_precise_sides(val_engine *e, const rule *r, rule_tensor *const *bind, val_precise *out,
                           iso_error *err) {
  *out = (val_precise){.answer = VAL_PRECISE_LACKS, .index = -1};
  for (uint32_t i = 0; i < r->n_vars; i++)
    if (bind[i] && bind[i]->numel > VP_MOST_WORK) return ISO_OK;
  return with_memory(e, &(question){.r = r, .bind = bind}, out, err);
}

iso_code val_precise_programs(val_engine *e, const rule_program side[2], val_precise *out,
                              iso_error *err) {
  int64_t elements = 0;
  *out = (val_precise){.answer = VAL_PRECISE_LACKS, .index = -1};
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < side[k].n; i++)
      if (!side[k].step[i].call && side[k].step[i].value) elements += side[k].step[i].value->numel;
  if (elements > VP_MOST_WORK) return ISO_OK;
  return with_memory(e, &(question){.side = side}, out, err);
}
#endif
