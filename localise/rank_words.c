/* Where ranks depart from the other graph, in words: the first operator whose operands the ranks
 * hold, whole, in parts or as partial sums, and whose result they do not; and the tensors that they
 * hold instead. */
#include "localise/alignment.h"
#include "rules/masks.h"
#include "rules/names.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef enum held_as { HELD_NOT, HELD_WHOLE, HELD_PARTS, HELD_SUM } held_as;

typedef struct holding { /* of a left node */
  held_as as;
  const peers *of; /* PARTS, SUM: which nodes */
  uint32_t dim;    /* PARTS */
  double scale;    /* PARTS, SUM: of what they hold; a gradient of a mean over a rank's own part of
                      a batch is so many times too large as there are ranks */
} holding;

/* Of the numbers that mask nothing: beside minus infinity any number would be near any other. */
static double size_of(const rule_tensor *t) {
  double most = 0;
  for (int64_t i = 0; i < t->numel; i++) {
    const double x = fabs(rule_tensor_get(t, i));
    if (x < RULE_MASK_HIDES) most = fmax(most, x);
  }
  return most;
}

static const rule_tensor *part(const parting *p, const peers *q, uint32_t r) {
  return lo_value(p, q->side, q->node[r]);
}

/* A distance, and the size it is measured by. */
typedef struct measure {
  double tol, scale; /* what ranks hold, times this */
} measure;

/* Minus infinity is where a mask hides on both sides. */
static bool is_near(double x, double y, measure by) {
  return isinf(x) ? x == y : fabs(by.scale * x - y) <= by.tol;
}

/* Whether `own` is the part of `whole` that begins at `from` along dimension d. */
static bool is_cut(const rule_tensor *whole, const rule_tensor *own, uint32_t d, int64_t from,
                   measure by) {
  if (own->shape.rank != whole->shape.rank) return false;
  for (uint32_t k = 0; k < own->shape.rank; k++)
    if (k != d && own->shape.dim[k] != whole->shape.dim[k]) return false;
  if (from < 0 || from + own->shape.dim[d] > whole->shape.dim[d]) return false;
  int64_t inner = 1;
  for (uint32_t k = d + 1; k < own->shape.rank; k++) inner *= own->shape.dim[k];
  const int64_t run = own->shape.dim[d] * inner, step = whole->shape.dim[d] * inner;
  for (int64_t i = 0; i < own->numel; i++)
    if (!is_near(rule_tensor_get(own, i),
                 rule_tensor_get(whole, i / run * step + from * inner + i % run), by))
      return false;
  return true;
}

/* How many ranks hold their cut of `whole` along `d`, in order; 0 where sizes do not fit. */
static uint32_t cuts(const parting *p, const peers *q, const rule_tensor *whole, uint32_t d,
                     measure by) {
  int64_t from = 0;
  uint32_t n = 0;
  for (uint32_t r = 0; r < q->n; r++) {
    const rule_tensor *own = part(p, q, r);
    if (!own || own->shape.rank != whole->shape.rank) return 0;
    n += is_cut(whole, own, d, from, by);
    from += own->shape.dim[d];
  }
  return from == whole->shape.dim[d] ? n : 0;
}

/* Whether ranks hold equal parts of `runs` runs of elements each, which take turns in the whole: a
 * cut inside a dimension, as of the heads of each row of a batch. */
static bool takes_turns(const parting *p, const peers *q, const rule_tensor *whole, int64_t runs,
                        measure by) {
  const int64_t run = whole->numel / q->n / runs;
  for (uint32_t r = 0; r < q->n; r++)
    for (int64_t i = 0; i < run * runs; i++)
      if (!is_near(rule_tensor_get(part(p, q, r), i),
                   rule_tensor_get(whole, (i / run * q->n + r) * run + i % run), by))
        return false;
  return true;
}

static bool cut_inside(const parting *p, const peers *q, const rule_tensor *whole, uint32_t d,
                       measure by) {
  int64_t before = 1;
  for (uint32_t r = 0; r < q->n; r++)
    if (!part(p, q, r) || part(p, q, r)->numel * q->n != whole->numel) return false;
  for (uint32_t k = 0; k < d; k++) before *= whole->shape.dim[k];
  for (int64_t a = 1; a * q->n <= whole->shape.dim[d]; a++)
    if (whole->shape.dim[d] % (a * q->n) == 0 && takes_turns(p, q, whole, before * a, by))
      return true;
  return false;
}

