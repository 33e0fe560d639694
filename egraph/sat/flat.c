/* Long lists copied flat for one search: the rows of a class, or those above it, side by side.
 *
 * Lists are links in the arena, in the order in which rows came: a walk waits for every link, and
 * passes rows of operators that nobody asked for. A long list is copied when a search comes there
 * first: a run per operator (above, per position of the child), each row being its children, above
 * a class its own class before them, and nothing else. Runs are found by a hash of class and slot,
 * so that a search meets only rows of the operator that it asks for. Fresh rows come last in a run.
 * A list that no search reaches is not copied.
 *
 * Copies are kept until the graph changes: under backoff half of all searches find it as the one
 * before left it. */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/query_int.h"

enum { FEW = 1 << 10 };

static void drop_tables(egi_flat_table *t) {
  while (t) {
    egi_flat_table *older = t->older;
    free(t);
    t = older;
  }
}

static void forget(egi_flat *f) {
  egi_flat_table *t = f->table;
  if (t && t->n_cells > FEW) {
    free(t);
    f->table = NULL;
  } else if (t && f->n_used) {
    memset(t->cell, 0, t->n_cells * sizeof *t->cell);
  }
  f->n_used = 0;
  egi_words_clear(&f->mem);
}

void egi_flat_fini(egi_flat *f) {
  egi_words_free(&f->mem);
  egi_grown_free(f->member, f->cap_member);
  free(f->run);
  free(f->slot);
  egi_grown_free(f->settled, f->cap_settled);
  egi_grown_free(f->late, f->cap_late);
  drop_tables(f->table);
}

/* The rows of a slot in the order of the list: bits say which come from the fresh ones. */
static bool merge_rows(egi_flat *f, uint32_t *copy, uint32_t *slot) {
  const uint32_t n = slot[1] + slot[2], width = copy[slot[3]], *bits = copy + slot[3] + 1;
  if (!egi_grow(f->settled, f->cap_settled, n)) return false;
  uint32_t *out = f->settled, *from[2] = {copy + slot[0], copy + slot[0] + slot[1]};
  for (uint32_t i = 0; i < n / width; i++, out += width) {
    uint32_t **at = &from[bits[i / 32] >> i % 32 & 1];
    memcpy(out, *at, width * sizeof *out);
    *at += width;
  }
  memcpy(copy + slot[0], f->settled, n * sizeof *out);
  return true;
}

/* Nothing is fresh any more. Copies become as if they were made now: the order of rows must not
 * depend on which copies exist. */
static bool settle(egi_flat *f) {
  if (!f->fresh || !f->table) return true;
  for (size_t i = 0; i < f->table->n_cells; i++) {
    uint32_t *copy = f->table->cell[i].copy;
    if (!copy) continue;
    uint32_t *slot = copy + 1 + copy[0];
    for (uint32_t k = 0; k < copy[0]; k++, slot += EGI_SLOT_WORDS) {
      if (slot[3] && !merge_rows(f, copy, slot)) return false;
      slot[1] += slot[2];
      slot[2] = slot[3] = 0;
    }
  }
  return true;
}

/* Copies of the same graph serve again, unless rows are fresh that those who made them did not
 * have to tell apart. */
void egi_flat_begin(eg_sat *s, bool fresh, bool again) {
  egi_flat *f = s->flat;
  if (f->depth++) return; /* a callback of a search searches, and nothing changes in between */
  const uint64_t now = eg_sat_version(s);
  const bool other = f->made_at != now || (fresh && f->unmarked_at != now);
  if (f->off || other || (f->fresh && !f->order) || !settle(f)) forget(f);
  f->made_at = now;
  f->fresh = fresh;
  f->order = again;
  f->off = false;
}

void egi_flat_end(eg_sat *s) {
  egi_flat *f = s->flat;
  f->depth--;
  if (!f->depth && f->table) {
    drop_tables(f->table->older);
    f->table->older = NULL;
  }
}

void egi_flat_drop(eg_sat *s) {
  if (s->flat->depth == 0) forget(s->flat);
}

/* ---- which lists are copied: few, so that a word per class would be much ---- */

static bool reserve_slots(eg_sat *s, egi_flat *f) {
  if (s->n_slots <= f->n_slots) return true;
  egi_run *run = calloc(2 * (size_t)s->n_slots, sizeof *run);
  uint32_t *slot = malloc(s->n_slots * sizeof *slot);
  if (run && slot) {
    free(f->run);
    free(f->slot);
    f->run = run;
    f->slot = slot;
    f->n_slots = s->n_slots;
    return true;
  }
  free(run);
  free(slot);
  return false;
}

