/* Leaves that a comparison of the same models made small has related: its relations are carried
 * over to leaves of other layers and sizes, by their names. Where a checkpoint is at hand the
 * elements are compared; else the leaves are one by name alone, and listed so. */
#include "synth/unrun/unrun.h"
#include "synth/joint/joint.h"
#include "rules/names.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- names that differ in their numbers ---- */

enum { MAX_NUMBERS = 8, MAX_DIGITS = 12 };
typedef struct numbers { /* which number stands for which */
  size_t n;
  char from[MAX_NUMBERS][MAX_DIGITS], to[MAX_NUMBERS][MAX_DIGITS];
} numbers;

/* The number at the beginning of `s`. Returns: its length; 0: there is none, or it is too long. */
static size_t number(const char *s, char out[MAX_DIGITS]) {
  size_t n = 0;
  while (isdigit((unsigned char)s[n]) && n < MAX_DIGITS) n++;
  if (n == MAX_DIGITS) return 0;
  memcpy(out, s, n);
  out[n] = 0;
  return n;
}

static bool stands_for(numbers *m, const char *from, const char *to) {
  for (size_t i = 0; i < m->n; i++)
    if (strcmp(m->from[i], from) == 0) return strcmp(m->to[i], to) == 0;
  if (m->n == MAX_NUMBERS) return false;
  memcpy(m->from[m->n], from, strlen(from) + 1);
  memcpy(m->to[m->n++], to, strlen(to) + 1);
  return true;
}

/* Whether `name` is `pattern` with other numbers, one for each. */
static bool fits(const char *pattern, const char *name, numbers *m) {
  char a[MAX_DIGITS], b[MAX_DIGITS];
  m->n = 0;
  while (*pattern && *name) {
    const size_t x = number(pattern, a), y = number(name, b);
    if (!x != !y || (x ? !stands_for(m, a, b) : *pattern != *name)) return false;
    pattern += x ? x : 1;
    name += y ? y : 1;
  }
  return *pattern == *name;
}

/* `name` with the numbers that stand for its own. NULL: out of memory. */
static const char *renamed(const numbers *m, const char *name, iso_arena *a) {
  char *out = iso_arena_alloc(a, strlen(name) * MAX_DIGITS + 1), *at = out, x[MAX_DIGITS];
  while (out && *name) {
    const size_t n = number(name, x);
    const char *put = NULL;
    for (size_t i = 0; i < m->n && n; i++)
      if (strcmp(m->from[i], x) == 0) put = m->to[i];
    const size_t length = put ? strlen(put) : n ? n : 1;
    memcpy(at, put ? put : name, length);
    at += length;
    name += n ? n : 1;
  }
  if (out) *at = 0;
  return out;
}

/* ---- the elements of a layout ---- */

/* A run of elements along the last dimension, as they lie in one leaf. */
typedef struct run {
  const rule_tensor *leaf;
  int64_t at, stride, n;
} run;

static bool literal(const rule_term *t, int64_t *out) {
  return t->kind == RULE_INT && (*out = t->u.i, true);
}

/* A dimension, of `rank` ones, that a call names. */
static bool dimension(const rule_term *t, uint32_t rank, uint32_t *out) {
  int64_t d;
  if (!literal(t, &d)) return false;
  if (d < 0) d += rank;
  *out = (uint32_t)d;
  return d >= 0 && d < rank;
}

/* Whether a call only moves dimensions; from[d]: which of its argument's is its dimension d. */
static bool turned(const rule_term *t, uint32_t rank, uint32_t from[RULE_MAX_RANK]) {
  uint32_t k[2] = {0, 1}, seen = 0;
  if (t->kind != RULE_OP) return false;
  if (strcmp(t->u.s, OP_PERMUTE) == 0) {
    if (t->n != 2 || t->child[1]->kind != RULE_LIST || t->child[1]->n != rank) return false;
    for (uint32_t d = 0; d < rank; d++) {
      if (!dimension(t->child[1]->child[d], rank, &from[d]) || seen & 1u << from[d]) return false;
      seen |= 1u << from[d];
    }
    return true;
  }
  if (strcmp(t->u.s, OP_TRANSPOSE_INT) == 0) {
    if (t->n != 3 || !dimension(t->child[1], rank, &k[0]) || !dimension(t->child[2], rank, &k[1]))
      return false;
  } else if (strcmp(t->u.s, OP_T) != 0 || rank != 2) {
    return false;
  }
  for (uint32_t d = 0; d < rank; d++) from[d] = d == k[0] ? k[1] : d == k[1] ? k[0] : d;
  return true;
}

