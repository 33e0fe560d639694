/* Where a side loses digits that the other keeps: cuts before which its own error is larger, the
 * operator at fault, and how much of the outputs' error comes from there.
 *
 * Two ways to write one function round at slightly other places. So a loss is either one that the
 * other side's wider format saves, or one of far more error. */
#include "localise/rounding/rounding_int.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double by_format = 1.15, by_itself = 1.8; /* ratios of own errors */
enum { MOST_GROUPS = 16 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* Losses of one kind, in many layers. */
typedef struct group {
  rounding_loss loss;
  lr_words words;
  const char *key; /* the words, and the scope without its numbers */
  bool *marked;    /* by node: a cut that it is before */
} group;

typedef struct finding {
  lr_cuts *c;
  iso_arena *a;
  int *digits[2]; /* by class */
  uint32_t *room[2];
  bool *seen;
  group group[MOST_GROUPS];
  size_t n;
} finding;

/* ---- regions ---- */

static void walk(const finding *f, int side, uint32_t i, bool first, size_t *n) {
  const synth_graph *g = f->c->graph[side];
  if (f->seen[i] || g->node[i].kind != SYNTH_OP || (!first && f->c->of[side][i] >= 0)) return;
  f->seen[i] = true;
  f->room[side][(*n)++] = i;
}

static void walk_term(const finding *f, int side, const rule_term *t, size_t *n) {
  if (t->kind == RULE_VAR) walk(f, side, (uint32_t)t->u.i, false, n);
  for (uint32_t k = 0; k < t->n; k++) walk_term(f, side, t->child[k], n);
}

static int ascending(const void *a, const void *b) {
  const uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
  return x < y ? -1 : x > y;
}

/* The nodes computed since the cuts before. In the side's room until its next region. */
static lr_region region_of(const finding *f, int side, uint32_t end) {
  size_t n = 0;
  walk(f, side, end, true, &n);
  for (size_t k = 0; k < n; k++)
    walk_term(f, side, f->c->graph[side]->node[f->room[side][k]].call, &n);
  for (size_t k = 0; k < n; k++) f->seen[f->room[side][k]] = false;
  qsort(f->room[side], n, sizeof *f->room[side], ascending);
  return (lr_region){f->room[side], n};
}

static bool computes_wider(const synth_graph *g, const lr_region *r, int digits) {
  for (size_t k = 0; k < r->n; k++) {
    const synth_node *n = &g->node[r->node[k]];
    if (lr_rounds(n) && lr_digits(n->dtype) > digits) return true;
  }
  return false;
}

/* ---- finding them ---- */

/* The error that a side makes of its own before a cut: the one that random rounding of its results
 * predicts, which does not depend on luck; that of its kernels where they are far worse. Kernels of
 * short formats add up in float32. Those of float32 itself add up in any order, and none of them is
 * at fault. */
static double own_error(const lr_cut *k, int side, int digits) {
  const bool faulty = digits < 24 && k->nearest[side] > 2 * k->own[side];
  return faulty ? k->nearest[side] : k->own[side];
}

static int digits_of(const finding *f, const lr_cut *k, int side) {
  return lr_digits(f->c->graph[side]->node[k->node[side]].dtype);
}

static iso_code add(finding *f, const lr_cut *k, int side, double ratio, const lr_words *w,
                    iso_error *err) {
  const synth_graph *g = f->c->graph[side];
  const char *scope = g->node[w->node].scope;
  char *key = iso_arena_printf(f->a, "%s in %s", w->what, scope ? scope : "");
  if (!key) return nomem(err);
  for (char *p = key + strlen(w->what); *p; p++)
    if (isdigit((unsigned char)*p)) *p = '#';
  size_t i = 0;
  while (i < f->n && strcmp(f->group[i].key, key) != 0) i++;
  if (i == MOST_GROUPS) return ISO_OK;
  group *to = &f->group[i];
  if (i == f->n) {
    *to = (group){.key = key, .words = *w, .marked = calloc(g->n_nodes + 1, 1)};
    if (!to->marked) return nomem(err);
    to->loss = (rounding_loss){.side = side, .node = w->node};
    f->n++;
  }
  to->loss.places++;
  if (ratio > to->loss.ratio) to->loss.ratio = ratio;
  to->marked[k->node[side]] = true;
  return ISO_OK;
}

static iso_code look(finding *f, const lr_cut *k, iso_error *err) {
  const double error[2] = {own_error(k, 0, digits_of(f, k, 0)),
                           own_error(k, 1, digits_of(f, k, 1))};
  const int side = error[1] > error[0], digits = digits_of(f, k, side);
  const double unit = ldexp(1, -digits), own = error[side],
               ratio = own / fmax(error[!side], 0.05 * unit);
  if (!(own > 0.2 * unit) || ratio < by_format) return ISO_OK;
  lr_region region[2];
  for (int s = 0; s < 2; s++) region[s] = region_of(f, s, k->node[s]);
  /* One kernel in float32 rounds within itself as well, where nobody sees it: a side that writes
   * the same in a few more steps keeps as many digits. */
  const bool few_steps = digits == 24 && own < 16 * unit;
  const bool by_steps = ratio >= by_itself && !few_steps;
  if (!by_steps && !computes_wider(f->c->graph[!side], &region[!side], digits)) return ISO_OK;
  const lr_words w = lr_loss_words(f->c, k, side, region, (const int *const *)f->digits, f->a);
  return w.what && w.other ? add(f, k, side, ratio, &w, err) : nomem(err);
}

static iso_code begin(finding *f, iso_error *err) {
  const size_t most = f->c->graph[0]->n_nodes + f->c->graph[1]->n_nodes + 1;
  for (int side = 0; side < 2; side++) {
    const synth_graph *g = f->c->graph[side];
    const uint32_t *class = f->c->result->class_of[side];
    f->digits[side] = calloc(f->c->result->n_classes + 1, sizeof *f->digits[side]);
    f->room[side] = malloc(most * sizeof *f->room[side]);
    if (!f->digits[side] || !f->room[side]) return nomem(err);
    for (size_t i = 0; i < g->n_nodes && class; i++) {
      if (class[i] == UINT32_MAX) continue;
      const int d = lr_digits(g->node[i].dtype);
      if (d > f->digits[side][class[i]]) f->digits[side][class[i]] = d;
    }
  }
  return (f->seen = calloc(most, 1)) ? ISO_OK : nomem(err);
}

static void end(finding *f) {
  for (int side = 0; side < 2; side++) {
    free(f->digits[side]);
    free(f->room[side]);
  }
  for (size_t i = 0; i < f->n; i++) free(f->group[i].marked);
  free(f->seen);
}

/* ---- weighing them ---- */

/* Shares of the outputs' squared errors. Returns: in `counts` whether any output shows it. */
static iso_code weigh(finding *f, group *g, const rounding_output *pair, bool *counts,
                      iso_error *err) {
  const int side = g->loss.side;
  double *moved = calloc(f->c->graph[side]->n_outputs + 1, sizeof *moved),
         *share = iso_arena_alloc(f->a, (f->c->n_pairs + 1) * sizeof *share);
  iso_code c = moved && share ? lr_run_with(f->c, side, g->marked, moved, err) : nomem(err);
  *counts = false;
  for (size_t p = 0; p < f->c->n_pairs && !c; p++) {
    const double of = pair[p].error[side], by = moved[f->c->output[side][p]];
    share[p] = of > 0 && isfinite(by) ? fmin(1, by * by / (of * of)) : 0;
    *counts |= share[p] >= ROUNDING_LEAST_SHARE;
  }
  g->loss.share = share;
  free(moved);
  return c;
}

static const char *told(finding *f, const group *g) {
  static const char *const name[] = {"left", "right"};
  const rounding_loss *l = &g->loss;
  const synth_node *n = &f->c->graph[l->side]->node[l->node];
  const char *more = "";
  if (l->places > 1 && !(more = iso_arena_printf(f->a, " and %zu more place%s", l->places - 1,
                                                 l->places > 2 ? "s" : "")))
    return NULL;
  return iso_arena_printf(f->a, "%s at %s%s%s%s: %.2g times the %s's error", g->words.what,
                          n->scope && *n->scope ? n->scope : n->id, more,
                          *g->words.other ? ", " : "", g->words.other, l->ratio, name[!l->side]);
}

/* Whether an output shows that its side left the range: by an infinity, or, where the infinity was
 * divided by, by an error that the side within the range has not. */
static bool shows_overflow(const finding *f, int side, const rounding_output *o) {
  static const double far_worse = 4;
  if (f->c->overflow[side] < 0) return false;
  return isinf(o->error[side]) ||
         (f->c->overflow[!side] < 0 && o->error[side] > far_worse * o->error[!side]);
}

/* A side whose numbers outgrow their format where the exact ones are numbers. */
static iso_code overflow(finding *f, int side, const rounding_output *pair, rounding_loss *l,
                         bool *any, iso_error *err) {
  double *share = iso_arena_alloc(f->a, (f->c->n_pairs + 1) * sizeof *share);
  if (!share) return nomem(err);
  *any = false;
  for (size_t p = 0; p < f->c->n_pairs; p++) {
    share[p] = shows_overflow(f, side, &pair[p]) ? 1 : 0;
    *any |= share[p] > 0;
  }
  if (!*any) return ISO_OK;
  const synth_node *n = &f->c->graph[side]->node[f->c->overflow[side]];
  const char *text =
      iso_arena_printf(f->a, "the %s leaves the range of %s at %s", side ? "right" : "left",
                       rule_dtype_name(n->dtype), n->scope && *n->scope ? n->scope : n->id);
  *l = (rounding_loss){.side = side,
                       .node = (uint32_t)f->c->overflow[side],
                       .ratio = INFINITY,
                       .places = 1,
                       .share = share,
                       .text = text};
  return text ? ISO_OK : nomem(err);
}

static iso_code collect(finding *f, const rounding_output *pair, rounding *out, iso_error *err) {
  rounding_loss *all = iso_arena_alloc(f->a, (f->n + 3) * sizeof *all);
  iso_code c = all ? ISO_OK : nomem(err);
  bool counts = false;
  for (int side = 0; side < 2 && !c; side++) {
    c = overflow(f, side, pair, &all[out->n_losses], &counts, err);
    out->n_losses += !c && counts;
  }
  for (size_t i = 0; i < f->n && !c; i++) {
    group *g = &f->group[i];
    c = weigh(f, g, pair, &counts, err);
    if (c || !counts) continue;
    if (!(g->loss.text = told(f, g))) c = nomem(err);
    all[out->n_losses++] = g->loss;
  }
  out->loss = all;
  return c;
}

iso_code lr_find_losses(lr_cuts *c, const rounding_output *pair, rounding *out, iso_error *err) {
  finding f = {.c = c, .a = &out->arena};
  iso_code code = begin(&f, err);
  for (size_t k = 0; k < c->n && !code; k++) code = look(&f, &c->cut[k], err);
  if (!code) code = collect(&f, pair, out, err);
  end(&f);
  return code;
}
