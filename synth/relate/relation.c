/* Relations by value: a target tensor as a layout expression over source tensors, exactly, by bit
 * pattern.
 *
 * Simplest relation first: the same bytes, a transpose, a permutation, then slices and
 * concatenations of lines, which an index of hashes finds (index.c). Hashes only propose: each
 * relation is compared element by element before it is returned, so that a collision may lose a
 * relation and never makes a false one.
 *
 * relation_cover.c has slices and concatenations, relation_turned.c those of a target that is
 * turned round, relation_window.c windows.
 *
 * Everything is near-linear in the bytes read except the search for windows (columns that equal
 * columns of a range of rows of a source), which is bounded by WINDOW_WORK; limits are counts, so
 * that a result never depends on time. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "synth/relate/layout.h"
#include "synth/relate/relation_int.h"

enum { FACTOR_RANK = 5 };                     /* dimensions of a permutation */
static const int64_t WALK_WORK = 200000000;   /* line comparisons per target */
static const int64_t PERMUTE_WORK = 50000000; /* element comparisons per target */

/* ---- names ---- */

typedef struct token {
  const char *s;
  size_t n;
  bool number;
} token;

enum { MAX_TOKENS = 48 };

static bool token_is(const token *t, const char *s) {
  return strlen(s) == t->n && memcmp(t->s, s, t->n) == 0;
}

/* The parts of a name between dots and underscores, less the wrappers that only one side may have.
 */
static size_t tokens_of(const char *s, token *out) {
  size_t n = 0;
  while (*s && n < MAX_TOKENS) {
    size_t len = strcspn(s, "._/:-");
    token t = {.s = s, .n = len, .number = len > 0 && strspn(s, "0123456789") >= len};
    bool wrapper = token_is(&t, "model") || token_is(&t, "transformer") || token_is(&t, "module");
    if (len > 0 && !wrapper) out[n++] = t;
    s += len + (s[len] != 0);
  }
  return n;
}

static bool contains(const token *a, const token *b) {
  return !a->number && !b->number && b->n < a->n && memmem(a->s, a->n, b->s, b->n) != NULL;
}

/* How alike two parameter names are: the numbers in them (layers, experts) count most, then the
 * last part (weight, bias), then the share of common parts, a part inside a fused one ("q" in
 * "qkv") by half. Without a name: 0. */
static int32_t name_likeness(const char *a, const char *b) {
  if (!a || !b) return 0;
  token ta[MAX_TOKENS], tb[MAX_TOKENS];
  size_t na = tokens_of(a, ta), nb = tokens_of(b, tb), ia = 0, ib = 0;
  if (na == 0 || nb == 0) return 0;
  bool numbers = true;
  while (numbers) {
    while (ia < na && !ta[ia].number) ia++;
    while (ib < nb && !tb[ib].number) ib++;
    if (ia == na || ib == nb) break;
    numbers = ta[ia].n == tb[ib].n && memcmp(ta[ia].s, tb[ib].s, ta[ia].n) == 0;
    ia++, ib++;
  }
  int32_t score = numbers && ia == na && ib == nb ? 10000 : 0;
  if (ta[na - 1].n == tb[nb - 1].n && memcmp(ta[na - 1].s, tb[nb - 1].s, ta[na - 1].n) == 0)
    score += 1000;
  int32_t common = 0;
  for (size_t i = 0; i < na; i++) {
    int32_t best = 0;
    for (size_t j = 0; j < nb && best < 2; j++) {
      if (ta[i].n == tb[j].n && memcmp(ta[i].s, tb[j].s, ta[i].n) == 0) best = 2;
      else if (contains(&ta[i], &tb[j]) || contains(&tb[j], &ta[i])) best = 1;
    }
    common += best;
  }
  return score + common * 450 / (int32_t)(na + nb);
}

/* ---- one search ---- */

int32_t rel_likeness(search *s, uint32_t src) {
  if (s->like[src] < 0) s->like[src] = name_likeness(s->name, s->x->name[src]);
  return s->like[src];
}

bool rel_no_memory(search *s) {
  if (s->code == ISO_OK) s->code = iso_fail(s->err, ISO_NOMEM, "out of memory");
  return false;
}

/* Source of the target's dtype and with elements? */
bool rel_usable(const search *s, size_t i) {
  const rule_tensor *a = s->x->source[i];
  return a && a->dtype == s->t->dtype && a->numel > 0;
}

/* ---- a source as it is, transposed or reshaped ---- */

/* Keep `i` as the choice if its name is more alike; the second one found makes a tie. */
static void prefer(search *s, size_t i, int64_t *best, bool *tied) {
  if (*best >= 0) {
    *tied = true;
    if (rel_likeness(s, (uint32_t)i) <= rel_likeness(s, (uint32_t)*best)) return;
  }
  *best = (int64_t)i;
}

/* Different tensors differ early. Once one differed late there may be many that do, which hashes
 * tell apart. */
