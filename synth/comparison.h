/* Private to synth/: the joint e-graph of two captured graphs with values attached, and the steps
 * over it. */
#ifndef SYNTH_COMPARISON_H
#define SYNTH_COMPARISON_H

#include "egraph/base/rng.h"
#include "egraph/base/vec.h"
#include "egraph/egraph.h"
#include "rules/masks.h"
#include "synth/synth.h"

enum { LEFT = 0, RIGHT = 1 };
enum { MAX_OUT = 64 }; /* tensors that one operator returns */
enum { MAX_CHILDREN = 512 };

/* Kinds of reasons given to merges; `data` of eg_why indexes the table named. */
enum {
  WHY_LEAF = 1,
  /* an assumption */ WHY_VALUE = 2,
  /* an assumption about constants */ WHY_RULE = 3 /* an application */
};

/* The record of one e-node, by its id. */
typedef struct rec {
  bool tensor; /* stands for one tensor */
  bool multi;  /* an operator with several outputs, projected by getitem */
  bool konst;  /* depends on no parameter and no value-carrying input: evaluated in captured dtypes,
                  never redrawn */
  bool leaf;   /* a captured leaf */
  bool atom;   /* a leaf that no relation defines: drawn freely */
  bool lonely; /* an atom that no relation ties to the other side: one may have been missed, so it
                  keeps its captured value */
  bool param;  /* not constant, and depends on parameters and constants alone: large values are let
                  go and made again (st_spare) */
  bool open;   /* a candidate for it, of which no rule was found */
  bool cancels;     /* a sum of which rounding alone is left: its values are 0 */
  bool rests;       /* it is such a sum, or is made of one */
  bool valued;      /* values below are there, or can be made; or it is `typed` */
  bool typed;       /* nothing is run (synth/unrun/): shape and dtype are all that is known */
  rule_dtype dtype; /* where typed */
  int32_t node[2];  /* the first node of each side that became this e-node, -1 if none */
  size_t n_out;
  rule_tensor **val; /* n_draws * n_out, float64 where floating; read through st_val: NULL where it
                        was let go */
  double terms; /* of one that cancels: the sum of its terms' sizes, on the last draw; 0: not known.
                   Its values tell it from no other, this does */
  uint32_t from;  /* the e-node whose values are its own too, EG_NONE if none: then val is NULL */
  size_t ordinal; /* atoms: of the stream that they are drawn from */
  rule_tensor **cval; /* n_kept * n_out, captured dtypes; constants only */
  rule_shape shape;   /* of output 0, known before values are */
  int32_t group;      /* index into groups, -1 */
  uint32_t def; /* constants: the auxiliary e-node that this one was related to, EG_NONE if none */
  uint64_t signature; /* a bit for each leaf that it depends on, by hash; 0: not looked at yet
                         (fingerprint.c) */
} rec;

/* Whether it stands in neither captured graph: the search made it. */
static inline bool st_made(const rec *r) { return r->node[0] < 0 && r->node[1] < 0; }

/* E-nodes whose values agree up to layout on all draws: candidates for one another. */
typedef struct group {
  int64_t numel;
  double coarse;    /* within which its values agree, where a kernel computes in few bits; else 0 */
  double moment[4]; /* order-free: sum, sum of |x|, sum of squares, sum of x |x|; of the first
                       redrawn set */
  eg_node *member;
  size_t n, cap;
  int32_t next; /* in its place; -1: the last */
} group;

/* An application of a rule. WHY_RULE merges point at one. */
typedef struct premise { /* two e-nodes whose equality a match relied on */
  eg_node a, b;
} premise;

typedef struct instance { /* a rule as it was applied, its variables numbered as the set has them */
  const rule_term *side[2]; /* lhs, rhs: sizes and attributes are numbers */
  const eg_node *at;  /* the e-node of each operator and list of lhs, then rhs, children first */
  const eg_node *var; /* by variable: the e-node that it stands for; EG_NONE: unused */
  uint32_t n_names;   /* and for the rule's sizes and attributes */
  const char *const *name;
  const rule_term *const *value;
} instance;

