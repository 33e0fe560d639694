#include "tests/support/textbook.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"

enum { MAX_KIDS = 8, MAX_VARS = 16 };

static void *need(void *p) {
  if (!p) {
    fputs("textbook: out of memory\n", stderr);
    exit(2);
  }
  return p;
}

typedef struct node {
  uint32_t op, n, kid[MAX_KIDS];
} node;
typedef struct entry {
  node key;
  uint32_t cls;
  struct entry *next;
} entry;
typedef struct parent {
  node n;
  uint32_t cls;
} parent;
typedef struct cls {
  node *node;
  parent *parent;
  size_t n_node, cap_node, n_parent, cap_parent;
} cls;
typedef struct term {
  bool is_var;
  uint32_t sym, n;
  struct term *kid[MAX_KIDS];
} term;
typedef struct rule {
  term *lhs, *rhs;
} rule;
typedef struct match {
  uint32_t rule, root, var[MAX_VARS];
} match;

struct textbook {
  char **op;
  size_t n_op;
  entry **bucket;
  size_t n_bucket, n_entry;
  uint32_t *up;
  cls *cls;
  size_t n_cls, cap_cls, n_merged;
  uint32_t *work;
  size_t n_work, cap_work;
  rule *rule;
  size_t n_rule;
  match *found;
  size_t n_found, cap_found;
};

#define PUSH(a, n, cap, x) \
  do { \
    if ((n) == (cap)) (a) = need(realloc((a), ((cap) = (cap) ? 2 * (cap) : 4) * sizeof *(a))); \
    (a)[(n)++] = (x); \
  } while (0)

textbook *textbook_new(void) {
  textbook *t = need(calloc(1, sizeof *t));
  t->n_bucket = 1024;
  t->bucket = need(calloc(t->n_bucket, sizeof *t->bucket));
  return t;
}

static void term_free(term *x) {
  for (uint32_t k = 0; !x->is_var && k < x->n; k++) term_free(x->kid[k]);
  free(x);
}

void textbook_free(textbook *t) {
  for (size_t i = 0; i < t->n_bucket; i++)
    for (entry *e = t->bucket[i], *next; e; e = next) {
      next = e->next;
      free(e);
    }
  for (size_t i = 0; i < t->n_cls; i++) {
    free(t->cls[i].node);
    free(t->cls[i].parent);
  }
  for (size_t i = 0; i < t->n_rule; i++) {
    term_free(t->rule[i].lhs);
    term_free(t->rule[i].rhs);
  }
  for (size_t i = 0; i < t->n_op; i++) free(t->op[i]);
  free(t->op), free(t->bucket), free(t->up), free(t->cls), free(t->work), free(t->rule),
      free(t->found), free(t);
}

static uint32_t find(const textbook *t, uint32_t c) {
  while (t->up[c] != c) c = t->up[c] = t->up[t->up[c]];
  return c;
}

static node canonical(const textbook *t, node n) {
  for (uint32_t k = 0; k < n.n; k++) n.kid[k] = find(t, n.kid[k]);
  return n;
}
static bool same(const node *a, const node *b) {
  return a->op == b->op && a->n == b->n && memcmp(a->kid, b->kid, a->n * sizeof *a->kid) == 0;
}
static uint64_t hash(const node *n) {
  return iso_hash(n->kid, n->n * sizeof *n->kid, n->op * 31u + n->n);
}

static entry **lookup(const textbook *t, const node *n) {
  entry **at = &t->bucket[hash(n) % t->n_bucket];
  while (*at && !same(&(*at)->key, n)) at = &(*at)->next;
  return at;
}

static void put(textbook *t, node n, uint32_t c) {
  entry **at = lookup(t, &n);
  if (*at) {
    (*at)->cls = c;
    return;
  }
  entry *e = need(malloc(sizeof *e));
  *e = (entry){n, c, NULL};
  *at = e;
  if (++t->n_entry < t->n_bucket) return;
  entry **old = t->bucket;
  const size_t n_old = t->n_bucket;
  t->bucket = need(calloc(t->n_bucket = 2 * n_old, sizeof *t->bucket));
  for (size_t i = 0; i < n_old; i++)
    for (entry *x = old[i], *next; x; x = next) {
      next = x->next;
      entry **to = &t->bucket[hash(&x->key) % t->n_bucket];
      x->next = *to;
      *to = x;
    }
  free(old);
}

