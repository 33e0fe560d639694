/* eg_sat as its users see it: create, operators, add, merge, rebuild, read, free. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "egraph/sat/log_int.h"
#include "egraph/sat/query_int.h"

iso_code eg_sat_new(const eg_sat_options *options, eg_sat **out, iso_error *err) {
  if (options && options->analysis.make && (!options->analysis.size || !options->analysis.join))
    return iso_fail(err, ISO_USAGE, "an analysis needs the size of its data and a join");
  eg_sat *s = calloc(1, sizeof *s);
  if (!s) return iso_fail(err, ISO_NOMEM, "out of memory for an e-graph");
  if (options) s->analysis = options->analysis;
  iso_arena_init(&s->names);
  s->n_w = 1; /* word 0 is nobody's */
  s->look = s->repair = EG_NONE;
  bool ok = true;
  if (s->analysis.make) {
    ok = (s->scratch = calloc(1, s->analysis.size)) != NULL;
  } else {
    s->analysis.size = 0;
  }
  ok = ok && (s->flat = calloc(1, sizeof *s->flat)) != NULL;
  if (ok && options && options->log) ok = (s->log = calloc(1, sizeof *s->log)) != NULL;
  if (!ok) {
    eg_sat_free(s);
    return iso_fail(err, ISO_NOMEM, "out of memory for an e-graph");
  }
  *out = s;
  return ISO_OK;
}

void eg_sat_free(eg_sat *s) {
  if (!s) return;
  if (s->analysis.make && s->analysis.free)
    for (size_t c = 0; c < s->n_cls; c++)
      if (s->up[c] == c) s->analysis.free(s->analysis.ctx, s->data + c * s->analysis.size);
  for (size_t i = 0; i < s->n_ops; i++) {
    egi_grown_free(s->op[i].row, s->op[i].cap_row);
    egi_grown_free(s->op[i].fresh, s->op[i].cap_fresh);
  }
  iso_arena_fini(&s->names);
  egi_log_free(s->log);
  if (s->flat) egi_flat_fini(s->flat);
  egi_grown_free(s->w, s->cap_w);
  egi_grown_free(s->bucket_mem, s->cap_bucket);
  egi_grown_free(s->dirty, s->cap_dirty);
  egi_grown_free(s->up, s->cap_up);
  egi_grown_free(s->cls, s->cap_cls);
  egi_grown_free(s->fresh, s->cap_fresh);
  egi_big_free(s->data, s->cap_data * s->analysis.size);
  egi_grown_free(s->look_next, s->cap_look);
  egi_grown_free(s->repair_next, s->cap_repair);
  void *owned[] = {s->op, s->op_cell, s->scratch, s->kids, s->args, s->flat, s};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
}

/* ---- operators ---- */

static uint32_t op_hash(const char *name, size_t n, size_t arity) {
  return (uint32_t)iso_hash(name, n, arity);
}

static uint32_t *op_cell(const eg_sat *s, const char *name, size_t n, size_t arity) {
  const size_t mask = s->n_op_cells - 1;
  size_t i = op_hash(name, n, arity) & mask;
  for (; s->op_cell[i] != EG_NONE; i = (i + 1) & mask) {
    const egi_op *op = &s->op[s->op_cell[i]];
    if (op->arity == arity && op->n_name == n && memcmp(op->name, name, n) == 0) break;
  }
  return &s->op_cell[i];
}

static bool op_reserve(eg_sat *s, size_t arity) {
  if (!iso_grow(s->op, s->cap_op, s->n_ops + 1)) return false;
  if (arity > s->max_arity || !s->kids) {
    eg_class *kids = realloc(s->kids, (arity + 1) * sizeof *kids);
    if (kids) s->kids = kids;
    uint32_t *args = realloc(s->args, (arity + 1) * sizeof *args);
    if (args) s->args = args;
    if (!kids || !args) return false;
    s->max_arity = (uint32_t)arity;
  }
  if (2 * (s->n_ops + 1) <= s->n_op_cells) return true;
  const size_t n = s->n_op_cells ? 2 * s->n_op_cells : 64;
  uint32_t *cell = malloc(n * sizeof *cell), *old = s->op_cell;
  if (!cell) return false;
  memset(cell, 0xff, n * sizeof *cell); /* EG_NONE */
  s->op_cell = cell;
  s->n_op_cells = n;
  free(old);
  for (size_t i = 0; i < s->n_ops; i++)
    *op_cell(s, s->op[i].name, s->op[i].n_name, s->op[i].arity) = (uint32_t)i;
  return true;
}

