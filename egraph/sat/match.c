/* E-matching: the machine that runs a program over rows. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/query_int.h"

/* ---- the machine ---- */

/* Limits are looked at after so many rows where a search starts, matches that a guard is asked
 * about, and with each new chunk of matches. */
enum { CHECK_EVERY = 256, COUNT_EVERY = 1 << 14 };

typedef struct machine {
  eg_sat *s;
  egi_query *q;
  egi_sink *sink;
  uint32_t *reg, *args; /* args: of the row that is looked up */
  uint32_t *out, *end;  /* where the next match is stored, and how far there is room and the limit
                           not reached */
  const uint32_t *from; /* where the last ones were stored that are not counted yet */
  size_t stride, n_asked, n_counted;
  bool direct;    /* no guard is asked, and every match that is new is stored */
  uint32_t news;  /* not 0: the rows so far make a match that is stored; others are only counted */
  uint32_t fresh; /* the mark of rows that do so; 0 where all are stored */
  bool block;     /* matches are so short that registers are copied as a block */
  const uint32_t *start; /* rows of the first instruction */
  size_t n_start;
  size_t work, patience; /* words of rows passed, and how many may be before wait_on asks */
  size_t n_before;       /* matches before the run under way */
  bool gave_up, stopped; /* stopped: no more matches are wanted */
} machine;

static void close_store(machine *m) {
  if (!m->out) return;
  const size_t n = (size_t)(m->out - m->from) / m->stride;
  m->sink->n += n;
  m->sink->n_stored += n;
  egi_words_close(m->sink->store, m->out);
}

/* A guard that refuses nearly all is as much work as rows are. */
static inline bool over(const machine *m) {
  egi_limits *l = m->sink->limits;
  if (m->sink->work && m->n_asked > m->sink->work) return m->sink->too_much = true;
  return l && (l->mem_bytes || l->deadline_s > 0) && egi_limits_search(m->s, l);
}

/* Returns: false where the limit is reached, or without memory. */
static bool open_store(machine *m) {
  egi_sink *sink = m->sink;
  close_store(m);
  m->from = m->out;
  if (sink->n >= sink->limit || over(m)) return false;
  m->from = m->out = egi_words_open(sink->store, m->stride, &m->end);
  sink->no_memory = !m->out;
  if (!m->out) return false;
  if ((size_t)(m->end - m->out) / m->stride > sink->limit - sink->n)
    m->end = m->out + (sink->limit - sink->n) * m->stride;
  return true;
}

static inline bool has_room(machine *m) {
  return (size_t)(m->end - m->out) >= m->stride || open_store(m);
}

/* Returns: where the next match goes, with all registers in it; NULL to stop the search. */
static inline uint32_t *put(machine *m, uint32_t root) {
  if (!has_room(m)) return NULL;
  uint32_t *out = m->out;
  m->out = out + m->stride;
  out[0] = root;
  if (m->block) memcpy(out + 1, m->reg, EGI_SLACK * sizeof *out);
  else memcpy(out + 1, m->reg, (m->stride - 1) * sizeof *out);
  return out;
}

/* Matches that are only counted. Returns: false to stop the search. */
static inline bool count(machine *m, size_t n) {
  m->sink->n += n;
  m->n_counted += n;
  if (m->n_counted >= COUNT_EVERY) {
    m->n_counted = 0;
    if (over(m)) return false;
  }
  return m->sink->n < m->sink->limit;
}

/* Returns: false to stop the search. */
static inline bool yield(machine *m) {
  const egi_sink *sink = m->sink;
  const uint32_t *reg = m->reg, root = reg[m->q->root];
  if (!m->direct) {
    if (++m->n_asked % CHECK_EVERY == 0 && over(m)) return false;
    if (sink->guard && !sink->guard(sink->guard_ctx, m->s, (const eg_class *)reg)) return true;
    if (!sink->store) {
      m->sink->n++;
      return (!sink->each || sink->each(sink->ctx, (eg_class){root}, (const eg_class *)reg)) &&
             sink->n < sink->limit;
    }
  }
  return m->news ? put(m, root) != NULL : count(m, 1);
}

