/* Which outputs belong together, and which inputs may be kept as they were captured. */
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/names.h"
#include "rules/operators.h"
#include "rules/replicas.h"

/* ---- pairing: by names, the rest by positions; NAME_rank<r> is rank r's NAME ---- */

typedef struct paired {
  rule_replicas of[2];
  size_t
      *ordinal[2];  /* of an output how many heads stand before it that the other has no name for */
  size_t *place[2]; /* which of the replicas of its head it is, from 0, the head */
  size_t *all[2];   /* of a head how many there are with itself */
} paired;

static const char *name_at(const void *results, size_t i) {
  const cap_result *r = results;
  return r[i].name;
}

/* The head of that name. */
static bool has_head(const rule_replicas *of, const char *name) {
  const size_t i = rule_replicas_find(of, name);
  return i != RULE_NO_OUTPUT && of->head[i] == i;
}

static void free_paired(paired *p) {
  for (int side = 0; side < 2; side++) {
    rule_replicas_fini(&p->of[side]);
    free(p->ordinal[side]);
    free(p->place[side]);
    free(p->all[side]);
  }
}

static void count_side(paired *p, int side) {
  const rule_replicas *of = &p->of[side];
  for (size_t i = 0, n = 0; i < of->n; i++) {
    p->ordinal[side][i] = n;
    if (of->head[i] != i) continue;
    n += !has_head(&p->of[!side], of->name[i]);
    p->all[side][i] = 1;
    for (size_t k = of->first[i]; k != RULE_NO_OUTPUT; k = of->next[k])
      p->place[side][k] = p->all[side][i]++;
  }
}

/* Owns: free_paired, also after an error. */
static iso_code pair_names(chk_state *k, paired *p) {
  *p = (paired){0};
  for (int side = 0; side < 2; side++) {
    const cap_graph *g = k->graph[side];
    const iso_code c = rule_replicas_init(&p->of[side], g->n_results, name_at, g->result, k->err);
    p->ordinal[side] = calloc(g->n_results + 1, sizeof(size_t));
    p->place[side] = calloc(g->n_results + 1, sizeof(size_t));
    p->all[side] = calloc(g->n_results + 1, sizeof(size_t));
    if (c) return c;
    if (!p->ordinal[side] || !p->place[side] || !p->all[side]) return chk_nomem(k);
  }
  count_side(p, LEFT);
  count_side(p, RIGHT);
  return ISO_OK;
}

/* Outputs of one name belong together; those whose name the other side lacks, in order. */
static bool belong(const paired *p, size_t i, size_t j) {
  const rule_replicas *l = &p->of[LEFT], *r = &p->of[RIGHT];
  const size_t hi = l->head[i], hj = r->head[j], ri = p->place[LEFT][i], rj = p->place[RIGHT][j];
  const bool named = has_head(r, l->name[hi]) || has_head(l, r->name[hj]);
  if (named ? strcmp(l->name[hi], r->name[hj]) != 0 : p->ordinal[LEFT][hi] != p->ordinal[RIGHT][hj])
    return false;
  return p->all[LEFT][hi] == p->all[RIGHT][hj] ? ri == rj : ri == 0 || rj == 0;
}

/* Follow unsqueeze and squeeze.dim of sizes 1 down to a captured node. Returns: its term and the
 * shape of `t`; CHK_NONE. */
static uint32_t peel(const chk_state *k, uint32_t t, rule_shape *shape, int depth) {
  const chk_term *x = &k->term[t];
  if (x->node) {
    if (x->node->n_outputs < 1) return CHK_NONE;
    *shape = x->node->output[0].shape;
    return t;
  }
  if (depth > 2 * RULE_MAX_RANK || x->call->n != 2 || x->call->child[0]->kind != RULE_VAR ||
      x->call->child[1]->kind != RULE_INT)
    return CHK_NONE;
  const uint32_t below = peel(k, (uint32_t)x->call->child[0]->u.i, shape, depth + 1);
  const int64_t d = x->call->child[1]->u.i;
  const bool in = strcmp(x->call->u.s, OP_UNSQUEEZE) == 0,
             out = strcmp(x->call->u.s, OP_SQUEEZE_DIM) == 0;
  if (below == CHK_NONE || d < 0) return CHK_NONE;
  if (in && d <= shape->rank && shape->rank < RULE_MAX_RANK) {
    memmove(shape->dim + d + 1, shape->dim + d, (size_t)(shape->rank - d) * sizeof *shape->dim);
    shape->dim[d] = 1;
    shape->rank++;
  } else if (out && d < shape->rank && shape->dim[d] == 1) {
    shape->rank--;
    memmove(shape->dim + d, shape->dim + d + 1, (size_t)(shape->rank - d) * sizeof *shape->dim);
  } else {
    return CHK_NONE;
  }
  return below;
}

