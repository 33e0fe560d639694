/* The rule language, read: text to s-expressions, one top-level form at a time, then each form to a
 * rule.
 *
 * Forms are read first and understood second, because a side may stand before the variables it
 * uses. A form's memory goes before the next is read. Nesting is bounded while reading, so that
 * every recursion here and on terms is. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "rules/operators.h"
#include "rules/text/parse_int.h"

iso_code rule_bad(parser *p, size_t line, const char *fmt, ...) {
  char what[256];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  if (p->rule != NULL)
    return iso_fail(p->err, ISO_FORMAT, "%s:%zu: rule %.80s: %s", p->file, line, p->rule, what);
  return iso_fail(p->err, ISO_FORMAT, "%s:%zu: %s", p->file, line, what);
}
iso_code rule_no_memory(parser *p) { return iso_fail(p->err, ISO_NOMEM, "out of memory"); }

/* ---- s-expressions ---- */

static bool ends_atom(char c) { return isspace((unsigned char)c) || strchr("()\";", c) != NULL; }

static void skip_blank(parser *p) {
  bool comment = false;
  for (; p->p < p->end; p->p++) {
    const char c = *p->p;
    if (c == '\n') {
      p->line++;
      comment = false;
    } else if (c == ';') {
      comment = true;
    } else if (!comment && !isspace((unsigned char)c)) {
      return;
    }
  }
}

static int hex_digit(char c) {
  return c >= '0' && c <= '9'   ? c - '0'
         : c >= 'a' && c <= 'f' ? c - 'a' + 10
         : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                : -1;
}

/* The character behind a backslash; 0 where there is none such. */
static char escaped(parser *p) {
  const char c = *p->p++;
  switch (c) {
  case 'n': return '\n';
  case 't': return '\t';
  case 'r': return '\r';
  case '"':
  case '\\': return c;
  case 'x':
    if (p->end - p->p >= 2 && hex_digit(p->p[0]) >= 0 && hex_digit(p->p[1]) >= 0) {
      p->p += 2;
      return (char)(hex_digit(p->p[-2]) * 16 + hex_digit(p->p[-1]));
    }
    return '\0';
  default: return '\0';
  }
}

static iso_code read_string(parser *p, form *f) {
  const char *start = ++p->p;
  while (p->p < p->end && *p->p != '"') p->p += *p->p == '\\' && p->end - p->p > 1 ? 2 : 1;
  if (p->p >= p->end) return rule_bad(p, f->line, "unclosed string");
  const char *end = p->p;
  char *text = iso_arena_alloc(&p->a, (size_t)(end - start) + 1);
  if (text == NULL) return rule_no_memory(p);
  size_t n = 0;
  for (p->p = start; p->p < end;) {
    char c = *p->p++;
    if (c == '\n') p->line++;
    if (c == '\\' && (c = escaped(p)) == '\0')
      return rule_bad(p, p->line, "unknown escape in a string");
    text[n++] = c;
  }
  p->p = end + 1;
  f->kind = STRING;
  f->text = text;
  return ISO_OK;
}

static iso_code read_form(parser *p, int depth, form **out) {
  if (p->n_forms++ == MAX_FORMS)
    return rule_bad(p, p->line, "a rule of more than %d parts", MAX_FORMS);
  form *f = iso_arena_alloc(&p->a, sizeof *f);
  if (f == NULL) return rule_no_memory(p);
  f->line = p->line;
  *out = f;
  if (*p->p == '"') return read_string(p, f);
  if (*p->p != '(') {
    const char *start = p->p;
    while (p->p < p->end && !ends_atom(*p->p)) p->p++;
    if (p->p == start) return rule_bad(p, f->line, "unexpected )");
    f->text = iso_arena_strndup(&p->a, start, (size_t)(p->p - start));
    return f->text != NULL ? ISO_OK : rule_no_memory(p);
  }
  if (depth == MAX_DEPTH) return rule_bad(p, f->line, "nested deeper than %d", MAX_DEPTH);
  f->kind = LIST;
  p->p++;
  for (form **tail = &f->first;; tail = &(*tail)->next, f->n++) {
    skip_blank(p);
    if (p->p >= p->end) return rule_bad(p, f->line, "unclosed (");
    if (*p->p == ')') break;
    const iso_code code = read_form(p, depth + 1, tail);
    if (code != ISO_OK) return code;
  }
  p->p++;
  return ISO_OK;
}

static bool is_atom(const form *f, const char *text) {
  return f != NULL && f->kind == ATOM && strcmp(f->text, text) == 0;
}

