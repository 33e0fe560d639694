/* The best DAG by branch and bound.
 *
 * A lower bound: each class asks a price of the classes that use it, such that for each of its
 * e-nodes the cost plus the prices of the children cover the price paid to the class. The price
 * paid to the roots is a bound (the dual of the linear program in which a class pays a child once,
 * for all of its e-nodes that need it). Prices go up from the leaves, and surplus goes back, in
 * turns. The cost of an e-node beyond the price paid to its class is its reduced cost: choosing it
 * raises the bound by so much, and so does a price that was asked of a class which does without a
 * child that is used. Costs of distinct classes that are sure to be used are another bound. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/extract/extract_int.h"

enum { MAX_PASSES = 200, PATIENCE = 4 };

/* A class and a class that some of its e-nodes need. */
typedef struct pair {
  uint32_t cls, kid;
  uint32_t first; /* its e-nodes in `user`: from here to the next one's */
  uint32_t mark;
  double price;
} pair;

typedef struct frame {
  uint32_t cls, next; /* the e-node to try next, as they are sorted */
  size_t n_trail;
  double decided, sure, dual;
} frame;

typedef struct search {
  egi_dag *d;
  double *mem;
  uint32_t *words;
  pair *pair;
  uint32_t n_pair;
  uint32_t *first_pair, *first_up;    /* per class: its pairs; the pairs of which it is the kid */
  uint32_t *up, *user, *pair_of;      /* pairs; e-nodes; per child of an e-node its pair */
  uint32_t *order, *rank;             /* classes from the leaves up, by tree cost */
  double *paid, *reduced;             /* per class, per e-node */
  double *least_cost, *least_reduced; /* per class, of e-nodes that are not dead */
  bool *flags, *is_root, *dead, *needed;
  uint32_t *sorted, *spare, *n_live; /* e-nodes of each class by reduced cost, the dead last */
  uint32_t *open, *place, n_open, stamp;
  uint32_t *best; /* the choices to beat */
  uint32_t *trail;
  size_t n_trail;
  frame *frame;
  size_t n_frame;
  double limit, best_cost, gap; /* what costs as much as the limit is no better */
  double bound, decided, sure, dual;
} search;

/* ---- laying out ---- */

static double tree_cost_of(const egi_dag *d, uint32_t c) { return d->x->best[d->cls[c]]; }

/* Merge sort: equal ones stay as they are. */
static void sort_by(uint32_t *a, uint32_t *spare, size_t n, const double *key) {
  if (n < 2) return;
  const size_t half = n / 2;
  sort_by(a, spare, half, key);
  sort_by(a + half, spare, n - half, key);
  memcpy(spare, a, half * sizeof *a);
  for (size_t i = 0, k = half, out = 0; i < half; out++)
    a[out] = k < n && key[a[k]] < key[spare[i]] ? a[k++] : spare[i++];
}

static bool reserve(search *s) {
  const egi_dag *d = s->d;
  const size_t n = d->n_cls + 1u, m = d->n_node + 1u, k = d->at[d->n_node] + 1u;
  s->mem = calloc(3 * n + m, sizeof *s->mem);
  s->words = calloc(8 * n + 2 * m + 3 * k, sizeof *s->words);
  s->flags = calloc(2 * n + m, sizeof *s->flags);
  s->pair = calloc(k, sizeof *s->pair);
  s->frame = malloc(n * sizeof *s->frame);
  s->trail = malloc(2 * n * sizeof *s->trail);
  if (!s->mem || !s->words || !s->flags || !s->pair || !s->frame || !s->trail) return false;
  double **doubles[] = {&s->paid, &s->least_cost, &s->least_reduced};
  for (size_t i = 0; i < 3; i++) *doubles[i] = s->mem + i * n;
  s->reduced = s->mem + 3 * n;
  uint32_t **by_class[] = {&s->first_pair, &s->first_up, &s->order, &s->rank,
                           &s->n_live,     &s->open,     &s->place, &s->best};
  for (size_t i = 0; i < 8; i++) *by_class[i] = s->words + i * n;
  s->sorted = s->words + 8 * n;
  s->spare = s->sorted + m;
  s->up = s->spare + m;
  s->user = s->up + k;
  s->pair_of = s->user + k;
  s->is_root = s->flags;
  s->needed = s->flags + n;
  s->dead = s->flags + 2 * n;
  return true;
}

/* Pairs of each class, and for each the e-nodes that need it. `seen` per class: the pair and one.
 */