static iso_code check_output(chk_state *k, const chk_output *o, const paired *p,
                             bool *const covered[2]) {
  const cap_graph *l = k->graph[LEFT], *r = k->graph[RIGHT];
  const size_t i = rule_replicas_find(&p->of[LEFT], o->left),
               j = rule_replicas_find(&p->of[RIGHT], o->right);
  rule_shape shape = {0};
  if (i == RULE_NO_OUTPUT || j == RULE_NO_OUTPUT)
    return chk_settle(k, CHK_REFUSED, "output %s: there is no such output",
                      i == RULE_NO_OUTPUT ? o->left : o->right);
  if (!belong(p, i, j))
    return chk_settle(k, CHK_REFUSED, "outputs %s and %s do not belong together", o->left,
                      o->right);
  if (o->a != l->result[i].node)
    return chk_settle(k, CHK_REFUSED,
                      "output %s: the first term is not what the left capture gives", o->left);
  if (peel(k, o->b, &shape, 0) != l->n_nodes + r->result[j].node)
    return chk_settle(k, CHK_REFUSED,
                      "output %s: the second term is not what the right capture gives", o->right);
  const cap_node *n = &l->node[l->result[i].node];
  if (n->n_outputs < 1 || !rule_shape_eq(&shape, &n->output[0].shape))
    return chk_settle(k, CHK_REFUSED, "outputs %s and %s: the shapes differ in more than sizes 1",
                      o->left, o->right);
  if (chk_root(k, o->a) != chk_root(k, o->b))
    return chk_settle(k, CHK_REFUSED,
                      "outputs %s and %s are not equal by the steps of the certificate", o->left,
                      o->right);
  if (covered[LEFT][i] && covered[RIGHT][j]) /* of ranks each pair has one that is new */
    return chk_settle(k, CHK_REFUSED, "outputs %s and %s are listed twice", o->left, o->right);
  covered[LEFT][i] = covered[RIGHT][j] = true;
  return ISO_OK;
}

iso_code chk_outputs(chk_state *k) {
  bool *covered[2] = {calloc(k->graph[LEFT]->n_results + 1, 1),
                      calloc(k->graph[RIGHT]->n_results + 1, 1)};
  size_t heads[2] = {0, 0};
  paired p;
  iso_code c = pair_names(k, &p);
  if (!c && (!covered[LEFT] || !covered[RIGHT])) c = chk_nomem(k);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; !c && i < k->graph[side]->n_results; i++)
      heads[side] += p.of[side].head[i] == i;
  if (!c && heads[LEFT] != heads[RIGHT])
    c = chk_settle(k, CHK_REFUSED, "the captures have %zu and %zu outputs", heads[LEFT],
                   heads[RIGHT]);
  for (size_t i = 0; i < k->cert.n_outputs && !c && !chk_settled(k); i++)
    c = check_output(k, &k->cert.output[i], &p, covered);
  for (int side = 0; side < 2 && !c; side++)
    for (size_t i = 0; i < k->graph[side]->n_results && !chk_settled(k) && !c; i++)
      if (!covered[side][i])
        c = chk_settle(k, CHK_REFUSED, "output %s of the %s capture is left out",
                       k->graph[side]->result[i].name, side == LEFT ? "left" : "right");
  free_paired(&p);
  free(covered[LEFT]);
  free(covered[RIGHT]);
  return c;
}

/* ---- inputs that keep their values ---- */

