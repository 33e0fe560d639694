/* Schemas of operators: a static table of texts in PyTorch's notation, parsed one by one when they
 * are asked for.
 *
 * The table of PyTorch's operators is sorted by name, so that a new rule_schemas costs one
 * allocation and a look-up costs a binary search and, the first time, one parse. Parsed schemas
 * live in the arena until the end, also those that a later rule_schemas_add of the same name hides:
 * pointers handed out stay good. */
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "rules/operators.h"
#include "egraph/base/vec.h"
#include "rules/rules_int.h"

static const char *const torch_schemas[] = {
#define S(text) text,
#include "rules/schemas.def"
};
static const char *const kernel_schemas[] = {
#include "rules/kernels.def"
#undef S
};
enum {
  N_TORCH = sizeof torch_schemas / sizeof torch_schemas[0],
  N_KERNEL = sizeof kernel_schemas / sizeof kernel_schemas[0],
  MAX_ARGS = 128
};

struct rule_schemas {
  iso_arena arena;
  const rule_schema **slot; /* open addressing by name; NULL is free */
  size_t n_slots, n_used;   /* n_slots is 0 or a power of 2, at most 3/4 used */
  bool starved;             /* a look-up found no memory; see rule_schemas_starved */
};

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
static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

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
  return *out != NULL ? ISO_OK : no_memory(c->err);
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
  return *out != NULL ? ISO_OK : no_memory(c->err);
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
    return *out != NULL ? ISO_OK : no_memory(c->err);
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
  if (arg->name == NULL) return no_memory(c->err);
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
    if (v == NULL) return no_memory(c->err);
    if (arg->type != RULE_ARG_CONTEXT && v->kind == RULE_NONE) arg->optional = true;
    code = rule_arg_value(c->a, arg, v, &arg->deflt, c->err);
    if (code != ISO_OK) return iso_prefix(c->err, "schema of %s: ", c->op);
  }
  if (arg->type == RULE_ARG_CONTEXT) {
    arg->optional = true;
    arg->deflt = rule_none(c->a);
    if (arg->deflt == NULL) return no_memory(c->err);
  }
  return ISO_OK;
}

static iso_code parse_args(cursor *c, rule_schema *s) {
  rule_arg arg[MAX_ARGS];
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
    if (n == MAX_ARGS) return wrong(c, "too many arguments");
    arg[n] = (rule_arg){.kwarg_only = kwarg_only};
    const iso_code code = parse_arg(c, &arg[n]);
    if (code != ISO_OK) return code;
    for (size_t i = 0; i < n; i++)
      if (strcmp(arg[i].name, arg[n].name) == 0) return wrong(c, "two arguments of one name");
    if (arg[n].written) s->writes = true;
    n++;
  }
  rule_arg *copy = iso_arena_alloc(c->a, n * sizeof *copy);
  if (copy == NULL) return no_memory(c->err);
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

/* Whether an operator may draw random numbers, by its name without namespace and overload. */
static bool is_random(const char *name) {
  /* operator: prefixes of names, of which PyTorch adds some with each release */
  static const char *const draws[] = {"alpha_dropout",
                                      "bernoulli",
                                      "binomial",
                                      "cauchy",
                                      "dropout",
                                      "exponential",
                                      "feature_alpha_dropout",
                                      "feature_dropout",
                                      "geometric",
                                      "log_normal",
                                      "multinomial",
                                      "native_dropout",
                                      "normal",
                                      "normal_functional",
                                      "poisson",
                                      "rand",
                                      "rand_like",
                                      "randint",
                                      "randint_like",
                                      "randn",
                                      "randn_like",
                                      "random",
                                      "randperm",
                                      "rrelu",
                                      "rrelu_with_noise_functional",
                                      "uniform"};
  if (!rule_is_aten(name)) return false;
  name += 6;
  const size_t n = strcspn(name, ".");
  for (size_t i = 0; i < sizeof draws / sizeof draws[0]; i++)
    if (strlen(draws[i]) == n && strncmp(draws[i], name, n) == 0) return true;
  return false;
}

