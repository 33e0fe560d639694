/* With several ranks: the one change of a collective that mends the difference. A collective that
 * reduces in another way, takes other tensors or the same one twice, or that is not there at all is
 * far from where values first differ: the steps between may be the ranks' own, of which the other
 * graph has none. So collectives of the region are changed one at a time, the rest is run on, and
 * the change that makes the outputs right is the explanation. */
#include "localise/alignment.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "synth/joint/joint.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { AT_LEAST = 400000, RUNS = 24, MAX_LIST = 64 };

typedef struct mend {
  parting *p;
  const synth_graph *g; /* the right one */
  iso_arena arena;
  rule_tensor **bind, **instead; /* by node: what it is, what it should be */
  rule_tensor **owned;           /* of bind, what was computed here */
  bool *again;
  size_t work, most;
  bool found;
  int64_t at, partner; /* the operator, and the left node that is what it should be; -1 */
  const char *what;    /* in words */
  st_run run;          /* mended */
} mend;

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

static bool live(const mend *m, uint32_t i) {
  return m->g->node[i].kind == SYNTH_OP && m->p->s->map[RIGHT][i].i != EG_NONE;
}

/* The left node that has this value, -1: none. */
static int64_t occurs(const mend *m, const rule_tensor *v) {
  if (v->numel < 1 || !rule_dtype_is_float(v->dtype) || !lo_has(m->p, LEFT, v)) return -1;
  const synth_graph *l = m->p->s->graph[LEFT];
  for (uint32_t i = 0; i < l->n_nodes; i++) {
    const rule_tensor *w = lo_value(m->p, LEFT, i);
    if (w && lo_agree(m->p, v, w)) return i;
  }
  return -1;
}

/* ---- one try ---- */

/* Whether every output is right that was not, and no other became wrong. */
static bool outputs_right(const mend *m, const st_run *run) {
  parting q = *m->p;
  q.run[RIGHT] = *run;
  return !lo_any_output_apart(&q);
}

static void drop(mend *m) {
  for (size_t i = 0; i < m->g->n_nodes; i++) {
    rule_tensor_unref(m->instead[i]);
    m->instead[i] = NULL;
  }
}

/* Run on with m->instead. */
static iso_code try_values(mend *m, uint32_t at, const rule_tensor *v, iso_error *err) {
  for (uint32_t i = 0; i < m->g->n_nodes; i++) {
    m->again[i] = m->instead[i] || (live(m, i) && st_term_uses(m->g->node[i].call, m->again));
    if (m->again[i] && !m->instead[i]) m->work += st_work(m->g->node[i].call, &m->p->run[RIGHT], i);
  }
  const st_carry with = {.from = &m->p->run[RIGHT], .again = m->again, .value = m->instead};
  const st_run_how how = {.keep_all = true, .with = &with};
  st_run run = {0};
  const iso_code c = st_run_graph(m->p->s, RIGHT, NULL, &how, &run, err);
  if (c) return c == ISO_NOMEM ? c : ISO_OK;
  if (!outputs_right(m, &run)) {
    st_run_free(&run);
    return ISO_OK;
  }
  m->found = true;
  m->at = at;
  m->partner = occurs(m, v);
  m->run = run;
  return ISO_OK;
}

static bool may_stand(const rule_tensor *v, const rule_tensor *old) {
  return old && rule_shape_eq(&v->shape, &old->shape) && v->dtype == old->dtype;
}

/* Node `i` gives `out` instead: itself, or those that take its results. Returns: whether that is
 * anything else. */
static bool put(mend *m, uint32_t i, rule_tensor *const *out, size_t n) {
  bool fits = n == m->g->node[i].n_outputs, differs = false;
  if (n == 1) {
    const rule_tensor *old = lo_value(m->p, RIGHT, i);
    if (!may_stand(out[0], old) || rule_tensor_same(out[0], old)) return false;
    m->instead[i] = rule_tensor_ref(out[0]);
    return true;
  }
  for (uint32_t k = i + 1; k < m->g->n_nodes && fits; k++) {
    const rule_term *t = m->g->node[k].call;
    if (!live(m, k) || !rule_is_getitem(t->u.s) || t->child[0]->u.i != i) continue;
    rule_tensor *v = out[t->child[1]->u.i];
    const rule_tensor *old = lo_value(m->p, RIGHT, k);
    fits = may_stand(v, old);
    if (!fits || rule_tensor_same(v, old)) continue;
    differs = true;
    m->instead[k] = rule_tensor_ref(v);
  }
  return fits && differs;
}

