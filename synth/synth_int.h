/* Private to synth/: the joint e-graph of two captured graphs with values attached, and the steps over it. */
#ifndef SYNTH_SYNTH_INT_H
#define SYNTH_SYNTH_INT_H

#include "egraph/base/rng.h"
#include "egraph/base/vec.h"
#include "egraph/egraph.h"
#include "rules/masks.h"
#include "synth/synth.h"

enum { LEFT = 0, RIGHT = 1 };
enum { MAX_OUT = 64 };      /* tensors that one operator returns */
enum { MAX_CHILDREN = 512 };

/* Kinds of reasons given to merges; `data` of eg_why indexes the table named. */
enum { WHY_LEAF = 1, /* an assumption */ WHY_VALUE = 2, /* an assumption about constants */ WHY_RULE = 3 /* an application */ };

/* What is known of one e-node, by its id. */
typedef struct rec {
  bool tensor;      /* stands for one tensor */
  bool multi;       /* an operator with several outputs, projected by getitem */
  bool konst;       /* depends on no parameter and no value-carrying input: evaluated in captured dtypes, never redrawn */
  bool leaf;        /* a captured leaf */
  bool atom;        /* a leaf that no relation defines: drawn freely */
  bool lonely;      /* an atom that no relation ties to the other side: one may have been missed, so it keeps its captured value */
  bool param;       /* not constant, and depends on parameters and constants alone: large values are let go and made again (st_spare) */
  bool open;        /* a candidate for it, of which no rule was found */
  bool valued;      /* values below are there, or can be made */
  int32_t node[2];  /* the first node of each side that became this e-node, -1 if none */
  size_t n_out;
  rule_tensor **val;  /* n_draws * n_out, float64 where floating; read through st_val: NULL where it was let go */
  uint32_t from;      /* the e-node whose values are its own too, EG_NONE if none: then val is NULL */
  size_t ordinal;     /* atoms: of the stream that they are drawn from */
  rule_tensor **cval; /* n_kept * n_out, captured dtypes; constants only */
  rule_shape shape;   /* of output 0, known before values are */
  int32_t group;      /* index into groups, -1 */
  uint32_t def;       /* constants: the auxiliary e-node that this one was related to, EG_NONE if none */
  uint64_t signature; /* a bit for each leaf that it depends on, by hash; 0: not looked at yet (groups.c) */
} rec;

/* E-nodes whose values agree up to layout on all draws: candidates for one another. */
typedef struct group {
  int64_t numel;
  double coarse;    /* within which its values agree, where a kernel computes in few bits; else 0 */
  double moment[4]; /* order-free: sum, sum of |x|, sum of squares, sum of x |x|; of the first redrawn set */
  eg_node *member;
  size_t n, cap;
  int32_t next; /* in its place; -1: the last */
} group;

/* A rule applied: what a WHY_RULE merge points at. */
typedef struct premise { /* two e-nodes whose equality a match relied on */
  eg_node a, b;
} premise;

typedef struct instance { /* a rule as it was applied, its variables numbered as the set has them */
  const rule_term *side[2]; /* lhs, rhs: sizes and attributes are numbers */
  const eg_node *at;        /* the e-node of each operator and list of lhs, then rhs, children first */
  const eg_node *var;       /* what stands for each variable; EG_NONE: unused */
  uint32_t n_names;         /* and for the rule's sizes and attributes */
  const char *const *name;
  const rule_term *const *value;
} instance;

typedef struct application {
  size_t rule;        /* in the rule set */
  eg_node from, to;
  size_t first, n;    /* its premises */
  bool seen;          /* by the explanation */
  const struct instance *inst; /* how it was applied; NULL: nothing was noted */
} application;

typedef struct rule_info {
  rule_verdict verdict;
  bool loaded;
  size_t uses;
  bool needed;
  bool read; /* applied where its conditions hold of the numbers that float literals stand for */
} rule_info;

typedef struct try { /* a candidate that was validated */
  rule_verdict verdict;
  size_t rule; /* what was accepted of it: in the rule set; SIZE_MAX: nothing */
} try;

typedef struct st_value_list {
  rule_tensor **v;
  size_t n;
} st_value_list;
typedef struct st_run {
  st_value_list *value; /* per node of the graph; empty where dead or let go */
  size_t n;
  int64_t failed;       /* the node that could not be run, where st_run_graph gave an error; -1: none */
  bool overflow;        /* some finite arguments gave an infinity: what follows is no number of the function's */
} st_run;

