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

#include "egraph/base/table.h"
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
  N_KERNEL = sizeof kernel_schemas / sizeof kernel_schemas[0]
};

typedef struct entry {
  const rule_schema *schema;
  UT_hash_handle hh;
} entry;

struct rule_schemas {
  iso_arena arena; /* of the entries, too */
  entry *first;    /* by name */
  bool starved;    /* a look-up found no memory; see rule_schemas_starved */
};

/* ---- the table ---- */

iso_code rule_schemas_new(rule_schemas **out, iso_error *err) {
  rule_schemas *s = calloc(1, sizeof *s);
  if (s == NULL) return rule_schema_no_memory(err);
  *out = s;
  return ISO_OK;
}

void rule_schemas_free(rule_schemas *s) {
  if (s == NULL) return;
  HASH_CLEAR(hh, s->first);
  iso_arena_fini(&s->arena);
  free(s);
}

static entry *find(const rule_schemas *s, const char *name) {
  entry *e;
  HASH_FIND_STR(s->first, name, e);
  return e;
}

/* In place of one of the same name, if there is one. */
static bool insert(rule_schemas *s, const rule_schema *schema) {
  entry *e = find(s, schema->name);
  if (e) return e->schema = schema, true;
  e = iso_arena_alloc(&s->arena, sizeof *e);
  if (!e) return false;
  *e = (entry){.schema = schema};
  HASH_ADD_KEYPTR(hh, s->first, schema->name, strlen(schema->name), e);
  return e->hh.tbl != NULL;
}

