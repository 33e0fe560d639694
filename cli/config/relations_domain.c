/* Lines of a relations file that give the domain of an input. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config/relations.h"
#include "rules/operators.h"

enum { MAX_EXCLUDED = 4096 };

typedef struct clauses {
  const char *at, *where;
  iso_arena *arena;
  rule_domain d;
  double *exclude;
  iso_error *err;
} clauses;

static void blanks(clauses *c) { c->at += strspn(c->at, " \t\r,"); }

/* A word of letters, as it stands there. */
static bool word(clauses *c, const char *w) {
  const size_t n = strlen(w);
  blanks(c);
  if (strncmp(c->at, w, n) != 0 || (c->at[n] && !strchr(" \t\r,", c->at[n]))) return false;
  c->at += n;
  return true;
}

static iso_code wrong(const clauses *c, const char *expected) {
  return iso_fail(c->err, ISO_FORMAT, "%s: %s is expected%s%.40s%s", c->where, expected,
                  *c->at ? " at \"" : " at the end", c->at, *c->at ? "\"" : "");
}

static bool number(clauses *c, double *out) {
  char *end;
  blanks(c);
  errno = 0;
  *out = strtod(c->at, &end);
  if (isinf(*out) && errno == ERANGE) return false; /* digits, but beyond what a double holds */
  if (end == c->at || isnan(*out) || (*end && !strchr(" \t\r,", *end))) return false;
  if (isfinite(*out) && fabs(*out) >= 0x1p53 && *out == floor(*out)) return false;
  c->at = end;
  return true;
}

static iso_code range(clauses *c) {
  double low, high;
  if (!number(c, &low) || !number(c, &high)) return wrong(c, "range LOWEST HIGHEST: a number");
  if (low > c->d.low) c->d.low = low;
  if (high < c->d.high) c->d.high = high;
  return ISO_OK;
}

static iso_code exclude(clauses *c) {
  const size_t before = c->d.n_exclude;
  double x;
  if (!c->exclude && !(c->exclude = iso_arena_alloc(c->arena, MAX_EXCLUDED * sizeof *c->exclude)))
    return iso_fail(c->err, ISO_NOMEM, "out of memory");
  while (number(c, &x)) {
    if (c->d.n_exclude == MAX_EXCLUDED)
      return iso_fail(c->err, ISO_FORMAT, "%s: more than %d values are excluded", c->where,
                      MAX_EXCLUDED);
    c->exclude[c->d.n_exclude++] = x;
  }
  c->d.exclude = c->exclude;
  return c->d.n_exclude > before ? ISO_OK : wrong(c, "exclude VALUE...: a number");
}

static void mask(clauses *c) {
  unsigned form = RULE_MASK;
  if (word(c, "left")) (void)cap_mask_form("left", &form);
  else if (word(c, "right")) (void)cap_mask_form("right", &form);
  else (void)word(c, "any");
  c->d.mask |= form;
}

static iso_code clause(clauses *c) {
  if (word(c, "range")) return range(c);
  if (word(c, "exclude")) return exclude(c);
  if (word(c, "distinct")) c->d.distinct = true;
  else if (word(c, "sorted")) c->d.sorted = true;
  else if (word(c, "mask")) mask(c);
  else return wrong(c, "range, exclude, distinct, sorted or mask");
  return ISO_OK;
}

bool relations_domain_begins(const char *at) {
  static const char *const words[] = {"range", "exclude", "distinct", "sorted", "mask"};
  clauses c = {.at = at};
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (word(&c, words[i])) return true;
  return false;
}

/* The domain that the line gives, within the capture's own. */
static iso_code set(clauses *c, cap_graph *g, uint32_t node) {
  const cap_node *n = &g->node[node];
  const rule_domain *d = NULL;
  iso_code code = cap_domain_new(c->arena, &c->d, c->exclude, n, &d, c->err);
  if (code) return iso_prefix(c->err, "%s: \"%.80s\": ", c->where, n->name);
  if (n->domain) {
    bool empty;
    char x[256], y[256];
    const rule_domain *was = n->domain;
    d = rule_domain_meet(c->arena, was, d, n->output[0].dtype, &n->output[0].shape, &empty);
    if (!d) return iso_fail(c->err, ISO_NOMEM, "out of memory");
    if (empty)
      return iso_fail(c->err, ISO_USAGE,
                      "%s: \"%.80s\" is said to be %s, and %s says %s: nothing is inside both",
                      c->where, n->name, rule_domain_print(&c->d, x, sizeof x), was->who,
                      rule_domain_print(was, y, sizeof y));
  }
  cap_set_domain(g, node, d);
  code = cap_check_domain(g, node, c->err);
  return code ? iso_prefix(c->err, "%s: ", c->where) : ISO_OK;
}

