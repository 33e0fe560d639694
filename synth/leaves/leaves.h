/* Leaves of one side related to those of the other, and fresh values that keep these relations. */
#ifndef SYNTH_LEAVES_LEAVES_H
#define SYNTH_LEAVES_LEAVES_H

#include <math.h>

#include "synth/comparison.h"

/* ---- ranks.c ---- */
/* Both graphs with their outputs paired: output i of one is compared with output i of the other.
 * Names pair them, else positions; an output that several ranks give ("NAME", "NAME_rank1", ...) is
 * paired with its counterpart as often as there are ranks. The lists live in `arena`, everything
 * else is borrowed. Errors: ISO_USAGE where they cannot be paired. */
iso_code st_pair_outputs(const synth_graph *left, const synth_graph *right, iso_arena *arena,
                         synth_graph pair[2], iso_error *err);

/* Leaves that repeat a lower rank's are joined with it (s->leaves.replica). Requires: the leaves
 * are in the e-graph. */
iso_code st_join_replicas(state *s, iso_error *err);
/* Which leaves of the left should be defined by the right ones that they are made of: where the
 * left holds more elements than the right ones it is related to (ranks that repeat a part), drawing
 * them freely would lose the repetition. `of`: relations, by side and node. Owns: the caller frees;
 * NULL when there is no memory. */
bool *st_repeating(const state *s, synth_relation *const of[2]);

/* A union-find over leaves that relations tie together: left nodes, then right ones. */
size_t st_root_leaf(size_t *parent, size_t i);
/* Joins `leaf` with all leaves of the term, the first of whose graph has the number `offset`. */
void st_tie_leaves(size_t *parent, size_t leaf, const rule_term *t, size_t offset);

/* The integers at and beside which the graphs decide about integers (comparisons with a literal:
 * where a rank's part of a vocabulary ends), in [low, high). Returns: how many of `cap`. */
size_t st_integer_edges(const state *s, int64_t low, int64_t high, int64_t *out, size_t cap);

/* ---- user_relations.c ---- */
/* Checks the user's relations of leaves against the captured values, and notes which leaves they
 * settle; `of`: gets the relations of right leaves that follow. Errors: ISO_USAGE. */
iso_code st_take_given(state *s, synth_relation *of, iso_error *err);
/* The one right leaf that the line's term rearranges without loss, UINT32_MAX: none. */
uint32_t st_whole_leaf(const state *s, const synth_given *g);
/* A term over the tensors `leaf`, by node. Owns: the caller unrefs. */
ISO_MUST_USE iso_code st_term_over(state *s, const rule_term *t, rule_tensor *const *leaf,
                                   rule_tensor **out, iso_error *err);
/* The captured value, on one set, of a term over the leaves of `side`. Owns: the caller unrefs. */
ISO_MUST_USE iso_code st_value_over(state *s, int side, const rule_term *t, size_t set,
                                    rule_tensor **out, iso_error *err);
/* Whether leaf `i` of `side` may not be made of `source` of the other side. */
bool st_forbidden(const state *s, int side, size_t i, size_t source);

/* ---- given_leaves.c ---- */
/* Lines that share leaves, taken together: which leaves are written in terms of which. Requires:
 * they hold of the captured values. */
ISO_MUST_USE iso_code st_take_families(state *s, synth_relation *of, iso_error *err);

/* ---- relate_leaves.c ---- */
/* In the relations `of` the leaves of `side`: zeros or ones that several parameters hold are
 * related to one each (equal_init.c). */
ISO_MUST_USE iso_code st_drop_coincidences(state *s, int side, synth_relation *of, iso_error *err);
/* Drops relations, suggested by values, that make elements of a leaf with arbitrary values equal to
 * each other (equal_init.c). */