static void find_pairs(search *s, uint32_t *seen) {
  const egi_dag *d = s->d;
  for (uint32_t c = 0; c < d->n_cls; c++) {
    const uint32_t begin = s->first_pair[c] = s->n_pair;
    for (uint32_t k = d->at[d->first[c]]; k < d->at[d->first[c + 1]]; k++) {
      const uint32_t kid = d->kid[k], old = seen[kid];
      if (old <= begin) {
        seen[kid] = s->n_pair + 1;
        s->pair[s->n_pair++] = (pair){.cls = c, .kid = kid};
        s->first_up[kid]++;
      }
      s->pair_of[k] = seen[kid] - 1;
      s->pair[s->pair_of[k]].first++;
    }
  }
  s->first_pair[d->n_cls] = s->n_pair;
}

/* Counts become where each one's list begins. */
static void fill_lists(search *s) {
  const egi_dag *d = s->d;
  uint32_t at = 0;
  for (uint32_t c = 0; c <= d->n_cls; c++) at += s->first_up[c], s->first_up[c] = at;
  for (uint32_t q = s->n_pair; q-- > 0;) s->up[--s->first_up[s->pair[q].kid]] = q;
  at = 0;
  for (uint32_t q = 0; q <= s->n_pair; q++) at += s->pair[q].first, s->pair[q].first = at;
  for (uint32_t m = d->n_node; m-- > 0;)
    for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++) s->user[--s->pair[s->pair_of[k]].first] = m;
}

static void put_in_order(search *s) {
  const egi_dag *d = s->d;
  double *key = s->least_cost;
  for (uint32_t c = 0; c < d->n_cls; c++) s->order[c] = c, key[c] = tree_cost_of(d, c);
  sort_by(s->order, s->place, d->n_cls, key);
  for (uint32_t i = 0; i < d->n_cls; i++) s->rank[s->order[i]] = i;
}

/* ---- prices ---- */

static double worth(const search *s, uint32_t m) {
  const egi_dag *d = s->d;
  double sum = d->cost[m];
  for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++) sum += s->pair[s->pair_of[k]].price;
  return sum;
}

/* Reduced costs anew. Returns: the least. */
static double reduce(search *s, uint32_t c) {
  const egi_dag *d = s->d;
  double least = HUGE_VAL;
  for (uint32_t m = d->first[c]; m < d->first[c + 1]; m++) {
    if (s->dead[m]) continue;
    s->reduced[m] = worth(s, m) - s->paid[c];
    if (s->reduced[m] < least) least = s->reduced[m];
  }
  egi_dag_spend(s->d, 1 + d->at[d->first[c + 1]] - d->at[d->first[c]]);
  return least;
}

static bool asks_of(const search *s, uint32_t q, bool first) {
  const pair *p = &s->pair[q];
  if (first) return s->rank[p->cls] > s->rank[p->kid];
  for (uint32_t i = p->first; i < p[1].first; i++)
    if (!s->dead[s->user[i]] && s->reduced[s->user[i]] <= 1e-12) return true;
  return false;
}

/* Raises the price paid to a class as far as it goes: a root keeps it, others ask it of classes
 * above them that would pay, in equal parts. */
static void raise(search *s, uint32_t c, bool first) {
  const double more = reduce(s, c);
  uint32_t n = 0;
  if (!(more > 1e-12) || more == HUGE_VAL) return;
  for (uint32_t i = s->first_up[c]; !s->is_root[c] && i < s->first_up[c + 1]; i++)
    n += asks_of(s, s->up[i], first);
  if (!n && !s->is_root[c]) return;
  s->paid[c] += more;
  for (uint32_t m = s->d->first[c]; m < s->d->first[c + 1]; m++) s->reduced[m] -= more;
  for (uint32_t i = s->first_up[c], left = n; left && i < s->first_up[c + 1]; i++) {
    const pair *p = &s->pair[s->up[i]];
    if (!asks_of(s, s->up[i], first)) continue;
    s->pair[s->up[i]].price += more / n;
    left--;
    for (uint32_t k = p->first; k < p[1].first; k++) s->reduced[s->user[k]] += more / n;
  }
}

/* Prices of children that only e-nodes need which cost more than the class is paid. */
static void give_back(search *s, uint32_t c) {
  (void)reduce(s, c);
  for (uint32_t q = s->first_pair[c]; q < s->first_pair[c + 1]; q++) {
    pair *p = &s->pair[q];
    double back = p->price;
    for (uint32_t i = p->first; i < p[1].first; i++)
      if (!s->dead[s->user[i]] && s->reduced[s->user[i]] < back) back = s->reduced[s->user[i]];
    if (!(back > 1e-12)) continue;
    p->price -= back;
    s->paid[p->kid] -= back;
    for (uint32_t i = p->first; i < p[1].first; i++) s->reduced[s->user[i]] -= back;
  }
}

