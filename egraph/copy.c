/* A second eg_sat like the first: arrays copied as they are, operators interned in their order, which gives them their ids. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/log_int.h"
#include "egraph/query_int.h"

static bool copy_ops(const eg_sat *s, eg_sat *t) {
  for (size_t i = 0; i < s->n_ops; i++) {
    eg_op op;
    if (eg_sat_op(t, s->op[i].name, s->op[i].n_name, s->op[i].arity, &op, NULL)) return false;
    t->op[op.i].n_rows = s->op[i].n_rows;
    t->op[op.i].leaf = s->op[i].leaf;
  }
  return true;
}

static bool copy_rows(const eg_sat *s, eg_sat *t) {
  if (!egi_grow(t->w, t->cap_w, s->n_w)) return false;
  if (s->w) memcpy(t->w, s->w, s->n_w * sizeof *s->w);
  t->n_w = s->n_w;
  if (s->n_buckets && !egi_table_grow(t, s->n_rows)) return false; /* puts in all rows that are not dead */
  t->n_rows = s->n_rows;
  t->n_hidden = s->n_hidden;
  t->n_dead = s->n_dead;
  t->n_added = s->n_added;
  t->n_unions = s->n_unions;
  /* What is marked is not known: the first search looks at everything, and takes all marks off. */
  t->marked = t->lost = true;
  return true;
}

static bool copy_classes(const eg_sat *s, eg_sat *t) {
  const size_t n = s->n_cls;
  if (!n) return true;
  if (!egi_grow(t->up, t->cap_up, n) || !egi_grow(t->cls, t->cap_cls, n) || !egi_grow(t->dirty, t->cap_dirty, n)) return false;
  memcpy(t->up, s->up, n * sizeof *s->up);
  memcpy(t->cls, s->cls, n * sizeof *s->cls);
  memcpy(t->dirty, s->dirty, s->n_dirty * sizeof *s->dirty);
  t->n_dirty = s->n_dirty;
  t->n_merged = s->n_merged;
  return true;
}

/* Classes count as far as they have data, which is what is freed where one fails. */
static bool copy_data(const eg_sat *s, eg_sat *t) {
  const eg_sat_analysis *a = &s->analysis;
  const size_t n = s->n_cls;
  if (!a->make || !n) {
    t->n_cls = n;
    return true;
  }
  if (!egi_big_grow((void **)&t->data, &t->cap_data, 0, n, a->size) || !egi_grow(t->look_next, t->cap_look, n) ||
      !egi_grow(t->repair_next, t->cap_repair, n))
    return false;
  memcpy(t->data, s->data, n * a->size);
  memcpy(t->look_next, s->look_next, n * sizeof *s->look_next);
  memcpy(t->repair_next, s->repair_next, n * sizeof *s->repair_next);
  t->look = s->look;
  t->repair = s->repair;
  for (; t->n_cls < n; t->n_cls++)
    if (a->copy && s->up[t->n_cls] == t->n_cls &&
        !a->copy(a->ctx, t->data + t->n_cls * a->size, s->data + t->n_cls * a->size))
      return false;
  return true;
}

static bool copy_log(const egi_log *l, egi_log *t) {
  if (!l) return true;
  if ((l->n_term && !iso_grow(t->term, t->cap_term, l->n_term)) || (l->n_at && !iso_grow(t->term_at, t->cap_at, l->n_at)) ||
      (l->n_event && !iso_grow(t->event, t->cap_event, l->n_event)))
    return false;
  if (l->n_term) memcpy(t->term, l->term, l->n_term * sizeof *l->term);
  if (l->n_at) memcpy(t->term_at, l->term_at, l->n_at * sizeof *l->term_at);
  if (l->n_event) memcpy(t->event, l->event, l->n_event * sizeof *l->event);
  t->n_term = l->n_term;
  t->n_at = l->n_at;
  t->n_event = l->n_event;
  return true;
}

iso_code eg_sat_copy(const eg_sat *s, eg_sat **out, iso_error *err) {
  const eg_sat_options o = {.analysis = s->analysis, .log = s->log != NULL};
  if (s->analysis.free && !s->analysis.copy) return iso_fail(err, ISO_USAGE, "an analysis that frees its data has to say how to copy it");
  eg_sat *t;
  const iso_code code = eg_sat_new(&o, &t, err);
  if (code) return code;
  if (copy_ops(s, t) && copy_rows(s, t) && copy_classes(s, t) && copy_log(s->log, t->log) && copy_data(s, t)) {
    *out = t;
    return ISO_OK;
  }
  eg_sat_free(t);
  return iso_fail(err, ISO_NOMEM, "out of memory for a copy of an e-graph");
}
