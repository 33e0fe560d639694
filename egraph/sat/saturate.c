/* Rules and the loop that runs them: search, apply, rebuild, until nothing changes or a limit is
 * reached.
 *
 * Under the simple scheduler a match all of whose rows were there unchanged at the last search was
 * applied then, and applying it again does nothing; so from the second iteration on only matches
 * with a fresh row are looked for (semi-naive evaluation, as egglog has it). Rules whose condition
 * may change its mind are searched in full. Where the number of all matches counts, under backoff,
 * or most rows are fresh, all are found, but those without a fresh row are not stored if the rule
 * was not banned in the last iteration. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/sat/query_int.h"

/* ---- rules ---- */

iso_code eg_rules_new(eg_sat *s, eg_rules **out, iso_error *err) {
  eg_rules *r = calloc(1, sizeof *r);
  if (!r) return iso_fail(err, ISO_NOMEM, "out of memory for rules");
  r->s = s;
  r->found.read_once = true;
  *out = r;
  return ISO_OK;
}

static void rule_fini(egi_rule *u) {
  free((char *)(uintptr_t)u->user.name);
  free((char *)(uintptr_t)u->user.lhs);
  free((char *)(uintptr_t)u->user.rhs);
  egi_pattern_fini(&u->lhs);
  /* The right side borrows the variables. */
  u->rhs.var = NULL;
  u->rhs.n_vars = 0;
  egi_pattern_fini(&u->rhs);
  egi_query_free(u->query);
}

void eg_rules_free(eg_rules *r) {
  if (!r) return;
  for (size_t i = 0; i < r->n; i++) rule_fini(&r->rule[i]);
  egi_words_free(&r->found);
  egi_batch_free(r->batch);
  free(r->rule);
  free(r->counts);
  free(r->made);
  free(r);
}

static iso_code read_sides(eg_rules *r, egi_rule *u, iso_error *err) {
  iso_code code = egi_pattern_read(r->s, u->user.lhs, strlen(u->user.lhs), true, &u->lhs, err);
  if (!code && u->user.rhs) {
    u->rhs.var = u->lhs.var;
    u->rhs.n_vars = u->lhs.n_vars;
    code = egi_pattern_read(r->s, u->user.rhs, strlen(u->user.rhs), false, &u->rhs, err);
  }
  /* `?v = T` names the class that T goes to; mostly that is the one that matched. */
  u->several =
      u->rhs.n_roots > 1 ||
      (u->rhs.n_roots && u->rhs.root_var != EG_NONE && u->rhs.root_var != u->lhs.root_var) ||
      (u->rhs.n_roots && u->rhs.term[u->rhs.root[0]].is_var);
  /* Who applies rules by a callback (synth/saturate/) adds a whole library for one question. */
  if (!code) code = egi_query_new(r->s, &u->lhs, u->user.apply != NULL, &u->query, err);
  return code;
}

/* Whether the right side is the left one with variables exchanged, and exchanged again is it. Then
 * rows that the rule makes need not be shown to it, if nobody else adds rows meanwhile. */
static bool turns_back(const eg_sat *s, const egi_rule *u) {
  const eg_pattern *l = &u->lhs, *r = &u->rhs;
  if (s->analysis.repair || !u->skip_old || u->user.guard || !u->query->single || u->several ||
      r->n_roots != 1)
    return false;
  const egi_term *a = &l->term[l->root[0]], *b = &r->term[r->root[0]];
  if (b->is_var || b->sym != a->sym) return false;
  uint32_t at[8]; /* where on the left the variables of the right side stand */
  if (b->n > sizeof at / sizeof *at) return false;
  for (uint32_t k = 0; k < b->n; k++) {
    const egi_term *kid = &r->term[r->kid[b->kid + k]];
    at[k] = EG_NONE;
    for (uint32_t i = 0; kid->is_var && i < a->n; i++)
      if (l->term[l->kid[a->kid + i]].sym == kid->sym) at[k] = i;
    if (at[k] == EG_NONE) return false;
  }
  for (uint32_t k = 0; k < b->n; k++)
    if (at[at[k]] != k) return false;
  return true;
}