/* A run is in vain where rows were passed for no match. Returns: false to give it up. */
static __attribute__((noinline)) bool wait_on(machine *m) {
  const egi_query *q = m->q;
  size_t rows = 0, match = 0; /* words of all rows, and of those of one match */
  for (size_t i = q->n_ground; i < q->n_atoms; i++) {
    rows += m->s->op[q->atom[i].op].n_rows * (1 + (size_t)q->atom[i].n);
    match += 1 + q->atom[i].n;
  }
  const size_t n = m->sink->n + (m->out ? (size_t)(m->out - m->from) / m->stride : 0) - m->n_before;
  const bool never =
      q->patience == EGI_NEVER || m->sink->each; /* told matches are not taken back */
  const size_t share = m->sink->slice ? 2 : 1;
  const size_t most = m->sink->work ? m->sink->work : SIZE_MAX;
  m->patience = never ? most : (q->patience * rows + q->least) / share + n * match;
  m->sink->too_much = never && m->work > most;
  m->gave_up = !never && m->work > m->patience;
  return !m->gave_up && !m->sink->too_much;
}
static inline bool spend(machine *m, size_t words) {
  m->work += words;
  return m->work <= m->patience || wait_on(m);
}

/* Stores rows of `n` children, their class before them where `lead` is 1. Inlined, so that the
 * number of registers set is a constant, and all that is the same for each row is kept in locals
 * that stores cannot alias. */
static inline __attribute__((always_inline)) bool put_run(machine *m, const egi_ins *i,
                                                          const uint32_t *row, const uint32_t *end,
                                                          uint32_t lead, uint32_t n_set) {
  const size_t stride = m->stride;
  const uint32_t step = lead + i->n;
  egi_bind set[2] = {{0, 0}, {0, 0}};
  uint32_t same[EGI_SLACK], root = m->reg[m->q->root];
  for (uint32_t k = 0; k < n_set; k++) set[k] = i->set[k];
  memcpy(same, m->reg, sizeof same);
  while (row < end) {
    if (!has_room(m)) return false;
    uint32_t *out = m->out;
    const uint32_t *to = m->end;
    for (; row < end && (size_t)(to - out) >= stride; row += step, out += stride) {
      out[0] = lead ? row[0] : root;
      memcpy(out + 1, same, sizeof same);
      for (uint32_t k = 0; k < n_set; k++) out[1 + set[k].reg] = row[lead + set[k].at];
    }
    m->out = out;
  }
  return true;
}

static bool put_many(machine *m, const egi_ins *i, const uint32_t *row, const uint32_t *end,
                     uint32_t lead) {
  const egi_bind *set = i->set;
  const uint32_t root = m->reg[m->q->root];
  for (; row < end; row += lead + i->n) {
    uint32_t *out = put(m, lead ? row[0] : root);
    if (!out) return false;
    for (uint32_t k = 0; k < i->n_set; k++) out[1 + set[k].reg] = row[lead + set[k].at];
  }
  return true;
}

/* The last rows of a match: nothing is left to ask about them. From `fresh` on they are fresh. */
static inline bool put_rows(machine *m, const egi_ins *i, const uint32_t *row,
                            const uint32_t *fresh, const uint32_t *end, uint32_t lead) {
  if (!m->news) {
    if (fresh > row && !count(m, (uint32_t)(fresh - row) / (lead + i->n))) return false;
    row = fresh;
  }
  if (!m->block || i->n_set > 2) return put_many(m, i, row, end, lead);
  return i->n_set == 2   ? put_run(m, i, row, end, lead, 2)
         : i->n_set == 1 ? put_run(m, i, row, end, lead, 1)
                         : put_run(m, i, row, end, lead, 0);
}
static inline bool only_put(const machine *m, const egi_ins *i) {
  return i->plain && i[1].kind == EGI_YIELD && m->direct;
}