static bool adds_up(const parting *p, const peers *q, const rule_tensor *whole, measure by) {
  for (uint32_t r = 0; r < q->n; r++) {
    const rule_tensor *own = part(p, q, r);
    if (!own || !lo_same_but_ones(&own->shape, &whole->shape)) return false;
  }
  for (int64_t i = 0; i < whole->numel; i++) {
    double sum = 0;
    for (uint32_t r = 0; r < q->n; r++) sum += rule_tensor_get(part(p, q, r), i);
    if (!is_near(sum, rule_tensor_get(whole, i), by)) return false;
  }
  return true;
}

static holding look(const parting *p, uint32_t i) {
  const state *s = p->s;
  const rule_tensor *v = lo_value(p, LEFT, i);
  if (!v || v->numel == 0 || s->rec[s->map[LEFT][i].i].konst || lo_occurs(p, LEFT, i))
    return (holding){.as = HELD_WHOLE};
  if (!rule_dtype_is_float(v->dtype)) return (holding){.as = HELD_NOT};
  const double tol = 1e-9 * size_of(v);
  for (size_t k = 0; k < s->ranks.n_peers; k++) {
    const peers *q = &s->ranks.peers[k];
    if (q->side != RIGHT || q->pieces) continue;
    for (int mean = 0; mean < 2; mean++) {
      const measure by = {tol, mean ? 1.0 / q->n : 1};
      for (uint32_t d = 0; d < v->shape.rank; d++)
        if (cuts(p, q, v, d, by) == q->n || cut_inside(p, q, v, d, by))
          return (holding){HELD_PARTS, q, d, by.scale};
      if (adds_up(p, q, v, by)) return (holding){HELD_SUM, q, 0, by.scale};
    }
  }
  return (holding){.as = HELD_NOT};
}

/* ---- words ---- */

/* A node's name for a user. */
static const char *name_of(const state *s, int side, uint32_t i) {
  const synth_node *n = &s->graph[side]->node[i];
  return n->kind != SYNTH_OP && n->name ? n->name : n->id;
}

static const char *names(parting *p, const peers *q) {
  iso_arena *a = &p->s->res->arena;
  const char *text = "";
  for (uint32_t r = 0; r < q->n && r < 4 && text; r++)
    text = iso_arena_printf(a, "%s%s`%s`", text, r ? ", " : "", name_of(p->s, q->side, q->node[r]));
  return text && q->n > 4 ? iso_arena_printf(a, "%s, ...", text) : text;
}

static const char *operand_words(parting *p, uint32_t i, const holding *h) {
  iso_arena *a = &p->s->res->arena;
  const char *id = name_of(p->s, LEFT, i), *of = names(p, h->of);
  if (!of) return NULL;
  return h->as == HELD_SUM
             ? iso_arena_printf(a,
                                "`%s` is the %s of the ranks' %s, and no rank adds them up "
                                "before it goes on: an all_reduce is missing here",
                                id, h->scale == 1 ? "sum" : "mean", of)
             : iso_arena_printf(a, "`%s` is in parts along dimension %u in the ranks' %s", id,
                                h->dim, of);
}

/* Whether a rank that is not among the peers holds the cut: then these are replicas of one part,
 * and others have the rest. */
static bool held_by_others(const parting *p, const peers *q, const rule_tensor *v, uint32_t d,
                           int64_t from, measure by) {
  const synth_graph *g = p->s->graph[RIGHT];
  const bool leaf = g->node[q->node[0]].kind != SYNTH_OP;
  for (uint32_t i = 0; i < g->n_nodes; i++) {
    bool among = false;
    for (uint32_t r = 0; r < q->n; r++) among |= q->node[r] == i;
    const rule_tensor *t =
        among || (g->node[i].kind != SYNTH_OP) != leaf ? NULL : lo_value(p, RIGHT, i);
    if (t && rule_shape_eq(&t->shape, &part(p, q, 0)->shape) && is_cut(v, t, d, from, by))
      return true;
  }
  return false;
}