static iso_code add_both(eg_rules *r, const eg_rule *rule, iso_error *err) {
  const char *name = rule->name ? rule->name : "";
  if (!rule->rhs || rule->guard || rule->condition || rule->apply)
    return iso_fail(err, ISO_USAGE,
                    "rule %s: a rule in both directions has two sides and no callbacks", name);
  eg_rule one = *rule;
  one.both = false;
  iso_code code = eg_rules_add(r, &one, err);
  char *back = code ? NULL : malloc(strlen(name) + 5);
  if (!code && !back) code = iso_fail(err, ISO_NOMEM, "out of memory for a rule");
  if (code) return code;
  one.name = strcat(strcpy(back, name), "-rev");
  one.lhs = rule->rhs;
  one.rhs = rule->lhs;
  code = eg_rules_add(r, &one, err);
  free(back);
  if (code) rule_fini(&r->rule[--r->n]); /* both or none */
  return code;
}

iso_code eg_rules_add(eg_rules *r, const eg_rule *rule, iso_error *err) {
  if (rule->both) return add_both(r, rule, err);
  if (!rule->lhs || (!rule->rhs && !rule->apply))
    return iso_fail(err, ISO_USAGE, "a rule needs two sides");
  egi_rule u = {.user = *rule};
  u.user.name = strdup(rule->name ? rule->name : "");
  u.user.lhs = strdup(rule->lhs);
  u.user.rhs = rule->rhs ? strdup(rule->rhs) : NULL;
  iso_code code = ISO_OK;
  if (!u.user.name || !u.user.lhs || (rule->rhs && !u.user.rhs) ||
      !iso_grow(r->rule, r->cap, r->n + 1) || !iso_grow(r->counts, r->cap_counts, r->n + 1) ||
      !iso_grow(r->made, r->cap_made, r->n + 1))
    code = iso_fail(err, ISO_NOMEM, "out of memory for a rule");
  if (!code) code = read_sides(r, &u, err);
  if (!code && !egi_batch_reserve(r, &u.rhs))
    code = iso_fail(err, ISO_NOMEM, "out of memory for a rule");
  if (code) {
    rule_fini(&u);
    return iso_prefix(err, "rule %s: ", rule->name ? rule->name : "");
  }
  u.stride = 1 + u.lhs.n_vars;
  u.skip_old = !rule->condition && !rule->never_done && !rule->apply &&
               (!rule->guard || (rule->guard_stays_false && u.query->n_atoms));
  u.turns = turns_back(r->s, &u);
  r->rule[r->n++] = u;
  return ISO_OK;
}

size_t eg_rules_count(const eg_rules *r) { return r->n; }
const char *eg_rules_name(const eg_rules *r, size_t k) { return r->rule[k].user.name; }

const char *eg_stop_name(eg_stop stop) {
  static const char *const name[] = {"saturated",  "iteration-limit", "node-limit",
                                     "time-limit", "memory-limit",    "stopped"};
  return name[stop];
}

eg_run_options eg_run_options_default(void) {
  return (eg_run_options){.scheduler = EG_SIMPLE,
                          .match_limit = 1000,
                          .ban_length = 5,
                          .iteration_limit = EG_DEFAULT_ITERATIONS,
                          .node_limit = EG_DEFAULT_NODES,
                          .mem_limit_bytes = EG_DEFAULT_MEM_BYTES};
}

/* ---- the loop ---- */

typedef struct run {
  eg_sat *s;
  eg_rules *r;
  const eg_run_options *o;
  egi_limits limits;
  uint32_t n_cls_seen; /* classes below were there at the last search */
  bool marks;          /* they tell what changed since the last search */
  bool fresh;          /* only matches with what changed are looked for */
  size_t iteration;
  size_t stopped_in; /* the rule in whose search a limit was reached; SIZE_MAX: none */
  size_t stopped_at; /* how many matches it had */
  size_t n_left_out; /* rules whose search would be too much work */
  eg_iteration it;
  eg_rule_iteration *by_rule; /* NULL: not asked for */
  egi_wish *wish;             /* per rule; NULL: one thread searches */
  egi_sink sink;              /* of one rule after another */
} run;