/* Tries node `i` with `call`. `known`: only where the left graph has its new result. */
static iso_code try_call(mend *m, uint32_t i, const rule_term *call, bool known, iso_error *err) {
  rule_tensor *out[MAX_OUT];
  size_t n = 0;
  iso_error ignored;
  const rule_oracle *o = m->p->s->oracle;
  if (!call) return nomem(err);
  iso_code c = o->call(o->ctx, call, m->bind, true, out, MAX_OUT, &n, &ignored);
  if (c) return c == ISO_NOMEM ? nomem(err) : ISO_OK;
  if (put(m, i, out, n) && (!known || occurs(m, out[0]) >= 0)) c = try_values(m, i, out[0], err);
  drop(m);
  for (size_t k = 0; k < n; k++) rule_tensor_unref(out[k]);
  return c;
}

/* ---- a collective that does something else ---- */

static const rule_term *with_child(mend *m, const rule_term *call, uint32_t k,
                                   const rule_term *to) {
  const rule_term **child = iso_arena_alloc(&m->arena, (call->n + 1) * sizeof *child);
  if (!child || !to) return NULL;
  memcpy(child, call->child, call->n * sizeof *child);
  child[k] = to;
  return rule_op(&m->arena, call->u.s, child, call->n);
}

static iso_code other_reduction(mend *m, uint32_t i, bool known, iso_error *err) {
  /* operator: a collective's ways to reduce, no operators' names */
  static const char *const how[] = {"sum", "avg", "max", "min"};
  const rule_term *call = m->g->node[i].call;
  iso_code c = ISO_OK;
  for (uint32_t k = 1; k < call->n && !c && !m->found; k++)
    for (size_t h = 0; h < 4 && call->child[k]->kind == RULE_STRING && !c && !m->found; h++) {
      if (strcmp(call->child[k]->u.s, how[h]) == 0) continue;
      c = try_call(m, i, with_child(m, call, k, rule_string(&m->arena, how[h])), known, err);
      if (m->found)
        m->what = iso_arena_printf(&m->p->s->res->arena,
                                   "on the right op is \"%s\", and would have to be \"%s\"",
                                   call->child[k]->u.s, how[h]);
    }
  return c;
}

static iso_code try_list(mend *m, uint32_t i, const uint32_t *node, uint32_t n, bool known,
                         iso_error *err) {
  const rule_term **part = iso_arena_alloc(&m->arena, n * sizeof *part);
  for (uint32_t k = 0; part && k < n; k++)
    if (!(part[k] = rule_var(&m->arena, node[k]))) return nomem(err);
  if (!part) return nomem(err);
  return try_call(m, i, with_child(m, m->g->node[i].call, 0, rule_list(&m->arena, part, n)), known,
                  err);
}

/* Each tensor once. */
static iso_code without_doubles(mend *m, uint32_t i, const uint32_t *own, uint32_t n, bool known,
                                iso_error *err) {
  uint32_t once[MAX_LIST], k = 0, twice = 0;
  for (uint32_t a = 0; a < n; a++) {
    bool seen = false;
    for (uint32_t b = 0; b < k && !seen; b++) seen = once[b] == own[a];
    if (!seen) once[k++] = own[a];
    else twice = own[a];
  }
  if (k == n) return ISO_OK;
  iso_code c = try_list(m, i, once, k, known, err);
  if (m->found)
    m->what = iso_arena_printf(&m->p->s->res->arena,
                               "\"%s\" takes the ranks' tensors more than once, as \"%s\"",
                               m->g->node[i].id, m->g->node[twice].id);
  return c;
}

/* Two lists of nodes, held beside one another. Returns: in how many places they are one; `same`:
 * they have the same nodes. */
