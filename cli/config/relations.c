/* The reader of relations.h. Expressions are built as they are read, with their shapes, so that
 * what does not fit is said with its line. */
#include "cli/config/relations.h"
#include "rules/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

enum { MAX_LINE = 1 << 16, MAX_DEPTH = 64, MAX_LIST = 256 };
enum { LEFT = 0, RIGHT = 1 };

/* A tensor that an expression stands for. */
typedef struct tensor {
  const rule_term *term; /* over nodes of the right graph */
  cap_output what;
} tensor;

typedef struct reader {
  const char *at;    /* in the line */
  const char *where; /* FILE:LINE */
  cap_graph *graph[2];
  relations *out;
  iso_error *err;
  char subject; /* of the line: 'o'utput, 'i'nput, 'l'eaf */
  int depth;
  bool *used[2];     /* results that some line spoke of: left, right; as the captures have them */
  cap_result *made;  /* by left result: the right one that was given for it; node UINT32_MAX: left
                        out; name NULL: nothing */
  const char **text; /* by left result */
} reader;

static iso_code nomem(reader *r) { return iso_fail(r->err, ISO_NOMEM, "out of memory"); }
#define WRONG(r, ...) wrong_at(r, iso_fail((r)->err, ISO_FORMAT, __VA_ARGS__))
static iso_code wrong_at(reader *r, iso_code c) {
  iso_prefix(r->err, "%s: ", r->where);
  return c;
}

/* ---- words ---- */

static void blanks(reader *r) { r->at += strspn(r->at, " \t\r"); }

static bool take(reader *r, const char *token) {
  blanks(r);
  const size_t n = strlen(token);
  if (strncmp(r->at, token, n) != 0) return false;
  r->at += n;
  return true;
}

static bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c && strchr("._/:$-", c));
}

/* A name; in `quoted` whether it was in quotes, and so is no word of the language. */
static iso_code name(reader *r, const char **out, bool *quoted) {
  blanks(r);
  const char *start = r->at;
  *quoted = *start == '"';
  if (*quoted) {
    const char *end = strchr(++start, '"');
    if (!end) return WRONG(r, "a name in quotes does not end");
    *out = iso_arena_strndup(&r->out->arena, start, (size_t)(end - start));
    r->at = end + 1;
  } else {
    while (name_char(*r->at)) r->at++;
    if (r->at == start)
      return WRONG(r, "a name is expected%s%.40s%s", *start ? " at \"" : " at the end", start,
                   *start ? "\"" : "");
    *out = iso_arena_strndup(&r->out->arena, start, (size_t)(r->at - start));
  }
  return *out ? ISO_OK : nomem(r);
}

static iso_code number(reader *r, int64_t *out) {
  char *end;
  blanks(r);
  errno = 0;
  const long long x = strtoll(r->at, &end, 10);
  if (end == r->at || errno || name_char(*end))
    return WRONG(r, "an integer is expected at \"%.40s\"", r->at);
  r->at = end;
  *out = x;
  return ISO_OK;
}

static iso_code expect(reader *r, const char *token) {
  return take(r, token) ? ISO_OK
                        : WRONG(r, "\"%s\" is expected%s%.40s%s", token,
                                *r->at ? " at \"" : " at the end", r->at, *r->at ? "\"" : "");
}

/* ---- expressions ---- */

static const cap_result *find_result(const cap_graph *g, const char *s) {
  for (size_t i = 0; i < g->n_results; i++)
    if (strcmp(g->result[i].name, s) == 0) return &g->result[i];
  return NULL;
}

static iso_code find_leaf(reader *r, int side, const char *s, uint32_t *out) {
  const cap_graph *g = r->graph[side];
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind != CAP_OP && (g->node[i].kind == CAP_INPUT) == (r->subject == 'i') &&
        g->node[i].name && strcmp(g->node[i].name, s) == 0)
      return *out = (uint32_t)i, ISO_OK;
  return WRONG(r, "%s has no %s \"%.80s\"", g->path, r->subject == 'i' ? "input" : "leaf", s);
}