/* A rank that holds another cut of left node i than its own, in words; "": none was found. */
static const char *wrong_part(parting *p, uint32_t i) {
  const state *s = p->s;
  const rule_tensor *v = lo_value(p, LEFT, i);
  const measure by = {v ? 1e-9 * size_of(v) : 0, 1};
  for (size_t k = 0; v && k < s->ranks.n_peers; k++) {
    const peers *q = &s->ranks.peers[k];
    for (uint32_t d = 0; d < v->shape.rank && q->side == RIGHT && !q->pieces; d++) {
      const uint32_t n = cuts(p, q, v, d, by);
      if (n == 0 || n == q->n) continue;
      int64_t from = 0;
      for (uint32_t r = 0; r < q->n; from += part(p, q, r++)->shape.dim[d]) {
        const int64_t size = part(p, q, r)->shape.dim[d];
        if (is_cut(v, part(p, q, r), d, from, by)) continue;
        if (held_by_others(p, q, v, d, from, by)) break;
        for (int64_t at = 0; at + size <= v->shape.dim[d]; at++)
          if (is_cut(v, part(p, q, r), d, at, by))
            return iso_arena_printf(&s->res->arena,
                                    "rank %u holds %lld to %lld of dimension %u in `%s`, and "
                                    "should hold %lld to %lld",
                                    r, (long long)at, (long long)(at + size), d,
                                    name_of(s, RIGHT, q->node[r]), (long long)from,
                                    (long long)(from + size));
        return iso_arena_printf(&s->res->arena,
                                "rank %u should hold %lld to %lld of dimension %u in `%s`, and "
                                "the other ranks hold theirs",
                                r, (long long)from, (long long)(from + size), d,
                                name_of(s, RIGHT, q->node[r]));
      }
    }
  }
  return "";
}

static bool is_multiple(const rule_tensor *a, const rule_tensor *of, double by, double tol) {
  if (!rule_dtype_is_float(a->dtype) || !lo_same_but_ones(&a->shape, &of->shape)) return false;
  for (int64_t i = 0; i < a->numel; i++)
    if (!(fabs(rule_tensor_get(a, i) - by * rule_tensor_get(of, i)) <= by * tol)) return false;
  return true;
}

/* In words that right node j holds left node i so many times as there are ranks, or that part of
 * it; "": it does not. */
static const char *wrong_scale(parting *p, uint32_t i, uint32_t j) {
  const state *s = p->s;
  const rule_tensor *v = lo_value(p, LEFT, i), *t = lo_value(p, RIGHT, j);
  const double size = v && t && rule_dtype_is_float(v->dtype) ? size_of(v) : 0;
  uint32_t before = 0;
  for (size_t k = 0; size > 0 && k < s->ranks.n_peers; k++) {
    const uint32_t n = s->ranks.peers[k].n;
    if (s->ranks.peers[k].side != RIGHT || n == before) continue;
    before = n;
    const bool more = is_multiple(t, v, n, 1e-9 * size);
    if (!more && !is_multiple(t, v, 1.0 / n, 1e-9 * size)) continue;
    return iso_arena_printf(&s->res->arena,
                            more ? "`%s` is %u times `%s`: a sum over %u is not divided by that"
                                 : "`%s` is 1/%u of `%s`: what is a sum over %u is divided",
                            name_of(s, RIGHT, j), n, name_of(s, LEFT, i), n);
  }
  return "";
}

/* The same of any right node. */
static const char *any_wrong_scale(parting *p, uint32_t i) {
  const char *text = "";
  for (uint32_t j = 0; j < p->s->graph[RIGHT]->n_nodes && text && !*text; j++)
    if (p->s->map[RIGHT][j].i != EG_NONE && p->s->graph[RIGHT]->node[j].kind == SYNTH_OP)
      text = wrong_scale(p, i, j);
  return text;
}

