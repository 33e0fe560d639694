/* Operator schemas as PyTorch prints them: types, names, defaults, aliases. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "egraph/base/hash.h"
#include "rules/operators.h"
#include "egraph/base/vec.h"
#include "rules/rules_int.h"

/* ---- the notation ---- */

typedef struct cursor {
  const char *p;
  iso_arena *a;
  iso_error *err;
  const char *op; /* for messages */
} cursor;

static iso_code wrong(cursor *c, const char *what) {
  return iso_fail(c->err, ISO_FORMAT, "schema of %s: %s at \"%.24s\"", c->op, what, c->p);
}
iso_code rule_schema_no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static void skip_space(cursor *c) {
  while (*c->p == ' ' || *c->p == '\t' || *c->p == '\n') c->p++;
}

/* Step over `text` if it is next. */
static bool eat(cursor *c, const char *text) {
  skip_space(c);
  const size_t n = strlen(text);
  if (strncmp(c->p, text, n) != 0) return false;
  c->p += n;
  return true;
}

static size_t word(cursor *c) {
  skip_space(c);
  size_t n = 0;
  while (isalnum((unsigned char)c->p[n]) || c->p[n] == '_') n++;
  return n;
}

/* "(a!)", "(a -> *)", "(b|a)" behind a Tensor. */
static iso_code parse_alias(cursor *c, bool *written) {
  if (*c->p != '(') return ISO_OK;
  const char *end = strchr(c->p, ')');
  if (end == NULL) return wrong(c, "unclosed alias set");
  if (memchr(c->p, '!', (size_t)(end - c->p)) != NULL) *written = true;
  c->p = end + 1;
  return ISO_OK;
}

typedef struct base_type {
  const char *name;
  rule_arg_type one, list; /* list is CONTEXT where there is none */
} base_type;

static const base_type base_types[] = {
    {"Tensor", RULE_ARG_TENSOR, RULE_ARG_TENSORS},
    {"int", RULE_ARG_INT, RULE_ARG_INTS},
    {"SymInt", RULE_ARG_INT, RULE_ARG_INTS},
    {"float", RULE_ARG_FLOAT, RULE_ARG_FLOATS},
    {"bool", RULE_ARG_BOOL, RULE_ARG_BOOLS},
    {"Scalar", RULE_ARG_SCALAR, RULE_ARG_SCALARS},
    {"str", RULE_ARG_STRING, RULE_ARG_CONTEXT},
    {"ScalarType", RULE_ARG_DTYPE, RULE_ARG_CONTEXT},
    {"Layout", RULE_ARG_CONTEXT, RULE_ARG_CONTEXT},
    {"Device", RULE_ARG_CONTEXT, RULE_ARG_CONTEXT},
    {"MemoryFormat", RULE_ARG_CONTEXT, RULE_ARG_CONTEXT},
    {"Generator", RULE_ARG_CONTEXT, RULE_ARG_CONTEXT},
};

/* A type: name, alias set, "?", "[]" or "[2]", "?" once more. */
static iso_code parse_type(cursor *c, rule_arg *arg) {
  const size_t n = word(c);
  const base_type *b = NULL;
  for (size_t i = 0; i < sizeof base_types / sizeof base_types[0]; i++)
    if (strlen(base_types[i].name) == n && strncmp(base_types[i].name, c->p, n) == 0)
      b = &base_types[i];
  if (b == NULL) return wrong(c, "unknown type");
  c->p += n;
  arg->type = b->one;
  iso_code code = parse_alias(c, &arg->written);
  if (code != ISO_OK) return code;
  bool optional = false;
  if (*c->p == '?') {
    optional = true;
    c->p++;
  }
  if (*c->p == '[') {
    if (b->list == RULE_ARG_CONTEXT) return wrong(c, "no lists of this type");
    optional = false; /* it was the elements' */
    arg->type = b->list;
    c->p++;
    while (isdigit((unsigned char)*c->p)) {
      if (arg->list_size > 1000) return wrong(c, "list size too large");
      arg->list_size = arg->list_size * 10 + (*c->p++ - '0');
    }
    if (*c->p++ != ']') return c->p--, wrong(c, "expected ]");
    code = parse_alias(c, &arg->written);
    if (code != ISO_OK) return code;
    if (*c->p == '?') {
      optional = true;
      c->p++;
    }
  }
  arg->optional = optional;
  return ISO_OK;
}

/* c10::ScalarType by number, as schemas print the default of a dtype; those that captures do not
 * know are missing. */
