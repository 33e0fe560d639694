/* The nodes of several calls in one graph. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/calls/calls_int.h"
#include "rules/names.h"

static iso_code no_memory(const chain *x) { return cap_no_memory(x->err); }
static const char *path_of(const chain *x, size_t k) { return x->g[k]->path; }

/* A name that `taken` does not have: as it is, or that of a later call. */
static iso_code own_name(const chain *x, size_t k, cap_names *taken, const char **name) {
  const char *own =
      cap_names_find(taken, *name) == CAP_NO_INDEX ? *name : calls_later(x, k ? k : 1, *name);
  for (size_t i = 1; own && cap_names_find(taken, own) != CAP_NO_INDEX; i++)
    own = iso_arena_printf(x->a, "%s_%zu", calls_later(x, k ? k : 1, *name), i);
  if (!own || !cap_names_add(taken, own, x->n_nodes)) return no_memory(x);
  *name = own;
  return ISO_OK;
}

static iso_code add(chain *x, size_t k, cap_node node, rule_tensor *const *value, uint32_t *at) {
  if (!(node.id = calls_later(x, k, node.id))) return no_memory(x);
  const iso_code c = own_name(x, k, &x->ids, &node.id);
  if (c) return c;
  if (!x->scale) node.size = NULL, node.dim = NULL, node.sized = NULL;
  *at = (uint32_t)x->n_nodes;
  x->node[x->n_nodes++] = (cap_new_node){node, value};
  return ISO_OK;
}

/* A node of call `k` with the sizes of all. */
static iso_code translate_sizes(chain *x, size_t k, cap_node *n) {
  const uint32_t rank = n->output[0].shape.rank;
  const rule_term **dim = iso_arena_alloc(x->a, (rank + 1) * sizeof *dim);
  const char **text = iso_arena_alloc(x->a, (rank + 1) * sizeof *text);
  if (!dim || !text) return no_memory(x);
  for (uint32_t d = 0; d < rank; d++) {
    text[d] = NULL;
    if (!(dim[d] = calls_translate(x, k, n->dim[d]))) return no_memory(x);
    if (n->size && n->size[d] && !(text[d] = calls_text(x, k, n->size[d]))) return no_memory(x);
  }
  if (n->sized && !(n->sized = calls_translate(x, k, n->sized))) return no_memory(x);
  n->dim = dim;
  if (n->size) n->size = text;
  return ISO_OK;
}

iso_code calls_add_operator(chain *x, const char *id, const rule_term *call, const calls_made *made,
                            uint32_t *node) {
  cap_output *out = iso_arena_alloc(x->a, sizeof *out);
  if (!out || !call) return no_memory(x);
  *out = made->what;
  cap_node n = cap_operator_node(id, call, out, 1);
  n.dim = made->dim, n.sized = made->sized;
  return add(x, 0, n, NULL, node);
}

/* ---- inputs that are state ---- */

static iso_code hand_over(chain *x, size_t k, uint32_t i, size_t from, size_t result) {
  const cap_node *n = &x->g[k]->node[i];
  const uint32_t at = x->g[from]->result[result].node;
  const cap_output *have = &x->g[from]->node[at].output[0], *want = &n->output[0];
  x->used[from][result] = true;
  x->to[k][i] = x->to[from][at];
  if (have->dtype == want->dtype && rule_shape_eq(&have->shape, &want->shape)) return ISO_OK;
  char a[128], b[128];
  return iso_fail(x->err, ISO_USAGE,
                  "%s: input %.80s is %s %s, and an output of %s before it %s %s", path_of(x, k),
                  n->name, rule_dtype_name(want->dtype),
                  rule_shape_print(&want->shape, a, sizeof a), path_of(x, from),
                  rule_dtype_name(have->dtype), rule_shape_print(&have->shape, b, sizeof b));
}

/* ---- inputs that the other side reads as one ---- */

/* NULL at other sizes than those captured. */
static rule_tensor *input_of(const chain *x, size_t k, uint32_t i, size_t set) {
  return x->moved ? NULL : x->g[k]->input[set * x->g[k]->n_nodes + i];
}

static rule_tensor *value_of(const chain *x, const calls_parts *p, size_t i, size_t set) {
  return input_of(x, p->call[i], p->node[i], set);
}

/* The elements of a part into, or against, those of the whole, from place `at` of the dimension on.
 * Returns: false where they are others. */