static bool reserve_cells(egi_flat *f) {
  egi_flat_table *old = f->table, *t;
  size_t cells = old ? old->n_cells : 64;
  if (2 * (f->n_used + 1) > cells) cells *= 2;
  if (old && cells == old->n_cells) return true;
  if (!(t = calloc(1, sizeof *t + cells * sizeof *t->cell))) return false;
  t->n_cells = cells;
  t->older = old;
  for (size_t i = 0; old && i < old->n_cells; i++)
    if (old->cell[i].copy) *egi_flat_cell_of(t, old->cell[i].list) = old->cell[i];
  __atomic_store_n(&f->table, t, __ATOMIC_RELEASE);
  return true;
}

/* ---- copying ---- */

/* Dead rows leave a list: where threads read it, when they are done. */
static void unlink_dead(eg_sat *s, uint32_t list) {
  const uint32_t c = list / 2, next = list % 2 == EGI_ABOVE ? 1 : ROW_NEXT;
  uint32_t *w = s->w, *link = list % 2 == EGI_ABOVE ? &s->cls[c].places : &s->cls[c].rows;
  for (uint32_t at = *link; at; at = w[at + next]) {
    if (w[(list % 2 == EGI_ABOVE ? egi_place_row(w, at) : at) + ROW_HEAD] & ROW_DEAD) continue;
    *link = at;
    link = &w[at + next];
  }
  *link = 0;
}

/* Collects its members with the run of each, the words of each run, and the slots that occur.
 * Inlined with the side as a constant. Returns: false without memory. */
static inline __attribute__((always_inline)) bool gather(eg_sat *s, egi_flat *f, uint32_t side,
                                                         uint32_t c) {
  const uint32_t next = side == EGI_ABOVE ? 1 : ROW_NEXT;
  const bool alone = !f->lock;
  uint32_t *w = s->w, *link = side == EGI_ABOVE ? &s->cls[c].places : &s->cls[c].rows;
  egi_run *runs = f->run;
  size_t n = 0, n_seen = 0;
  bool dead = false;
  f->n_member = f->n_seen = 0;
  for (uint32_t at = *link; at; at = w[at + next]) {
    const uint32_t row = side == EGI_ABOVE ? egi_place_row(w, at) : at, head = w[row + ROW_HEAD];
    const uint32_t k = side == EGI_ABOVE ? (at - row - ROW_KIDS) / 2 : 0;
    const egi_op *op = &s->op[head & ROW_OP];
    if (head & ROW_DEAD) {
      dead = true;
      continue;
    }
    if (alone) {
      *link = at;
      link = &w[at + next];
    }
    if (!egi_row_shown(head) || !(op->used & (side == EGI_ABOVE ? egi_used_up(k) : EGI_USED_DOWN)))
      continue;
    if (n == f->cap_member && !egi_grow(f->member, f->cap_member, n + 1))
      return false; /* what is linked so far leads on to the rest */
    const uint32_t slot = op->slot + k, tag = 2 * slot + (f->fresh && (head & ROW_FRESH));
    if (!runs[2 * slot].width) {
      f->slot[n_seen++] = slot;
      f->n_seen = n_seen;
      runs[2 * slot].width = op->arity + side;
    }
    f->member[n++] = (egi_member){row, tag, op->arity};
    runs[tag].n += op->arity + side;
  }
  f->n_member = n;
  if (alone) *link = 0;
  else if (dead && egi_grow(f->late, f->cap_late, f->n_late + 1))
    f->late[f->n_late++] = 2 * c + side;
  return true;
}

void egi_flat_share(eg_sat *s, pthread_mutex_t *lock) { s->flat->lock = lock; }

void egi_flat_unshare(eg_sat *s, bool keep) {
  egi_flat *f = s->flat;
  f->lock = NULL;
  for (size_t i = 0; keep && i < f->n_late; i++) unlink_dead(s, f->late[i]);
  f->n_late = 0;
  if (!keep) forget(f);
}

/* Where each run goes. Returns: words in all. */
static size_t lay_out(egi_flat *f, size_t n_slots) {
  size_t end = 1 + n_slots + EGI_SLOT_WORDS * (n_slots + 1);
  for (size_t i = 0; i < f->n_seen; i++) {
    egi_run *old = &f->run[2 * f->slot[i]], *fresh = old + 1;
    old->at = end;
    fresh->at = old->at + old->n;
    end = fresh->at + fresh->n;
    if (!f->order || !old->n || !fresh->n) continue;
    old->mask = end;
    end += 1 + ((old->n + fresh->n) / old->width + 31) / 32;
  }
  return end;
}

