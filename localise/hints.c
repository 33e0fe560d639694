/* Hints about a divergence: the attribute, the two arguments, the number or the leaf in which
 * its two places differ. */
#include "localise/alignment.h"
#include "rules/operators.h"
#include "localise/localise_int.h"
#include "synth/joint/joint.h"
#include "synth/search/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

int64_t lo_consumer(const state *s, int side, uint32_t leaf) {
  const synth_graph *g = s->graph[side];
  bool *flag = calloc(g->n_nodes + 1, 1);
  int64_t found = leaf;
  if (!flag) return leaf;
  flag[leaf] = true;
  for (size_t i = leaf + 1; i < g->n_nodes && found == leaf; i++)
    if (g->node[i].kind == SYNTH_OP && s->map[side][i].i != EG_NONE &&
        st_term_uses(g->node[i].call, flag))
      found = (int64_t)i;
  free(flag);
  return found;
}

/* Argument k counts dimensions, and one of the tensors has more of size 1 in front: the same one
 * from the end. */
static bool same_dimension(const parting *p, const synth_node *l, const synth_node *r, uint32_t k) {
  const rule_schema *sc = rule_schemas_find(p->s->schemas, l->call->u.s);
  const rule_term *x = l->call->child[0], *y = r->call->child[0], *a = l->call->child[k],
                  *b = r->call->child[k];
  if (!sc || k >= sc->n_args || !rule_arg_is_dim(&sc->arg[k]) || x->kind != RULE_VAR ||
      y->kind != RULE_VAR || a->kind != RULE_INT || b->kind != RULE_INT)
    return false;
  return a->u.i - p->s->graph[LEFT]->node[x->u.i].shape.rank ==
         b->u.i - p->s->graph[RIGHT]->node[y->u.i].shape.rank;
}

/* The same operator over the same tensors, with another attribute. */
int64_t lo_attribute_apart(const parting *p, const synth_node *l, const synth_node *r) {
  if (!l->call || !r->call || strcmp(l->call->u.s, r->call->u.s) != 0 || l->call->n != r->call->n)
    return -1;
  for (uint32_t k = 0; k < l->call->n && !p->gap; k++) {
    const rule_term *a = l->call->child[k], *b = r->call->child[k];
    if ((a->kind == RULE_VAR) != (b->kind == RULE_VAR)) return -1;
    const rule_tensor *x = a->kind == RULE_VAR ? lo_value(p, LEFT, (uint32_t)a->u.i) : NULL,
                      *y = a->kind == RULE_VAR ? lo_value(p, RIGHT, (uint32_t)b->u.i) : NULL;
    if (x && y && !lo_agree(p, x, y)) return -1;
  }
  for (uint32_t k = 0; k < l->call->n; k++) {
    const rule_term *a = l->call->child[k], *b = r->call->child[k];
    const bool la = a->kind != RULE_VAR && a->kind != RULE_LIST,
               lb = b->kind != RULE_VAR && b->kind != RULE_LIST;
    if (la && lb && !rule_term_eq(a, b) && !same_dimension(p, l, r, k)) return k;
  }
  return -1;
}

static const char *attribute_hint(const parting *p, const synth_node *l, const synth_node *r) {
  state *s = p->s;
  const int64_t k = lo_attribute_apart(p, l, r);
  if (k < 0) return NULL;
  const rule_schema *sc = rule_schemas_find(s->schemas, l->call->u.s);
  char *ta = rule_term_print(l->call->child[k], s->schemas, NULL),
       *tb = rule_term_print(r->call->child[k], s->schemas, NULL);
  const char *hint =
      ta && tb ? iso_arena_printf(&s->res->arena, "%s is %s on the left and %s on the right",
                                  sc && k < (int64_t)sc->n_args ? sc->arg[k].name : "an argument",
                                  ta, tb)
               : NULL;
  free(ta);
  free(tb);
  return hint;
}

