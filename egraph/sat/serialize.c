/* eg_sat in other formats: egraph-serialize JSON out and in, DOT out. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "egraph/sat/sat_int.h"

/* ---- out ---- */

static void put_string(FILE *f, const char *s, size_t n) {
  fputc('"', f);
  for (size_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)s[i];
    if (c == '"' || c == '\\') fprintf(f, "\\%c", c);
    else if (c < 32) fprintf(f, "\\u%04x", c);
    else fputc(c, f);
  }
  fputc('"', f);
}

/* A child is named by an e-node of its class: the first shown. */
static uint32_t speaker(const eg_sat *s, uint32_t c) { return eg_sat_first(s, (eg_class){c}).i; }

/* A pruned class may have nothing left to name it by; e-nodes above it are then left out. */
static bool can_speak(const eg_sat *s, eg_row r) {
  bool can = true;
  for (uint32_t k = 0; k < s->op[egi_row_op(s, r.i)].arity; k++)
    can = can && speaker(s, eg_sat_row_child(s, r, k).i);
  return can;
}

bool eg_sat_write_json(const eg_sat *s, const eg_cost *cost, const eg_class *root, size_t n_roots,
                       FILE *f) {
  const char *comma = "";
  fputs("{\"nodes\": {", f);
  for (uint32_t c = 0; c < s->n_cls; c++) {
    if (s->up[c] != c) continue;
    for (eg_row r = eg_sat_first(s, (eg_class){c}); r.i; r = eg_sat_next(s, r)) {
      const egi_op *op = &s->op[egi_row_op(s, r.i)];
      if (!can_speak(s, r)) continue;
      fprintf(f, "%s\n  \"%u\": {\"op\": ", comma, r.i);
      put_string(f, op->name, op->n_name);
      fputs(", \"children\": [", f);
      for (uint32_t k = 0; k < op->arity; k++)
        fprintf(f, "%s\"%u\"", k ? ", " : "", speaker(s, eg_sat_row_child(s, r, k).i));
      fprintf(f, "], \"eclass\": \"%u\", \"cost\": %.17g}", c,
              cost && cost->node ? cost->node(cost->ctx, s, r) : 1);
      comma = ",";
    }
  }
  fputs("\n}, \"root_eclasses\": [", f);
  for (size_t i = 0; i < n_roots; i++)
    fprintf(f, "%s\"%u\"", i ? ", " : "", egi_shared_find(s, root[i].i));
  fputs("], \"class_data\": {}}\n", f);
  return fflush(f) == 0 && !ferror(f);
}

static void put_label(FILE *f, const egi_op *op) {
  for (size_t i = 0; i < op->n_name && i < 60; i++) {
    if (op->name[i] == '"' || op->name[i] == '\\') fputc('\\', f);
    fputc((unsigned char)op->name[i] < 32 ? ' ' : op->name[i], f);
  }
}

bool eg_sat_dot(const eg_sat *s, FILE *f) {
  fputs("digraph egraph {\n  compound=true;\n  node [shape=box];\n", f);
  for (int pass = 0; pass < 2; pass++)
    for (uint32_t c = 0; c < s->n_cls; c++) {
      if (s->up[c] != c) continue;
      if (!pass) fprintf(f, "  subgraph cluster_%u {\n    label=\"%u\";\n", c, c);
      for (eg_row r = eg_sat_first(s, (eg_class){c}); r.i; r = eg_sat_next(s, r)) {
        const egi_op *op = &s->op[egi_row_op(s, r.i)];
        if (!pass) {
          fprintf(f, "    n%u [label=\"", r.i);
          put_label(f, op);
          fputs("\"];\n", f);
          continue;
        }
        for (uint32_t k = 0; k < op->arity; k++) {
          const uint32_t child = eg_sat_row_child(s, r, k).i;
          fprintf(f, "  n%u -> n%u [lhead=cluster_%u, label=\"%u\"];\n", r.i, speaker(s, child),
                  child, k);
        }
      }
      if (!pass) fputs("  }\n", f);
    }
  fputs("}\n", f);
  return fflush(f) == 0 && !ferror(f);
}

