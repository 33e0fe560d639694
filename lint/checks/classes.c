/* Ranks that cannot be told apart: one of each class stands for all of them.
 *
 * Ranks begin in one class if they run one program. A class is split until all of its ranks have,
 * at each distance that the program names, peers of one class, and in each group the same numbers
 * of each class (colour refinement). Such ranks go through the same states: no receive takes "any
 * source", so the message that one of them waits for comes for all of them at the same step. A peer
 * that is named by its rank is the same one for all, which no distance is: such ranks stay
 * alone. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "lint/check.h"

/* The names in a program. */
typedef struct names_of {
  bool used, shared, absolute, world, splits;
  uint32_t *ref;
  int32_t *offset;
  uint64_t *rooted; /* group reference and root */
  size_t n_refs, cap_refs, n_offsets, cap_offsets, n_rooted, cap_rooted;
} names_of;

typedef struct refiner {
  lint_check *c;
  lint_trace *t;
  names_of *of;                  /* of each program */
  uint64_t *colour, *next, *sum; /* of each rank; sum: of a group, at its first rank */
  uint64_t *sorted;
} refiner;

static uint64_t mix(uint64_t a, uint64_t b) {
  const uint64_t k[2] = {a, b};
  return iso_hash(k, sizeof k, 0x636c617373);
}

/* ---- what programs name ---- */

static bool note_offset(names_of *x, int32_t peer) {
  for (size_t i = 0; i < x->n_offsets; i++)
    if (x->offset[i] == peer) return true;
  if (!iso_grow(x->offset, x->cap_offsets, x->n_offsets + 1)) return false;
  x->offset[x->n_offsets++] = peer;
  return true;
}

static bool note_ref(names_of *x, uint32_t ref) {
  for (size_t i = 0; i < x->n_refs; i++)
    if (x->ref[i] == ref) return true;
  if (!iso_grow(x->ref, x->cap_refs, x->n_refs + 1)) return false;
  x->ref[x->n_refs++] = ref;
  return true;
}

static bool note_root(names_of *x, uint32_t ref, int64_t root) {
  const uint64_t key = (uint64_t)ref << 32 | (uint32_t)root;
  for (size_t i = 0; i < x->n_rooted; i++)
    if (x->rooted[i] == key) return true;
  if (!iso_grow(x->rooted, x->cap_rooted, x->n_rooted + 1)) return false;
  x->rooted[x->n_rooted++] = key;
  return true;
}

static bool note_program(const lint_program *p, names_of *x) {
  int32_t last_peer = LINT_NO_PEER;
  uint32_t last_ref = LINT_NONE;
  bool ok = true;
  for (size_t i = 0; ok && i < p->n; i++) {
    const lint_event *e = &p->event[i];
    if (lint_op_classify(e->op) < LINT_P2P) continue;
    x->absolute |= e->peer >= 0;
    if (e->peer < LINT_NO_PEER && e->peer != last_peer) ok = note_offset(x, last_peer = e->peer);
    if (e->group == LINT_NONE) x->world = true;
    else if (ok && e->group != last_ref) ok = note_ref(x, last_ref = e->group);
    const lint_extra *a = e->extra ? &p->extra[e->extra] : NULL;
    if (ok && a && a->root >= 0) ok = note_root(x, e->group, a->root);
    x->splits |= a && (a->n_in != LINT_NONE || a->n_out != LINT_NONE);
  }
  return ok;
}

/* ---- rounds ---- */

int64_t lint_first_of(const lint_trace *t, int64_t rank, uint32_t axes, int64_t *place) {
  int64_t stride = 1, first = rank, width = 1;
  *place = 0;
  for (size_t i = t->n_axes; i-- > 0; stride *= t->axis[i].size) {
    if (!(axes >> i & 1)) continue;
    const int64_t at = rank / stride % t->axis[i].size;
    first -= at * stride;
    *place += at * width;
    width *= t->axis[i].size;
  }
  return first;
}

/* To begin with: the program, and of which collectives it is the root. */
static void begin(refiner *r, int64_t rank) {
  const uint32_t program = r->t->run_by[rank];
  const names_of *x = &r->of[program];
  uint64_t h = mix(program, 0);
  if (x->shared && x->absolute) h = mix(h, (uint64_t)rank + 1);
  for (size_t i = 0; i < x->n_rooted; i++) {
    const uint32_t ref = (uint32_t)(x->rooted[i] >> 32);
    const int64_t root = (uint32_t)x->rooted[i];
    int64_t place = rank;
    if (ref != LINT_NONE && r->t->ref[ref].axes)
      lint_first_of(r->t, rank, r->t->ref[ref].axes, &place);
    h = mix(h, place == root);
  }
  r->colour[rank] = h;
}

