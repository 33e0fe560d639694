/* Words and expressions of relations files. Expressions are built as they are read, with their
 * shapes, so that an error of shapes names its line. */
#include "cli/config/relations_int.h"
#include "rules/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

enum { MAX_DEPTH = 64, MAX_LIST = 256 };

typedef relfile_reader reader;
typedef relfile_tensor tensor;
#define WRONG RELFILE_WRONG

iso_code relfile_nomem(relfile_reader *r) { return iso_fail(r->err, ISO_NOMEM, "out of memory"); }

iso_code relfile_wrong_at(relfile_reader *r, iso_code c) {
  iso_prefix(r->err, "%s: ", r->where);
  return c;
}

/* ---- words ---- */

void relfile_blanks(reader *r) { r->at += strspn(r->at, " \t\r"); }

bool relfile_take(reader *r, const char *token) {
  relfile_blanks(r);
  const size_t n = strlen(token);
  if (strncmp(r->at, token, n) != 0) return false;
  r->at += n;
  return true;
}

bool relfile_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c && strchr("._/:$-", c));
}

iso_code relfile_name(reader *r, const char **out, bool *quoted) {
  relfile_blanks(r);
  const char *start = r->at;
  *quoted = *start == '"';
  if (*quoted) {
    const char *end = strchr(++start, '"');
    if (!end) return WRONG(r, "a name in quotes does not end");
    *out = iso_arena_strndup(&r->out->arena, start, (size_t)(end - start));
    r->at = end + 1;
  } else {
    while (relfile_name_char(*r->at)) r->at++;
    if (r->at == start)
      return WRONG(r, "a name is expected%s%.40s%s", *start ? " at \"" : " at the end", start,
                   *start ? "\"" : "");
    *out = iso_arena_strndup(&r->out->arena, start, (size_t)(r->at - start));
  }
  return *out ? ISO_OK : relfile_nomem(r);
}

static iso_code number(reader *r, int64_t *out) {
  char *end;
  relfile_blanks(r);
  errno = 0;
  const long long x = strtoll(r->at, &end, 10);
  if (end == r->at || errno || relfile_name_char(*end))
    return WRONG(r, "an integer is expected at \"%.40s\"", r->at);
  r->at = end;
  *out = x;
  return ISO_OK;
}

iso_code relfile_expect(reader *r, const char *token) {
  return relfile_take(r, token)
             ? ISO_OK
             : WRONG(r, "\"%s\" is expected%s%.40s%s", token, *r->at ? " at \"" : " at the end",
                     r->at, *r->at ? "\"" : "");
}

/* ---- expressions ---- */

int64_t relfile_find_result(const cap_graph *g, const char *s) {
  for (size_t i = 0; i < g->n_results; i++)
    if (strcmp(g->result[i].name, s) == 0) return (int64_t)i;
  return -1;
}

/* Whether a line's subject lets a name be this node: 'i' an input, 'l' another leaf, 'r' either. */
static bool may_be(char subject, const cap_node *n) {
  return n->kind != CAP_OP && (subject == 'r' || (n->kind == CAP_INPUT) == (subject == 'i'));
}

iso_code relfile_find_leaf(reader *r, int side, const char *s, uint32_t *out) {
  const cap_graph *g = r->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++)
    if (may_be(r->subject, &g->node[i]) && g->node[i].name && strcmp(g->node[i].name, s) == 0)
      return *out = (uint32_t)i, ISO_OK;
  return WRONG(r, "%s has no %s \"%.80s\"", g->path, r->subject == 'i' ? "input" : "leaf", s);
}

static iso_code named(reader *r, const char *s, tensor *out) {
  cap_graph *g = r->graph[RIGHT];
  uint32_t at, node;
  if (r->subject == 'o') {
    const int64_t k = relfile_find_result(g, s);
    if (k < 0) return WRONG(r, "%s has no output \"%.80s\"", g->path, s);
    at = (uint32_t)k;
    node = g->result[k].node;
    if (r->out->right[k].left_out)
      return WRONG(r, "output \"%.80s\" is used here, and left out in %s", s,
                   r->out->right[k].where);
    if (!r->out->right[k].where) r->out->right[k].where = r->where;
  } else {
    const iso_code c = relfile_find_leaf(r, RIGHT, s, &node);
    if (c) return c;
    at = node;
  }
  *out = (tensor){rule_var(&g->arena, at), g->node[node].output[0]};
  return out->term ? ISO_OK : relfile_nomem(r);
}