void lo_remember(parting *p, const lo_change *change) {
  const size_t most = sizeof p->change / sizeof *p->change;
  bool known = change->op == NULL || p->n_changes == most;
  for (size_t i = 0; i < p->n_changes && !known; i++) {
    const lo_change *g = &p->change[i];
    known = g->side == change->side && strcmp(g->op, change->op) == 0 && g->k == change->k &&
            (g->to == NULL) == (change->to == NULL) &&
            (!g->to || (rule_term_eq(g->to, change->to) && rule_term_eq(g->from, change->from)));
  }
  if (!known) p->change[p->n_changes++] = *change;
}

/* Same operator, its arguments in another order: which two. */
static const char *swap_hint(const parting *p, const synth_node *l, const synth_node *r) {
  state *s = p->s;
  if (!l->call || !r->call || strcmp(l->call->u.s, r->call->u.s) != 0 || l->call->n != r->call->n)
    return NULL;
  const rule_schema *sc = rule_schemas_find(s->schemas, l->call->u.s);
  for (uint32_t i = 0; i < l->call->n; i++)
    for (uint32_t j = i + 1; j < l->call->n; j++) {
      const rule_term *a = l->call->child[i], *b = l->call->child[j], *x = r->call->child[i],
                      *y = r->call->child[j];
      if (a->kind != RULE_VAR || b->kind != RULE_VAR || x->kind != RULE_VAR || y->kind != RULE_VAR)
        continue;
      const rule_tensor *va = lo_value(p, LEFT, (uint32_t)a->u.i),
                        *vb = lo_value(p, LEFT, (uint32_t)b->u.i),
                        *vx = lo_value(p, RIGHT, (uint32_t)x->u.i),
                        *vy = lo_value(p, RIGHT, (uint32_t)y->u.i);
      if (!va || !vb || !vx || !vy || lo_agree(p, va, vx) || lo_agree(p, vb, vy) ||
          !lo_agree(p, va, vy) || !lo_agree(p, vb, vx))
        continue;
      if (sc && j < sc->n_args)
        return iso_arena_printf(&s->res->arena, "%s and %s are exchanged", sc->arg[i].name,
                                sc->arg[j].name);
      return "two arguments are exchanged";
    }
  return NULL;
}

/* b = a to one power, as frequencies of another base are; NAN where it is not. Both are kept with
 * fewer bits. */
static double power_of(const rule_tensor *a, const rule_tensor *b) {
  double xy = 0, xx = 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (!(x > 0) || !(y > 0)) return NAN;
    xy += log(x) * log(y);
    xx += log(x) * log(x);
  }
  const double p = xx > 0 ? xy / xx : NAN;
  for (int64_t i = 0; i < a->numel; i++)
    if (!(fabs(pow(rule_tensor_get(a, i), p) - rule_tensor_get(b, i)) <=
          1e-6 * rule_tensor_get(b, i)))
      return NAN;
  return p;
}

const char *lo_value_hint(const parting *p, const rule_tensor *a, const rule_tensor *b) {
  state *s = p->s;
  if (!a || !b || a->numel != b->numel || a->numel < 2 || !rule_dtype_is_float(a->dtype) ||
      !lo_same_but_ones(&a->shape, &b->shape))
    return NULL;
  double ab = 0, aa = 0, off = 0, norm = 0;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    if (!(fabs(x) < 1e30) || !(fabs(y) < 1e30)) return NULL;
    ab += x * y;
    aa += x * x;
    off += (y - x) / (double)a->numel;
    norm = fmax(norm, fmax(fabs(x), fabs(y)));
  }
  const double factor = aa > 0 ? ab / aa : 0;
  bool scaled = factor != 0, shifted = true;
  for (int64_t i = 0; i < a->numel; i++) {
    const double x = rule_tensor_get(a, i), y = rule_tensor_get(b, i);
    scaled &= fabs(y - factor * x) <= 1e-9 * norm;
    shifted &= fabs(y - x - off) <= 1e-9 * norm;
  }
  if (scaled && fabs(factor + 1) < 1e-9) return "the right has the other sign";
  if (scaled) return iso_arena_printf(&s->res->arena, "the right is %.9g times the left", factor);
  if (shifted)
    return iso_arena_printf(&s->res->arena, "the right is the left %c %.9g", off < 0 ? '-' : '+',
                            fabs(off));
  const double power = a->numel > 2 ? power_of(a, b) : NAN;
  if (isfinite(power))
    return iso_arena_printf(
        &s->res->arena,
        "the right is the left to the power %.6g, as frequencies of another base are", power);
  double ma[4], mb[4];
  st_moments(a, ma);
  st_moments(b, mb);
  return st_near_moments(ma, mb) ? "the right has the elements of the left in another order" : NULL;
}