ISO_MUST_USE iso_code st_drop_repeats(state *s, int side, synth_relation *of, iso_error *err);
iso_code st_relate_leaves(state *s, const bool *const live[2], iso_error *err);
/* Whether a tensor has many different numbers: it is not zeros, ones, an identity, a mask. */
bool st_generic(const rule_tensor *t);
iso_code st_draw_leaves(state *s, iso_error *err);
iso_code st_set_values(state *s, eg_node e, rule_tensor **val,
                       iso_error *err); /* by draw; each is referred to */
/* The same values for `e` as `from` has, kept. */
iso_code st_values_of(state *s, eg_node e, eg_node from, iso_error *err);

/* ---- integer_ranges.c ---- */
/* The range that an integer leaf is drawn from. */
typedef struct st_range {
  int64_t low, high; /* [low, high); requires: told */
  bool told;         /* the tables that it reads end it */
  bool matters;      /* these have more rows, all zero, or are read from the end, too */
  bool has_none;
  int64_t none; /* a number outside that was captured, and chooses nothing */
  int64_t
      end[2];  /* it lies below it by the tables of one side alone; INT64_MAX: they say nothing */
  uint64_t of; /* leaves with a bit in common may be made of one another */
} st_range;
/* The ranges of all integer leaves. Those that go together in a way that no range tells are kept.
 * Requires: both graphs are in the e-graph. */
ISO_MUST_USE iso_code st_find_ranges(state *s, iso_error *err);
/* Of a leaf. Returns: never NULL. */
const st_range *st_range_of(const state *s, int side, size_t i);

/* ---- index_bounds.c ---- */
iso_code st_bound_indices(state *s, iso_error *err);
typedef enum st_rows {
  ST_ROWS_NONE,
  ST_ROWS_READ,   /* rows of a table */
  ST_ROWS_CLASSES /* those that a loss is told */
} st_rows;
/* The rows that an input chooses, as it is or computed one by one; `live`: the operators that
 * count. */
st_rows st_chooses_rows(const state *s, int side, size_t i, const bool *live);
/* And in `rows` of how many, the fewest; 0: not known. */
st_rows st_chooses_among(const state *s, int side, size_t i, const bool *live, int64_t *rows);

/* ---- integer_inputs.c ---- */
/* Whether an input of integers that nobody says anything of is kept by what so few of them look
 * like by chance: all 0, consecutive, none above 1. */
bool st_kept_by_chance(const state *s, int side, size_t i, const bool *live);

/* ---- domains.c ---- */
typedef struct st_bound {
  eg_node leaf, raw, def; /* leaf = def, which is a term over raw; the raw atom may be anything */
  bool other; /* the raw atom has other values than the leaf: def does not leave those alone */
} st_bound;
/* Elements of an input that are a part on the other side, and the values that the part may have. */
typedef struct st_drawn_part {
  int side; /* the whole's, and its node */
  size_t leaf;
  const rule_domain *domain;
  rule_tensor *at; /* which of its elements they are */
} st_drawn_part;
/* Whether an input's values have a structure on every set, so that it is kept; `live`: the
 * operators that count. */
bool st_structured(const state *s, int side, size_t i, const bool *live);
/* A leaf's value; of an input with several sets, a tensor in which two elements have one number
 * where they are equal on each set. Owns: the caller unrefs. */
ISO_MUST_USE iso_code st_all_sets(const state *s, const synth_node *n, rule_tensor **out,
                                  iso_error *err);
/* A relation of input `i` that does not hold on every set is dropped. */
ISO_MUST_USE iso_code st_hold_on_sets(state *s, int side, size_t i, synth_relation *r,
                                      iso_error *err);
/* A drawn value of a leaf becomes one inside its domain, and each part of it one inside the part's;
 * `round` counts draws. */
ISO_MUST_USE iso_code st_fit(const state *s, int side, size_t i, size_t round, iso_rng *rng,
                             rule_tensor **v, iso_error *err);
/* Where an integer leaf is drawn, [low, high): in its range, else in its domain, else among the
 * captured values. Returns: its range. */
