/* Private to agree*.c: the inputs of two captures, and their sets while they are put together. */
#ifndef CAPTURE_AGREE_INT_H
#define CAPTURE_AGREE_INT_H

#include "capture/capture_int.h"
#include "capture/looks/bits.h"
#include "capture/looks/laws.h"

enum { LEFT = 0, RIGHT = 1 };

typedef struct agree_input {
  uint32_t node;
  int side;
  size_t group;     /* the first input that is one with it */
  int64_t other;    /* the input of the other side that it is compared with, -1: values will tell */
  bool settled;     /* a user spoke of it, and not of one counterpart */
  bool spoken;      /* a user said what its counterpart is */
  bool opposed;     /* it has ones for the zeros of `other`, as long as sets are exchanged */
  bool known;       /* its values are found on the other side */
  int64_t whole;    /* the input of the other side of which it is its rank's part, -1: of none */
  uint32_t dim;     /* along which the ranks share it */
  int64_t from;     /* the first of its rows there */
  int64_t twin;     /* the input whose zeros and ones it has, in another dtype, -1: of none */
  bool swapped;     /* and it has ones for its zeros */
  int64_t hangs;    /* the group of zeros and ones that gives this one, -1: none does */
  looks_law law;    /* by which */
  bool by_chance;   /* it may be so by chance */
  bool torn;        /* another law gives it, too, and not the same of other masks */
  bool spare;       /* its side has one more of these zeros and ones than the other side */
  looks_bits looks; /* of the first of a group: how it is drawn, LOOKS_KEPT: not by its looks */
} agree_input;

typedef struct agree_index { /* by name, the first of that name */
  cap_names read, stem;      /* inputs that an output depends on, by name and by stem: in `in` */
  cap_names given;           /* all inputs: nodes of the graph */
} agree_index;

typedef struct agree {
  cap_graph *graph[2];
  agree_input *in; /* the left's, then the right's */
  agree_index by[2];
  size_t n, sets; /* sets: that both captures have */
  cap_agreement *out;
  cap_note *note;
  iso_error *err;
} agree;

/* The look of an input's values: inputs of other names are one where these agree, too. */
typedef enum agree_look { FLOATS, BITS, ONE_NUMBER, STEPS, NUMBERS } agree_look;

typedef struct agree_sets { /* of both graphs, as they are put together */
  rule_tensor **at[2];
  size_t n;
} agree_sets;

/* ---- agree.c ---- */
static inline const cap_node *agree_node(const agree *a, size_t i) {
  return &a->graph[a->in[i].side]->node[a->in[i].node];
}
static inline rule_tensor *agree_value(const agree *a, size_t i, size_t set) {
  const cap_graph *g = a->graph[a->in[i].side];
  return g->input[set * g->n_nodes + a->in[i].node];
}
/* The inputs of one side that an output depends on, at the end of a->in. Owns: agree_fini. */
iso_code agree_collect(agree *a, int side);
void agree_fini(agree *a);
/* Whether input `j` is input `i` with its dimensions in another order: in `at` which, for each. */
bool agree_rearranged(const agree *a, size_t i, size_t j, uint32_t *at);
agree_look agree_look_of(const agree *a, size_t i);
/* On every set the same values, up to sizes 1. */
bool agree_equal(const agree *a, size_t i, size_t j);
/* The name without the rank that it begins with: "rank<r>.NAME" is rank r's NAME. */
const char *agree_stem(const char *name);
/* The namesake on the other side that is compared with nothing yet, -1. */
int64_t agree_namesake(const agree *a, size_t i);
/* `text`: NULL where there was no memory for it. `other`: -1 where there is none. */
iso_code agree_note(agree *a, rule_assumption kind, const char *text, size_t i, int64_t other);

/* ---- agree_domain.c ---- */
/* The input of that name that the other side was given and reads nowhere: a mask that is not passed
 * on. NULL: there is none; then another value may take its place. */
const cap_node *agree_unread(const agree *a, size_t i);

/* ---- agree_sets.c ---- */
/* Where one capture has more input sets, the other takes part in them with the values of the inputs
 * that its own are paired with: by name, and by equal values on the sets that both have. */
iso_code agree_lengthen(agree *a);
/* Both graphs on the left's values, then on the right's. What is opposed has no `other` then. */
iso_code agree_exchange(agree *a);
/* `from` in the dtype and shape of `n`. Owns: the caller unrefs. */
iso_code agree_as_input(agree *a, rule_tensor *from, const cap_node *n, rule_tensor **out);
/* Set `set` of each graph as it is, at the end. Owns: agree_drop. */
iso_code agree_add(const agree *a, agree_sets *s, size_t set);
rule_tensor **agree_slot(const agree *a, agree_sets *s, size_t set, size_t i);
void agree_drop(const agree *a, agree_sets *s);
/* They take the place of the graphs' sets. */
void agree_use(agree *a, agree_sets *s);

/* ---- agree_domain.c ---- */
/* The value of an input in the last set. Takes `own`. */
void agree_set_last(const agree *a, agree_sets *s, size_t i, rule_tensor *own);
/* Cuts the group's value `t` into the parts that the ranks hold. Returns: in `inside` whether their
 * domains admit them. `s`: NULL: nothing is set. */
iso_code agree_cut_parts(agree *a, size_t g, const rule_tensor *t, agree_sets *s, bool *inside);

/* ---- looks/inputs.c, looks/hanging.c ---- */
/* Whether the other side has an input with ones for the zeros of this one: what is left out in
 * place of what is kept. */
bool agree_swapped(const agree *a, size_t i);
bool agree_zeros_and_ones(const agree *a, size_t i);
/* Whether input `j` has ones for the zeros of input `i`, on every set. */
bool agree_complement(const agree *a, size_t i, size_t j);
/* Whether both are one mask: in another dtype, with ones for zeros, or what a law makes of it. */
iso_code agree_of_one_mask(agree *a, size_t i, size_t j, bool *yes);
/* Whether nobody says anything of the group, nor of its parts. */
bool agree_unsaid(const agree *a, size_t g);
typedef struct agree_form {
  unsigned form;         /* counted through */
  const int64_t *counts; /* numbers of ones that make a difference to the graphs */
  size_t n_counts;
  bool full; /* what is not known of them, whether rows may have ones alone, may be so, too */
} agree_form;
/* Which inputs of zeros and ones are drawn by what they look like, where nothing is said. Returns:
 * in `all` whether no difference on such draws is sure to be one. Requires: domains have met. */
iso_code agree_find_looks(agree *a, bool *all);
/* The inputs that come of those that are drawn by their looks. */
iso_code agree_find_hanging(agree *a);
/* Ids that have one number exactly where the group hides them do so in the last set, too. */
iso_code agree_fill(agree *a, agree_sets *s, size_t g, const rule_tensor *mask);
iso_code agree_has_law(agree *a, size_t g, size_t j, bool *yes);
/* Of these, those that come of group `g`, which is `t` in the last set. `apart`: those that may be
 * so by chance come of another draw of the group. */
iso_code agree_draw_hanging(agree *a, agree_sets *s, size_t g, const rule_tensor *t,
                            const rule_tensor *apart);
/* A fresh value for such a group in the last set. */
iso_code agree_draw_looks(agree *a, agree_sets *s, size_t g, const agree_form *by, iso_rng *rng);

/* ---- agree_domain.c ---- */
/* A domain that one capture gives to an input holds for both; further sets are drawn from it. */
iso_code agree_domains(agree *a, uint64_t seed);

#endif
