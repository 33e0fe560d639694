/* The meaning of the rules of workload files: guards, conditions, appliers and analyses, by means
 * of egraph.h alone. */
#ifndef CLI_SATURATE_SATURATE_H
#define CLI_SATURATE_SATURATE_H

#include "egraph/egraph.h"
#include "egraph/workload.h"

typedef struct cli_sat_language cli_sat_language;

/* Errors: ISO_FORMAT for an analysis that is not known. */
ISO_MUST_USE iso_code cli_sat_language_new(const eg_workload *w, cli_sat_language **out,
                                           iso_error *err);
void cli_sat_language_free(cli_sat_language *l);
/* The analysis for eg_sat_new; its callbacks use `l`. */
eg_sat_analysis cli_sat_language_analysis(cli_sat_language *l);
/* Add the workload's rules. `l` serves one e-graph at a time, and stays alive as long as the rules.
 */
ISO_MUST_USE iso_code cli_sat_language_rules(cli_sat_language *l, eg_sat *s, eg_rules *r,
                                             iso_error *err);
/* An error that a callback could not report itself. */
ISO_MUST_USE iso_code cli_sat_language_error(const cli_sat_language *l, iso_error *err);

/* Terms extracted from a finished e-graph, as text and, where `json` is not NULL, as fields
 * of an object. */
typedef struct cli_sat_extraction {
  eg_sat *s;
  const eg_class *root;
  size_t n_roots;
  const double *cost; /* per row; NULL: 1 each */
  bool dag;           /* by DAG cost, within `work` steps; else by tree cost */
  size_t work;
  FILE *text, *json;
} cli_sat_extraction;
ISO_MUST_USE iso_code cli_sat_extract(const cli_sat_extraction *a, iso_error *err);
/* The same of a file in egraph-serialize JSON, `n` bytes of `text`; graph, roots and costs of `a`
 * are set meanwhile. */
ISO_MUST_USE iso_code cli_sat_import(const char *path, const char *text, size_t n,
                                     cli_sat_extraction *a, iso_error *err);

/* Prints for each start term the smallest equal term, and a checked proof that the two are
 * equal. */
typedef struct cli_sat_shown {
  eg_sat *s;
  const eg_rules *rules;
  const eg_class *root;
  size_t n_roots;
  FILE *f;
  bool extract, explain, dag;
  size_t work; /* for the best DAG */
} cli_sat_shown;
ISO_MUST_USE iso_code cli_sat_show(const cli_sat_shown *x, iso_error *err);

/* The page of --html: its head, each run, its end. */
typedef struct cli_sat_page_run {
  const char *scheduler, *stop;
  const eg_iteration *it; /* `n` of them, the start first */
  size_t n;
  const eg_rule_iteration *rule; /* of each iteration but the start, `n_rules` of them */
  const char *const *name;
  size_t n_rules;
} cli_sat_page_run;
void cli_sat_page_open(FILE *f, const char *title);
void cli_sat_page_run_put(FILE *f, const cli_sat_page_run *r);
void cli_sat_page_close(FILE *f);

/* ---- for saturate_*.c ---- */

enum { SAT_NUMBER = 1, SAT_BOOL = 2, SAT_SYMBOL = 4 };
typedef enum cli_sat_analysis {
  SAT_NONE,
  SAT_FOLD_MATH,
  SAT_FOLD_PROP,
  SAT_LAMBDA
} cli_sat_analysis;

typedef struct cli_sat_test cli_sat_test;
struct cli_sat_language {
  const eg_workload *w;
  cli_sat_analysis analysis;
  bool numbers, bools; /* which leaves are not symbols */
  unsigned char *kind; /* per class: which leaves it has, at `version` */
  size_t cap_kind;
  uint64_t version;
  const eg_sat *kind_of;
  cli_sat_test **test; /* per rule */
  size_t n_tests, cap_tests;
  const char *failed; /* a callback's error */
};

unsigned cli_sat_leaf_kind(const cli_sat_language *l, const char *name);
eg_sat_analysis cli_sat_fold_math(cli_sat_language *l);
eg_sat_analysis cli_sat_fold_prop(cli_sat_language *l);
eg_sat_analysis cli_sat_lambda(cli_sat_language *l);
bool cli_sat_math_value(const eg_sat *s, eg_class c, double *out); /* whether it is known */
bool cli_sat_lambda_is_const(const eg_sat *s, eg_class c);
bool cli_sat_lambda_is_free(const eg_sat *s, eg_class c, eg_class var);

#endif