static uint32_t add(textbook *t, node n) {
  n = canonical(t, n);
  entry *e = *lookup(t, &n);
  if (e) return find(t, e->cls);
  const uint32_t c = (uint32_t)t->n_cls;
  if (t->n_cls == t->cap_cls) {
    t->cap_cls = t->cap_cls ? 2 * t->cap_cls : 64;
    t->cls = need(realloc(t->cls, t->cap_cls * sizeof *t->cls));
    t->up = need(realloc(t->up, t->cap_cls * sizeof *t->up));
  }
  t->n_cls++;
  t->up[c] = c;
  t->cls[c] = (cls){0};
  PUSH(t->cls[c].node, t->cls[c].n_node, t->cls[c].cap_node, n);
  for (uint32_t k = 0; k < n.n; k++) {
    cls *x = &t->cls[n.kid[k]];
    PUSH(x->parent, x->n_parent, x->cap_parent, ((parent){n, c}));
  }
  put(t, n, c);
  return c;
}

static bool merge(textbook *t, uint32_t a, uint32_t b) {
  a = find(t, a), b = find(t, b);
  if (a == b) return false;
  if (t->cls[a].n_parent < t->cls[b].n_parent) {
    const uint32_t x = a;
    a = b, b = x;
  }
  t->up[b] = a;
  t->n_merged++;
  cls *from = &t->cls[b], *into = &t->cls[a];
  for (size_t i = 0; i < from->n_node; i++)
    PUSH(into->node, into->n_node, into->cap_node, from->node[i]);
  for (size_t i = 0; i < from->n_parent; i++)
    PUSH(into->parent, into->n_parent, into->cap_parent, from->parent[i]);
  free(from->node);
  free(from->parent);
  *from = (cls){0};
  PUSH(t->work, t->n_work, t->cap_work, a);
  return true;
}

static void take_out(textbook *t, const node *n) {
  entry **at = lookup(t, n), *e = *at;
  if (!e) return;
  *at = e->next;
  free(e);
  t->n_entry--;
}

static void repair(textbook *t, uint32_t c) {
  const size_t n = t->cls[c].n_parent;
  parent *p = t->cls[c].parent;
  t->cls[c].parent = NULL;
  t->cls[c].n_parent = t->cls[c].cap_parent = 0;
  for (size_t i = 0; i < n; i++) {
    take_out(t, &p[i].n);
    p[i].n = canonical(t, p[i].n);
    entry *e = *lookup(t, &p[i].n);
    if (e) merge(t, e->cls, p[i].cls);
    put(t, p[i].n, find(t, p[i].cls));
    cls *x = &t->cls[find(t, c)];
    PUSH(x->parent, x->n_parent, x->cap_parent, p[i]);
  }
  free(p);
}

static int by_node(const void *a, const void *b) {
  const node *x = a, *y = b;
  if (x->op != y->op) return x->op < y->op ? -1 : 1;
  if (x->n != y->n) return x->n < y->n ? -1 : 1;
  for (uint32_t k = 0; k < x->n; k++)
    if (x->kid[k] != y->kid[k]) return x->kid[k] < y->kid[k] ? -1 : 1;
  return 0;
}

static void rebuild(textbook *t) {
  while (t->n_work) repair(t, find(t, t->work[--t->n_work]));
  for (uint32_t c = 0; c < t->n_cls; c++) {
    cls *x = &t->cls[c];
    if (t->up[c] != c) continue;
    for (size_t i = 0; i < x->n_node; i++) x->node[i] = canonical(t, x->node[i]);
    qsort(x->node, x->n_node, sizeof *x->node, by_node);
    size_t n = 0;
    for (size_t i = 0; i < x->n_node; i++)
      if (n == 0 || by_node(&x->node[n - 1], &x->node[i])) x->node[n++] = x->node[i];
    x->n_node = n;
  }
}

/* ---- rules ---- */

static uint32_t op_of(textbook *t, const char *s, size_t n) {
  for (uint32_t i = 0; i < t->n_op; i++)
    if (strlen(t->op[i]) == n && memcmp(t->op[i], s, n) == 0) return i;
  t->op = need(realloc(t->op, (t->n_op + 1) * sizeof *t->op));
  t->op[t->n_op] = need(strndup(s, n));
  return (uint32_t)t->n_op++;
}

