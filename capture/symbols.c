/* Symbols of a graph.json, their present values, and the sizes that are written with them. The JSON
 * is changed in place: where it says {"size": "2*T"}, or "2*T" in a shape, it then says a number,
 * so that all later readers see only numbers. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "egraph/base/vec.h"
#include "rules/operators.h"

enum { MAX_SYMBOLS = 64, MAX_DEPTH = 80 }; /* of values in values; lower.c refuses less */

/* ---- symbols ---- */

static iso_code integer_of(const json_t *v, const char *key, int64_t *out, iso_error *err) {
  const json_t *x = json_object_get(v, key);
  if (!json_is_integer(x)) return iso_fail(err, ISO_FORMAT, "\"%s\" is not an integer", key);
  *out = json_integer_value(x);
  return ISO_OK;
}

static iso_code outside(const cap_symbol *s, int64_t x, iso_error *err) {
  return iso_fail(err, ISO_RANGE,
                  "symbol %.60s: %" PRId64 " is not within %" PRId64 " and %" PRId64, s->name, x,
                  s->min, s->max);
}

static iso_code read_symbol(iso_arena *a, const json_t *v, cap_symbol *out, iso_error *err) {
  const char *name = json_string_value(json_object_get(v, "name"));
  const json_t *max = json_object_get(v, "max");
  if (name == NULL || *name == '\0' || cap_symbol_length(name) != strlen(name))
    return iso_fail(err, ISO_FORMAT, "a symbol has no name of letters, digits and _");
  iso_code code = (out->name = iso_arena_strdup(a, name)) ? ISO_OK : cap_no_memory(err);
  if (code == ISO_OK) code = integer_of(v, "min", &out->min, err);
  if (code == ISO_OK) code = integer_of(v, "value", &out->value, err);
  out->max = INT64_MAX;
  if (code == ISO_OK && max != NULL && !json_is_null(max))
    code = integer_of(v, "max", &out->max, err);
  if (code == ISO_OK && out->min < 0) code = iso_fail(err, ISO_RANGE, "\"min\" is below 0");
  out->now = out->value;
  if (code != ISO_OK) return iso_prefix(err, "symbol \"%.60s\": ", name);
  return out->value < out->min || out->value > out->max ? outside(out, out->value, err) : ISO_OK;
}

static iso_code read_symbols(cap_graph *g, const json_t *all, iso_error *err) {
  const size_t n = json_array_size(all);
  if (all != NULL && !json_is_array(all))
    return iso_fail(err, ISO_FORMAT, "\"symbols\" is not an array");
  if (n > MAX_SYMBOLS)
    return iso_fail(err, ISO_LIMIT, "%zu symbols are more than %d", n, MAX_SYMBOLS);
  cap_symbol *s = iso_arena_alloc(&g->arena, (n + 1) * sizeof *s);
  if (s == NULL) return cap_no_memory(err);
  for (size_t i = 0; i < n; i++) {
    const iso_code code = read_symbol(&g->arena, json_array_get(all, i), &s[i], err);
    if (code != ISO_OK) return code;
    for (size_t j = 0; j < i; j++)
      if (strcmp(s[i].name, s[j].name) == 0)
        return iso_fail(err, ISO_FORMAT, "the symbol \"%.60s\" is there twice", s[i].name);
  }
  g->symbol = s;
  g->n_symbols = n;
  return ISO_OK;
}

static iso_code assign(cap_graph *g, const cap_options *o, iso_error *err) {
  cap_symbol *s = (cap_symbol *)(uintptr_t)g->symbol; /* ours while it is read */
  for (size_t k = 0; o != NULL && k < o->n_sizes; k++) {
    size_t i = 0;
    while (i < g->n_symbols && strcmp(s[i].name, o->size[k].name) != 0) i++;
    if (i == g->n_symbols)
      return iso_fail(err, ISO_USAGE, "there is no symbol \"%.60s\"", o->size[k].name);
    s[i].now = o->size[k].value;
    if (s[i].now < s[i].min || s[i].now > s[i].max) return outside(&s[i], s[i].now, err);
  }
  return ISO_OK;
}

