/* Private to synth/saturate/. */
#ifndef SYNTH_SATURATE_SATURATE_INT_H
#define SYNTH_SATURATE_SATURATE_INT_H

#include "synth/saturate/saturate.h"
#include "synth/search/substitution.h"

/* ---- types.c: kind, shape and dtype of a class of the copy ---- */

typedef enum sat_kind { SAT_LITERAL, SAT_LIST, SAT_TENSOR, SAT_MULTI } sat_kind;

/* Two types are equal exactly where they are one: they are kept in a table. */
typedef struct sat_type {
  sat_kind kind;
  const rule_term *literal; /* a literal, or a list of literals; else NULL */
  rule_dtype dtype;         /* of a tensor */
  rule_shape shape;
  size_t n; /* of a list its members, of an operator with several results these */
  const struct sat_type *const *of;
} sat_type;

/* Byte strings with a value each. */
typedef struct sat_table {
  struct sat_entry *at;
  size_t n, cap;
} sat_table;

typedef struct sat_types {
  state *s;
  iso_arena arena;
  sat_table types, calls; /* by content; by operator and types of the arguments */
  int64_t elements_left;  /* of tensors that are made to learn shapes */
  bool starved;           /* there was no memory */
} sat_types;

void sat_types_free(sat_types *x);
const sat_type *sat_literal(sat_types *x, const rule_term *t);
const sat_type *sat_tensor(sat_types *x, rule_dtype dtype, const rule_shape *shape);
const sat_type *sat_list(sat_types *x, const sat_type *const *of, size_t n);
const sat_type *sat_multi(sat_types *x, const sat_type *const *of, size_t n);
/* The result type of an operator for arguments of these types, all of them known. NULL: it could
 * not be run, or was too large to try. */
const sat_type *sat_result(sat_types *x, const char *op, const sat_type *const *arg, size_t n);

/* ---- grow.c: the copy ---- */

/* One way of one rule. Variable k of the pattern's text stands for bind[k]: a variable, a name or
 * an expression of the rule. */
typedef struct sat_rule {
  struct sat_run *run;
  const rule *r;
  size_t index;
  bool given; /* index is of s->known; else of s->rules.set */
  const rule_term *from, *to;
  const rule_term **bind;
  uint32_t n_bind;
} sat_rule;

/* A term of the copy: an operator over class ids, which are the terms that those were made for. */
typedef struct sat_term {
  eg_op op;
  uint32_t first, n; /* in kids */
} sat_term;

typedef struct sat_row { /* a member of a class of the joint e-graph */
  sat_term term;
  eg_class of;
} sat_row;

typedef struct sat_app { /* a rule applied: it joined two classes that were apart */
  const sat_rule *rule;
  uint32_t first; /* in kids: the classes of the pattern's variables */
} sat_app;

typedef struct sat_run {
  state *s;
  st_saturation *o;
  sat_types types;
  iso_arena arena, scratch;
  eg_sat *g;
  eg_rules *rules;
  const sat_type *pending; /* of the leaf that is being added */
  uint32_t *class_of;      /* by class of the joint e-graph: its class here, EG_NONE */
  eg_class (*goal)[2];     /* the goals' classes here */
  eg_class *joint;         /* by class id here, of those that stand for classes there: these */
  size_t n_joint, cap_joint;
  sat_term *term; /* by class id here: the term that it was made for */
  size_t n_terms, cap_terms;
  sat_row *row;
  size_t n_rows, cap_rows;
  sat_app *app;
  size_t n_apps, cap_apps;
  uint32_t *kids;
  size_t n_kids, cap_kids;
  size_t n_copied; /* e-nodes of the copy before rules */
  bool *there;     /* by symbol of the joint e-graph: an operator of the copy, or of rules' sides */
  const bool *refused[2]; /* by rule of s->rules.set, of s->known: left out */
  uint8_t *said;          /* by rule of s->known: whether it holds here, SAT_UNASKED at first */
  names *names;
  iso_code code; /* of a callback that cannot fail */
} sat_run;

const sat_type *sat_type_of(const eg_sat *g, eg_class c); /* NULL: it is not known */
/* A term over classes. */
iso_code sat_add_term(sat_run *x, const rule_term *t, const eg_class *var, eg_class *out,
                      iso_error *err);
/* The copy, grown until all goals met or a limit is reached. Owns: sat_free. */
iso_code sat_grow(sat_run *x, iso_error *err);
void sat_free(sat_run *x);
/* Whether goal `i` met. */
bool sat_met(const sat_run *x, size_t i);

/* ---- ways.c ---- */
enum { SAT_UNASKED, SAT_HOLDS, SAT_FAILS };
/* The rule, whose sides are `side` at numbers, at the shapes of the classes that its variables
 * stand for; in the comparison's memory. Returns: false where a variable is unbound, or without
 * memory. */
bool sat_instance(sat_run *x, const rule *r, const rule_term *const side[2],
                  const rule_shape *const *shape, rule *out);
/* The rules that can match, both ways. */
iso_code sat_add_rules(sat_run *x, iso_error *err);
/* Names of the rule bound as the pattern's variables say. Returns: false where its conditions do
 * not hold there, or something stays open. */
bool sat_bind(sat_run *x, const sat_rule *r, const eg_class *var, eg_class *of_var);

/* ---- replay.c ---- */
/* Repeats in the joint e-graph the rule applications that joined goals. Returns: in `refused` a
 * rule that does not hold where it was applied, NULL if there is none. */
iso_code sat_replay(sat_run *x, const sat_rule **refused, iso_error *err);

#endif