static uint32_t places_alike(const uint32_t *a, const uint32_t *b, uint32_t n, bool *same) {
  uint32_t alike = 0;
  *same = true;
  for (uint32_t k = 0; k < n; k++) {
    bool in = false;
    for (uint32_t j = 0; j < n && !in; j++) in = a[j] == b[k];
    alike += a[k] == b[k];
    *same &= in;
  }
  return alike;
}

/* The ranks' tensors of one step, each of its own rank. */
static iso_code of_own_ranks(mend *m, uint32_t i, const uint32_t *own, uint32_t n, bool known,
                             iso_error *err) {
  const state *s = m->p->s;
  iso_code c = ISO_OK;
  for (size_t k = 0; k < s->ranks.n_peers && !c && !m->found; k++) {
    const peers *q = &s->ranks.peers[k];
    bool same;
    if (q->side != RIGHT || q->pieces || q->n != n) continue;
    const uint32_t alike = places_alike(own, q->node, n, &same);
    if (alike == n || (alike == 0 && !same)) continue;
    uint32_t r = 0;
    while (own[r] == q->node[r]) r++;
    c = try_list(m, i, q->node, n, known, err);
    if (m->found)
      m->what = iso_arena_printf(
          &s->res->arena, "\"%s\" takes \"%s\" where \"%s\" of rank %u should stand",
          m->g->node[i].id, m->g->node[own[r]].id, m->g->node[q->node[r]].id, r);
  }
  return c;
}

/* Computes the value of a node that nothing reads any more, and of the nodes below it. */
static iso_code value_of(mend *m, uint32_t i, iso_error *err) {
  const synth_node *n = &m->g->node[i];
  bool *read = calloc(m->g->n_nodes + 1, 1);
  iso_code c = read ? ISO_OK : nomem(err);
  rule_tensor *out[MAX_OUT];
  size_t n_out = 0;
  if (!c && n->kind == SYNTH_OP) st_term_mark(n->call, read);
  for (uint32_t k = 0; k < i && !c; k++)
    if (read[k] && !m->bind[k]) c = value_of(m, k, err);
  bool bound = n->kind == SYNTH_OP;
  for (uint32_t k = 0; k < i && !c; k++) bound &= !read[k] || m->bind[k];
  iso_error ignored;
  const rule_oracle *o = m->p->s->oracle;
  if (!c && bound && rule_is_getitem(n->call->u.s)) {
    const st_value_list *all = &m->p->run[RIGHT].value[n->call->child[0]->u.i];
    if ((size_t)n->call->child[1]->u.i < all->n)
      m->bind[i] = m->owned[i] = rule_tensor_ref(all->v[n->call->child[1]->u.i]);
  } else if (!c && bound && n->n_outputs == 1) {
    c = o->call(o->ctx, n->call, m->bind, true, out, MAX_OUT, &n_out, &ignored);
    for (size_t k = 1; !c && k < n_out; k++) rule_tensor_unref(out[k]);
    if (!c && n_out) m->bind[i] = m->owned[i] = out[0];
    c = c == ISO_NOMEM ? nomem(err) : ISO_OK;
  }
  free(read);
  return c;
}

/* Whether node `k` may be another rank's node in the place of `i`. */
static bool is_fellow(const mend *m, uint32_t i, uint32_t k) {
  const synth_node *a = &m->g->node[i], *b = &m->g->node[k];
  return i != k && a->kind == SYNTH_OP && b->kind == SYNTH_OP && strcmp(a->op, b->op) == 0 &&
         a->n_outputs == 1 && b->n_outputs == 1 && a->dtype == b->dtype &&
         rule_shape_eq(&a->shape, &b->shape);
}