bool cap_is_moved(const cap_graph *g) {
  for (size_t i = 0; i < g->n_symbols; i++)
    if (g->symbol[i].now != g->symbol[i].value) return true;
  return false;
}

/* ---- guards ---- */

static iso_code read_guards(cap_graph *g, const json_t *all, iso_error *err) {
  const size_t n = json_array_size(all);
  if (all != NULL && !json_is_array(all))
    return iso_fail(err, ISO_FORMAT, "\"guards\" is not an array");
  const char **guard = iso_arena_alloc(&g->arena, (n + 1) * sizeof *guard);
  if (guard == NULL) return cap_no_memory(err);
  for (size_t i = 0; i < n; i++) {
    const char *text = json_string_value(json_array_get(all, i));
    if (text == NULL) return iso_fail(err, ISO_FORMAT, "a guard is not a string");
    if ((guard[i] = iso_arena_strdup(&g->arena, text)) == NULL) return cap_no_memory(err);
  }
  g->guard = guard;
  g->n_guards = n;
  return ISO_OK;
}

/* "T = 17, B = 2" */
static const char *sizes_text(const cap_graph *g, iso_arena *a) {
  const char *text = "";
  for (size_t i = 0; i < g->n_symbols && text != NULL; i++)
    text = iso_arena_printf(a, "%s%s%s = %" PRId64, text, i ? ", " : "", g->symbol[i].name,
                            g->symbol[i].now);
  return text;
}

iso_code cap_admits(const cap_graph *g, const int64_t *value, const char **broken, iso_error *err) {
  *broken = NULL;
  for (size_t i = 0; i < g->n_symbols; i++)
    if (value[i] < g->symbol[i].min || value[i] > g->symbol[i].max) *broken = g->symbol[i].name;
  const cap_scope scope = {.symbol = g->symbol, .n = g->n_symbols, .value = value};
  for (size_t i = 0; i < g->n_guards && *broken == NULL; i++) {
    int64_t holds;
    const iso_code code = cap_evaluate(g->guard[i], true, &scope, &holds, err);
    if (code == ISO_NOMEM) return code;
    if (code != ISO_OK || !holds) *broken = g->guard[i];
  }
  return ISO_OK;
}

iso_code cap_read_size(const cap_graph *g, const char *text, iso_arena *a, const rule_term **out,
                       iso_error *err) {
  const cap_scope scope = {.symbol = g->symbol, .n = g->n_symbols};
  int64_t now;
  const rule_term *t;
  const iso_code code = cap_size_term(text, &scope, a, &now, &t, err);
  if (code == ISO_OK) *out = t;
  return code;
}

static iso_code check_guards(cap_graph *g, cap_numbers *numbers, iso_error *err) {
  const cap_scope scope = {.symbol = g->symbol, .n = g->n_symbols, .numbers = numbers};
  for (size_t i = 0; i < g->n_guards; i++) {
    int64_t holds;
    const iso_code code = cap_evaluate(g->guard[i], true, &scope, &holds, err);
    if (code != ISO_OK) return code;
    if (holds) continue;
    const char *at = sizes_text(g, &g->arena);
    return at == NULL ? cap_no_memory(err)
                      : iso_fail(err, ISO_RANGE, "guard \"%.120s\" does not hold at %.120s",
                                 g->guard[i], at);
  }
  return ISO_OK;
}

/* ---- sizes ---- */

typedef struct sizes {
  cap_graph *g;
  cap_scope scope;
  cap_written *written;
  iso_error *err;
} sizes;