static iso_code parse_schema(iso_arena *a, const char *text, rule_schema **out, iso_error *err) {
  cursor c = {.p = text, .a = a, .err = err, .op = ""};
  skip_space(&c);
  const size_t n = strcspn(c.p, "( \t\n");
  if (n == 0 || c.p[n] != '(') return iso_fail(err, ISO_FORMAT, "\"%.60s\" is no schema", text);
  rule_schema *s = iso_arena_alloc(a, sizeof *s);
  if (s == NULL || (s->name = iso_arena_strndup(a, c.p, n)) == NULL) return no_memory(err);
  c.op = s->name;
  c.p += n;
  s->random = is_random(s->name);
  iso_code code = parse_args(&c, s);
  if (code == ISO_OK) code = parse_returns(&c, s);
  if (code == ISO_OK) *out = s;
  return code;
}

/* ---- the table ---- */

iso_code rule_schemas_new(rule_schemas **out, iso_error *err) {
  rule_schemas *s = calloc(1, sizeof *s);
  if (s == NULL) return no_memory(err);
  *out = s;
  return ISO_OK;
}

void rule_schemas_free(rule_schemas *s) {
  if (s == NULL) return;
  iso_arena_fini(&s->arena);
  free(s->slot);
  free(s);
}

/* Where the schema of that name is, or would be. Requires: a free slot. */
static const rule_schema **slot_of(const rule_schema **slot, size_t n_slots, const char *name) {
  size_t i = (size_t)iso_hash(name, strlen(name), 0) & (n_slots - 1);
  while (slot[i] != NULL && strcmp(slot[i]->name, name) != 0) i = (i + 1) & (n_slots - 1);
  return &slot[i];
}

static bool insert(rule_schemas *s, const rule_schema *schema) {
  if (4 * (s->n_used + 1) > 3 * s->n_slots) {
    const size_t n = s->n_slots ? 2 * s->n_slots : 64;
    const rule_schema **slot = calloc(n, sizeof *slot);
    if (slot == NULL) return false;
    for (size_t i = 0; i < s->n_slots; i++)
      if (s->slot[i] != NULL) *slot_of(slot, n, s->slot[i]->name) = s->slot[i];
    free(s->slot);
    s->slot = slot;
    s->n_slots = n;
  }
  const rule_schema **at = slot_of(s->slot, s->n_slots, schema->name);
  if (*at == NULL) s->n_used++;
  *at = schema;
  return true;
}

iso_code rule_schemas_add(rule_schemas *s, const char *text, iso_error *err) {
  rule_schema *schema;
  const iso_code code = parse_schema(&s->arena, text, &schema, err);
  if (code != ISO_OK) return code;
  return insert(s, schema) ? ISO_OK : no_memory(err);
}

/* Compare a name with that at the head of a schema's text. */
static int compare_name(const char *name, const char *text) {
  while (*name != '\0' && *name == *text) {
    name++;
    text++;
  }
  const int a = (unsigned char)*name, b = *text == '(' ? 0 : (unsigned char)*text;
  return a - b;
}

static const char *built_in(const char *name) {
  size_t lo = 0, hi = N_TORCH;
  while (lo < hi) {
    const size_t mid = lo + (hi - lo) / 2;
    const int order = compare_name(name, torch_schemas[mid]);
    if (order == 0) return torch_schemas[mid];
    if (order < 0) hi = mid;
    else lo = mid + 1;
  }
  for (size_t i = 0; i < N_KERNEL; i++)
    if (compare_name(name, kernel_schemas[i]) == 0) return kernel_schemas[i];
  return NULL;
}

bool rule_schemas_get(rule_schemas *s, const char *name, const rule_schema **out) {
  *out = s->n_slots > 0 ? *slot_of(s->slot, s->n_slots, name) : NULL;
  if (*out != NULL) return true;
  const char *text = built_in(name);
  if (text == NULL) return true;
  rule_schema *schema;
  /* The built-in texts parse (a test reads them all), so that only memory can be missing here. */
  if (parse_schema(&s->arena, text, &schema, NULL) != ISO_OK || !insert(s, schema)) return false;
  *out = schema;
  return true;
}

const rule_schema *rule_schemas_find(rule_schemas *s, const char *name) {
  const rule_schema *schema;
  if (rule_schemas_get(s, name, &schema)) return schema;
  s->starved = true;
  return NULL;
}

bool rule_schemas_starved(rule_schemas *s) {
  const bool was = s->starved;
  s->starved = false;
  return was;
}

