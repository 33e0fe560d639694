/* Ranks of a mesh and the parts that they hold of a tensor, made element by element. */
#ifndef TESTS_LINT_PLACEMENT_RANKS_H
#define TESTS_LINT_PLACEMENT_RANKS_H

#include <check.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lint/placement/placement_int.h"
#include "tests/support/shapes.h"

enum { MOST_KEPT = 4096 };

static plc ranks;
static iso_arena report;
static iso_error err;
static rule_tensor *kept[MOST_KEPT];
static size_t n_kept;

static inline void begin(const char *mesh) {
  ranks = (plc){.err = &err, .keep = &report};
  err = (iso_error){0};
  iso_arena_init(&report);
  iso_arena_init(&ranks.steps);
  iso_arena_init(&ranks.run);
  n_kept = 0;
  ck_assert_msg(plc_mesh_parse(&ranks.steps, mesh, &ranks.mesh, &err) == ISO_OK, "%s", err.msg);
}

static inline void end(void) {
  for (size_t i = 0; i < n_kept; i++) rule_tensor_unref(kept[i]);
  iso_arena_fini(&ranks.run);
  iso_arena_fini(&ranks.steps);
  iso_arena_fini(&report);
}

static inline rule_tensor *keep(rule_tensor *t) {
  ck_assert_uint_lt(n_kept, MOST_KEPT);
  return kept[n_kept++] = t;
}

static inline rule_tensor *make(rule_shape s) {
  rule_tensor *t;
  ck_assert(rule_tensor_new(RULE_F64, &s, &t, &err) == ISO_OK);
  return keep(t);
}

static inline rule_tensor *noise(iso_rng *rng, rule_shape s) {
  rule_tensor *t = make(s);
  for (int64_t i = 0; i < t->numel; i++) rule_tensor_set(t, i, iso_rng_normal(rng));
  return t;
}

/* ---- meshes and placements at random ---- */

static inline void begin_at_random(iso_rng *rng) {
  static const char *const meshes[] = {"a=2",     "a=3",     "a=4",        "a=2,b=2",
                                       "a=2,b=3", "a=3,b=2", "a=2,b=2,c=2"};
  begin(meshes[iso_rng_below(rng, 7)]);
}

/* Of shards and replicas alone, if `exact`. `whole`: a shape that they divide. */
static inline plc_place draw_place(iso_rng *rng, bool exact, rule_shape *whole) {
  static const uint8_t shares[][2] = {{2, 1}, {1, 3}};
  plc_place p = plc_replica();
  *whole = (rule_shape){.rank = 1 + (uint32_t)iso_rng_below(rng, 3)};
  for (uint32_t d = 0; d < whole->rank; d++) whole->dim[d] = 1 + (int64_t)iso_rng_below(rng, 2);
  for (uint32_t a = 0; a < ranks.mesh.n_axes; a++) {
    const uint64_t kind = iso_rng_below(rng, exact ? 2 : 3);
    plc_one *o = &p.axis[a];
    *o = (plc_one){.kind = kind == 0 ? PLC_R : kind == 1 ? PLC_S : PLC_P};
    if (o->kind != PLC_S) continue;
    o->dim = (uint32_t)iso_rng_below(rng, whole->rank);
    const uint64_t how = iso_rng_below(rng, 4);
    uint32_t parts = 1;
    if (how == 0) parts = o->blocks = 2;
    if (how == 1) {
      memcpy(o->share, shares[iso_rng_below(rng, 2)], sizeof *shares);
      o->blocks = 2;
      parts = (uint32_t)o->share[0] + o->share[1];
    }
    whole->dim[o->dim] *= parts * ranks.mesh.size[a];
  }
  return p;
}

/* ---- parts, element by element ---- */

/* Where element `i` of part `k` of `n` lies along the dimension in the whole, which has `size` of
 * them: each block is cut into n equal parts. */
static inline int64_t place_in_whole(const plc_one *o, int64_t size, int64_t n, int64_t k,
                                     int64_t i) {
  const uint32_t blocks = o->blocks > 1 ? o->blocks : 1;
  int64_t all = 0, from = 0;
  for (uint32_t b = 0; b < blocks; b++) all += o->share[0] ? o->share[b] : 1;
  for (uint32_t b = 0; b < blocks; b++) {
    const int64_t block = size / all * (o->share[0] ? o->share[b] : 1), own = block / n;
    if (i < own) return from + k * own + i;
    i -= own;
    from += block;
  }
  ck_abort();
  return -1;
}