/* A number doubled so often. */
static size_t doubled(size_t n, size_t times) {
  return times < 40 && n <= SIZE_MAX >> times ? n << times : SIZE_MAX;
}

/* How many matches a rule may have in this iteration. Returns: false where it is not to be
 * searched. Kept out of runs of microseconds, which wait for each line of code. */
static __attribute__((noinline)) bool allowed(const run *x, size_t k, size_t *limit) {
  const egi_rule *u = &x->r->rule[k];
  const eg_scheduler *own = &x->o->own;
  if (x->o->scheduler == EG_OWN) {
    *limit = own->limit ? own->limit(own->ctx, x->s, x->iteration, k) : SIZE_MAX;
    return *limit > 0;
  }
  *limit = doubled(u->user.match_limit ? u->user.match_limit : x->o->match_limit, u->n_banned);
  return x->iteration >= u->banned_until;
}

/* The number of matches is told, or decides about a ban. */
static __attribute__((noinline)) void judge(const run *x, size_t k, size_t n, size_t limit) {
  egi_rule *u = &x->r->rule[k];
  if (x->o->scheduler == EG_OWN) {
    if (x->o->own.found) x->o->own.found(x->o->own.ctx, x->iteration, k, n);
  } else if (n > limit) {
    const size_t length =
        doubled(u->user.ban_length ? u->user.ban_length : x->o->ban_length, u->n_banned++);
    u->banned_until = length < SIZE_MAX - x->iteration ? x->iteration + length : SIZE_MAX;
  }
}

/* A search for new matches starts at the fresh rows of every atom, one for all at the rows of one
 * atom: where those are half as many again, or fewer, it passes the old matches for less. */
static bool fewer_starts(const eg_sat *s, const egi_query *q) {
  size_t n = 0, least = SIZE_MAX;
  for (size_t i = q->n_ground; i < q->n_atoms; i++) {
    const egi_op *op = &s->op[q->atom[i].op];
    n += op->n_fresh;
    if (op->n_rows < least) least = op->n_rows;
  }
  return n / 3 * 2 <= least;
}

static enum egi_wanted wanted_of(const run *x, const egi_rule *u) {
  if (!x->marks || !u->skip_old) return EGI_ALL;
  if (x->fresh && fewer_starts(x->s, u->query)) return EGI_NEW;
  return u->applied_until == x->iteration ? EGI_STORE_NEW : EGI_ALL;
}

/* ---- several threads ---- */

enum { GRAIN = 2048, MOST_THREADS = 16 };

/* The search for one rule as a wish that other threads may help with. Not where a callback is
 * asked, nor where a program is yet to be built: building one changes which lists later searches
 * find copied. */
static bool make_wish(run *x, size_t k, size_t limit) {
  const egi_rule *u = &x->r->rule[k];
  x->wish[k] = (egi_wish){0};
  if (u->left_out || u->user.guard || x->o->work_limit) return false;
  egi_wish w = {.query = u->query,
                .wanted = wanted_of(x, u),
                .stride = u->stride,
                .own = x->r->made[k],
                .limit = limit == SIZE_MAX ? limit : limit + 1};
  if (!egi_search_plan(x->s, u->query, w.wanted == EGI_NEW, &w.start)) return false;
  x->wish[k] = w;
  return true;
}

static void share(run *x, size_t from, size_t to) {
  const unsigned jobs = x->o->jobs;
  const egi_team team = {.s = x->s,
                         .threads = jobs < MOST_THREADS ? jobs : MOST_THREADS,
                         .grain = x->o->grain ? x->o->grain : GRAIN,
                         .first_new_class = x->n_cls_seen,
                         .limits = &x->limits};
  egi_search_shared(&team, &x->wish[from], to - from);
}

/* Rules from `k` on that are searched side by side: as many as there are, up to one that is not.
 * Returns: the next one. A scheduler of the caller's is asked about each when those before it are
 * done. */
static size_t share_from(run *x, size_t k) {
  size_t end = k;
  for (; x->o->scheduler != EG_OWN && end < x->r->n; end++) {
    size_t limit = SIZE_MAX;
    if (x->o->scheduler != EG_SIMPLE && !allowed(x, end, &limit)) x->wish[end] = (egi_wish){0};
    else if (!make_wish(x, end, limit)) break;
  }
  share(x, k, end);
  return end;
}