typedef struct application {
  size_t rule; /* in the rule set */
  eg_node from, to;
  size_t first, n;             /* its premises */
  bool seen;                   /* by the explanation */
  const struct instance *inst; /* how it was applied; NULL: nothing was noted */
} application;

typedef struct rule_info {
  rule_verdict verdict;
  bool loaded;
  size_t uses;
  bool needed;
  bool passed_over; /* only tested, and not used: a proved one was looked for */
  bool read; /* applied where its conditions hold of the numbers that float literals stand for */
} rule_info;

typedef struct try { /* a candidate that was validated */
  rule_verdict verdict;
  size_t rule;  /* the accepted rule, in the rule set; SIZE_MAX: none */
  bool glanced; /* not decided yet, but looked at */
}
try;

typedef struct st_value_list {
  rule_tensor **v;
  size_t n;
  bool
      beyond; /* finite arguments gave an infinity on the way to it: it is none of the function's */
} st_value_list;
typedef struct st_run {
  st_value_list *value; /* per node of the graph; empty where dead or let go */
  size_t n;
  int64_t failed; /* the node that could not be run, where st_run_graph gave an error; -1: none */
  bool overflow;  /* some value is `beyond` */
} st_run;

/* Nodes that stand for the same step on each rank (rank_sums.c). */
typedef struct peers {
  int side;
  uint32_t n, last; /* ranks; the last node in the graph's order */
  uint32_t *node;   /* by rank */
  uint32_t next;    /* while they are collected: others with the same first node */
  bool
      pieces; /* of one rank: tensors that it joins or adds up itself, not those of several ranks */
  bool linked, met; /* tried; their concatenation or sum is a tensor of the other graph */
  eg_node whole;    /* that tensor, or one of neither graph (lift.c); EG_NONE: none */
  uint32_t apart;   /* one more than the peers that a rank's was not joined with; 0: none */
} peers;

enum {
  PART_RIGHT = 1,
  /* a rank's part of a tensor of the other graph, or a tensor of which all ranks there hold a
   * part */
  PART_WRONG = 2 /* other ranks hold theirs, this one does not */
};

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
  int side; /* or a call with literals that were rounded, as it was captured; else NULL */
  uint32_t captured;
  const rule_term *call;
} st_rounded;

typedef struct st_reading { /* a literal of one side, and the number that it is read as */
  int side;
  double from, to;
} st_reading;

typedef struct st_masks st_masks;                    /* of one graph (masks.c) */
enum { ST_MASK_HALF, ST_MASK_OTHER, ST_MASK_KINDS }; /* float16's least number; other dtypes' */

/* Values that can be made again are let go, the oldest first, so that models with large parameters
 * fit.
 *
 * Invariant: held[first_held .. n_held) are there and take held_bytes; nothing is let go while
 * `making` is not 0, because the values that are being made point at others. */
typedef struct st_values {
  held *held; /* in the order in which they were made */
  size_t first_held, n_held, cap_held, held_bytes;
  uint32_t making;
  iso_code lost;                      /* one could not be made again, */
  iso_error lost_why;                 /* because of this: the comparison ends with it */
  struct st_output_runs *output_runs; /* by draw: those that were made (refute/rounding.c) */
  size_t n_output_runs;
} st_values;

/* The symbols that stand for literals.
 *
 * Invariant: a literal's symbol is its text (joint_graph.c), so that two literals share one exactly
 * where they are the same. */
typedef struct st_literals {
  const rule_term **of; /* by symbol id; NULL: it is an operator */
  size_t cap;
  eg_symbol list; /* of lists */
} st_literals;

/* Candidates by value (fingerprint.c).
 *
 * Invariant: an e-node is in one group at most, that of its rec; groups of one place are a list
 * from place[] on. */
typedef struct st_groups {
  group *of;
  size_t n, cap;
  double coarse; /* the coarsest group's */
  int32_t *place;
  size_t n_places; /* the first group of each */
} st_groups;

/* Rules of one set as the matcher reads them (search/compiled.h), by their numbers in the set. */
typedef struct st_compiled_rules {
  struct st_compiled *rule;
  size_t cap;
} st_compiled_rules;