iso_code eg_sat_op(eg_sat *s, const char *name, size_t n, size_t arity, eg_op *out,
                   iso_error *err) {
  if (s->n_op_cells) {
    const uint32_t at = *op_cell(s, name, n, arity);
    if (at != EG_NONE) {
      out->i = at;
      return ISO_OK;
    }
  }
  if (s->n_ops >= ROW_OP || arity > 1u << 20 || s->n_slots > (1u << 31) - 1 - arity)
    return iso_fail(err, ISO_LIMIT, "too many operators or children");
  const char *copy = op_reserve(s, arity) ? iso_arena_strndup(&s->names, name, n) : NULL;
  if (!copy) return iso_fail(err, ISO_NOMEM, "out of memory for an operator");
  *op_cell(s, name, n, arity) = (uint32_t)s->n_ops;
  s->op[s->n_ops] = (egi_op){.name = copy, .n_name = n, .arity = (uint32_t)arity};
  if (arity) s->op[s->n_ops].bit = (uint16_t)(1u << s->n_inner++ % 16);
  s->op[s->n_ops].slot = s->n_slots;
  s->n_slots += (uint32_t)arity;
  out->i = (uint32_t)s->n_ops++;
  return ISO_OK;
}

const char *eg_sat_op_name(const eg_sat *s, eg_op op) { return s->op[op.i].name; }
size_t eg_sat_op_arity(const eg_sat *s, eg_op op) { return s->op[op.i].arity; }
size_t eg_sat_count_ops(const eg_sat *s) { return s->n_ops; }

/* ---- adding and merging ---- */

static inline uint32_t canonical(const eg_sat *s, uint32_t op, const eg_class *child, uint32_t n,
                                 uint32_t *out) {
  uint64_t h = egi_mix_op(op);
  for (uint32_t k = 0; k < n; k++) {
    assert(child[k].i < s->n_cls);
    h = egi_mix(h, out[k] = egi_sat_find(s, child[k].i));
  }
  return egi_mix_end(h);
}

bool eg_sat_lookup(const eg_sat *s, eg_op op, const eg_class *child, eg_class *out) {
  const uint32_t n = s->op[op.i].arity,
                 row = egi_row_find(s, op.i, s->args, n, canonical(s, op.i, child, n, s->args));
  if (!row) return false;
  out->i = egi_row_class(s, row);
  return true;
}

static iso_code add_new(eg_sat *s, uint32_t op, uint32_t n, const uint32_t *kid, uint32_t hash,
                        eg_class *out, iso_error *err) {
  if (!egi_rows_reserve(s, 1, n) || (s->log && !egi_log_reserve(s, 1, n))) {
    if (s->n_w + egi_row_words(n) > ROW_MAX || s->n_cls >= ROW_MAX)
      return iso_fail(err, ISO_LIMIT, "too many e-nodes");
    return iso_fail(err, ISO_NOMEM, "out of memory for an e-node of \"%s\"", s->op[op].name);
  }
  const uint32_t row = egi_row_append(s, op, kid, n, hash, EG_NONE), c = s->w[row + ROW_CLASS];
  out->i = c;
  if (s->log) egi_log_class(s, row);
  if (!s->analysis.make) return ISO_OK;
  egi_sat_data_new(s, row);
  const iso_code code = egi_sat_repair_all(s, err);
  out->i = egi_sat_find(s, c);
  return code;
}

/* Inlined with the arity as a constant. */
static inline __attribute__((always_inline)) iso_code add(eg_sat *s, uint32_t op, uint32_t n,
                                                          const eg_class *child, uint32_t *kid,
                                                          eg_class *out, iso_error *err) {
  const uint32_t hash = canonical(s, op, child, n, kid),
                 row = s->n_buckets ? egi_row_find_in(s, op, kid, n, hash) : 0;
  if (!row) return add_new(s, op, n, kid, hash, out, err);
  out->i = egi_row_class(s, row);
  return ISO_OK;
}