/* Mixes into `next` the combined hash of the ranks of each group of a reference. */
static void mix_group(refiner *r, uint32_t ref) {
  const lint_trace *t = r->t;
  const size_t world = (size_t)t->world;
  const lint_group_ref *g = ref == LINT_NONE ? NULL : &t->ref[ref];
  int64_t place;
  memset(r->sum, 0, world * sizeof *r->sum);
  if (g && !g->axes) {
    uint64_t all = 0;
    for (size_t i = 0; i < g->n_ranks; i++) all += mix(r->colour[g->rank[i]], 1);
    for (size_t i = 0; i < g->n_ranks; i++) r->sum[g->rank[i]] = mix(all, 2);
    for (size_t i = 0; i < world; i++) r->next[i] = mix(r->next[i], r->sum[i]);
    return;
  }
  const uint32_t axes = g ? g->axes : 0;
  for (size_t i = 0; i < world; i++)
    r->sum[g ? (size_t)lint_first_of(t, (int64_t)i, axes, &place) : 0] += mix(r->colour[i], 1);
  for (size_t i = 0; i < world; i++)
    r->next[i] =
        mix(r->next[i], r->sum[g ? (size_t)lint_first_of(t, (int64_t)i, axes, &place) : 0]);
}

/* Groups that one program names are looked at for all ranks: more classes than needed do no harm.
 */
static void round_of(refiner *r) {
  const lint_trace *t = r->t;
  memcpy(r->next, r->colour, (size_t)t->world * sizeof *r->next);
  bool world = false;
  for (size_t p = 0; p < t->n_programs; p++) world |= r->of[p].used && r->of[p].world;
  if (world) mix_group(r, LINT_NONE);
  for (uint32_t i = 0; i < t->n_refs; i++) mix_group(r, i);
  for (int64_t k = 0; k < t->world; k++) {
    const names_of *x = &r->of[t->run_by[k]];
    const lint_proc at = {.rank = (uint32_t)k};
    for (size_t i = 0; i < x->n_offsets; i++) {
      const int64_t peer = lint_peer_rank(t, &at, x->offset[i]);
      r->next[k] = mix(r->next[k], peer < 0 ? 0 : r->colour[peer]);
    }
  }
  uint64_t *swap = r->colour;
  r->colour = r->next;
  r->next = swap;
}

static int by_colour(const void *a, const void *b) {
  const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
  return (x > y) - (x < y);
}

static size_t count(refiner *r) {
  const size_t n = (size_t)r->t->world;
  size_t classes = n > 0;
  memcpy(r->sorted, r->colour, n * sizeof *r->sorted);
  qsort(r->sorted, n, sizeof *r->sorted, by_colour);
  for (size_t i = 1; i < n; i++) classes += r->sorted[i] != r->sorted[i - 1];
  return classes;
}

/* ---- the classes ---- */

/* Number the classes by their lowest ranks. */
static iso_code number(refiner *r, size_t classes, uint32_t *class_of) {
  const size_t n = (size_t)r->t->world;
  uint32_t *at = malloc((n + 1) * sizeof *at); /* of each of `sorted`: its class plus 1 */
  if (!at) return lint_no_memory(r->c->err);
  memset(at, 0, (n + 1) * sizeof *at);
  uint32_t k = 0;
  for (size_t i = 0; i < n; i++) {
    size_t low = 0, high = n;
    while (low < high) {
      const size_t mid = (low + high) / 2;
      if (r->sorted[mid] < r->colour[i]) low = mid + 1;
      else high = mid;
    }
    if (!at[low]) at[low] = ++k;
    class_of[i] = at[low] - 1;
  }
  free(at);
  ISO_CHECK(k == classes);
  return ISO_OK;
}

static iso_code prepare(refiner *r) {
  lint_trace *t = r->t;
  const size_t world = (size_t)t->world;
  r->of = calloc(t->n_programs + 1, sizeof *r->of);
  r->colour = malloc((world + 1) * sizeof *r->colour);
  r->next = malloc((world + 1) * sizeof *r->next);
  r->sum = malloc((world + 1) * sizeof *r->sum);
  r->sorted = malloc((world + 1) * sizeof *r->sorted);
  if (!r->of || !r->colour || !r->next || !r->sum || !r->sorted) return lint_no_memory(r->c->err);
  for (size_t i = 0; i < world; i++) {
    names_of *x = &r->of[t->run_by[i]];
    x->shared |= x->used;
    x->used = true;
  }
  for (size_t i = 0; i < t->n_programs; i++)
    if (r->of[i].used && !note_program(&t->program[i], &r->of[i])) return lint_no_memory(r->c->err);
  return ISO_OK;
}

iso_code lint_classes(lint_check *c, uint32_t *class_of, size_t *n) {
  refiner r = {.c = c, .t = c->t};
  iso_code code = prepare(&r);
  if (!code) {
    for (int64_t i = 0; i < c->t->world; i++) begin(&r, i);
    size_t classes = count(&r), before = 0;
    while (classes > before) {
      before = classes;
      round_of(&r);
      classes = count(&r);
    }
    for (size_t i = 0; i < c->t->n_programs; i++)
      if (r.of[i].shared && r.of[i].splits && classes < (size_t)c->t->world)
        c->undecided = "ranks that share a program have uneven splits, which are not compared";
    *n = classes;
    code = number(&r, classes, class_of);
  }
  for (size_t i = 0; r.of && i < c->t->n_programs; i++) {
    free(r.of[i].ref);
    free(r.of[i].offset);
    free(r.of[i].rooted);
  }
  free(r.of);
  free(r.colour);
  free(r.next);
  free(r.sum);
  free(r.sorted);
  return code;
}
