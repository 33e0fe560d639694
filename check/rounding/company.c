/* One wrong element of a table that rounding moves far: where hardly any other element beside it is
 * off, it is no rounding, for rounding before the last step moves elements together. */
#include "check/rounding/again.h"

#include <math.h>
#include <stdlib.h>

/* Two numbers at one place. */
typedef struct spot {
  double x, y;
  int64_t i;
} spot;

/* By element: whether it is off, whether it is off enough to be asked for its company, whether it
 * might be off. A repeated element counts once. */
typedef struct marks {
  bool *off, *far, *may;
  int64_t n_off, n_may;
} marks;

static int by_numbers(const void *a, const void *b) {
  const spot *p = a, *q = b;
  if (p->x != q->x) return p->x < q->x ? -1 : 1;
  if (p->y != q->y) return p->y < q->y ? -1 : 1;
  return (p->i > q->i) - (p->i < q->i);
}

/* `allowed`: how far it may be off. A table that was rounded to the nearest number after exact
 * steps is half a unit off, after a library's function one and a half. */
static void mark(marks *m, const spot *s, double allowed, int digits) {
  const double apart = fabs(s->x - s->y), unit = ag_unit(s->x, digits);
  m->may[s->i] = allowed > 8 * unit;
  m->off[s->i] = m->may[s->i] && apart > 2 * unit;
  m->far[s->i] = m->may[s->i] && apart > 3 * unit;
  m->n_off += m->off[s->i];
  m->n_may += m->may[s->i];
}

static bool are_many(int64_t off, int64_t may) { return off > 1 && 4 * off >= may; }

/* Of the elements in a line with `i`, or of all, enough are off. */
static bool in_company(const marks *m, const rule_shape *shape, int64_t i) {
  int64_t stride = 1;
  for (uint32_t d = shape->rank; d-- > 0; stride *= shape->dim[d]) {
    const int64_t first = i - i / stride % shape->dim[d] * stride;
    int64_t off = 0, may = 0;
    for (int64_t at = 0; at < shape->dim[d]; at++) {
      off += m->off[first + at * stride];
      may += m->may[first + at * stride];
    }
    if (are_many(off, may)) return true;
  }
  return are_many(m->n_off, m->n_may);
}

static ag_fit fit_of(const marks *m, const rule_shape *shape, int64_t numel) {
  ag_fit fit = AG_CLEAN;
  for (int64_t i = 0; i < numel && fit != AG_ALONE; i++)
    if (m->far[i]) fit = in_company(m, shape, i) ? AG_TOGETHER : AG_ALONE;
  return fit;
}

bool ag_agree(const rule_tensor *a, const rule_tensor *b, const double *spread, double reach,
              double own) {
  double most = 0;
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i)) < 1e30) most = fmax(most, fabs(rule_tensor_get(a, i)));
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    const double size = fmax(fmax(fabs(x), fabs(y)), fmin(most, 1));
    if (x == y) continue;
    if (!isfinite(spread[i]) || !isfinite(size))
      return false; /* what moves without bound explains nothing */
    if (!(fabs(x - y) <= reach * spread[i] + own * size)) return false;
  }
  return true;
}

/* One number alone has none beside it, and is held by how far noise moves it. */
static bool is_one_number(const rule_tensor *t) {
  for (int64_t i = 1; i < t->numel; i++)
    if (rule_tensor_get(t, i) != rule_tensor_get(t, 0)) return false;
  return true;
}

iso_code ag_compare(chk_state *k, const rule_tensor *stored, const rule_tensor *made,
                    const double *spread, int digits, ag_fit *fit) {
  static const double reach = 1.5; /* a few draws seldom move as far as rounding may */
  const size_t n = (size_t)stored->numel;
  bool scaled = false;
  *fit = AG_APART;
  if (stored->numel != made->numel) return ISO_OK;
  const iso_code why = ag_is_scaled(k, stored, made, digits, &scaled);
  if (why || scaled) return why;
  const bool near = ag_agree(stored, made, spread, reach, 1e-14);
  *fit = near ? AG_CLEAN : AG_APART;
  if (is_one_number(stored) && is_one_number(made)) return ISO_OK;
  marks m = {.off = calloc(n + 1, 1), .far = calloc(n + 1, 1), .may = calloc(n + 1, 1)};
  spot *s = malloc((n + 1) * sizeof *s);
  const iso_code c = s && m.off && m.far && m.may ? ISO_OK : chk_nomem(k);
  for (size_t i = 0; i < n && !c; i++)
    s[i] =
        (spot){rule_tensor_get(stored, (int64_t)i), rule_tensor_get(made, (int64_t)i), (int64_t)i};
  if (!c) qsort(s, n, sizeof *s, by_numbers);
  for (size_t i = 0; i < n && !c; i++)
    if (i == 0 || s[i].x != s[i - 1].x || s[i].y != s[i - 1].y)
      mark(&m, &s[i], 1.25 * spread[s[i].i], digits);
  const ag_fit now = c ? AG_APART : fit_of(&m, &stored->shape, stored->numel);
  if (near || now == AG_ALONE) *fit = now;
  free(s);
  free(m.off);
  free(m.far);
  free(m.may);
  return c;
}
