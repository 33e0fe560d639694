/* Where two graphs part: regions, the operator at fault, the change that mends it. */
#ifndef LOCALISE_LOCALISE_INT_H
#define LOCALISE_LOCALISE_INT_H

#include "synth/comparison.h"

/* ---- region_extract.c ---- */
/* Cut the regions of `d` out, up to the nodes `end`, into the result (left out where a value is
 * lacking). */
iso_code lo_cut(state *s, const st_run run[2], const int64_t end[2], const synth_divergence *d,
                iso_error *err);
/* The same of an operator that cannot be run: it alone. `leaf`: by node. */
iso_code lo_cut_failing(state *s, int side, uint32_t node, rule_tensor *const *leaf,
                        iso_error *err);

/* ---- mutate.c ---- */
enum { LO_PHASES = 4 };
typedef enum lo_changes {
  LO_OPTIONAL, /* an attribute that may be left out */
  LO_TWIN,     /* any change of the operator that a sibling has otherwise */
  LO_ODD,      /* an attribute that no other call of the operator in its graph has */
  LO_OF_ONE,   /* of an operator itself: attributes, the order of its arguments, another one of its
                  kind */
  LO_LOOSE,    /* operators and operands too many, too few, or others */
  LO_WITHOUT,  /* an operator too many, only */
} lo_changes;
/* A change that mended a divergence: argument k of operator `op` is `to` in place of `from`, or
 * stands for the whole call. */
typedef struct lo_change {
  int side;
  const char *op; /* NULL: the change was of another kind */
  uint32_t k;
  const rule_term *from, *to; /* NULL: the call is left out */
} lo_change;
typedef struct lo_repair_task {
  int side;                      /* whose operators are varied */
  const st_run *run, *other_run; /* all values of both sides */
  const uint32_t *suspect;       /* nodes to vary, in order, phase after phase */
  size_t n_suspects[LO_PHASES];
  const bool *other_region; /* nodes of the other side that the region is compared with */
  uint32_t goal;            /* the node that should have ... */
  const rule_tensor *want;  /* ... this value */
  lo_changes changes;
  const lo_change *earlier; /* changes that mended others of this comparison: tried first */
  size_t n_earlier;
  const bool *settled; /* nodes that keep their values: where an earlier divergence ended */
} lo_repair_task;
typedef struct lo_repair_result {
  bool found;
  uint32_t node;
  const char *what;      /* the change, in words; lives as long as the result of the comparison */
  lo_change change;      /* the same, for others; lives as long as the comparison */
  rule_tensor **instead; /* per node: its new value; caller unrefs and frees */
  int64_t missing;       /* the other side's operator that it lacks; -1: not so */
  int64_t operand, leaf; /* its operand that a leaf of the other side should stand for, and that
                            leaf; -1: not so */
} lo_repair_result;
iso_code lo_repair(state *s, const lo_repair_task *task, lo_repair_result *out, iso_error *err);

/* ---- layer_outlier.c ---- */
/* Where the computation of `node` departs from that of the most similar node of the same graph (the
 * same place in another layer): the one operator at which they differ, -1 if there is no such
 * sibling or they differ in more. `model` takes the sibling's operator there. `stop`: nodes not to
 * look behind. */
int64_t lo_odd_one_out(const state *s, int side, uint32_t node, const bool *stop, uint32_t *model);

/* ---- difference_map.c ---- */
/* Where two tensors of as many elements differ, coarsely. NULL in `out` where there is nothing to
 * see. */
iso_code lo_picture(state *s, const rule_tensor *x, const rule_tensor *y, const synth_picture **out,
                    iso_error *err);

/* ---- divergence.c ---- */

/* "gelu" of "aten::gelu.default". NULL: no memory. */
const char *lo_short_name(iso_arena *a, const char *op);

/* ---- mutate_words.c ---- */
/* A node by its name: a leaf's, or an operator with the module that it is of. NULL: no memory. */
const char *lo_called(iso_arena *a, const synth_graph *g, uint32_t i);
/* The effect of a call of `g` on its argument `kept`: "SUBJECT is DONE". */
void lo_step_in_words(state *s, const synth_graph *g, const rule_term *call, uint32_t kept,
                      const char **subject, const char **done);

#endif
