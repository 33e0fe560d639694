/* Data per class of eg_sat: made, joined, brought up to the parents, repaired.
 *
 * Repairs may add and merge, so they never run inside the walk over a class: classes that are due
 * wait in a chain. */
#include <string.h>

#include "egraph/sat/sat_int.h"

static void *data_of(const eg_sat *s, uint32_t c) { return s->data + c * s->analysis.size; }

static void chain(uint32_t *head, uint32_t *next, uint32_t c) {
  if (next[c] != EG_NONE) return;
  next[c] = *head == EG_NONE ? c : *head;
  *head = c;
}
static uint32_t unchain(uint32_t *head, uint32_t *next) {
  const uint32_t c = *head;
  *head = next[c] == c ? EG_NONE : next[c];
  next[c] = EG_NONE;
  return c;
}

static void make(eg_sat *s, uint32_t row, void *out) {
  eg_class few[8];
  const uint32_t op = egi_row_op(s, row), n = s->op[op].arity;
  eg_class *child = n <= 8 ? few : s->kids;
  for (uint32_t k = 0; k < n; k++) child[k].i = egi_sat_find(s, egi_row_child(s, row, k));
  memset(out, 0, s->analysis.size);
  s->analysis.make(s->analysis.ctx, s, (eg_op){op}, child, n, out);
}

void egi_sat_data_new(eg_sat *s, uint32_t row) {
  const uint32_t c = s->w[row + ROW_CLASS];
  make(s, row, data_of(s, c));
  if (s->analysis.repair) chain(&s->repair, s->repair_next, c);
}

void egi_sat_data_row(eg_sat *s, uint32_t row) {
  const uint32_t c = egi_row_class(s, row);
  make(s, row, s->scratch);
  if (s->analysis.join(s->analysis.ctx, s, data_of(s, c), s->scratch) & EG_INTO_CHANGED)
    chain(&s->look, s->look_next, c);
  if (s->analysis.repair) chain(&s->repair, s->repair_next, c);
}

void egi_sat_data_union(eg_sat *s, uint32_t kept, uint32_t gone) {
  const bool due = s->look_next[gone] != EG_NONE;
  if (s->analysis.join(s->analysis.ctx, s, data_of(s, kept), data_of(s, gone)) || due)
    chain(&s->look, s->look_next, kept);
  memset(data_of(s, gone), 0, s->analysis.size);
  if (s->analysis.repair) chain(&s->repair, s->repair_next, kept);
}

iso_code egi_sat_repair_all(eg_sat *s, iso_error *err) {
  if (!s->analysis.make) return ISO_OK;
  while (s->repair != EG_NONE) {
    const uint32_t c = unchain(&s->repair, s->repair_next);
    if (s->up[c] != c) continue; /* the class that it merged into is chained too */
    const iso_code code = s->analysis.repair(s->analysis.ctx, s, (eg_class){c}, err);
    if (code) {
      chain(&s->repair, s->repair_next, egi_sat_find(s, c));
      return code;
    }
  }
  return ISO_OK;
}

/* Requires: closed, so that the places of a class are all with it. */
void egi_sat_look_all(eg_sat *s) {
  if (!s->analysis.make) return;
  while (s->look != EG_NONE) {
    const uint32_t c = unchain(&s->look, s->look_next);
    if (s->up[c] != c) continue;
    for (uint32_t place = s->cls[c].places; place; place = s->w[place + 1]) {
      const uint32_t row = egi_place_row(s->w, place);
      if (s->w[row + ROW_HEAD] & ROW_DEAD) continue;
      const uint32_t p = egi_row_class(s, row);
      make(s, row, s->scratch);
      if (!(s->analysis.join(s->analysis.ctx, s, data_of(s, p), s->scratch) & EG_INTO_CHANGED))
        continue;
      chain(&s->look, s->look_next, p);
      if (s->analysis.repair) chain(&s->repair, s->repair_next, p);
    }
  }
}