iso_code relations_domain(const char **at, const char *where, cap_graph *g, uint32_t node,
                          iso_error *err) {
  clauses c = {
      .at = *at, .where = where, .arena = &g->arena, .d = rule_domain_all(NULL), .err = err};
  if (!(c.d.who = iso_arena_strdup(&g->arena, where)))
    return iso_fail(err, ISO_NOMEM, "out of memory");
  do {
    const iso_code code = clause(&c);
    if (code) return code;
    blanks(&c);
  } while (*c.at);
  *at = c.at;
  return set(&c, g, node);
}

/* ---- what was said of inputs, for cap_agree ---- */

static void mark(const rule_term *t, bool *skip) {
  if (t->kind == RULE_VAR) skip[t->u.i] = true;
  for (uint32_t i = 0; i < t->n; i++) mark(t->child[i], skip);
}

/* Bounds on the single numbers of a left input hold of the right inputs that it is put together of,
 * where it has all of their numbers and none is computed. */
static iso_code pass_on(const rule_term *t, const rule_domain *d, cap_graph *right,
                        iso_error *err) {
  iso_code c = ISO_OK;
  if (t->kind == RULE_VAR) return cap_pass_domain(right, (uint32_t)t->u.i, d, err);
  if (t->kind == RULE_OP) {
    const rule_operator *o = rule_operator_of(t->u.s);
    if (!o->rearranges && !o->joins && !o->broadcasts && !o->identity) return ISO_OK;
  }
  for (uint32_t i = 0; i < t->n && !c; i++) c = pass_on(t->child[i], d, right, err);
  return c;
}

/* Right inputs that a left one is put together of are its parts. */
static void note_parts(const cap_graph *left, uint32_t whole, const rule_term *t,
                       cap_graph *right) {
  if (t->kind != RULE_OP || !rule_operator_of(t->u.s)->joins || t->n != 2 ||
      t->child[0]->kind != RULE_LIST || t->child[1]->kind != RULE_INT)
    return;
  const rule_term *list = t->child[0];
  int64_t from = 0;
  for (uint32_t i = 0; i < list->n; i++) {
    if (list->child[i]->kind != RULE_VAR) return;
    const uint32_t part = (uint32_t)list->child[i]->u.i;
    const rule_shape *s = &right->node[part].output[0].shape;
    const int64_t dim = t->child[1]->u.i + (t->child[1]->u.i < 0 ? s->rank : 0);
    if (right->node[part].kind != CAP_INPUT || s->rank != left->node[whole].output[0].shape.rank ||
        dim < 0 || dim >= s->rank)
      return;
    cap_set_part(right, part, whole, (uint32_t)dim, from);
    from += s->dim[dim];
  }
}

iso_code relations_agree(const relations *r, cap_graph *left, cap_graph *right, uint64_t seed,
                         cap_agreement *out, iso_error *err) {
  bool *skip[2] = {calloc(left->n_nodes + 1, 1), calloc(right->n_nodes + 1, 1)};
  uint32_t(*pair)[2] = calloc(r->n_given + 1, sizeof *pair);
  size_t n = 0;
  iso_code c = skip[0] && skip[1] && pair ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (size_t i = 0; i < r->n_given && !c; i++) {
    const synth_given *g = &r->given[i];
    if (g->equals) {
      mark(g->term, skip[1]);
      mark(g->equals, skip[1]);
      continue;
    }
    if (left->node[g->left].kind != CAP_INPUT) continue;
    if (g->term && g->term->kind == RULE_VAR && !g->forbid) {
      pair[n][0] = g->left;
      pair[n++][1] = (uint32_t)g->term->u.i;
      continue;
    }
    skip[0][g->left] = true;
    if (!g->term) continue;
    mark(g->term, skip[1]);
    if (!g->forbid) note_parts(left, g->left, g->term, right);
    const rule_domain *d = left->node[g->left].domain;
    if (d && !g->forbid) c = pass_on(g->term, d, right, err);
  }
  const cap_spoken said = {.pair = (const uint32_t(*)[2])pair,
                           .n_pairs = n,
                           .skip = {skip[0], skip[1]},
                           .opposed = r->opposed};
  if (!c) c = cap_agree(left, right, &said, seed, out, err);
  free(skip[0]);
  free(skip[1]);
  free(pair);
  return c;
}