/* Whether every element of the call's value is an element of its first argument. */
static bool passes_on(const char *op) {
  const rule_operator *o = rule_operator_of(op);
  return o->identity || o->rearranges || o->part || o->cast;
}

/* Whether a call chooses places of its first argument by a node marked in `flow`. Returns: in `dim`
 * along which dimension. */
static bool looks_up(const rule_term *t, const uint8_t *flow, uint32_t *dim) {
  const rule_operator *o = rule_operator_of(t->u.s);
  const rule_term *by = o->index < t->n ? t->child[o->index] : NULL;
  *dim = 0;
  if (!by || (o->ends != RULE_ENDS_ROWS && o->ends != RULE_ENDS_ALONG && o->ends != RULE_ENDS_EACH))
    return false;
  if (o->ends == RULE_ENDS_EACH) {
    while (*dim < by->n && !(by->child[*dim]->kind == RULE_VAR && flow[by->child[*dim]->u.i]))
      ++*dim;
    return by->kind == RULE_LIST && *dim < by->n;
  }
  if (o->ends == RULE_ENDS_ALONG) {
    if (t->child[1]->kind != RULE_INT || t->child[1]->u.i < 0) return false;
    *dim = (uint32_t)t->child[1]->u.i;
  }
  return by->kind == RULE_VAR && flow[by->u.i];
}

/* How an input's elements come to a node. */
enum { ALL_OF_IT = 1, SOME_OF_IT };

static void follow(const cap_graph *g, size_t i, uint8_t *flow) {
  const rule_term *t = g->node[i].call;
  if (!t || t->n == 0 || t->child[0]->kind != RULE_VAR || !passes_on(t->u.s)) return;
  const uint8_t from = flow[t->child[0]->u.i];
  flow[i] = from && rule_operator_of(t->u.s)->part ? SOME_OF_IT : from;
}

/* The next call after node `i` whose index into a table is input `top`, moved at most; 0: none.
 * `flow` is kept between calls, and begins at `top` where `i` is. */
static size_t next_look_up(const cap_graph *g, size_t top, size_t i, uint8_t *flow, uint32_t *dim) {
  if (i == top) {
    memset(flow, 0, g->n_nodes);
    flow[top] = ALL_OF_IT;
  }
  while (++i < g->n_nodes) {
    const rule_term *t = g->node[i].call;
    if (!t || t->n == 0) continue;
    if (looks_up(t, flow, dim)) return i;
    follow(g, i, flow);
  }
  return 0;
}

static bool takes(const rule_term *t, const uint8_t *flow, uint32_t but) {
  for (uint32_t k = 0; k < t->n; k++) {
    if (k == but) continue;
    if (t->child[k]->kind == RULE_VAR ? flow[t->child[k]->u.i] != 0
                                      : takes(t->child[k], flow, UINT32_MAX))
      return true;
  }
  return false;
}

/* Whether an output depends on more of an input than on the rows that it looks up. `flow` is that
 * of the whole graph. */
static bool is_seen(const cap_graph *g, const uint8_t *flow, const bool *live) {
  uint32_t dim;
  for (size_t i = 0; i < g->n_results; i++)
    if (flow[g->result[i].node]) return true;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_term *t = g->node[i].call;
    if (!t || !live[i] || flow[i]) continue;
    if (takes(t, flow, looks_up(t, flow, &dim) ? rule_operator_of(t->u.s)->index : UINT32_MAX))
      return true;
  }
  return false;
}

/* One past the last place along `dim` of the table that the call looks up, padding aside: rows of a
 * captured table that are all zeros. 0: it looks up none. */
static int64_t used_rows(const cap_graph *g, const rule_term *t, uint32_t dim) {
  if (t->child[0]->kind != RULE_VAR) return 0;
  const cap_node *table = &g->node[t->child[0]->u.i];
  const rule_shape *shape = table->n_outputs ? &table->output[0].shape : NULL;
  if (!shape || dim >= shape->rank) return 0;
  const int64_t rows = shape->dim[dim];
  if (!table->value || dim > 0 || shape->rank < 2 || rows < 1 || table->value->numel < 1)
    return rows;
  int64_t last = table->value->numel;
  while (last > 0 && rule_tensor_get(table->value, last - 1) == 0) last--;
  return last == 0 ? rows : (last - 1) / (table->value->numel / rows) + 1;
}