static int64_t named(const synth_graph *g, const char *name) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == SYNTH_PARAMETER && strcmp(g->node[i].name, name) == 0) return (int64_t)i;
  return -1;
}

/* Of a leaf that the other side has by name, with other values. */
static const char *same_name(const parting *p, int side, int64_t i) {
  const synth_node *n = &p->s->graph[side]->node[i];
  const int64_t twin = n->kind == SYNTH_PARAMETER ? named(p->s->graph[!side], n->name) : -1;
  if (twin < 0) return NULL;
  const rule_tensor *const v = lo_value(p, side, (uint32_t)i), *const w = lo_value(p, !side,
                                                                                   (uint32_t)twin);
  return side == LEFT ? lo_leaf_changed(p, n->name, v, w) : lo_leaf_changed(p, n->name, w, v);
}

static const char *leaf_hint(const parting *p, int side, int64_t i) {
  const state *s = p->s;
  const synth_graph *g = s->graph[side];
  if (s->ranks.part[side][i] == PART_WRONG)
    return iso_arena_printf(&s->res->arena,
                            "%s is not the part that its rank should hold; first used by \"%s\"",
                            g->node[i].name, g->node[lo_consumer(s, side, (uint32_t)i)].id);
  const char *const words = same_name(p, side, i);
  if (words) return words;
  return iso_arena_printf(&s->res->arena,
                          "no leaf of the %s has the values of %s; first used by \"%s\"",
                          side == LEFT ? "right" : "left", g->node[i].name,
                          g->node[lo_consumer(s, side, (uint32_t)i)].id);
}

/* A cast of complex numbers to real ones. */
static bool drops_imaginary(const synth_graph *g, const synth_node *n) {
  if (n->kind != SYNTH_OP || !rule_operator_of(n->op)->cast) return false;
  const rule_term *x = n->call->n ? n->call->child[0] : NULL;
  return x && x->kind == RULE_VAR && rule_dtype_is_complex(g->node[x->u.i].dtype) &&
         !rule_dtype_is_complex(n->dtype);
}

static const char *operator_hint(const parting *p, int64_t left, int64_t right) {
  const synth_node *l = &p->s->graph[LEFT]->node[left], *r = &p->s->graph[RIGHT]->node[right];
  const synth_node *const node[2] = {l, r};
  for (int side = RIGHT; side >= LEFT; side--)
    if (drops_imaginary(p->s->graph[side], node[side]) &&
        !drops_imaginary(p->s->graph[!side], node[!side]))
      return iso_arena_printf(&p->s->res->arena, "on the %s the cast leaves the imaginary part out",
                              side == LEFT ? "left" : "right");
  if (l->kind != SYNTH_OP || r->kind != SYNTH_OP) return NULL;
  const char *const parted = lo_parted_otherwise(p, left, right);
  if (parted || strcmp(l->op, r->op) == 0) return parted;
  return iso_arena_printf(&p->s->res->arena, "%s on the left, %s on the right", l->op, r->op);
}

/* The parameter of the other side that a parameter was joined with, -1: none, or more than one. */
static int64_t partner_of(const state *s, int side, uint32_t i) {
  const eg_node *m;
  const size_t n = eg_class_nodes(s->g, eg_class_of(s->g, s->map[side][i]), &m);
  int64_t found = -1;
  size_t own = 0, other = 0;
  for (size_t k = 0; k < n; k++) {
    const rec *r = &s->rec[m[k].i];
    own += r->leaf && r->node[side] >= 0;
    if (r->leaf && r->node[!side] >= 0) found = r->node[!side], other++;
  }
  return own == 1 && other == 1 && s->graph[!side]->node[found].kind == SYNTH_PARAMETER ? found
                                                                                        : -1;
}

