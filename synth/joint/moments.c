/* What of a tensor does not depend on the order of its elements: tensors that agree up to layout
 * are found by it. */
#include "synth/joint/joint.h"

#include <math.h>
#include <string.h>

#include "egraph/base/wide.h"

/* Masked or infinite elements count as one in the third moment. */
static inline void add_moment(double x, double *m0, double *m1, double *m2, double *m3) {
  const double a = fabs(x), in = a < 1e30 ? x : 0, size = fabs(in);
  *m0 += in;
  *m1 += size;
  *m2 += a < 1e30 ? in * in : 1;
  *m3 += in * size;
}

/* Several sums of each, so that one does not wait for another. */
ISO_WIDE static void add_moments(const double *x, int64_t n, double m[4]) {
  enum { LANES = 8 };
  double s0[LANES] = {0}, s1[LANES] = {0}, s2[LANES] = {0}, s3[LANES] = {0};
  int64_t i = 0;
  for (; n - i >= LANES; i += LANES)
    for (int64_t k = 0; k < LANES; k++) add_moment(x[i + k], &s0[k], &s1[k], &s2[k], &s3[k]);
  for (; i < n; i++) add_moment(x[i], &m[0], &m[1], &m[2], &m[3]);
  for (int64_t k = 0; k < LANES; k++) m[0] += s0[k], m[1] += s1[k], m[2] += s2[k], m[3] += s3[k];
}

void st_moments(const rule_tensor *t, double m[4]) {
  double room[1 << 10];
  const int64_t most = t->dtype == RULE_F64 ? t->numel : 1 << 10;
  m[0] = m[1] = m[2] = m[3] = 0;
  for (int64_t at = 0, n; at < t->numel; at += n) {
    n = t->numel - at < most ? t->numel - at : most;
    if (t->dtype != RULE_F64) rule_tensor_widen(t, at, n, room);
    add_moments(t->dtype == RULE_F64 ? t->data : room, n, m);
  }
}

bool st_near_within(const double a[4], const double b[4], double tol) {
  const double s1 = tol * fmax(a[1], b[1]), s2 = 2 * tol * fmax(a[2], b[2]);
  return fabs(a[0] - b[0]) <= s1 && fabs(a[1] - b[1]) <= s1 && fabs(a[2] - b[2]) <= s2 &&
         fabs(a[3] - b[3]) <= s2;
}

bool st_near_moments(const double a[4], const double b[4]) {
  const double s1 = fmax(a[1], b[1]), s2 = fmax(a[2], b[2]);
  return fabs(a[0] - b[0]) <= 1e-8 * s1 && fabs(a[1] - b[1]) <= 1e-8 * s1 &&
         fabs(a[2] - b[2]) <= 1e-8 * s2 && fabs(a[3] - b[3]) <= 1e-8 * s2;
}

ISO_WIDE static bool nan_among(const double *x, int64_t n) {
  enum { BLOCK = 64 }; /* of one length: compilers turn it into vectors */
  int64_t i = 0;
  for (; n - i >= BLOCK; i += BLOCK) {
    uint64_t found = 0;
    for (int64_t k = 0; k < BLOCK; k++) found |= x[i + k] != x[i + k];
    if (found) return true;
  }
  for (; i < n; i++)
    if (isnan(x[i])) return true;
  return false;
}

bool st_holds_nan(const rule_tensor *t) {
  const double *x = t->dtype == RULE_F64 ? t->data : NULL;
  if (!rule_dtype_is_float(t->dtype)) return false;
  if (x && nan_among(x, t->numel)) return true;
  for (int64_t i = 0; i < t->numel && !x; i++)
    if (isnan(rule_tensor_get(t, i))) return true;
  return false;
}