/* Nodes that stand for the same step on each rank (shards.c). */
typedef struct peers {
  int side;
  uint32_t n, last; /* ranks; the last node in the graph's order */
  uint32_t *node;   /* by rank */
  uint32_t next;    /* while they are collected: others with the same first node */
  bool linked, met; /* tried; their concatenation or sum is a tensor of the other graph */
} peers;

enum { PART_RIGHT = 1, /* a rank's part of a tensor of the other graph, or what all ranks there hold a part of */ PART_WRONG = 2 /* other ranks hold theirs, this one does not */ };

/* A value that can be made again. */
typedef struct held {
  eg_node node;
  size_t draw;
} held;

/* Two constants that were joined although rounding tells them apart: as they were. */
typedef struct st_rounded {
  size_t assumption;
  eg_node node[2];
  rule_tensor *value[2];
  int side;              /* or a call with literals that were rounded, as it was captured; else NULL */
  uint32_t captured;
  const rule_term *call;
} st_rounded;

typedef struct st_reading { /* a literal of one side, and the number that it is read as */
  int side;
  double from, to;
} st_reading;

typedef struct st_masks st_masks; /* of one graph (masks.c) */
enum { ST_MASK_HALF, ST_MASK_OTHER, ST_MASK_KINDS }; /* float16's least number; other dtypes' */

typedef struct state {
  const synth_graph *graph[2];
  const rule_oracle *oracle;
  rule_schemas *schemas;
  const synth_options *o;
  const rule_set *known;
  iso_arena arena;        /* terms and texts of this comparison */
  eg_graph *g;
  rec *rec;               /* by eg_node id */
  size_t n_rec, cap_rec;
  const rule_term **literal; /* by symbol id: the literal a symbol stands for, or NULL */
  size_t cap_literal;
  eg_node *map[2];        /* captured node to e-node */
  size_t n_sets, n_draws; /* draws: captured input sets, then redrawn ones */
  size_t run_set;         /* the kept set of the values that st_run_graph runs on: the witness's, once there is one */
  size_t n_kept;          /* on how many sets constants have values of their own: 1 where all sets have the same kept inputs, else n_sets */
  held *held;             /* values that can be made again, in the order in which they were made; the first ones are let go */
  size_t first_held, n_held, cap_held, held_bytes;
  uint32_t making;        /* values that are being made: nothing is let go */
  iso_code lost;          /* one could not be made again, */
  iso_error lost_why;     /* because of this: the comparison ends with it */
  group *group;
  double coarse; /* the coarsest group's */
  int32_t *place; size_t n_places; /* of groups.c: the first group of each */
  size_t n_group, cap_group;
  application *app;
  size_t n_app, cap_app;
  premise *prem;
  size_t n_prem, cap_prem;
  rule_set *rules; /* those that were validated, as general as they hold */
  rule_info *info;
  size_t cap_info;
  rule_set *tried; /* candidates as they were proposed, so that none is validated twice */
  try *tries;
  size_t cap_tries;
  synth_assumption *assume;
  size_t n_assume, cap_assume;
  synth_result *res;
  size_t n_wasted;        /* tries of candidates that no rule was found for */
  bool hunted, apart;     /* a witness was looked for while candidates were tried; and found: no more rules are looked for */
  bool large_patterns;    /* small ones have been tried, and did not do */
  int32_t *replica[2];    /* by captured node: the leaf of a lower rank that it repeats, -1 if none */
  uint8_t *part[2];       /* by captured node: PART_*, once st_mark_parts ran */
  bool *settled[2];       /* by captured node: leaves whose relation was given whole, or forbidden */
  peers *peers;
  size_t n_peers, cap_peers;
  uint32_t *first_peers[2];
  struct st_bound *bound; size_t n_bound, cap_bound; /* inputs that equal a term which cannot leave their range */
  const synth_node *given[2]; /* the nodes as they were captured; ours may read a literal as another */
  st_masks *masks[2];         /* by set; NULL: none were looked for */
  bool as_written;            /* masks are not read: numbers come near them */
  bool try_others;            /* other masks than float16's, too */
  bool read[ST_MASK_KINDS];   /* which are read as minus infinity */
  bool near_masks;            /* numbers come near other masks: no rule reads them */
  bool others_vanish;         /* they could be read */
  bool keep_integers;     /* integers that are given are not drawn anew: an operator could not take
                             those that were */
  bool linking;           /* shards are being linked: not again inside */
  uint32_t *right_of;     /* left output to right output */
  st_run witness[2];      /* values of all live nodes on the draw that shows the outputs different */
  bool lonely_both;       /* either side has parameters that are lonely */
  bool signs;             /* something reads signs of zeros */
  st_rounded *rounded;
  size_t n_rounded, cap_rounded;
  st_reading *reading;
  size_t n_readings, cap_readings;
  const char *doubtful;   /* two constants that were joined may be two: which; then nothing is equivalent */
  bool inexact;           /* constants were related that differ by rounding */
  bool measured;          /* how far the outputs move because of what was rounded is known */
  bool widen, wide;       /* what one side alone computes of constants is made in float64; from now on */
  bool narrowed;          /* one side alone computes some constant in float32 */
  size_t work_left;       /* for the search for explanations, as st_work counts */
  double t0;
  const char *stopped;    /* a limit was reached: which; see st_stopped */
  uint32_t *class_root;   /* by class: those joined by a layout of ours have one root; once classes are published */
} state;