/* Right nodes that `root` is computed from in a few steps. Owns: malloc'ed. */
static bool *near_above(const synth_graph *g, int64_t root) {
  enum { STEPS = 12 };
  bool *args = calloc(g->n_nodes + 1, 1), *above = calloc(g->n_nodes + 1, 1);
  uint8_t *step = calloc(g->n_nodes + 1, 1); /* counted from 1 */
  if (args && above && step) step[root] = 1;
  for (size_t i = (size_t)root + 1; args && above && step && i-- > 0;) {
    if (!step[i]) continue;
    above[i] = true;
    if (g->node[i].kind != SYNTH_OP || step[i] > STEPS) continue;
    memset(args, 0, g->n_nodes);
    st_term_mark(g->node[i].call, args);
    for (size_t k = 0; k < i; k++)
      if (args[k] && (!step[k] || step[k] > step[i] + 1)) step[k] = (uint8_t)(step[i] + 1);
  }
  free(args);
  free(step);
  return above;
}

bool lo_exchanged_leaves(const parting *p, const int64_t root[2], synth_divergence *d) {
  state *s = p->s;
  const synth_graph *l = s->graph[LEFT], *r = s->graph[RIGHT];
  bool found = false, *above = near_above(r, root[RIGHT]);
  for (uint32_t a = 0; above && a < l->n_nodes && !found; a++) {
    if (l->node[a].kind != SYNTH_PARAMETER || s->map[LEFT][a].i == EG_NONE) continue;
    const int64_t b = partner_of(s, LEFT, a);
    if (b < 0 || strcmp(l->node[a].name, r->node[b].name) == 0) continue;
    const int64_t same = named(r, l->node[a].name),
                  twin = same < 0 ? -1 : partner_of(s, RIGHT, (uint32_t)same);
    if (twin < 0 || strcmp(l->node[twin].name, r->node[b].name) != 0 || !(above[b] || above[same]))
      continue;
    d->left = a;
    d->right = same;
    d->hint = iso_arena_printf(&s->res->arena, "the values of %s and %s are exchanged",
                               l->node[a].name, r->node[b].name);
    found = true;
  }
  free(above);
  return found;
}

iso_code lo_measure(const parting *p, const int64_t at[2], synth_divergence *d, iso_error *err) {
  const rule_tensor *x = lo_value(p, LEFT, (uint32_t)at[LEFT]),
                    *y = lo_value(p, RIGHT, (uint32_t)at[RIGHT]);
  if (!x || !y || x->numel != y->numel) return ISO_OK;
  const rule_diff df = p->s->oracle->compare(p->s->oracle->ctx, x, y, p->s->o->rel_tol);
  d->max_abs = df.max_abs;
  d->max_rel = df.max_rel;
  d->index = df.index;
  d->shape = x->shape;
  d->at[LEFT] = at[LEFT];
  d->at[RIGHT] = at[RIGHT];
  return p->gap ? ISO_OK : lo_picture(p->s, x, y, &d->picture, err);
}

const char *lo_hint(const parting *p, const synth_divergence *d, const rule_tensor *x,
                    const rule_tensor *y) {
  const synth_node *l = &p->s->graph[LEFT]->node[d->left], *r = &p->s->graph[RIGHT]->node[d->right];
  const char *h = attribute_hint(p, l, r);
  if (!h) h = swap_hint(p, l, r);
  if (!h && l->kind != SYNTH_OP) h = leaf_hint(p, LEFT, d->left);
  if (!h && r->kind != SYNTH_OP) h = leaf_hint(p, RIGHT, d->right);
  if (!h) h = lo_value_hint(p, x, y);
  if (!h) h = lo_unread_instead(p, r);
  if (!h) h = operator_hint(p, d->left, d->right);
  return h;
}