iso_code relfile_call(reader *r, const char *op, const rule_term *const *arg, size_t n,
                      const cap_output *what, tensor *out) {
  cap_graph *g = r->graph[RIGHT];
  const rule_term *t;
  for (size_t i = 0; i < n; i++)
    if (!arg[i]) return relfile_nomem(r);
  const iso_code c = rule_call(&g->arena, g->schemas, op, arg, n, &t, r->err);
  if (c) return relfile_wrong_at(r, c);
  *out = (tensor){t, *what};
  relations *o = r->out;
  if (r->subject != 'o' && !r->fold) return ISO_OK;
  if (!iso_grow(o->call, o->cap_calls, o->n_calls + 1)) return relfile_nomem(r);
  o->call[o->n_calls++] = (cap_typed_call){t, *what};
  return ISO_OK;
}

static iso_code dimension(reader *r, const rule_shape *s, uint32_t more, int64_t *out) {
  iso_code c = relfile_expect(r, ",");
  if (!c) c = number(r, out);
  if (c) return c;
  if (*out < 0) *out += (int64_t)s->rank + more;
  return *out >= 0 && *out < (int64_t)s->rank + more
             ? ISO_OK
             : RELFILE_MISFIT(r, "there is no such dimension of a tensor of rank %u", s->rank);
}

static iso_code integers(reader *r, int64_t *out, size_t cap, size_t *n) {
  iso_code c = relfile_expect(r, ",");
  if (!c) c = relfile_expect(r, "[");
  for (*n = 0; !c && !relfile_take(r, "]");) {
    if (*n && (c = relfile_expect(r, ","))) break;
    if (*n == cap) return WRONG(r, "the list is too long");
    c = number(r, &out[(*n)++]);
  }
  return c;
}

static const rule_term *int_list(iso_arena *a, const int64_t *x, size_t n) {
  const rule_term *t[RULE_MAX_RANK];
  for (size_t i = 0; i < n; i++) t[i] = rule_int(a, x[i]);
  return rule_list(a, t, n);
}

static iso_code permute(reader *r, tensor *x) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  int64_t d[RULE_MAX_RANK];
  size_t n;
  bool seen[RULE_MAX_RANK] = {false};
  iso_code c = integers(r, d, RULE_MAX_RANK, &n);
  cap_output to = x->what;
  if (c) return c;
  for (size_t i = 0; i < n; i++) {
    if (n != to.shape.rank || d[i] < 0 || d[i] >= (int64_t)n || seen[d[i]])
      return RELFILE_MISFIT(r, "permute: every dimension once is expected");
    seen[d[i]] = true;
    to.shape.dim[i] = x->what.shape.dim[d[i]];
  }
  if (n != to.shape.rank) return RELFILE_MISFIT(r, "permute: every dimension once is expected");
  const rule_term *arg[2] = {x->term, int_list(a, d, n)};
  return relfile_call(r, OP_PERMUTE, arg, 2, &to, x);
}

static iso_code reshape(reader *r, tensor *x) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->what;
  size_t n;
  int64_t before = 1, after = 1;
  iso_code c = integers(r, to.shape.dim, RULE_MAX_RANK, &n);
  if (c) return c;
  for (uint32_t i = 0; i < x->what.shape.rank; i++) before *= x->what.shape.dim[i];
  for (size_t i = 0; i < n; i++)
    if (to.shape.dim[i] < 0 || __builtin_mul_overflow(after, to.shape.dim[i], &after))
      return WRONG(r, "reshape: that is no size");
  if (before != after)
    return RELFILE_MISFIT(r, "reshape: %" PRId64 " elements are not %" PRId64, before, after);
  to.shape.rank = (uint32_t)n;
  const rule_term *arg[2] = {x->term, int_list(a, to.shape.dim, n)};
  return relfile_call(r, OP_RESHAPE, arg, 2, &to, x);
}