double synth_clock(void);
double synth_cpu_clock(void); /* of the process: what the rest of the machine does is not in it */
/* Deciding the rule `title` has used the processor since `cpu_from`. */
void st_note_cost(state *s, const char *title, double cpu_from);
/* Input sets that were captured: those behind them were drawn inside domains. */
static inline size_t st_n_captured(const state *s) {
  const size_t n = s->graph[LEFT]->n_captured;
  return n && n < s->n_sets ? n : s->n_sets;
}
/* Whether a limit of the caller's was reached; once it was, it stays so. The reason is in s->stopped. */
bool st_stopped(state *s);
static inline bool st_without(const state *s, unsigned optimisation) { return (s->o->disable & optimisation) != 0; }

/* ---- ranks.c ---- */
/* Both graphs with their outputs paired: output i of one is compared with output i of the other. Names pair them, else positions; an
 * output that several ranks give ("NAME", "NAME_rank1", ...) is paired with its counterpart as often as there are ranks. The lists live in
 * `arena`, everything else is borrowed. Errors: ISO_USAGE where they cannot be paired. */
iso_code st_pair_outputs(const synth_graph *left, const synth_graph *right, iso_arena *arena, synth_graph pair[2], iso_error *err);

/* Leaves that repeat a lower rank's are joined with it (s->replica). Requires: the leaves are in the e-graph. */
iso_code st_join_replicas(state *s, iso_error *err);
/* Which leaves of the left should be defined by the right ones that they are made of: where the left holds more elements than the right
 * ones it is related to (ranks that repeat a part), drawing them freely would lose the repetition. `of`: relations, by side and node.
 * Owns: the caller frees; NULL when there is no memory. */
bool *st_repeating(const state *s, synth_relation *const of[2]);

/* The integers at and beside which the graphs decide about integers (comparisons with a literal: where a rank's part of a vocabulary
 * ends), in [0, limit). Returns: how many of `cap`. */
size_t st_integer_edges(const state *s, int64_t limit, int64_t *out, size_t cap);

/* ---- shards.c ---- */
/* Propose which nodes are peers. Requires: both graphs are in the e-graph, their outputs paired. */
iso_code st_find_peers(state *s, iso_error *err);
/* Join what ranks hold in parts below `u` and `t` with what the other graph holds whole. Returns: in `any`, whether something was found. */
iso_code st_link_shards(state *s, eg_node u, eg_node t, bool *any, iso_error *err);

/* On the values of both runs: which tensors are a rank's part of one of the other graph's (s->part). */
iso_code st_mark_parts(state *s, const st_run run[2], iso_error *err);

/* ---- joint.c ---- */
iso_code st_add_term(state *s, const rule_term *t, const eg_node *bind, eg_node *out, iso_error *err);
/* Adds the live operators of a graph; leaves are there. */
iso_code st_add_graph(state *s, int side, const bool *live, iso_error *err);
/* Values of a tensor or multi e-node on all draws, computed from its children's classes. */
iso_code st_value(state *s, eg_node n, iso_error *err);
/* Forget the values of an e-node, so that st_value computes them again. */
void st_forget(state *s, eg_node n);
/* What `e` gives on draw `d`, called once more in float64 on its arguments' values. Owns: the caller unrefs out[0 .. n). */
iso_code st_call_again(state *s, eg_node e, size_t d, rule_tensor **out, size_t *n, iso_error *err);
/* The first valued tensor e-node of a class, EG_NONE if none. */
eg_node st_rep(state *s, eg_class c);
bool st_is_tensor_class(state *s, eg_class c);
const rule_term *st_literal(state *s, eg_node n); /* NULL if not a literal */
bool st_is_list(state *s, eg_node n);
const rec *st_rec(const state *s, eg_node n);
/* Requires: valued tensor. Returns: borrowed, until st_trim where st_spare says so; NULL where it could not be made again (st_lost). */
rule_tensor *st_val(state *s, eg_node n, size_t draw);
/* Which of a constant's values draw `draw` has. */
static inline size_t st_kept_set(const state *s, size_t draw) { return draw < s->n_sets && s->n_kept > 1 ? draw : 0; }
iso_code st_lost(const state *s, iso_error *err);
/* Whether its values come and go: what is large and depends on parameters alone. Their dtype is float64, their shape the record's. */
bool st_spare(const state *s, eg_node n);
bool st_large(const rule_shape *shape);
/* The e-node that holds the values of `n`. */
eg_node st_home(const state *s, eg_node n);
/* Of a valued tensor, without making it. */
rule_dtype st_dtype(const state *s, eg_node n);
int64_t st_numel(const state *s, eg_node n);
/* Let the oldest of the values go that can be made again, down to a fixed amount. */
void st_trim(state *s);
const char *st_assume(state *s, rule_assumption kind, eg_node left, eg_node right,
                      const char *relation, const char *text);