/* The head of a list, where it is an atom; else "". */
const char *rule_head_of(const form *f) {
  return f->kind == LIST && f->first != NULL && f->first->kind == ATOM ? f->first->text : "";
}

/* ---- names and numbers ---- */

/* Whether an atom looks like a number: one that starts so must be one. */
bool rule_numeric(const char *s, size_t n) {
  const size_t sign = n > 0 && (s[0] == '+' || s[0] == '-');
  const size_t dot = n > sign && s[sign] == '.';
  return n > sign + dot && s[sign + dot] >= '0' && s[sign + dot] <= '9';
}

/* Whether `s` of `n` bytes can name a variable, size or attribute: it is no literal, keyword or
 * number. */
static bool is_name(const char *s, size_t n) {
  static const char *const reserved[] = {"true", "false", "none", "inf", "-inf",
                                         "+inf", "nan",   "_",    "...", "list"};
  if (n == 0 || s[0] == ':' || rule_numeric(s, n)) return false;
  for (size_t i = 0; i < sizeof reserved / sizeof reserved[0]; i++)
    if (strlen(reserved[i]) == n && strncmp(reserved[i], s, n) == 0) return false;
  for (size_t i = 0; i < n; i++)
    if (s[i] == '\0' || ends_atom(s[i])) return false;
  return true;
}

bool rule_valid_name(const form *f) { return f->kind == ATOM && is_name(f->text, strlen(f->text)); }

/* A number as an atom spells it. */
iso_code rule_number(parser *p, const form *f, const rule_term **out) {
  const char *s = f->text;
  char *end;
  errno = 0;
  if (s[strspn(s, "+-0123456789")] == '\0') {
    const long long v = strtoll(s, &end, 10);
    if (errno != 0) return rule_bad(p, f->line, "%.40s does not fit an integer of 64 bits", s);
    *out = rule_int(&p->a, v);
  } else {
    if (s[strspn(s, "+-.eE0123456789")] != '\0')
      return rule_bad(p, f->line, "\"%.40s\" is no number", s);
    const double v = strtod(s, &end);
    if (isinf(v)) return rule_bad(p, f->line, "%.40s is too large for a double", s);
    *out = rule_float(&p->a, v);
  }
  if (*end != '\0') return rule_bad(p, f->line, "\"%.40s\" is no number", s);
  return *out != NULL ? ISO_OK : rule_no_memory(p);
}

/* Literals that are words. Returns: false when it is none of them. */
bool rule_literal_word(parser *p, const char *s, const rule_term **out) {
  if (strcmp(s, "true") == 0 || strcmp(s, "false") == 0) *out = rule_bool(&p->a, s[0] == 't');
  else if (strcmp(s, "none") == 0) *out = rule_none(&p->a);
  else if (strcmp(s, "inf") == 0 || strcmp(s, "+inf") == 0)
    *out = rule_float(&p->a, (double)INFINITY);
  else if (strcmp(s, "-inf") == 0) *out = rule_float(&p->a, -(double)INFINITY);
  else if (strcmp(s, "nan") == 0) *out = rule_float(&p->a, (double)NAN);
  else return false;
  return true;
}

const rule_variable *rule_find_var(const parser *p, const char *name) {
  for (uint32_t i = 0; i < p->n_vars; i++)
    if (strcmp(p->var[i].name, name) == 0) return &p->var[i];
  return NULL;
}

const name_entry *rule_find_name(const parser *p, const char *name) {
  for (uint32_t i = 0; i < p->n_names; i++)
    if (strcmp(p->name[i].name, name) == 0) return &p->name[i];
  return NULL;
}

/* ---- clauses ---- */

/* Note the sizes that occur in a dimension. */
static iso_code note_sizes(parser *p, size_t line, const rule_term *t) {
  if (t->kind == RULE_NAME && rule_find_name(p, t->u.s) == NULL) {
    if (p->n_names == MAX_NAMES) return rule_bad(p, line, "more than %d names", MAX_NAMES);
    p->name[p->n_names++] = (name_entry){t->u.s, 's'};
  }
  for (uint32_t i = 0; i < t->n; i++) {
    const iso_code code = note_sizes(p, line, t->child[i]);
    if (code != ISO_OK) return code;
  }
  return ISO_OK;
}