static bool dtype_of_number(int64_t n, rule_dtype *out) {
  static const struct {
    int64_t number;
    rule_dtype dtype;
  } known[] = {{0, RULE_U8},      {1, RULE_I8},       {2, RULE_I16},   {3, RULE_I32},
               {4, RULE_I64},     {5, RULE_F16},      {6, RULE_F32},   {7, RULE_F64},
               {9, RULE_C64},     {10, RULE_C128},    {11, RULE_BOOL}, {15, RULE_BF16},
               {23, RULE_F8E5M2}, {24, RULE_F8E4M3FN}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
    if (known[i].number == n) {
      *out = known[i].dtype;
      return true;
    }
  return false;
}

/* Default values by name: booleans, reductions, dtypes as native_functions.yaml calls them. */
static const rule_term *named_default(cursor *c, const char *s, size_t n) {
  static const struct {
    const char *name;
    int kind; /* rule_kind */
    int64_t value;
  } known[] = {{"None", RULE_NONE, 0},
               {"True", RULE_BOOLEAN, 1},
               {"False", RULE_BOOLEAN, 0},
               {"Mean", RULE_INT, 1},
               {"Sum", RULE_INT, 2},
               {"long", RULE_DTYPE, RULE_I64},
               {"int", RULE_DTYPE, RULE_I32},
               {"float", RULE_DTYPE, RULE_F32},
               {"double", RULE_DTYPE, RULE_F64},
               {"half", RULE_DTYPE, RULE_F16},
               {"bool", RULE_DTYPE, RULE_BOOL},
               {"contiguous_format", RULE_NONE, 0},
               {"preserve_format", RULE_NONE, 0},
               {"channels_last", RULE_NONE, 0},
               {"strided", RULE_NONE, 0},
               {"cpu", RULE_NONE, 0}};
  for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
    if (strlen(known[i].name) != n || strncmp(known[i].name, s, n) != 0) continue;
    switch (known[i].kind) {
    case RULE_NONE: return rule_none(c->a);
    case RULE_BOOLEAN: return rule_bool(c->a, known[i].value != 0);
    case RULE_INT: return rule_int(c->a, known[i].value);
    default: return rule_dtype_term(c->a, (rule_dtype)known[i].value);
    }
  }
  return NULL;
}

static iso_code parse_string(cursor *c, const rule_term **out) {
  const char quote = *c->p++;
  const char *end = strchr(c->p, quote);
  if (end == NULL) return c->p--, wrong(c, "unclosed string");
  const char *text = iso_arena_strndup(c->a, c->p, (size_t)(end - c->p));
  *out = text != NULL ? rule_string(c->a, text) : NULL;
  c->p = end + 1;
  return *out != NULL ? ISO_OK : rule_schema_no_memory(c->err);
}

static iso_code parse_number(cursor *c, const rule_term **out) {
  char *end;
  const size_t n = strspn(c->p, "+-0123456789");
  errno = 0;
  if (n > 0 && c->p[n] != '.' && c->p[n] != 'e') {
    const long long v = strtoll(c->p, &end, 10);
    *out = rule_int(c->a, v);
  } else {
    const double v = strtod(c->p, &end);
    *out = rule_float(c->a, v);
    errno = 0; /* a subnormal is fine */
  }
  if (end == c->p || errno != 0) return wrong(c, "malformed default");
  c->p = end;
  return *out != NULL ? ISO_OK : rule_schema_no_memory(c->err);
}

/* A default: a name, a number, a string, or a flat list of numbers and names. */
static iso_code parse_default(cursor *c, bool in_list, const rule_term **out) {
  skip_space(c);
  if (*c->p == '"' || *c->p == '\'') return parse_string(c, out);
  if (!in_list && eat(c, "[")) {
    const rule_term *item[32];
    size_t n = 0;
    while (!eat(c, "]")) {
      if (n > 0 && !eat(c, ",")) return wrong(c, "expected , or ]");
      if (n == sizeof item / sizeof item[0]) return wrong(c, "list too long");
      const iso_code code = parse_default(c, true, &item[n]);
      if (code != ISO_OK) return code;
      n++;
    }
    *out = rule_list(c->a, item, n);
    return *out != NULL ? ISO_OK : rule_schema_no_memory(c->err);
  }
  const size_t n = word(c);
  if (n > 0 && isalpha((unsigned char)*c->p) && strncmp(c->p, "inf", n) != 0 &&
      strncmp(c->p, "nan", n) != 0) {
    *out = named_default(c, c->p, n);
    if (*out == NULL) return wrong(c, "unknown default");
    c->p += n;
    return ISO_OK;
  }
  return parse_number(c, out);
}