/* Returns: false where the rule is still to be searched. */
static bool take_wish(run *x, size_t k, egi_sink *sink) {
  egi_wish *w = &x->wish[k];
  if (!w->done) return false;
  sink->n = w->n;
  sink->n_stored = w->n_stored;
  egi_words_append(&x->r->found, &w->found);
  w->done = false;
  return true;
}

static iso_code search_rule(run *x, size_t k, iso_error *err) {
  egi_rule *u = &x->r->rule[k];
  const bool judged = x->o->scheduler != EG_SIMPLE;
  size_t limit = SIZE_MAX;
  u->n_found = u->n_stored = u->n_made = 0;
  if (u->left_out || (judged && !allowed(x, k, &limit))) return ISO_OK;
  const egi_mark mark = egi_words_mark(&x->r->found);
  egi_sink *sink = &x->sink;
  sink->stride = u->stride;
  sink->guard = u->user.guard;
  sink->guard_ctx = u->user.ctx;
  sink->own = x->r->made[k];
  sink->limit = limit == SIZE_MAX ? limit : limit + 1;
  sink->n = sink->n_stored = 0;
  sink->too_much = false;
  if (x->wish && x->o->scheduler == EG_OWN && make_wish(x, k, limit)) share(x, k, k + 1);
  if (!x->wish || !take_wish(x, k, sink)) {
    const iso_code code = egi_search(x->s, u->query, wanted_of(x, u), x->n_cls_seen, sink, err);
    if (code) return code;
  }
  if (x->limits.reached) {
    x->stopped_in = k;
    x->stopped_at = sink->n;
    return ISO_OK;
  }
  if (sink->too_much) {
    egi_words_rewind(&x->r->found, mark);
    u->left_out = true;
    x->n_left_out++;
    return ISO_OK;
  }
  if (sink->n > limit) {
    egi_words_rewind(&x->r->found, mark);
  } else {
    u->n_found = sink->n;
    u->n_stored = sink->n_stored;
    u->applied_until = x->iteration + 1;
  }
  if (judged) judge(x, k, sink->n, limit);
  return ISO_OK;
}

static iso_code search_all(run *x, iso_error *err) {
  eg_sat *s = x->s;
  const bool only_new = x->o->scheduler == EG_SIMPLE && !x->o->full_search;
  x->marks = x->marks && !s->lost;
  x->fresh = only_new && x->marks && egi_index_fresh(s);
  bool all = !x->fresh;
  for (size_t k = 0; k < x->r->n && !all; k++)
    all = wanted_of(x, &x->r->rule[k]) != EGI_NEW || x->r->rule[k].query->scans;
  if (all && !egi_index(s))
    return iso_fail(err, ISO_NOMEM, "out of memory for the rows of operators");
  x->it.matches = 0;
  if (x->by_rule) memset(x->by_rule, 0, x->r->n * sizeof *x->by_rule);
  egi_flat_begin(s, x->marks, x->o->scheduler != EG_SIMPLE);
  iso_code code = ISO_OK;
  for (size_t k = 0, shared = 0; k < x->r->n && !code && !x->limits.reached; k++) {
    if (x->wish && k >= shared) shared = share_from(x, k);
    const double from = x->by_rule ? egi_now() : 0;
    code = search_rule(x, k, err);
    if (x->by_rule) x->by_rule[k].search_s = egi_now() - from + (x->wish ? x->wish[k].seconds : 0);
    x->it.matches += x->r->rule[k].n_found;
  }
  egi_flat_end(s);
  if (code || x->limits.reached) return code;
  /* The steps below mark the rows that they change. */
  egi_unmark(s);
  s->track = s->marked = x->marks = true;
  x->n_cls_seen = (uint32_t)s->n_cls;
  return ISO_OK;
}

