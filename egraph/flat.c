/* Long lists copied flat for one search: the rows of a class, or those above it, side by side.
 *
 * Lists are links in the arena, in the order in which rows came: a walk waits for every link, and passes rows of
 * operators that nobody asked for. A long list is copied when a search comes there first: runs of one operator (and,
 * above, of one position of the child), each row being its children, above a class its own class before them, and
 * nothing else. Rows that are fresh are in runs of their own. What no search comes to is not copied. */
#include <stdlib.h>
#include <string.h>

#include "egraph/query_int.h"

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
  free(f->cell);
}

void egi_flat_begin(eg_sat *s, bool fresh) {
  egi_flat *f = s->flat;
  if (f->depth++) return; /* a callback of a search searches, and nothing changes in between */
  f->fresh = fresh;
  f->off = false;
}

void egi_flat_end(eg_sat *s) {
  if (--s->flat->depth == 0) forget(s->flat);
}

/* ---- which lists are copied: few, so that a word per class would be much ---- */

static bool reserve(eg_sat *s, egi_flat *f) {
  if (s->n_slots > f->n_slots) {
    egi_run *p = calloc(2 * (size_t)s->n_slots, sizeof *p);
    if (!p) return false;
    free(f->run);
    f->run = p;
    f->n_slots = s->n_slots;
  }
  if (2 * (f->n_used + 1) <= f->n_cells) return true;
  const egi_flat old = *f;
  egi_flat_cell *cell = calloc(old.n_cells ? 2 * old.n_cells : 64, sizeof *cell);
  if (!cell) return false;
  f->n_cells = old.n_cells ? 2 * old.n_cells : 64;
  f->cell = cell;
  for (size_t i = 0; i < old.n_cells; i++)
    if (old.cell[i].runs) *egi_flat_cell_of(f, old.cell[i].list) = old.cell[i];
  free(old.cell);
  return true;
}

/* ---- copying ---- */

/* Its members with what run they go to, and how many words each run has; dead ones leave the list, which does not
 * disturb who walks it. Returns: words in all with those before each run, 0 without memory. */
static size_t gather(eg_sat *s, egi_flat *f, uint32_t side, uint32_t c) {
  const uint32_t next = side == EGI_ABOVE ? 1 : ROW_NEXT;
  uint32_t *w = s->w, *link = side == EGI_ABOVE ? &s->cls[c].places : &s->cls[c].rows;
  size_t total = 1;
  f->n_member = 0;
  for (uint32_t at = *link; at; at = w[at + next]) {
    const uint32_t row = side == EGI_ABOVE ? egi_place_row(w, at) : at, head = w[row + ROW_HEAD];
    const uint32_t k = side == EGI_ABOVE ? (at - row - ROW_KIDS) / 2 : 0;
    const egi_op *op = &s->op[head & ROW_OP];
    if (head & ROW_DEAD) continue;
    *link = at;
    link = &w[at + next];
    if (!egi_row_shown(head) || !(op->used & (side == EGI_ABOVE ? egi_used_up(k) : EGI_USED_DOWN))) continue;
    if (!egi_grow(f->member, f->cap_member, f->n_member + 1)) return 0; /* what is linked so far leads on to the rest */
    const uint32_t tag = 2 * (op->slot + k) + (f->fresh && (head & ROW_FRESH));
    f->member[f->n_member++] = (egi_member){row, tag, op->arity};
    if (!f->run[tag].n) total += 2;
    f->run[tag].n += op->arity + side;
    total += op->arity + side;
  }
  *link = 0;
  return total < EG_NONE ? total : 0;
}

static void fill(eg_sat *s, egi_flat *f, uint32_t side, uint32_t *word) {
  uint32_t end = 0;
  for (const egi_member *m = f->member, *last = m + f->n_member; m < last; m++) {
    egi_run *run = &f->run[m->tag];
    if (!run->at) {
      word[end] = m->tag;
      word[end + 1] = run->n;
      run->at = end + 2;
      end += 2 + run->n;
    }
    uint32_t *to = word + run->at;
    const uint32_t *kid = s->w + m->row + ROW_KIDS;
    run->at += m->arity + side;
    if (side == EGI_ABOVE) *to++ = egi_row_class(s, m->row);
    for (uint32_t k = 0; k < m->arity; k++) *to++ = kid[2 * k];
  }
  word[end] = EG_NONE;
}

static uint32_t *copy(eg_sat *s, egi_flat *f, uint32_t side, uint32_t c) {
  const size_t total = gather(s, f, side, c);
  uint32_t *end, *word = total ? egi_words_open(&f->mem, total, &end) : NULL;
  if (word) {
    egi_words_close(&f->mem, word + total);
    fill(s, f, side, word);
    for (const uint32_t *run = word; *run != EG_NONE; run += 2 + run[1]) f->run[*run] = (egi_run){0};
  } else {
    for (size_t i = 0; i < f->n_member; i++) f->run[f->member[i].tag] = (egi_run){0};
  }
  return word;
}

const uint32_t *egi_flat_new(eg_sat *s, uint32_t list) {
  egi_flat *f = s->flat;
  const uint32_t *runs = reserve(s, f) ? copy(s, f, list % 2, list / 2) : NULL;
  if (runs) {
    *egi_flat_cell_of(f, list) = (egi_flat_cell){list, runs};
    f->n_used++;
  } else {
    f->off = true; /* without memory, lists serve as well */
  }
  return runs;
}
