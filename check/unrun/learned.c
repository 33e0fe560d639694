/* Relations of parameters that a certificate of a small pair was checked for, said of parameters
 * whose names differ from them in numbers alone. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "check/unrun/unrun.h"
#include "check/value_int.h"

/* Which number of a learned name is which one here. */
enum { MAX_NUMBERS = 16, MAX_DIGITS = 16 };
typedef struct numbers {
  size_t n;
  const char *from[MAX_NUMBERS], *to[MAX_NUMBERS]; /* where they stand, inside of names */
} numbers;

static size_t digits(const char *s) {
  size_t n = 0;
  while (isdigit((unsigned char)s[n])) n++;
  return n;
}

static bool same_number(const char *a, const char *b) {
  return digits(a) == digits(b) && memcmp(a, b, digits(a)) == 0;
}

/* The number at `from` stands for that at `to`; one that was not met before only where `open`. */
static bool stands_for(numbers *m, const char *from, const char *to, bool open) {
  for (size_t i = 0; i < m->n; i++)
    if (same_number(m->from[i], from)) return same_number(m->to[i], to);
  if (!open) return same_number(from, to);
  if (m->n == MAX_NUMBERS) return false;
  m->from[m->n] = from, m->to[m->n++] = to;
  return true;
}

/* Whether `name` is the learned one with other numbers, each number the same wherever it stands. */
static bool fits(numbers *m, const char *learned, const char *name, bool open) {
  while (*learned && *name) {
    const size_t x = digits(learned), y = digits(name);
    if (!x != !y || x >= MAX_DIGITS || y >= MAX_DIGITS) return false;
    if (x ? !stands_for(m, learned, name, open) : *learned != *name) return false;
    learned += x ? x : 1;
    name += y ? y : 1;
  }
  return *learned == *name;
}

/* Whether the term is the learned one over leaves of these names. */
static bool alike(const chk_state *k, const chk_related *l, numbers *m, const rule_term *learned,
                  const rule_term *t, int depth) {
  if (depth > CHK_LAYOUT_DEPTH) return false;
  if (t->kind == RULE_VAR && k->term[t->u.i].call && !k->term[t->u.i].node)
    return alike(k, l, m, learned, k->term[t->u.i].call, depth + 1);
  if (learned->kind == RULE_VAR || t->kind == RULE_VAR)
    return learned->kind == t->kind &&
           fits(m, l->name[learned->u.i], chk_name_of(k, (uint32_t)t->u.i), false);
  if (learned->kind != RULE_OP && learned->kind != RULE_LIST) return rule_term_eq(learned, t);
  if (learned->kind != t->kind || learned->n != t->n ||
      (t->kind == RULE_OP && strcmp(learned->u.s, t->u.s) != 0))
    return false;
  for (uint32_t i = 0; i < t->n; i++)
    if (!alike(k, l, m, learned->child[i], t->child[i], depth)) return false;
  return true;
}

/* How many numbers of a leaf's name are others than the learned one's; SIZE_MAX: it does not fit.
 */
static size_t others(const chk_state *k, const chk_related *l, uint32_t leaf, numbers *m) {
  size_t n = 0;
  m->n = 0;
  if (l->right != (k->term[leaf].side == RIGHT) || !fits(m, l->leaf, chk_name_of(k, leaf), true))
    return SIZE_MAX;
  for (size_t i = 0; i < m->n; i++) n += !same_number(m->from[i], m->to[i]);
  return n;
}

/* By those with the fewest other numbers: w1 and w3 are not two of a kind where both were learned.
 * All of these have to say it. Of layers.0.u = experts.0.w it is not known which 0 was the layer's,
 * and another relation may say so. */
bool chk_was_learned(const chk_state *k, uint32_t a, uint32_t b) {
  const rule_term t = {.kind = RULE_VAR, .u = {.i = b}};
  size_t least = SIZE_MAX;
  bool yes = true;
  numbers m;
  for (size_t i = 0; i < k->o->n_learned; i++) {
    const size_t n = others(k, &k->o->learned[i], a, &m);
    if (n < least) least = n;
  }
  for (size_t i = 0; i < k->o->n_learned && yes && least != SIZE_MAX; i++)
    if (others(k, &k->o->learned[i], a, &m) == least)
      yes = alike(k, &k->o->learned[i], &m, k->o->learned[i].term, &t, 0);
  return yes && least != SIZE_MAX;
}

/* ---- what a certificate has, for others ---- */

enum { MOST_NAMES = 4096 };

/* A term over numbers of names. NULL in `out`: it is over something else than parameters. */
static iso_code over_names(chk_state *k, const rule_term *t, chk_related *r, const char **name,
                           int depth, const rule_term **out) {
  *out = NULL;
  if (depth > CHK_LAYOUT_DEPTH) return ISO_OK;
  if (t->kind == RULE_VAR) {
    const chk_term *x = &k->term[t->u.i];
    if (x->call) return x->node ? ISO_OK : over_names(k, x->call, r, name, depth + 1, out);
    if (x->node->kind != CAP_PARAMETER || r->n_names == MOST_NAMES) return ISO_OK;
    name[r->n_names] = iso_arena_strdup(k->arena, chk_name_of(k, (uint32_t)t->u.i));
    *out = name[r->n_names] ? rule_var(k->arena, (uint32_t)r->n_names) : NULL;
    r->n_names++;
    return *out ? ISO_OK : chk_nomem(k);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST)
    return (*out = rule_term_copy(k->arena, t)) ? ISO_OK : chk_nomem(k);
  const rule_term **child = iso_arena_alloc(k->arena, (t->n + 1) * sizeof *child);
  if (!child) return chk_nomem(k);
  for (uint32_t i = 0; i < t->n; i++) {
    const iso_code c = over_names(k, t->child[i], r, name, depth, &child[i]);
    if (c || !child[i]) return c;
  }
  const char *op = t->kind == RULE_OP ? iso_arena_strdup(k->arena, t->u.s) : "";
  *out = !op                  ? NULL
         : t->kind == RULE_OP ? rule_op(k->arena, op, child, t->n)
                              : rule_list(k->arena, child, t->n);
  return *out ? ISO_OK : chk_nomem(k);
}

iso_code chk_publish_related(chk_state *k) {
  chk_related *list = iso_arena_alloc(k->arena, (k->cert.n_steps + 1) * sizeof *list);
  const char **name = malloc(MOST_NAMES * sizeof *name);
  iso_code c = list && name ? ISO_OK : chk_nomem(k);
  size_t n = 0;
  for (size_t i = 0; i < k->cert.n_steps && !c; i++) {
    const chk_step *x = &k->cert.step[i];
    if (x->kind != CHK_LEAF || !chk_of_weights(k, x)) continue;
    const rule_term b = {.kind = RULE_VAR, .u = {.i = x->b}};
    chk_related r = {.right = k->term[x->a].side == RIGHT};
    c = over_names(k, &b, &r, name, 0, &r.term);
    if (c || !r.term) continue;
    const char **own = iso_arena_alloc(k->arena, (r.n_names + 1) * sizeof *own);
    if (!own || !(r.leaf = iso_arena_strdup(k->arena, chk_name_of(k, x->a)))) {
      c = chk_nomem(k);
      continue;
    }
    memcpy(own, name, r.n_names * sizeof *own);
    r.name = own;
    list[n++] = r;
  }
  free(name);
  k->report->related = list;
  k->report->n_related = c ? 0 : n;
  return c;
}