const char *st_id(const state *s, eg_node n, int side); /* the captured id, or NULL */
const char *st_any_id(const state *s, eg_node n);
iso_code st_merge(state *s, eg_node a, eg_node b, uint32_t kind, uint32_t data, iso_error *err);

/* ---- masks.c ---- */
/* Which masks are read as minus infinity (rules/masks.h): s->read. Requires: leaves are related, no operator was
 * added. */
iso_code st_find_masks(state *s, const bool *const live[2], iso_error *err);
void st_masks_free(state *s);
/* Whether node `i` of `side` has masks that are read. */
bool st_masked(const state *s, int side, size_t i);
/* Whether they are its own: a constant of the e-graph, as st_mask_value says for each set, in its dtype. */
bool st_mask_source(const state *s, int side, size_t i);
iso_code st_mask_value(const state *s, int side, size_t i, size_t set, rule_tensor **out, iso_error *err);
/* The call of node `i` with its mask as it is read; the node's own where it has none. NULL: there is no memory. */
const rule_term *st_read_call(const state *s, int side, size_t i, iso_arena *a);
/* Whether numbers beside masks that are read come near them: on the values of both runs, or (NULL) on all draws. */
iso_code st_near_masks(state *s, const st_run run[2], bool *near, iso_error *err);
/* The same of all other masks, which rules read: s->near_masks. Requires: everything has values. */
iso_code st_other_masks(state *s, const bool *const live[2], iso_error *err);
/* A proof that reads masks does not count then. */
void st_refuse_masks(const state *s, rule_verdict *v);
/* Whether numbers beyond 1e30 differ, which comparisons leave out as masks. */
bool st_far_apart(const rule_tensor *l, const rule_tensor *r);

/* ---- given.c ---- */
/* Hold what a user said of leaves against their captured values, and note which leaves are settled by it. Errors: ISO_USAGE. */
iso_code st_take_given(state *s, iso_error *err);
/* The captured value, on one set, of a term over the leaves of `side`. Owns: the caller unrefs. */
ISO_MUST_USE iso_code st_value_over(state *s, int side, const rule_term *t, size_t set, rule_tensor **out, iso_error *err);
/* Whether leaf `i` of `side` may not be made of `source` of the other side. */
bool st_forbidden(const state *s, int side, size_t i, size_t source);

/* ---- leaves.c ---- */
/* Of relations `of` the leaves of `side`: zeros or ones that several parameters hold are related to one each (coincidence.c). */
ISO_MUST_USE iso_code st_drop_coincidences(state *s, int side, synth_relation *of, iso_error *err);
iso_code st_relate_leaves(state *s, const bool *const live[2], iso_error *err);
/* Whether a tensor has many different numbers: it is not zeros, ones, an identity, a mask. */
bool st_generic(const rule_tensor *t);
iso_code st_draw_leaves(state *s, iso_error *err);
iso_code st_set_values(state *s, eg_node e, rule_tensor **val, iso_error *err); /* by draw; each is referred to */
/* The same values for `e` as `from` has, kept. */
iso_code st_values_of(state *s, eg_node e, eg_node from, iso_error *err);

/* ---- bounds.c ---- */
iso_code st_bound_indices(state *s, iso_error *err);
/* The rows of the smallest table that a value-carrying integer input indexes; INT64_MAX: none does. */
int64_t st_index_limit(const state *s, bool *matters); /* matters (may be NULL): it has more rows, all zero, or is read at -1, too */
/* The same of node `i` of `side` as it is. In `all`: with padding rows. `live`: the operators that count, where they are not in the e-graph
 * yet; else NULL. `wraps` (may be NULL) is set where an operator reads that would count a negative index from the end. */
int64_t st_index_rows(const state *s, int side, size_t i, const bool *live, int64_t *all, bool *wraps);

