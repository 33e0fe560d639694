/* Checking certificates: the chain from one capture's outputs to another's, replayed without any
 * search.
 *
 * A certificate (docs/certificate.md) is what `isomer compare --certificate` writes: terms over the
 * nodes of both captures, and steps that each make two terms equal. The checker keeps one
 * union-find over terms and accepts a step only if
 *
 *   leaf   both are leaves or layouts of leaves, and have one value, bit for bit;
 *   bound  an input of indices is clamped to a range that its captured values keep;
 *   value  both depend on nothing but constants, and have one value, to 2 ulp where tables were
 *          computed;
 *   mask   both are one call but for the least float16 number in a mask, which is read as minus
 *          infinity is;
 *   rule   the two terms literally are the rule's sides with its variables, sizes and attributes
 *          replaced as the step says, of the kinds and shapes and by the conditions that the rule
 *          asks for;
 *   same   both call one operator, with the same literals, and on terms that are equal by earlier
 *          steps.
 *
 * It accepts the certificate only if in the end every output has been joined with the one that it
 * is paired with, and has the same value on the captured inputs. It shares the readers of captures
 * and rules with the engine, and the oracle that runs operators and decides rules; nothing of its
 * e-graph, matching or merging.
 *
 * That a rule is true is shown in up to three ways, and the report says in which: z3 answers an
 * obligation that the prover's writer puts down for the rule (shared with the search: the writer);
 * both sides are evaluated at some sizes and numbers by code of check/ alone
 * (check/evaluate/evaluate.h; shared: the reader of rules), and a rule whose sides differ there is
 * refused whatever proved it; or it is only run again by the engine that found it.
 *
 * Example (tests/check/example.c has it as a program):
 *
 *     chk_report report;
 *     if (chk_check(path, left, right, schemas, NULL, &options, &report, &err) == ISO_OK)
 *       printf("%s\n", report.outcome == CHK_MALFORMED ? "no certificate" : "a certificate");
 *     chk_report_free(&report);
 */
#ifndef CHECK_CHECK_H
#define CHECK_CHECK_H

#include "capture/capture.h"
#include "rules/assumption.h"
#include "rules/rules.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the files that a certificate rests on ---- */

enum { CHK_DIGEST = 65 }; /* SHA-256 in hexadecimal, and a NUL */

typedef struct chk_file {
  const char *name; /* in the capture's folder; of an archive "archive", and "inputs.safetensors"
                       ... as a folder would have them */
  char digest[CHK_DIGEST];
} chk_file;

/* The files that a capture's meaning is in: the graph, the weights (those of a checkpoint in its
 * folder too), all input sets; not the trace. Of an archive: itself, and the `inputs` that were
 * given in place of its own. Of later calls (calls/calls.h) behind "call2/" and so on. Returns: in
 * `out` a list in `a`. Errors: ISO_IO with the file. */
ISO_MUST_USE iso_code chk_files(const cap_graph *g, const char *const *inputs, size_t n_inputs,
                                iso_arena *a, const chk_file **out, size_t *n, iso_error *err);

/* ---- checking ---- */

/* Seed of the samples on which rules are tested again. It is the checker's own, added to that of
 * `--seed`, and never read from a certificate. */
#define CHK_SEED UINT64_C(0x69736f6d65722d63)

typedef enum chk_outcome {
  CHK_HOLDS,
  CHK_REFUSED,   /* some step does not follow */
  CHK_MALFORMED, /* it is no certificate */
  CHK_UNPROVED   /* all steps follow, and a rule could not be shown again as strongly as the
                    certificate says */
} chk_outcome;

/* A parameter that is parameters of the other side, by a certificate of them. */
typedef struct chk_related {
  bool right; /* whose */
  const char *leaf;
  const rule_term *term; /* RULE_VAR i is name[i] of the other side */
  const char *const *name;
  size_t n_names;
} chk_related;

typedef struct chk_options {
  bool trust_rules;            /* take the rules' evidence as it is written */
  const cap_agreement *agreed; /* the input sets for both captures; NULL: those captured */
  const char *const *relation; /* lines of the certificate's that the graphs were changed by */
  size_t n_relations;
  bool pinned;                      /* parameters are constants */
  const struct roles_result *roles; /* how the right side's ranks became one; NULL: as they are */
  bool given_leaves;         /* somebody said which leaves belong together: names do not count */
  const char *const *inputs; /* with which archives were loaded (cap_options) */
  size_t n_inputs;
  uint64_t seed;              /* of values drawn here, beside the checker's own */
  bool unrun;                 /* nothing was run: parameters need no values (docs/static.md) */
  const chk_related *learned; /* of the pair that it was learned from: n_learned */
  size_t n_learned;
  /* For certificates of graphs that were not run: whether a proved rule holds for NaN and infinity,
   * too. */
  iso_code (*together)(void *ctx, const rule *r, bool *yes, iso_error *err);
  void *together_ctx;
} chk_options;