static iso_code apply_all(run *x, iso_error *err) {
  for (size_t k = 0; k < x->r->n; k++) {
    if (x->r->rule[k].n_stored == 0 || x->limits.reached) continue;
    const double from = x->by_rule ? egi_now() : 0;
    const size_t n_w = x->s->n_w;
    const iso_code code = egi_apply(x->s, x->r, k, &x->limits, err);
    if (x->r->rule[k].turns) x->r->made[k] = (egi_span){n_w, x->s->n_w};
    if (x->by_rule) x->by_rule[k].apply_s = egi_now() - from;
    if (code) return code;
    (void)egi_limits_check(x->s, &x->limits);
  }
  return ISO_OK;
}

/* Where nothing changed while rules are banned, the run goes on with the first of them. */
static bool lift_bans(run *x) {
  size_t least = SIZE_MAX;
  for (size_t k = 0; k < x->r->n; k++) {
    const egi_rule *u = &x->r->rule[k];
    if (u->banned_until > x->iteration && u->banned_until - x->iteration < least)
      least = u->banned_until - x->iteration;
  }
  if (least == SIZE_MAX) return false;
  for (size_t k = 0; k < x->r->n; k++)
    if (x->r->rule[k].banned_until > x->iteration) x->r->rule[k].banned_until -= least;
  return true;
}

static bool goes_on_unchanged(run *x) {
  const eg_scheduler *own = &x->o->own;
  if (x->o->scheduler == EG_OWN) return own->may_stop && !own->may_stop(own->ctx, x->iteration);
  return x->o->scheduler == EG_BACKOFF && lift_bans(x);
}

static bool report(run *x, size_t iteration) {
  if (!x->o->each) return true;
  for (size_t k = 0; k < x->r->n; k++) x->r->counts[k] = x->r->rule[k].n_found;
  x->it.nodes = eg_sat_count_nodes(x->s);
  x->it.classes = eg_sat_count_classes(x->s);
  x->it.rule_matches = iteration ? x->r->counts : NULL;
  x->it.rule = iteration ? x->by_rule : NULL;
  for (size_t k = 0; k < x->r->n && x->it.rule; k++) {
    x->by_rule[k].matches = x->r->rule[k].n_found;
    x->by_rule[k].nodes = x->r->rule[k].n_made;
  }
  return x->o->each(x->o->ctx, x->s, iteration, &x->it);
}

/* Tells the caller, who may change the graph. Returns: in `on` whether to go on, and in `changed`
 * whether he did. */
static iso_code tell(run *x, size_t iteration, bool *on, bool *changed, iso_error *err) {
  const uint64_t version = eg_sat_version(x->s);
  *on = report(x, iteration);
  if (eg_sat_version(x->s) == version) return ISO_OK;
  *changed = true;
  return eg_sat_rebuild(x->s, err);
}

enum { COMPACT_FROM = 1 << 14 }; /* words: smaller arenas are near as they are */

/* Returns: in `changed` whether the graph is another one now. */
static iso_code iterate(run *x, bool *changed, iso_error *err) {
  eg_sat *s = x->s;
  const size_t nodes = eg_sat_count_nodes(s), classes = eg_sat_count_classes(s);
  const uint64_t unions = s->n_unions, version = eg_sat_version(s);
  const double t0 = egi_now();
  if (s->n_w >= COMPACT_FROM && s->n_dead >= s->n_w / 2) egi_compact(s);
  iso_code code = search_all(x, err);
  const double t1 = egi_now();
  if (!code && x->stopped_in == SIZE_MAX) code = apply_all(x, err);
  const double t2 = egi_now();
  if (code || x->stopped_in != SIZE_MAX) {
    egi_words_clear(&x->r->found);
    return code;
  }
  *changed = s->n_unions != unions || eg_sat_version(s) != version;
  code = eg_sat_rebuild(s, err);
  *changed = *changed || eg_sat_count_nodes(s) != nodes || eg_sat_count_classes(s) != classes;
  for (size_t k = 0; k < x->r->n; k++)
    *changed = *changed || (x->r->rule[k].user.never_done && x->r->rule[k].n_found);
  x->it.search_s = t1 - t0;
  x->it.apply_s = t2 - t1;
  x->it.rebuild_s = egi_now() - t2;
  return code;
}

