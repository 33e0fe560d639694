/* Private to rules/: a rule file under way. parse.c reads its s-expressions and rules,
 * parse_terms.c the terms and expressions in them. Every form knows its line, which error messages
 * name. */
#ifndef RULES_PARSE_INT_H
#define RULES_PARSE_INT_H

#include "rules/rules_int.h"

enum { MAX_DEPTH = 200, MAX_NAMES = 1024, MAX_FORMS = 32768 };

/* One atom, string or list, with the line where it starts. */
typedef struct form {
  enum { ATOM, STRING, LIST } kind;
  size_t line;
  const char *text;          /* ATOM, STRING */
  size_t n;                  /* LIST: items */
  struct form *first, *next; /* LIST: its items; the list that this is in */
} form;

typedef struct name_entry {
  const char *name;
  char kind; /* 's' size, or an attribute's 'i', 'f', 'l' */
} name_entry;

typedef struct parser {
  const char *p, *end, *file;
  size_t line;
  iso_arena a;      /* the current form and the rule it becomes */
  size_t n_forms;   /* in the current one */
  const char *rule; /* its name, once it was read */
  rule_schemas *schemas;
  iso_error *err;
  rule_variable *var; /* in the arena */
  name_entry *name;   /* sizes and declared attributes */
  uint32_t n_vars, n_names;
} parser;

/* The context of an expression decides which operators it may have. */
typedef enum place { IN_SIZE, IN_ATTRIBUTE, IN_CONDITION } place;

iso_code rule_bad(parser *p, size_t line, const char *fmt, ...);
iso_code rule_no_memory(parser *p);
const char *rule_head_of(const form *f);
bool rule_numeric(const char *s, size_t n);
bool rule_valid_name(const form *f);
iso_code rule_number(parser *p, const form *f, const rule_term **out);
bool rule_literal_word(parser *p, const char *s, const rule_term **out);
const rule_variable *rule_find_var(const parser *p, const char *name);
const name_entry *rule_find_name(const parser *p, const char *name);
iso_code rule_expression(parser *p, const form *f, place where, bool logic, const rule_term **out);
iso_code rule_value(parser *p, const form *f, const rule_arg *arg, const rule_term **out);
iso_code rule_check_single(parser *p, size_t line, const rule_term *t);

#endif
