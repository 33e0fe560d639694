/* Terms and expressions of rule files: sizes, literals, calls of operators whose arguments are held
 * against the schema. */
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

/* ---- sizes and conditions ---- */

/* Operands of an operator in sizes and conditions. Returns: false when there is no operator of that
 * name. `logic`: its value is a truth value; `deep`: so are its operands. */
static bool expr_arity(const char *op, uint32_t *least, uint32_t *most, bool *logic, bool *deep) {
  static const struct {
    const char *op;
    uint32_t least, most;
    bool logic, deep;
  } known[] = {{"+", 2, UINT32_MAX, false, false}, {"-", 1, UINT32_MAX, false, false},
               {"*", 2, UINT32_MAX, false, false}, {"/", 2, 2, false, false},
               {"mod", 2, 2, false, false},        {"=", 2, 2, true, false},
               {"!=", 2, 2, true, false},          {"<", 2, 2, true, false},
               {"<=", 2, 2, true, false},          {">", 2, 2, true, false},
               {">=", 2, 2, true, false},          {"divides", 2, 2, true, false},
               {"in", 3, 3, true, false},          {"and", 1, UINT32_MAX, true, true},
               {"or", 1, UINT32_MAX, true, true},  {"not", 1, 1, true, true}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (strcmp(known[i].op, op) == 0) {
      *least = known[i].least;
      *most = known[i].most;
      *logic = known[i].logic;
      *deep = known[i].deep;
      return true;
    }
  return false;
}

static iso_code expression_atom(parser *p, const form *f, place where, const rule_term **out) {
  if (f->kind == ATOM && rule_numeric(f->text, strlen(f->text))) {
    const iso_code code = rule_number(p, f, out);
    if (code == ISO_OK && (*out)->kind == RULE_FLOAT && where != IN_CONDITION)
      return rule_bad(p, f->line, "%.40s is no integer", f->text);
    return code;
  }
  if (!rule_valid_name(f)) return rule_bad(p, f->line, "expected a number, a size or an attribute");
  if (rule_find_var(p, f->text) != NULL)
    return rule_bad(p, f->line, "%.60s is a tensor, not a number", f->text);
  *out = rule_name(&p->a, f->text);
  return *out != NULL ? ISO_OK : rule_no_memory(p);
}

iso_code rule_expression(parser *p, const form *f, place where, bool logic, const rule_term **out) {
  if (f->kind != LIST && !logic) return expression_atom(p, f, where, out);
  const char *op = rule_head_of(f);
  uint32_t least, most;
  bool is_logic, deep;
  if (!expr_arity(op, &least, &most, &is_logic, &deep) ||
      (where != IN_CONDITION && strpbrk(op, "+-*") == NULL))
    return rule_bad(p, f->line,
                    f->kind == LIST ? "unknown operation \"%.40s\"" : "expected a condition%.0s",
                    op);
  if (is_logic != logic)
    return rule_bad(p, f->line, "%s gives a %s", op, is_logic ? "truth value" : "number");
  const size_t n = f->n - 1;
  if (n < least || n > most)
    return rule_bad(p, f->line, "wrong number of operands for %s: %zu", op, n);
  const rule_term **child = iso_arena_alloc(&p->a, n * sizeof *child);
  if (child == NULL) return rule_no_memory(p);
  size_t i = 0;
  for (const form *item = f->first->next; item != NULL; item = item->next) {
    const iso_code code = rule_expression(p, item, where, deep, &child[i++]);
    if (code != ISO_OK) return code;
  }
  *out = rule_expr(&p->a, op, child, n);
  return *out != NULL ? ISO_OK : rule_no_memory(p);
}

/* ---- terms ---- */

static iso_code call(parser *p, const form *f, const rule_term **out);

static iso_code list_of(parser *p, const form *f, const rule_arg *arg, const rule_term **out) {
  const size_t n = f->n - 1;
  rule_arg element = *arg;
  element.type = rule_arg_element(arg->type);
  const rule_term **item = iso_arena_alloc(&p->a, n * sizeof *item);
  if (item == NULL) return rule_no_memory(p);
  size_t i = 0;
  for (const form *e = f->first->next; e != NULL; e = e->next) {
    const iso_code code = rule_value(p, e, &element, &item[i++]);
    if (code != ISO_OK) return code;
  }
  *out = rule_list(&p->a, item, n);
  return *out != NULL ? ISO_OK : rule_no_memory(p);
}

/* A bare name in an argument: a variable, a dtype where one is meant, a piece of context, a size or
 * an attribute. */
static iso_code name_value(parser *p, const form *f, const rule_arg *arg, const rule_term **out) {
  const rule_variable *v = rule_find_var(p, f->text);
  if (v != NULL) *out = rule_var(&p->a, (uint32_t)(v - p->var));
  else *out = rule_name(&p->a, f->text);
  const name_entry *known = v == NULL ? rule_find_name(p, f->text) : NULL;
  const bool list = rule_arg_element(arg->type) != arg->type;
  if (known != NULL &&
      ((known->kind == 'l' && !list) || (known->kind == 'f' && arg->type == RULE_ARG_INT)))
    return rule_bad(p, f->line, "attribute %.60s cannot be argument %s", known->name, arg->name);
  /* A name for a list is a list where it was declared one, or where a number cannot stand there. */
  if (*out != NULL && list && v == NULL &&
      (known != NULL ? known->kind != 'l' : arg->list_size > 0)) {
    if (arg->list_size == 0)
      return rule_bad(p, f->line, "argument %s takes a list, %.40s is a number", arg->name,
                      f->text);
    const rule_term **item = iso_arena_alloc(&p->a, (size_t)arg->list_size * sizeof *item);
    if (item == NULL) return rule_no_memory(p);
    for (int32_t i = 0; i < arg->list_size; i++) item[i] = *out;
    *out = rule_list(&p->a, item, (size_t)arg->list_size);
  }
  return *out != NULL ? ISO_OK : rule_no_memory(p);
}

/* The value given for argument `arg`, not yet fitted to its type. */
iso_code rule_value(parser *p, const form *f, const rule_arg *arg, const rule_term **out) {
  if (f->kind == STRING) {
    *out = rule_string(&p->a, f->text);
  } else if (f->kind == ATOM) {
    if (rule_numeric(f->text, strlen(f->text))) return rule_number(p, f, out);
    if (!rule_literal_word(p, f->text, out)) {
      if (!rule_valid_name(f)) return rule_bad(p, f->line, "unexpected \"%.40s\"", f->text);
      return name_value(p, f, arg, out);
    }
  } else {
    const char *op = rule_head_of(f);
    if (strcmp(op, "list") == 0) return list_of(p, f, arg, out);
    if (strcmp(op, "+") == 0 || strcmp(op, "-") == 0 || strcmp(op, "*") == 0)
      return rule_expression(p, f, IN_ATTRIBUTE, false, out);
    return call(p, f, out);
  }
  return *out != NULL ? ISO_OK : rule_no_memory(p);
}

static size_t outputs_of(parser *p, const rule_term *t) {
  const rule_schema *s = t->kind == RULE_OP ? rule_schemas_find(p->schemas, t->u.s) : NULL;
  return s != NULL ? rule_schema_outputs(s) : 1;
}

/* A tensor is one: of several outputs, getitem takes one. */
iso_code rule_check_single(parser *p, size_t line, const rule_term *t) {
  for (uint32_t i = 0; t->kind == RULE_LIST && i < t->n; i++) {
    const iso_code code = rule_check_single(p, line, t->child[i]);
    if (code != ISO_OK) return code;
  }
  if (t->kind == RULE_OP && outputs_of(p, t) != 1)
    return rule_bad(p, line, "%s has several outputs or none: getitem takes one", t->u.s);
  return ISO_OK;
}

static iso_code check_getitem(parser *p, size_t line, const rule_term *const *arg) {
  const size_t n = outputs_of(p, arg[0]);
  if (arg[0]->kind != RULE_OP || n == 1)
    return rule_bad(p, line, "getitem takes an operator with several outputs");
  if (arg[1]->kind != RULE_INT || arg[1]->u.i < 0 || (n != SIZE_MAX && (size_t)arg[1]->u.i >= n))
    return rule_bad(p, line, "getitem takes the number of an output");
  return ISO_OK;
}

static bool holds_tensor(const rule_term *t) {
  if (t->kind == RULE_VAR || t->kind == RULE_OP) return true;
  for (uint32_t i = 0; t->kind == RULE_LIST && i < t->n; i++)
    if (holds_tensor(t->child[i])) return true;
  return false;
}

/* A number may stand for a tensor beside another tensor (add x 1), and nowhere else: a name that
 * does is a mistake. */
static iso_code check_tensors(parser *p, size_t line, const rule_schema *s,
                              const rule_term *const *arg) {
  const rule_term *wrong = NULL;
  for (size_t i = 0; i < s->n_args; i++) {
    if (s->arg[i].type != RULE_ARG_TENSOR && s->arg[i].type != RULE_ARG_TENSORS) continue;
    if (holds_tensor(arg[i])) return ISO_OK;
    if (arg[i]->kind != RULE_NONE && arg[i]->kind != RULE_LIST && wrong == NULL) wrong = arg[i];
  }
  if (wrong == NULL) return ISO_OK;
  if (wrong->kind == RULE_NAME) return rule_bad(p, line, "undeclared variable %.60s", wrong->u.s);
  return rule_bad(p, line, "%s takes a tensor", s->name);
}

/* The index of the argument that `item` is for: by name behind a keyword, which `item` then moves
 * past. */
static iso_code formal_of(parser *p, const rule_schema *s, const form **item, size_t position,
                          bool *keyword, size_t *out) {
  const form *f = *item;
  if (f->kind == ATOM && f->text[0] == ':') {
    *keyword = true;
    size_t i = 0;
    while (i < s->n_args && strcmp(s->arg[i].name, f->text + 1) != 0) i++;
    if (i == s->n_args)
      return rule_bad(p, f->line, "%s has no argument %.60s", s->name, f->text + 1);
    if (f->next == NULL) return rule_bad(p, f->line, "no value behind %.60s", f->text);
    *item = f->next;
    *out = i;
    return ISO_OK;
  }
  if (*keyword) return rule_bad(p, f->line, "an argument by position behind one by name");
  if (position >= s->n_args || s->arg[position].kwarg_only)
    return rule_bad(p, f->line, "too many arguments for %s", s->name);
  *out = position;
  return ISO_OK;
}

static iso_code call_arg(parser *p, const rule_schema *s, const form *item, size_t k,
                         const rule_term **arg) {
  const rule_arg *formal = &s->arg[k];
  if (arg[k] != NULL)
    return rule_bad(p, item->line, "%s: argument %s is given twice", s->name, formal->name);
  const rule_term *v;
  iso_code code = rule_value(p, item, formal, &v);
  if (code != ISO_OK) return code;
  iso_error why;
  code = rule_arg_value(&p->a, formal, v, &arg[k], &why);
  if (code == ISO_NOMEM) return rule_no_memory(p);
  if (code != ISO_OK && item->kind == ATOM && v->kind == RULE_NAME)
    return rule_bad(p, item->line, "%s: %s; %.60s is not declared so", s->name, why.msg,
                    item->text);
  if (code != ISO_OK) return rule_bad(p, item->line, "%s: %s", s->name, why.msg);
  return rule_is_getitem(s->name) ? ISO_OK : rule_check_single(p, item->line, arg[k]);
}

/* An operator with its arguments, complete. */
static iso_code call(parser *p, const form *f, const rule_term **out) {
  const char *op = rule_head_of(f);
  const rule_schema *s;
  if (!rule_schemas_get(p->schemas, op, &s)) return rule_no_memory(p);
  if (s == NULL)
    return rule_bad(p, f->line, op[0] != '\0' ? "unknown operator %.80s" : "expected an operator%s",
                    op);
  const rule_term **arg = iso_arena_alloc(&p->a, s->n_args * sizeof *arg);
  if (arg == NULL) return rule_no_memory(p);
  bool keyword = false;
  size_t position = 0;
  for (const form *item = f->first->next; item != NULL; item = item->next) {
    size_t k = 0;
    iso_code code = formal_of(p, s, &item, position++, &keyword, &k);
    if (code == ISO_OK) code = call_arg(p, s, item, k, arg);
    if (code != ISO_OK) return code;
  }
  for (size_t i = 0; i < s->n_args; i++) {
    if (arg[i] != NULL) continue;
    if (s->arg[i].deflt == NULL)
      return rule_bad(p, f->line, "%s: argument %s is missing", op, s->arg[i].name);
    arg[i] = s->arg[i].deflt; /* the schemas outlive this rule, and sets copy */
  }
  iso_code code =
      rule_is_getitem(op) ? check_getitem(p, f->line, arg) : check_tensors(p, f->line, s, arg);
  if (code != ISO_OK) return code;
  *out = rule_op(&p->a, op, arg, s->n_args);
  return *out != NULL ? ISO_OK : rule_no_memory(p);
}