/* ---- domains.c ---- */
typedef struct st_bound {
  eg_node leaf, raw, def; /* leaf = def, which is a term over raw; the raw atom may be anything */
  bool other;             /* the raw atom has other values than the leaf: def does not leave those alone */
} st_bound;
/* Whether an input's values have a structure on every set, so that it is kept; `live`: the operators that count. */
bool st_structured(const state *s, int side, size_t i, const bool *live);
/* A leaf's value; of an input with several sets a tensor that has one number for what is one on each. Owns: the caller unrefs. */
ISO_MUST_USE iso_code st_all_sets(const state *s, const synth_node *n, rule_tensor **out, iso_error *err);
/* A relation of input `i` that does not hold on every set is dropped. */
ISO_MUST_USE iso_code st_hold_on_sets(state *s, int side, size_t i, synth_relation *r, iso_error *err);
/* A drawn value of a leaf becomes one inside its domain; `round` counts draws. */
ISO_MUST_USE iso_code st_fit(const state *s, const synth_node *n, size_t round, iso_rng *rng, rule_tensor **v, iso_error *err);
/* Where an integer input that indexes no table is drawn, [low, high): its domain, else what was captured. */
void st_interval(const synth_node *n, int64_t *low, int64_t *high);
bool st_admits(const state *s, eg_node e, const rule_tensor *v);
/* Input `i` is the term over leaves of the other side: what its domain says of elements is said of theirs. */
ISO_MUST_USE iso_code st_pass_domain_on(state *s, int side, size_t i, const rule_term *t, iso_error *err);
/* Input `i` equals `term` over RULE_VAR 0, a new atom of its values. `text`: of the assumption; NULL: there was no memory for it. */
ISO_MUST_USE iso_code st_bound_leaf(state *s, int side, size_t i, const rule_term *term,
                                    rule_assumption kind, const char *text, iso_error *err);
/* Inputs equal what cannot leave their domains, for rules that hold inside only. */
ISO_MUST_USE iso_code st_bound_domains(state *s, iso_error *err);
/* The bound whose raw atom, or else whose term, an e-node is; NULL. */
const st_bound *st_bound_by(const state *s, eg_node e, bool raw);
/* The bound of the input that an e-node equals; NULL. */
const st_bound *st_bound_of(const state *s, eg_node e);

/* ---- constants.c ---- */
iso_code st_relate_constants(state *s, iso_error *err);
/* One of a class's members is of that side, or a part of what is. */
bool st_constant_on(state *s, eg_node e, int side);
/* Whether something that is no constant is made of it. */
bool st_feeds_values(state *s, eg_node e);
/* A table in which each element is repeated in place (cos, cos, ...), by the elements as they are once. */
iso_code st_relate_repeated(state *s, synth_index *x, const rule_tensor *t, synth_relation *rel, iso_error *err);
/* A constant of `side` was related to a layout `term` of all[0 .. n): flag what needs no relation any more. */
iso_code st_mark_related(state *s, const eg_node *all, size_t n, const rule_term *term, int side, bool *related, iso_error *err);
/* NULL where there is none. */
const rule_term *st_fill_term(state *s, const rule_term *shape, const rule_term *number, rule_dtype dtype);

/* ---- literals.c ---- */
/* Find the literals that float32 rounded on one side only. Requires: the graphs as captured. */
iso_code st_find_readings(state *s, const bool *const live[2], iso_error *err);
/* The call of a node with these as they are meant, and say so. NULL in `out`: it has none. */
iso_code st_read_rounded(state *s, int side, uint32_t node, const rule_term **out, iso_error *err);
/* A float32 number that needs its digits. */
bool st_uses_float32(double v);

/* ---- wide.c ---- */
/* Constants that one side alone computes in float32: noted in s->narrowed; made in float64 where s->widen asks for it. */
iso_code st_widen_constants(state *s, iso_error *err);
/* One constant, from its arguments' values, in float64; it stays as captured where that is farther off than rounding.
 * Returns: in `moved` (or NULL) whether it changed. */
iso_code st_widen(state *s, eg_node e, bool *moved, iso_error *err);

/* ---- movement.c ---- */
/* Say in each assumption of kind `rounding` how far the outputs move by it, once. Where that is no number, or far more than
 * rounding explains, s->doubtful says so. */
iso_code st_measure_rounding(state *s, iso_error *err);

/* ---- rounding.c ---- */
/* Constants of one number that the other side writes as a literal, or divides by, and that were stored in fewer digits. Before numbers are
 * taken as they are stored. */
iso_code st_relate_literals(state *s, const eg_node *all, size_t n, iso_error *err);
/* Join those of all[0 .. n) that rounding tells apart, but for those that are `related` by now. */
iso_code st_relate_rounded(state *s, const eg_node *all, size_t n, bool *related, iso_error *err);