/* Rules, and where they were applied.
 *
 * Invariant: info[i] is of rule i of `set`, tries[i] of rule i of `tried`; applications are never
 * taken back, and a WHY_RULE merge points at one. */
typedef struct st_rules {
  rule_set *set; /* those that were validated, as general as they hold */
  rule_info *info;
  size_t cap_info;
  rule_set *tried; /* candidates as they were proposed, so that none is validated twice */
  try *tries;
  size_t cap_tries;
  application *app;
  size_t n_app, cap_app;
  premise *prem; /* of applications, one after another */
  size_t n_prem, cap_prem;
  st_compiled_rules compiled, known_compiled; /* of `set`, and of those that were given */
} st_rules;

/* How far the search has got.
 *
 * Invariant: once `apart`, no more rules are looked for; `large_patterns` only after all small
 * ones. */
typedef struct st_effort {
  size_t n_wasted; /* tries of candidates that no rule was found for */
  bool hunted;     /* a witness was looked for while candidates were tried */
  bool apart;      /* and found */
  bool parted;     /* outputs differ at the captured inputs: rules say where, and no more */
  bool large_patterns;
  bool first_pass;     /* tensors are looked at for the first time */
  bool briefly;        /* few frontiers of a pair are tried: it may need no rule */
  bool lays_back;      /* layouts are undone as they are found */
  bool would_lay_back; /* small patterns have failed, and layouts that are undone join tensors */
  uint32_t (*laid)[2]; /* e-nodes of which the first is a layout of the second (st_lay_back) */
  size_t n_laid, cap_laid;
  bool itemising;           /* a vector is joined number by number */
  const char *saturated_to; /* the limit that the last saturation ended at; NULL: none */
} st_effort;

/* Facts about leaves that are known before their values.
 *
 * Invariant: a replica is joined with the leaf that it repeats, which belongs to a lower rank. */
typedef struct st_leaves {
  int32_t *replica[2]; /* by captured node: the leaf of a lower rank that it repeats, -1 if none */
  bool *settled[2];    /* by captured node: its relation was given whole, or forbidden */
  bool *written[2];    /* by captured node: it is written as a given relation says */
  bool *kept[2];       /* by captured node: it keeps its captured value */
  bool *unread[2];     /* by captured node: no output needs it, nor a replica of it */
  struct st_range
      *range[2];          /* by captured node: the range of drawn integers; NULL: not found yet */
  struct st_bound *bound; /* inputs that equal a term which cannot leave their range */
  size_t n_bound, cap_bound;
  struct st_drawn_part
      *part; /* parts of inputs that say more of their numbers than the whole does */
  size_t n_parts, cap_parts;
  bool lonely_both;     /* either side has parameters that are lonely */
  bool frees_by_chance; /* integers that are kept by what they look like by chance are drawn */
  bool by_looks;        /* input sets that were drawn by what inputs look like are sets, too */
  bool keep_integers;   /* those that are given are not drawn anew: an operator could not take those
                           that were; then nothing is equivalent */
} st_leaves;

/* The state of link.c from one pair of tensors to the next. */
typedef struct st_links {
  uint32_t *first[2], *peer[2]; /* by captured node: where the peers that it is one of begin */
  uint32_t *mark[2];            /* by captured node: the last stamp */
  struct {
    uint32_t stamp;
    bool done;
  } * seen;          /* by e-node; done: all peers below are linked */
  uint32_t *stamped; /* by peers */
  uint8_t *whole;    /* by e-node: one more than the side whose peers make it up; 0 */
  size_t cap_seen, cap_whole, n_of[2]; /* n_of: peers by side */
  uint32_t stamp;
  uint32_t *below; /* peers that are not linked and have a node below these tensors */
  size_t n_below;
} st_links;

/* Tiles that stand beside one another in a row, of a tensor that the side's graph does not have. */
typedef struct st_tile_row {
  eg_node tile[64]; /* MAX_RANKS (parts/parts.h) */
  uint32_t n;
  int side;
  bool joined;
} st_tile_row;