static iso_code transpose(reader *r, tensor *x, bool plain) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->what;
  int64_t d = 0, e = 1;
  if (plain && to.shape.rank != 2) return RELFILE_MISFIT(r, "t: a matrix is expected");
  iso_code c = plain ? ISO_OK : dimension(r, &to.shape, 0, &d);
  if (!c && !plain) c = dimension(r, &to.shape, 0, &e);
  if (c) return c;
  to.shape.dim[d] = x->what.shape.dim[e];
  to.shape.dim[e] = x->what.shape.dim[d];
  const rule_term *arg[3] = {x->term, rule_int(a, d), rule_int(a, e)};
  return relfile_call(r, plain ? OP_T : OP_TRANSPOSE_INT, arg, plain ? 1 : 3, &to, x);
}

static iso_code squeeze(reader *r, tensor *x, bool out) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->what;
  rule_shape *s = &to.shape;
  int64_t d;
  const iso_code c = dimension(r, s, out ? 0 : 1, &d);
  if (c) return c;
  if (out && s->dim[d] != 1)
    return RELFILE_MISFIT(r, "squeeze: dimension %" PRId64 " has size %" PRId64, d, s->dim[d]);
  if (!out && s->rank == RULE_MAX_RANK) return WRONG(r, "unsqueeze: too many dimensions");
  for (uint32_t i = s->rank; !out && i > d; i--) s->dim[i] = s->dim[i - 1];
  for (uint32_t i = (uint32_t)d; out && i + 1 < s->rank; i++) s->dim[i] = s->dim[i + 1];
  if (out) s->rank--;
  else s->dim[d] = 1, s->rank++;
  const rule_term *arg[2] = {x->term, rule_int(a, d)};
  return relfile_call(r, out ? OP_SQUEEZE_DIM : OP_UNSQUEEZE, arg, 2, &to, x);
}

static iso_code slice(reader *r, tensor *x) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->what;
  int64_t d, from, end;
  iso_code c = dimension(r, &to.shape, 0, &d);
  if (!c) c = relfile_expect(r, ",");
  if (!c) c = number(r, &from);
  if (!c) c = relfile_expect(r, ",");
  if (!c) c = number(r, &end);
  if (c) return c;
  if (from < 0 || end <= from || end > to.shape.dim[d])
    return RELFILE_MISFIT(r, "slice: %" PRId64 " to %" PRId64 " is no part of size %" PRId64, from,
                          end, to.shape.dim[d]);
  to.shape.dim[d] = end - from;
  const rule_term *arg[4] = {x->term, rule_int(a, d), rule_int(a, from), rule_int(a, end)};
  return relfile_call(r, OP_SLICE_TENSOR, arg, 4, &to, x);
}

/* The items of a list, from behind its bracket on; all of one dtype. */
typedef struct items {
  const rule_term *term[MAX_LIST];
  rule_shape shape[MAX_LIST];
  cap_output first;
  size_t n;
} items;

static iso_code item(reader *r, const char *of, items *x) {
  tensor t;
  if (x->n == MAX_LIST) return WRONG(r, "the list is too long");
  const iso_code c = relfile_expression(r, &t);
  if (c) return c;
  if (x->n == 0) x->first = t.what;
  else if (t.what.dtype != x->first.dtype)
    return RELFILE_MISFIT(r, "%s: tensors of one dtype are expected", of);
  x->term[x->n] = t.term;
  x->shape[x->n++] = t.what.shape;
  return ISO_OK;
}

static iso_code list(reader *r, const char *of, items *x) {
  iso_code c = relfile_expect(r, "[");
  while (!c && !relfile_take(r, "]")) {
    if (x->n) c = relfile_expect(r, ",");
    if (!c) c = item(r, of, x);
  }
  return !c && x->n == 0 ? WRONG(r, "%s: of nothing", of) : c;
}