/* A rule that steps use, and how it was shown here. */
typedef enum chk_how {
  CHK_BY_TRUST,  /* not at all */
  CHK_BY_TESTS,  /* tested again, on the checker's own samples */
  CHK_BY_PROVER, /* proved again, by the prover that the comparison has: there is no proof object,
                    see `why` */
  CHK_BY_Z3      /* z3 answered its obligations, which were written for it here */
} chk_how;

typedef struct chk_shown {
  const char *rule;
  chk_how how;
  size_t n_obligations;
  bool at_steps; /* they are of the rule at the sizes of its steps: for all sizes there is none */
  bool defined_at_steps; /* at other sizes one side alone may be no number: nothing is said there */
  const char *why;       /* why there is none for all sizes; "" */
  size_t
      n_sizes; /* at which both sides, evaluated by check/evaluate/evaluate.h, are equal; 0: not */
  const char *not_evaluated; /* why they were not evaluated; "" */
  const char *steps;         /* "3, 17, 20" */
} chk_shown;

typedef struct chk_assumption {
  rule_assumption kind;
  const char *text;
} chk_assumption;

typedef struct chk_report {
  chk_outcome outcome;
  char reason[480];     /* unless it holds: which step, and why; a line */
  rule_status evidence; /* of the weakest rule that is used, PROVED where none is; CERTIFIED where
                           the certificate says so and z3 answered for each */
  size_t n_steps, n_rules, n_outputs;
  const chk_shown
      *shown; /* by rule that is used, in the order of first use: n_rules; NULL unless it holds */
  const char *const *relation; /* its lines on how outputs are put together: n_relations */
  size_t n_relations;
  size_t n_assumptions;
  const chk_assumption
      *assumption;          /* assumptions of the equality beside the rules, as found here */
  const cap_symbol *symbol; /* the left's, in the ranges for which the chain was replayed:
                               n_symbols; NULL: the captured sizes only */
  size_t n_symbols;
  const chk_related *related; /* parameters that its steps relate: n_related */
  size_t n_related;
  iso_arena arena; /* private */
} chk_report;

/* The certificate's lines about outputs, which say of which tensors each is put together, as in a
 * relations file (docs/relations.md). Whoever checks it changes the graphs by them first, and says
 * so in chk_options. Malformed files have none here; chk_check says why. Errors: ISO_NOMEM,
 * ISO_IO. */
ISO_MUST_USE iso_code chk_relation_lines(const char *path, iso_arena *a, const char *const **out,
                                         size_t *n, iso_error *err);
/* Whether the certificate is of captures whose parameters keep their values: whoever checks it then
 * makes constants of them first (cap_pin), and says so in chk_options. Errors: ISO_IO. */
ISO_MUST_USE iso_code chk_at_these_weights(const char *path, bool *out, iso_error *err);
/* How many ranks of the right capture it decides as one: whoever checks it then makes them one
 * first (roles_fold), and says so in chk_options. 0: none. Errors: ISO_IO. */
ISO_MUST_USE iso_code chk_roles(const char *path, size_t *out, iso_error *err);
/* Whether the certificate is of graphs that were not run: whoever checks it loads the captures
 * without weights, and says so in chk_options. Errors: ISO_IO. */
ISO_MUST_USE iso_code chk_static(const char *path, bool *out, iso_error *err);
/* Check the certificate at `path` against two captures. `oracle` runs operators and decides rules;
 * NULL: only the form is looked at, and whatever would have to be run is refused. Owns:
 * chk_report_free, also after an error. Errors: ISO_NOMEM; ISO_IO for a file that cannot be read;
 * ISO_TORCH, ISO_UNSUPPORTED where the library that runs operators is missing. */
ISO_MUST_USE iso_code chk_check(const char *path, const cap_graph *left, const cap_graph *right,
                                rule_schemas *schemas, const rule_oracle *oracle,
                                const chk_options *options, chk_report *out, iso_error *err);
void chk_report_free(chk_report *r);

#ifdef __cplusplus
}
#endif
#endif