/* ---- tokens.c ---- */
/* Inputs that carry tokens are no constants, whatever was captured; positions that one side looks up and the other computes with are.
 * Requires: the leaves are related. */
ISO_MUST_USE iso_code st_free_tokens(state *s, const bool *const live[2], iso_error *err);
ISO_MUST_USE iso_code st_keep_positions(state *s, const bool *const live[2], iso_error *err);

/* ---- draw.c ---- */
typedef struct st_spread {
  double mean, dev;
  bool known;
} st_spread;
/* Fresh values for a leaf. `ordinal`: its stream; `round`: the draw, counted from the first that is not captured; `of`: the captured values',
 * found when first asked for. Owns: the caller unrefs. */
iso_code st_redraw(state *s, const synth_node *n, size_t ordinal, size_t round, st_spread *of, rule_tensor **out, iso_error *err);
/* The value of an atom on a draw, anew. Owns: the caller unrefs. */
iso_code st_draw_atom(state *s, eg_node e, size_t draw, rule_tensor **out, iso_error *err);
/* Some rows of it: `row` holds their numbers. Requires: a large float parameter of rank 2 with such rows. Owns: the caller unrefs. */
iso_code st_draw_rows(state *s, eg_node e, size_t draw, const rule_tensor *row, rule_tensor **out, iso_error *err);

/* ---- layout.c ---- */
/* A layout term over RULE_VAR 0 (a tensor of `from`'s shape) that equals `to` as far as the values of draw `draw` tell, or NULL. */
const rule_term *synth_layout(iso_arena *a, rule_schemas *sc, const rule_tensor *from, const rule_tensor *to,
                              const rule_oracle *oracle, double rel_tol);