static bool place(const calls_parts *p, const rule_tensor *part, rule_tensor *whole, int64_t at,
                  bool write) {
  size_t block = rule_dtype_size(whole->dtype), n = 1;
  for (uint32_t d = p->along; d < p->whole.rank; d++) block *= (size_t)part->shape.dim[d];
  for (uint32_t d = 0; d < p->along; d++) n *= (size_t)p->whole.dim[d];
  if (block == 0) return true;
  const size_t unit = block / (size_t)part->shape.dim[p->along],
               row = unit * (size_t)p->whole.dim[p->along];
  bool same = true;
  for (size_t i = 0; i < n; i++) {
    char *to = (char *)whole->data + i * row + (size_t)at * unit;
    const char *from = (const char *)part->data + i * block;
    if (write) memcpy(to, from, block);
    else same &= memcmp(to, from, block) == 0;
  }
  return same;
}

/* The whole's value in one set. */
static iso_code join_values(chain *x, const calls_parts *p, size_t set, rule_tensor **out) {
  rule_tensor *last = value_of(x, p, p->n - 1, set);
  int64_t at = 0;
  iso_code c = ISO_OK;
  *out = NULL;
  if (!last) return ISO_OK;
  if (p->way == CALLS_BEHIND) c = rule_tensor_new(last->dtype, &p->whole, out, x->err);
  else *out = rule_tensor_ref(last);
  for (size_t i = 0; i < p->n && !c; i++) {
    const rule_tensor *part = value_of(x, p, i, set);
    if (p->way == CALLS_BEHIND) {
      place(p, part, *out, at, true);
      at += part->shape.dim[p->along];
    } else if (p->way == CALLS_SAME ? !rule_tensor_same(part, *out)
                                    : !place(p, part, *out, 0, false)) {
      c = iso_fail(x->err, ISO_USAGE, "%s: input %.80s has other values than in %s",
                   path_of(x, p->call[i]), p->name, path_of(x, p->call[p->n - 1]));
    }
  }
  x->made[x->n_made++] = *out;
  return c;
}

/* The domain of the whole: what all parts have in common of single numbers. */
static const rule_domain *join_domains(const chain *x, const calls_parts *p) {
  const rule_domain *d = x->g[p->call[0]]->node[p->node[0]].domain;
  bool keep = d && (p->way == CALLS_SAME || !rule_domain_is_joint(d));
  for (size_t i = 1; i < p->n; i++)
    keep &= rule_domain_same(d, x->g[p->call[i]]->node[p->node[i]].domain);
  return keep ? d : NULL;
}

/* As the other side writes them. */
static iso_code whole_sizes(chain *x, const calls_parts *p, cap_node *n) {
  const rule_term **dim = iso_arena_alloc(x->a, (p->whole.rank + 1) * sizeof *dim);
  const char **text = iso_arena_alloc(x->a, (p->whole.rank + 1) * sizeof *text);
  if (!dim || !text) return no_memory(x);
  for (uint32_t d = 0; d < p->whole.rank; d++) {
    text[d] = p->text[d] ? iso_arena_strdup(x->a, p->text[d]) : NULL;
    if (!(dim[d] = rule_term_copy(x->a, p->dim[d])) || (p->text[d] && !text[d]))
      return no_memory(x);
  }
  n->dim = dim, n->size = text;
  return ISO_OK;
}

static iso_code add_whole(chain *x, const calls_parts *p, uint32_t *node) {
  cap_node n = x->g[p->call[0]]->node[p->node[0]];
  cap_output *out = iso_arena_alloc(x->a, sizeof *out);
  rule_tensor **value = iso_arena_alloc(x->a, x->g[0]->n_sets * sizeof *value);
  if (!out || !value) return no_memory(x);
  *out = (cap_output){p->whole, n.output[0].dtype};
  n.output = out;
  const iso_code sized = x->scale ? whole_sizes(x, p, &n) : ISO_OK;
  if (sized) return sized;
  n.domain = join_domains(x, p);
  for (size_t set = 0; set < x->g[0]->n_sets; set++) {
    const iso_code c = join_values(x, p, set, &value[set]);
    if (c) return c;
  }
  if (!cap_names_add(&x->inputs, n.name, x->n_nodes)) return no_memory(x);
  return add(x, 0, n, value, node);
}

static iso_code say_parts(chain *x, const calls_parts *p) {
  const char *line =
      iso_arena_printf(x->a, "input %.80s is read in parts by %zu calls", p->name, p->n);
  if (p->way == CALLS_SAME) return ISO_OK;
  int64_t at = 0;
  for (size_t i = 0; i < p->n && line; i++) {
    const int64_t n = x->g[p->call[i]]->node[p->node[i]].output[0].shape.dim[p->along];
    line = iso_arena_printf(x->a, "%s%s %" PRId64 ":%" PRId64, line, i ? "," : ":", at, at + n);
    if (p->way == CALLS_BEHIND) at += n;
  }
  return line ? calls_say(x, iso_arena_printf(x->a, "%s of dimension %u", line, p->along))
              : no_memory(x);
}