/* One of two equal tensors is another rank's, which nobody reads then; or one that others read. */
static iso_code of_one_more(mend *m, uint32_t i, const uint32_t *own, uint32_t n, bool known,
                            iso_error *err) {
  iso_code c = ISO_OK;
  for (int alive = 0; alive < 2; alive++)
    for (uint32_t at = n; at-- > 0 && !m->found;) {
      uint32_t list[MAX_LIST], twice = 0;
      memcpy(list, own, n * sizeof *list);
      for (uint32_t k = 0; k < n; k++) twice += own[k] == own[at];
      for (uint32_t k = 0; k < i && twice > 1 && !c && !m->found; k++) {
        if (live(m, k) != alive || !is_fellow(m, own[at], k)) continue;
        if (!m->bind[k] && (c = value_of(m, k, err))) break;
        list[at] = k;
        if (m->bind[k]) c = try_list(m, i, list, n, known, err);
        if (m->found)
          m->what = iso_arena_printf(
              &m->p->s->res->arena, "\"%s\" takes \"%s\" twice, and \"%s\" of rank %u not at all",
              m->g->node[i].id, m->g->node[own[at]].id, m->g->node[k].id, at);
      }
    }
  return c;
}

static iso_code turned_round(mend *m, uint32_t i, const uint32_t *own, uint32_t n, bool known,
                             iso_error *err) {
  uint32_t back[MAX_LIST];
  for (uint32_t k = 0; k < n; k++) back[k] = own[n - 1 - k];
  iso_code c = try_list(m, i, back, n, known, err);
  if (m->found)
    m->what = iso_arena_printf(&m->p->s->res->arena,
                               "\"%s\" takes the ranks' tensors in another order than theirs",
                               m->g->node[i].id);
  return c;
}

/* Along another dimension, or from another rank. */
static iso_code other_dimension(mend *m, uint32_t i, bool known, iso_error *err) {
  const rule_term *call = m->g->node[i].call;
  const rule_schema *says = rule_schemas_find(m->p->s->schemas, call->u.s);
  iso_code c = ISO_OK;
  for (uint32_t k = 1; k < call->n && !c && !m->found; k++)
    for (int64_t d = 0; d < 4 && call->child[k]->kind == RULE_INT && !c && !m->found; d++) {
      if (call->child[k]->u.i == d) continue;
      c = try_call(m, i, with_child(m, call, k, rule_int(&m->arena, d)), known, err);
      if (m->found)
        m->what = iso_arena_printf(&m->p->s->res->arena,
                                   "on the right %s is %lld, and would have to be %lld",
                                   says && k < says->n_args ? says->arg[k].name : "dim",
                                   (long long)call->child[k]->u.i, (long long)d);
    }
  return c;
}

/* The nodes whose tensors a collective takes. Returns: 0 where it does not take a list of them. */
static uint32_t taken_by(const mend *m, uint32_t i, uint32_t own[MAX_LIST]) {
  const rule_term *list = m->g->node[i].call->child[0];
  if (list->kind != RULE_LIST || list->n > MAX_LIST) return 0;
  for (uint32_t k = 0; k < list->n; k++) {
    if (list->child[k]->kind != RULE_VAR) return 0;
    own[k] = (uint32_t)list->child[k]->u.i;
  }
  return list->n;
}

typedef iso_code change(mend *m, uint32_t i, bool known, iso_error *err);

/* It takes a tensor twice. */
static iso_code change_doubled(mend *m, uint32_t i, bool known, iso_error *err) {
  uint32_t own[MAX_LIST];
  const uint32_t n = taken_by(m, i, own);
  iso_code c = n ? without_doubles(m, i, own, n, known, err) : ISO_OK;
  return n && !c && !m->found ? of_one_more(m, i, own, n, known, err) : c;
}

/* Nothing of it looks wrong. */
static iso_code change_any(mend *m, uint32_t i, bool known, iso_error *err) {
  uint32_t own[MAX_LIST];
  const uint32_t n = taken_by(m, i, own);
  iso_code c = other_reduction(m, i, known, err);
  if (n && !c && !m->found) c = of_own_ranks(m, i, own, n, known, err);
  if (n && !c && !m->found) c = turned_round(m, i, own, n, known, err);
  if (!c && !m->found) c = other_dimension(m, i, known, err);
  return c;
}

/* ---- a collective that is not there ---- */

/* The first operator of the region that reads one of the ranks' tensors, or a part of one; -1:
 * none, or ranks meet there. */
