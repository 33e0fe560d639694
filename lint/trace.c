/* Traces: what all readers use to build one. */
#include "lint/trace.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"

iso_code lint_no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- names ---- */

static bool rehash(lint_names *t) {
  const size_t n = t->n_slots ? 2 * t->n_slots : 256;
  uint32_t *slot = calloc(n, sizeof *slot);
  if (!slot) return false;
  for (uint32_t i = 1; i < t->n; i++) {
    size_t k = t->hash[i] & (n - 1);
    while (slot[k]) k = (k + 1) & (n - 1);
    slot[k] = i;
  }
  free(t->slot);
  t->slot = slot;
  t->n_slots = n;
  return true;
}

bool lint_intern(lint_names *t, iso_arena *a, const char *s, size_t n, uint32_t *id) {
  *id = 0;
  if (n == 0) return true;
  if (2 * (t->n + 1) > t->n_slots && !rehash(t)) return false;
  const uint64_t h = iso_hash(s, n, 0);
  size_t k = h & (t->n_slots - 1);
  for (; t->slot[k]; k = (k + 1) & (t->n_slots - 1)) {
    const uint32_t i = t->slot[k];
    if (t->hash[i] != h || strncmp(t->text[i], s, n) != 0 || t->text[i][n]) continue;
    *id = i;
    return true;
  }
  const size_t new_id = t->n ? t->n : 1;
  if (new_id >= LINT_NONE || !iso_grow(t->text, t->cap_text, new_id + 1) ||
      !iso_grow(t->hash, t->cap_hash, new_id + 1) ||
      !(t->text[new_id] = iso_arena_strndup(a, s, n)))
    return false;
  t->hash[new_id] = h;
  t->slot[k] = *id = (uint32_t)new_id;
  t->n = new_id + 1;
  return true;
}

static void names_fini(lint_names *t) {
  free(t->text);
  free(t->hash);
  free(t->slot);
}

/* ---- operations ---- */

static const struct {
  const char *word;
  lint_op_class class;
} ops[] = {
#define LINT_OP(id, word, class) {word, class},
#include "lint/ops.def"
#undef LINT_OP
};

const char *lint_op_word(lint_op o) { return ops[o].word; }
lint_op_class lint_op_classify(lint_op o) { return ops[o].class; }

/* torch has several spellings of one collective. */
static const struct {
  const char *word;
  lint_op op;
} aliases[] = {
    {"allreduce", LINT_OP_ALL_REDUCE},
    {"all_gather_into_tensor", LINT_OP_ALL_GATHER},
    {"_all_gather_base", LINT_OP_ALL_GATHER},
    {"allgather", LINT_OP_ALL_GATHER},
    {"reduce_scatter_tensor", LINT_OP_REDUCE_SCATTER},
    {"_reduce_scatter_base", LINT_OP_REDUCE_SCATTER},
    {"all_to_all_single", LINT_OP_ALL_TO_ALL},
    {"alltoall", LINT_OP_ALL_TO_ALL},
};

lint_op lint_op_named(const char *word) {
  for (int i = 0; i < LINT_OPS; i++)
    if (strcmp(ops[i].word, word) == 0) return (lint_op)i;
  for (size_t i = 0; i < sizeof aliases / sizeof *aliases; i++)
    if (strcmp(aliases[i].word, word) == 0) return aliases[i].op;
  return LINT_OPS;
}

/* ---- building ---- */

lint_event *lint_push(lint_program *p, lint_op op, uint32_t position) {
  if (p->n >= LINT_NONE - 1 || !iso_grow(p->event, p->cap, p->n + 1)) return NULL;
  lint_event *e = &p->event[p->n++];
  *e = (lint_event){.op = (uint8_t)op,
                    .position = position,
                    .access = (uint32_t)p->n_access,
                    .group = LINT_NONE,
                    .peer = LINT_NO_PEER,
                    .stage = LINT_NO_INDEX,
                    .mb = LINT_NO_INDEX,
                    .numel = -1,
                    .out_numel = -1,
                    .link = LINT_NONE};
  return e;
}

lint_extra *lint_extras(lint_program *p, lint_event *e) {
  if (e->extra) return &p->extra[e->extra];
  const size_t at = p->n_extra ? p->n_extra : 1;
  if (at >= LINT_NONE || !iso_grow(p->extra, p->cap_extra, at + 1)) return NULL;
  p->n_extra = at + 1;
  p->extra[at] = (lint_extra){.cost = -1, .root = -1, .n_in = LINT_NONE, .n_out = LINT_NONE};
  e->extra = (uint32_t)at;
  return &p->extra[at];
}

void lint_trace_fini(lint_trace *t) {
  for (size_t i = 0; i < t->n_programs; i++) {
    free(t->program[i].event);
    free(t->program[i].access);
    free(t->program[i].extra);
    free(t->program[i].hint);
  }
  for (size_t i = 0; t->proc && i < t->n_procs; i++) {
    free(t->proc[i].group);
    free(t->proc[i].meet);
  }
  for (size_t i = 0; i < t->n_groups; i++) free(t->group[i].member);
  free(t->program);
  free(t->run_by);
  free(t->ref);
  free(t->offset);
  free(t->proc);
  free(t->proc_of);
  free(t->group);
  free(t->meet);
  free(t->member);
  names_fini(&t->names);
  iso_arena_fini(&t->arena);
}