/* Children `stride` words apart into registers. Returns: false if one differs from its register. */
static inline bool bind(machine *m, const egi_ins *i, const uint32_t *kid, uint32_t stride) {
  uint32_t *reg = m->reg;
  for (const egi_bind *b = i->compare, *end = b + i->n_compare; b < end; b++)
    if (reg[b->reg] != kid[stride * b->at]) return false;
  for (const egi_bind *b = i->set, *end = b + i->n_set; b < end; b++)
    reg[b->reg] = kid[stride * b->at];
  for (const egi_bind *b = i->again, *end = b + i->n_again; b < end; b++)
    if (reg[b->reg] != kid[stride * b->at]) return false;
  return true;
}
/* Whether the next row may be there. Requires: children of a row that is alive, which are
 * canonical. */
static inline bool goes_on(const machine *m, const egi_ins *i, const uint32_t *kid,
                           uint32_t stride) {
  return !i->next_bit || (m->s->cls[kid[stride * i->next_at]].has & i->next_bit);
}
static inline bool bind_row(machine *m, const egi_ins *i, const uint32_t *row) {
  return bind(m, i, row + ROW_KIDS, 2);
}

static inline bool bind_class(machine *m, const egi_ins *i, uint32_t row) {
  const uint32_t c = egi_row_class(m->s, row);
  if (!i->cls_known) m->reg[i->cls] = c;
  else if (m->reg[i->cls] != c) return false;
  return true;
}

static bool step(machine *m, const egi_ins *i);
static bool down(machine *m, const egi_ins *i);
/* Many a class has no row of the operator, which is found out without a call. */
static inline bool go_on(machine *m, const egi_ins *i) {
  if (i->kind == EGI_YIELD) return yield(m);
  if (i->kind == EGI_DOWN) return !(m->s->cls[m->reg[i->cls]].has & i->bit) || down(m, i);
  return step(m, i);
}

static bool scan(machine *m, const egi_ins *i) {
  const uint32_t *w = m->s->w, news = m->news;
  for (size_t j = 0; j < m->n_start; j++) {
    const uint32_t r = m->start[j];
    if ((w[r + ROW_HEAD] & i->mask) != i->want || !goes_on(m, i, w + r + ROW_KIDS, 2)) continue;
    m->news = news | (w[r + ROW_HEAD] & m->fresh);
    if (bind_class(m, i, r) && bind_row(m, i, w + r) && !go_on(m, i + 1)) return false;
  }
  m->news = news;
  return true;
}

/* Rows of a single query, where old matches are not asked for or only counted. Rows that only
 * changed matched before, and so did those that the rule made from what it would make of them. */
static __attribute__((noinline)) bool scan_single(machine *m, const egi_ins *i, bool only_new) {
  const uint32_t *w = m->s->w, *row = m->start, *end = row + m->n_start, news = m->news;
  const size_t since = m->s->seen, own = m->sink->own.from, n_own = m->sink->own.to - own;
  const bool pass = only_new || (m->direct && !news);
  size_t n = 0; /* old ones that are not looked at */
  for (; row < end; row++) {
    const uint32_t r = *row;
    const bool is_new = r >= since && r - own >= n_own;
    if ((w[r + ROW_HEAD] & i->mask) != i->want) continue;
    if (pass && !is_new) {
      n++;
      continue;
    }
    m->news = news | (is_new ? m->fresh : 0);
    if (bind_class(m, i, r) && bind_row(m, i, w + r) && !yield(m)) return false;
  }
  m->news = news;
  return only_new || !n || count(m, n);
}

/* ---- lists, and long ones copied flat ---- */

/* The first row, from this one on in steps of `step` words, that passes the first comparison. */
static inline const uint32_t *seek(const machine *m, const egi_ins *i, const uint32_t *kid,
                                   const uint32_t *end, uint32_t step) {
  if (!i->n_compare) return kid;
  const uint32_t at = i->compare->at, c = m->reg[i->compare->reg];
  while (kid < end && kid[at] != c) kid += step;
  return kid;
}