static int64_t first_reader(const mend *m, const peers *q) {
  int64_t first = -1;
  for (size_t o = 0; o < m->g->n_outputs && first < 0; o++)
    for (uint32_t r = 0; r < q->n && first < 0; r++)
      if (m->g->output[o].node == q->node[r]) first = q->node[r];
  uint32_t least = q->node[0];
  bool meet = false;
  memset(m->again, 0, m->g->n_nodes + 1);
  for (uint32_t r = 0; r < q->n; r++) {
    m->again[q->node[r]] = true;
    if (q->node[r] < least) least = q->node[r];
  }
  for (uint32_t i = least + 1; i < m->g->n_nodes && !meet; i++) {
    if (!live(m, i) || !st_term_uses(m->g->node[i].call, m->again)) continue;
    meet = rule_is_collective(m->g->node[i].call->u.s);
    if (first < 0 && lo_in_region(m->p, RIGHT, i)) first = i;
  }
  return meet ? -1 : first;
}

/* The ranks' sum, or mean. Owns; NULL: they have none. */
static iso_code added(const mend *m, const peers *q, bool mean, rule_tensor **out, iso_error *err) {
  const rule_tensor *a = lo_value(m->p, RIGHT, q->node[0]);
  *out = NULL;
  if (!a || !rule_dtype_is_float(a->dtype) || a->numel == 0) return ISO_OK;
  bool same = true;
  for (uint32_t r = 1; r < q->n; r++) {
    const rule_tensor *b = lo_value(m->p, RIGHT, q->node[r]);
    if (!b || !may_stand(b, a)) return ISO_OK;
    same &= rule_tensor_same(a, b);
  }
  if (same) return ISO_OK;
  const iso_code c = rule_tensor_new(a->dtype, &a->shape, out, err);
  for (int64_t i = 0; !c && i < a->numel; i++) {
    double x = 0;
    for (uint32_t r = 0; r < q->n; r++) x += rule_tensor_get(lo_value(m->p, RIGHT, q->node[r]), i);
    rule_tensor_set(*out, i, mean ? x / q->n : x);
  }
  return c;
}

static iso_code add_collective(mend *m, const peers *q, bool known, iso_error *err) {
  const int64_t reader = first_reader(m, q);
  iso_code c = ISO_OK;
  for (int mean = 0; mean < 2 && reader >= 0 && !c && !m->found; mean++) {
    rule_tensor *sum;
    if ((c = added(m, q, mean, &sum, err)) || !sum) return c;
    if (!known || occurs(m, sum) >= 0) {
      for (uint32_t r = 0; r < q->n; r++) {
        rule_tensor_unref(m->instead[q->node[r]]);
        m->instead[q->node[r]] = rule_tensor_ref(sum);
      }
      c = try_values(m, (uint32_t)reader, sum, err);
      drop(m);
    }
    rule_tensor_unref(sum);
    if (!m->found) continue;
    const char *of = m->g->node[q->node[0]].id;
    const char *what =
        m->partner >= 0
            ? iso_arena_printf(&m->p->s->res->arena, "`%s` is the %s of the ranks'",
                               m->p->s->graph[LEFT]->node[m->partner].id, mean ? "mean" : "sum")
            : iso_arena_printf(&m->p->s->res->arena, "the ranks hold a %s of",
                               mean ? "mean's parts" : "sum's parts");
    if (what)
      what = iso_arena_printf(&m->p->s->res->arena,
                              "%s `%s`, ..., and no rank adds them up before it goes on: an "
                              "all_reduce is missing here",
                              what, of);
    m->what = what;
  }
  return c;
}

/* ---- all of them ---- */

/* A collective that takes a tensor twice, where nothing reads another rank's. That rank's value is
 * unknown where it depends on inputs of its own that nothing else reads either. */
