/* Private to lint/placement/: the ranks' tensors, and the facts known of them.
 *
 * A *tuple* is one tensor of the program: a node for each rank. A *step* is a tuple of the same
 * operator on each rank. A tuple's *whole* is its value in the program of one rank. */
#ifndef LINT_PLACEMENT_INT_H
#define LINT_PLACEMENT_INT_H

#include "egraph/base/arena.h"
#include "egraph/base/rng.h"
#include "lint/placement/placement.h"

enum {
  PLC_AXES = 4,
  PLC_RANKS = 64,
  PLC_DRAWS = 3,
  PLC_MENDS = 12,
  PLC_ARGS = 64,
  PLC_SHARES = 4,
  PLC_BLOCKS = 64
};
#define PLC_NONE UINT32_MAX

typedef enum plc_kind { PLC_R, PLC_S, PLC_P, PLC_V } plc_kind;
/* PLC_NORM: the square of the whole is the sum of the parts' squares, as of norms of shards. */
typedef enum plc_reduce { PLC_SUM, PLC_MAX, PLC_MIN, PLC_NORM } plc_reduce;

typedef struct plc_one { /* along one axis of the mesh */
  plc_kind kind;
  uint32_t dim;              /* of PLC_S */
  uint32_t blocks;           /* of PLC_S: the whole is so many blocks along dim, each cut; 0 is 1 */
  uint8_t share[PLC_SHARES]; /* how large they are beside one another; 0: all are alike */
  plc_reduce reduce;         /* of PLC_P */
} plc_one;

/* The ranks hold parts of `scale` times the whole. P(avg) is a sum of n times the whole. */
typedef struct plc_place {
  plc_one axis[PLC_AXES];
  double scale;
} plc_place;

typedef struct plc_mesh {
  uint32_t n_axes, size[PLC_AXES], n;
  const char *name[PLC_AXES];
} plc_mesh;

/* A line of a placements file. */
typedef struct plc_line {
  const char *name; /* may have `*` */
  bool output;
  plc_place place;
  bool varies; /* each rank has a tensor of its own */
  bool used;
} plc_line;

typedef enum plc_state {
  PLC_NEW,
  PLC_BUSY,
  PLC_PLACED,
  PLC_VARYING, /* it has a whole, of which the ranks' tensors are no parts */
  PLC_UNKNOWN  /* it has no whole */
} plc_state;

/* The cause of a tensor's cut along an axis. PLC_UNCUT: none, or parameters. PLC_DATA: inputs,
 * along their rows. PLC_AWAY: an exchange of such parts. */
typedef enum plc_cause { PLC_UNCUT, PLC_DATA, PLC_AWAY } plc_cause;

/* One attempt at a whole call: which of its integers are other ones than the ranks'. */
typedef struct plc_variant {
  uint8_t n, slot[PLC_AXES + 1];
  double by[PLC_AXES + 1]; /* times this; 0: it becomes 1 */
  bool bounds;             /* its integers are bounds of a rank's rows */
} plc_variant;