size_t rule_schema_outputs(const rule_schema *s) {
  if (s->n_returns == SIZE_MAX) return SIZE_MAX;
  size_t n = s->n_returns;
  for (size_t i = 0; i < s->n_args; i++) n += s->arg[i].written;
  return n;
}

/* ---- values of arguments ---- */

static bool is_integral(rule_kind k) { return k == RULE_INT || k == RULE_NAME || k == RULE_EXPR; }

rule_arg_type rule_arg_element(rule_arg_type t) {
  switch (t) {
  case RULE_ARG_TENSORS: return RULE_ARG_TENSOR;
  case RULE_ARG_INTS: return RULE_ARG_INT;
  case RULE_ARG_FLOATS: return RULE_ARG_FLOAT;
  case RULE_ARG_BOOLS: return RULE_ARG_BOOL;
  case RULE_ARG_SCALARS: return RULE_ARG_SCALAR;
  default: return t;
  }
}

/* One value that is no list. Returns: false where it cannot stand there; *out is NULL where memory
 * ran out. */
static bool single_value(iso_arena *a, rule_arg_type type, const rule_term *v,
                         const rule_term **out) {
  *out = v;
  switch (type) {
  case RULE_ARG_TENSOR: /* numbers too, as PyTorch wraps them */
    return v->kind == RULE_VAR || v->kind == RULE_OP || is_integral(v->kind) ||
           v->kind == RULE_FLOAT || v->kind == RULE_BOOLEAN;
  case RULE_ARG_INT: return is_integral(v->kind);
  case RULE_ARG_FLOAT:
    if (v->kind == RULE_INT) *out = rule_float(a, (double)v->u.i);
    return is_integral(v->kind) || v->kind == RULE_FLOAT;
  case RULE_ARG_BOOL:
    if (v->kind == RULE_INT && (v->u.i == 0 || v->u.i == 1)) *out = rule_bool(a, v->u.i == 1);
    else return v->kind == RULE_BOOLEAN;
    return true;
  case RULE_ARG_SCALAR:
    return is_integral(v->kind) || v->kind == RULE_FLOAT || v->kind == RULE_BOOLEAN;
  case RULE_ARG_STRING: return v->kind == RULE_STRING;
  case RULE_ARG_DTYPE: {
    rule_dtype d;
    if (v->kind == RULE_NAME && rule_dtype_find(v->u.s, &d)) *out = rule_dtype_term(a, d);
    else return v->kind == RULE_DTYPE;
    return true;
  }
  default: return false;
  }
}

static iso_code misfit(const rule_arg *arg, iso_error *err) {
  static const char *const what[] = {
      [RULE_ARG_TENSOR] = "a tensor",    [RULE_ARG_TENSORS] = "a list of tensors",
      [RULE_ARG_INT] = "an integer",     [RULE_ARG_INTS] = "a list of integers",
      [RULE_ARG_FLOAT] = "a number",     [RULE_ARG_FLOATS] = "a list of numbers",
      [RULE_ARG_BOOL] = "true or false", [RULE_ARG_BOOLS] = "a list of true or false",
      [RULE_ARG_SCALAR] = "a number",    [RULE_ARG_SCALARS] = "a list of numbers",
      [RULE_ARG_STRING] = "a string",    [RULE_ARG_DTYPE] = "a dtype",
      [RULE_ARG_CONTEXT] = "a literal"};
  return iso_fail(err, ISO_USAGE, "argument %s takes %s%s", arg->name, what[arg->type],
                  arg->optional ? " or none" : "");
}