/* Places `begin` to `end` of the whole. NULL: no memory. */
static const rule_term *part_of(chain *x, const calls_parts *p, uint32_t whole,
                                const rule_term *begin, const rule_term *end) {
  const rule_term *child[] = {rule_var(x->a, whole), rule_int(x->a, p->along), begin, end, x->one};
  for (size_t j = 0; j < 5; j++)
    if (!child[j]) return NULL;
  return rule_op(x->a, OP_SLICE_TENSOR, child, 5);
}

/* What call number `i` of them reads of the whole from place `at` on; `from`: the place as a size,
 * moved behind it. */
static iso_code add_part(chain *x, const calls_parts *p, size_t i, uint32_t whole, int64_t at,
                         const rule_term **from) {
  const uint32_t k = p->call[i];
  cap_node n = x->g[k]->node[p->node[i]];
  const int64_t end = at + n.output[0].shape.dim[p->along];
  calls_made made = {.what = n.output[0]};
  if (x->scale) {
    const iso_code c = translate_sizes(x, k, &n);
    if (c) return c;
    const rule_term *to = calls_sum(x, *from, n.dim[p->along]);
    made.dim = n.dim;
    made.sized = to ? part_of(x, p, whole, *from, to) : NULL;
    if (!made.sized) return no_memory(x);
    if (p->way == CALLS_BEHIND) *from = to;
  }
  const char *id = calls_later(x, k, n.id);
  id = id ? iso_arena_printf(x->a, "%s_part", id) : NULL;
  if (!id) return no_memory(x);
  const rule_term *call = part_of(x, p, whole, rule_int(x->a, at), rule_int(x->a, end));
  return calls_add_operator(x, id, call, &made, &x->to[k][p->node[i]]);
}

/* Parts of one input: it, and what each call reads of it. */
static iso_code add_parts(chain *x, const calls_parts *p) {
  uint32_t whole;
  int64_t at = 0;
  const rule_term *from = rule_int(x->a, 0);
  iso_code c = from ? add_whole(x, p, &whole) : no_memory(x);
  for (size_t i = 0; i < p->n && !c; i++) {
    const bool all = p->way == CALLS_SAME || (p->way == CALLS_GROWING && i + 1 == p->n);
    const rule_shape *own = &x->g[p->call[i]]->node[p->node[i]].output[0].shape;
    if (all) x->to[p->call[i]][p->node[i]] = whole;
    else c = add_part(x, p, i, whole, at, &from);
    if (p->way == CALLS_BEHIND) at += own->dim[p->along];
  }
  return c ? c : say_parts(x, p);
}

static iso_code unfit(const chain *x, const calls_parts *p) {
  char a[128], b[128], w[128];
  const rule_shape *first = &x->g[p->call[0]]->node[p->node[0]].output[0].shape,
                   *last = &x->g[p->call[p->n - 1]]->node[p->node[p->n - 1]].output[0].shape;
  return iso_fail(x->err, ISO_USAGE,
                  "%s: input %.80s is %s in the first call and %s in the last, which do not make "
                  "up the %s of %s",
                  path_of(x, p->call[p->n - 1]), p->name, rule_shape_print(first, a, sizeof a),
                  rule_shape_print(last, b, sizeof b), rule_shape_print(&p->whole, w, sizeof w),
                  x->other->path);
}

static iso_code add_plain_input(chain *x, size_t k, uint32_t i) {
  const size_t n_sets = x->g[0]->n_sets;
  cap_node n = x->g[k]->node[i];
  rule_tensor **value = iso_arena_alloc(x->a, n_sets * sizeof *value);
  if (!value) return no_memory(x);
  for (size_t set = 0; set < n_sets; set++) value[set] = input_of(x, k, i, set);
  iso_code c = x->scale ? translate_sizes(x, k, &n) : ISO_OK;
  if (!c) c = own_name(x, k, &x->inputs, &n.name);
  return c ? c : add(x, k, n, value, &x->to[k][i]);
}