typedef struct plc_tuple {
  uint32_t *node; /* by rank; PLC_NONE: that rank has none */
  uint32_t id;    /* its place in the list */
  uint32_t n_out; /* tensors that it has */
  bool mixed;     /* of several steps */
  bool collective, leaf;
  uint32_t axes; /* of a collective: those along which ranks meet, by bits */

  /* of one run */
  plc_state state;
  plc_place *place;    /* of each tensor */
  rule_tensor **whole; /* [draw * n_out + k]; owned */
  uint32_t *arg;       /* tuples that it reads, in its call's order */
  uint32_t n_args, slots;
  bool differs;        /* the ranks' attributes do */
  bool apart;          /* each rank takes its part of a tensor that an operator split */
  plc_variant variant; /* of its whole call */
  uint32_t regrown;    /* an argument whose whole is a larger constant; PLC_NONE */
  plc_variant regrow;
  bool chosen;         /* of several variants that might fit */
  bool unsure;         /* its whole call is one of several readings, none of which fits */
  uint32_t from;       /* of a mixed tuple: the argument whose whole it has */
  bool sent;           /* it depends on messages, and the parts have not all met */
  bool by_messages;    /* it reads such a tensor */
  uint32_t stands_for; /* the tuple whose whole it has, by messages; PLC_NONE */
  bool constant;       /* its whole is its collective's result on constants */
  bool several;        /* a collective with a result for each rank */
  bool konst;          /* it depends on no leaf */
  bool whole_refused;  /* its call cannot be run on whole tensors */
  bool mended, unfit;  /* a finding here was mended; its collective cannot run */
  uint32_t guess;      /* a leaf that it depends on and whose placement was guessed; PLC_NONE */
  bool stuck;          /* no guess on the way to it lets it be placed */
  double floor;        /* smaller numbers are remainders of cancellation */
  uint32_t order;      /* in which it was visited */
  const char *why;     /* it is varying or unknown */
  plc_cause cut[PLC_AXES];
  bool keeps;        /* ranks exchange so many parts, and one rank alone would have others */
  const char *doubt; /* why its reading is one of several; NULL: it is not */

  rule_status evidence; /* of its placement */
  bool shown;           /* evidence was asked for */
} plc_tuple;

/* The change that mends a finding, and the placement that the tuple has then. */
typedef struct plc_mend {
  uint32_t tuple;
  plc_place place;
} plc_mend;

typedef struct plc_output {
  const char *name; /* of the first rank's */
  uint32_t tuple;
  bool declared; /* it has to be at `place` */
  bool gradient;
  bool alone; /* some ranks have no part in it: the whole, or nothing is known of it */
  plc_place place;
  uint32_t leaf; /* the tuple of the leaf that it lies as: a gradient, an update; or PLC_NONE */
} plc_output;

/* A choice that values alone did not settle: the placement of a leaf of which nothing is said, or
 * which of several whole calls a step is. */
typedef struct plc_guess {
  uint32_t tuple;
  uint32_t tried;  /* the number of the possibility that is taken */
  plc_place place; /* of a leaf */
} plc_guess;

typedef struct plc {
  const cap_graph *g;
  rule_schemas *schemas;
  const rule_oracle *oracle;
  uint64_t seed;
  plc_mesh mesh;
  uint32_t rank_at[PLC_RANKS]; /* of each place in the mesh: the capture's rank */
  const char *among;           /* a part of the ranks alone is looked at; else NULL */
  const char *among_mend;      /* the mend then, if it is known */
  uint32_t among_from;         /* the tuple from which on the whole could not be read */
  plc_line *line;
  size_t n_lines;

  uint64_t *ranks_of; /* by node: the ranks that hold it, by bits */
  uint32_t *step_of;  /* by node: its tuple */
  plc_tuple **tuple;  /* first leaves, then steps in order, then mixed tuples */
  size_t n_tuples, cap_tuples;
  plc_output *output;
  size_t n_outputs;

  rule_tensor **value[PLC_DRAWS]; /* by node; owned */
  rule_tensor ***many[PLC_DRAWS]; /* by node of several outputs; owned */
  plc_mend mend[PLC_MENDS];
  size_t n_mends;
  plc_guess *guess;
  size_t n_guesses, cap_guesses;
  uint32_t n_visited, depth;
  bool bounds; /* bounds of rows are read as a rank's own */

  lint_finding *finding;
  size_t n_findings, cap_findings;
  const char *undecided;

  iso_arena *keep; /* of the report */
  iso_arena steps; /* as long as this lives */
  iso_arena run;   /* of one run */
  iso_code code;   /* the first failure; then everything returns */
  iso_error *err;
} plc;

static inline bool plc_failed(const plc *x) { return x->code != ISO_OK; }
/* Returns: `p`; NULL is noted as lack of memory. */
void *plc_need(plc *x, const void *p);
static inline const cap_node *plc_node(const plc *x, uint32_t i) { return &x->g->node[i]; }