/* Tiles of the tensors of one side (parts/tiles.c). */
typedef struct st_tiles {
  struct st_tile *of; /* by the sum of their squares */
  size_t n, cap;
  uint32_t n_parts; /* along each of both dimensions; 0: nothing is indexed */
  int side;
  uint8_t *tried; /* by captured node of the other side: TILE_* (parts/tiles.c) */
  uint32_t *seen; /* and the last walk that came by */
  uint32_t stamp;
  st_tile_row *row; /* of the other side (parts/running.c) */
  size_t n_rows, cap_rows;
  uint32_t *row_at[2]; /* by captured node: one more than the row from whose tiles it is computed;
                          0: none is known. NULL: none at all */
} st_tiles;

/* What the first `n_peers` peers tell of their side. */
typedef struct st_peers_say {
  size_t n_peers;
  uint32_t most;    /* ranks of peers */
  uint32_t batches; /* an input is taken in so many pieces, one after another; 0: as one */
} st_peers_say;

/* Ranks of one side that hold parts of tensors that the other side holds whole (rank_sums.c).
 *
 * Invariant: `linking` is set while shards are linked, which is not done again inside. */
typedef struct st_ranks {
  uint8_t *part[2]; /* by captured node: PART_*, once st_mark_parts ran */
  peers *peers;
  size_t n_peers, cap_peers;
  st_peers_say say[2];
  uint32_t *first_peers[2];
  uint32_t *peers_at[2]; /* by captured node: peers that it is one of, UINT32_MAX where there are
                            none */
  bool *inner[2];        /* by captured node: a sum of some of the summands of another sum */
  bool norms;            /* norms of tensors are taken somewhere */
  bool collective[2];    /* the side has ranks that give one another tensors */
  int whole_side;   /* of fewer peers: looked at first, so that all that the other side's ranks may
                       hold in parts is known when they are linked */
  int64_t times[8]; /* whole numbers that elementwise calls take, ascending, from 2 on */
  size_t n_times;
  uint8_t *scaled[2]; /* by captured node: it was looked at whether it is so many times another */
  size_t vain;        /* of these in turn were not joined */
  bool twins;         /* of these, those alone that the same step gives on both sides */
  bool scaling;       /* they are being joined, which is not done again inside */
  st_links links;
  st_tiles tiles;
  bool linking, wide; /* wide: tensors that ranks share may be in a rule for each rank, once small
                         rules failed */
  bool tiling;        /* what is joined is made of tiles of the other side's tensors */
  bool running;       /* running maxima and sums are joined with what they are of all blocks, */
  bool by_steps;      /* or are not to be */
  bool whole; /* a rule without ranks is looked for: no tensor that they hold in parts is in it */
  bool cut_short; /* of the last two tensors no rule could be stated: too much lies below them */
} st_ranks;

/* Masks that are read as minus infinity (masks.c).
 *
 * Invariant: nothing is read where `as_written`; a comparison in which numbers came near masks that
 * were read does not count, and is made again with it. */
typedef struct st_mask_state {
  st_masks *of[2];          /* by set; NULL: none were looked for */
  bool as_written;          /* masks are not read: numbers come near them */
  bool try_others;          /* other masks than float16's, too */
  bool read[ST_MASK_KINDS]; /* which are read */
  bool near;                /* numbers come near other masks: no rule reads them */
  bool others_vanish;       /* they could be read, */
  bool others_differ;       /* and have to be: each graph has masks of its own */
} st_mask_state;

/* Constants that rounding tells apart, and literals that are read as other numbers (constants/).
 *
 * Invariant: each of rounded[] has an assumption; where one of them may be a difference, `doubtful`
 * says which, and nothing is equivalent. */
