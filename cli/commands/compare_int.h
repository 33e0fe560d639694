/* Private to the compare command: its options, and the pairs of captures that it compares. */
#ifndef CLI_COMMANDS_COMPARE_INT_H
#define CLI_COMMANDS_COMPARE_INT_H

#include "capture/calls/calls.h"
#include "capture/capture.h"
#include "cli/config/limits.h"
#include "cli/config/relations.h"
#include "cli/report/looked.h"
#include "cli/report/obligations.h"
#include "cli/report/refinement.h"
#include "localise/rounding/rounding.h"
#include "capture/roles/roles.h"
#include "synth/synth.h"
#include "validate/validate.h"

enum { MAX_PAIRS = 33, MAX_OPS = 32, MAX_INPUTS = 64 };
/* Parts that can be switched off: the comparison at other sizes, ranks decided once. */
enum { CMP_SIZES = 2 * SYNTH_SATURATE, CMP_ROLES = 2 * CMP_SIZES };

/* What is shown of a comparison under way. */
typedef struct progress {
  bool terminal, lines;
  double began, next; /* seconds of a clock */
  const char *stage;  /* NULL: none yet */
  size_t done, total;
} progress;

typedef struct options {
  const char *pair[MAX_PAIRS][2]; /* left, right; those after the first come with --also */
  size_t n_pairs;
  calls_side calls[2]; /* the captures of the first pair and those behind it, of --then */
  const char *json, *html, *rules, *save_rules, *repro, *counterexample;
  const char *certificate;
  const char *sarif, *junit, *explorer, *baseline; /* of one pair only */
  const char *relations, *save_relations, *expect;
  bool refine; /* infer relations of all outputs of which no line speaks */
  bool github;
  enum { COLOUR_AUTO, COLOUR, NO_COLOUR } colour;
  val_options val;
  synth_options synth;
  const char *ops[MAX_OPS], *inputs[MAX_INPUTS];
  size_t n_inputs;
  limits limits;
  bool unrun;                /* --static: nothing is run */
  const char *learn[2];      /* a pair to learn rules from; NULL: none */
  bool learning;             /* this is it */
  iso_arena learned;         /* memory of synth.hint */
  char *learned_certificate; /* of that pair; NULL: none */
  bool pinned;               /* parameters are constants */
  bool rounding;             /* measured beside the verdict */
  bool certified;            /* nothing less counts */
  bool quiet, verbose, explain, trace, no_stats;
  progress progress;
  cap_graph *const *compared; /* the two graphs at hand */
} options;

/* A capture as the comparison sees it: borrows the capture's texts and tensors. */
typedef struct view {
  synth_graph g;
  synth_node *node;
  synth_output *output;
  rule_tensor **value;
  synth_symbol *symbol;
} view;

/* One pair: its captures and their result. Owns: cmp_free_pair. */
typedef struct pair {
  cap_graph *graph[2];
  view view[2];
  relations relations;
  refinement refinement;
  const char *unrelated; /* a left output that nothing is known of; NULL: none */
  synth_found why;       /* of that output: perhaps an element that nothing on the right holds */
  const char *stopped;   /* the limit that was reached before relations were looked for, or NULL */
  relations_folded folded;
  bool pinned;      /* parameters are constants */
  bool no_scope;    /* whether it holds for all sizes is not asked */
  unsigned opposed; /* inputs that are read as opposites, as cap_spoken has them */
  bool doubted;     /* they are read as equal, and the verdict would be `different` */
  bool by_role;     /* of the right side's ranks one is compared, or none */
  bool few;         /* also of few */
  roles_result roles;
  cap_agreement agreed;
  synth_result *result;
  looked looked; /* at other sizes */
  obligations obligations;
  rounding rounding;  /* where it was asked for */
  double load, total; /* seconds */
} pair;

/* ---- compare_options.c ---- */
/* Returns: -1 to go on, else the exit status. */
int cmp_parse(int argc, char **argv, options *o);