static iso_code named(reader *r, const char *s, tensor *out) {
  cap_graph *g = r->graph[RIGHT];
  uint32_t node;
  if (r->subject == 'o') {
    const cap_result *x = find_result(g, s);
    if (!x) return WRONG(r, "%s has no output \"%.80s\"", g->path, s);
    r->used[RIGHT][x - g->result] = true;
    node = x->node;
  } else {
    const iso_code c = find_leaf(r, RIGHT, s, &node);
    if (c) return c;
  }
  *out = (tensor){rule_var(&g->arena, node), g->node[node].output[0]};
  return out->term ? ISO_OK : nomem(r);
}

/* The call as a term; for an output as a node, so that the graph computes it. */
static iso_code call(reader *r, const char *op, const rule_term *const *arg, size_t n,
                     const cap_output *what, tensor *out) {
  cap_graph *g = r->graph[RIGHT];
  const rule_term *t;
  for (size_t i = 0; i < n; i++)
    if (!arg[i]) return nomem(r);
  iso_code c = rule_call(&g->arena, g->schemas, op, arg, n, &t, r->err);
  uint32_t node = 0;
  if (!c && r->subject == 'o') {
    c = cap_append(g, "relation", t, what, &node, r->err);
    if (!c && !(t = rule_var(&g->arena, node))) c = nomem(r);
  }
  if (c) return wrong_at(r, c);
  *out = (tensor){t, *what};
  return ISO_OK;
}

static iso_code dimension(reader *r, const rule_shape *s, uint32_t more, int64_t *out) {
  iso_code c = expect(r, ",");
  if (!c) c = number(r, out);
  if (c) return c;
  if (*out < 0) *out += (int64_t)s->rank + more;
  return *out >= 0 && *out < (int64_t)s->rank + more
             ? ISO_OK
             : WRONG(r, "there is no such dimension of a tensor of rank %u", s->rank);
}

static iso_code integers(reader *r, int64_t *out, size_t cap, size_t *n) {
  iso_code c = expect(r, ",");
  if (!c) c = expect(r, "[");
  for (*n = 0; !c && !take(r, "]");) {
    if (*n && (c = expect(r, ","))) break;
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
      return WRONG(r, "permute: every dimension once is expected");
    seen[d[i]] = true;
    to.shape.dim[i] = x->what.shape.dim[d[i]];
  }
  if (n != to.shape.rank) return WRONG(r, "permute: every dimension once is expected");
  const rule_term *arg[2] = {x->term, int_list(a, d, n)};
  return call(r, OP_PERMUTE, arg, 2, &to, x);
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
    return WRONG(r, "reshape: %" PRId64 " elements are not %" PRId64, before, after);
  to.shape.rank = (uint32_t)n;
  const rule_term *arg[2] = {x->term, int_list(a, to.shape.dim, n)};
  return call(r, OP_RESHAPE, arg, 2, &to, x);
}

static iso_code transpose(reader *r, tensor *x, bool plain) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->what;
  int64_t d = 0, e = 1;
  if (plain && to.shape.rank != 2) return WRONG(r, "t: a matrix is expected");
  iso_code c = plain ? ISO_OK : dimension(r, &to.shape, 0, &d);
  if (!c && !plain) c = dimension(r, &to.shape, 0, &e);
  if (c) return c;
  to.shape.dim[d] = x->what.shape.dim[e];
  to.shape.dim[e] = x->what.shape.dim[d];
  const rule_term *arg[3] = {x->term, rule_int(a, d), rule_int(a, e)};
  return call(r, plain ? OP_T : OP_TRANSPOSE_INT, arg, plain ? 1 : 3, &to, x);
}

