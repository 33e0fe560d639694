/* Layouts of constants that agree up to rounding. The relation engine compares bits: so numbers of
 * the sources within 2 ulp of one of the target's are first replaced by that one. The relation
 * found so is checked against the true values. */
#include "synth/constants/constants_int.h"
#include "rules/names.h"
#include "synth/constants/constants.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- numbers near the target's ---- */

typedef struct number {
  double v, stands; /* what stands for it */
} number;

enum { SEEN = 1 << 16 };

typedef struct snap { /* the target's numbers, each once, in order */
  number *at;
  size_t n;
  double eps;
  int coarse;               /* bits of a number that are left away, more than `near` allows */
  uint64_t seen[SEEN / 64]; /* what is left of each number, and of its neighbours */
} snap;

/* Tables have millions of numbers, and few of them are near one of the target's: most are told from
 * these by a look at one bit. */
static uint64_t left_of(const snap *s, double x) {
  uint64_t bits;
  x += 0.0; /* -0 is 0 */
  memcpy(&bits, &x, sizeof bits);
  return bits >> s->coarse;
}

static uint64_t place_of(uint64_t left) { return left * UINT64_C(0x9e3779b97f4a7c15) >> 48; }

static void see(snap *s, double x) {
  for (uint64_t k = 0, left = left_of(s, x) - 1; k < 3; k++, left++)
    s->seen[place_of(left) / 64] |= UINT64_C(1) << place_of(left) % 64;
}

static int by_value(const void *a, const void *b) {
  const double x = ((const number *)a)->v, y = ((const number *)b)->v;
  return (x > y) - (x < y);
}

static bool near(double x, double y, double reach) {
  return x == y || fabs(x - y) <= reach * fmax(fabs(x), fabs(y));
}

/* Numbers of the target that one of a source may be near to at once are one. */
static iso_code snap_new(snap *s, const rule_tensor *target, double eps, iso_error *err) {
  *s = (snap){.at = calloc((size_t)target->numel + 1, sizeof *s->at), .eps = eps};
  if (!s->at) return nomem(err);
  while (s->coarse < 52 && ldexp(1, s->coarse - 52) < 8 * eps) s->coarse++;
  for (int64_t i = 0; i < target->numel; i++) {
    const double x = rule_tensor_get(target, i);
    if (!isfinite(x)) continue;
    s->at[s->n++].v = x;
    see(s, x);
  }
  qsort(s->at, s->n, sizeof *s->at, by_value);
  size_t n = 0;
  for (size_t i = 0; i < s->n; i++) {
    const double x = s->at[i].v;
    if (n && x == s->at[n - 1].v) continue;
    const double stands = n && near(x, s->at[n - 1].v, 4 * eps) ? s->at[n - 1].stands : x;
    s->at[n++] = (number){x, stands};
  }
  s->n = n;
  return ISO_OK;
}

static double snapped(const snap *s, double x) {
  size_t lo = 0, hi = s->n;
  const uint64_t place = place_of(left_of(s, x));
  if (!(s->seen[place / 64] >> place % 64 & 1) || !isfinite(x)) return x;
  while (lo + 1 < hi) { /* the last entry <= x */
    const size_t mid = (lo + hi) / 2;
    if (s->at[mid].v <= x) lo = mid;
    else hi = mid;
  }
  for (size_t i = lo; i < s->n && i < lo + 2; i++)
    if (near(x, s->at[i].v, 2 * s->eps)) return s->at[i].stands;
  return x;
}

/* Tables may be long: one that has no number near the target's is itself. */
static iso_code snap_copy(const snap *s, rule_tensor *t, rule_tensor **out, iso_error *err) {
  iso_code c = ISO_OK;
  *out = NULL;
  for (int64_t i = 0; i < t->numel && !c; i++) {
    const double x = rule_tensor_get(t, i), y = snapped(s, x);
    if (x == y || isnan(x)) continue;
    if (!*out && !(c = rule_tensor_new(t->dtype, &t->shape, out, err)))
      memcpy((*out)->data, t->data, (size_t)t->numel * rule_dtype_size(t->dtype));
    if (!c) rule_tensor_set(*out, i, y);
  }
  if (!c && !*out) *out = rule_tensor_ref(t);
  return c;
}

/* How often each element of the last dimension is repeated in place: 1 if it is not. */
static int64_t run_length(const rule_tensor *t) {
  const int64_t last = t->shape.rank ? t->shape.dim[t->shape.rank - 1] : 1;
  for (int64_t k = last; k > 1; k--) {
    if (last % k) continue;
    bool runs = true;
    for (int64_t i = 0; i < t->numel && runs; i++)
      runs = rule_tensor_get(t, i) == rule_tensor_get(t, i - i % k);
    if (runs) return k;
  }
  return 1;
}

/* A table of interleaved pairs (cos, cos, ...): its distinct elements are related, and repeated in
 * place. */
iso_code st_relate_repeated(state *s, synth_index *x, const rule_tensor *t, synth_relation *rel,
                            iso_error *err) {
  const int64_t k = run_length(t);
  if (k == 1 || t->numel == k) return ISO_OK;
  rule_shape shape = t->shape;
  shape.dim[shape.rank - 1] /= k;
  rule_tensor *once;
  iso_code c = rule_tensor_new(t->dtype, &shape, &once, err);
  if (c) return c;
  for (int64_t i = 0; i < once->numel; i++) rule_tensor_set(once, i, rule_tensor_get(t, i * k));
  c = synth_relate(x, once, NULL, &s->arena, rel, err);
  rule_tensor_unref(once);
  if (c || !rel->term) return c;
  const rule_term *arg[3] = {rel->term, rule_int(&s->arena, k),
                             rule_int(&s->arena, shape.rank - 1)},
                  *out;
  rel->term = NULL;
  if (!arg[1] || !arg[2]) return nomem(err);
  if (!(c = rule_call(&s->arena, s->schemas, OP_REPEAT_INTERLEAVE_SELF_INT, arg, 3, &out, err)))
    rel->term = out;
  return c;
}

