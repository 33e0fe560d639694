/* Relations by value: lines of sources that the target holds with its dimensions in another order
 * (synth/relate/relation.c has the whole). So heads that a loader cut out of a matrix, each turned
 * round, are rows of that matrix. */
#include "synth/relate/layout.h"
#include "synth/relate/relation_int.h"

enum { TURNED_RANK = 4 }; /* of a target whose orders are all tried: 23 */

/* The target with dimension perm[d] of it as dimension d. NULL: no memory. */
static rule_tensor *turned(search *s, const uint32_t *perm) {
  const rule_tensor *t = s->t;
  view v = view_dense(t, &t->shape);
  rule_shape shape = t->shape;
  rule_tensor *r;
  for (uint32_t d = 0; d < shape.rank; d++) shape.dim[d] = t->shape.dim[perm[d]];
  if (rule_tensor_new(t->dtype, &shape, &r, NULL) != ISO_OK) return NULL;
  int64_t idx[TURNED_RANK] = {0}, at = 0;
  unsigned char *to = r->data;
  for (int64_t e = 0; e < t->numel; e++, to += v.item) {
    memcpy(to, v.data + (size_t)at * v.item, v.item);
    for (uint32_t d = shape.rank; d-- > 0;) {
      at += v.stride[perm[d]];
      if (++idx[d] < shape.dim[d]) break;
      at -= shape.dim[d] * v.stride[perm[d]];
      idx[d] = 0;
    }
  }
  return r;
}

/* The cover of the target in one order of its dimensions, turned back. */
static bool found_in(search *s, const uint32_t *perm, synth_relation *out) {
  const rule_tensor *whole = s->t;
  rule_tensor *t = turned(s, perm);
  synth_relation part = {0};
  uint32_t back[TURNED_RANK];
  if (!t) return rel_no_memory(s);
  s->t = t;
  const bool found = rel_find_cover(s, &part);
  s->t = whole;
  for (uint32_t d = 0; d < whole->shape.rank; d++) back[perm[d]] = d;
  const rel_made m = {part.term, t->shape};
  rule_tensor_unref(t);
  return found && rel_finish(s, rel_permute(s, m, back), part.tied, out);
}

bool rel_find_turned(search *s, synth_relation *out) {
  const uint32_t rank = s->t->shape.rank;
  uint32_t perm[TURNED_RANK] = {0, 1, 2, 3};
  bool may = false;
  if (rank < 3 || rank > TURNED_RANK) return false;
  for (uint32_t d = 0; d < rank; d++)
    if (s->t->shape.dim[d] < 2) return false; /* fewer dimensions, which are tried as such */
  if (!index_may_hold(s->x, s->t, INT64_MAX, &may)) return rel_no_memory(s);
  while (may && s->code == ISO_OK && s->permute_work > 0 && rel_next_permutation(perm, rank)) {
    s->permute_work -= s->t->numel;
    if (found_in(s, perm, out)) return true;
  }
  return false;
}
