/* Rules searched by several threads, with the matches of one thread, in its order.
 *
 * The graph is only read. Searches are cut where they start, into parts of so many rows; threads
 * take one part after another, each into memory of its own, and the parts are put together in
 * order. Lists copied flat are shared: the first thread to need one copies it.
 *
 * The threads together must search exactly the lists that one thread searches: copying a list drops
 * its dead rows, and a rebuild depends on the rows in the lists. So a search that may end at a
 * limit is one part, and so is one that waits little before its atoms are joined. The matches are
 * thrown away, and one thread searches, where the parts do not show that one thread would not have
 * switched to a join, and where a limit of memory or time is near. */
#include <stdlib.h>

#include "egraph/sat/query_int.h"

enum { MOST = 16 /* threads */, PARTS = 8 /* of a search, for each of them */ };

typedef struct part {
  egi_wish *wish;
  egi_slice slice;
  bool whole;
  egi_words found;
  egi_sink sink;
  bool done;
  double seconds;
} part;

typedef struct team {
  const egi_team *ask;
  part *part;
  size_t n, cap;
  size_t next;   /* the part that is taken next */
  size_t others; /* bytes, when they began */
  bool over;     /* a part is not to be used, so that none is */
} team;

static bool add_part(team *t, egi_wish *w, egi_slice slice, bool whole) {
  if (!egi_grow(t->part, t->cap, t->n + 1)) return false;
  t->part[t->n++] = (part){.wish = w, .slice = slice, .whole = whole};
  return true;
}

/* The rows that a search starts from at one atom, in parts. */
static bool add_start(team *t, egi_wish *w, size_t start, size_t n, size_t rows) {
  const size_t grain = rows / (PARTS * t->ask->threads) + 1,
               step = grain > t->ask->grain ? grain : t->ask->grain;
  for (size_t at = 0; at < n; at += step) {
    const size_t to = n - at < step ? n : at + step;
    if (!add_part(t, w, (egi_slice){start, at, to}, false)) return false;
  }
  return true;
}

static size_t starts_of(const eg_sat *s, const egi_wish *w, size_t atom) {
  const egi_op *op = &s->op[w->query->atom[atom].op];
  if (atom < w->query->n_ground) return 1;
  return w->wanted == EGI_NEW ? op->n_fresh : op->n_row;
}

/* Returns: how many rows it starts from; 0 where it is not shared, or without memory. */
static size_t plan(team *t, egi_wish *w) {
  eg_sat *s = t->ask->s;
  const egi_query *q = w->query;
  const bool fresh = w->wanted == EGI_NEW;
  size_t rows = 0;
  if (!q) return 0;
  for (size_t i = 0; i < q->n_atoms; i++)
    if (fresh || i == w->start) rows += starts_of(s, w, i);
  const size_t n = t->n;
  bool ok = true;
  const bool whole = w->limit != SIZE_MAX || q->patience < EGI_PATIENT || q->whole;
  if (whole || rows < 2 * t->ask->grain) {
    ok = add_part(t, w, (egi_slice){0}, true);
  } else {
    for (size_t i = 0; ok && i < q->n_atoms; i++)
      if (fresh || i == w->start) ok = add_start(t, w, i, starts_of(s, w, i), rows);
  }
  if (!ok) t->n = n;
  return ok ? rows + 1 : 0;
}

/* ---- threads ---- */

static void search_part(team *t, part *p, egi_limits *l) {
  egi_wish *w = p->wish;
  const double from = egi_now();
  l->found = &p->found;
  p->found.read_once = true;
  p->sink = (egi_sink){.store = &p->found,
                       .stride = w->stride,
                       .limit = w->limit,
                       .limits = l,
                       .slice = p->whole ? NULL : &p->slice,
                       .own = w->own};
  const iso_code code =
      egi_search(t->ask->s, w->query, w->wanted, t->ask->first_new_class, &p->sink, NULL);
  p->done = !code && !l->reached && !p->sink.unsure;
  l->others += p->found.bytes;
  p->seconds = egi_now() - from;
}

static void *work(void *ctx) {
  team *t = ctx;
  egi_limits l = *t->ask->limits;
  /* So much more for each that all together stay below the limit. */
  l.others = t->others ? t->others : 1;
  if (l.mem_bytes > l.others)
    l.mem_bytes = l.others + (l.mem_bytes - l.others) / (2 * t->ask->threads);
  for (size_t i; !__atomic_load_n(&t->over, __ATOMIC_RELAXED) &&
                 (i = __atomic_fetch_add(&t->next, 1, __ATOMIC_RELAXED)) < t->n;) {
    search_part(t, &t->part[i], &l);
    if (!t->part[i].done) __atomic_store_n(&t->over, true, __ATOMIC_RELAXED);
  }
  return NULL;
}

