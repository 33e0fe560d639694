/* The ladder for one candidate: pre-check, refute on samples, prove, test (architecture.md, section 3).
 *
 * A sample counts where both sides ran and rounding leaves something to see; a difference just above rounding must
 * show on a second sample before it refutes. What fails to run on a sample says nothing. */
#include "egraph/base/hash.h"
#include "validate/engine_int.h"
#include "validate/sample_int.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_SAMPLES = VAL_KINDS, PROVED_SAMPLES = VAL_KINDS, LEAST_SAMPLES = 8, MAX_VARS = 64 };

typedef struct tally {
  uint32_t good, failed, blind, soft;
  double max_rel;
  char last_error[200];
} tally;

static double largest(const rule_tensor *t) {
  double m = 0;
  if (t->dtype == RULE_F64) {
    const double *x = t->data;
    for (int64_t i = 0; i < t->numel; i++)
      if (fabs(x[i]) > m && fabs(x[i]) < 1e30) m = fabs(x[i]);
    return m;
  }
  for (int64_t i = 0; i < t->numel; i++) {
    const double v = fabs(rule_tensor_get(t, i));
    if (v > m && v < 1e30) m = v;
  }
  return m;
}

static bool any_nan(const rule_tensor *t) {
  if (!rule_dtype_is_float(t->dtype)) return false;
  for (int64_t i = 0; i < t->numel; i++)
    if (isnan(rule_tensor_get(t, i))) return true;
  return false;
}

/* What masks hide is compared by place when values propose candidates; a rule must hold for it as a number: -3.4e38 is not
 * minus infinity (a row that is masked wholly tells them apart). */
static bool huge_differ(const rule_tensor *a, const rule_tensor *b) {
  if (!rule_dtype_is_float(a->dtype)) return false;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (!(fabs(x) > 1e30 || fabs(y) > 1e30) || x == y) continue;
    if (isinf(x) || isinf(y) || !(fabs(x - y) <= 1e-9 * fabs(x))) return true;
  }
  return false;
}

/* Per element: one large element must not hide what its neighbours show. */
static double element_rel(const rule_tensor *a, const rule_tensor *b, double floor) {
  double worst = 0;
  if (!rule_dtype_is_float(a->dtype)) return 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i), d = fabs(x - y);
    if (!(d > floor) || !(fabs(x) < 1e30) || !(fabs(y) < 1e30)) continue;
    const double rel = d / fmax(fabs(x), fabs(y));
    if (rel > worst) worst = rel;
  }
  return worst;
}

static bool same_kind(rule_dtype a, rule_dtype b) {
  return a == b || (rule_dtype_is_float(a) && rule_dtype_is_float(b));
}

/* One sample. Returns: in `refuted` whether it is a counterexample. */
static iso_code sample_once(val_engine *e, const rule *r, rule_tensor *const *example, iso_rng *rng, unsigned k, const val_options *o,
                            tally *t, rule_verdict *out, bool *refuted, iso_error *err) {
  rule_tensor *bind[MAX_VARS] = {NULL}, *a = NULL, *b = NULL;
  double ma = 0, mb = 0;
  iso_error local;
  iso_code c = val_sample(e, r, example, rng, k, bind, err);
  if (c) return c;
  iso_code ca = val_eval_magnitude(e, r->lhs, bind, VAL_FLOAT64, &a, &ma, &local);
  iso_code cb = ca ? ca : val_eval_magnitude(e, r->rhs, bind, VAL_FLOAT64, &b, &mb, &local);
  if (ca || cb) {
    if (ca == ISO_NOMEM || cb == ISO_NOMEM) c = iso_fail(err, ISO_NOMEM, "out of memory");
    t->failed++;
    snprintf(t->last_error, sizeof t->last_error, "%.199s", local.msg);
  } else if (!rule_shape_eq(&a->shape, &b->shape) || !same_kind(a->dtype, b->dtype)) {
    char x[100], y[100];
    *refuted = true;
    snprintf(out->reason, sizeof out->reason, "the sides are %s %s and %s %s", rule_dtype_name(a->dtype), rule_shape_print(&a->shape, x, sizeof x),
             rule_dtype_name(b->dtype), rule_shape_print(&b->shape, y, sizeof y));
  } else {
    const double floor = 64 * 0x1p-52 * fmax(ma, mb), size = fmax(largest(a), largest(b));
    val_diff d = val_compare(a, b, o->rel_tol, floor);
    if (d.equal) {
      const double rel = element_rel(a, b, floor);
      if (rel > 1e-7) d = (val_diff){.max_rel = rel, .max_abs = floor, .index = -1};
    }
    if (d.equal && huge_differ(a, b)) d = (val_diff){.max_abs = INFINITY, .max_rel = INFINITY};
    if (d.equal) {
      /* Rounding that could hide the whole result, or a result without numbers, shows nothing. */
      if ((rule_dtype_is_float(a->dtype) && floor > 1e-6 * size && size > 0) || (a->numel > 0 && d.n_nan == a->numel)) t->blind++;
      else t->good++;
      if (d.max_rel > t->max_rel && floor <= 1e-6 * size) t->max_rel = d.max_rel;
    } else if (any_nan(a) || any_nan(b)) {
      t->blind++;
    } else if (d.max_rel < 1e-6 && t->soft++ == 0) {
      t->blind++;
    } else {
      *refuted = true;
      snprintf(out->reason, sizeof out->reason, "element %lld differs by %.3g (relative %.3g) on sample %u", (long long)d.index, d.max_abs, d.max_rel, k);
    }
  }
  rule_tensor_unref(a);
  rule_tensor_unref(b);
  for (uint32_t i = 0; i < r->n_vars; i++) rule_tensor_unref(bind[i]);
  return c;
}

