/* Left outputs that are nothing that was found of the right ones: a difference where there is a
 * witness, else undecided, and never an error. */
#include "cli/commands/compare_int.h"
#include "rules/names.h"

#include <math.h>
#include <stdlib.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

void cmp_find_unpaired(pair *p) {
  const relations *r = &p->relations;
  bool *open = calloc(r->n_results[0] + 1, 1);
  if (open && relations_open(r, p->graph[0], p->graph[1], false, open))
    for (size_t i = 0; i < r->n_results[0] && !p->unrelated; i++)
      if (open[i]) p->unrelated = r->result[0][i].name;
  free(open);
}

/* ---- witnesses ---- */

static iso_code differs(pair *p, synth_divergence of, const char *hint, iso_error *err) {
  synth_result *r = p->result;
  synth_divergence *d = iso_arena_alloc(&r->arena, sizeof *d);
  if (!d || !hint) return nomem(err);
  *d = of;
  d->left = p->relations.result[0][p->why.left].node;
  d->hint = hint;
  d->at[0] = d->at[1] = -1;
  d->shape = p->graph[0]->node[d->left].output[0].shape;
  r->verdict = SYNTH_DIFFERENT;
  r->reason = NULL;
  r->divergence = d;
  r->n_divergences = 1;
  r->witness_output = p->unrelated;
  r->witness_abs = d->max_abs;
  r->witness_rel = d->max_rel;
  return ISO_OK;
}

/* An element of the output that no right output holds. */
static iso_code show_apart(pair *p, iso_error *err) {
  synth_result *r = p->result;
  const char *hint =
      iso_arena_printf(&r->arena,
                       "element %lld (row-major) of %s is %.9g; no right output has it, and no sum "
                       "of some does: the nearest is %.9g",
                       (long long)p->why.apart, p->unrelated, p->why.value, p->why.nearest);
  synth_divergence d = {.right = -1, .index = p->why.apart};
  d.max_abs = fabs(p->why.value - p->why.nearest);
  d.max_rel = p->why.value != 0 ? d.max_abs / fabs(p->why.value) : 1;
  r->redrawn = r->redrawn_parameters = p->why.redrawn;
  return differs(p, d, hint, err);
}

static int64_t numel(const pair *p, int side, size_t result) {
  const uint32_t node = p->relations.result[side][result].node;
  const rule_shape *s = &p->graph[side]->node[node].output[0].shape;
  int64_t n = 1;
  for (uint32_t d = 0; d < s->rank; d++) n *= s->dim[d];
  return n;
}

static size_t of_stem(const pair *p, int side, const char *name) {
  size_t n = 0;
  for (size_t i = 0; i < p->relations.n_results[side]; i++)
    n += synth_same_stem(p->relations.result[side][i].name, name);
  return n;
}

/* Whether some right outputs, each once, have `want` elements together. Too many to try: true. */
static bool adds_up(const int64_t *n, size_t n_n, int64_t want) {
  enum { TRIED = 12 };
  if (n_n > TRIED) return true;
  for (size_t set = 1; set < (size_t)1 << n_n; set++) {
    int64_t sum = 0;
    for (size_t i = 0; i < n_n; i++) sum += set >> i & 1 ? n[i] : 0;
    if (sum == want) return true;
  }
  return false;
}

/* Whether numbers of elements alone show that the left output is no relation of right ones: a
 * rearrangement keeps them all, and summands have as many as their sum. Parts of several ranks may
 * have padding besides. Sizes that are open are those captured. `right`: its counterpart, -1: there
 * are several. */
static bool of_other_counts(const pair *p, size_t left, int64_t *right) {
  const relations *r = &p->relations;
  const char *name = r->result[0][left].name;
  const int64_t want = numel(p, 0, left);
  const bool named = of_stem(p, 1, name) > 0;
  int64_t *n = calloc(r->n_results[1] + 1, sizeof *n), all = 0;
  size_t k = 0;
  *right = -1;
  for (size_t i = 0; n && i < r->n_results[1]; i++) {
    const char *other = r->result[1][i].name;
    if (named ? !synth_same_stem(other, name) : of_stem(p, 0, other) > 0) continue;
    *right = (int64_t)i;
    n[k++] = numel(p, 1, i);
    all += n[k - 1];
  }
  bool other;
  if (k < 2) other = k == 1 && of_stem(p, 0, name) == 1 && all != want;
  else if (named) other = of_stem(p, 0, name) == 1 && all < want;
  else other = !adds_up(n, k, want);
  if (k > 1) *right = -1;
  free(n);
  return other;
}

/* The first output that was left out for want of a relation, and has other counts. */
static bool find_other_counts(pair *p, int64_t *right) {
  const relations *r = &p->relations;
  for (size_t i = 0; i < r->n_results[0]; i++) {
    const bool own = r->left[i].left_out && !*r->left[i].where;
    if ((!own && i != p->why.left) || !of_other_counts(p, i, right)) continue;
    p->why.left = (uint32_t)i;
    p->unrelated = r->result[0][i].name;
    return true;
  }
  return false;
}

static iso_code show_counts(pair *p, int64_t right, iso_error *err) {
  iso_arena *a = &p->result->arena;
  const long long n = (long long)numel(p, 0, p->why.left);
  const char *hint =
      right < 0
          ? iso_arena_printf(a,
                             "%s has %lld elements on the left; no outputs on the right have as "
                             "many, and no relation of them was found",
                             p->unrelated, n)
          : iso_arena_printf(a,
                             "%s has %lld elements on the left and %lld on the right, and no "
                             "relation of them was found",
                             p->unrelated, n, (long long)numel(p, 1, (size_t)right));
  const int64_t node = right < 0 ? -1 : (int64_t)p->relations.result[1][right].node;
  return differs(p, (synth_divergence){.right = node, .index = -1}, hint, err);
}

/* ---- the verdict ---- */

iso_code cmp_say_unrelated(pair *p, bool unrun, uint64_t seed, iso_error *err) {
  int64_t right = -1;
  if (!p->result) {
    if (!(p->result = calloc(1, sizeof *p->result))) return nomem(err);
    p->result->coverage.not_run[0] = p->result->coverage.not_run[1] = -1;
  } else if (p->result->verdict == SYNTH_DIFFERENT) return ISO_OK;
  p->result->witness_seed = seed;
  if (!unrun && p->why.apart >= 0) return show_apart(p, err);
  if (!unrun && find_other_counts(p, &right)) return show_counts(p, right, err);
  p->result->verdict = SYNTH_UNDECIDED;
  p->result->reason =
      p->stopped ? p->stopped
                 : iso_arena_printf(
                       &p->result->arena,
                       unrun ? "%s is no right output as it stands, and without a run no relation "
                               "of them is looked for"
                             : "nothing was found that %s is of the right outputs: no "
                               "rearrangement, no sum",
                       p->unrelated);
  return p->result->reason ? ISO_OK : nomem(err);
}