/* An output that is there but for its scale. */
static iso_code scaled_output(parting *p, int64_t *node, const char **text, iso_error *err) {
  const state *s = p->s;
  for (size_t k = 0; k < s->graph[LEFT]->n_outputs; k++) {
    const uint32_t i = s->graph[LEFT]->output[k].node,
                   j = s->graph[RIGHT]->output[s->right_of[k]].node;
    if (!(*text = wrong_scale(p, i, j))) return nomem(err);
    if (!**text) continue;
    *node = i;
    return ISO_OK;
  }
  return ISO_OK;
}

/* In words that right node j is one rank's summand of left node i; "": it is none. */
static const char *summand(parting *p, uint32_t i, uint32_t j) {
  const state *s = p->s;
  const rule_tensor *v = lo_value(p, LEFT, i);
  const double tol = v && rule_dtype_is_float(v->dtype) ? 1e-9 * size_of(v) : 0;
  for (size_t k = 0; tol > 0 && k < s->ranks.n_peers; k++) {
    const peers *q = &s->ranks.peers[k];
    for (uint32_t r = 0; r < q->n && q->side == RIGHT && !q->pieces; r++)
      for (int mean = 0; mean < 2 && q->node[r] == j; mean++) {
        if (!adds_up(p, q, v, (measure){tol, mean ? 1.0 / q->n : 1})) continue;
        const char *of = names(p, q);
        return of ? iso_arena_printf(
                        &s->res->arena,
                        "`%s` is the %s of the ranks' %s, and `%s` of rank %u alone is "
                        "given: an all_reduce is missing here",
                        name_of(s, LEFT, i), mean ? "mean" : "sum", of, name_of(s, RIGHT, j), r)
                  : NULL;
      }
  }
  return "";
}

/* An output that is a rank's own summand of what it should be. */
static iso_code summed_output(parting *p, int64_t *node, const char **text, iso_error *err) {
  const state *s = p->s;
  for (size_t k = 0; k < s->graph[LEFT]->n_outputs && *node < 0; k++) {
    const uint32_t i = s->graph[LEFT]->output[k].node;
    if (!lo_output_apart(p, k)) continue;
    if (!(*text = summand(p, i, s->graph[RIGHT]->output[s->right_of[k]].node))) return nomem(err);
    if (**text) *node = i;
  }
  return ISO_OK;
}

static bool operands_held(const rule_term *t, const holding *h) {
  if (t->kind == RULE_VAR) return h[t->u.i].as != HELD_NOT;
  for (uint32_t i = 0; i < t->n; i++)
    if (!operands_held(t->child[i], h)) return false;
  return true;
}