/* ---- in: just enough JSON ---- */

enum { MAX_DEPTH = 64 };

typedef struct str {
  const char *p;
  size_t n;
} str;

typedef struct in_node {
  str id, op, eclass;
  size_t child, n_children; /* ids, in `child` of the reader */
  size_t missing;           /* children whose classes are not there yet */
  uint32_t
      waiting; /* where it speaks for its class: children that wait for that, EG_NONE at the end */
  double cost;
} in_node;

/* A child: the node that speaks for its class, whose child it is, and the next that waits for the
 * same class. */
typedef struct in_link {
  uint32_t cls, owner, next;
} in_link;

typedef struct reader {
  eg_sat *s;
  const char *begin, *p, *end;
  iso_arena mem;
  bool has_nodes; /* the key was there, with whatever many */
  in_node *node;
  size_t n_nodes, cap_nodes;
  str *child, *root;
  in_link *link; /* per child */
  size_t n_child, cap_child, n_root, cap_root;
  uint32_t *by_id, *by_class; /* open addressing over nodes: by their id; one of each class */
  size_t mask;
  eg_class *cls; /* per node that speaks for its class; EG_NONE before one is added */
  iso_error *err;
} reader;

static iso_code bad(const reader *r, const char *what) {
  return iso_fail(r->err, ISO_FORMAT, "byte %zu: %s", (size_t)(r->p - r->begin), what);
}
static iso_code nomem(const reader *r) {
  return iso_fail(r->err, ISO_NOMEM, "out of memory for a serialised e-graph");
}

static void skip(reader *r) {
  while (r->p < r->end && (*r->p == ' ' || *r->p == '\n' || *r->p == '\t' || *r->p == '\r')) r->p++;
}
static bool eat(reader *r, char c) {
  skip(r);
  if (r->p == r->end || *r->p != c) return false;
  r->p++;
  return true;
}

static size_t put_utf8(char *out, unsigned c) {
  if (c < 0x80) return out[0] = (char)c, 1;
  if (c < 0x800) return out[0] = (char)(0xc0 | c >> 6), out[1] = (char)(0x80 | (c & 63)), 2;
  out[0] = (char)(0xe0 | c >> 12);
  out[1] = (char)(0x80 | (c >> 6 & 63));
  out[2] = (char)(0x80 | (c & 63));
  return 3;
}

static bool hex4(const char *p, unsigned *out) {
  *out = 0;
  for (int i = 0; i < 4; i++) {
    const char *digits = "0123456789abcdef0123456789ABCDEF",
               *at = p[i] ? strchr(digits, p[i]) : NULL;
    if (!at) return false;
    *out = *out * 16 + (unsigned)(at - digits) % 16;
  }
  return *out != 0;
}

static iso_code read_string(reader *r, str *out) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  if (!eat(r, '"')) return bad(r, "a string is expected");
  const char *close = r->p;
  while (close < r->end && *close != '"') close += *close == '\\' && close + 1 < r->end ? 2 : 1;
  if (close >= r->end) return bad(r, "a string does not end");
  char *q = iso_arena_alloc(&r->mem, (size_t)(close - r->p) + 1);
  if (!q) return nomem(r);
  *out = (str){q, 0};
  for (; r->p < close; r->p++) {
    if (*r->p != '\\') {
      q[out->n++] = *r->p;
      continue;
    }
    const char *at = strchr(from, *++r->p);
    unsigned c;
    if (at && *at) q[out->n++] = to[at - from];
    else if (*r->p == 'u' && close - r->p > 4 && hex4(r->p + 1, &c)) {
      out->n += put_utf8(q + out->n, c);
      r->p += 4;
    } else return bad(r, "an escape that is not known");
  }
  r->p++;
  return ISO_OK;
}