/* ---- mesh.c ---- */
ISO_MUST_USE iso_code plc_mesh_parse(iso_arena *a, const char *text, plc_mesh *out, iso_error *err);
/* Where nothing is said: from the sizes of groups. */
void plc_mesh_guess(plc *x);
ISO_MUST_USE iso_code plc_lines_parse(plc *x, const char *text, const char *file);
/* Whether a later line speaks of the same name. */
bool plc_overridden(const plc *x, size_t line);
/* Returns: the last line that speaks of it, or NULL. */
plc_line *plc_line_for(plc *x, const char *name, bool output);
/* "R", "S(0)", "dp S(0), tp P(sum)" */
const char *plc_print(const plc *x, const plc_place *p, iso_arena *a);
static inline plc_place plc_replica(void) { return (plc_place){.scale = 1}; }
bool plc_is_replica(const plc *x, const plc_place *p);
bool plc_same(const plc *x, const plc_place *p, const plc_place *q);
bool plc_has(const plc *x, const plc_place *p, plc_kind k);
/* The product of axes' sizes, or of one through them, that `v` is but for the error of a
 * difference quotient; 0: it is none. */
double plc_size_near(const plc *x, double v);
/* A rank's place along an axis, and the distance of its neighbour there. */
uint32_t plc_along(const plc_mesh *m, uint32_t rank, uint32_t axis);
uint32_t plc_stride(const plc_mesh *m, uint32_t axis);
static inline uint32_t plc_blocks(const plc_one *o) { return o->blocks > 1 ? o->blocks : 1; }
static inline bool plc_shared(const plc_one *o) { return o->blocks > 1 && o->share[0]; }
/* The sizes of a dimension's blocks. Returns: how many; 0 where they do not go into it. */
uint32_t plc_sections(const plc_one *o, int64_t size, int64_t out[PLC_BLOCKS]);

/* ---- steps.c ---- */
void plc_find_steps(plc *x);
/* The tuple of these nodes, made where there is none. */
uint32_t plc_intern(plc *x, const uint32_t *node);
/* The operands of a collective; NULL of another node. */
const rule_term *plc_group_list(const cap_node *n);
/* "r3_add": 3. */
bool plc_node_rank(const cap_node *n, uint32_t *rank);
/* "rank3.name": "name", and the rank. NULL where it is not of that form. */
const char *plc_leaf_name(const char *name, uint32_t *rank);

/* ---- tensors.c ---- */
/* The whole that the ranks' tensors (NULL: none) make up. Owns. Returns: NULL where they do not
 * fit, or without memory, which is noted. */
rule_tensor *plc_combine(plc *x, rule_tensor *const *each, const plc_place *p, double floor);
/* The ranks' shapes. Returns: false where a rank has no tensor. */
bool plc_shapes(const plc *x, rule_tensor *const *each, rule_shape *out);
/* Whether shapes like these are, together, of that shape. */
bool plc_shapes_fit(const plc *x, const rule_shape *each, const plc_place *p,
                    const rule_shape *whole);
/* Whether they are equal up to rounding of numbers as large as `size`. */
bool plc_near(const rule_tensor *a, const rule_tensor *b, double factor, double size, double floor);
double plc_largest(const rule_tensor *t);
/* Up to rounding, and to numbers below `floor`. */
bool plc_holds(plc *x, rule_tensor *const *each, const rule_tensor *whole, const plc_place *p,
               double floor);
/* Each rank's part of `whole`, of the shapes given. Parts of a sum are drawn from `seed`. Returns:
 * whether it fits; else nothing is in `out`. */
bool plc_cut(plc *x, rule_tensor *whole, const plc_place *p, const rule_shape *shape, uint64_t seed,
             rule_tensor **out);

/* ---- match.c ---- */
/* The tensors of a tuple's nodes on a draw, output `k`. */
void plc_locals(const plc *x, const plc_tuple *t, uint32_t draw, uint32_t k, rule_tensor **out);
/* A placement of tensor `k` that holds on every draw of which there is a whole, along `axes`, by
 * bits. `blocks`: shards of blocks are tried, too. */