iso_code val_decide(val_engine *e, const rule *r, rule_tensor *const *example, rule_verdict *out, iso_error *err) {
  const val_options *o = val_engine_options(e);
  *out = (rule_verdict){.status = RULE_UNKNOWN, .seed = o->seed, .rel_tol = o->rel_tol};
  if (r->n_vars > MAX_VARS) {
    snprintf(out->reason, sizeof out->reason, "%u variables", r->n_vars);
    return ISO_OK;
  }
  /* The stream depends on the rule and not on when it is asked for: the same rule gets the same samples. */
  char *text = rule_print(r);
  if (!text) return iso_fail(err, ISO_NOMEM, "out of memory");
  iso_rng rng = iso_rng_new(o->seed, iso_hash(text, strlen(text), 0));
  free(text);
  tally t = {0};
  bool refuted = false;
  iso_code c = ISO_OK;
  unsigned k = 0;
  for (; k < FIRST_SAMPLES && !refuted && !c; k++) c = sample_once(e, r, example, &rng, k, o, &t, out, &refuted, err);
  const bool open = c == ISO_UNSUPPORTED;
  if (open) { /* symbolic shapes: nothing to sample, the proof alone decides */
    if (err) snprintf(out->reason, sizeof out->reason, "%.255s", err->msg);
    c = ISO_OK;
  }
  rule_verdict proof = {0};
  if (!c && !refuted) c = val_prove(r, val_engine_schemas(e), o->z3_rlimit, &proof, err);
  const bool proved = !c && !refuted && proof.status == RULE_PROVED;
  const unsigned want = proved ? PROVED_SAMPLES : 2 * o->n_samples;
  for (; k < want && !open && !refuted && !c && (proved || t.good < o->n_samples) && t.failed < 8; k++)
    c = sample_once(e, r, example, &rng, k, o, &t, out, &refuted, err);
  if (c) return c;
  out->n_samples = t.good;
  out->max_rel = t.max_rel;
  if (refuted) {
    out->status = RULE_REFUTED;
    if (proved) return iso_fail(err, ISO_INTERNAL, "rule %s was proved (%s) and a sample refutes it: %s", r->name, proof.method, out->reason);
  } else if (proved) {
    out->status = RULE_PROVED;
    out->scope = proof.scope;
    snprintf(out->method, sizeof out->method, "%s", proof.method);
  } else if (t.good >= LEAST_SAMPLES) {
    out->status = RULE_TESTED;
    out->scope = RULE_THESE_SHAPES;
    snprintf(out->method, sizeof out->method, "random tests");
    snprintf(out->reason, sizeof out->reason, "%s", proof.reason);
  } else if (!open) {
    if (t.failed) snprintf(out->reason, sizeof out->reason, "could not be run: %.200s", t.last_error);
    else snprintf(out->reason, sizeof out->reason, "only %u samples show anything", t.good);
  }
  return ISO_OK;
}

/* ---- as a rule_oracle ---- */

static iso_code oracle_call(void *ctx, const rule_term *call, rule_tensor *const *bind, bool float64, rule_tensor **out, size_t cap,
                            size_t *n_out, iso_error *err) {
  return val_call(ctx, call, bind, float64 ? VAL_FLOAT64 : 0, out, cap, n_out, err);
}

static rule_diff oracle_compare(void *ctx, const rule_tensor *a, const rule_tensor *b, double rel_tol) {
  (void)ctx;
  /* Views of one value, and values computed in the same way. */
  if (a->dtype == b->dtype && a->numel == b->numel &&
      (a->numel == 0 || a->data == b->data || memcmp(a->data, b->data, (size_t)a->numel * rule_dtype_size(a->dtype)) == 0))
    return (rule_diff){.equal = true, .index = -1};
  /* A slice that is zero but for rounding must not be compared with itself: its neighbours give the scale. */
  const val_diff d = val_compare(a, b, rel_tol, 64 * 0x1p-52 * largest(a));
  return (rule_diff){d.equal, d.max_abs, d.max_rel, d.index};
}

static iso_code oracle_decide(void *ctx, const rule *r, rule_tensor *const *example, rule_verdict *out, iso_error *err) {
  return val_decide(ctx, r, example, out, err);
}

rule_oracle val_oracle(val_engine *e) {
  return (rule_oracle){.ctx = e, .call = oracle_call, .compare = oracle_compare, .decide = oracle_decide};
}