/* Puts the members where their runs are. Inlined with the side as a constant, and with whether some
 * slot has rows of both kinds, whose order is kept in bits. */
static inline __attribute__((always_inline)) void
put_members(const eg_sat *s, egi_flat *f, uint32_t side, bool mixed, uint32_t *word) {
  egi_run *runs = f->run;
  for (const egi_member *m = f->member, *last = m + f->n_member; m < last; m++) {
    egi_run *run = &runs[m->tag], *both = &runs[m->tag & ~1u];
    uint32_t *to = word + run->at;
    const uint32_t *kid = s->w + m->row + ROW_KIDS;
    if (mixed && both->mask) {
      word[both->mask + 1 + both->n_rows / 32] |= (m->tag & 1) << both->n_rows % 32;
      both->n_rows++;
    }
    run->at += m->arity + side;
    if (side == EGI_ABOVE) *to++ = egi_row_class(s, m->row);
    if (m->arity == 2) {
      to[0] = kid[0];
      to[1] = kid[2];
    } else {
      for (uint32_t k = 0; k < m->arity; k++) *to++ = kid[2 * k];
    }
  }
}

static void fill(const eg_sat *s, egi_flat *f, uint32_t side, size_t n_slots, uint32_t *word) {
  uint32_t *slots = word + 1, *out = slots + n_slots;
  bool mixed = false;
  word[0] = (uint32_t)n_slots;
  for (size_t i = 0; i < f->n_seen; i++, out += EGI_SLOT_WORDS) {
    const egi_run *old = &f->run[2 * f->slot[i]];
    slots[i] = f->slot[i];
    out[0] = (uint32_t)old[0].at;
    out[1] = (uint32_t)old[0].n;
    out[2] = (uint32_t)old[1].n;
    out[3] = (uint32_t)old[0].mask;
    if (!old->mask) continue;
    mixed = true;
    memset(word + old->mask, 0,
           (1 + ((old[0].n + old[1].n) / old->width + 31) / 32) * sizeof *word);
    word[old->mask] = (uint32_t)old->width;
  }
  memset(out, 0, EGI_SLOT_WORDS * (n_slots - f->n_seen + 1) * sizeof *out);
  for (size_t i = f->n_seen; i < n_slots; i++) slots[i] = EG_NONE;
  if (mixed) put_members(s, f, side, true, word);
  else if (side == EGI_ABOVE) put_members(s, f, EGI_ABOVE, false, word);
  else put_members(s, f, EGI_OF_CLASS, false, word);
}

static uint32_t *copy(eg_sat *s, egi_flat *f, uint32_t side, uint32_t c) {
  uint32_t *end, *word = NULL;
  if (side == EGI_ABOVE ? gather(s, f, EGI_ABOVE, c) : gather(s, f, EGI_OF_CLASS, c)) {
    const size_t n_slots = (f->n_seen + EGI_SLOTS - 1) / EGI_SLOTS * EGI_SLOTS,
                 n = lay_out(f, n_slots);
    if (n < EG_NONE && (word = egi_words_open(&f->mem, n, &end))) {
      egi_words_close(&f->mem, word + n);
      fill(s, f, side, n_slots, word);
    }
  }
  for (size_t i = 0; i < f->n_seen; i++)
    f->run[2 * f->slot[i]] = f->run[2 * f->slot[i] + 1] = (egi_run){0};
  return word;
}

static const uint32_t *add(eg_sat *s, egi_flat *f, uint32_t list) {
  if (f->off) return NULL; /* since this thread looked */
  const uint32_t *there = f->table ? egi_flat_cell_of(f->table, list)->copy : NULL;
  if (there) return there;
  uint32_t *made = reserve_slots(s, f) && reserve_cells(f) ? copy(s, f, list % 2, list / 2) : NULL;
  if (made) {
    egi_flat_cell *cell = egi_flat_cell_of(f->table, list);
    cell->list = list;
    __atomic_store_n(&cell->copy, made, __ATOMIC_RELEASE);
    f->n_used++;
  } else {
    __atomic_store_n(&f->off, true, __ATOMIC_RELEASE); /* without memory, lists serve as well */
  }
  return made;
}

const uint32_t *egi_flat_new(eg_sat *s, uint32_t list) {
  egi_flat *f = s->flat;
  if (!f->lock) return add(s, f, list);
  pthread_mutex_lock(f->lock);
  const uint32_t *made = add(s, f, list);
  pthread_mutex_unlock(f->lock);
  return made;
}
