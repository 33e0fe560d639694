/* Private to relations*.c: a line of a relations file as it is read. */
#ifndef CLI_CONFIG_RELATIONS_INT_H
#define CLI_CONFIG_RELATIONS_INT_H

#include "cli/config/relations.h"
#include "egraph/base/rng.h"

enum { LEFT = 0, RIGHT = 1 };

/* The tensor of an expression. */
typedef struct relfile_tensor {
  const rule_term *term; /* over nodes of the right graph */
  cap_output what;
} relfile_tensor;

typedef struct relfile_reader {
  const char *at;    /* in the line */
  const char *where; /* FILE:LINE */
  cap_graph *graph[2];
  relations *out;
  iso_error *err;
  char subject;  /* of the line: 'o'utput, 'i'nput, 'l'eaf, 'r'ight */
  bool misfits;  /* lines about outputs that do not fit the shapes are no errors */
  bool inferred; /* the lines are a program's and no user's: they speak of outputs only */
  bool fold;     /* expressions may have arithmetic */
  int depth;
} relfile_reader;

#define RELFILE_WRONG(r, ...) relfile_wrong_at(r, iso_fail((r)->err, ISO_FORMAT, __VA_ARGS__))
/* A line that is well written, and does not fit the captures' shapes. */
#define RELFILE_MISFIT(r, ...) \
  relfile_wrong_at(r, iso_fail((r)->err, (r)->misfits ? ISO_RANGE : ISO_FORMAT, __VA_ARGS__))
iso_code relfile_wrong_at(relfile_reader *r, iso_code c);
iso_code relfile_nomem(relfile_reader *r);

/* Whether two shapes are one but for sizes 1. */
bool relfile_near(const rule_shape *a, const rule_shape *b);

/* ---- relations_expr.c ---- */
void relfile_blanks(relfile_reader *r);
bool relfile_take(relfile_reader *r, const char *token);
bool relfile_name_char(char c);
/* A name; in `quoted` whether it was in quotes, and so is no word of the language. */
iso_code relfile_name(relfile_reader *r, const char **out, bool *quoted);
iso_code relfile_expect(relfile_reader *r, const char *token);
/* The output of that name, -1: none. */
int64_t relfile_find_result(const cap_graph *g, const char *s);
iso_code relfile_find_leaf(relfile_reader *r, int side, const char *s, uint32_t *out);
/* A call of `op` with these leading arguments, whose result is of shape and dtype `what`. */
iso_code relfile_call(relfile_reader *r, const char *op, const rule_term *const *arg, size_t n,
                      const cap_output *what, relfile_tensor *out);
/* ---- relations.c ---- */
/* "#" outside quotes ends a line. */
void relfile_cut_comment(char *s);
/* ---- relations_values.c ---- */
/* A term over nodes of `g` whose values are given, in float64. Owns: the caller unrefs. Errors:
 * ISO_USAGE where one has none. */
ISO_MUST_USE iso_code relfile_value(const cap_graph *g, const rule_term *t, rule_tensor **value,
                                    const rule_oracle *oracle, rule_tensor **out, iso_error *err);
/* A change on the way to a value, to see how far the value moves. */
typedef struct relfile_change {
  double by;
  iso_rng *rng;     /* all that is computed is up or down by `by` times itself */
  uint32_t number;  /* or of the numbers that arithmetic computes with, in order of evaluation, */
  uint32_t numbers; /* this one is larger by so much; as many were met so far */
  rule_tensor *as;  /* numbers are as this tensor of one element holds them; NULL: as they stand */
} relfile_change;
ISO_MUST_USE iso_code relfile_changed(const cap_graph *g, const rule_term *t, rule_tensor **value,
                                      const rule_oracle *oracle, relfile_change *change,
                                      rule_tensor **out, iso_error *err);
/* Each element up or down, those of the same digits alike. Owns: the caller unrefs. */
ISO_MUST_USE iso_code relfile_disturb(const rule_tensor *v, relfile_change *to, rule_tensor **out,
                                      iso_error *err);
/* Each element `by` times as large. Owns: the caller unrefs. */
ISO_MUST_USE iso_code relfile_scaled(const rule_tensor *v, double by, rule_tensor **out,
                                     iso_error *err);
/* ---- relations_fold.c ---- */
/* The word that stands for an operator, NULL: none does. */
const char *relfile_arithmetic_word(const char *op);
/* Whether a word is one of arithmetic; and the rest of its term, after the bracket. */
bool relfile_is_arithmetic(const char *word);
iso_code relfile_arithmetic(relfile_reader *r, const char *word, relfile_tensor *out);

/* An expression over right outputs or leaves, as the line's subject says. */
iso_code relfile_expression(relfile_reader *r, relfile_tensor *out);

#endif