const st_range *st_interval(const state *s, int side, size_t i, int64_t *low, int64_t *high);
bool st_admits(const state *s, eg_node e, const rule_tensor *v);
/* Input `i` equals the term over leaves of the other side: its domain's bounds on elements are
 * passed on to theirs. */
ISO_MUST_USE iso_code st_pass_domain_on(state *s, int side, size_t i, const rule_term *t,
                                        iso_error *err);
/* The same of leaves that are `defined` as parts, by relations `of`, where they are a whole one and
 * say one thing. Else each part is drawn inside its own (st_fit). */
ISO_MUST_USE iso_code st_pass_parts_on(state *s, int side, const synth_relation *of,
                                       const bool *defined, iso_error *err);
/* The parts from `from` on are none. */
void st_forget_parts(state *s, size_t from);
/* Input `i` equals `term` over RULE_VAR 0, a new atom of its values. `text`: of the assumption;
 * NULL: there was no memory for it. */
ISO_MUST_USE iso_code st_bound_leaf(state *s, int side, size_t i, const rule_term *term,
                                    rule_assumption kind, const char *text, iso_error *err);
/* States that inputs equal terms that cannot leave their domains, for rules that hold only
 * inside. */
ISO_MUST_USE iso_code st_bound_domains(state *s, iso_error *err);
/* The bound whose raw atom, or else whose term, an e-node is; NULL. */
const st_bound *st_bound_by(const st_leaves *leaves, eg_node e, bool raw);
/* The bound of the input that an e-node equals; NULL. */
const st_bound *st_bound_of(const state *s, eg_node e);

/* ---- integer_inputs.c ---- */
/* Decides which inputs are constants. Inputs that carry tokens are not, whatever was captured, nor
 * are those that either side draws. Positions that one side looks up and the other computes with
 * are. Requires: the leaves are related. */
ISO_MUST_USE iso_code st_free_tokens(state *s, const bool *const live[2], iso_error *err);
ISO_MUST_USE iso_code st_keep_positions(state *s, const bool *const live[2], iso_error *err);

/* ---- draw.c ---- */
/* Beyond are the numbers of masks, and infinities. */
static inline bool st_ordinary(double x) { return fabs(x) < RULE_MASK_HIDES; }
/* Elements `from` on of a drawn leaf are masked where `v`, its captured value, is: a number that is
 * drawn there would hide nothing. Each round but 0 hides others, but no more of a row. */
void st_put_masks(const rule_tensor *v, size_t round, int64_t from, int64_t n, double *to);
typedef struct st_spread {
  double mean, dev; /* of ordinary numbers */
  bool masks;       /* there are others */
  bool known;
} st_spread;
typedef struct st_stream {
  size_t ordinal; /* of the leaf */
  size_t round;   /* the draw, counted from the first that is not captured */
} st_stream;
/* Complex numbers over the whole plane, of the captured ones' size times `scale`. Owns: `out`. */
iso_code st_draw_plane(rule_tensor *captured, double scale, iso_rng *rng, rule_tensor **out,
                       iso_error *err);
/* Fresh values for leaf `i` of `side`. `of`: the captured values', found when first asked for.
 * Owns: the caller unrefs. */
iso_code st_redraw(state *s, int side, size_t i, st_stream stream, st_spread *of, rule_tensor **out,
                   iso_error *err);
/* The value of an atom on a draw, anew. Owns: the caller unrefs. */
iso_code st_draw_atom(state *s, eg_node e, size_t draw, rule_tensor **out, iso_error *err);
/* Some rows of it: `row` holds their numbers. Requires: a large float parameter of rank 2 with such
 * rows. Owns: the caller unrefs. */
iso_code st_draw_rows(state *s, eg_node e, size_t draw, const rule_tensor *row, rule_tensor **out,
                      iso_error *err);

#endif