/* Kills an e-node that no better choice can use. A class that is left without e-nodes kills the
 * e-nodes that need it. */
static void kill_node(search *s, uint32_t node) {
  uint32_t *stack = s->open, n = 0; /* of classes that died */
  s->dead[node] = true;
  if (--s->n_live[s->d->of[node]] == 0) stack[n++] = s->d->of[node];
  while (n > 0) {
    const uint32_t c = stack[--n];
    for (uint32_t i = s->first_up[c]; i < s->first_up[c + 1]; i++) {
      const pair *p = &s->pair[s->up[i]];
      for (uint32_t k = p->first; k < p[1].first; k++) {
        const uint32_t m = s->user[k];
        if (s->dead[m]) continue;
        s->dead[m] = true;
        if (--s->n_live[p->cls] == 0) stack[n++] = p->cls;
      }
    }
  }
}

static double paid_to_roots(const search *s) {
  double sum = 0;
  for (uint32_t i = 0; i < s->d->n_root; i++) sum += s->paid[s->d->root[i]];
  return sum;
}

static void kill_dear(search *s) {
  for (uint32_t m = 0; m < s->d->n_node; m++)
    if (!s->dead[m] && s->bound + s->reduced[m] >= s->limit) kill_node(s, m);
}

/* ---- chains: a choice that uses an e-node has a chain of others above it, and one below ---- */

/* A lower bound on the cost of a class: its e-node and the dearest child. It goes up from zero, so
 * it holds whenever the iteration stops. Returns: whether something changed. */
static bool raise_below(search *s, double *below) {
  const egi_dag *d = s->d;
  bool changed = false;
  for (uint32_t i = 0; i < d->n_cls; i++) {
    const uint32_t c = s->order[i];
    double least = HUGE_VAL;
    for (uint32_t m = d->first[c]; m < d->first[c + 1]; m++) {
      double most = 0;
      for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++)
        if (below[d->kid[k]] > most) most = below[d->kid[k]];
      s->reduced[m] = d->cost[m] + most;
      if (!s->dead[m] && s->reduced[m] < least) least = s->reduced[m];
    }
    egi_dag_spend(s->d, 1 + d->at[d->first[c + 1]] - d->at[d->first[c]]);
    changed = changed || least > below[c] + 1e-9 * least;
    below[c] = least;
  }
  return changed;
}

/* The cheapest chain from a root down to a class, without the class; goes down, and holds when
 * nothing changes any more. Returns: whether something changed. */
static bool lower_above(search *s, double *above) {
  const egi_dag *d = s->d;
  bool changed = false;
  for (uint32_t i = d->n_cls; i-- > 0;) {
    const uint32_t c = s->order[i];
    for (uint32_t m = d->first[c]; m < d->first[c + 1]; m++)
      for (uint32_t k = d->at[m]; !s->dead[m] && k < d->at[m + 1]; k++)
        if (above[c] + d->cost[m] < above[d->kid[k]])
          above[d->kid[k]] = above[c] + d->cost[m], changed = true;
    egi_dag_spend(s->d, 1 + d->at[d->first[c + 1]] - d->at[d->first[c]]);
  }
  return changed;
}

static void kill_far(search *s) {
  enum { CHAIN_PASSES = 64, MAX_ROUNDS = 4 };
  const egi_dag *d = s->d;
  double *below = s->least_cost, *above = s->least_reduced;
  bool killed = true;
  for (int round = 0; killed && round < MAX_ROUNDS && d->work; round++) {
    killed = false;
    for (uint32_t c = 0; c < d->n_cls; c++) below[c] = 0, above[c] = s->is_root[c] ? 0 : HUGE_VAL;
    for (int i = 0; i < CHAIN_PASSES && raise_below(s, below); i++) {
    }
    bool moved = true;
    for (int i = 0; moved && i < CHAIN_PASSES; i++) moved = lower_above(s, above);
    for (uint32_t m = 0; m < d->n_node; m++) {
      const double chain = s->reduced[m] + (moved ? 0 : above[d->of[m]]);
      if (s->dead[m] || chain < s->limit) continue;
      kill_node(s, m);
      killed = true;
    }
  }
}