static void mark_operands(const rule_term *t, bool *of) {
  if (t->kind == RULE_VAR) of[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark_operands(t->child[i], of);
}

/* The words of all operands that are not whole, a partial sum's alone where there is one. */
static iso_code all_operands(parting *p, const rule_term *t, const holding *h, held_as as,
                             const char **text, iso_error *err) {
  iso_code c = ISO_OK;
  if (t->kind == RULE_VAR && h[t->u.i].as == as) {
    const char *own = operand_words(p, (uint32_t)t->u.i, &h[t->u.i]);
    *text =
        own ? iso_arena_printf(&p->s->res->arena, "%s%s%s", *text, **text ? "; " : "", own) : NULL;
    if (!*text) return nomem(err);
  }
  for (uint32_t i = 0; i < t->n && !c; i++) c = all_operands(p, t->child[i], h, as, text, err);
  return c;
}

/* The nodes of the left that an output is made of which is right: so are they, whatever the ranks
 * hold of them. A loss of four micro-batches is four losses, each of a quarter of the rows. */
static void mark_right(const parting *p, bool *right) {
  const synth_graph *g = p->s->graph[LEFT];
  for (size_t k = 0; k < g->n_outputs; k++)
    if (!lo_output_apart(p, k)) right[g->output[k].node] = true;
  for (uint32_t i = (uint32_t)g->n_nodes; i-- > 0;)
    if (right[i] && g->node[i].kind == SYNTH_OP) mark_operands(g->node[i].call, right);
}

iso_code lo_rank_words(parting *p, int64_t *node, const char **text, iso_error *err) {
  const state *s = p->s;
  const synth_graph *g = s->graph[LEFT];
  bool any = false, pieces = false; /* of several ranks, and of one that takes its batch in parts */
  *node = -1;
  *text = "";
  for (size_t k = 0; k < s->ranks.n_peers; k++) {
    any |= s->ranks.peers[k].side == RIGHT && !s->ranks.peers[k].pieces;
    pieces |= s->ranks.peers[k].side == RIGHT && s->ranks.peers[k].pieces;
  }
  holding *h = any ? calloc(g->n_nodes + 1, sizeof *h) : NULL;
  bool *right = any ? calloc(g->n_nodes + 1, sizeof *right) : NULL;
  iso_code c = any && (!h || !right) ? nomem(err) : ISO_OK;
  if (any && !c) mark_right(p, right), c = summed_output(p, node, text, err);
  const bool given = *node >= 0;
  for (uint32_t i = 0; any && i < g->n_nodes && *node < 0 && !c; i++) {
    if (s->map[LEFT][i].i == EG_NONE) continue;
    h[i] = right[i] ? (holding){.as = HELD_WHOLE} : look(p, i);
    if (h[i].as != HELD_NOT) continue;
    if (g->node[i].kind == SYNTH_OP ? operands_held(g->node[i].call, h)
                                    : (*text = wrong_part(p, i)) && **text)
      *node = i;
    if (!*text) c = nomem(err);
  }
  if ((any || pieces) && !c && *node < 0) c = scaled_output(p, node, text, err);
  else if (!c && !given && *node >= 0) {
    const rule_term *call = g->node[*node].call;
    if (!**text && !(*text = wrong_part(p, (uint32_t)*node))) c = nomem(err);
    if (!c && !**text && !(*text = any_wrong_scale(p, (uint32_t)*node))) c = nomem(err);
    if (!c && !**text) c = all_operands(p, call, h, HELD_SUM, text, err);
    if (!c && !**text) c = all_operands(p, call, h, HELD_PARTS, text, err);
    if (!c && **text && call &&
        !(*text = iso_arena_printf(&s->res->arena,
                                   "the ranks hold what `%s` reads, and not what it "
                                   "gives: %s",
                                   g->node[*node].id, *text)))
      c = nomem(err);
  }
  free(h);
  free(right);
  return c;
}

/* ---- leaves that were not updated ---- */

/* The leaf that right node j is, or that is one of the parts that it is put together of; -1. */
static int64_t leaf_in(const state *s, uint32_t j) {
  const synth_node *n = &s->graph[RIGHT]->node[j];
  if (n->kind != SYNTH_OP) return j;
  if (strcmp(n->call->u.s, OP_CAT) != 0 || n->call->child[0]->kind != RULE_LIST) return -1;
  const rule_term *parts = n->call->child[0];
  for (uint32_t k = 0; k < parts->n; k++)
    if (parts->child[k]->kind == RULE_VAR &&
        s->graph[RIGHT]->node[parts->child[k]->u.i].kind != SYNTH_OP)
      return parts->child[k]->u.i;
  return -1;
}

iso_code lo_kept_output(parting *p, int64_t root[2], const char **hint, iso_error *err) {
  const state *s = p->s;
  *hint = NULL;
  if (p->gap || p->kept || s->graph[LEFT]->n_outputs < 2) return ISO_OK;
  for (size_t o = 0; o < s->graph[LEFT]->n_outputs && !p->kept; o++) {
    const uint32_t i = s->graph[LEFT]->output[o].node;
    const synth_output *out = &s->graph[RIGHT]->output[s->right_of[o]];
    const int64_t leaf = lo_output_apart(p, o) ? leaf_in(s, out->node) : -1;
    if (leaf < 0 || s->graph[LEFT]->node[i].kind != SYNTH_OP) continue;
    p->kept = true;
    root[LEFT] = i;
    root[RIGHT] = leaf;
    *hint = iso_arena_printf(&s->res->arena, "output `%s` gives `%s` as it was: it is not updated",
                             out->name, name_of(s, RIGHT, (uint32_t)leaf));
    if (!*hint) return nomem(err);
  }
  return ISO_OK;
}
