/* Long lists copied flat for one search: the rows of a class, or those above it, side by side.
 *
 * Lists are links in the arena, in the order in which rows came: a walk waits for every link, and passes rows of
 * operators that nobody asked for. A long list to which a search comes a second time is copied: runs of one operator
 * (and, above, of one position of the child), each row being its children, above a class its own class before them, and
 * nothing else. Rows that are fresh are in runs of their own. A copy costs no more than a few walks, and what no search
 * comes to is not copied. */
#include <stdlib.h>
#include <string.h>

#include "egraph/query_int.h"

static void forget(egi_flat *f) {
  for (int i = 0; i < 2; i++) {
    free(f->list[i]);
    f->list[i] = NULL;
  }
  iso_arena_fini(&f->mem);
}

void egi_flat_fini(egi_flat *f) {
  forget(f);
  egi_grown_free(f->member, f->cap_member);
  free(f->run);
}

void egi_flat_begin(eg_sat *s, bool fresh) {
  egi_flat *f = s->flat;
  if (f->depth++) return; /* a callback of a search searches, and nothing changes in between */
  f->fresh = fresh;
  f->off = false;
  iso_arena_init(&f->mem);
}

void egi_flat_end(eg_sat *s) {
  if (--s->flat->depth == 0) forget(s->flat);
}

static bool reserve(eg_sat *s, egi_flat *f, uint32_t side) {
  if (s->n_slots > f->n_slots) {
    egi_run *p = calloc(2 * (size_t)s->n_slots, sizeof *p);
    if (!p) return false;
    free(f->run);
    f->run = p;
    f->n_slots = s->n_slots;
  }
  return f->list[side] || (f->list[side] = calloc(s->n_cls, sizeof *f->list[side]));
}

/* Its members with what run they go to, and how many words each run has; dead ones leave the list, which does not
 * disturb who walks it. Returns: false without memory, and then the list is as it was. */
static bool gather(eg_sat *s, egi_flat *f, uint32_t side, uint32_t c) {
  const uint32_t next = side == EGI_ABOVE ? 1 : ROW_NEXT;
  uint32_t *w = s->w, *link = side == EGI_ABOVE ? &s->cls[c].places : &s->cls[c].rows;
  f->n_member = 0;
  for (uint32_t at = *link; at; at = w[at + next]) {
    const uint32_t row = side == EGI_ABOVE ? egi_place_row(w, at) : at, head = w[row + ROW_HEAD];
    const uint32_t k = side == EGI_ABOVE ? (at - row - ROW_KIDS) / 2 : 0;
    const egi_op *op = &s->op[head & ROW_OP];
    if (head & ROW_DEAD) continue;
    *link = at;
    link = &w[at + next];
    if (!egi_row_shown(head) || !(op->used & (side == EGI_ABOVE ? egi_used_up(k) : EGI_USED_DOWN))) continue;
    if (!egi_grow(f->member, f->cap_member, f->n_member + 1)) return false; /* what is linked so far leads on to the rest */
    const uint32_t tag = 2 * (op->slot + k) + (f->fresh && (head & ROW_FRESH));
    f->member[f->n_member++] = (egi_member){row, tag, op->arity};
    f->run[tag].n += op->arity + side;
  }
  *link = 0;
  return true;
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
    if (side == EGI_ABOVE) word[run->at++] = egi_row_class(s, m->row);
    for (uint32_t k = 0; k < m->arity; k++) word[run->at++] = egi_row_child(s, m->row, k);
  }
  word[end] = EG_NONE;
}

static uint32_t *copy(eg_sat *s, egi_flat *f, uint32_t side, uint32_t c) {
  uint32_t *word = NULL;
  size_t total = 1;
  const bool ok = gather(s, f, side, c);
  for (size_t i = 0; i < f->n_member; i++) {
    egi_run *run = &f->run[f->member[i].tag];
    if (!run->at) total += 2 + run->n;
    run->at = 1; /* counted */
  }
  for (size_t i = 0; i < f->n_member; i++) f->run[f->member[i].tag].at = 0;
  if (ok && total < EG_NONE && (word = iso_arena_alloc(&f->mem, total * sizeof *word))) fill(s, f, side, word);
  for (size_t i = 0; i < f->n_member; i++) f->run[f->member[i].tag] = (egi_run){0};
  return word;
}

const uint32_t *egi_flat_runs(eg_sat *s, uint32_t side, uint32_t c) {
  egi_flat *f = s->flat;
  if (f->off || (!f->list[side] && !reserve(s, f, side))) return NULL;
  const uint32_t **at = &f->list[side][c];
  if (*at) return *at;
  const uint32_t *word = copy(s, f, side, c);
  if (word) return *at = word;
  f->off = true; /* without memory, lists serve as well */
  return NULL;
}
