/* Masks (rules/masks.h): a certificate that reads them as minus infinity holds where all of both
 * captures' vanish. That is found here from the captures alone, and so is how near to them numbers
 * come on the captured inputs. Then the captures' terms are read so: calls that write a mask write
 * minus infinity, and a constant with masks of its own is no longer the value of its call. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check_int.h"
#include "rules/operators.h"

enum { MAX_OUT = 64 };

struct chk_masks {
  size_t n; /* captured terms, of both sides */
  rule_mask_node *node;
  rule_tensor **fixed; /* in captured dtypes */
  rule_masks *of[CHK_MASK_KINDS];
};

void chk_masks_free(chk_state *k) {
  chk_masks *m = k->mask.found;
  k->mask.found = NULL;
  if (!m) return;
  for (int kind = 0; kind < CHK_MASK_KINDS; kind++) rule_masks_free(m->of[kind]);
  for (size_t i = 0; m->fixed && i < m->n; i++) rule_tensor_unref(m->fixed[i]);
  free(m->fixed);
  free(m->node);
  free(m);
}

bool chk_masked(const chk_state *k, uint32_t t) {
  for (int kind = 0; k->mask.found && t < k->mask.found->n && kind < CHK_MASK_KINDS; kind++)
    if (k->mask.found->of[kind] && k->mask.reads[kind] && rule_masks_at(k->mask.found->of[kind], t))
      return true;
  return false;
}

bool chk_mask_source(const chk_state *k, uint32_t t) {
  for (int kind = 0; k->mask.found && t < k->mask.found->n && kind < CHK_MASK_KINDS; kind++)
    if (k->mask.found->of[kind] && k->mask.reads[kind] &&
        rule_masks_source(k->mask.found->of[kind], t))
      return true;
  return false;
}

bool chk_is_live(const chk_state *k, uint32_t t) {
  return k->mask.found && t < k->mask.found->n && k->mask.found->node[t].live;
}

static bool leaf_stays(const chk_state *k, uint32_t i) {
  const cap_node *n = k->term[i].node;
  for (size_t f = 0; f < k->cert.n_fixed; f++)
    if (k->cert.fixed[f] == i) return true;
  if (n->kind == CAP_INPUT || k->here.unpinned[i]) return false;
  return n->value && !chk_is_weight(n);
}

static bool all_fixed(const chk_masks *m, const rule_term *t) {
  if (t->kind == RULE_VAR) return m->fixed[t->u.i] != NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!all_fixed(m, t->child[i])) return false;
  return true;
}

/* The value of a call that cannot be run is not known, and masks in it are none that vanish. */
static iso_code fix(chk_state *k, chk_masks *m, uint32_t i) {
  const chk_term *t = &k->term[i];
  const rule_term *call = m->node[i].call;
  rule_tensor *out[MAX_OUT];
  size_t n = 0;
  iso_error why;
  if (!call) {
    if (leaf_stays(k, i)) m->fixed[i] = rule_tensor_ref(chk_captured(k, i, k->here.set));
    return ISO_OK;
  }
  if (!k->oracle || t->node->n_outputs != 1 || rule_is_getitem(call->u.s) || !all_fixed(m, call))
    return ISO_OK;
  const iso_code c = k->oracle->call(k->oracle->ctx, call, m->fixed, false, out, MAX_OUT, &n, &why);
  if (c) return c == ISO_NOMEM ? chk_nomem(k) : ISO_OK;
  if (n == 1) m->fixed[i] = out[0];
  else
    for (size_t o = 0; o < n; o++) rule_tensor_unref(out[o]);
  return ISO_OK;
}

static void mark(const rule_term *t, rule_mask_node *node) {
  if (t->kind == RULE_VAR) node[t->u.i].live = true;
  for (uint32_t i = 0; i < t->n; i++) mark(t->child[i], node);
}

static void mark_live(const chk_state *k, chk_masks *m) {
  for (int side = 0; side < 2; side++)
    for (size_t o = 0; o < k->graph[side]->n_results; o++) {
      rule_mask_node *n =
          &m->node[k->graph[side]->result[o].node + (side == RIGHT ? k->graph[LEFT]->n_nodes : 0)];
      n->live = n->output = true;
    }
  for (size_t i = m->n; i-- > 0;)
    if (m->node[i].live && m->node[i].call) mark(m->node[i].call, m->node);
}

/* Calls as they were captured: on a set before, some were read as others. */
static iso_code keep_calls(chk_state *k) {
  const size_t n = k->graph[LEFT]->n_nodes + k->graph[RIGHT]->n_nodes;
  if (k->mask.unread) return ISO_OK;
  if (!(k->mask.unread = calloc(n + 1, sizeof *k->mask.unread))) return chk_nomem(k);
  for (size_t i = 0; i < n; i++) k->mask.unread[i] = k->term[i].call;
  return ISO_OK;
}

static iso_code describe(chk_state *k) {
  if (keep_calls(k)) return ISO_NOMEM;
  chk_masks *m = k->mask.found = calloc(1, sizeof *m);
  if (!m) return chk_nomem(k);
  m->n = k->graph[LEFT]->n_nodes + k->graph[RIGHT]->n_nodes;
  m->node = calloc(m->n + 1, sizeof *m->node);
  m->fixed = calloc(m->n + 1, sizeof *m->fixed);
  if (!m->node || !m->fixed) return chk_nomem(k);
  for (size_t i = 0; i < m->n; i++) {
    const cap_node *n = k->term[i].node;
    m->node[i] = (rule_mask_node){.call = k->mask.unread[i],
                                  .shape = n->n_outputs ? &n->output[0].shape : NULL};
    if (n->n_outputs) m->node[i].dtype = n->output[0].dtype;
  }
  mark_live(k, m);
  iso_code c = ISO_OK;
  for (uint32_t i = 0; i < m->n && !c; i++) {
    if (m->node[i].live) c = fix(k, m, i);
    m->node[i].fixed = m->fixed[i];
  }
  return c;
}

