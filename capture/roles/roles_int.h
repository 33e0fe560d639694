/* Private to capture/roles/: the work on one capture. */
#ifndef CAPTURE_ROLES_ROLES_INT_H
#define CAPTURE_ROLES_ROLES_INT_H

#include "capture/roles/roles.h"

#define ROLES_NONE UINT32_MAX

/* How the ranks' values of one node are one tensor, that of node `at` of the new graph. */
typedef enum roles_kind {
  ROLES_OPEN, /* nothing is shown of it alone: its readers are shown together with it */
  ROLES_SAME, /* each has it */
  ROLES_PART, /* rank r has part r along `dim` */
  ROLES_SUM,  /* it is the sum of theirs */
  ROLES_MANY  /* a node of several results, which have places of their own */
} roles_kind;

typedef struct roles_place {
  roles_kind kind;
  uint32_t dim, at;
  uint32_t open;     /* of open ones: the length of the chain of open nodes that ends here */
  bool times;        /* theirs are of that many times the tensor as there are ranks */
  bool shared;       /* parts of a collective's sum, as they are or in another layout */
  bool ranged;       /* integers from low to high */
  int64_t low, high; /* both inside */
} roles_place;

typedef struct roles_new { /* of the new graph */
  cap_node as;
  rule_tensor **value; /* of each result; of inputs that of each set: owned */
  size_t n_values;
} roles_new;

typedef struct roles_work {
  cap_graph *g;
  const roles_asked *q;
  roles_result *out;
  iso_error *err;
  bool once;               /* the graph is that of each rank: its nodes are their own images */
  uint32_t n_all, n_ranks; /* ranks; those of them that become one */
  uint32_t stride;         /* which these are: roles_rank */
  uint32_t n_own;          /* results of one of them, with its team */
  uint32_t *own;           /* by team and number: the result; roles_result_of */
  const char **own_name;   /* by number: what the one is called */
  bool *meets;             /* by node: a collective in which all that become one meet */
  bool *common;            /* by node: read as it is by what no team has of its own */
  uint64_t *form;          /* by node: equal where two teams' nodes may be one */
  uint32_t *image;         /* by node of the first rank: the rank's in hand; ROLES_NONE: not met */
  bool *needed;            /* nodes of the first rank that its results depend on, and common ones */
  uint32_t *at, n_needed;  /* they, operands first */
  uint32_t *order;         /* by node of the first rank: its place there */
  uint32_t *images;        /* by rank and place there: the rank's own; roles_image */
  uint32_t *leaf, n_leaves; /* those of them that are leaves */
  roles_place *place;       /* by node of the first rank */
  roles_new *made;
  size_t n_made, cap_made;
  const char **note; /* of leaves, in words */
  size_t n_notes;
  cap_result *result;    /* of the new graph */
  const char **said;     /* by result: in words the parts that make it up; NULL: each rank has it */
  rule_verdict *verdict; /* by rule that was asked */
  size_t *uses, n_asked;
  size_t cap_verdict, cap_uses;
} roles_work;

/* The graph stays as it is, and this is why: returns ISO_OK. Arguments as of printf. */
iso_code roles_refuse(roles_work *x, const char *fmt, ...) ISO_PRINTF(2, 3);
static inline bool roles_refused(const roles_work *x) { return x->out->why != NULL; }
iso_code roles_nomem(roles_work *x);
/* The rank that a leaf's name begins with, and the rest of the name; -1: none. */
int64_t roles_rank_of(const char *name, const char **rest);

/* Ranks form rows and columns: a rank becomes one with those that are `stride` apart. A team has
 * one rank of each such row, and the argument treats it as one rank: messages between its members
 * are operators like others. */
static inline uint32_t roles_n_team(const roles_work *x) { return x->n_all / x->n_ranks; }
static inline uint32_t roles_team_of(const roles_work *x, uint32_t rank) {
  return rank / x->stride % x->n_ranks;
}
/* The rank's number in its team, and back. */
static inline uint32_t roles_member(const roles_work *x, uint32_t rank) {
  return rank / (x->stride * x->n_ranks) * x->stride + rank % x->stride;
}
static inline uint32_t roles_rank(const roles_work *x, uint32_t team, uint32_t member) {
  return (member / x->stride * x->n_ranks + team) * x->stride + member % x->stride;
}