static iso_code squeeze(reader *r, tensor *x, bool out) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->what;
  rule_shape *s = &to.shape;
  int64_t d;
  const iso_code c = dimension(r, s, out ? 0 : 1, &d);
  if (c) return c;
  if (out && s->dim[d] != 1)
    return WRONG(r, "squeeze: dimension %" PRId64 " has size %" PRId64, d, s->dim[d]);
  if (!out && s->rank == RULE_MAX_RANK) return WRONG(r, "unsqueeze: too many dimensions");
  for (uint32_t i = s->rank; !out && i > d; i--) s->dim[i] = s->dim[i - 1];
  for (uint32_t i = (uint32_t)d; out && i + 1 < s->rank; i++) s->dim[i] = s->dim[i + 1];
  if (out) s->rank--;
  else s->dim[d] = 1, s->rank++;
  const rule_term *arg[2] = {x->term, rule_int(a, d)};
  return call(r, out ? OP_SQUEEZE_DIM : OP_UNSQUEEZE, arg, 2, &to, x);
}

static iso_code slice(reader *r, tensor *x) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  cap_output to = x->what;
  int64_t d, from, end;
  iso_code c = dimension(r, &to.shape, 0, &d);
  if (!c) c = expect(r, ",");
  if (!c) c = number(r, &from);
  if (!c) c = expect(r, ",");
  if (!c) c = number(r, &end);
  if (c) return c;
  if (from < 0 || end <= from || end > to.shape.dim[d])
    return WRONG(r, "slice: %" PRId64 " to %" PRId64 " is no part of size %" PRId64, from, end,
                 to.shape.dim[d]);
  to.shape.dim[d] = end - from;
  const rule_term *arg[4] = {x->term, rule_int(a, d), rule_int(a, from), rule_int(a, end)};
  return call(r, OP_SLICE_TENSOR, arg, 4, &to, x);
}

static iso_code expression(reader *r, tensor *out);

static iso_code cat(reader *r, tensor *out) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  const rule_term *item[MAX_LIST];
  size_t n = 0;
  cap_output to = {0};
  rule_shape other[MAX_LIST];
  int64_t d;
  iso_code c = expect(r, "[");
  for (; !c && !take(r, "]"); n++) {
    tensor x;
    if (n && (c = expect(r, ","))) return c;
    if (n == MAX_LIST) return WRONG(r, "the list is too long");
    if ((c = expression(r, &x))) return c;
    if (n && (x.what.dtype != to.dtype || x.what.shape.rank != to.shape.rank))
      return WRONG(r, "cat: tensors of one dtype and rank are expected");
    if (!n) to = x.what;
    item[n] = x.term;
    other[n] = x.what.shape;
  }
  if (!c && n == 0) return WRONG(r, "cat: of nothing");
  if (!c) c = dimension(r, &to.shape, 0, &d);
  if (c) return c;
  for (size_t i = 1; i < n; i++)
    for (uint32_t k = 0; k < to.shape.rank; k++)
      if (k == d) to.shape.dim[k] += other[i].dim[k];
      else if (other[i].dim[k] != to.shape.dim[k])
        return WRONG(r, "cat: the tensors differ in another dimension than %" PRId64, d);
  const rule_term *arg[2] = {rule_list(a, item, n), rule_int(a, d)};
  return call(r, OP_CAT, arg, 2, &to, out);
}

static iso_code add(reader *r, tensor *x) {
  tensor y;
  if (r->subject != 'o') return WRONG(r, "add is for outputs: leaves are related by layouts");
  iso_code c = expect(r, ",");
  if (!c) c = expression(r, &y);
  if (c) return c;
  if (!rule_shape_eq(&x->what.shape, &y.what.shape) || x->what.dtype != y.what.dtype)
    return WRONG(r, "add: tensors of one shape and dtype are expected");
  const cap_output to = x->what;
  const rule_term *arg[2] = {x->term, y.term};
  return call(r, OP_ADD_TENSOR, arg, 2, &to, x);
}