iso_code rule_schemas_add(rule_schemas *s, const char *text, iso_error *err) {
  rule_schema *schema;
  const iso_code code = rule_parse_schema(&s->arena, text, &schema, err);
  if (code != ISO_OK) return code;
  return insert(s, schema) ? ISO_OK : rule_schema_no_memory(err);
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
  const entry *e = find(s, name);
  *out = e ? e->schema : NULL;
  if (*out != NULL) return true;
  const char *text = built_in(name);
  if (text == NULL) return true;
  rule_schema *schema;
  /* The built-in texts parse (a test reads them all), so that only memory can be missing here. */
  if (rule_parse_schema(&s->arena, text, &schema, NULL) != ISO_OK || !insert(s, schema))
    return false;
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

bool rule_arg_is_dim(const rule_arg *arg) {
  static const char *const names[] = {"dim",       "dims",   "dim0",       "dim1",  "dim2",
                                      "dimension", "axis",   "axis0",      "axis1", "start_dim",
                                      "end_dim",   "source", "destination"};
  if (arg->type != RULE_ARG_INT && arg->type != RULE_ARG_INTS) return false;
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(arg->name, names[i]) == 0) return true;
  return false;
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
  if (item == NULL) return rule_schema_no_memory(err);
  iso_code code = ISO_OK;
  bool same = !one;
  for (size_t i = 0; i < n && code == ISO_OK; i++) {
    const rule_term *given = one ? v : v->child[i];
    if (type == RULE_ARG_TENSOR) { /* no numbers here, but holes, as in index.Tensor */
      item[i] = given;
      if (given->kind != RULE_VAR && given->kind != RULE_OP && given->kind != RULE_NONE)
        code = misfit(arg, err);
    } else if (!single_value(a, type, given, &item[i])) code = misfit(arg, err);
    else if (item[i] == NULL) code = rule_schema_no_memory(err);
    if (code == ISO_OK && item[i] != given) same = false;
  }
  if (code == ISO_OK) {
    *out = same ? v : rule_list(a, item, n);
    if (*out == NULL) code = rule_schema_no_memory(err);
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
  return *out != NULL ? ISO_OK : rule_schema_no_memory(err);
}

iso_code rule_call(iso_arena *a, rule_schemas *s, const char *op, const rule_term *const *arg,
                   size_t n, const rule_term **out, iso_error *err) {
  const rule_schema *schema;
  if (!rule_schemas_get(s, op, &schema)) return rule_schema_no_memory(err);
  if (schema == NULL) return iso_fail(err, ISO_USAGE, "unknown operator %s", op);
  if (n > schema->n_args)
    return iso_fail(err, ISO_USAGE, "%s takes %zu arguments, not %zu", op, schema->n_args, n);
  const rule_term *full[RULE_MAX_ARGS];
  for (size_t i = 0; i < schema->n_args; i++) {
    const rule_arg *formal = &schema->arg[i];
    if (i >= n) {
      if (formal->deflt == NULL)
        return iso_fail(err, ISO_USAGE, "%s: argument %s is missing", op, formal->name);
      full[i] = formal->deflt;
      continue;
    }
    if (arg[i] == NULL) return rule_schema_no_memory(err);
    const iso_code code = rule_arg_value(a, formal, arg[i], &full[i], err);
    if (code == ISO_USAGE) return iso_prefix(err, "%s: ", op), ISO_USAGE;
    if (code != ISO_OK) return code;
  }
  /* Defaults belong to the table's arena, which may die before `a`. */
  for (size_t i = n; i < schema->n_args; i++)
    if ((full[i] = rule_term_copy(a, full[i])) == NULL) return rule_schema_no_memory(err);
  *out = rule_op(a, op, full, schema->n_args);
  return *out != NULL ? ISO_OK : rule_schema_no_memory(err);
}

/* ---- effects of a call besides its results ---- */

static bool is_zero(const rule_term *v) {
  return v->kind == RULE_FLOAT && !(v->u.f < 0 || v->u.f > 0);
}

static bool is_false(const rule_term *v) { return v->kind == RULE_BOOLEAN && v->u.i == 0; }

/* By the arguments' places: the schema is not known. */
static bool drops(const rule_operator *o, const rule_term *t) {
  if (!o->drops || o->drops + 1u >= t->n) return true;
  return !is_zero(t->child[o->drops]) && !is_false(t->child[o->drops + 1]);
}

bool rule_draws(rule_schemas *s, const rule_term *t) {
  if (t->kind != RULE_OP) return false;
  const rule_schema *schema = rule_schemas_find(s, t->u.s);
  const rule_operator *o = rule_operator_of(t->u.s);
  if (schema == NULL) return o->draws && drops(o, t);
  bool draws = schema->random;
  for (size_t i = 0; i < schema->n_args && i < t->n; i++) {
    const char *name = schema->arg[i].name;
    const rule_term *v = t->child[i];
    if ((strcmp(name, "train") == 0 || strcmp(name, "training") == 0) && is_false(v)) return false;
    if (strcmp(name, "p") == 0 && strstr(t->u.s, "dropout") && is_zero(v)) return false;
    if (strcmp(name, "dropout_p") == 0 && !is_zero(v)) draws = true;
  }
  return draws;
}

/* PyTorch's in-place operators are named with an underscore; in functional form they have one more
 * output. */
static bool in_place(const char *name, size_t n_outputs) {
  const size_t len = strcspn(name, ".");
  return n_outputs == 1 && len > 1 && name[len - 1] == '_' && name[len - 2] != '_';
}

bool rule_writes(rule_schemas *s, const rule_term *t, size_t n_outputs) {
  if (t->kind != RULE_OP || rule_is_getitem(t->u.s)) return false;
  const rule_schema *schema = rule_schemas_find(s, t->u.s);
  if (schema && schema->writes) return true;
  if (!rule_is_aten(t->u.s)) return false;
  const char *name = t->u.s + strlen("aten::"), *overload = strchr(name, '.');
  const rule_operator *o = rule_operator_of(t->u.s);
  if (in_place(name, n_outputs) || o->writes) return true;
  /* Of an operator that is known, an overload that is not: nearly all of these have a tensor to
   * write to for each result ("sort.values"). */
  return !schema && overload && (strstr(overload, "out") || (*o->name && !strchr(o->name, '.')));
}

static bool reads(const rule_term *t, int64_t node) {
  if (t->kind == RULE_VAR && t->u.i == node) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (reads(t->child[i], node)) return true;
  return false;
}

/* Whether something other than argument `at` of call `by` reads the memory that this writes;
 * unknown, and so true, unless that is a leaf. */
static bool is_shared(const rule_term *const *call, size_t n, const uint32_t *output,
                      size_t n_outputs, size_t by, uint32_t at) {
  const rule_term *t = call[by]->child[at];
  if (t->kind != RULE_VAR) return false;
  if (call[t->u.i]) return true;
  for (size_t i = 0; i < n_outputs; i++)
    if (output[i] == t->u.i) return true;
  for (size_t i = 0; i < n; i++)
    if (i != by && call[i] && reads(call[i], t->u.i)) return true;
  for (uint32_t k = 0; k < call[by]->n; k++)
    if (k != at && reads(call[by]->child[k], t->u.i)) return true;
  return false;
}

size_t rule_shared_write(const rule_term *const *call, size_t n, const uint32_t *output,
                         size_t n_outputs) {
  for (size_t i = 0; i < n; i++) {
    const rule_term *t = call[i];
    const rule_operator *o = t && t->kind == RULE_OP ? rule_operator_of(t->u.s) : NULL;
    if (!o || !o->statistics || o->statistics + 1u >= t->n) continue;
    if (o->training && (o->training >= t->n || is_false(t->child[o->training]))) continue;
    if (is_shared(call, n, output, n_outputs, i, o->statistics) ||
        is_shared(call, n, output, n_outputs, i, o->statistics + 1u))
      return i;
  }
  return SIZE_MAX;
}