static iso_code parse_shape(parser *p, const form *f, rule_variable *v) {
  if (is_atom(f, "_")) {
    v->any_shape = true;
    return ISO_OK;
  }
  if (f->kind != LIST) return rule_bad(p, f->line, "expected a shape, like (N K) or _");
  const form *item = f->first;
  if (is_atom(item, "...")) {
    v->leading = true;
    item = item->next;
  }
  const size_t n = f->n - v->leading;
  if (n > RULE_MAX_RANK) return rule_bad(p, f->line, "more than %d dimensions", RULE_MAX_RANK);
  const rule_term **dim = iso_arena_alloc(&p->a, n * sizeof *dim);
  if (dim == NULL) return rule_no_memory(p);
  for (; item != NULL; item = item->next) {
    const rule_term *d = NULL;
    iso_code code = ISO_OK;
    if (is_atom(item, "_")) d = rule_none(&p->a);
    else code = rule_expression(p, item, IN_SIZE, false, &d);
    if (code != ISO_OK) return code;
    if (d == NULL) return rule_no_memory(p);
    if (d->kind == RULE_INT && d->u.i < 0) return rule_bad(p, item->line, "negative size");
    dim[v->n_dims++] = d;
  }
  v->dim = dim;
  return ISO_OK;
}

/* (var NAME KIND SHAPE) */
static iso_code parse_var(parser *p, const form *f) {
  const form *name = f->first->next;
  if (f->n != 4) return rule_bad(p, f->line, "expected (var NAME KIND SHAPE)");
  const form *kind = name->next;
  if (!rule_valid_name(name)) return rule_bad(p, name->line, "expected a variable's name");
  rule_variable v = {.name = name->text};
  if (kind->kind != ATOM || !rule_variable_read_kind(&v, kind->text))
    return rule_bad(p, kind->line, "a variable's kind is f, i, i32, i16, i8, u8, b or c");
  if (rule_find_var(p, name->text) != NULL)
    return rule_bad(p, name->line, "variable %.60s is declared twice", name->text);
  if (p->n_vars == MAX_NAMES) return rule_bad(p, f->line, "more than %d variables", MAX_NAMES);
  const iso_code code = parse_shape(p, kind->next, &v);
  if (code == ISO_OK) p->var[p->n_vars++] = v;
  return code;
}

/* (attr NAME KIND) */
static iso_code parse_attr(parser *p, const form *f, rule_attribute *attr, uint32_t *n_attrs) {
  const form *name = f->first->next;
  if (f->n != 3) return rule_bad(p, f->line, "expected (attr NAME int|float|ints)");
  const form *kind = name->next;
  if (!rule_valid_name(name)) return rule_bad(p, name->line, "expected an attribute's name");
  const char k = is_atom(kind, "int")     ? 'i'
                 : is_atom(kind, "float") ? 'f'
                 : is_atom(kind, "ints")  ? 'l'
                                          : '\0';
  if (k == '\0') return rule_bad(p, kind->line, "an attribute is int, float or ints");
  if (rule_find_name(p, name->text) != NULL)
    return rule_bad(p, name->line, "%.60s is declared twice", name->text);
  if (p->n_names == MAX_NAMES) return rule_bad(p, f->line, "more than %d names", MAX_NAMES);
  p->name[p->n_names++] = (name_entry){name->text, k};
  attr[(*n_attrs)++] = (rule_attribute){name->text, k};
  return ISO_OK;
}

/* No name means two things. */
static iso_code check_names(parser *p, const form *f, const rule *r) {
  for (uint32_t i = 0; i < p->n_names; i++)
    if (rule_find_var(p, p->name[i].name) != NULL)
      return rule_bad(p, f->line, "%.60s is a variable and a size or attribute", p->name[i].name);
  for (uint32_t i = 0; i < r->n_vars; i++)
    for (uint32_t d = 0; d < r->var[i].n_dims; d++)
      if (r->var[i].dim[d]->kind == RULE_NAME) {
        const name_entry *e = rule_find_name(p, r->var[i].dim[d]->u.s);
        if (e != NULL && (e->kind == 'f' || e->kind == 'l'))
          return rule_bad(p, f->line, "attribute %.60s is no integer, and stands for a size",
                          e->name);
      }
  return ISO_OK;
}

/* Declarations first: sides may come before them. */
static iso_code parse_declarations(parser *p, const form *f, rule *r, rule_attribute *attr) {
  iso_code code = ISO_OK;
  for (const form *c = f->first->next->next; c != NULL && code == ISO_OK; c = c->next) {
    if (strcmp(rule_head_of(c), "var") == 0) code = parse_var(p, c);
    else if (strcmp(rule_head_of(c), "attr") == 0) code = parse_attr(p, c, attr, &r->n_attrs);
  }
  /* Sizes after the attributes: a size may be declared an integer attribute. */
  for (uint32_t i = 0; i < p->n_vars && code == ISO_OK; i++)
    for (uint32_t d = 0; d < p->var[i].n_dims && code == ISO_OK; d++)
      code = note_sizes(p, f->line, p->var[i].dim[d]);
  r->n_vars = p->n_vars;
  r->var = p->var;
  r->attr = attr;
  return code == ISO_OK ? check_names(p, f, r) : code;
}