/* ---- roles.c ---- */
/* The whole argument. Running the ranks and changing the graph are left to the caller. */
iso_code roles_argue(roles_work *x);
/* Frees all of `x` but `g` and `out`. */
void roles_end(roles_work *x);

/* ---- results.c ---- */
/* n_own, own and own_name, where every team has the same results. */
iso_code roles_own_results(roles_work *x);
/* Result `j` of a team. */
const cap_result *roles_result_of(const roles_work *x, uint32_t j, uint32_t team);

/* ---- same.c ---- */
/* Every team's graph is the first's: needed, leaf and images. */
iso_code roles_same(roles_work *x);
/* The node of team `r` in the place of one that the first team needs. */
static inline uint32_t roles_image(const roles_work *x, uint32_t r, uint32_t node) {
  return x->once ? node : x->images[(size_t)r * x->n_needed + x->order[node]];
}
/* Whether the node is one member's part of a collective. */
bool roles_is_share(const roles_work *x, const cap_node *n);

/* ---- leaves.c ---- */
/* The leaves of the new graph, and their places. */
iso_code roles_leaves(roles_work *x);
/* The rank's value of a leaf of the first, in an input set; borrowed. */
rule_tensor *roles_value(const roles_work *x, uint32_t r, uint32_t leaf, size_t set);
/* Concatenates tensors of one shape and dtype, one of each rank, along a dimension. Owns: the
 * caller unrefs. */
iso_code roles_join(roles_work *x, rule_tensor *const *theirs, uint32_t dim, rule_tensor **out);

/* ---- place.c ---- */
iso_code roles_places(roles_work *x);

/* ---- whole.c ---- */
/* The term's calls as nodes of the new graph, over which its variables are. `like`: the node of the
 * old graph that it stands for. Returns: in `at` that of the term itself. */
iso_code roles_make(roles_work *x, const rule_term *t, uint32_t like, uint32_t *at);
/* From here on the ranks have `node` itself, and no longer a multiple of it by their number. */
iso_code roles_multiply(roles_work *x, uint32_t node);
/* The new graph's results: a tensor that each rank has, or the parts of which it is put
 * together. */
iso_code roles_results(roles_work *x);
/* Changes the graph. Nothing may be refused after this. */
iso_code roles_replace(roles_work *x);

/* ---- replay.c ---- */
/* Runs the ranks as they are, on the captured leaves and on drawn ones, and refuses where a result
 * contradicts its place. */
iso_code roles_replay(roles_work *x);

/* ---- claim.c ---- */
typedef struct roles_claim {
  uint32_t node;
  roles_kind kind;
  uint32_t dim;
  bool times;      /* both sides so many times, as they have ranks */
  uint32_t deeper; /* levels of operands that are taken apart, too */
  bool made;       /* operands that are made of sizes alone (zeros to scatter into) are known */
  bool within;     /* it works in each rank's part by itself, along `dim` */
  bool repeated;   /* operands that are the same on all ranks are summands of so many times them */
} roles_claim;
/* Whether the node's values have the claimed place, given the places of its operands. Returns: in
 * `whole` the node's call over nodes of the new graph. */
iso_code roles_holds(roles_work *x, const roles_claim *c, bool *holds, const rule_term **whole);
/* The node's call over nodes of the new graph, where its operands are the same on all ranks. */
iso_code roles_alike(roles_work *x, uint32_t node, const rule_term **whole);
/* Whether the node turns operands that are `times` into the tensor itself (undoes), or into a
 * result that is `times` as well (carries). */
iso_code roles_undoes(roles_work *x, uint32_t node, bool *holds);
iso_code roles_carries(roles_work *x, uint32_t node, bool *holds);

/* ---- runs.c ---- */
/* Whether both sides of a claim can be run, at several numbers of ranks, and give the same. */
bool roles_runs(roles_work *x, const rule *r);

#endif
