/* Private to localise/: changes of one graph's operators that are tried until one mends a
 * divergence (mutate.c), and the kinds of change (mutate_op.c, mutate_wiring.c). */
#ifndef LOCALISE_MUTATE_H
#define LOCALISE_MUTATE_H

#include "localise/localise_int.h"

enum { RP_MAX_TRIES = 1500, RP_MAX_NEAR = 16 };

typedef struct repair {
  state *s;
  const lo_repair_task *task;
  const synth_graph *g, *other;
  rule_tensor **bind;     /* by node, then extra values */
  rule_tensor **instead;  /* by node: the value tried */
  const rule_term **call; /* by node: the call instead, where several are changed at once */
  bool *again;
  bool *to_goal; /* ancestors of the goal, itself included */
  iso_arena arena;
  size_t tries;
  size_t work, most; /* as st_work counts; the limit */
  double apart;      /* the distance of the goal from its right value */
  const char *what;  /* the explanation of the try under way */
  lo_change change;  /* the same, for others */
  uint64_t *seen;    /* hashes of the calls that were tried, by node: a table of SEEN */
  bool alone;        /* twins of a node are left as they are */
  bool found;
  uint32_t node;         /* where it was found */
  int64_t missing;       /* the operator of the other side that it lacks, -1 */
  int64_t operand, leaf; /* the operand that another should stand for, and which leaf of the other
                            side; -1: not so */
} repair;

/* A change of node n, tried wherever it makes sense; r->found tells the outcome. */
typedef iso_code (*rp_variation)(repair *r, uint32_t n, iso_error *err);

/* ---- mutate.c ---- */
/* A node's value where it is one tensor, NULL else. Borrowed. */
rule_tensor *rp_value(const st_run *r, uint32_t i);
bool rp_is_attribute(const rule_term *t);
/* The tries are used up. */
bool rp_spent(const repair *r);
/* In words; live as long as the result of the comparison. */
const char *rp_show(repair *r, const rule_term *t);
const char *rp_argument_name(repair *r, const rule_term *call, uint32_t k);
/* `call` with another child k; NULL: no memory. */
const rule_term *rp_with_child(repair *r, const rule_term *call, uint32_t k, const rule_term *to);
/* Node n computed by `call` (NULL: no memory) instead, if that was not tried before. */
iso_code rp_try_call(repair *r, uint32_t n, const rule_term *call, iso_error *err);
/* Tries the values in r->instead, beginning with those of node n and its twins. Requires: r->again
 * flags the nodes that depend on them. */
iso_code rp_try_values(repair *r, uint32_t n, iso_error *err);
/* Tries the calls in r->call in place of those of their nodes, of which `first` is the first. */
iso_code rp_try_calls(repair *r, uint32_t first, iso_error *err);
/* The same operator on the same arguments: written twice, changed as one. */
bool rp_twin(const repair *r, uint32_t n, uint32_t i);

/* ---- mutate_op.c: of an operator itself ---- */
iso_code rp_added_number(repair *r, uint32_t n, iso_error *err);
iso_code rp_likely_attributes(repair *r, uint32_t n, iso_error *err);
iso_code rp_filled(repair *r, uint32_t n, iso_error *err);
iso_code rp_seen_attributes(repair *r, uint32_t n, iso_error *err);
iso_code rp_optional_attributes(repair *r, uint32_t n, iso_error *err);
iso_code rp_like_a_sibling(repair *r, uint32_t n, iso_error *err);
iso_code rp_other_operators(repair *r, uint32_t n, iso_error *err);
iso_code rp_exchanged(repair *r, uint32_t n, iso_error *err);
iso_code rp_repeated(repair *r, uint32_t n, iso_error *err);
iso_code rp_permuted(repair *r, uint32_t n, iso_error *err);
iso_code rp_viewed(repair *r, uint32_t n, iso_error *err);
iso_code rp_parts_exchanged(repair *r, uint32_t n, iso_error *err);
iso_code rp_rows_exchanged(repair *r, uint32_t n, iso_error *err);

/* Attributes of other calls, for argument k of `call`. */
enum { RP_MAX_POOL = 24 };
size_t rp_attribute_pool(repair *r, const rule_term *call, uint32_t k, const rule_term **pool);
/* Whether an argument is an attribute that a program may have wrong. */
bool rp_can_vary(const rule_term *t);

/* ---- mutate_many.c: of several operators at once ---- */
/* One change of n and of every suspect that calls the same with the same attributes. */
iso_code rp_alike(repair *r, uint32_t n, iso_error *err);
/* The changes that mended an earlier divergence. */
iso_code rp_earlier(repair *r, const lo_change *change, iso_error *err);

/* ---- mutate_split.c: the two halves of a tensor ---- */
iso_code rp_halves(repair *r, uint32_t n, iso_error *err);

/* ---- mutate_words.c: steps that the other side leaves out, or adds ---- */
/* "the residual "x" is added, and on the left it is not": of a call of the graph that is repaired,
 * whose argument `kept` would have to stand for it. NULL: no memory. */
const char *rp_too_much(repair *r, const rule_term *call, uint32_t kept);
/* "clamp is not applied, and on the left it is": of a call of `g` that is missing after the tensor
 * that is its argument `kept`. NULL: no memory. */
const char *rp_too_little(repair *r, const synth_graph *g, const rule_term *call, uint32_t kept);

/* ---- mutate_wiring.c: operators and operands too many, too few, or others ---- */
iso_code rp_other_part(repair *r, uint32_t n, iso_error *err);
iso_code rp_left_out(repair *r, uint32_t n, iso_error *err);
iso_code rp_added(repair *r, uint32_t n, iso_error *err);
iso_code rp_other_tensors(repair *r, uint32_t n, iso_error *err);

#endif