static iso_code list_value(iso_arena *a, const rule_arg *arg, const rule_term *v,
                           const rule_term **out, iso_error *err) {
  const rule_arg_type type = rule_arg_element(arg->type);
  const bool one = v->kind != RULE_LIST; /* to be repeated */
  /* A lone name may be an attribute that is a list. */
  if (one && v->kind == RULE_NAME && arg->type != RULE_ARG_TENSORS) return *out = v, ISO_OK;
  if (one && (arg->list_size == 0 || type == RULE_ARG_TENSOR)) return misfit(arg, err);
  const size_t n = one ? (size_t)arg->list_size : v->n;
  const rule_term **item = malloc((n + 1) * sizeof(const rule_term *));
  if (item == NULL) return no_memory(err);
  iso_code code = ISO_OK;
  bool same = !one;
  for (size_t i = 0; i < n && code == ISO_OK; i++) {
    const rule_term *given = one ? v : v->child[i];
    if (type == RULE_ARG_TENSOR) { /* no numbers here, but holes, as in index.Tensor */
      item[i] = given;
      if (given->kind != RULE_VAR && given->kind != RULE_OP && given->kind != RULE_NONE)
        code = misfit(arg, err);
    } else if (!single_value(a, type, given, &item[i])) code = misfit(arg, err);
    else if (item[i] == NULL) code = no_memory(err);
    if (code == ISO_OK && item[i] != given) same = false;
  }
  if (code == ISO_OK) {
    *out = same ? v : rule_list(a, item, n);
    if (*out == NULL) code = no_memory(err);
  }
  free(item);
  return code;
}

iso_code rule_arg_value(iso_arena *a, const rule_arg *arg, const rule_term *v,
                        const rule_term **out, iso_error *err) {
  if (arg->type == RULE_ARG_CONTEXT) {
    if (v->kind == RULE_VAR || v->kind == RULE_OP || v->kind == RULE_LIST) return misfit(arg, err);
    *out = v->kind == RULE_NONE ? v : rule_none(a);
  } else if (v->kind == RULE_NONE) {
    if (!arg->optional) return misfit(arg, err);
    *out = v;
  } else if (rule_arg_element(arg->type) != arg->type) {
    return list_value(a, arg, v, out, err);
  } else if (!single_value(a, arg->type, v, out)) {
    return misfit(arg, err);
  }
  return *out != NULL ? ISO_OK : no_memory(err);
}

iso_code rule_call(iso_arena *a, rule_schemas *s, const char *op, const rule_term *const *arg,
                   size_t n, const rule_term **out, iso_error *err) {
  const rule_schema *schema;
  if (!rule_schemas_get(s, op, &schema)) return no_memory(err);
  if (schema == NULL) return iso_fail(err, ISO_USAGE, "unknown operator %s", op);
  if (n > schema->n_args)
    return iso_fail(err, ISO_USAGE, "%s takes %zu arguments, not %zu", op, schema->n_args, n);
  const rule_term *full[MAX_ARGS];
  for (size_t i = 0; i < schema->n_args; i++) {
    const rule_arg *formal = &schema->arg[i];
    if (i >= n) {
      if (formal->deflt == NULL)
        return iso_fail(err, ISO_USAGE, "%s: argument %s is missing", op, formal->name);
      full[i] = formal->deflt;
      continue;
    }
    if (arg[i] == NULL) return no_memory(err);
    const iso_code code = rule_arg_value(a, formal, arg[i], &full[i], err);
    if (code == ISO_USAGE) return iso_prefix(err, "%s: ", op), ISO_USAGE;
    if (code != ISO_OK) return code;
  }
  /* Defaults belong to the table's arena, which may die before `a`. */
  for (size_t i = n; i < schema->n_args; i++)
    if ((full[i] = rule_term_copy(a, full[i])) == NULL) return no_memory(err);
  *out = rule_op(a, op, full, schema->n_args);
  return *out != NULL ? ISO_OK : no_memory(err);
}

bool rule_draws(rule_schemas *s, const rule_term *t) {
  const rule_schema *schema = t->kind == RULE_OP ? rule_schemas_find(s, t->u.s) : NULL;
  if (schema == NULL) return false;
  bool draws = schema->random;
  for (size_t i = 0; i < schema->n_args && i < t->n; i++) {
    const char *name = schema->arg[i].name;
    const rule_term *v = t->child[i];
    if ((strcmp(name, "train") == 0 || strcmp(name, "training") == 0) && v->kind == RULE_BOOLEAN &&
        v->u.i == 0)
      return false;
    if (strcmp(name, "p") == 0 && strstr(t->u.s, "dropout") && v->kind == RULE_FLOAT &&
        !(v->u.f < 0 || v->u.f > 0))
      return false;
    if (strcmp(name, "dropout_p") == 0 && !(v->kind == RULE_FLOAT && !(v->u.f < 0 || v->u.f > 0)))
      draws = true;
  }
  return draws;
}
