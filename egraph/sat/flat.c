/* Long lists copied flat for one search: the rows of a class, or those above it, side by side.
 *
 * Lists are links in the arena, in the order in which rows came: a walk waits for every link, and
 * passes rows of operators that nobody asked for. A long list is copied when a search comes there
 * first: a run per operator (above, per position of the child), each row being its children, above
 * a class its own class before them, and nothing else. Runs are found by a hash of class and slot,
 * so that a search meets only what it asks for. Rows that are fresh come last in a run. What no
 * search comes to is not copied.
 *
 * Copies are kept as long as the graph stays as it is: under backoff half of all searches find it
 * as the one before left it. */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/query_int.h"

enum { FEW = 1 << 10 };

static void forget(egi_flat *f) {
  if (f->n_cells > FEW) {
    free(f->cell);
    f->cell = NULL;
    f->n_cells = 0;
  } else if (f->n_cells) {
    memset(f->cell, 0, f->n_cells * sizeof *f->cell);
  }
  f->n_used = 0;
  egi_words_clear(&f->mem);
}

void egi_flat_fini(egi_flat *f) {
  egi_words_free(&f->mem);
  egi_grown_free(f->member, f->cap_member);
  free(f->run);
  free(f->slot);
  free(f->cell);
}

/* Nothing is fresh any more: what was so in a run joins the rest of it. */
static void settle(egi_flat *f) {
  for (size_t i = 0; f->fresh && i < f->n_cells; i++) {
    uint32_t *copy = f->cell[i].copy;
    if (!copy) continue;
    uint32_t *run = copy + 1 + copy[0];
    for (uint32_t k = 0; k < copy[0]; k++, run += 3) {
      run[1] += run[2];
      run[2] = 0;
    }
  }
}

/* Copies of the same graph serve again, unless rows are fresh that those who made them did not
 * have to tell apart. */
void egi_flat_begin(eg_sat *s, bool fresh) {
  egi_flat *f = s->flat;
  if (f->depth++) return; /* a callback of a search searches, and nothing changes in between */
  const uint64_t now = eg_sat_version(s);
  if (f->off || f->made_at != now || (fresh && f->unmarked_at != now)) forget(f);
  else settle(f);
  f->made_at = now;
  f->fresh = fresh;
  f->off = false;
}

void egi_flat_end(eg_sat *s) { s->flat->depth--; }

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
  size_t cells = f->n_cells ? f->n_cells : 64;
  if (2 * (f->n_used + 1) > cells) cells *= 2;
  if (cells == f->n_cells) return true;
  const egi_flat old = *f;
  egi_flat_cell *cell = calloc(cells, sizeof *cell);
  if (!cell) return false;
  f->n_cells = cells;
  f->cell = cell;
  for (size_t i = 0; i < old.n_cells; i++)
    if (old.cell[i].copy) *egi_flat_cell_of(f, old.cell[i].list) = old.cell[i];
  free(old.cell);
  return true;
}

/* ---- copying ---- */

/* Its members with what run they go to, how many words each run has, and which slots there are;
 * dead ones leave the list, which does not disturb who walks it. Returns: false without memory. */
static bool gather(eg_sat *s, egi_flat *f, uint32_t side, uint32_t c) {
  const uint32_t next = side == EGI_ABOVE ? 1 : ROW_NEXT;
  uint32_t *w = s->w, *link = side == EGI_ABOVE ? &s->cls[c].places : &s->cls[c].rows;
  f->n_member = f->n_seen = 0;
  for (uint32_t at = *link; at; at = w[at + next]) {
    const uint32_t row = side == EGI_ABOVE ? egi_place_row(w, at) : at, head = w[row + ROW_HEAD];
    const uint32_t k = side == EGI_ABOVE ? (at - row - ROW_KIDS) / 2 : 0;
    const egi_op *op = &s->op[head & ROW_OP];
    if (head & ROW_DEAD) continue;
    *link = at;
    link = &w[at + next];
    if (!egi_row_shown(head) || !(op->used & (side == EGI_ABOVE ? egi_used_up(k) : EGI_USED_DOWN)))
      continue;
    if (!egi_grow(f->member, f->cap_member, f->n_member + 1))
      return false; /* what is linked so far leads on to the rest */
    const uint32_t slot = op->slot + k, tag = 2 * slot + (f->fresh && (head & ROW_FRESH));
    if (!f->run[2 * slot].n && !f->run[2 * slot + 1].n) f->slot[f->n_seen++] = slot;
    f->member[f->n_member++] = (egi_member){row, tag, op->arity};
    f->run[tag].n += op->arity + side;
  }
  *link = 0;
  return true;
}

/* Where each run goes. Returns: words in all. */
static size_t lay_out(egi_flat *f, size_t n_slots) {
  size_t end = 1 + n_slots + 3 * (n_slots + 1);
  for (size_t i = 0; i < f->n_seen; i++) {
    egi_run *old = &f->run[2 * f->slot[i]], *fresh = old + 1;
    old->at = end;
    fresh->at = old->at + old->n;
    end = fresh->at + fresh->n;
  }
  return end;
}

static void fill(const eg_sat *s, egi_flat *f, uint32_t side, size_t n_slots, uint32_t *word) {
  uint32_t *slots = word + 1, *out = slots + n_slots;
  word[0] = (uint32_t)n_slots;
  for (size_t i = 0; i < f->n_seen; i++) {
    const egi_run *old = &f->run[2 * f->slot[i]];
    slots[i] = f->slot[i];
    out[3 * i] = (uint32_t)old[0].at;
    out[3 * i + 1] = (uint32_t)old[0].n;
    out[3 * i + 2] = (uint32_t)old[1].n;
  }
  for (size_t i = f->n_seen; i < n_slots; i++) slots[i] = EG_NONE;
  memset(out + 3 * n_slots, 0, 3 * sizeof *out);
  for (const egi_member *m = f->member, *last = m + f->n_member; m < last; m++) {
    egi_run *run = &f->run[m->tag];
    uint32_t *to = word + run->at;
    const uint32_t *kid = s->w + m->row + ROW_KIDS;
    run->at += m->arity + side;
    if (side == EGI_ABOVE) *to++ = egi_row_class(s, m->row);
    for (uint32_t k = 0; k < m->arity; k++) *to++ = kid[2 * k];
  }
}

static uint32_t *copy(eg_sat *s, egi_flat *f, uint32_t side, uint32_t c) {
  uint32_t *end, *word = NULL;
  if (gather(s, f, side, c)) {
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

const uint32_t *egi_flat_new(eg_sat *s, uint32_t list) {
  egi_flat *f = s->flat;
  uint32_t *made = reserve_slots(s, f) && reserve_cells(f) ? copy(s, f, list % 2, list / 2) : NULL;
  if (made) {
    *egi_flat_cell_of(f, list) = (egi_flat_cell){list, made};
    f->n_used++;
  } else {
    f->off = true; /* without memory, lists serve as well */
  }
  return made;
}