static void blame(run *x, eg_run_report *out) {
  out->culprit = x->stopped_in;
  out->culprit_matches = x->stopped_at;
  if (x->stopped_in != SIZE_MAX || out->stop == EG_SATURATED || out->stop == EG_STOPPED) return;
  for (size_t k = 0; k < x->r->n; k++)
    if (x->r->rule[k].n_made > out->culprit_nodes) {
      out->culprit = k;
      out->culprit_nodes = x->r->rule[k].n_made;
    }
}

static iso_code loop(run *x, eg_run_report *out, iso_error *err) {
  for (;;) {
    bool changed = false;
    if (x->o->iteration_limit && x->iteration >= x->o->iteration_limit) {
      out->stop = EG_ITERATION_LIMIT;
      return ISO_OK;
    }
    if (x->iteration && egi_limits_check(x->s, &x->limits)) {
      out->stop = x->limits.stop;
      return ISO_OK;
    }
    iso_code code = iterate(x, &changed, err);
    if (code) return code;
    if (x->stopped_in != SIZE_MAX) {
      out->stop = x->limits.stop;
      return ISO_OK;
    }
    const bool goes_on = !changed && goes_on_unchanged(x);
    out->iterations = ++x->iteration;
    bool on;
    code = tell(x, x->iteration, &on, &changed, err);
    if (code) return code;
    if (!on) {
      out->stop = EG_STOPPED;
      return ISO_OK;
    }
    if (x->limits.reached) {
      egi_words_clear(&x->r->found);
      out->stop = x->limits.stop;
      return ISO_OK;
    }
    if (!changed && !goes_on) {
      out->stop = EG_SATURATED;
      return ISO_OK;
    }
  }
}

/* Room for reports and for several threads. */
static bool set_up(run *x) {
  const size_t n = x->r->n + 1;
  x->by_rule = x->o->by_rule ? calloc(n, sizeof *x->by_rule) : NULL;
  x->wish = x->o->jobs > 1 ? calloc(n, sizeof *x->wish) : NULL;
  return (!x->o->by_rule || x->by_rule) && (x->o->jobs <= 1 || x->wish);
}
static void tear_down(run *x) {
  for (size_t k = 0; x->wish && k < x->r->n; k++) egi_words_free(&x->wish[k].found);
  free(x->wish);
  free(x->by_rule);
}

iso_code eg_sat_run(eg_sat *s, eg_rules *r, const eg_run_options *options, eg_run_report *out,
                    iso_error *err) {
  run x = {.s = s, .r = r, .o = options, .stopped_in = SIZE_MAX};
  if (r->s != s) return iso_fail(err, ISO_USAGE, "rules of another e-graph");
  x.limits.found = x.sink.store = &r->found;
  x.sink.work = options->work_limit;
  x.sink.limits = &x.limits;
  x.limits.nodes = options->node_limit;
  x.limits.mem_bytes = options->mem_limit_bytes;
  x.limits.deadline_s = options->time_limit_s > 0 ? egi_now() + options->time_limit_s : 0;
  for (size_t k = 0; k < r->n; k++) {
    r->rule[k].n_banned = r->rule[k].banned_until = r->rule[k].applied_until = 0;
    r->rule[k].left_out = false;
    r->made[k] = (egi_span){0};
  }
  iso_code code = eg_sat_rebuild(s, err);
  if (code) return code;
  if (!set_up(&x)) code = iso_fail(err, ISO_NOMEM, "out of memory for a run");
  *out = (eg_run_report){.stop = EG_STOPPED, .culprit = SIZE_MAX};
  bool on, changed;
  egi_span *const span = s->span; /* of a run that this one is called from */
  const size_t n_span = s->n_span;
  s->span = r->made;
  s->n_span = r->n;
  if (!code) code = tell(&x, 0, &on, &changed, err);
  if (!code && on) code = loop(&x, out, err);
  if (span) memset(span, 0, n_span * sizeof *span);
  s->span = span;
  s->n_span = n_span;
  s->track = false; /* marks stay until the next run */
  egi_flat_drop(s);
  blame(&x, out);
  out->n_left_out = x.n_left_out;
  tear_down(&x);
  return code;
}