static bool joined(const rule_term *t, int64_t *dim) {
  return t->kind == RULE_OP && strcmp(t->u.s, OP_CAT) == 0 && t->n > 0 &&
         t->child[0]->kind == RULE_LIST && t->child[0]->n > 0 &&
         (t->n < 2 ? (*dim = 0, true) : literal(t->child[1], dim)) && *dim >= 0;
}

/* The shape of a layout of leaves; false: it is none that is known here. */
static bool shape_of(const synth_graph *g, const rule_term *t, rule_shape *out, rule_dtype *dtype) {
  int64_t dim;
  uint32_t from[RULE_MAX_RANK];
  if (t->kind == RULE_VAR) {
    *out = g->node[t->u.i].shape;
    *dtype = g->node[t->u.i].dtype;
    return true;
  }
  if (joined(t, &dim)) {
    for (uint32_t k = 0; k < t->child[0]->n; k++) {
      rule_shape one;
      rule_dtype type;
      if (!shape_of(g, t->child[0]->child[k], &one, &type) || dim >= one.rank) return false;
      if (k == 0) {
        *out = one, *dtype = type;
        continue;
      }
      if (type != *dtype || one.rank != out->rank) return false;
      for (uint32_t i = 0; i < one.rank; i++)
        if (i != dim && one.dim[i] != out->dim[i]) return false;
      out->dim[dim] += one.dim[dim];
    }
    return true;
  }
  rule_shape was;
  if (t->kind != RULE_OP || t->n == 0 || !shape_of(g, t->child[0], &was, dtype) ||
      !turned(t, was.rank, from))
    return false;
  *out = was;
  for (uint32_t d = 0; d < was.rank; d++) out->dim[d] = was.dim[from[d]];
  return true;
}

/* The elements of `t` at `index`, and as many behind it along dimension `along` as lie evenly in
 * one leaf. Requires: t has a shape. */
static run run_at(const synth_graph *g, const rule_term *t, int64_t *index, uint32_t along) {
  rule_shape shape = {0};
  rule_dtype dtype;
  int64_t dim, inner[RULE_MAX_RANK];
  uint32_t from[RULE_MAX_RANK];
  if (t->kind == RULE_VAR) {
    const synth_node *n = &g->node[t->u.i];
    run r = {.leaf = n->value[0], .stride = 1, .n = n->shape.dim[along] - index[along]};
    for (uint32_t i = 0; i < n->shape.rank; i++) {
      r.at = r.at * n->shape.dim[i] + index[i];
      if (i > along) r.stride *= n->shape.dim[i];
    }
    return r;
  }
  if (joined(t, &dim)) {
    const int64_t whole = index[dim];
    uint32_t k = 0;
    for (; shape_of(g, t->child[0]->child[k], &shape, &dtype) && index[dim] >= shape.dim[dim]; k++)
      index[dim] -= shape.dim[dim];
    const run r = run_at(g, t->child[0]->child[k], index, along);
    index[dim] = whole;
    return r;
  }
  shape_of(g, t->child[0], &shape, &dtype);
  turned(t, shape.rank, from);
  for (uint32_t d = 0; d < shape.rank; d++) inner[from[d]] = index[d];
  return run_at(g, t->child[0], inner, from[along]);
}

