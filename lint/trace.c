/* Traces: functions by which all readers build one. */
#include "lint/trace.h"

#include <stdlib.h>
#include <string.h>

#include "egraph/base/table.h"
#include "egraph/base/vec.h"

iso_code lint_no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- names ---- */

typedef struct lint_name {
  uint32_t id;
  UT_hash_handle hh;
} name;

bool lint_intern(lint_names *t, iso_arena *a, const char *s, size_t n, uint32_t *id) {
  *id = 0;
  if (n == 0) return true;
  name *e;
  HASH_FIND(hh, t->table, s, n, e);
  if (e) return *id = e->id, true;
  const size_t new_id = t->n ? t->n : 1;
  const char *text = iso_arena_strndup(a, s, n);
  if (new_id >= LINT_NONE || !text || !iso_grow(t->text, t->cap_text, new_id + 1) ||
      !(e = iso_arena_alloc(a, sizeof *e)))
    return false;
  *e = (name){.id = (uint32_t)new_id};
  HASH_ADD_KEYPTR(hh, t->table, text, n, e);
  if (!e->hh.tbl) return false;
  t->text[new_id] = text;
  t->n = new_id + 1;
  *id = e->id;
  return true;
}

static void names_fini(lint_names *t) {
  HASH_CLEAR(hh, t->table);
  free(t->text);
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

const char *lint_op_name(unsigned op) { return op < LINT_OPS ? lint_op_word((lint_op)op) : NULL; }

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
  *e = (lint_event)LINT_UNSAID_EVENT(position);
  e->op = (uint8_t)op;
  e->access = (uint32_t)p->n_access;
  return e;
}

lint_extra *lint_extras(lint_program *p, lint_event *e) {
  if (e->extra) return &p->extra[e->extra];
  const size_t at = p->n_extra ? p->n_extra : 1;
  if (at >= LINT_NONE || !iso_grow(p->extra, p->cap_extra, at + 1)) return NULL;
  p->n_extra = at + 1;
  p->extra[at] = (lint_extra)LINT_UNSAID_EXTRA;
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