static bool flat_down(machine *m, const egi_ins *i, const uint32_t *copy) {
  uint32_t n_old, n;
  const uint32_t *kid = egi_flat_rows(copy, i->slot, &n_old, &n), *fresh = kid + n_old,
                 *end = i->old ? fresh : kid + n;
  const uint32_t news = m->news;
  if (only_put(m, i)) return put_rows(m, i, kid, fresh, end, 0);
  if (!spend(m, (size_t)(end - kid))) return false;
  for (; (kid = seek(m, i, kid, end, i->n)) < end; kid += i->n) {
    m->news = news | (kid < fresh ? 0 : m->fresh);
    if (bind(m, i, kid, 1) && !go_on(m, i + 1)) return false;
  }
  m->news = news;
  return true;
}

static bool down(machine *m, const egi_ins *i) {
  const uint32_t *w = m->s->w, id = m->reg[i->cls], news = m->news, *copy;
  const egi_cls *c = &m->s->cls[id];
  if (c->weight >= EGI_LONG && (copy = egi_flat_copy(m->s, EGI_OF_CLASS, id)))
    return flat_down(m, i, copy);
  if (!spend(m, c->weight)) return false;
  for (uint32_t r = c->rows; r; r = w[r + ROW_NEXT]) {
    if ((w[r + ROW_HEAD] & i->mask) != i->want || !goes_on(m, i, w + r + ROW_KIDS, 2)) continue;
    m->news = news | (w[r + ROW_HEAD] & m->fresh);
    if (bind_row(m, i, w + r) && !go_on(m, i + 1)) return false;
  }
  m->news = news;
  return true;
}

static bool flat_up(machine *m, const egi_ins *i, uint32_t via, const uint32_t *copy) {
  uint32_t n_old, n;
  const uint32_t *row = egi_flat_rows(copy, i->slot + via, &n_old, &n), *fresh = row + n_old,
                 *end = i->old ? fresh : row + n;
  const uint32_t news = m->news;
  uint32_t *cls = &m->reg[i->cls];
  if (only_put(m, i)) return put_rows(m, i, row, fresh, end, 1);
  if (!spend(m, (size_t)(end - row))) return false;
  for (; row < end; row += 1 + i->n) {
    m->news = news | (row < fresh ? 0 : m->fresh);
    *cls = row[0];
    if (bind(m, i, row + 1, 1) && !go_on(m, i + 1)) return false;
  }
  m->news = news;
  return true;
}

/* Above the known child with the fewest parents. That of the rows no class is known before. */
static bool up(machine *m, const egi_ins *i) {
  const uint32_t *w = m->s->w, news = m->news, *copy;
  const egi_bind *via = i->from;
  for (uint32_t k = 1; k < i->n_from; k++)
    if (m->s->cls[m->reg[i->from[k].reg]].weight < m->s->cls[m->reg[via->reg]].weight)
      via = &i->from[k];
  const uint32_t to_row = ROW_KIDS + 2 * via->at, id = m->reg[via->reg];
  const egi_cls *c = &m->s->cls[id];
  if (!(c->above & i->bit)) return true;
  if (c->weight >= EGI_LONG && (copy = egi_flat_copy(m->s, EGI_ABOVE, id)))
    return flat_up(m, i, via->at, copy);
  if (!spend(m, c->weight)) return false;
  for (uint32_t place = c->places; place; place = w[place + 1]) {
    const uint32_t r = place - to_row; /* the row, if this is the child asked for: an earlier row's
                                          words are no heads of ours */
    if (place <= to_row || (w[r + ROW_HEAD] & i->mask) != i->want ||
        !goes_on(m, i, w + r + ROW_KIDS, 2))
      continue;
    m->news = news | (w[r + ROW_HEAD] & m->fresh);
    m->reg[i->cls] = egi_row_class(m->s, r);
    if (bind_row(m, i, w + r) && !go_on(m, i + 1)) return false;
  }
  m->news = news;
  return true;
}

