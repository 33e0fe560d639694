/* Private to the exports of rules (library.h). */
#ifndef CLI_RULES_EXPORT_H
#define CLI_RULES_EXPORT_H

#include "cli/rules/library.h"
#include "cli/rules/report.h"

void rules_comment_rule(FILE *f, const rule *r,
                        const char *mark); /* the rule's text after `mark` */
void rules_comment_rests(FILE *f, const rule *r, const char *mark); /* what its proof rests on */
void rules_comment_refused(FILE *f, const rule_set *set, const char *const *reason,
                           const char *mark);

/* One side of a rule as a pattern: how the names that the pattern, the shapes of its variables and
 * the conditions determine get their values, one after the other, and the conditions that must then
 * hold. Literals in the pattern that are not fixed are fresh names. */
typedef struct rules_step {
  const char *name;       /* gets the value of `value`; NULL: the condition `value` has to hold */
  const rule_term *value; /* over names that have values, and (dim x k) as the RULE_EXPR "dim" of a
                             RULE_VAR and a RULE_INT */
} rules_step;

typedef struct rules_plan {
  const rule *r;
  const rule_term *pattern, *other; /* attributes of the pattern are literals or RULE_NAMEs */
  const char **real;                /* the names that stand for reals */
  size_t n_real;
  rules_step *step;
  size_t n_steps, cap_steps, n_bound, cap_bound;
  const char **bound; /* names with values: first the pattern's own */
  size_t n_pattern;   /* how many the pattern binds itself */
  iso_arena arena;
} rules_plan;

/* Returns: in `no` NULL, or why the rule cannot be used that way (static). Owns: rules_plan_free,
 * always. */
ISO_MUST_USE iso_code rules_plan_make(const rule *r, bool backward, rules_plan *out,
                                      const char **no);
void rules_plan_free(rules_plan *p);
bool rules_plan_is_real(const rules_plan *p,
                        const rule_term *t); /* an expression in which a real takes part */
bool rules_plan_has(const rules_plan *p, uint32_t var); /* the variable is in the pattern */

/* ---- code.c: a plan's steps and conditions, as code ---- */
typedef struct rules_code {
  FILE *f;
  const rules_plan *p;
  const char *check; /* after a call that may give up */
  const char *inf, *minus_inf, *nan;
  const char *let, *let_real;        /* name %zu is */
  const char *require, *require_end; /* around a condition */
} rules_code;

/* Why a target cannot express a plan; NULL: it can. */
typedef const char *rules_code_way(const rules_plan *p);
/* NULL where some direction has a plan in which `way` finds nothing wrong; else why not. */
const char *rules_code_refuse(const rule *r, rules_code_way *way);
/* The plan of one direction, where it has one in which `way` finds nothing wrong: in `fits`;
 * elsewhere a comment in `f` says why not. Returns: false without memory. Owns: rules_plan_free,
 * always. */
bool rules_code_direction(FILE *f, const rule *r, bool backward, rules_code_way *way, rules_plan *p,
                          bool *fits);
/* Name k of the plan is n<k> in code. */
size_t rules_code_index(const rules_plan *p, const char *name);
bool rules_code_is_list(const rules_plan *p,
                        const char *name); /* an attribute that is a list of integers */
void rules_code_number(const rules_code *o, const rule_term *t, bool as_real);
/* Writes the names that the plan computes, and the conditions that must hold, a line each. */
void rules_code_steps(const rules_code *o);

/* smtlib.c: rules that are not proved go to `refused`. */
iso_code rules_smtlib(FILE *f, const rule_set *set, json_t *refused, iso_error *err);
/* egg.c */
const char *rules_egg_refuse(const rule *r);
bool rules_egg(FILE *f, const rule_set *set, const char *const *reason);
/* pdll.c */
const char *rules_pdll_refuse(const rule *r);
bool rules_pdll(FILE *f, const rule_set *set, const char *const *reason);

/* egglog.c */
const char *rules_egglog_refuse(const rule *r);
bool rules_egglog(FILE *f, const rule_set *set, const char *const *reason);

#endif