static void find_unread(mend *m) {
  for (uint32_t i = 0; i < m->g->n_nodes && !m->what; i++) {
    const rule_term *list = live(m, i) && rule_is_collective(m->g->node[i].call->u.s)
                                ? m->g->node[i].call->child[0]
                                : NULL;
    if (!list || list->kind != RULE_LIST || !lo_in_region(m->p, RIGHT, i)) continue;
    for (uint32_t a = 0; a < list->n; a++)
      for (uint32_t b = 0; b < a && !m->what; b++)
        for (uint32_t k = i; k-- > 0 && !m->what;) {
          const rule_term *x = list->child[a], *y = list->child[b];
          if (x->kind != RULE_VAR || y->kind != RULE_VAR || x->u.i != y->u.i || live(m, k) ||
              !is_fellow(m, (uint32_t)x->u.i, k))
            continue;
          m->at = i;
          m->what = iso_arena_printf(&m->p->s->res->arena,
                                     "\"%s\" takes \"%s\" twice, and nothing reads \"%s\"",
                                     m->g->node[i].id, m->g->node[x->u.i].id, m->g->node[k].id);
        }
  }
}

static iso_code try_each(mend *m, change *how, bool known, iso_error *err) {
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < m->g->n_nodes && !c && !m->found && m->work < m->most; i++)
    if (live(m, i) && rule_is_collective(m->g->node[i].call->u.s) && m->g->node[i].call->n &&
        lo_in_region(m->p, RIGHT, i))
      c = how(m, i, known, err);
  return c;
}

/* First the changes whose result is a tensor of the left graph, since they cost no run; then all
 * others. What takes a tensor twice comes before a collective of which nothing looks wrong: half of
 * a sum mends twice that sum, too. */
static iso_code try_all(mend *m, iso_error *err) {
  const state *s = m->p->s;
  iso_code c = ISO_OK;
  for (int known = 1; known >= 0 && !c && !m->found; known--) {
    c = try_each(m, change_doubled, known, err);
    if (!c && !m->found) c = try_each(m, change_any, known, err);
    for (size_t k = 0; k < s->ranks.n_peers && !c && !m->found && m->work < m->most; k++)
      if (s->ranks.peers[k].side == RIGHT && !s->ranks.peers[k].pieces)
        c = add_collective(m, &s->ranks.peers[k], known, err);
  }
  return c;
}

static bool several_ranks(const state *s) {
  for (size_t k = 0; k < s->ranks.n_peers; k++)
    if (s->ranks.peers[k].side == RIGHT && !s->ranks.peers[k].pieces) return true;
  return false;
}

iso_code lo_mend_ranks(parting *p, synth_divergence *d, lo_ending *end, iso_error *err) {
  state *s = p->s;
  const size_t n = s->graph[RIGHT]->n_nodes;
  if (p->gap || !several_ranks(s)) return ISO_OK;
  mend m = {.p = p,
            .g = s->graph[RIGHT],
            .bind = calloc(n + 1, sizeof *m.bind),
            .instead = calloc(n + 1, sizeof *m.instead),
            .owned = calloc(n + 1, sizeof *m.owned),
            .again = calloc(n + 1, 1),
            .most = AT_LEAST + RUNS * p->a_run,
            .at = -1,
            .partner = -1};
  iso_arena_init(&m.arena);
  iso_code c = m.bind && m.instead && m.owned && m.again ? ISO_OK : nomem(err);
  for (uint32_t i = 0; i < n && !c; i++)
    m.bind[i] = p->run[RIGHT].value[i].n ? p->run[RIGHT].value[i].v[0] : NULL;
  if (!c) c = try_all(&m, err);
  if (!c && m.found && !m.what) c = nomem(err);
  if (!c && !m.found) find_unread(&m);
  if (c) st_run_free(&m.run);
  else if (m.what) {
    d->right = m.at;
    if (m.partner >= 0) d->left = m.partner;
    d->hint = m.what;
    end->repaired = true;
    end->next = m.run;
    end->exit[RIGHT] = m.partner >= 0 ? m.at : -1;
    end->exit[LEFT] = m.partner;
    memset(end->touched, 1, n);
  }
  for (uint32_t i = 0; m.owned && i < n; i++) rule_tensor_unref(m.owned[i]);
  free(m.owned);
  free(m.bind);
  free(m.instead);
  free(m.again);
  iso_arena_fini(&m.arena);
  return c;
}