/* (in x LOW HIGH), x an index tensor */
static iso_code parse_range(parser *p, const form *f) {
  const form *name = f->first->next;
  if (f->n != 4) return rule_bad(p, f->line, "expected (in NAME LOW HIGH)");
  const rule_variable *found = name->kind == ATOM ? rule_find_var(p, name->text) : NULL;
  if (found == NULL) return rule_bad(p, f->line, "the range of no variable");
  rule_variable *v = &p->var[found - p->var];
  if (v->kind != 'i') return rule_bad(p, f->line, "variable %.60s has no integer values", v->name);
  if (v->low != NULL || v->high != NULL)
    return rule_bad(p, f->line, "variable %.60s has two ranges", v->name);
  const form *low = name->next, *high = low->next;
  iso_code code = ISO_OK;
  if (!is_atom(low, "none")) code = rule_expression(p, low, IN_ATTRIBUTE, false, &v->low);
  if (code == ISO_OK && !is_atom(high, "none"))
    code = rule_expression(p, high, IN_ATTRIBUTE, false, &v->high);
  return code;
}

static bool is_range(const parser *p, const form *f) {
  return strcmp(rule_head_of(f), "in") == 0 && f->first->next != NULL &&
         f->first->next->kind == ATOM && rule_find_var(p, f->first->next->text) != NULL;
}

static iso_code parse_where(parser *p, const form *f, rule *r) {
  const rule_term **where = iso_arena_alloc(&p->a, f->n * sizeof *where);
  if (where == NULL) return rule_no_memory(p);
  for (const form *c = f->first->next; c != NULL; c = c->next) {
    const iso_code code = is_range(p, c)
                              ? parse_range(p, c)
                              : rule_expression(p, c, IN_CONDITION, true, &where[r->n_where++]);
    if (code != ISO_OK) return code;
  }
  r->where = where;
  return ISO_OK;
}

static iso_code parse_side(parser *p, const form *f, const rule_term **out) {
  if (f->n != 2) return rule_bad(p, f->line, "expected (%s TERM)", rule_head_of(f));
  const form *t = f->first->next;
  static const rule_arg tensor = {.name = "side", .type = RULE_ARG_TENSOR};
  const iso_code code = rule_value(p, t, &tensor, out);
  if (code != ISO_OK) return code;
  if ((*out)->kind == RULE_NAME)
    return rule_bad(p, t->line, "undeclared variable %.60s", (*out)->u.s);
  if ((*out)->kind != RULE_VAR && (*out)->kind != RULE_OP)
    return rule_bad(p, t->line, "a side is a tensor");
  return rule_check_single(p, t->line, *out);
}

static iso_code parse_evidence(parser *p, const form *f, rule *r) {
  const form *status = f->first->next;
  if (f->n < 2 || f->n > 3) return rule_bad(p, f->line, "expected (evidence STATUS \"SCOPE\")");
  int s = RULE_UNKNOWN;
  while (s <= RULE_PROVED && !is_atom(status, rule_status_name((rule_status)s))) s++;
  if (s > RULE_PROVED)
    return rule_bad(p, status->line, "evidence is unknown, refuted, assumed, tested or proved");
  r->claimed = (rule_status)s;
  const form *scope = status->next;
  if (scope == NULL) return ISO_OK;
  int k = RULE_THESE_SHAPES;
  while (k <= RULE_ALL_SHAPES &&
         (scope->kind != STRING || strcmp(scope->text, rule_scope_name((rule_scope)k)) != 0))
    k++;
  if (k > RULE_ALL_SHAPES)
    return rule_bad(p, scope->line,
                    "a scope is \"these shapes\", \"these ranks\" or \"all shapes\"");
  r->scope = (rule_scope)k;
  return ISO_OK;
}

static iso_code parse_float(parser *p, const form *f, rule *r) {
  const form *c = f->first->next;
  if (f->n != 2 || !(is_atom(c, "exact") || is_atom(c, "rounding") || is_atom(c, "unsafe")))
    return rule_bad(p, f->line, "expected (float exact|rounding|unsafe)");
  r->float_class = c->text;
  return ISO_OK;
}

static iso_code parse_relative(parser *p, const form *f, rule *r) {
  const char **op = iso_arena_alloc(&p->a, f->n * sizeof *op);
  if (op == NULL) return rule_no_memory(p);
  for (const form *c = f->first->next; c != NULL; c = c->next) {
    if (c->kind != ATOM) return rule_bad(p, c->line, "expected an operator's name");
    op[r->n_relative++] = c->text;
  }
  r->relative_to = op;
  return ISO_OK;
}