static iso_code parse_arg(cursor *c, rule_arg *arg) {
  iso_code code = parse_type(c, arg);
  if (code != ISO_OK) return code;
  const size_t n = word(c);
  if (n == 0) return wrong(c, "expected an argument's name");
  arg->name = iso_arena_strndup(c->a, c->p, n);
  if (arg->name == NULL) return rule_schema_no_memory(c->err);
  c->p += n;
  if (arg->type == RULE_ARG_BOOL &&
      (strcmp(arg->name, "pin_memory") == 0 || strcmp(arg->name, "non_blocking") == 0))
    arg->type = RULE_ARG_CONTEXT;
  if (eat(c, "=")) {
    const rule_term *v;
    code = parse_default(c, false, &v);
    if (code != ISO_OK) return code;
    rule_dtype d;
    if (arg->type == RULE_ARG_DTYPE && v->kind == RULE_INT && dtype_of_number(v->u.i, &d))
      v = rule_dtype_term(c->a, d);
    if (v == NULL) return rule_schema_no_memory(c->err);
    if (arg->type != RULE_ARG_CONTEXT && v->kind == RULE_NONE) arg->optional = true;
    code = rule_arg_value(c->a, arg, v, &arg->deflt, c->err);
    if (code != ISO_OK) return iso_prefix(c->err, "schema of %s: ", c->op);
  }
  if (arg->type == RULE_ARG_CONTEXT) {
    arg->optional = true;
    arg->deflt = rule_none(c->a);
    if (arg->deflt == NULL) return rule_schema_no_memory(c->err);
  }
  return ISO_OK;
}

static iso_code parse_args(cursor *c, rule_schema *s) {
  rule_arg arg[RULE_MAX_ARGS];
  size_t n = 0;
  bool kwarg_only = false, first = true;
  if (!eat(c, "(")) return wrong(c, "expected (");
  while (!eat(c, ")")) {
    if (!first && !eat(c, ",")) return wrong(c, "expected , or )");
    first = false;
    if (eat(c, "*")) {
      if (kwarg_only) return wrong(c, "second *");
      kwarg_only = true;
      continue;
    }
    if (n == RULE_MAX_ARGS) return wrong(c, "too many arguments");
    arg[n] = (rule_arg){.kwarg_only = kwarg_only};
    const iso_code code = parse_arg(c, &arg[n]);
    if (code != ISO_OK) return code;
    for (size_t i = 0; i < n; i++)
      if (strcmp(arg[i].name, arg[n].name) == 0) return wrong(c, "two arguments of one name");
    if (arg[n].written) s->writes = true;
    n++;
  }
  rule_arg *copy = iso_arena_alloc(c->a, n * sizeof *copy);
  if (copy == NULL) return rule_schema_no_memory(c->err);
  memcpy(copy, arg, n * sizeof *copy);
  s->arg = copy;
  s->n_args = n;
  return ISO_OK;
}

static iso_code parse_returns(cursor *c, rule_schema *s) {
  if (!eat(c, "->")) return wrong(c, "expected ->");
  const bool several = eat(c, "(");
  bool list = false;
  while (!(several && eat(c, ")"))) {
    if (s->n_returns > 0 && !eat(c, ",")) return wrong(c, "expected , or )");
    rule_arg r = {0};
    const iso_code code = parse_type(c, &r);
    if (code != ISO_OK) return code;
    /* Fused attention returns counts behind its tensors; they keep their place. */
    if (r.type == RULE_ARG_TENSORS) list = true;
    else if (r.type != RULE_ARG_TENSOR && (r.type != RULE_ARG_INT || s->n_returns == 0))
      return wrong(c, "results are tensors");
    c->p += word(c);
    s->n_returns++;
    if (!several) break;
  }
  if (list && s->n_returns != 1) return wrong(c, "a list beside other results");
  if (list) s->n_returns = SIZE_MAX;
  skip_space(c);
  return *c->p == '\0' ? ISO_OK : wrong(c, "unexpected text");
}

iso_code rule_parse_schema(iso_arena *a, const char *text, rule_schema **out, iso_error *err) {
  cursor c = {.p = text, .a = a, .err = err, .op = ""};
  skip_space(&c);
  const size_t n = strcspn(c.p, "( \t\n");
  if (n == 0 || c.p[n] != '(') return iso_fail(err, ISO_FORMAT, "\"%.60s\" is no schema", text);
  rule_schema *s = iso_arena_alloc(a, sizeof *s);
  if (s == NULL || (s->name = iso_arena_strndup(a, c.p, n)) == NULL)
    return rule_schema_no_memory(err);
  c.op = s->name;
  c.p += n;
  s->random = rule_operator_of(s->name)->draws;
  iso_code code = parse_args(&c, s);
  if (code == ISO_OK) code = parse_returns(&c, s);
  if (code == ISO_OK) *out = s;
  return code;
}