bool plc_match_with(plc *x, plc_tuple *t, uint32_t k, uint32_t axes, bool blocks, plc_place *out);
/* Without blocks, and then with them. */
bool plc_match(plc *x, plc_tuple *t, uint32_t k, uint32_t axes, plc_place *out);

/* ---- lift/ ---- */
/* Whether it is a rank's result of a collective. */
bool plc_takes_part(const plc *x, const plc_tuple *t);
/* The tuples that it reads. Returns: false where the ranks' calls are not one call. */
bool plc_gather(plc *x, plc_tuple *t);
/* The whole of a step from its operands', and its placement. */
void plc_lift(plc *x, plc_tuple *t);
/* The whole call, RULE_VAR i: argument i of the tuple. NULL: the ranks' calls have none. */
const rule_term *plc_whole_call(plc *x, plc_tuple *t, const plc_variant *v, iso_arena *a);

/* `call`, a whole call or NULL, with places that were counted from the end counted from
 * that of the whole. */
const rule_term *plc_from_end(plc *x, const plc_tuple *t, const rule_term *call, iso_arena *a);
/* Whether a step within so many before it was read as one with a size of 1 that is larger for one
 * rank alone: there may be a better reading. */
bool plc_grew_one(const plc *x, const plc_tuple *t, uint32_t depth);
/* Whether it compares or bounds integers by a number that may count a rank's rows. */
bool plc_is_bounded(const plc *x, const plc_tuple *t);
/* Whether a literal of its call may be a size, as where another one changes a shape. */
bool plc_has_sizes(plc *x, const plc_tuple *t);

/* ---- run.c ---- */
void plc_run(plc *x);
void plc_clear(plc *x);
/* The guess about a tuple; made where there is none yet. */
plc_guess *plc_guess_of(plc *x, const plc_tuple *t);
/* The number of the possibility that is taken; 0 where nothing is guessed. */
uint32_t plc_tried(const plc *x, const plc_tuple *t);
/* Place `t` again after another guess of `u`, a step. Returns: whether it is placed. */
bool plc_again(plc *x, const plc_tuple *u, plc_tuple *t);
/* Take the `which`-th possibility. Returns: false: there are no more. */
bool plc_next_guess(plc *x, plc_guess *g, uint32_t which);
/* Take the possibility of a leaf that has the blocks of `like`, another leaf's guess. Returns:
 * whether there is one, and it was not taken before. */
bool plc_guess_like(plc *x, plc_guess *g, const plc_guess *like);
/* Whether it is of shards of several blocks. */
bool plc_has_blocks(const plc *x, const plc_place *p);
/* Whether a leaf is an input. */
bool plc_input(const plc *x, const plc_tuple *t);
/* A leaf's name without its rank. */
const char *plc_name(const plc *x, const plc_tuple *t);

/* One node on one draw. Returns: false where it cannot be run. */
bool plc_execute(plc *x, uint32_t i, uint32_t draw, iso_error *err);

/* ---- turned.c ---- */
/* A finding where parts of a whole are joined, or given, in another order. */
void plc_blame_turned(plc *x);

/* ---- summands.c ---- */
/* A finding where an output depends on how a sum is cut among ranks. */
void plc_blame_summands(plc *x);

/* ---- derivative.c ---- */
/* The value of a node on draw 1, with `value` and `many` for what it reads. Returns: whether it can
 * be run. */
bool plc_run_node(plc *x, uint32_t i, rule_tensor **value, rule_tensor ***many);
/* Frees both, each by nodes. */
void plc_free_values(const plc *x, rule_tensor **value, rule_tensor ***many);
/* The output that gradients are of; NULL: none is known. */
const plc_output *plc_loss(const plc *x);
/* How many times the loss's derivative by a leaf a gradient is, which is placed. 0: it is not
 * known. */
double plc_gradient_scale(plc *x, const plc_output *loss, const plc_tuple *leaf,
                          const plc_tuple *grad);