static iso_code parse_literals(parser *p, const form *f, rule *r) {
  if (f->n != 2 || !is_atom(f->first->next, "read"))
    return rule_bad(p, f->line, "expected (literals read)");
  r->reads_literals = true;
  return ISO_OK;
}

static iso_code parse_clause(parser *p, const form *f, rule *r, unsigned *seen) {
  static const char *const once[] = {"lhs",   "rhs",         "where",   "evidence",
                                     "float", "relative-to", "literals"};
  const char *head = rule_head_of(f);
  if (strcmp(head, "var") == 0 || strcmp(head, "attr") == 0) return ISO_OK;
  if (strcmp(head, "in") == 0) return parse_range(p, f);
  unsigned k = 0;
  while (k < 7 && strcmp(head, once[k]) != 0) k++;
  if (k == 7)
    return rule_bad(p, f->line, "unknown clause \"%.40s\"", f->kind == LIST ? head : f->text);
  if (*seen & 1u << k) return rule_bad(p, f->line, "second (%s)", head);
  *seen |= 1u << k;
  switch (k) {
  case 0: return parse_side(p, f, &r->lhs);
  case 1: return parse_side(p, f, &r->rhs);
  case 2: return parse_where(p, f, r);
  case 3: return parse_evidence(p, f, r);
  case 4: return parse_float(p, f, r);
  case 5: return parse_relative(p, f, r);
  default: return parse_literals(p, f, r);
  }
}

static iso_code parse_rule(parser *p, const form *f, rule *r) {
  if (strcmp(rule_head_of(f), "rule") != 0) return rule_bad(p, f->line, "expected (rule NAME ...)");
  const form *name = f->first->next;
  if (name == NULL || name->kind != ATOM) return rule_bad(p, f->line, "expected a rule's name");
  r->name = p->rule = name->text;
  /* The arrays need no more room than there are clauses, or bytes of sizes. */
  const size_t room = f->n < MAX_NAMES ? f->n : MAX_NAMES;
  p->n_vars = p->n_names = 0;
  p->var = iso_arena_alloc(&p->a, room * sizeof *p->var);
  p->name = iso_arena_alloc(&p->a, MAX_NAMES * sizeof *p->name);
  rule_attribute *attr = iso_arena_alloc(&p->a, room * sizeof *attr);
  if (p->var == NULL || p->name == NULL || attr == NULL) return rule_no_memory(p);
  unsigned seen = 0;
  iso_code code = parse_declarations(p, f, r, attr);
  for (const form *c = name->next; c != NULL && code == ISO_OK; c = c->next)
    code = parse_clause(p, c, r, &seen);
  if (code == ISO_OK && (seen & 3u) != 3u) return rule_bad(p, f->line, "lacks a side");
  return code;
}

static iso_code parse_rules(parser *p, bool all, rule_set *set) {
  for (;;) {
    skip_blank(p);
    if (p->p >= p->end) return ISO_OK;
    form *f;
    rule r = {0};
    p->n_forms = 0;
    iso_code code = read_form(p, 0, &f);
    if (code == ISO_OK) code = parse_rule(p, f, &r);
    if (code == ISO_OK)
      code = all ? rule_set_append(set, &r, p->err) : rule_set_add(set, &r, NULL, NULL, p->err);
    iso_arena_fini(&p->a);
    p->rule = NULL;
    if (code != ISO_OK) return code;
  }
}

iso_code rule_set_read(const char *text, size_t n, const char *file, bool all, rule_set **out,
                       iso_error *err) {
  if (n == SIZE_MAX) n = strlen(text);
  parser p = {.p = text, .end = text + n, .file = file, .line = 1, .err = err};
  rule_set *set = NULL;
  const char *nul = n > 0 ? memchr(text, '\0', n) : NULL;
  if (nul != NULL) {
    for (const char *c = text; c < nul; c++) p.line += *c == '\n';
    return rule_bad(&p, p.line, "a NUL byte in the text");
  }
  iso_code code = rule_set_new(&set, err);
  if (code == ISO_OK) code = rule_schemas_new(&p.schemas, err);
  if (code == ISO_OK) code = parse_rules(&p, all, set);
  rule_schemas_free(p.schemas);
  if (code == ISO_OK) *out = set;
  else rule_set_free(set);
  return code;
}

iso_code rule_set_parse(const char *text, size_t n, const char *file, rule_set **out,
                        iso_error *err) {
  return rule_set_read(text, n, file, false, out, err);
}