static void find_prices(search *s) {
  const egi_dag *d = s->d;
  int idle = 0;
  for (int pass = 0; pass < MAX_PASSES && idle < PATIENCE && d->work; pass++) {
    for (uint32_t i = d->n_cls; pass && i-- > 0;) give_back(s, s->order[i]);
    for (uint32_t i = 0; i < d->n_cls; i++) raise(s, s->order[i], pass == 0);
    const double now = paid_to_roots(s);
    idle = now > s->bound + 1e-6 * s->best_cost ? 0 : idle + 1;
    s->bound = now > s->bound ? now : s->bound;
    for (uint32_t c = 0; c < d->n_cls; c++) (void)reduce(s, c);
    kill_dear(s);
    if (s->bound >= s->limit) return;
  }
}

/* E-nodes sorted, the least of each class known. */
static void settle(search *s) {
  const egi_dag *d = s->d;
  s->bound = paid_to_roots(s);
  for (uint32_t c = 0; c < d->n_cls; c++) {
    (void)reduce(s, c);
    s->least_cost[c] = s->least_reduced[c] = HUGE_VAL;
    for (uint32_t m = d->first[c]; m < d->first[c + 1]; m++) {
      if (s->dead[m]) s->reduced[m] = HUGE_VAL;
      else if (d->cost[m] < s->least_cost[c]) s->least_cost[c] = d->cost[m];
      if (s->reduced[m] < s->least_reduced[c]) s->least_reduced[c] = s->reduced[m];
      s->sorted[m] = m;
    }
    const uint32_t n = d->first[c + 1] - d->first[c];
    sort_by(s->sorted + d->first[c], s->spare, n, s->reduced);
  }
}

/* ---- the search ---- */

static void put_open(search *s, uint32_t c) {
  s->place[c] = s->n_open;
  s->open[s->n_open++] = c;
}
static void take_open(search *s, uint32_t c) {
  const uint32_t last = s->open[--s->n_open];
  s->open[s->place[c]] = last;
  s->place[last] = s->place[c];
}

/* Because of the class `by`. */
static void need(search *s, uint32_t c, uint32_t by) {
  if (s->needed[c]) return;
  s->needed[c] = true;
  s->trail[s->n_trail++] = 2 * c;
  put_open(s, c);
  s->sure += s->least_cost[c];
  s->dual += s->least_reduced[c];
  for (uint32_t i = s->first_up[c]; i < s->first_up[c + 1]; i++) {
    const pair *p = &s->pair[s->up[i]];
    if (p->cls != by && s->d->choice[p->cls] != EG_NONE) s->dual += p->price;
  }
  egi_dag_spend(s->d, 1 + s->first_up[c + 1] - s->first_up[c]);
}

/* Returns: false where a class would need itself. */
static bool choose(search *s, uint32_t c, uint32_t m) {
  egi_dag *d = s->d;
  if (egi_dag_circle(d, m)) return false;
  take_open(s, c);
  s->trail[s->n_trail++] = 2 * c + 1;
  d->choice[c] = m;
  s->decided += d->cost[m];
  s->sure -= s->least_cost[c];
  s->dual += s->reduced[m] - s->least_reduced[c];
  s->stamp++;
  for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++) s->pair[s->pair_of[k]].mark = s->stamp;
  for (uint32_t q = s->first_pair[c]; q < s->first_pair[c + 1]; q++)
    if (s->pair[q].mark != s->stamp && s->needed[s->pair[q].kid]) s->dual += s->pair[q].price;
  for (uint32_t k = d->at[m]; k < d->at[m + 1]; k++) need(s, d->kid[k], c);
  egi_dag_spend(d, 1 + s->first_pair[c + 1] - s->first_pair[c]);
  return true;
}

static void undo(search *s, const frame *f) {
  while (s->n_trail > f->n_trail) {
    const uint32_t entry = s->trail[--s->n_trail], c = entry / 2;
    if (entry % 2) {
      s->d->choice[c] = EG_NONE;
      put_open(s, c);
    } else {
      s->needed[c] = false;
      take_open(s, c);
    }
  }
  s->decided = f->decided;
  s->sure = f->sure;
  s->dual = f->dual;
}

/* Could choosing the e-node lead to anything better? */
static bool viable(const search *s, uint32_t c, uint32_t m) {
  return s->dual - s->least_reduced[c] + s->reduced[m] < s->limit &&
         s->decided + s->sure - s->least_cost[c] + s->d->cost[m] < s->limit;
}

/* How many e-nodes of a class are viable, two at most, and which is the first. */
static int count_viable(const search *s, uint32_t c, uint32_t *only) {
  int n = 0;
  for (uint32_t i = s->d->first[c]; i < s->d->first[c + 1] && n < 2; i++) {
    const uint32_t m = s->sorted[i];
    if (s->dual - s->least_reduced[c] + s->reduced[m] >= s->limit) break;
    if (viable(s, c, m) && !n++) *only = m;
  }
  return n;
}