/* What a gradient was before it was multiplied with numbers that are computed, as clipped ones are.
 * NULL: it was not. */
const plc_tuple *plc_unclipped(const plc *x, const plc_tuple *t);

/* ---- lift/counts.c ---- */
/* Whether one of its literals is said to be a number of ranks. */
bool plc_counts_ranks(const plc *x, const plc_tuple *t);
/* The same of a number of no ranks and no elements. */
bool plc_counts_nothing(const plc *x, const plc_tuple *t);
/* The number of the whole's elements where the number `n` of a step is said to be one of a rank's;
 * 0: it is not said, or not known which elements. */
double plc_whole_count(const plc *x, const plc_tuple *t, double n);
/* The factor or divisor of a step that may be how many elements a rank has of something of which
 * one rank alone would have others; 0: there is none. */
double plc_may_count(const plc *x, const plc_tuple *t);
/* Such a step on the way to `t`, or `t` itself; NULL: there is none. */
const plc_tuple *plc_count_behind(plc *x, const plc_tuple *t);
/* Whether such a step accounts for `t` being `scale` times its right value; then nothing is
 * decided. */
bool plc_count_answers(plc *x, const plc_tuple *t, double scale);

/* ---- outputs.c ---- */
void plc_outputs(plc *x);
/* The declared placement of an output. */
plc_place plc_wanted(const plc *x, const plc_output *o);
/* Whether it is that on all draws. */
bool plc_output_holds(plc *x, const plc_output *o);
/* Whether the ranks' values of an output that should be replicas differ. */
bool plc_unequal(plc *x, const plc_output *o);

/* ---- prove.c ---- */
/* The evidence of all placements on the way to outputs. */
void plc_prove(plc *x);

/* ---- origin.c ---- */
typedef struct plc_score { /* of one run */
  uint32_t begins;         /* the order of the first origin; PLC_NONE: there is none */
  uint32_t wrong;          /* outputs */
  uint32_t loose;          /* tensors */
} plc_score;

static inline bool plc_loose(const plc_tuple *t) {
  return t->state == PLC_VARYING || t->state == PLC_UNKNOWN;
}
/* Whether every rank has it. */
static inline bool plc_complete(const plc *x, const plc_tuple *t) {
  for (uint32_t r = 0; r < x->mesh.n; r++)
    if (t->node[r] == PLC_NONE) return false;
  return true;
}
/* The first tensor on the way to outputs that are wrong, or of which nothing is known. */
plc_tuple *plc_origin(plc *x, bool wrong);
/* The first loose tensor on the way to `t`. */
const plc_tuple *plc_begins(plc *x, plc_tuple *t);
/* Whether an output depends on a tensor that ranks pass round, so that its value says nothing.
 * `by`, or NULL: gets that tensor. */
bool plc_passed_round(plc *x, const plc_output *o, const plc_tuple **by);
plc_score plc_score_of(plc *x);
bool plc_better(plc_score a, plc_score b);

/* ---- settle.c ---- */
/* Guesses are changed where that lets more of the program be placed. Outputs that are placed, and
 * wrong, change none. */
void plc_settle(plc *x);

/* ---- judge_outputs.c ---- */
void plc_judge_outputs(plc *x);
/* A placement refuted on the way does no harm where outputs are shown without it. */
void plc_judge_evidence(plc *x);

/* ---- judge.c ---- */
void plc_judge(plc *x);
/* Judges steps only, not outputs: finds a step that has no placement and depends on
 * x->among_from. */
void plc_judge_steps(plc *x);

/* ---- some.c ---- */
/* Whether it reads integers that were computed with literals: a row's number in a rank's part of a
 * table, say, whose value in the whole is not known. */
bool plc_reads_numbers(const plc *x, const plc_tuple *t);
/* Whether each rank takes a part of its shard, or of a tensor computed from it, only to exchange
 * it: neighbours need that part, and one rank alone would not take it. */