/* The row with children whose classes are known; 0: there is none. */
static inline uint32_t row_of(machine *m, uint32_t op, const uint32_t *kid, uint32_t n) {
  uint64_t h = egi_mix_op(op);
  for (uint32_t k = 0; k < n; k++) h = egi_mix(h, m->args[k] = m->reg[kid[k]]);
  return egi_row_find(m->s, op, m->args, n, egi_mix_end(h));
}

static bool lookup(machine *m, const egi_ins *i) {
  if (!spend(m, i->n)) return false;
  const uint32_t r = row_of(m, i->want & ROW_OP, i->kid, i->n),
                 head = r ? m->s->w[r + ROW_HEAD] : 0, news = m->news;
  if (!r || (head & i->mask) != i->want || !bind_class(m, i, r)) return true;
  m->news |= head & m->fresh;
  const bool on = go_on(m, i + 1);
  m->news = news;
  return on;
}

static bool step(machine *m, const egi_ins *i) {
  switch (i->kind) {
  case EGI_UP: return up(m, i);
  case EGI_LOOKUP: return lookup(m, i);
  default: break;
  }
  const uint32_t *start = m->start;
  const size_t n = m->n_start;
  const egi_op *op = &m->s->op[i->want & ROW_OP];
  m->start = op->row; /* a part of the pattern that nothing connects with the rest */
  m->n_start = op->n_row;
  const bool on = spend(m, op->n_row) && scan(m, i);
  m->start = start;
  m->n_start = n;
  return on;
}

/* ---- searching ---- */

/* Classes of the ground terms into their registers. Returns: false if one is missing, and then
 * nothing matches. */
static inline __attribute__((always_inline)) bool bind_ground(machine *m) {
  const egi_query *q = m->q;
  eg_sat *s = m->s;
  for (size_t i = 0; i < q->n_regs; i++) m->reg[i] = EG_NONE;
  for (size_t i = 0; i < q->n_ground; i++) {
    const egi_atom *a = &q->atom[i];
    const uint32_t r = row_of(m, a->op, a->kid, a->n);
    if (!r || !egi_row_shown(s->w[r + ROW_HEAD])) return false;
    m->news |= s->w[r + ROW_HEAD] & m->fresh;
    const uint32_t c = egi_row_class(s, r);
    if (m->reg[a->cls] != EG_NONE && m->reg[a->cls] != c) return false;
    m->reg[a->cls] = c;
  }
  return true;
}

static bool ground_is_fresh(machine *m, const egi_atom *a) {
  return m->s->w[row_of(m, a->op, a->kid, a->n) + ROW_HEAD] & ROW_FRESH;
}

/* Rows of a ground atom before the start that are fresh have given their matches already. */
static bool ground_before_is_fresh(machine *m, size_t start) {
  for (size_t i = 0; i < start && i < m->q->n_ground; i++)
    if (ground_is_fresh(m, &m->q->atom[i])) return true;
  return false;
}

static bool run_program(machine *m, size_t start, bool fresh) {
  egi_query *q = m->q;
  const egi_ins *ins = egi_program_of(q, start, fresh);
  if (!ins) {
    m->sink->no_memory = true;
    return false;
  }
  if (start < q->n_ground) return (fresh && !ground_is_fresh(m, &q->atom[start])) || go_on(m, ins);
  const egi_op *op = &m->s->op[q->atom[start].op];
  const egi_slice *part = m->sink->slice;
  const size_t from = part ? part->from : 0, to = part ? part->to : fresh ? op->n_fresh : op->n_row;
  const uint32_t *row = (fresh ? op->fresh : op->row) + from;
  for (size_t n = to - from; n > 0; n -= m->n_start, row += m->n_start) {
    m->start = row;
    m->n_start = n < CHECK_EVERY ? n : CHECK_EVERY;
    if (!(q->single && (fresh || m->fresh) ? scan_single(m, ins, fresh) : scan(m, ins)))
      return false;
    if (n > CHECK_EVERY && over(m)) return false;
  }
  return true;
}

