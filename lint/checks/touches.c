/* Reads and writes of buffers, by event. */
#include "lint/checks/races.h"

/* Whether this rank is the root of a collective: 1 or 0, and -1 where that is not said. */
static int is_root(const lint_trace *t, const lint_proc *p, const lint_event *e) {
  const int64_t root = e->extra ? p->prog->extra[e->extra].root : -1;
  if (root < 0) return -1;
  const uint32_t id = lint_group_of(p, e);
  const lint_group *g = id == LINT_NONE ? NULL : &t->group[id];
  if (!g || !g->by_axes) return root == p->rank;
  int64_t place;
  lint_first_of(t, p->rank, t->ref[e->group].axes, &place);
  return place == root;
}

static bool has_out(const lint_proc *p, const lint_event *e) {
  for (uint32_t i = 0; i < e->n_access; i++)
    if (p->prog->access[e->access + i].kind == LINT_OUT) return true;
  return false;
}

/* Whether an operation reads and writes its "buffer". */
static void of_buffer(const lint_trace *t, const lint_proc *p, const lint_event *e, bool *reads,
                      bool *writes) {
  const int root = is_root(t, p, e);
  const bool in_place = !has_out(p, e);
  *reads = true;
  *writes = false;
  switch (e->op) {
  case LINT_OP_RECV:
    *reads = false;
    *writes = in_place;
    return;
  case LINT_OP_BROADCAST:
  case LINT_OP_SCATTER:
    *reads = root != 0;
    *writes = in_place && root != 1;
    return;
  case LINT_OP_REDUCE:
  case LINT_OP_GATHER: *writes = in_place && root != 0; return;
  default: *writes = lint_op_classify(e->op) == LINT_COLLECTIVE && in_place;
  }
}

size_t lint_touches(const lint_trace *t, const lint_proc *p, const lint_event *e,
                    const lint_access *a, lint_touch *out) {
  bool reads = a->kind == LINT_READS || a->kind == LINT_NEEDS, writes = !reads;
  if (a->kind == LINT_BUFFER) of_buffer(t, p, e, &reads, &writes);
  size_t n = 0;
  if (reads) out[n++] = (lint_touch){a->buffer, a->at, a->end, false};
  if (writes) out[n++] = (lint_touch){a->buffer, a->at, a->end, true};
  return n;
}
