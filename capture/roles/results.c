/* Which results of the teams are one.
 *
 * A result is called NAME_rank<r>, and NAME where it is the first rank's that gives it: rank 0's,
 * or of a stage of a pipeline that of another one. Every name has to be given by whole rows: then
 * the rank that the plain name is of is the one that its row lacks. That it is so is not taken for
 * granted: teams are compared from these results on (same.c). */
#include <stdlib.h>
#include <string.h>

#include "capture/roles/roles_int.h"

typedef struct given {
  const char *name;
  size_t stem;   /* characters of the name without its rank */
  uint32_t rank; /* ROLES_NONE: not told */
  uint32_t at;   /* in the graph's list */
} given;

static given read_name(const cap_result *r, uint32_t at) {
  static const char mark[] = "_rank";
  const char *end = r->name + strlen(r->name), *digits = end;
  given out = {.name = r->name, .stem = strlen(r->name), .rank = ROLES_NONE, .at = at};
  while (digits > r->name && digits[-1] >= '0' && digits[-1] <= '9') digits--;
  const size_t n = (size_t)(digits - r->name);
  if (digits == end || end - digits > 7 || n < sizeof mark ||
      memcmp(digits - (sizeof mark - 1), mark, sizeof mark - 1) != 0 || *digits == '0')
    return out;
  out.stem = n - (sizeof mark - 1);
  out.rank = (uint32_t)strtoul(digits, NULL, 10);
  return out;
}

static int by_stem(const void *pa, const void *pb) {
  const given *a = pa, *b = pb;
  const size_t n = a->stem < b->stem ? a->stem : b->stem;
  const int c = memcmp(a->name, b->name, n);
  if (c || a->stem != b->stem) return c ? c : a->stem < b->stem ? -1 : 1;
  return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1) : a->at < b->at ? -1 : 1;
}

static bool same_stem(const given *a, const given *b) {
  return a->stem == b->stem && memcmp(a->name, b->name, a->stem) == 0;
}

/* Of one name: the rank that its row lacks is the one without a number. Returns: false where rows
 * lack more. `slot`: by rank, and ROLES_NONE everywhere again afterwards. */
static bool fill_row(const roles_work *x, const given *of, size_t n, uint32_t *slot,
                     uint32_t *rank) {
  const bool plain = of[n - 1].rank == ROLES_NONE;
  uint32_t lacks = ROLES_NONE;
  bool fits = true;
  for (size_t i = 0; i + plain < n; i++) fits = fits && of[i].rank < x->n_all;
  for (size_t i = 0; i + plain < n && fits; i++) slot[of[i].rank] = (uint32_t)i;
  for (size_t i = 0; i + plain < n && fits; i++)
    for (uint32_t team = 0; team < x->n_ranks && fits; team++) {
      const uint32_t r = roles_rank(x, team, roles_member(x, of[i].rank));
      if (slot[r] != ROLES_NONE || r == lacks) continue;
      fits = lacks == ROLES_NONE;
      lacks = r;
    }
  for (size_t i = 0; i + plain < n; i++)
    if (of[i].rank < x->n_all) slot[of[i].rank] = ROLES_NONE;
  for (size_t i = 0; i < n; i++) rank[of[i].at] = of[i].rank == ROLES_NONE ? lacks : of[i].rank;
  return fits && plain == (lacks != ROLES_NONE);
}

/* The rank that gives each result. Returns: false where one cannot be told. */
static bool find_ranks(const roles_work *x, given *all, uint32_t *slot, uint32_t *rank) {
  const size_t n = x->g->n_results;
  for (uint32_t i = 0; i < n; i++) all[i] = read_name(&x->g->result[i], i);
  for (uint32_t r = 0; r < x->n_all; r++) slot[r] = ROLES_NONE;
  qsort(all, n, sizeof *all, by_stem);
  for (size_t i = 0, k; i < n; i += k) {
    for (k = 1; i + k < n && same_stem(&all[i], &all[i + k]);) k++;
    if (!fill_row(x, all + i, k, slot, rank)) return false;
  }
  return true;
}

/* The first member's as it was, and the others' with their number in the team behind. */
static const char *name_of(const roles_work *x, const given *of, uint32_t member, bool first) {
  return first ? iso_arena_strndup(&x->g->arena, of->name, of->stem)
               : iso_arena_printf(&x->g->arena, "%.*s_rank%u", (int)of->stem, of->name, member);
}

/* Results of one name: `number` has those of the first team. Returns: false without memory. */
static bool list_name(roles_work *x, const given *of, size_t n, const uint32_t *rank,
                      const uint32_t *number, uint32_t *by_member) {
  uint32_t first = ROLES_NONE;
  for (size_t i = 0; i < n; i++) {
    const uint32_t r = rank[of[i].at], member = roles_member(x, r);
    if (roles_team_of(x, r) != 0) continue;
    by_member[member] = number[of[i].at];
    if (member < first) first = member;
  }
  for (size_t i = 0; i < n; i++) {
    const uint32_t r = rank[of[i].at], member = roles_member(x, r), team = roles_team_of(x, r);
    x->own[(size_t)team * x->n_own + by_member[member]] = of[i].at;
    if (team == 0 &&
        !(x->own_name[by_member[member]] = name_of(x, &of[i], member, member == first)))
      return false;
  }
  return true;
}

/* By team, in the order in which the first team's stand in the graph. */
static bool list_all(roles_work *x, const given *all, const uint32_t *rank, uint32_t *number,
                     uint32_t *by_member) {
  const size_t n = x->g->n_results;
  uint32_t j = 0;
  for (size_t i = 0; i < n; i++)
    if (roles_team_of(x, rank[i]) == 0) number[i] = j++;
  for (size_t i = 0, k; i < n; i += k) {
    for (k = 1; i + k < n && same_stem(&all[i], &all[i + k]);) k++;
    if (!list_name(x, all + i, k, rank, number, by_member)) return false;
  }
  return true;
}

/* The graph is every rank's, and its results are each one's own. */
static iso_code list_once(roles_work *x) {
  x->n_own = (uint32_t)x->g->n_results;
  for (uint32_t j = 0; j < x->n_own; j++) x->own[j] = j, x->own_name[j] = x->g->result[j].name;
  return ISO_OK;
}

iso_code roles_own_results(roles_work *x) {
  const size_t n = x->g->n_results;
  given *all = calloc(n + 1, sizeof *all);
  uint32_t *rank = calloc(n + 1, sizeof *rank), *number = calloc(n + 1, sizeof *number),
           *slot = calloc(x->n_all + 1, sizeof *slot);
  x->own = calloc(n + 1, sizeof *x->own);
  x->own_name = calloc(n + 1, sizeof *x->own_name);
  iso_code c = all && rank && number && slot && x->own && x->own_name ? ISO_OK : roles_nomem(x);
  if (!c && n && x->once) c = list_once(x);
  else if (!c && (n == 0 || !find_ranks(x, all, slot, rank)))
    c = roles_refuse(x, "not all ranks give the same outputs");
  if (!c && !roles_refused(x) && !x->once) {
    x->n_own = (uint32_t)(n / x->n_ranks);
    if (!list_all(x, all, rank, number, slot)) c = roles_nomem(x);
  }
  free(all);
  free(rank);
  free(number);
  free(slot);
  return c;
}

const cap_result *roles_result_of(const roles_work *x, uint32_t j, uint32_t team) {
  return &x->g->result[x->own[(size_t)(x->once ? 0 : team) * x->n_own + j]];
}