static bool join_found(void *ctx, uint32_t fresh) {
  machine *m = ctx;
  const uint32_t news = m->news;
  m->news |= fresh & m->fresh;
  const bool on = yield(m);
  m->news = news;
  m->stopped = !on;
  return on;
}
static bool join_over(void *ctx) {
  machine *m = ctx;
  return m->stopped = over(m);
}

/* Returns: false to stop. */
static bool run_join(machine *m, size_t start, bool fresh) {
  const size_t n_ground = m->q->n_ground;
  if (fresh && start < n_ground && !ground_is_fresh(m, &m->q->atom[start])) return true;
  const egi_join ask = {.s = m->s,
                        .q = m->q,
                        .reg = m->reg,
                        .start = start,
                        .fresh = fresh,
                        .found = join_found,
                        .over = join_over,
                        .ctx = m};
  if (!egi_join_run(&ask)) m->sink->no_memory = true;
  return !m->sink->no_memory && !m->stopped;
}

/* Searches by the program. Where that passes many rows in vain, its matches are taken back, and the
 * atoms are joined. Returns: false to stop. */
static bool run(machine *m, size_t start, bool fresh) {
  egi_words *store = m->sink->store;
  const egi_query *q = m->q;
  if (fresh && start >= q->n_ground && !m->s->op[q->atom[start].op].n_fresh) return true;
  if (fresh && ground_before_is_fresh(m, start)) return true;
  m->work = 0;
  m->patience = q->least;
  if (q->patience == EGI_NEVER) return run_program(m, start, fresh);
  if (q->patience == 0) return run_join(m, start, fresh);
  const size_t n = m->sink->n, n_stored = m->sink->n_stored;
  uint32_t *out = m->out, *end = m->end;
  const uint32_t *from = m->from, news = m->news;
  egi_mark mark = {0};
  if (store) mark = egi_words_mark(store);
  if (out) mark.n = (size_t)(out - store->last->word);
  m->n_before = n + (out ? (size_t)(out - from) / m->stride : 0);
  if (run_program(m, start, fresh)) return true;
  if (!m->gave_up) return false;
  if (store) egi_words_rewind(store, mark);
  m->out = out;
  m->end = end;
  m->from = from;
  m->news = news;
  m->sink->n = n;
  m->sink->n_stored = n_stored;
  m->gave_up = false;
  return run_join(m, start, fresh);
}

/* A part of a run does without a join: the matches to take back would not be its own alone. */
static void run_slice(machine *m, bool fresh) {
  egi_sink *sink = m->sink;
  const egi_slice *part = sink->slice;
  if (fresh && ground_before_is_fresh(m, part->start)) return;
  m->patience = m->q->patience == EGI_NEVER ? SIZE_MAX : m->q->least / 2;
  (void)run_program(m, part->start, fresh);
  sink->unsure = m->gave_up;
  sink->passed = m->work;
}

/* Whether rows of all operators are there. Of many rules most wait for one that is not. */
static bool may_match(const eg_sat *s, const egi_query *q) {
  for (size_t i = 0; i < q->n_atoms; i++)
    if (!s->op[q->atom[i].op].n_rows) return false;
  return true;
}

static inline __attribute__((always_inline)) size_t cheapest(const machine *m) {
  const egi_query *q = m->q;
  size_t best = 0, best_cost = SIZE_MAX;
  for (size_t i = 0; i < q->n_atoms; i++) {
    const size_t cost =
        i < q->n_ground ? m->s->cls[m->reg[q->atom[i].cls]].weight : m->s->op[q->atom[i].op].n_rows;
    if (cost < best_cost) best = i, best_cost = cost;
  }
  return best;
}

