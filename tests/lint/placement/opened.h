/* A small program of two ranks in the midst of being read, so that a test can ask of its tuples. */
#ifndef TESTS_LINT_PLACEMENT_OPENED_H
#define TESTS_LINT_PLACEMENT_OPENED_H

#include "lint/placement/placement_int.h"
#include "tests/lint/placement/small_programs.h"

typedef struct opened {
  plc x;
  cap_graph *g;
  rule_tensor *value[MOST_NODES];
  rule_oracle oracle;
  iso_arena keep;
  iso_error err;
} opened;

/* Two ranks, as far as their steps and outputs are known; `lines`: placements. */
static inline void open_one(opened *t, const program *p, const char *lines) {
  *t = (opened){.oracle = val_oracle(engine)};
  iso_arena_init(&t->keep);
  t->g = capture_of(p, 2, t->value);
  t->x = (plc){.g = t->g,
               .schemas = schemas,
               .oracle = &t->oracle,
               .seed = 3,
               .keep = &t->keep,
               .err = &t->err,
               .rank_at = {0, 1}};
  ck_assert(plc_mesh_parse(&t->keep, "tp=2", &t->x.mesh, &t->err) == ISO_OK);
  ck_assert(plc_lines_parse(&t->x, lines, "lines") == ISO_OK);
  ck_assert(plc_start(&t->x));
  plc_find_steps(&t->x);
  plc_outputs(&t->x);
  ck_assert_msg(!plc_failed(&t->x), "%s: %s", p->what, t->err.msg);
}

static inline void close_one(opened *t) {
  free(t->x.finding);
  plc_finish(&t->x);
  iso_arena_fini(&t->keep);
  cap_free(t->g);
  for (size_t i = 0; i < MOST_NODES; i++) rule_tensor_unref(t->value[i]);
}

static inline const plc_tuple *leaf_of(const plc *x, const char *name) {
  for (size_t i = 0; i < x->n_tuples; i++)
    if (x->tuple[i]->leaf && strcmp(plc_name(x, x->tuple[i]), name) == 0) return x->tuple[i];
  ck_abort_msg("no leaf %s", name);
}

#endif
