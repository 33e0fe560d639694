/* The meaning of the rules of workload files: guards, conditions, appliers and analyses, by means
 * of egraph.h alone. */
#ifndef CLI_SATURATE_SATURATE_H
#define CLI_SATURATE_SATURATE_H

#include "egraph/egraph.h"
#include "egraph/workload.h"

typedef struct sat_language sat_language;

/* Errors: ISO_FORMAT for an analysis that is not known. */
ISO_MUST_USE iso_code sat_language_new(const eg_workload *w, sat_language **out, iso_error *err);
void sat_language_free(sat_language *l);
/* The analysis for eg_sat_new; its callbacks use `l`. */
eg_sat_analysis sat_language_analysis(sat_language *l);
/* Add the workload's rules. `l` serves one e-graph at a time, and stays alive as long as the rules.
 */
ISO_MUST_USE iso_code sat_language_rules(sat_language *l, eg_sat *s, eg_rules *r, iso_error *err);
/* An error that a callback could not report itself. */
ISO_MUST_USE iso_code sat_language_error(const sat_language *l, iso_error *err);

/* Terms extracted from a finished e-graph, as text and, where `json` is not NULL, as fields
 * of an object. */
typedef struct sat_extraction {
  eg_sat *s;
  const eg_class *root;
  size_t n_roots;
  const double *cost; /* per row; NULL: 1 each */
  bool dag;           /* by DAG cost, within `work` steps; else by tree cost */
  size_t work;
  FILE *text, *json;
} sat_extraction;
ISO_MUST_USE iso_code sat_extract(const sat_extraction *a, iso_error *err);
/* The same of a file in egraph-serialize JSON, `n` bytes of `text`; graph, roots and costs of `a`
 * are set meanwhile. */
ISO_MUST_USE iso_code sat_import(const char *path, const char *text, size_t n, sat_extraction *a,
                                 iso_error *err);

/* Prints for each start term the smallest equal term, and a checked proof that the two are
 * equal. */
typedef struct sat_shown {
  eg_sat *s;
  const eg_rules *rules;
  const eg_class *root;
  size_t n_roots;
  FILE *f;
  bool extract, explain, dag;
  size_t work; /* for the best DAG */
} sat_shown;
ISO_MUST_USE iso_code sat_show(const sat_shown *x, iso_error *err);

/* The page of --html: its head, each run, its end. */
typedef struct sat_page_run {
  const char *scheduler, *stop;
  const eg_iteration *it; /* `n` of them, the start first */
  size_t n;
  const eg_rule_iteration *rule; /* of each iteration but the start, `n_rules` of them */
  const char *const *name;
  size_t n_rules;
} sat_page_run;
void sat_page_open(FILE *f, const char *title);
void sat_page_run_put(FILE *f, const sat_page_run *r);
void sat_page_close(FILE *f);

/* ---- for saturate_*.c ---- */

enum { SAT_NUMBER = 1, SAT_BOOL = 2, SAT_SYMBOL = 4 };
typedef enum sat_analysis { SAT_NONE, SAT_FOLD_MATH, SAT_FOLD_PROP, SAT_LAMBDA } sat_analysis;

typedef struct sat_test sat_test;
struct sat_language {
  const eg_workload *w;
  sat_analysis analysis;
  bool numbers, bools; /* which leaves are not symbols */
  unsigned char *kind; /* per class: which leaves it has, at `version` */
  size_t cap_kind;
  uint64_t version;
  const eg_sat *kind_of;
  sat_test **test; /* per rule */
  size_t n_tests, cap_tests;
  const char *failed; /* a callback's error */
};

unsigned sat_leaf_kind(const sat_language *l, const char *name);
eg_sat_analysis sat_fold_math(sat_language *l);
eg_sat_analysis sat_fold_prop(sat_language *l);
eg_sat_analysis sat_lambda(sat_language *l);
bool sat_math_value(const eg_sat *s, eg_class c, double *out); /* whether it is known */
bool sat_lambda_is_const(const eg_sat *s, eg_class c);
bool sat_lambda_is_free(const eg_sat *s, eg_class c, eg_class var);

#endif