/* Whether a rule of the certificate has a finite mask in it. */
static bool has_mask(const rule_term *t) {
  if (t->kind == RULE_FLOAT) return rule_is_mask(RULE_F32, t->u.f);
  for (uint32_t i = 0; i < t->n; i++)
    if (has_mask(t->child[i])) return true;
  return false;
}

static bool rules_read(const chk_state *k) {
  for (size_t i = 0; i < k->rules.n; i++) {
    const rule *r = rule_set_at(k->rules.rule[i], 0);
    if (has_mask(r->lhs) || has_mask(r->rhs)) return true;
  }
  return false;
}

/* The term as it is read; `any` where that is another than the captured one. */
static iso_code read_term(chk_state *k, const rule_masks *m, uint32_t i, bool *any) {
  if (!rule_masks_source(m, i)) {
    const rule_term *call = k->mask.unread[i] ? rule_masks_read(m, i, k->arena) : NULL;
    if (k->mask.unread[i] && !call) return chk_nomem(k);
    if (call != k->mask.unread[i]) k->term[i].call = call, *any = true;
    return ISO_OK;
  }
  rule_tensor *v;
  *any = true;
  iso_code c = rule_masks_value(m, i, &v, k->err);
  if (c) return c;
  c = chk_set_constant(k, i, v);
  rule_tensor_unref(v);
  const rule_term *number = k->mask.unread[i] ? rule_int(k->arena, i) : NULL;
  if (!c && k->mask.unread[i] && !(k->term[i].call = rule_op(k->arena, "isomer::mask", &number, 1)))
    c = chk_nomem(k);
  return c;
}

static iso_code read_masks(chk_state *k, const rule_masks *m, const char *text) {
  size_t where;
  bool any = false;
  iso_code c = ISO_OK;
  if (!rule_masks_vanish(m, &where))
    return chk_settle(k, CHK_REFUSED,
                      "masks are read as minus infinity, and one does not vanish at %s \"%s\"",
                      k->term[where].side == LEFT ? "left's" : "right's", k->term[where].node->id);
  for (uint32_t i = 0; i < k->mask.found->n && !c; i++)
    if (k->mask.found->node[i].live) c = read_term(k, m, i, &any);
  if (!c && !any)
    return chk_settle(k, CHK_REFUSED, "masks are said to be read, and there are none");
  return c ? c : chk_assume(k, RULE_ASSUMES_LITERAL, text);
}

iso_code chk_find_masks(chk_state *k) {
  static const char *const text[] = {
      "a mask's -65504, the least finite float16, is read as minus infinity",
      "a mask of the least finite number, or half of it, is read as minus infinity"};
  const bool wanted[] = {k->mask.reads[CHK_MASK_HALF],
                         k->mask.reads[CHK_MASK_OTHER] || rules_read(k)};
  chk_masks_free(k);
  iso_code c = wanted[0] || wanted[1] ? describe(k) : ISO_OK;
  for (int kind = 0; kind < CHK_MASK_KINDS && !c; kind++)
    if (wanted[kind])
      c = rule_masks_new(k->oracle, k->mask.found->node, k->mask.found->n, kind == CHK_MASK_HALF,
                         &k->mask.found->of[kind], k->err);
  for (int kind = 0; kind < CHK_MASK_KINDS && !c && !chk_settled(k); kind++)
    if (k->mask.reads[kind]) c = read_masks(k, k->mask.found->of[kind], text[kind]);
  return c;
}

/* ---- numbers beside them ---- */

typedef struct among {
  const chk_state *k;
  bool infinite; /* masks of their own count as none */
} among;

static double largest(void *ctx, size_t i) {
  const among *a = ctx;
  const chk_values *v = &a->k->here.real[i];
  const rule_tensor *t = v->n == 1 ? v->v[0] : NULL;
  double most = 0;
  for (int64_t e = 0; t && e < t->numel; e++) {
    const double x = fabs(rule_tensor_get(t, e));
    if (isinf(x) && a->infinite) continue;
    if (!(x <= most)) most = isnan(x) ? INFINITY : x;
  }
  return t ? most : INFINITY;
}

/* Masks that rules read are as the certificate has them; a mask read here is refused where numbers
 * come near it. */
iso_code chk_near_masks(chk_state *k) {
  iso_code c = ISO_OK;
  for (int kind = 0; k->mask.found && kind < CHK_MASK_KINDS && !c; kind++) {
    among a = {k, kind == CHK_MASK_OTHER};
    const rule_masks *m = k->mask.found->of[kind];
    double most = 0;
    if (m) c = rule_masks_bound(m, largest, &a, &most, k->err);
    const bool near = !(most <= (kind == CHK_MASK_HALF ? RULE_MASK_F16_BOUND : RULE_MASK_BOUND));
    if (!c && near && k->mask.reads[kind])
      return chk_settle(
          k, CHK_REFUSED,
          "masks are read as minus infinity, and numbers beside them are as large as %.3g", most);
    k->mask.near |= near;
  }
  return c;
}