typedef struct st_constants {
  bool signs; /* something reads signs of zeros */
  st_rounded *rounded;
  size_t n_rounded, cap_rounded;
  st_reading *reading;
  size_t n_readings, cap_readings;
  const synth_node *as_given[2]; /* the nodes as captured; ours may read a literal as another */
  bool poles_differ; /* numbers that are one over the reals are infinite of both signs, or on both
                        sides of a cut */
  const char *doubtful; /* two constants that were joined may be two: which */
  bool inexact;         /* constants were related that differ by rounding */
  bool measured;        /* it is known how far the rounding of constants moves the outputs */
  bool widen,
      wide;      /* constants that one side alone computes are made in float64; wide: from now on */
  bool narrowed; /* one side alone computes some constant in float32 */
} st_constants;

/* The draw that shows the outputs different.
 *
 * Invariant: both runs are there or neither; constants of a run are those of kept set `set`. */
typedef struct st_witness {
  st_run run[2]; /* values of all live nodes */
  size_t set;    /* the input set that st_run_graph runs on */
  bool clear;    /* of a difference at captured inputs: st_difference */
} st_witness;

typedef struct st_assumptions {
  synth_assumption *of;
  size_t n, cap;
} st_assumptions;

/* One comparison. Its parts are above; the other members here are read by all of them. */
typedef struct state {
  const synth_graph *graph[2];
  const rule_oracle *oracle;
  rule_schemas *schemas;
  const synth_options *o;
  const rule_set *known;
  iso_arena arena; /* terms and texts of this comparison */
  eg_graph *g;
  rec *rec; /* by eg_node id */
  size_t n_rec, cap_rec;
  eg_node *map[2];        /* captured node to e-node */
  uint32_t *right_of;     /* left output to right output */
  size_t n_sets, n_draws; /* draws: captured input sets, then redrawn ones */
  size_t n_kept;          /* on how many sets constants have values of their own: 1 where all sets
                             have the same kept inputs, else n_sets */
  st_literals literals;
  st_leaves leaves;
  st_ranks ranks;
  st_mask_state masks;
  st_constants constants;
  st_values values;
  st_groups groups;
  st_rules rules;
  st_effort search;
  st_assumptions assumed;
  st_witness witness;
  synth_result *res;
  uint32_t *class_root; /* by class: those joined by a layout of ours have one root; once classes
                           are published */
  size_t work_left;     /* for localise/, as st_work counts */
  double t0;
  bool unrun;          /* nothing is run but constants (synth/unrun/) */
  const char *stopped; /* a limit was reached: which; see st_stopped */
} state;

/* The question to localise/ once the verdict is final. */
struct synth_localiser {
  /* The places where the graphs part, into the result. */
  iso_code (*divergences)(state *s, iso_error *err);
  /* An operator that cannot be run, cut out alone, into the result. `leaf`: by node. */
  iso_code (*cut_failing)(state *s, int side, uint32_t node, rule_tensor *const *leaf,
                          iso_error *err);
};

double synth_clock(void);
double synth_cpu_clock(void); /* of the process alone */
/* Deciding the rule `title` has used the processor since `cpu_from`. */
void st_note_cost(state *s, const char *title, double cpu_from);
/* The number of input sets that were captured: later ones were drawn inside domains. */
static inline size_t st_n_captured(const state *s) {
  const size_t n = s->graph[LEFT]->n_captured;
  return n && n < s->n_sets ? n : s->n_sets;
}
/* Whether a draw is an input set that was drawn by the looks of inputs. */
static inline bool st_by_looks(const state *s, size_t draw) {
  const size_t n = s->graph[LEFT]->n_said;
  return n && draw >= n && draw < s->n_sets;
}
/* Whether a difference on it may be none. */
static inline bool st_unsure(const state *s, size_t draw) {
  return st_by_looks(s, draw) && draw >= s->graph[LEFT]->n_sure;
}
/* Whether a limit of the caller's was reached; once it was, it stays so. The reason is in
 * s->stopped. */
bool st_stopped(state *s);
/* A leaf that no output needs. */
static inline bool st_unread(const state *s, const rec *r) {
  const int side = r->node[LEFT] >= 0 ? LEFT : RIGHT;
  return r->leaf && s->leaves.unread[side][r->node[side]];
}
static inline bool st_without(const state *s, unsigned optimisation) {
  return (s->o->disable & optimisation) != 0;
}

#endif