static bool same_input(size_t a, const cap_graph *g, size_t b, const cap_graph *h) {
  for (size_t set = 0; set < g->n_sets && set < h->n_sets; set++)
    if (!rule_tensor_same_bytes(g->input[set * g->n_nodes + a], h->input[set * h->n_nodes + b]))
      return false;
  return true;
}

static void mark_live(const rule_term *t, bool *live) {
  if (t->kind == RULE_VAR) live[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_live(t->child[i], live);
}

/* The nodes that an output depends on; NULL when there is no memory. */
static bool *live_nodes(const cap_graph *g) {
  bool *live = calloc(g->n_nodes + 1, 1);
  for (size_t i = 0; live && i < g->n_results; i++) live[g->result[i].node] = true;
  for (size_t i = g->n_nodes; live && i-- > 0;)
    if (live[i] && g->node[i].call) mark_live(g->node[i].call, live);
  return live;
}

/* The meaning that tables give to ids past one number. */
typedef struct table_ends {
  bool all;     /* a table that all of the input's elements look up has no such row, or zeros */
  bool some;    /* one that some of them look up */
  bool further; /* one has such rows */
  bool seen;    /* more than the rows that it looks up is seen of the input */
} table_ends;

static void look_for_ends(const cap_graph *g, size_t input, int64_t high, uint8_t *flow,
                          const bool *live, table_ends *ends) {
  uint32_t dim;
  for (size_t j = input; (j = next_look_up(g, input, j, flow, &dim)) != 0;) {
    const rule_term *t = g->node[j].call, *by = t->child[rule_operator_of(t->u.s)->index];
    const int64_t rows = live[j] ? used_rows(g, t, dim) : 0;
    if (by->kind == RULE_LIST) by = by->child[dim];
    if (rows <= 0) continue;
    ends->further |= high < rows - 1;
    *(flow[by->u.i] == ALL_OF_IT ? &ends->all : &ends->some) |= high >= rows - 1;
  }
  ends->seen |= is_seen(g, flow, live);
}

/* Ids past `high` read rows of zeros, or none: of some table that this input, or the other side's
 * of the same values, looks up for an output. One that only some of its elements look up says
 * nothing of the others, unless no output depends on these. */
iso_code chk_covers_table(chk_state *k, uint32_t input, int64_t high, bool *covers) {
  const chk_term *t = &k->term[input];
  const cap_graph *own = k->graph[t->side];
  table_ends ends = {0};
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++) {
    const cap_graph *g = k->graph[side];
    uint8_t *flow = calloc(g->n_nodes + 1, 1);
    bool *live = live_nodes(g);
    if (!flow || !live) c = chk_nomem(k);
    for (size_t i = 0; i < g->n_nodes && !c; i++)
      if (g->node[i].kind == CAP_INPUT &&
          (side == t->side ? i == t->index : same_input(t->index, own, i, g)))
        look_for_ends(g, i, high, flow, live, &ends);
    free(live);
    free(flow);
  }
  *covers = ends.all || (ends.some && !ends.further && !ends.seen);
  return c;
}

/* The first node that writes to memory that others may read, so that its place in the graph says
 * nothing, even if nothing reads its result. SIZE_MAX: there is none. */
static iso_code find_writer(chk_state *k, const cap_graph *g, size_t *at) {
  const rule_term **call = calloc(g->n_nodes + 1, sizeof *call);
  uint32_t *output = calloc(g->n_results + 1, sizeof *output);
  const iso_code c = call && output ? ISO_OK : chk_nomem(k);
  *at = SIZE_MAX;
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    call[i] = g->node[i].call;
    if (call[i] && *at == SIZE_MAX && rule_writes(k->schemas, call[i], g->node[i].n_outputs))
      *at = i;
  }
  for (size_t i = 0; i < g->n_results && !c; i++) output[i] = g->result[i].node;
  if (!c && *at == SIZE_MAX) *at = rule_shared_write(call, g->n_nodes, output, g->n_results);
  free(call);
  free(output);
  return c;
}