static iso_code evaluated(const sizes *z, const char *text, json_t **out) {
  int64_t x;
  cap_written *w = z->written;
  const rule_term *as;
  const iso_code code = cap_size_term(text, &z->scope, &z->g->arena, &x, &as, z->err);
  if (code != ISO_OK) return code;
  if (!iso_grow(w->of, w->cap, w->n + 1)) return cap_no_memory(z->err);
  *out = json_integer(x);
  if (*out == NULL) return cap_no_memory(z->err);
  w->of[w->n].at = *out;
  w->of[w->n++].as = as;
  return ISO_OK;
}

static int by_address(const void *a, const void *b) {
  const uintptr_t x = *(const uintptr_t *)a, y = *(const uintptr_t *)b; /* `at` stands first */
  return (x > y) - (x < y);
}

const rule_term *cap_written_as(const cap_written *w, const json_t *v) {
  const uintptr_t at = (uintptr_t)v;
  const void *x = w->n ? bsearch(&at, w->of, w->n, sizeof *w->of, by_address) : NULL;
  return x != NULL ? w->of[((const char *)x - (const char *)w->of) / (ptrdiff_t)sizeof *w->of].as
                   : NULL;
}

/* The value that replaces `v`; NULL: `v` stays. */
static iso_code replacement(const sizes *z, const json_t *v, json_t **out) {
  const json_t *size = json_object_get(v, "size");
  *out = NULL;
  if (size == NULL || json_object_size(v) != 1) return ISO_OK;
  if (!json_is_string(size)) return iso_fail(z->err, ISO_FORMAT, "{\"size\"} is not a string");
  return evaluated(z, json_string_value(size), out);
}

/* Every {"size": ...} below `v`. */
static iso_code settle(const sizes *z, json_t *v, int depth) {
  const char *key;
  json_t *x, *new;
  void *next;
  iso_code code = ISO_OK;
  if (depth > MAX_DEPTH) return ISO_OK;
  for (size_t i = 0; i < json_array_size(v) && code == ISO_OK; i++) {
    x = json_array_get(v, i);
    if ((code = replacement(z, x, &new)) != ISO_OK) return code;
    if (new == NULL) code = settle(z, x, depth + 1);
    else if (json_array_set_new(v, i, new) != 0) code = cap_no_memory(z->err);
  }
  json_object_foreach_safe(v, next, key, x) {
    if ((code = replacement(z, x, &new)) != ISO_OK) return code;
    if (new == NULL) code = settle(z, x, depth + 1);
    else if (json_object_set_new(v, key, new) != 0) code = cap_no_memory(z->err);
    if (code != ISO_OK) return code;
  }
  return code;
}

/* The dimensions of a shape. Returns: in `text` their expressions, NULL where a number. */
static iso_code settle_shape(const sizes *z, json_t *shape, const char **text) {
  for (size_t d = 0; d < json_array_size(shape); d++) {
    const char *s = json_string_value(json_array_get(shape, d));
    json_t *x;
    if (s == NULL) continue;
    iso_code code = evaluated(z, s, &x);
    if (code != ISO_OK) return code;
    if (json_integer_value(x) < 0) {
      code = iso_fail(z->err, ISO_RANGE, "size \"%.80s\" is %" JSON_INTEGER_FORMAT, s,
                      json_integer_value(x));
      json_decref(x);
      return code;
    }
    if (text != NULL && d < RULE_MAX_RANK &&
        (text[d] = iso_arena_strdup(&z->g->arena, s)) == NULL) {
      json_decref(x);
      return cap_no_memory(z->err);
    }
    if (json_array_set_new(shape, d, x) != 0) return cap_no_memory(z->err);
  }
  return ISO_OK;
}