/* Variables are numbered through `var` (with EG_NONE for NULL: not allowed). */
static term *read_term(textbook *t, const eg_sexp *e, const eg_sexp **var, uint32_t *n_var) {
  term *x = need(calloc(1, sizeof *x));
  if (!e->is_list && *e->text == '?') {
    x->is_var = true;
    while (x->sym < *n_var &&
           !(var[x->sym]->n == e->n && memcmp(var[x->sym]->text, e->text, e->n) == 0))
      x->sym++;
    if (x->sym == *n_var) var[(*n_var)++] = e;
    return x;
  }
  const eg_sexp *head = e->is_list ? e->first : e;
  x->sym = op_of(t, head->text, head->n);
  for (const eg_sexp *k = e->is_list ? head->next : NULL; k; k = k->next)
    x->kid[x->n++] = read_term(t, k, var, n_var);
  return x;
}

static uint32_t build(textbook *t, const term *x, const uint32_t *var) {
  if (x->is_var) return var[x->sym];
  node n = {.op = x->sym, .n = x->n};
  for (uint32_t k = 0; k < x->n; k++) n.kid[k] = build(t, x->kid[k], var);
  return add(t, n);
}

bool textbook_load(textbook *t, const eg_workload *w) {
  const eg_sexp *var[MAX_VARS];
  uint32_t n_var = 0;
  if (strcmp(w->analysis, "none") != 0) return false;
  t->rule = need(calloc(w->n_rules + 1, sizeof *t->rule));
  for (size_t i = 0; i < w->n_rules; i++) {
    const eg_workload_rule *r = &w->rule[i];
    if (r->multi || r->when || r->cond) return false;
    n_var = 0;
    t->rule[i].lhs = read_term(t, r->lhs_at, var, &n_var);
    t->rule[i].rhs = read_term(t, r->rhs_at, var, &n_var);
    t->n_rule++;
  }
  for (const eg_sexp *e = w->start; e; e = e->next) {
    if (!eg_sexp_is(e->first, "term")) return false;
    n_var = 0;
    term *x = read_term(t, e->first->next, var, &n_var);
    build(t, x, NULL);
    term_free(x);
  }
  rebuild(t);
  return true;
}

/* ---- matching: the terms to match yet are a list, so that each way through all of them is one
 * match ---- */

typedef struct todo {
  const term *x;
  uint32_t cls;
  const struct todo *next;
} todo;

static void search(textbook *t, const todo *d, match *m) {
  if (!d) {
    PUSH(t->found, t->n_found, t->cap_found, *m);
    return;
  }
  if (d->x->is_var) {
    uint32_t *v = &m->var[d->x->sym];
    if (*v == EG_NONE) {
      *v = d->cls;
      search(t, d->next, m);
      *v = EG_NONE;
    } else if (*v == d->cls) {
      search(t, d->next, m);
    }
    return;
  }
  const cls *c = &t->cls[d->cls];
  for (size_t i = 0; i < c->n_node; i++) {
    const node *n = &c->node[i];
    todo kid[MAX_KIDS];
    const todo *rest = d->next;
    if (n->op != d->x->sym || n->n != d->x->n) continue;
    for (uint32_t k = n->n; k-- > 0; rest = &kid[k])
      kid[k] = (todo){d->x->kid[k], find(t, n->kid[k]), rest};
    search(t, rest, m);
  }
}

size_t textbook_iterate(textbook *t, bool *changed) {
  const size_t nodes = textbook_count_nodes(t), classes = textbook_count_classes(t);
  bool merged = false;
  t->n_found = 0;
  for (uint32_t r = 0; r < t->n_rule; r++)
    for (uint32_t c = 0; c < t->n_cls; c++) {
      if (t->up[c] != c) continue;
      match m = {.rule = r, .root = c};
      memset(m.var, 0xff, sizeof m.var); /* EG_NONE */
      search(t, &(todo){t->rule[r].lhs, c, NULL}, &m);
    }
  for (size_t i = 0; i < t->n_found; i++) {
    const match m = t->found[i];
    if (merge(t, m.root, build(t, t->rule[m.rule].rhs, m.var))) merged = true;
  }
  rebuild(t);
  *changed = merged || nodes != textbook_count_nodes(t) || classes != textbook_count_classes(t);
  return t->n_found;
}

size_t textbook_count_nodes(const textbook *t) {
  size_t n = 0;
  for (size_t c = 0; c < t->n_cls; c++)
    if (t->up[c] == c) n += t->cls[c].n_node;
  return n;
}
size_t textbook_count_classes(const textbook *t) { return t->n_cls - t->n_merged; }