bool plc_is_exchanged(const plc *x, const plc_tuple *t);
/* Whether it, or what it was moved from, is also given to where ranks meet. */
bool plc_is_met(const plc *x, const plc_tuple *t);
/* Whether it is a piece of a rank's shard, all pieces of which are used: ranks go through their
 * shards piece by piece. */
bool plc_is_piece(const plc *x, const plc_tuple *t);
/* Whether ranks hold tensors that other ranks sent them, and not all the same one: they pass them
 * round, as one rank alone would not. */
bool plc_is_passed(const plc *x, const plc_tuple *t);
/* A tensor among its operands, or theirs, whose parts the ranks pass round; NULL: none. `seen` as
 * below. */
const plc_tuple *plc_passed_behind(const plc *x, const plc_tuple *t, bool *seen);
/* Whether one rank's value of it is unknown because of a tensor that it depends on: the unplaced
 * result of a collective, one of the steps above, or a tensor that ranks pass round. `seen`, false
 * for each tuple, is used. */
bool plc_is_behind(const plc *x, const plc_tuple *t, bool *seen);
/* Whether rows that the ranks took apart themselves meet in another order than those of the whole,
 * and are moved at once: the program may put them in order. */
bool plc_is_reordered(const plc *x, const plc_tuple *t);
/* The operand of an addition by some ranks of which each rank has a part, where the other ranks go
 * on with the other operand alone. NULL: there is none. */
const plc_tuple *plc_lost_parts(const plc *x, const plc_tuple *t);
void plc_blame_lost(plc *x, const plc_tuple *t, const plc_tuple *lost);
/* The partial sum of which each rank takes its own rows without adding the others' parts. NULL:
 * there is none. */
const plc_tuple *plc_part_of_sum(const plc *x, const plc_tuple *t);
void plc_blame_part(plc *x, const plc_tuple *t, const plc_tuple *of);

/* ---- rows.c ---- */
/* The table, cut by rows, of which each rank reads rows by numbers that are counted from its first
 * one. NULL: none is. */
const plc_tuple *plc_own_rows(plc *x, const plc_tuple *t);
/* Whether it holds integers or truth values, and has a whole. */
bool plc_is_number(const plc_tuple *t);
void plc_blame_rows(plc *x, const plc_tuple *t, const plc_tuple *table);

/* ---- doubt.c ---- */
/* Notes the causes of the cuts of a tensor that was just placed, and the doubts about it. */
void plc_follow_cuts(const plc *x, plc_tuple *t);
/* Whether something on the way to it is read doubtfully, so that it is no fault. */
bool plc_is_doubtful(plc *x, const plc_tuple *t);
/* Whether nothing is decided of an output, because of how something before it is read. */
bool plc_doubts(plc *x, const plc_output *o);

/* ---- within.c ---- */
/* The same for each group of ranks at one place along an axis, until there is a finding. */
void plc_judge_within(plc *x);

/* ---- capture.c ---- */
/* Memory by nodes. */
bool plc_start(plc *x);
void plc_finish(plc *x);

/* ---- blame/ ---- */
/* Whether `t` goes into `u`; `seen`, false for each tuple, is used. */
bool plc_goes_into(const plc *x, const plc_tuple *t, const plc_tuple *u, bool *seen);
/* A finding at a tensor that fits nowhere although all that it reads does. */
void plc_blame(plc *x, plc_tuple *t);
/* The same for one that has no whole, if that is a fault. */
void plc_blame_unfit(plc *x, plc_tuple *t);
/* A finding at an output that is not placed as declared. */
void plc_blame_output(plc *x, const plc_output *o);
/* A finding at a gradient that is `scale` times its loss's derivative. */
void plc_blame_gradient(plc *x, const plc_output *o, double scale);

/* ---- say.c ---- */
/* A finding at a node of each rank of `t`. */
void plc_found(plc *x, lint_kind kind, const plc_tuple *t, const char *mend, const char *fmt, ...)
    ISO_PRINTF(5, 6);
/* "r0_n5 (add.Tensor)" */
const char *plc_say(plc *x, const plc_tuple *t);

#endif