/* Classes without a choice are chosen; of the others the one whose second e-node adds most to
 * the bound. Returns: false where nothing better can be; `c` is EG_NONE where all is chosen. */
static bool next_class(search *s, uint32_t *c) {
  *c = EG_NONE;
  double most = -1;
  for (uint32_t i = 0; i < s->n_open;) {
    const uint32_t at = s->open[i], second = s->sorted[s->d->first[at] + 1];
    uint32_t only = 0;
    egi_dag_spend(s->d, 2);
    const int n = count_viable(s, at, &only);
    if (n == 0) return false;
    if (n == 1) {
      if (!choose(s, at, only)) return false; /* another one takes its place in `open` */
      continue;
    }
    const double gain = s->reduced[second] - s->least_reduced[at];
    if (gain > most) most = gain, *c = at;
    i++;
  }
  return s->dual < s->limit && s->decided + s->sure < s->limit;
}

/* Tries the next e-node of the last class that was branched on, or of those before it. Returns:
 * false at the end. */
static bool next_branch(search *s) {
  while (s->n_frame > 0) {
    frame *f = &s->frame[s->n_frame - 1];
    undo(s, f);
    while (f->next < s->d->first[f->cls + 1]) {
      const uint32_t m = s->sorted[f->next++];
      if (s->dead[m]) break;
      if (viable(s, f->cls, m) && choose(s, f->cls, m)) return true;
    }
    s->n_frame--;
  }
  return false;
}

static void set_limit(search *s, double cost) {
  s->best_cost = cost;
  s->limit = cost - (s->gap > 0 ? s->gap : 1e-9 * cost);
}

static void keep(search *s) {
  set_limit(s, s->decided);
  for (uint32_t c = 0; c < s->d->n_cls; c++)
    if (s->needed[c]) s->best[c] = s->d->choice[c];
}

/* Returns: whether it came to its end. */
static bool branch(search *s) {
  egi_dag *d = s->d;
  bool on = true;
  for (uint32_t c = 0; c < d->n_cls; c++) d->choice[c] = EG_NONE;
  s->dual = s->bound;
  for (uint32_t i = 0; i < d->n_root; i++) need(s, d->root[i], EG_NONE);
  while (on && d->work) {
    uint32_t c;
    if (!next_class(s, &c)) {
      on = next_branch(s);
    } else if (c == EG_NONE) {
      keep(s);
      on = next_branch(s);
    } else {
      s->frame[s->n_frame++] = (frame){c, d->first[c], s->n_trail, s->decided, s->sure, s->dual};
      on = next_branch(s);
    }
  }
  memcpy(d->choice, s->best, d->n_cls * sizeof *d->choice);
  return !on;
}

static bool whole_numbers(const egi_dag *d) {
  for (uint32_t m = 0; m < d->n_node; m++)
    if (d->cost[m] != floor(d->cost[m]) || d->cost[m] > 1e6) return false;
  return d->total < 1e9;
}

/* Returns: whether the present choice is proved best. */
static bool run(search *s, double *bound) {
  egi_dag *d = s->d;
  find_pairs(s, s->place);
  fill_lists(s);
  for (uint32_t i = 0; i < d->n_root; i++) s->is_root[d->root[i]] = true;
  put_in_order(s);
  for (uint32_t c = 0; c < d->n_cls; c++) s->n_live[c] = d->first[c + 1] - d->first[c];
  memcpy(s->best, d->choice, d->n_cls * sizeof *d->choice);
  s->gap = whole_numbers(d) ? 1 - 1e-6 : 0;
  set_limit(s, d->total);
  kill_far(s);
  find_prices(s);
  bool done = s->bound >= s->limit;
  for (uint32_t i = 0; i < d->n_root; i++) done = done || !s->n_live[d->root[i]];
  if (!done) {
    settle(s);
    done = branch(s);
  }
  *bound = s->gap > 0 && s->bound > 0.5 ? ceil(s->bound - 1e-6) : s->bound;
  return done || s->bound >= s->limit;
}

iso_code egi_dag_search(egi_dag *d, double *bound, bool *done, iso_error *err) {
  search s = {.d = d};
  *bound = 0;
  *done = true;
  if (!d->n_cls) return ISO_OK;
  const bool ok = reserve(&s);
  if (ok) *done = run(&s, bound);
  void *owned[] = {s.mem, s.words, s.flags, s.pair, s.frame, s.trail};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
  return ok ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory for an extraction");
}