/* operator: the words of relation files */
static iso_code apply(reader *r, const char *f, tensor *x) {
  if (strcmp(f, "cat") == 0) return cat(r, x);
  static const char *const known[] = {"t",         "transpose", "permute", "reshape",
                                      "unsqueeze", "squeeze",   "slice",   "add"};
  size_t k = 0;
  while (k < 8 && strcmp(known[k], f) != 0) k++;
  if (k == 8)
    return WRONG(r,
                 "\"%.40s\" is none of t, transpose, permute, reshape, unsqueeze, squeeze, slice, "
                 "cat and add",
                 f);
  const iso_code c = expression(r, x);
  if (c) return c;
  switch (k) {
  case 0: return transpose(r, x, true);
  case 1: return transpose(r, x, false);
  case 2: return permute(r, x);
  case 3: return reshape(r, x);
  case 4: return squeeze(r, x, false);
  case 5: return squeeze(r, x, true);
  case 6: return slice(r, x);
  default: return add(r, x);
  }
}

static iso_code expression(reader *r, tensor *out) {
  const char *s;
  bool quoted;
  if (r->depth == MAX_DEPTH) return WRONG(r, "the expression is too deep");
  iso_code c = name(r, &s, &quoted);
  if (c) return c;
  if (quoted || !take(r, "(")) return named(r, s, out);
  r->depth++;
  c = apply(r, s, out);
  if (!c) c = expect(r, ")");
  r->depth--;
  return c;
}

/* ---- lines ---- */

/* Whether two shapes are one but for sizes 1. */
static bool near(const rule_shape *a, const rule_shape *b) {
  uint32_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < a->rank && a->dim[i] == 1) i++;
    while (j < b->rank && b->dim[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dim[i] != b->dim[j]) return false;
  }
}

static iso_code leave_out(reader *r, int side, const char *s) {
  const cap_result *x = find_result(r->graph[side], s);
  if (!x) return WRONG(r, "%s has no output \"%.80s\"", r->graph[side]->path, s);
  const size_t k = (size_t)(x - r->graph[side]->result);
  if (r->used[side][k]) return WRONG(r, "output \"%.80s\" was spoken of before", s);
  relations *o = r->out;
  r->used[side][k] = true;
  if (side == LEFT) r->made[k] = (cap_result){x->name, UINT32_MAX};
  if (!iso_grow(o->noted, o->cap_noted, o->n_noted + 1)) return nomem(r);
  if (!(o->noted[o->n_noted] = iso_arena_printf(&o->arena, "the %s output %s is left out",
                                                side == LEFT ? "left" : "right", s)))
    return nomem(r);
  o->n_noted++;
  return ISO_OK;
}

static bool is_none(const char *s, bool quoted) { return !quoted && strcmp(s, "none") == 0; }

static iso_code output_line(reader *r, const char *left, bool quoted) {
  iso_code c = expect(r, "=");
  if (c) return c;
  blanks(r);
  const char *start = r->at, *right;
  bool in_quotes;
  if (is_none(left, quoted) || (strncmp(start, "none", 4) == 0 && !name_char(start[4]))) {
    if ((c = name(r, &right, &in_quotes))) return c;
    return is_none(left, quoted) ? leave_out(r, RIGHT, right) : leave_out(r, LEFT, left);
  }
  const cap_result *x = find_result(r->graph[LEFT], left);
  if (!x) return WRONG(r, "%s has no output \"%.80s\"", r->graph[LEFT]->path, left);
  const size_t k = (size_t)(x - r->graph[LEFT]->result);
  if (r->used[LEFT][k]) return WRONG(r, "output \"%.80s\" was spoken of before", left);
  r->used[LEFT][k] = true;
  tensor t;
  if ((c = expression(r, &t))) return c;
  const rule_shape *want = &r->graph[LEFT]->node[x->node].output[0].shape;
  char a[128], b[128];
  if (!near(want, &t.what.shape))
    return WRONG(r, "output \"%.80s\" is %s, what it should be equal to is %s", left,
                 rule_shape_print(want, a, sizeof a), rule_shape_print(&t.what.shape, b, sizeof b));
  r->made[k] = (cap_result){x->name, (uint32_t)t.term->u.i};
  size_t n = (size_t)(r->at - start);
  while (n && strchr(" \t\r", start[n - 1])) n--;
  r->text[k] = iso_arena_strndup(&r->out->arena, start, n);
  return r->text[k] ? ISO_OK : nomem(r);
}