static bool same_run(const run *r, const char *with, size_t size) {
  const char *from = (const char *)r->leaf->data + (size_t)r->at * size;
  if (r->stride == 1) return memcmp(from, with, (size_t)r->n * size) == 0;
  for (int64_t i = 0; i < r->n; i++)
    if (memcmp(from + (size_t)(i * r->stride) * size, with + (size_t)i * size, size) != 0)
      return false;
  return true;
}

/* Asks for `n` bytes of either side from byte `at` of `leaf` on, where they are in one order. */
static void read_both(const run *r, const rule_tensor *leaf, size_t at, size_t size, size_t n) {
  const size_t all = (size_t)leaf->numel * size, part = (size_t)r->leaf->numel * size,
               from = (size_t)r->at * size;
  if (all - at > n / 2) st_read_soon((const char *)leaf->data + at, all - at < n ? all - at : n);
  if (r->stride == 1 && part - from > n / 2)
    st_read_soon((const char *)r->leaf->data + from, part - from < n ? part - from : n);
}

/* Whether a leaf's elements are those of the layout `t` of leaves of `g`. */
static bool same_elements(state *s, const synth_graph *g, const rule_term *t,
                          const rule_tensor *leaf) {
  enum { PART = 1 << 26, AHEAD = 1 << 24 };
  const size_t size = rule_dtype_size(leaf->dtype);
  const uint32_t rank = leaf->shape.rank;
  int64_t index[RULE_MAX_RANK] = {0};
  size_t read = 0, asked = 1; /* behind the first run, which may differ: what was asked for */
  if (rank == 0) return false;
  for (int64_t at = 0; at < leaf->numel;) {
    const run r = run_at(g, t, index, rank - 1);
    if ((size_t)at * size >= asked) {
      read_both(&r, leaf, (size_t)at * size, size, AHEAD);
      asked += AHEAD / 2;
    }
    if (!same_run(&r, (const char *)leaf->data + (size_t)at * size, size)) return false;
    at += r.n;
    index[rank - 1] += r.n;
    for (uint32_t d = rank; d-- > 1 && index[d] == leaf->shape.dim[d];)
      index[d] = 0, index[d - 1]++;
    if ((read += (size_t)r.n * size) >= PART && s->o->idle) s->o->idle(s->o->ctx), read = 0;
  }
  return true;
}

static bool have_values(const synth_graph *g, const rule_term *t) {
  if (t->kind == RULE_VAR) return g->node[t->u.i].value[0] != NULL;
  for (uint32_t k = 0; k < t->n; k++)
    if (!have_values(g, t->child[k])) return false;
  return true;
}

/* ---- said of a leaf ---- */

static int64_t parameter(const synth_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_PARAMETER && strcmp(g->node[i].name, name) == 0) return (int64_t)i;
  return -1;
}