iso_code eg_sat_add(eg_sat *s, eg_op op, const eg_class *child, eg_class *out, iso_error *err) {
  const uint32_t n = s->op[op.i].arity;
  uint32_t kid[2];
  switch (n) {
  case 1: return add(s, op.i, 1, child, kid, out, err);
  case 2: return add(s, op.i, 2, child, kid, out, err);
  default: return add(s, op.i, n, child, s->args, out, err);
  }
}

iso_code eg_sat_merge(eg_sat *s, eg_class a, eg_class b, eg_why why, iso_error *err) {
  const uint32_t x = egi_sat_find(s, a.i), y = egi_sat_find(s, b.i);
  if (x == y) return ISO_OK;
  if (!egi_log_merge(s, a.i, b.i, why))
    return iso_fail(err, ISO_NOMEM, "out of memory for the log of a merge");
  egi_sat_union(s, x, y);
  return egi_sat_repair_all(s, err);
}

iso_code eg_sat_rebuild(eg_sat *s, iso_error *err) {
  while (s->n_dirty || s->look != EG_NONE || s->repair != EG_NONE) {
    egi_sat_close(s);
    egi_sat_look_all(s);
    const iso_code code = egi_sat_repair_all(s, err);
    if (code) return code;
  }
  return ISO_OK;
}

void eg_sat_prune(eg_sat *s, eg_class c) {
  const uint32_t id = egi_sat_find(s, c.i);
  uint32_t *w = s->w, *link = &s->cls[id].rows;
  egi_flat_drop(s);
  for (uint32_t r = *link; r; r = w[r + ROW_NEXT]) {
    egi_op *op = &s->op[egi_row_op(s, r)];
    if (!egi_row_shown(w[r + ROW_HEAD])) continue;
    if (op->arity == 0) {
      *link = r;
      link = &w[r + ROW_NEXT];
      continue;
    }
    w[r + ROW_HEAD] |= ROW_HIDDEN;
    op->n_rows--;
    s->n_hidden++;
  }
  *link = 0;
}

/* ---- reading ---- */

eg_class eg_sat_find(const eg_sat *s, eg_class c) { return (eg_class){egi_shared_find(s, c.i)}; }
void *eg_sat_data(const eg_sat *s, eg_class c) {
  return s->data + egi_shared_find(s, c.i) * s->analysis.size;
}
size_t eg_sat_count_nodes(const eg_sat *s) { return s->n_rows - s->n_hidden; }
size_t eg_sat_count_classes(const eg_sat *s) { return s->n_cls - s->n_merged; }
size_t eg_sat_count_ids(const eg_sat *s) { return s->n_cls; }
uint64_t eg_sat_version(const eg_sat *s) { return s->n_added + s->n_unions; }

size_t eg_sat_mem_bytes(const eg_sat *s) {
  size_t n = s->cap_w * sizeof *s->w + s->n_buckets * sizeof *s->bucket +
             s->cap_cls * (sizeof *s->cls + sizeof *s->up + sizeof *s->dirty) +
             s->cap_fresh * sizeof *s->fresh + s->cap_data * s->analysis.size +
             (s->cap_look + s->cap_repair) * sizeof *s->look_next;
  for (size_t i = 0; i < s->n_ops; i++)
    n += sizeof s->op[i] + (s->op[i].cap_row + s->op[i].cap_fresh) * sizeof(uint32_t);
  return n;
}

static eg_row shown(const eg_sat *s, uint32_t r) {
  while (r && !egi_row_shown(s->w[r + ROW_HEAD])) r = s->w[r + ROW_NEXT];
  return (eg_row){r};
}
eg_row eg_sat_first(const eg_sat *s, eg_class c) {
  return shown(s, s->cls[egi_shared_find(s, c.i)].rows);
}
eg_row eg_sat_next(const eg_sat *s, eg_row r) { return shown(s, s->w[r.i + ROW_NEXT]); }
eg_op eg_sat_row_op(const eg_sat *s, eg_row r) { return (eg_op){egi_row_op(s, r.i)}; }
eg_class eg_sat_row_class(const eg_sat *s, eg_row r) { return (eg_class){egi_row_class(s, r.i)}; }
eg_class eg_sat_row_child(const eg_sat *s, eg_row r, size_t k) {
  return (eg_class){egi_shared_find(s, egi_row_child(s, r.i, (uint32_t)k))};
}