/* "input NAME range 0 63 ...": of the side that has it, the left one where both do. */
static iso_code domain_line(reader *r, const char *name_of_input) {
  uint32_t node;
  int side = LEFT;
  iso_error ignored = {0}, *err = r->err;
  r->err = &ignored;
  if (find_leaf(r, side, name_of_input, &node)) side = RIGHT;
  r->err = err;
  const iso_code c = find_leaf(r, side, name_of_input, &node);
  return c ? c : relations_domain(&r->at, r->where, r->graph[side], node, r->err);
}

static iso_code leaf_line(reader *r, const char *left) {
  uint32_t node;
  relations *o = r->out;
  if (r->subject == 'i' && relations_domain_begins(r->at)) return domain_line(r, left);
  iso_code c = find_leaf(r, LEFT, left, &node);
  if (c) return c;
  const bool forbid = take(r, "!=");
  if (!forbid && (c = expect(r, "="))) return c;
  blanks(r);
  const bool none = !forbid && strncmp(r->at, "none", 4) == 0 && !name_char(r->at[4]);
  if (none) r->at += 4;
  tensor t = {0};
  if (!none && (c = expression(r, &t))) return c;
  if (forbid && t.term->kind != RULE_VAR) return WRONG(r, "behind \"!=\" a leaf is expected");
  const cap_kind kind = r->graph[LEFT]->node[node].kind;
  if ((none || forbid) && kind != CAP_PARAMETER && kind != CAP_INPUT)
    return WRONG(r, "\"%.80s\" is no parameter: constants are compared by their values", left);
  for (size_t i = 0; i < o->n_given && !forbid; i++)
    if (o->given[i].left == node && !o->given[i].forbid)
      return WRONG(r, "\"%.80s\" was spoken of before", left);
  if (!iso_grow(o->given, o->cap_given, o->n_given + 1)) return nomem(r);
  o->given[o->n_given++] = (synth_given){node, t.term, forbid, r->where};
  return ISO_OK;
}

static iso_code line(reader *r) {
  const char *word, *left;
  bool quoted;
  blanks(r);
  if (!*r->at) return ISO_OK;
  iso_code c = name(r, &word, &quoted);
  if (c) return c;
  if (quoted || (strcmp(word, "output") && strcmp(word, "input") && strcmp(word, "leaf")))
    return WRONG(r, "a line begins with output, input or leaf");
  r->subject = *word;
  if (!(c = name(r, &left, &quoted)))
    c = *word == 'o' ? output_line(r, left, quoted) : leaf_line(r, left);
  blanks(r);
  return c || !*r->at ? c : WRONG(r, "something stands behind the relation: \"%.40s\"", r->at);
}

/* "#" outside quotes ends a line. */
static void cut_comment(char *s) {
  for (bool quoted = false; *s; s++) {
    quoted ^= *s == '"';
    if ((*s == '#' && !quoted) || *s == '\n') *s = 0;
  }
}

static iso_code read_lines(reader *r, FILE *f, const char *path) {
  char *text = NULL;
  size_t cap = 0;
  ssize_t n;
  iso_code c = ISO_OK;
  for (size_t i = 1; !c && (n = getline(&text, &cap, f)) >= 0; i++) {
    if (!(r->where = iso_arena_printf(&r->out->arena, "%s:%zu", path, i))) c = nomem(r);
    else if (n > MAX_LINE || strlen(text) != (size_t)n) c = WRONG(r, "this is no line of text");
    if (c) break;
    cut_comment(text);
    r->at = text;
    c = line(r);
  }
  if (!c && ferror(f)) c = iso_fail(r->err, ISO_IO, "%s: %s", path, strerror(errno));
  free(text);
  return c;
}

/* ---- the graphs' results ---- */

/* The right result for left result `i`, of which no line spoke: that of its name where all those
 * left have one, else the next. */