/* The hint's term over nodes of `g`; NULL in `out` where one has not such a leaf. */
static iso_code over_nodes(state *s, const synth_graph *g, const synth_hint *h, const numbers *m,
                           const rule_term *t, const rule_term **out, iso_error *err) {
  *out = t;
  if (t->kind == RULE_VAR) {
    const char *name = renamed(m, h->name[t->u.i], &s->arena);
    const int64_t node = name ? parameter(g, name) : -1;
    *out = node >= 0 ? rule_var(&s->arena, (uint32_t)node) : NULL;
    return name && (node < 0 || *out) ? ISO_OK : nomem(err);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return ISO_OK;
  const rule_term **child = iso_arena_alloc(&s->arena, (t->n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : nomem(err);
  for (uint32_t k = 0; k < t->n && !c; k++) {
    c = over_nodes(s, g, h, m, t->child[k], &child[k], err);
    if (!c && !child[k]) return *out = NULL, ISO_OK;
  }
  if (c) return c;
  *out = t->kind == RULE_OP ? rule_op(&s->arena, t->u.s, child, t->n)
                            : rule_list(&s->arena, child, t->n);
  return *out ? ISO_OK : nomem(err);
}

static iso_code join(state *s, int side, size_t i, const rule_term *term, bool compared,
                     iso_error *err) {
  const eg_node e = s->map[side][i], none = {EG_NONE};
  eg_node def;
  iso_code c = st_add_term(s, term, s->map[!side], &def, err);
  if (c) return c;
  const rule_term *first = term;
  while (first->kind != RULE_VAR) first = first->child[0];
  const char *text = iso_arena_printf(
      &s->arena, "%s's %s is %s of the other side's %s%s, as of the pair that was learned from, %s",
      side == LEFT ? "left" : "right", s->graph[side]->node[i].name,
      term->kind == RULE_VAR ? "all" : "a layout", s->graph[!side]->node[first->u.i].name,
      term->kind == RULE_VAR ? "" : " and perhaps others",
      compared ? "element for element" : "by name, not compared");
  const eg_node l = side == LEFT ? e : term->kind == RULE_VAR ? def : none;
  const eg_node r = side == RIGHT ? e : term->kind == RULE_VAR ? def : none;
  if (!text || !st_assume(s, RULE_ASSUMES_LEAF, l, r, NULL, text)) return nomem(err);
  s->rec[e.i].atom = false;
  s->res->n_by_name += !compared;
  return st_merge(s, e, def, WHY_LEAF, (uint32_t)(s->assumed.n - 1), err);
}

/* How many numbers of a leaf's name are others than the hint's; SIZE_MAX: it does not fit. */
static size_t others(const synth_hint *h, int side, const char *name, numbers *m) {
  size_t n = 0;
  if (h->right != (side == RIGHT) || !fits(h->leaf, name, m)) return SIZE_MAX;
  for (size_t i = 0; i < m->n; i++) n += strcmp(m->from[i], m->to[i]) != 0;
  return n;
}

/* The hint's relation of leaf `n`. NULL: none, for it has other leaves or shapes. */
static iso_code said_by(state *s, const synth_hint *h, int side, const synth_node *n,
                        const rule_term **term, iso_error *err) {
  const synth_graph *other = s->graph[!side];
  rule_shape shape = {0};
  rule_dtype dtype;
  numbers m;
  *term = NULL;
  if (others(h, side, n->name, &m) == SIZE_MAX) return ISO_OK;
  const iso_code c = over_nodes(s, other, h, &m, h->term, term, err);
  if (!c && *term &&
      (!shape_of(other, *term, &shape, &dtype) || dtype != n->dtype ||
       !rule_shape_eq(&shape, &n->shape)))
    *term = NULL;
  return c;
}

/* Leaf i of `side`, by the hints with the fewest other numbers: a hint for w3 is not used for w1,
 * where there is one for w1. Where two of these disagree there is no hint: layers.0.u = experts.0.w
 * does not tell which 0 was the layer's. */
static iso_code hinted(state *s, int side, size_t i, iso_error *err) {
  const synth_node *n = &s->graph[side]->node[i];
  const synth_graph *other = s->graph[!side];
  const rule_term *term = NULL;
  size_t least = SIZE_MAX;
  numbers m;
  for (size_t k = 0; k < s->o->n_hints; k++) {
    const size_t x = others(&s->o->hint[k], side, n->name, &m);
    if (x < least) least = x;
  }
  for (size_t k = 0; k < s->o->n_hints && least != SIZE_MAX; k++) {
    const rule_term *own;
    if (others(&s->o->hint[k], side, n->name, &m) != least) continue;
    const iso_code c = said_by(s, &s->o->hint[k], side, n, &own, err);
    if (c || !own || (term && !rule_term_eq(term, own))) return c;
    term = own;
  }
  if (!term) return ISO_OK;
  const bool valued = have_values(other, term) && n->value[0];
  if (valued && !same_elements(s, other, term, n->value[0])) return ISO_OK;
  return join(s, side, i, term, valued, err);
}

iso_code st_join_hinted(state *s, const bool *const live[2], iso_error *err) {
  iso_code c = ISO_OK;
  for (int side = RIGHT; side >= LEFT && s->o->n_hints; side--)
    for (size_t i = 0; i < s->graph[side]->n_nodes && !c; i++)
      if (live[side][i] && s->graph[side]->node[i].kind == SYNTH_PARAMETER)
        c = hinted(s, side, i, err);
  return c;
}

/* ---- from a certificate ---- */

typedef struct source { /* what hints are made of, and where they live */
  const synth_certificate *cert;
  const synth_graph *g[2];
  iso_arena *a;
  iso_error *err;
} source;

static iso_code spelled(const source *x, const rule_term *t, synth_hint *h, const rule_term **out);

static iso_code spelled_leaf(const source *x, const synth_cert_term *of, synth_hint *h,
                             const rule_term **out) {
  enum { MAX_LEAVES = 64 };
  const synth_node *n = &x->g[of->right]->node[of->node];
  *out = NULL;
  if (of->right == h->right || n->kind != SYNTH_PARAMETER || h->n_names == MAX_LEAVES)
    return ISO_OK;
  if (!h->name && !(h->name = iso_arena_alloc(x->a, MAX_LEAVES * sizeof *h->name)))
    return nomem(x->err);
  const char **at = (const char **)(uintptr_t)&h->name[h->n_names];
  if (!(*at = iso_arena_strdup(x->a, n->name)) || !(*out = rule_var(x->a, (uint32_t)h->n_names)))
    return nomem(x->err);
  h->n_names++;
  return ISO_OK;
}

/* A term of the certificate over the other side's leaves. NULL in `out`: it is none. */
static iso_code spelled(const source *x, const rule_term *t, synth_hint *h, const rule_term **out) {
  if (t->kind == RULE_VAR) {
    const synth_cert_term *of = &x->cert->term[t->u.i];
    return of->call ? spelled(x, of->call, h, out) : spelled_leaf(x, of, h, out);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST)
    return (*out = rule_term_copy(x->a, t)) ? ISO_OK : nomem(x->err);
  const rule_term **child = iso_arena_alloc(x->a, (t->n + 1) * sizeof *child);
  if (!child) return nomem(x->err);
  for (uint32_t k = 0; k < t->n; k++) {
    const iso_code c = spelled(x, t->child[k], h, &child[k]);
    if (c) return c;
    if (!child[k]) return *out = NULL, ISO_OK;
  }
  const char *op = t->kind == RULE_OP ? iso_arena_strdup(x->a, t->u.s) : NULL;
  *out = t->kind == RULE_LIST ? rule_list(x->a, child, t->n)
         : op                 ? rule_op(x->a, op, child, t->n)
                              : NULL;
  return *out ? ISO_OK : nomem(x->err);
}

/* parameters: the two graphs, their result, and where the hints live. */
iso_code synth_hints(const synth_graph *left, const synth_graph *right, const synth_result *r,
                     iso_arena *a, const synth_hint **out, size_t *n, iso_error *err) {
  const synth_certificate *cert = r->certificate;
  const source x = {cert, {left, right}, a, err};
  *out = NULL;
  *n = 0;
  if (!cert || cert->missing) return ISO_OK;
  synth_hint *hint = iso_arena_alloc(a, (cert->n_steps + 1) * sizeof *hint);
  if (!hint) return nomem(err);
  for (size_t i = 0; i < cert->n_steps; i++) {
    const synth_cert_term *leaf = &cert->term[cert->step[i].a];
    const rule_term *var = rule_var(a, cert->step[i].b);
    if (!var) return nomem(err);
    if (cert->step[i].kind != SYNTH_CERT_LEAF || leaf->call) continue;
    const synth_node *l = &x.g[leaf->right]->node[leaf->node];
    if (l->kind != SYNTH_PARAMETER) continue;
    synth_hint h = {.right = leaf->right, .leaf = iso_arena_strdup(a, l->name)};
    const iso_code c = h.leaf ? spelled(&x, var, &h, &h.term) : nomem(err);
    if (c) return c;
    if (h.term) hint[(*n)++] = h;
  }
  *out = hint;
  return ISO_OK;
}