static iso_code skip_value(reader *r, int depth) {
  str s;
  if (depth > MAX_DEPTH) return bad(r, "too deep");
  skip(r);
  if (r->p < r->end && *r->p == '"') return read_string(r, &s);
  const char close = eat(r, '{') ? '}' : eat(r, '[') ? ']' : 0;
  if (!close) {
    const char *start = r->p;
    while (r->p<r->end && * r->p> ' ' && !strchr(",]}", *r->p)) r->p++;
    return r->p > start ? ISO_OK : bad(r, "a value is expected");
  }
  if (eat(r, close)) return ISO_OK;
  do {
    iso_code code = ISO_OK;
    if (close == '}') {
      code = read_string(r, &s);
      if (!code && !eat(r, ':')) code = bad(r, "a colon is expected");
    }
    if (!code) code = skip_value(r, depth + 1);
    if (code) return code;
  } while (eat(r, ','));
  return eat(r, close) ? ISO_OK : bad(r, "a list does not end");
}

static bool is(str s, const char *text) {
  return strlen(text) == s.n && memcmp(s.p, text, s.n) == 0;
}

static iso_code read_strings(reader *r, str **list, size_t *n, size_t *cap) {
  if (!eat(r, '[')) return bad(r, "a list is expected");
  if (eat(r, ']')) return ISO_OK;
  do {
    if (!iso_grow(*list, *cap, *n + 1)) return nomem(r);
    const iso_code code = read_string(r, &(*list)[*n]);
    if (code) return code;
    (*n)++;
  } while (eat(r, ','));
  return eat(r, ']') ? ISO_OK : bad(r, "a list does not end");
}

static iso_code read_cost(reader *r, double *out) {
  char text[64], *end;
  size_t n = 0;
  skip(r);
  while (r->p < r->end && n < sizeof text - 1 && strchr("+-.0123456789eE", *r->p) && *r->p)
    text[n++] = *r->p++;
  text[n] = '\0';
  *out = strtod(text, &end);
  return n && !*end && *out >= 0 && *out < HUGE_VAL ? ISO_OK
                                                    : bad(r, "a cost that is no number from 0");
}

static iso_code node_field(reader *r, str key) {
  in_node *x = &r->node[r->n_nodes - 1];
  if (is(key, "op")) return read_string(r, &x->op);
  if (is(key, "eclass")) return read_string(r, &x->eclass);
  if (is(key, "cost")) return read_cost(r, &x->cost);
  if (!is(key, "children")) return skip_value(r, 0);
  x->child = r->n_child;
  const iso_code code = read_strings(r, &r->child, &r->n_child, &r->cap_child);
  x->n_children = r->n_child - x->child;
  return code;
}

static iso_code node_entry(reader *r, str key) {
  if (!iso_grow(r->node, r->cap_nodes, r->n_nodes + 1)) return nomem(r);
  r->node[r->n_nodes++] = (in_node){.id = key, .waiting = EG_NONE, .cost = 1};
  return ISO_OK;
}

static iso_code read_object(reader *r, int level);

static iso_code top_field(reader *r, str key) {
  if (is(key, "nodes")) {
    r->has_nodes = true;
    return read_object(r, 1);
  }
  if (is(key, "root_eclasses")) return read_strings(r, &r->root, &r->n_root, &r->cap_root);
  return skip_value(r, 0);
}

/* Level 0: the file; 1: its nodes; 2: one node. */
static iso_code read_object(reader *r, int level) {
  if (!eat(r, '{')) return bad(r, "an object is expected");
  if (eat(r, '}')) return ISO_OK;
  do {
    str key;
    iso_code code = read_string(r, &key);
    if (!code && !eat(r, ':')) code = bad(r, "a colon is expected");
    if (!code && level == 1) code = node_entry(r, key);
    if (!code)
      code = level == 0 ? top_field(r, key) : level == 1 ? read_object(r, 2) : node_field(r, key);
    if (code) return code;
  } while (eat(r, ','));
  return eat(r, '}') ? ISO_OK : bad(r, "an object does not end");
}