static void run(team *t) {
  eg_sat *s = t->ask->s;
  pthread_t thread[MOST];
  pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
  unsigned n = 0;
  egi_flat_share(s, &lock);
  while (n + 1 < t->ask->threads && n < MOST && !pthread_create(&thread[n], NULL, work, t)) n++;
  (void)work(t);
  while (n > 0) pthread_join(thread[--n], NULL);
  pthread_mutex_destroy(&lock);
}

/* ---- what they found ---- */

/* Words of rows that a search may pass in vain before its atoms are joined. */
static size_t patience_of(const eg_sat *s, const egi_query *q) {
  size_t rows = 0;
  for (size_t i = q->n_ground; i < q->n_atoms; i++)
    rows += s->op[q->atom[i].op].n_rows * (1 + (size_t)q->atom[i].n);
  return q->patience * rows + q->least;
}

/* Whether a single thread would have completed all parts: in each the rows passed in vain stay
 * below half of the patience, and so must they together with all parts before it. */
static bool sure(const eg_sat *s, const part *p, size_t n) {
  const egi_query *q = p->wish->query;
  size_t match = 0, passed = 0, found = 0, start = EG_NONE;
  if (p->whole || q->patience == EGI_NEVER) return true;
  const size_t half = patience_of(s, q) / 2;
  for (size_t i = q->n_ground; i < q->n_atoms; i++) match += 1 + q->atom[i].n;
  for (size_t i = 0; i < n; i++) {
    if (p[i].slice.start != start) passed = found = 0;
    start = p[i].slice.start;
    if (passed > half + found * match) return false;
    passed += p[i].sink.passed;
    found += p[i].sink.n;
  }
  return true;
}

static void put_together(part *p, size_t n) {
  egi_wish *w = p->wish;
  w->done = true;
  for (size_t i = 0; i < n; i++) {
    w->n += p[i].sink.n;
    w->n_stored += p[i].sink.n_stored;
    w->seconds += p[i].seconds;
    egi_words_append(&w->found, &p[i].found);
  }
}

static size_t end_of(const team *t, size_t from) {
  size_t end = from;
  while (end < t->n && t->part[end].wish == t->part[from].wish) end++;
  return end;
}

/* Returns: whether the matches may be used. */
static bool usable(const team *t) {
  const egi_limits *l = t->ask->limits;
  const eg_sat *s = t->ask->s;
  bool good = true;
  size_t bytes = t->others;
  for (size_t i = 0, end; i < t->n; i = end) {
    end = end_of(t, i);
    bool all = sure(s, &t->part[i], end - i);
    for (size_t k = i; k < end; k++) {
      all = all && !t->part[k].sink.unsure;
      good = good && t->part[k].done;
      bytes += t->part[k].found.bytes;
    }
    t->part[i].wish->query->whole |= !all;
    good = good && all;
  }
  return good && !s->flat->off && (!l->mem_bytes || bytes + s->flat->mem.bytes < l->mem_bytes);
}

void egi_search_shared(const egi_team *ask, egi_wish *wish, size_t n) {
  team t = {.ask = ask};
  size_t rows = 0;
  for (size_t i = 0; i < n; i++) rows += plan(&t, &wish[i]);
  if (t.n > 1 && rows >= 2 * ask->grain && !ask->s->flat->off && egi_index(ask->s)) {
    t.others = eg_sat_mem_bytes(ask->s) + ask->limits->found->bytes + ask->s->flat->mem.bytes;
    run(&t);
    const bool good = usable(&t);
    egi_flat_unshare(ask->s, good);
    for (size_t i = 0, end; i < t.n; i = end) {
      end = end_of(&t, i);
      if (good) put_together(&t.part[i], end - i);
      for (size_t k = i; k < end; k++) egi_words_free(&t.part[k].found);
    }
  }
  egi_grown_free(t.part, t.cap);
}

/* ---- matches told to a callback ---- */

iso_code egi_search_and_tell(eg_sat *s, egi_query *q, egi_sink *sink, iso_error *err) {
  egi_words store = {0};
  egi_sink all = {.store = &store, .stride = 1 + q->n_vars, .limit = sink->limit};
  const iso_code code = egi_search(s, q, EGI_ALL, 0, &all, err);
  bool on = !code;
  for (size_t n; on;) {
    const uint32_t *match = egi_words_take(&store, all.stride, 1, &n);
    on = n > 0;
    sink->n += n;
    on = on && sink->each(sink->ctx, (eg_class){match[0]}, (const eg_class *)(match + 1));
  }
  egi_words_free(&store);
  return code;
}