/* ---- compare_pair.c ---- */
/* `relation`: of each output, or NULL. Owns: cmp_free_view, whatever is returned. */
bool cmp_make_view(const cap_graph *c, const char *const *relation, const cap_agreement *agreed,
                   view *v);
void cmp_free_view(view *v);
void cmp_free_pair(pair *p);
cap_options cmp_inputs_of(const options *o, size_t k);
/* The captures of the pair, and of its further calls. */
void cmp_sides_of(const options *o, size_t k, calls_side side[2]);
iso_code cmp_compare_pair(options *o, size_t k, rule_schemas *schemas, val_engine *engine,
                          const rule_set *known, pair *p, iso_error *err);
/* Compares the graphs in p->graph, whose inputs are settled. */
iso_code cmp_compare_loaded(options *o, rule_schemas *schemas, val_engine *engine,
                            const rule_set *known, pair *p, iso_error *err);
/* The rules of a comparison, with their evidence, into a set. */
iso_code cmp_add_rules(const synth_result *r, rule_set *set, iso_error *err);

/* ---- compare_sizes.c ---- */
/* Where the captures leave sizes open: look at others. Requires: p was compared. Where they differ
 * at some, p becomes that pair, at the smallest sizes found; p->looked lists the sizes that were
 * tried. */
iso_code cmp_other_sizes(options *o, size_t k, rule_schemas *schemas, val_engine *engine,
                         const rule_set *known, pair *p, iso_error *err);

/* ---- compare_fold.c ---- */
/* Finds parameters without a counterpart that were computed, when a model was loaded, from leaves
 * of the other side: as lines in `out`, which has an arena of its own. Requires: p was compared. */
iso_code cmp_find_folds(pair *p, const rule_oracle *oracle, refinement *out, iso_error *err);
/* Take these lines, and those of the relations file: the graphs change. */
iso_code cmp_take_folds(const options *o, pair *p, const rule_oracle *oracle, iso_error *err);

/* ---- compare_roles.c ---- */
/* Whether ranks of one role may be decided once: nobody asked for more than a verdict. */
bool cmp_may_fold(const options *o);
/* Whether the right side has so few ranks that they are compared as they are first. */
bool cmp_few_ranks(const options *o, const pair *p);
/* Makes the right side's ranks one in p->roles, where they are shown to be. */
iso_code cmp_fold_ranks(const options *o, pair *p, const rule_oracle *oracle, iso_error *err);
/* Says why that did not settle it; `error`: NULL where nothing failed. */
void cmp_say_undone(const pair *p, const char *error);
/* The argument in the result. Requires: p was compared so, and is equivalent. */
iso_code cmp_say_roles(pair *p, iso_error *err);

/* ---- compare_refine.c ---- */
/* Infer relations of outputs where that is asked for or needed: further lines in p->relations, and
 * p->refinement. */
iso_code cmp_refine(const options *o, const synth_options *so, rule_schemas *schemas,
                    val_engine *engine, pair *p, iso_error *err);

/* ---- compare_unrelated.c ---- */
/* Nothing is run that could relate outputs: one that does not pair as it is becomes
 * p->unrelated. */
void cmp_find_unpaired(pair *p);
/* The verdict where a left output, p->unrelated, is nothing that was found. */
iso_code cmp_say_unrelated(pair *p, bool unrun, uint64_t seed, iso_error *err);

/* The pair whose verdict is everything's: the worst, the first of these; of equivalent ones that
 * with the weakest evidence, of different ones that with the shortest inputs. */
size_t cmp_deciding(const pair *p, size_t n);

/* ---- progress.c ---- */
void progress_start(progress *p, bool wanted);
void progress_at(progress *p, const char *stage, size_t done, size_t total);
/* Nothing new, but it is asked often. */
void progress_goes_on(progress *p);
void progress_end(const progress *p);

#endif