/* A rank's part: `t` is cut along one axis after the other; along axes of sums nothing is cut. */
static inline rule_tensor *part_of(rule_tensor *t, const plc_place *p, uint32_t rank) {
  for (uint32_t a = 0; a < ranks.mesh.n_axes; a++) {
    const plc_one *o = &p->axis[a];
    if (o->kind != PLC_S) continue;
    const int64_t n = ranks.mesh.size[a];
    rule_shape s = t->shape;
    s.dim[o->dim] /= n;
    rule_tensor *part = make(s);
    int64_t inner = 1;
    for (uint32_t d = o->dim + 1; d < s.rank; d++) inner *= s.dim[d];
    for (int64_t e = 0; e < part->numel; e++) {
      const int64_t i = e / inner % s.dim[o->dim], row = e / inner / s.dim[o->dim];
      const int64_t at =
          place_in_whole(o, t->shape.dim[o->dim], n, plc_along(&ranks.mesh, rank, a), i);
      rule_tensor_set(part, e,
                      rule_tensor_get(t, (row * t->shape.dim[o->dim] + at) * inner + e % inner));
    }
    t = part;
  }
  return t;
}

static inline bool equal(const rule_tensor *a, const rule_tensor *b, double times) {
  if (!rule_shape_eq(&a->shape, &b->shape)) return false;
  for (int64_t i = 0; i < a->numel; i++)
    if (fabs(rule_tensor_get(a, i) - times * rule_tensor_get(b, i)) > 1e-9) return false;
  return true;
}

/* The lowest rank that differs from it along axes of one kind alone. */
static inline uint32_t first_along(const plc_place *p, plc_kind kind, uint32_t rank) {
  for (uint32_t a = 0; a < ranks.mesh.n_axes; a++)
    if (p->axis[a].kind == kind)
      rank -= plc_along(&ranks.mesh, rank, a) * plc_stride(&ranks.mesh, a);
  return rank;
}

/* Whether the ranks' tensors are parts of the whole: replicas are the same; those that differ in
 * their places along axes of sums alone add up to what one rank would have without these. */
static inline bool are_parts(rule_tensor *const *each, rule_tensor *whole, const plc_place *p) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    rule_tensor *want = part_of(whole, p, r), *sum = make(each[r]->shape);
    if (!equal(each[r], each[first_along(p, PLC_R, r)], 1)) return false;
    for (uint32_t q = 0; q < ranks.mesh.n; q++) {
      if (first_along(p, PLC_P, q) != first_along(p, PLC_P, r)) continue;
      if (!rule_shape_eq(&each[q]->shape, &sum->shape)) return false;
      for (int64_t i = 0; i < sum->numel; i++)
        rule_tensor_set(sum, i, rule_tensor_get(sum, i) + rule_tensor_get(each[q], i));
    }
    if (!equal(sum, want, p->scale)) return false;
  }
  return true;
}

/* Summands of it at random, for each rank of the axes of sums; the last makes the sum right.
 * Replicas are cut alike. */
static inline void make_parts(iso_rng *rng, rule_tensor *whole, const plc_place *p,
                              rule_tensor **each) {
  for (uint32_t r = 0; r < ranks.mesh.n; r++) {
    const rule_tensor *part = part_of(whole, p, r);
    each[r] = make(part->shape);
    for (int64_t i = 0; i < part->numel; i++)
      rule_tensor_set(each[r], i, p->scale * rule_tensor_get(part, i));
  }
  const uint64_t seed = iso_rng_below(rng, 1u << 30);
  for (uint32_t a = 0; a < ranks.mesh.n_axes; a++) {
    if (p->axis[a].kind != PLC_P) continue;
    const uint32_t n = ranks.mesh.size[a], step = plc_stride(&ranks.mesh, a);
    for (uint32_t r = 0; r < ranks.mesh.n; r++) {
      if (plc_along(&ranks.mesh, r, a)) continue;
      iso_rng own_rng = iso_rng_new(seed + a, first_along(p, PLC_R, r));
      for (int64_t i = 0; i < each[r]->numel; i++) {
        double rest = rule_tensor_get(each[r], i);
        for (uint32_t k = 0; k < n; k++) {
          const double own = k + 1 < n ? iso_rng_normal(&own_rng) : rest;
          rest -= own;
          rule_tensor_set(each[r + k * step], i, own);
        }
      }
    }
  }
}

#endif