static uint32_t *cell(const reader *r, uint32_t *table, str s, bool classes) {
  size_t i = iso_hash(s.p, s.n, 0) & r->mask;
  for (; table[i] != EG_NONE; i = (i + 1) & r->mask) {
    const str t = classes ? r->node[table[i]].eclass : r->node[table[i]].id;
    if (t.n == s.n && memcmp(t.p, s.p, s.n) == 0) break;
  }
  return &table[i];
}

static iso_code index_nodes(reader *r) {
  size_t n = 16;
  while (n < 2 * r->n_nodes + 2) n *= 2;
  r->mask = n - 1;
  r->by_id = malloc(n * sizeof *r->by_id);
  r->by_class = malloc(n * sizeof *r->by_class);
  r->cls = malloc((r->n_nodes + 1) * sizeof *r->cls);
  if (!r->by_id || !r->by_class || !r->cls) return nomem(r);
  memset(r->by_id, 0xff, n * sizeof *r->by_id);
  memset(r->by_class, 0xff, n * sizeof *r->by_class);
  for (uint32_t i = 0; i < r->n_nodes; i++) {
    r->cls[i].i = EG_NONE;
    if (!r->node[i].op.p || !r->node[i].eclass.p) return bad(r, "a node without op or eclass");
    uint32_t *at = cell(r, r->by_id, r->node[i].id, false);
    if (*at != EG_NONE) return bad(r, "two nodes with one name");
    *at = i;
    at = cell(r, r->by_class, r->node[i].eclass, true);
    if (*at == EG_NONE) *at = i;
  }
  return ISO_OK;
}

/* The classes of the children: nodes wait for those that are not there yet. */
static iso_code link_children(reader *r) {
  for (uint32_t i = 0; i < r->n_nodes; i++) {
    in_node *x = &r->node[i];
    x->missing = x->n_children;
    for (size_t k = x->child; k < x->child + x->n_children; k++) {
      const uint32_t at = *cell(r, r->by_id, r->child[k], false);
      if (at == EG_NONE) return bad(r, "a child that is no node");
      in_node *c = &r->node[*cell(r, r->by_class, r->node[at].eclass, true)];
      r->link[k] = (in_link){(uint32_t)(c - r->node), i, c->waiting};
      c->waiting = (uint32_t)k;
    }
  }
  return ISO_OK;
}

static void children_of(const reader *r, const in_node *x, eg_class *child) {
  for (size_t k = 0; k < x->n_children; k++) child[k] = r->cls[r->link[x->child + k].cls];
}

/* Whose children are all there. Nodes that waited for its class come behind `n` in the queue. */
static iso_code add_node(reader *r, const in_node *x, eg_class *child, uint32_t *queue, size_t *n) {
  const uint32_t speaks = *cell(r, r->by_class, x->eclass, true);
  eg_class made, *mine = &r->cls[speaks];
  eg_op op;
  children_of(r, x, child);
  iso_code code = eg_sat_op(r->s, x->op.p, x->op.n, x->n_children, &op, r->err);
  if (!code) code = eg_sat_add(r->s, op, child, &made, r->err);
  if (code) return code;
  if (mine->i != EG_NONE) return eg_sat_merge(r->s, *mine, made, (eg_why){EG_WHY_GIVEN, 3}, r->err);
  *mine = made;
  for (uint32_t k = r->node[speaks].waiting; k != EG_NONE; k = r->link[k].next)
    if (--r->node[r->link[k].owner].missing == 0) queue[(*n)++] = r->link[k].owner;
  return ISO_OK;
}