/* Whether strides, which no capture holds, are read of a tensor that need not be row-major. */
static iso_code reads_strides(chk_state *k, const cap_graph *g, const bool *live,
                              const cap_node **reader) {
  bool *dense = calloc(g->n_nodes + 1, 1);
  if (!dense) return chk_nomem(k);
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_term *call = g->node[i].call;
    dense[i] = !g->node[i].reordered && (!call || rule_gives_dense(call, dense));
    if (call && live[i] && rule_reads_memory(call) &&
        !(call->child[0]->kind == RULE_VAR && dense[call->child[0]->u.i]))
      *reader = &g->node[i];
  }
  free(dense);
  return ISO_OK;
}

/* If all inputs were kept, the capture would be a function of nothing: the one input that chooses
 * rows of a table stays free, unless input sets have others of the kind that it looks like. */
static iso_code check_side(chk_state *k, int side, const bool *fixed) {
  const cap_graph *g = k->graph[side];
  const size_t base = side == LEFT ? 0 : k->graph[LEFT]->n_nodes;
  uint8_t *flow = calloc(g->n_nodes + 1, 1);
  bool *live = live_nodes(g), any_free = false;
  size_t n_tokens = 0;
  size_t writer = SIZE_MAX;
  iso_code c = live && flow ? find_writer(k, g, &writer) : chk_nomem(k);
  if (!c && writer != SIZE_MAX)
    c = chk_settle(k, CHK_REFUSED, "the %s capture's \"%s\" writes to an argument",
                   side == LEFT ? "left" : "right", g->node[writer].id);
  for (size_t i = g->n_nodes; i-- > 0 && !c;)
    if (live[i] && g->node[i].call && rule_draws(k->schemas, g->node[i].call))
      c = chk_settle(k, CHK_REFUSED, "the %s capture's \"%s\" draws random numbers",
                     side == LEFT ? "left" : "right", g->node[i].id);
  const cap_node *reader = NULL;
  if (!c) c = reads_strides(k, g, live, &reader);
  if (!c && reader)
    c = chk_settle(k, CHK_REFUSED,
                   "the %s capture's \"%s\" reads memory whose order is not captured",
                   side == LEFT ? "left" : "right", reader->id);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    if (g->node[i].kind != CAP_INPUT || !live[i]) continue;
    if (!fixed[base + i]) any_free = true;
    else if (rule_dtype_is_int(g->node[i].value->dtype) && !g->node[i].kept) {
      uint32_t dim;
      size_t j = next_look_up(g, i, i, flow, &dim);
      while (j && !rule_operator_of(g->node[j].call->u.s)->table)
        j = next_look_up(g, i, j, flow, &dim);
      n_tokens += j != 0;
    }
  }
  free(live);
  free(flow);
  if (!c && !any_free && n_tokens == 1)
    c = chk_settle(k, CHK_REFUSED, "the %s capture's tokens are kept fixed",
                   side == LEFT ? "left" : "right");
  return c;
}

iso_code chk_fixed_inputs(chk_state *k) {
  bool *fixed = calloc(k->n_terms + 1, 1);
  iso_code c = fixed ? ISO_OK : chk_nomem(k);
  for (size_t i = 0; i < k->cert.n_fixed && !c && !chk_settled(k); i++) {
    const chk_term *t = &k->term[k->cert.fixed[i]];
    bool may;
    if ((c = chk_may_be_fixed(k, k->cert.fixed[i], &may))) break;
    if (!may)
      return free(fixed),
             chk_settle(k, CHK_REFUSED, "\"%s\" is no input that is kept fixed", t->node->id);
    fixed[k->cert.fixed[i]] = true;
    c = chk_assume(k, RULE_ASSUMES_INPUT,
                   iso_arena_printf(k->arena, "%s's %s keeps its captured value",
                                    t->side == LEFT ? "left" : "right", t->node->name));
  }
  for (int side = 0; side < 2 && !c && !chk_settled(k); side++) c = check_side(k, side, fixed);
  free(fixed);
  return c;
}
