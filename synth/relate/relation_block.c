/* Relations by value: a rank's own block (synth/relate/relation.c has the whole). */
#include <stdlib.h>
#include <string.h>

#include "synth/relate/relation_int.h"
#include "synth/relate/tensor_view.h"
#include "rules/tensor.h"

/* The name behind "rank<r>.", and r. NULL: no rank has it. */
static const char *behind_rank(const char *name, int64_t *rank) {
  if (!name || strncmp(name, "rank", 4) != 0 || name[4] < '0' || name[4] > '9') return NULL;
  char *end;
  *rank = strtol(name + 4, &end, 10);
  return *end == '.' ? end + 1 : NULL;
}

/* The only dimension in which a block is smaller than its whole. */
static bool cut_dimension(const rule_shape *part, const rule_shape *whole, uint32_t *d) {
  bool cut = false;
  if (part->rank != whole->rank) return false;
  for (uint32_t k = 0; k < part->rank; k++) {
    if (part->dim[k] == whole->dim[k]) continue;
    if (cut) return false;
    cut = true;
    *d = k;
  }
  return cut && part->dim[*d] > 0 && whole->dim[*d] % part->dim[*d] == 0;
}

/* Values that stand in several places as a rule: whole numbers, and one number over and over, as
 * biases and norms are initialised. */
static bool says_little(const rule_tensor *t) {
  const size_t size = rule_dtype_size(t->dtype);
  const char *first = t->data;
  if (!rule_dtype_is_inexact(t->dtype)) return true;
  for (int64_t i = 1; i < t->numel; i++)
    if (memcmp(first, first + (size_t)i * size, size) != 0) return false;
  return true;
}

bool rel_find_block(search *s, synth_relation *out) {
  int64_t rank = 0;
  const char *name = behind_rank(s->name, &rank);
  uint32_t d = 0;
  if (!name || !says_little(s->t)) return false;
  for (size_t i = 0; i < s->x->n; i++) {
    const rule_tensor *whole = s->x->source[i];
    if (!rel_usable(s, i) || !s->x->name[i] || strcmp(s->x->name[i], name) != 0) continue;
    if (!cut_dimension(&s->t->shape, &whole->shape, &d)) continue;
    const int64_t n = s->t->shape.dim[d];
    if (rank >= whole->shape.dim[d] / n) continue;
    const view mine = view_dense(s->t, &s->t->shape), all = view_dense(whole, &whole->shape);
    const view block = view_slice(all, d, rank * n, n);
    if (view_equal(&mine, &block, &s->walk_work))
      return rel_finish(s, rel_slice(s, rel_source(s, (uint32_t)i), d, rank * n, rank * n + n),
                        false, out);
  }
  return false;
}