static bool same_bytes(search *s, size_t i) {
  enum { EARLY = 4096 };
  const rule_tensor *a = s->x->source[i];
  if (!a || a->dtype != s->t->dtype || a->numel != s->t->numel) return false;
  const size_t n = (size_t)a->numel * rule_dtype_size(a->dtype), early = n < EARLY ? n : EARLY;
  if (n == 0) return true;
  if (memcmp(a->data, s->t->data, early) != 0) return false;
  if (s->late && !s->has_flat) s->flat = iso_hash(s->t->data, n, 0), s->has_flat = true;
  if (s->late && index_flat(s->x, i) != s->flat) return false;
  if (memcmp(a->data, s->t->data, n) == 0) return true;
  s->late = true;
  return false;
}

static uint64_t multiset_of(search *s) {
  if (!s->has_multiset)
    s->multiset = view_hash_multiset(s->t, s->x->threads), s->has_multiset = true;
  return s->multiset;
}

static bool find_itself(search *s, synth_relation *out) {
  int64_t best = -1;
  bool tied = false;
  for (size_t i = 0; i < s->x->n; i++)
    if (s->x->source[i] && rule_shape_eq(&s->x->source[i]->shape, &s->t->shape) && same_bytes(s, i))
      prefer(s, i, &best, &tied);
  return best >= 0 && rel_finish(s, rel_source(s, (uint32_t)best), tied, out);
}

static bool find_transpose(search *s, synth_relation *out) {
  const rule_shape *shape = &s->t->shape;
  if (shape->rank != 2) return false;
  view tv = view_dense(s->t, shape);
  int64_t best = -1, work = 0;
  bool tied = false, hashed = false; /* once one differed late */
  for (size_t i = 0; i < s->x->n; i++) {
    const rule_tensor *a = s->x->source[i];
    if (!rel_usable(s, i) || a->shape.rank != 2 || a->shape.dim[0] != shape->dim[1] ||
        a->shape.dim[1] != shape->dim[0])
      continue;
    const view sv = view_turned(view_dense(a, &a->shape)), row = view_slice(sv, 0, 0, 1),
               first = view_slice(tv, 0, 0, 1);
    if (!view_equal(&first, &row, &work) || (hashed && index_multiset(s->x, i) != multiset_of(s)))
      continue;
    if (view_equal(&tv, &sv, &work)) prefer(s, i, &best, &tied);
    else hashed = true;
  }
  return best >= 0 && rel_finish(s, rel_transpose(s, rel_source(s, (uint32_t)best)), tied, out);
}

static bool find_reshape(search *s, synth_relation *out) {
  int64_t best = -1;
  bool tied = false;
  for (size_t i = 0; i < s->x->n; i++)
    if (same_bytes(s, i)) prefer(s, i, &best, &tied);
  return best >= 0 &&
         rel_finish(s, rel_reshape(s, rel_source(s, (uint32_t)best), &s->t->shape), tied, out);
}

/* ---- permutations ---- */

/* Does some permutation of `src` read as `shape` hold the target's elements in order? With `exact`,
 * of the target's shape too. Cost: one comparison for nearly every wrong permutation. */
static bool try_permutations(search *s, uint32_t src, const rule_shape *shape, bool exact,
                             rel_made *out) {
  uint32_t perm[RULE_MAX_RANK];
  view sv = view_dense(s->x->source[src], shape);
  for (uint32_t d = 0; d < shape->rank; d++) perm[d] = d;
  while (s->permute_work > 0 && rel_next_permutation(perm, shape->rank)) {
    view pv = sv;
    rule_shape ps = *shape;
    for (uint32_t d = 0; d < shape->rank; d++) {
      ps.dim[d] = pv.dim[d] = sv.dim[perm[d]];
      pv.stride[d] = sv.stride[perm[d]];
    }
    if (exact && !rule_shape_eq(&ps, &s->t->shape)) continue;
    view tv = view_dense(s->t, &ps);
    if (!view_equal(&pv, &tv, &s->permute_work)) continue;
    rel_made m = rel_permute(s, rel_reshape(s, rel_source(s, src), shape), perm);
    *out = rel_reshape(s, m, &s->t->shape);
    return true;
  }
  return false;
}

/* One dimension in two or three factors: heads, groups, parts, halves of a head. */
static bool try_factors(search *s, uint32_t src, const rule_shape *shape, uint32_t parts,
                        rel_made *out) {
  if (shape->rank + parts - 1 > FACTOR_RANK) return false;
  for (uint32_t d = 0; d < shape->rank; d++) {
    int64_t n = shape->dim[d];
    for (int64_t a = 2; a <= n / 2 && s->permute_work > 0; a++) {
      s->permute_work--;
      if (n % a != 0) continue;
      if (parts == 2) {
        rule_shape f = rel_shape_split(shape, d, (int64_t[]){a, n / a}, 2);
        if (try_permutations(s, src, &f, false, out)) return true;
        continue;
      }
      for (int64_t b = 2; b <= n / a / 2; b++) {
        if (n / a % b != 0) continue;
        rule_shape f = rel_shape_split(shape, d, (int64_t[]){a, b, n / a / b}, 3);
        if (try_permutations(s, src, &f, false, out)) return true;
      }
    }
  }
  return false;
}