/* By row; of nodes that have become one the least. */
static iso_code give_costs(const reader *r, eg_class *child, double **cost) {
  double *out = cost ? malloc(r->s->n_w * sizeof *out) : NULL;
  if (cost && !out) return nomem(r);
  for (size_t i = 0; out && i < r->s->n_w; i++) out[i] = HUGE_VAL;
  for (size_t i = 0; out && i < r->n_nodes; i++) {
    const in_node *x = &r->node[i];
    eg_op op;
    children_of(r, x, child);
    const iso_code code = eg_sat_op(r->s, x->op.p, x->op.n, x->n_children, &op, r->err);
    if (code) {
      free(out);
      return code;
    }
    uint64_t h = egi_mix_op(op.i);
    for (uint32_t k = 0; k < x->n_children; k++)
      h = egi_mix(h, r->s->args[k] = egi_sat_find(r->s, child[k].i));
    const uint32_t row =
        egi_row_find(r->s, op.i, r->s->args, (uint32_t)x->n_children, egi_mix_end(h));
    if (row && x->cost < out[row]) out[row] = x->cost;
  }
  if (cost) *cost = out;
  return ISO_OK;
}

static iso_code add_nodes(reader *r, double **cost) {
  size_t arity = 1, n = 0;
  for (size_t i = 0; i < r->n_nodes; i++)
    if (r->node[i].n_children > arity) arity = r->node[i].n_children;
  eg_class *child = malloc(arity * sizeof *child);
  uint32_t *queue = malloc((r->n_nodes + 1) * sizeof *queue);
  iso_code code = child && queue && (r->link = malloc((r->n_child + 1) * sizeof *r->link))
                      ? link_children(r)
                      : nomem(r);
  for (uint32_t i = 0; !code && i < r->n_nodes; i++)
    if (!r->node[i].missing) queue[n++] = i;
  for (size_t i = 0; !code && i < n; i++) code = add_node(r, &r->node[queue[i]], child, queue, &n);
  if (!code && n < r->n_nodes) code = bad(r, "a class without a finite term");
  if (!code) code = eg_sat_rebuild(r->s, r->err);
  if (!code) code = give_costs(r, child, cost);
  free(queue);
  free(child);
  return code;
}

static iso_code give_roots(reader *r, eg_class **root, size_t *n_roots) {
  if (!root) return ISO_OK;
  eg_class *out = malloc((r->n_root + 1) * sizeof *out);
  if (!out) return nomem(r);
  for (size_t i = 0; i < r->n_root; i++) {
    const uint32_t at = *cell(r, r->by_class, r->root[i], true);
    if (at == EG_NONE) {
      free(out);
      return bad(r, "a root that is no class");
    }
    out[i] = eg_sat_find(r->s, r->cls[at]);
  }
  *root = out;
  *n_roots = r->n_root;
  return ISO_OK;
}

iso_code eg_sat_read_json(eg_sat *s, const char *text, size_t n, eg_class **root, size_t *n_roots,
                          double **cost, iso_error *err) {
  double *costs = NULL;
  reader r = {.s = s, .begin = text, .p = text, .end = text + n, .err = err};
  iso_arena_init(&r.mem);
  iso_code code = read_object(&r, 0);
  skip(&r);
  if (!code && r.p != r.end) code = bad(&r, "more text behind the e-graph");
  if (!code && !r.has_nodes) code = bad(&r, "no \"nodes\": this is no serialised e-graph");
  if (!code) code = index_nodes(&r);
  if (!code) code = add_nodes(&r, cost ? &costs : NULL);
  if (!code) code = give_roots(&r, root, n_roots);
  if (!code && cost) *cost = costs;
  else free(costs);
  iso_arena_fini(&r.mem);
  void *owned[] = {r.node, r.child, r.root, r.by_id, r.by_class, r.cls, r.link};
  for (size_t i = 0; i < sizeof owned / sizeof *owned; i++) free(owned[i]);
  return code;
}
