/* The invariants of sat_int.h, looked at from outside: every row against the table, every list
 * against every row. */
#include <stdlib.h>
#include <string.h>

#include "egraph/sat/sat_int.h"

#define BROKEN(...) \
  do { \
    code = iso_fail(err, ISO_INTERNAL, __VA_ARGS__); \
    goto done; \
  } while (0)

static bool in_table(const eg_sat *s, uint32_t row, uint32_t hash) {
  const size_t mask = s->n_buckets - 1;
  for (size_t i = hash & mask;; i = (i + 1) & mask) {
    const egi_bucket *b = &s->bucket[i];
    for (int k = 0; k < EGI_BUCKET; k++)
      if (b->tag[k] == egi_tag(hash) && b->row[k] == row) return true;
    if (!b->passed) return false;
  }
}

iso_code eg_sat_check(eg_sat *s, iso_error *err) {
  iso_code code = ISO_OK;
  size_t alive = 0, hidden = 0, shown = 0, places = 0, listed = 0, linked = 0,
         cells = egi_table_count(s), classes = 0;
  uint32_t *args = malloc((s->max_arity + 1) * sizeof *args);
  if (!args) return iso_fail(err, ISO_NOMEM, "out of memory for a check");
  if (s->n_dirty || s->look != EG_NONE || s->repair != EG_NONE)
    BROKEN("checked before it was rebuilt");
  for (size_t r = 1; r < s->n_w;) {
    const uint32_t row = (uint32_t)r, head = s->w[row + ROW_HEAD], op = head & ROW_OP;
    if (!(head & ROW_IS_HEAD) || op >= s->n_ops) BROKEN("row %u has no head", row);
    const uint32_t n = s->op[op].arity;
    r += egi_row_words(n);
    if (head & ROW_DEAD) continue;
    alive++;
    if (head & ROW_HIDDEN) hidden++;
    else shown++;
    places += n;
    for (uint32_t k = 0; k < n; k++) {
      args[k] = egi_row_child(s, row, k);
      if (args[k] >= s->n_cls || s->up[args[k]] != args[k])
        BROKEN("row %u has a child that is not canonical", row);
      if (!(s->cls[args[k]].above & s->op[op].bit))
        BROKEN("class %u does not know what is above it", args[k]);
    }
    const uint32_t hash = egi_row_hash(s, row);
    if (!in_table(s, row, hash)) BROKEN("row %u is not in the table", row);
    if (egi_row_find(s, op, args, n, hash) != row) BROKEN("row %u has an equal", row);
    if (!(head & ROW_HIDDEN) && n && !(s->cls[egi_row_class(s, row)].has & s->op[op].bit))
      BROKEN("class of row %u does not know what is in it", row);
  }
  if (cells != alive || alive != s->n_rows || hidden != s->n_hidden)
    BROKEN("%zu rows, %zu hidden, %zu in the table", alive, hidden, cells);
  for (uint32_t c = 0; c < s->n_cls; c++) {
    const egi_cls *x = &s->cls[c];
    if (s->up[c] != c) {
      if (x->rows || x->places) BROKEN("class %u is gone but full", c);
      continue;
    }
    classes++;
    for (uint32_t r = x->rows; r; r = s->w[r + ROW_NEXT]) {
      if (!egi_row_shown(s->w[r + ROW_HEAD])) continue;
      if (egi_row_class(s, r) != c || ++listed > shown) BROKEN("row %u is in the wrong class", r);
    }
    for (uint32_t p = x->places; p; p = s->w[p + 1]) {
      const uint32_t row = egi_place_row(s->w, p);
      if (s->w[row + ROW_HEAD] & ROW_DEAD) continue;
      if (s->w[p] != c || ++linked > places) BROKEN("place %u is in the wrong list", p);
    }
  }
  if (listed != shown) BROKEN("%zu rows in classes, %zu shown", listed, shown);
  if (linked != places) BROKEN("%zu places in lists, %zu in rows", linked, places);
  if (classes != eg_sat_count_classes(s))
    BROKEN("%zu classes, %zu counted", classes, eg_sat_count_classes(s));
done:
  free(args);
  return code;
}