/* ---- apply.c ---- */
/* Validated strongly enough for what this run asks for. */
bool st_usable(const state *s, size_t rule);
/* Try every validated rule on the pair; merges where one applies. */
iso_code st_apply_rules(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
iso_code st_apply_known(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
/* One side of a rule found at an e-node, where its conditions hold. */
typedef struct st_match {
  eg_node root;
  const eg_node *var;     /* what stands for each variable; EG_NONE: not in that side */
  const premise *prem;    /* the equalities that the match relied on */
  size_t n_prem;
  const rule_term *other; /* the other side with the names' values, over `var`; in s->arena */
} st_match;
/* Call `each` with every match of the side `rhs` (or the left one) in class `at` for which the other side is known whole. It must not
 * change the e-graph, and returns false to stop. */
iso_code st_match_side(state *s, const rule *r, bool rhs, eg_class at, bool (*each)(void *ctx, const st_match *m), void *ctx, iso_error *err);
/* `p`: the equalities that the match of both sides at u and t relied on. For a certificate, `as`: the rule as it was matched, its sizes
 * and attributes being numbers, whose variables may be numbered otherwise than the set's; `var`: the e-node that each of those stood for. */
iso_code st_record_application(state *s, size_t index, eg_node u, eg_node t, const premise *p, size_t n, const rule *as, const eg_node *var,
                               iso_error *err);

/* ---- frontier.c ---- */
/* Synthesise a rule for the pair, have it validated, merge. */
iso_code st_synthesise(state *s, eg_node u, eg_node t, bool *done, iso_error *err);

/* ---- run.c ---- */
typedef struct st_carry { /* run on from other values: those of `from`, but for those in `value`; what is flagged is run again */
  const st_run *from;
  const bool *again;         /* per node */
  rule_tensor *const *value; /* per node, NULL: none */
  const rule_term *const *call; /* for st_run_to, per node: what is called instead, NULL: nothing else; may be NULL */
} st_carry;
#define ST_STORAGE (-1.0) /* as `noise`: constants that the other side does not have are disturbed as their storage rounds them; so are lonely parameters of both */
/* Whether an operator's results are rounded: they are no elements of its arguments. */
bool st_op_rounds(const char *op);
/* Run one captured graph in float64; `leaf` per node. `keep_all`: values of all live nodes, not of the outputs only.
 * `with` (may be NULL) needs no leaves. Owns: st_run_free. */
iso_code st_run_graph(state *s, int side, rule_tensor *const *leaf, double noise, uint64_t stream, bool keep_all, const st_carry *with, st_run *r,
                      iso_error *err);
void st_run_free(st_run *r);
/* The same for the one value of node `goal`, without noise; nothing else is kept. Adds to `work` (may be NULL) what it took. Owns: the caller unrefs. */
iso_code st_run_to(state *s, int side, const st_carry *with, uint32_t goal, rule_tensor **out, size_t *work, iso_error *err);
/* What it takes to run node i, called as `call`, by its values in `r`, in calls of small operators. */
size_t st_work(const rule_term *call, const st_run *r, uint32_t i);
/* Whether a term has a variable that is flagged; flag all of them. */
bool st_term_uses(const rule_term *t, const bool *flag);
void st_term_mark(const rule_term *t, bool *flag);

/* ---- witness.c ---- */
/* Whether outputs that differ on draw `d` do so beyond what rounding explains: the first such output. Found, its values are kept in s->witness. */
iso_code st_confirm(state *s, size_t d, size_t *output, rule_diff *diff, bool *found, iso_error *err);
/* Look for an input and parameters on which the outputs differ; the same. */
iso_code st_hunt(state *s, size_t *output, rule_diff *diff, bool *found, iso_error *err);
/* The same among inputs on which something may be undefined (rows of zeros), and where one output is NaN and the other a number. */
iso_code st_hunt_undefined(state *s, size_t *output, rule_diff *diff, bool *found, iso_error *err);
/* An operator failed (in `err`): whether it does so on one side only, on the captured inputs; then
 * the witness is that node. `drawn`: on these inputs none fails. */
iso_code st_fails_alone(state *s, int *side, int64_t *node, bool *alone, bool *drawn,
                        iso_error *err);
/* Outputs must not depend on what empty memory holds. Errors: ISO_UNSUPPORTED. */
iso_code st_check_unspecified(state *s, iso_error *err);
/* The witness with other values for some leaves (atoms; what is defined by them follows). */
typedef struct st_variant {
  const eg_node *leaf;
  rule_tensor **value;
  size_t n;
  size_t output; /* out: which differs */
} st_variant;
/* Whether the outputs still differ there: clearly, or with `sure` as st_confirm has it; then `leaf` gets references to all leaves' values
 * by node, for the caller to drop. Values that an operator does not take show nothing. Requires: s->res->witness_leaf. */
iso_code st_try_variant(state *s, st_variant *v, bool sure, rule_tensor **leaf[2], rule_diff *diff, bool *shows, iso_error *err);
/* Keep the leaves' values of s->witness in the result. */
iso_code st_keep_witness(state *s, iso_error *err);

/* All values of one side on the captured inputs and parameters. Owns: st_run_free. */
iso_code st_run_captured(state *s, int side, st_run *out, iso_error *err);
/* Keep the values of draw `d` in s->witness. */
iso_code st_run_draw(state *s, size_t d, iso_error *err);

/* ---- shrink.c ---- */
/* Make the witness in the result small. Requires: st_keep_witness. */
iso_code st_shrink(state *s, iso_error *err);

/* ---- needed.c ---- */
/* Of a witness that was drawn: which elements matter, into the result. Requires: st_keep_witness. */
ISO_MUST_USE iso_code st_needed(state *s, iso_error *err);
/* Undo st_keep_witness. */
void st_drop_witness(state *s);

/* ---- coverage.c ---- */
iso_code st_cover(state *s, const bool *const live[2], iso_error *err);

/* ---- cut.c ---- */
/* Cut the regions of `d` out, up to the nodes `end`, into the result (left out where a value is lacking). */
iso_code st_cut(state *s, const st_run run[2], const int64_t end[2], const synth_divergence *d, iso_error *err);
/* The same of an operator that cannot be run: it alone. `leaf`: by node. */
iso_code st_cut_failing(state *s, int side, uint32_t node, rule_tensor *const *leaf, iso_error *err);

/* ---- repair.c ---- */
enum { ST_PHASES = 4 };
typedef enum st_changes {
  ST_OPTIONAL, /* an attribute that may be left out */
  ST_TWIN,     /* any change of the operator that a sibling has otherwise */
  ST_ODD,      /* an attribute that no other call of the operator in its graph has */
  ST_OF_ONE,   /* of an operator itself: attributes, the order of its arguments, another one of its
                  kind */
  ST_LOOSE,    /* operators and operands too many, too few, or others */
  ST_WITHOUT,  /* an operator too many, only */
} st_changes;
/* A change that mended a divergence: argument k of operator `op` is `to` in place of `from`, or stands for the whole call. */
typedef struct st_change {
  int side;
  const char *op;            /* NULL: the change was of another kind */
  uint32_t k;
  const rule_term *from, *to; /* NULL: the call is left out */
} st_change;
typedef struct st_repair_task {
  int side;                        /* whose operators are varied */
  const st_run *run, *other_run;   /* all values of both sides */
  const uint32_t *suspect;         /* nodes to vary, in order, phase after phase */
  size_t n_suspects[ST_PHASES];
  const bool *other_region;        /* nodes of the other side that the region is compared with */
  uint32_t goal;                   /* the node that should have ... */
  const rule_tensor *want;         /* ... this value */
  st_changes changes;
  const st_change *earlier;        /* what mended others of this comparison: tried first */
  size_t n_earlier;
  const bool *settled;             /* nodes that keep their values: where an earlier divergence ended */
} st_repair_task;
typedef struct st_repair_result {
  bool found;
  uint32_t node;
  const char *what;                /* the change, in words; lives as long as the result of the comparison */
  st_change change;                /* the same, for others; lives as long as the comparison */
  rule_tensor **instead;           /* per node: what it takes; caller unrefs and frees */
  int64_t missing;                 /* the other side's operator that it lacks; -1: not so */
  int64_t operand, leaf;           /* its operand that a leaf of the other side should stand for, and that leaf; -1: not so */
} st_repair_result;
iso_code st_repair(state *s, const st_repair_task *task, st_repair_result *out, iso_error *err);

/* ---- sibling.c ---- */
/* Where the computation of `node` departs from that of the most similar node of the same graph (the same place in
 * another layer): the one operator at which they differ, -1 if there is no such sibling or they differ in more. `model` takes
 * the sibling's operator there. `stop`: nodes not to look behind. */
int64_t st_odd_one_out(const state *s, int side, uint32_t node, const bool *stop, uint32_t *model);

/* ---- groups.c ---- */
/* Join `e` with what of its group a rule ties it to; on the first visit it is put into a group. */
iso_code st_visit(state *s, eg_node e, iso_error *err);
/* Try to join `e` with tensors of `side` that have its value, up to layout. Returns: in `same`, whether there is one. */
iso_code st_meet(state *s, eg_node e, int side, bool *same, iso_error *err);
/* A rule for two tensors of equal values: one that is there already, else one that is synthesised; merges. */
iso_code st_prove(state *s, eg_node u, eg_node t, bool *done, iso_error *err);
/* Order-free moments of a tensor: sum, sum of |x|, of squares, of x |x|; values beyond 1e30 are counted only. */
void st_moments(const rule_tensor *t, double m[4]);
bool st_near_moments(const double a[4], const double b[4]);
bool st_has_side(state *s, eg_node e, int side);
/* 0: the same shape, 1: the same but for sizes 1, 2: another. */
int st_shape_distance(const rule_shape *a, const rule_shape *b);

/* ---- explain.c ---- */
/* The checked chain from `a` to `b`, added to the result's steps; `weakest` falls to the evidence of its weakest rule. */
iso_code st_explain(state *s, eg_node a, eg_node b, rule_status *weakest, iso_error *err);
/* ---- rematch.c ---- */
/* The application literally is its rule: sides, substitution, conditions, shapes. Returns: in `why` (static) where it is not; in `need` what
 * must be equal for that (Owns: free). */
iso_code st_rematch(state *s, const application *a, premise **need, size_t *n, const char **why, iso_error *err);
/* Every class holds one value, one shape, one dtype: congruence merges included. Errors: ISO_INTERNAL. */
iso_code st_check_classes(state *s, iso_error *err);
/* The assumptions that do not come with one merge: captured inputs, casts, kernels, ties, literals. */
iso_code st_assume_all(state *s, iso_error *err);

/* ---- publish.c ---- */
iso_code st_publish(state *s, bool *const live[2], iso_error *err);

/* ---- certificate.c ---- */
/* How a rule was applied, found while the e-graph is as it was matched: before the merge. `as`: at given sizes. */
iso_code st_note_instance(state *s, application *a, const rule *as, const eg_node *var, iso_error *err);
/* Output i of the left graph equals aux[i], which is relation[i] (RULE_VAR i: node i of the right graph). Into s->res->certificate. */
iso_code st_certify(state *s, const eg_node *aux, const rule_term *const *relation, iso_error *err);

/* ---- classes.c ---- */
/* Which nodes ended in one class, up to layout, and by what. Requires: what is unexplained is in the result. */
iso_code st_publish_classes(state *s, iso_error *err);
/* The classes that rule `index` joined something in. Requires: st_publish_classes. */
iso_code st_rule_classes(state *s, size_t index, synth_rule_use *use, iso_error *err);

/* ---- picture.c ---- */
/* Where two tensors of as many elements differ, coarsely. NULL in `out` where there is nothing to see. */
iso_code st_picture(state *s, const rule_tensor *x, const rule_tensor *y, const synth_picture **out, iso_error *err);

/* ---- divergence.c ---- */
iso_code st_divergences(state *s, iso_error *err);

#endif