static iso_code cat_of(reader *r, const items *x, tensor *out) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->first;
  int64_t d;
  iso_code c = dimension(r, &to.shape, 0, &d);
  if (c) return c;
  for (size_t i = 1; i < x->n; i++) {
    if (x->shape[i].rank != to.shape.rank)
      return RELFILE_MISFIT(r, "cat: tensors of one dtype and rank are expected");
    for (uint32_t k = 0; k < to.shape.rank; k++)
      if (k == d) to.shape.dim[k] += x->shape[i].dim[k];
      else if (x->shape[i].dim[k] != to.shape.dim[k])
        return RELFILE_MISFIT(r, "cat: the tensors differ in another dimension than %" PRId64, d);
  }
  const rule_term *arg[2] = {rule_list(a, x->term, x->n), rule_int(a, d)};
  return relfile_call(r, OP_CAT, arg, 2, &to, out);
}

/* One term whether it was written as a sum or as an addition. */
static iso_code sum_of(reader *r, const char *of, const items *x, tensor *out) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  for (size_t i = 1; i < x->n; i++)
    if (!rule_shape_eq(&x->shape[i], &x->shape[0]))
      return RELFILE_MISFIT(r, "%s: tensors of one shape and dtype are expected", of);
  if (x->n == 1) return *out = (tensor){x->term[0], x->first}, ISO_OK;
  const rule_term *arg[2] = {rule_list(a, x->term, x->n), rule_string(a, "sum")};
  return relfile_call(r, OP_DIST_ALL_REDUCE, arg, 2, &x->first, out);
}

static iso_code of_several(reader *r, const char *f, tensor *out) {
  const bool is_cat = strcmp(f, "cat") == 0, is_sum = strcmp(f, "sum") == 0;
  if (!is_cat && r->subject != 'o')
    return WRONG(r, "%s is for outputs: leaves are related by layouts", f);
  items *x = calloc(1, sizeof *x);
  if (!x) return relfile_nomem(r);
  iso_code c = is_cat || is_sum ? list(r, f, x) : item(r, f, x);
  while (!c && !is_cat && !is_sum && relfile_take(r, ",")) c = item(r, f, x);
  if (!c && !is_cat && !is_sum && x->n < 2) c = relfile_expect(r, ",");
  if (!c) c = is_cat ? cat_of(r, x, out) : sum_of(r, f, x, out);
  free(x);
  return c;
}

/* operator: the words of relation files */
static iso_code apply(reader *r, const char *f, tensor *x) {
  static const char *const known[] = {"t",         "transpose", "permute", "reshape",
                                      "unsqueeze", "squeeze",   "slice"};
  enum { N = sizeof known / sizeof *known };
  if (r->fold && relfile_is_arithmetic(f)) return relfile_arithmetic(r, f, x);
  if (strcmp(f, "cat") == 0 || strcmp(f, "sum") == 0 || strcmp(f, "add") == 0)
    return of_several(r, f, x);
  size_t k = 0;
  while (k < N && strcmp(known[k], f) != 0) k++;
  if (k == N)
    return WRONG(r,
                 "\"%.40s\" is none of t, transpose, permute, reshape, unsqueeze, squeeze, slice, "
                 "cat, sum and add",
                 f);
  const iso_code c = relfile_expression(r, x);
  if (c) return c;
  switch (k) {
  case 0: return transpose(r, x, true);
  case 1: return transpose(r, x, false);
  case 2: return permute(r, x);
  case 3: return reshape(r, x);
  case 4: return squeeze(r, x, false);
  case 5: return squeeze(r, x, true);
  default: return slice(r, x);
  }
}

iso_code relfile_expression(reader *r, tensor *out) {
  const char *s;
  bool quoted;
  if (r->depth == MAX_DEPTH) return WRONG(r, "the expression is too deep");
  iso_code c = relfile_name(r, &s, &quoted);
  if (c) return c;
  if (quoted || !relfile_take(r, "(")) return named(r, s, out);
  r->depth++;
  c = apply(r, s, out);
  if (!c) c = relfile_expect(r, ")");
  r->depth--;
  return c;
}