static const cap_result *partner(const reader *r, size_t i, bool by_name, size_t *next) {
  const cap_graph *g = r->graph[RIGHT];
  if (by_name) return find_result(g, r->graph[LEFT]->result[i].name);
  while (*next < g->n_results && r->used[RIGHT][*next]) ++*next;
  return *next < g->n_results ? &g->result[(*next)++] : NULL;
}

static bool pair_by_name(const reader *r) {
  for (size_t i = 0; i < r->graph[LEFT]->n_results; i++) {
    if (r->made[i].name) continue;
    const cap_result *x = find_result(r->graph[RIGHT], r->graph[LEFT]->result[i].name);
    if (!x || r->used[RIGHT][x - r->graph[RIGHT]->result]) return false;
  }
  return true;
}

static iso_code set_results(reader *r, const char *path) {
  cap_graph *l = r->graph[LEFT], *g = r->graph[RIGHT];
  size_t n = 0, next = 0, rest = 0, open = 0;
  cap_result *kept = calloc(l->n_results + 1, sizeof *kept),
             *right = calloc(l->n_results + 1, sizeof *right);
  r->out->relation = iso_arena_alloc(&r->out->arena, (l->n_results + 1) * sizeof *r->out->relation);
  iso_code c = kept && right && r->out->relation ? ISO_OK : nomem(r);
  for (size_t i = 0; i < l->n_results; i++) open += !r->made[i].name;
  for (size_t i = 0; i < g->n_results; i++) rest += !r->used[RIGHT][i];
  if (!c && open != rest)
    c = iso_fail(r->err, ISO_USAGE,
                 "%s: it leaves %zu outputs of %s and %zu of %s: they cannot be paired", path, open,
                 l->path, rest, g->path);
  const bool by_name = pair_by_name(r);
  for (size_t i = 0; i < l->n_results && !c; i++) {
    if (r->made[i].name && r->made[i].node == UINT32_MAX) continue;
    const cap_result *x = r->made[i].name ? &r->made[i] : partner(r, i, by_name, &next);
    kept[n] = l->result[i];
    right[n] = (cap_result){l->result[i].name, x->node};
    r->out->relation[n++] = r->made[i].name                      ? r->text[i]
                            : strcmp(x->name, l->result[i].name) ? x->name
                                                                 : NULL;
  }
  if (!c && n == 0) c = iso_fail(r->err, ISO_USAGE, "%s: no output is left to compare", path);
  if (!c) c = cap_set_results(l, kept, n, r->err);
  if (!c) c = cap_set_results(g, right, n, r->err);
  free(kept);
  free(right);
  return c;
}

iso_code relations_load(const char *path, cap_graph *left, cap_graph *right, relations *out,
                        iso_error *err) {
  *out = (relations){0};
  reader r = {.graph = {left, right},
              .out = out,
              .err = err,
              .used = {calloc(left->n_results + 1, 1), calloc(right->n_results + 1, 1)},
              .made = calloc(left->n_results + 1, sizeof *r.made),
              .text = calloc(left->n_results + 1, sizeof *r.text)};
  FILE *f = fopen(path, "re");
  iso_code c = !f ? iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno))
               : r.used[0] && r.used[1] && r.made && r.text ? ISO_OK
                                                            : nomem(&r);
  if (!c) c = read_lines(&r, f, path);
  bool any =
      false; /* about outputs: else the graphs stay as they are, with their ranks' replicas */
  for (size_t i = 0; !c && i < left->n_results; i++) any |= r.used[LEFT][i];
  for (size_t i = 0; !c && i < right->n_results; i++) any |= r.used[RIGHT][i];
  if (!c && any) c = set_results(&r, path);
  if (f) fclose(f);
  free(r.used[0]);
  free(r.used[1]);
  free(r.made);
  free(r.text);
  return c;
}

void relations_free(relations *r) {
  free(r->given);
  free(r->noted);
  iso_arena_fini(&r->arena);
  *r = (relations){0};
}