static iso_code add_input(chain *x, size_t k, uint32_t i) {
  const cap_node *n = &x->g[k]->node[i];
  size_t from, result;
  if (x->to[k][i] != CALLS_NOWHERE) return ISO_OK; /* with an earlier call's */
  if (calls_source(x, k, n->name, &from, &result)) return hand_over(x, k, i, from, result);
  calls_parts p = calls_inputs(x, n->name);
  const int64_t whole = x->other ? calls_input(x->other, n->name) : -1;
  if (p.n >= 2 && whole < 0 && x->other) {
    const iso_code c = calls_settle_places(x, &p);
    if (c || p.way == CALLS_BEHIND) return c ? c : add_parts(x, &p);
  }
  if (p.n < 2 || whole < 0) return add_plain_input(x, k, i);
  calls_settle_way(x, &p, (uint32_t)whole);
  return p.way == CALLS_APART ? unfit(x, &p) : add_parts(x, &p);
}

/* ---- other nodes ---- */

static iso_code same_leaf(chain *x, size_t k, uint32_t i, bool *done) {
  const cap_node *n = &x->g[k]->node[i];
  const size_t at = cap_names_find(&x->weights, n->name);
  *done = false;
  if (at == CAP_NO_INDEX) return ISO_OK;
  const cap_new_node *m = &x->node[at];
  const rule_tensor *have = m->value[0];
  const bool alike = m->node.kind == n->kind && cap_same_outputs(&m->node, n);
  *done = alike && (!have || !n->value ? !have && !n->value : rule_tensor_same(have, n->value));
  if (*done) x->to[k][i] = (uint32_t)at;
  if (*done || n->kind != CAP_PARAMETER) return ISO_OK;
  return iso_fail(x->err, ISO_USAGE, "%s: parameter %.80s is another one than in %s", path_of(x, k),
                  n->name, path_of(x, 0));
}

static iso_code add_leaf(chain *x, size_t k, uint32_t i) {
  cap_node n = x->g[k]->node[i];
  bool done;
  iso_code c = same_leaf(x, k, i, &done);
  if (c || done) return c;
  rule_tensor **value = iso_arena_alloc(x->a, sizeof *value);
  if (!value) return no_memory(x);
  *value = n.value;
  c = x->scale ? translate_sizes(x, k, &n) : ISO_OK;
  if (!c) c = own_name(x, k, &x->weights, &n.name);
  return c ? c : add(x, k, n, value, &x->to[k][i]);
}

static iso_code add_call(chain *x, size_t k, uint32_t i) {
  cap_node n = x->g[k]->node[i];
  const iso_code c = x->scale ? translate_sizes(x, k, &n) : ISO_OK;
  if (c) return c;
  n.call = cap_renumber(x->a, n.call, x->to[k]);
  return n.call ? add(x, k, n, NULL, &x->to[k][i]) : no_memory(x);
}

/* A leaf that an earlier call writes to holds what no output says. */
static iso_code refuse_written(const chain *x, size_t k, const cap_node *n) {
  for (size_t j = 0; j < k; j++)
    for (size_t w = 0; w < x->g[j]->n_written; w++)
      if (strcmp(x->g[j]->written[w], n->name) == 0)
        return iso_fail(x->err, ISO_USAGE,
                        "%s writes to %.80s, which %s reads: capture its new value as an output, "
                        "and as an input of the next call",
                        path_of(x, j), n->name, path_of(x, k));
  return ISO_OK;
}

static iso_code add_all(chain *x, size_t k) {
  const cap_graph *g = x->g[k];
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < g->n_nodes && !c; i++) {
    const cap_node *n = &g->node[i];
    if (n->kind == CAP_OP) c = add_call(x, k, i);
    else if (n->kind == CAP_INPUT) c = add_input(x, k, i);
    else c = refuse_written(x, k, n);
    if (!c && n->kind != CAP_OP && n->kind != CAP_INPUT) c = add_leaf(x, k, i);
  }
  if (c || k == 0) return c;
  for (size_t r = 0; r < x->g[k - 1]->n_results; r++)
    if (x->used[k - 1][r]) return ISO_OK;
  return iso_fail(x->err, ISO_USAGE, "%s: no input of it has the name of an output of %s",
                  path_of(x, k), path_of(x, k - 1));
}

iso_code calls_add_nodes(chain *x) {
  size_t most = 0;
  for (size_t k = 0; k < x->n; k++) most += 2 * x->g[k]->n_nodes + x->g[k]->n_results + 1;
  if (most >= INT32_MAX) return iso_fail(x->err, ISO_LIMIT, "%s: too many nodes", path_of(x, 0));
  x->node = calloc(most, sizeof *x->node);
  x->made = calloc(most * x->g[0]->n_sets, sizeof *x->made);
  if (!x->node || !x->made) return no_memory(x);
  iso_code c = ISO_OK;
  for (size_t k = 0; k < x->n && !c; k++) c = add_all(x, k);
  return c;
}