/* One node; of an input, `text` is filled in. */
static iso_code settle_node(const sizes *z, json_t *node, const char *const **text) {
  static const char *const with_sizes[] = {"args", "kwargs", "attributes", "domain"};
  const char *op = json_string_value(json_object_get(node, "op")), **kept = NULL;
  json_t *outputs = json_object_get(node, "outputs");
  iso_code code = ISO_OK;
  if (op != NULL && strcmp(op, "input") == 0) {
    kept = iso_arena_alloc(&z->g->arena, RULE_MAX_RANK * sizeof *kept);
    if (kept == NULL) return cap_no_memory(z->err);
    memset(kept, 0, RULE_MAX_RANK * sizeof *kept);
    *text = kept;
  }
  for (size_t k = 0; k < sizeof with_sizes / sizeof *with_sizes && code == ISO_OK; k++)
    code = settle(z, json_object_get(node, with_sizes[k]), 0);
  for (size_t k = 0; k < json_array_size(outputs) && code == ISO_OK; k++)
    code = settle_shape(z, json_object_get(json_array_get(outputs, k), "shape"), kept);
  return code;
}

static iso_code settle_nodes(const sizes *z, json_t *nodes, const char *const **text) {
  for (size_t i = 0; i < json_array_size(nodes); i++) {
    json_t *node = json_array_get(nodes, i);
    const iso_code code = settle_node(z, node, &text[i]);
    if (code == ISO_OK) continue;
    const char *id = json_string_value(json_object_get(node, "id"));
    return id != NULL ? iso_prefix(z->err, "node \"%.120s\": ", id)
                      : iso_prefix(z->err, "node %zu: ", i);
  }
  return ISO_OK;
}

iso_code cap_settle_sizes(cap_graph *g, json_t *top, const cap_options *o,
                          const char *const ***text, cap_written *written, iso_error *err) {
  json_t *nodes = json_object_get(top, "nodes");
  cap_numbers numbers = {0};
  iso_code code = read_symbols(g, json_object_get(top, "symbols"), err);
  if (code == ISO_OK) code = read_guards(g, json_object_get(top, "guards"), err);
  if (code == ISO_OK) code = assign(g, o, err);
  if (code == ISO_OK) code = check_guards(g, &numbers, err);
  const size_t n = json_array_size(nodes);
  const char *const **all = iso_arena_alloc(&g->arena, (n + 1) * sizeof *all);
  if (code == ISO_OK && all == NULL) code = cap_no_memory(err);
  if (all != NULL) memset(all, 0, (n + 1) * sizeof *all);
  const sizes z = {
      .g = g,
      .scope = {.symbol = g->symbol, .n = g->n_symbols, .numbers = &numbers},
      .written = written,
      .err = err,
  };
  if (code == ISO_OK) code = settle_nodes(&z, nodes, all);
  if (written->n > 1) qsort(written->of, written->n, sizeof *written->of, by_address);
  int64_t *kept = iso_arena_alloc(&g->arena, (numbers.n + 1) * sizeof *kept);
  if (code == ISO_OK && kept == NULL) code = cap_no_memory(err);
  if (kept != NULL && numbers.n) memcpy(kept, numbers.at, numbers.n * sizeof *kept);
  g->number = kept;
  g->n_numbers = numbers.n;
  free(numbers.at);
  *text = all;
  return code;
}

iso_code cap_read_sized(const cap_lowering *lower, const cap_written *written, const json_t *v,
                        const cap_raw *raw, cap_node *node, iso_error *err) {
  iso_arena *a = lower->arena;
  const json_t *shape = json_object_get(json_array_get(json_object_get(v, "outputs"), 0), "shape");
  const rule_term **dim = iso_arena_alloc(a, (json_array_size(shape) + 1) * sizeof *dim);
  if (dim == NULL) return cap_no_memory(err);
  for (size_t i = 0; i < json_array_size(shape); i++) {
    const json_t *d = json_array_get(shape, i);
    dim[i] = cap_written_as(written, d);
    if (dim[i] == NULL && !(dim[i] = rule_int(a, json_integer_value(d)))) return cap_no_memory(err);
  }
  node->dim = dim;
  if (raw == NULL) return ISO_OK;
  if (rule_is_getitem(node->op)) {
    if (cap_written_as(written, json_array_get(raw->args, 1)) == NULL) node->sized = node->call;
    return ISO_OK;
  }
  cap_lowering l = *lower;
  l.written = written;
  return cap_lower(&l, node, raw, &node->sized, err);
}