static bool permuted(search *s, uint32_t src, rel_made *out) {
  const rule_shape *full = &s->x->source[src]->shape;
  rule_shape shape = {0};
  if (full->rank <= FACTOR_RANK && try_permutations(s, src, full, true, out)) return true;
  for (uint32_t d = 0; d < full->rank; d++)
    if (full->dim[d] != 1) shape.dim[shape.rank++] = full->dim[d];
  if (shape.rank > FACTOR_RANK) return false;
  return try_permutations(s, src, &shape, false, out) || try_factors(s, src, &shape, 2, out) ||
         try_factors(s, src, &shape, 3, out);
}

static bool find_permutation(search *s, synth_relation *out) {
  for (;;) {
    /* the most alike source not yet tried; `used` marks those that were */
    int64_t best = -1;
    bool tied = false;
    rel_made m = {0};
    for (size_t i = 0; i < s->x->n; i++) {
      if (s->used[i] == UINT32_MAX || !rel_usable(s, i) || s->x->source[i]->numel != s->t->numel)
        continue;
      if (index_multiset(s->x, i) == multiset_of(s)) prefer(s, i, &best, &tied);
    }
    if (best < 0 || s->permute_work <= 0) return false;
    s->used[best] = UINT32_MAX;
    if (!permuted(s, (uint32_t)best, &m)) continue;
    tied = false;
    for (size_t i = 0; i < s->x->n; i++)
      tied =
          tied || (i != (size_t)best && rel_usable(s, i) && s->x->source[i]->numel == s->t->numel &&
                   index_flat(s->x, i) == index_flat(s->x, (size_t)best));
    return rel_finish(s, m, tied, out);
  }
}

/* ---- parts of a source in another shape ---- */

/* Rows of a matrix that the target holds in other dimensions (a parameter kept flat): the target is
 * read with the rows' length, and the relation found is reshaped. */
static bool find_refolded(search *s, synth_relation *out) {
  const rule_tensor *whole = s->t;
  bool found = false;
  for (size_t i = 0; i < s->x->n && !found && s->code == ISO_OK; i++) {
    const rule_tensor *a = s->x->source[i];
    if (!rel_usable(s, i) || a->shape.rank != 2) continue;
    const int64_t row = a->shape.dim[1];
    bool seen = row < 2 || whole->numel % row != 0 || a->numel < whole->numel ||
                (whole->shape.rank == 2 && whole->shape.dim[1] == row);
    for (size_t k = 0; k < i && !seen; k++) {
      const rule_tensor *b = s->x->source[k];
      seen = rel_usable(s, k) && b->shape.rank == 2 && b->shape.dim[1] == row &&
             b->numel >= whole->numel;
    }
    if (seen) continue;
    rule_tensor folded = *whole;
    folded.shape = (rule_shape){.rank = 2, .dim = {whole->numel / row, row}};
    synth_relation part = {0};
    s->t = &folded;
    found = rel_find_cover(s, &part);
    s->t = whole;
    found =
        found && rel_finish(s, rel_reshape(s, (rel_made){part.term, folded.shape}, &whole->shape),
                            part.tied, out);
  }
  return found;
}

/* ---- the order of attack ---- */

static void attack(search *s, synth_relation *out) {
  if (s->t->numel == 0) {
    find_itself(s, out);
    return;
  }
  bool found = rel_find_block(s, out) || rel_find_constant(s, out) || find_itself(s, out) ||
               find_transpose(s, out) || find_reshape(s, out) || find_permutation(s, out) ||
               rel_find_cover(s, out);
  if (!found && s->code == ISO_OK) found = rel_find_turned(s, out);
  if (!found && s->code == ISO_OK) found = rel_find_window(s, out);
  if (!found && s->code == ISO_OK) find_refolded(s, out);
}

iso_code synth_relate(synth_index *x, const rule_tensor *target, const char *name, iso_arena *arena,
                      synth_relation *out, iso_error *err) {
  search s = {.x = x,
              .t = target,
              .name = name,
              .arena = arena,
              .err = err,
              .walk_work = WALK_WORK,
              .permute_work = PERMUTE_WORK};
  synth_relation found = {0};
  s.like = malloc((x->n + 1) * sizeof *s.like);
  s.used = calloc(x->n + 1, sizeof *s.used);
  if (s.like && s.used) {
    memset(s.like, 0xff, (x->n + 1) * sizeof *s.like);
    attack(&s, &found);
  } else {
    rel_no_memory(&s);
  }
  free(s.like);
  free(s.used);
  if (s.code == ISO_OK) *out = found;
  return s.code;
}