/* Its source, and other layouts of that, need no relation the other way round. */
iso_code st_mark_related(state *s, const eg_node *all, size_t n, const rule_term *term, int side,
                         bool *related, iso_error *err) {
  bool *used = calloc(n + 1, 1);
  if (!used) return nomem(err);
  st_term_mark(term, used);
  for (size_t i = 0; i < n; i++)
    for (size_t k = 0; k < n && !related[i]; k++) {
      const rule_tensor *a = s->rec[all[i].i].cval[0], *b = s->rec[all[k].i].cval[0];
      related[i] =
          used[k] && (i == k || (st_constant_on(s, all[i], !side) && rule_tensor_same_bytes(a, b)));
    }
  free(used);
  return ISO_OK;
}

/* Sources that a target may be made of, each value once, with numbers that are near the target's.
 */
typedef struct sources {
  rule_tensor **src; /* by constant at hand; NULL: it is none */
  rule_tensor *copy; /* the target among them, NULL: as it is */
} sources;

static void free_sources(sources *x, size_t n) {
  for (size_t i = 0; x->src && i < n; i++) rule_tensor_unref(x->src[i]);
  free(x->src);
  rule_tensor_unref(x->copy);
}

/* Constants of the other side that the target may be made of. Of those that differ only in sizes 1
 * and grouping the first is taken, which is nearest to a leaf. */
static void take_sources(state *s, const cn_list *at, eg_node target, bool smaller, sources *x) {
  const rule_tensor *t = s->rec[target.i].cval[0];
  const int side = st_constant_on(s, target, LEFT) ? LEFT : RIGHT;
  for (size_t i = 0; i < at->n; i++) {
    rule_tensor *v = s->rec[at->all[i].i].cval[0];
    if (!st_constant_on(s, at->all[i], !side) || v->dtype != t->dtype || v->numel <= 1 ||
        (smaller && v->numel >= t->numel) || !rule_tensor_varies(v) ||
        eg_equal(s->g, at->all[i], target))
      continue;
    bool dup = false;
    for (size_t k = 0; k < i && !dup; k++) dup = x->src[k] && rule_tensor_same_bytes(x->src[k], v);
    if (!dup) x->src[i] = rule_tensor_ref(v);
  }
}

/* Owns: free_sources, also after an error. */
static iso_code find_sources(state *s, const cn_list *at, eg_node target, bool smaller, sources *x,
                             iso_error *err) {
  rule_tensor *t = s->rec[target.i].cval[0];
  const double eps = cn_epsilon(t->dtype);
  snap sn = {0};
  *x = (sources){.src = calloc(at->n + 1, sizeof *x->src)};
  if (!x->src) return nomem(err);
  take_sources(s, at, target, smaller, x);
  if (!(eps > 0)) return ISO_OK;
  iso_code c = snap_new(&sn, t, eps, err);
  for (size_t i = 0; i < at->n && !c; i++) {
    rule_tensor *as_is = x->src[i];
    if (!as_is) continue;
    c = snap_copy(&sn, as_is, &x->src[i], err);
    rule_tensor_unref(as_is);
  }
  if (!c) c = snap_copy(&sn, t, &x->copy, err);
  free(sn.at);
  return c;
}

/* `def`, which is `term` over the constants at hand, takes the target into its class, if their true
 * values agree. */
static iso_code join_layout(state *s, const cn_list *at, size_t self, eg_node def,
                            const rule_term *term, iso_error *err) {
  const eg_node target = at->all[self];
  const int side = st_constant_on(s, target, LEFT) ? LEFT : RIGHT;
  const char **names = calloc(at->n + 1, sizeof *names);
  if (!names) return nomem(err);
  for (size_t i = 0; i < at->n; i++) names[i] = st_any_id(s, at->all[i]);
  char *text = rule_term_print(term, s->schemas, names);
  free(names);
  bool agree;
  iso_code c = cn_note_agreement(s, side == LEFT ? target : def, side == RIGHT ? target : def, text,
                                 &agree, err);
  free(text);
  if (c || !agree) return c;
  c = cn_merge(s, target, def, err);
  s->rec[target.i].def = def.i;
  at->related[self] = true;
  return c ? c : st_mark_related(s, at->all, at->n, term, side, at->related, err);
}

iso_code cn_relate_layout(state *s, const cn_list *at, size_t self, bool smaller, iso_error *err) {
  const eg_node target = at->all[self];
  const rule_tensor *t = s->rec[target.i].cval[0];
  sources from;
  synth_index *x = NULL;
  synth_relation rel = {0};
  iso_code c = find_sources(s, at, target, smaller, &from, err);
  if (!c) c = synth_index_new(from.src, NULL, at->n, s->schemas, &x, err);
  if (!c) c = st_relate_repeated(s, x, from.copy ? from.copy : t, &rel, err);
  if (!c && !rel.term) c = synth_relate(x, from.copy ? from.copy : t, NULL, &s->arena, &rel, err);
  synth_index_free(x);
  free_sources(&from, at->n);
  if (c || !rel.term) return c;
  eg_node def;
  if ((c = st_add_term(s, rel.term, at->all, &def, err)) || (c = st_value(s, def, err))) return c;
  if (!s->rec[def.i].cval || !cn_alike(s, def, target)) return ISO_OK;
  return join_layout(s, at, self, def, rel.term, err);
}