static void classes(machine *m, uint32_t from, uint32_t first_new) {
  for (uint32_t c = from; c < m->s->n_cls; c++) {
    if (m->s->up[c] != c) continue;
    if (c >= first_new) m->news |= m->fresh;
    m->reg[m->q->root] = c;
    if (!yield(m)) return;
  }
}

enum { FEW = 32 };
/* Registers, and after them the scratch of a lookup; in `few` there is room for a few. Member by
 * member: of many rules most are searched for a few rows, and clearing all of it by one instruction
 * takes as long as that. Returns: false without memory. */
static bool set_up(machine *m, eg_sat *s, egi_query *q, uint32_t *few) {
  const size_t n = q->n_regs + EGI_SLACK, all = n + q->most_kids;
  m->s = s;
  m->q = q;
  m->reg = all > FEW ? calloc(all, sizeof *m->reg) : few;
  m->args = m->reg ? m->reg + n : NULL;
  m->out = m->end = NULL;
  m->from = m->start = NULL;
  m->n_asked = m->n_counted = m->n_start = m->n_before = 0;
  m->work = m->patience = 0;
  m->news = m->fresh = 0;
  m->gave_up = m->stopped = false;
  return m->reg != NULL;
}

bool egi_search_plan(eg_sat *s, egi_query *q, bool fresh, size_t *start) {
  uint32_t few[FEW];
  machine m;
  *start = q->n_atoms;
  if (!q->n_atoms || !set_up(&m, s, q, few)) return false;
  if (!fresh && bind_ground(&m)) *start = cheapest(&m);
  if (m.reg != few) free(m.reg);
  for (size_t i = 0; i < q->n_atoms; i++)
    if ((fresh || i == *start) && !q->program[2 * i + fresh].ins) return false;
  return true;
}

iso_code egi_search(eg_sat *s, egi_query *q, enum egi_wanted wanted, uint32_t first_new_class,
                    egi_sink *sink, iso_error *err) {
  assert(!s->n_dirty);
  uint32_t few[FEW];
  machine m;
  if (!set_up(&m, s, q, few)) return iso_fail(err, ISO_NOMEM, "out of memory for matches");
  const bool fresh = wanted == EGI_NEW;
  m.sink = sink;
  m.stride = sink->stride;
  m.direct = sink->store && !sink->guard;
  m.block = m.stride <= EGI_SLACK;
  if (wanted == EGI_STORE_NEW) m.fresh = ROW_FRESH;
  else m.news = ROW_FRESH;
  if (!q->n_atoms) {
    classes(&m, fresh ? first_new_class : 0, first_new_class);
  } else if (may_match(s, q) && bind_ground(&m)) {
    if (sink->slice) run_slice(&m, fresh);
    else if (!fresh) run(&m, cheapest(&m), false);
    for (size_t i = 0; fresh && !sink->slice && i < q->n_atoms; i++)
      if (!run(&m, i, true)) break;
  }
  close_store(&m);
  if (m.reg != few) free(m.reg);
  if (!sink->no_memory) return ISO_OK;
  return iso_fail(err, ISO_NOMEM, "out of memory for matches");
}

iso_code eg_sat_match(eg_sat *s, const eg_pattern *p,
                      bool (*each)(void *ctx, eg_class root, const eg_class *var), void *ctx,
                      size_t *n, iso_error *err) {
  egi_sink sink = {.each = each, .ctx = ctx, .limit = SIZE_MAX};
  if (s->n_dirty) return iso_fail(err, ISO_USAGE, "matching needs a rebuilt e-graph");
  if (!egi_index(s)) return iso_fail(err, ISO_NOMEM, "out of memory for the rows of operators");
  egi_flat_begin(s, false, true);
  const bool tell_late = p->n_parts > 1 && p->query->patience;
  const iso_code code = tell_late ? egi_search_and_tell(s, p->query, &sink, err)
                                  : egi_search(s, p->query, EGI_ALL, 0, &sink, err);
  egi_flat_end(s);
  if (!code) *n = sink.n;
  return code;
}
