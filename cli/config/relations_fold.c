/* Lines that say how a parameter was computed when its model was loaded. */
#include "cli/config/relations_int.h"
#include "rules/names.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

typedef struct arithmetic {
  const char *word, *op;
  int operands;
} arithmetic;
/* operator: the words of relation files */
static const arithmetic words[] = {{"mul", OP_MUL_TENSOR, 2},
                                   {"add", OP_ADD_TENSOR, 2},
                                   {"sub", OP_SUB_TENSOR, 2},
                                   {"div", OP_DIV_TENSOR, 2},
                                   {"matmul", OP_MATMUL, 2},
                                   {"neg", OP_NEG, 1},
                                   {"exp", OP_EXP, 1},
                                   {"sqrt", OP_SQRT, 1},
                                   {"rsqrt", OP_RSQRT, 1},
                                   {"node", NULL, 0},
                                   {"reciprocal", OP_RECIPROCAL, 1}};

static const arithmetic *find(const char *s, size_t n) {
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (strlen(words[i].word) == n && memcmp(words[i].word, s, n) == 0) return &words[i];
  return NULL;
}

bool relfile_is_arithmetic(const char *s) { return find(s, strlen(s)) != NULL; }

const char *relfile_arithmetic_word(const char *op) {
  if (strcmp(op, "node") == 0) return op;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    if (words[i].op && strcmp(words[i].op, op) == 0) return words[i].word;
  return NULL;
}

bool relations_is_fold(const char *s) {
  s += strspn(s, " \t\r");
  if (strncmp(s, "leaf", 4) != 0 || relfile_name_char(s[4])) return false;
  for (s += 4; *s && *s != '#'; s++) {
    if (*s == '"' && !(s = strchr(s + 1, '"'))) return false;
    size_t n = 0;
    while (*s != '"' && relfile_name_char(s[n])) n++;
    if (n && s[n + strspn(s + n, " \t")] == '(' && find(s, n)) return true;
    s += n ? n - 1 : 0;
  }
  return false;
}

/* ---- expressions ---- */

/* A number stands here: behind it is no character of a name. */
static bool take_number(relfile_reader *r, const rule_term **out) {
  iso_arena *a = &r->graph[RIGHT]->arena;
  char *end;
  relfile_blanks(r);
  if (!strchr("+-.0123456789", *r->at) || !*r->at) return false;
  const double x = strtod(r->at, &end);
  if (end == r->at || relfile_name_char(*end)) return false;
  const size_t n = (size_t)(end - r->at);
  const bool whole = strcspn(r->at, ".eEnx") >= n; /* in the file's spelling, as in a program's */
  *out = whole ? rule_int(a, (int64_t)x) : rule_float(a, x);
  r->at = end;
  return true;
}

/* Integers are read as numbers of float32, as a program does that scales them. */
static iso_code floating(relfile_reader *r, relfile_tensor *x) {
  if (rule_dtype_is_float(x->what.dtype)) return ISO_OK;
  iso_arena *a = &r->graph[RIGHT]->arena;
  const rule_term *arg[2] = {x->term, rule_dtype_term(a, RULE_F32)};
  const cap_output to = {x->what.shape, RULE_F32};
  return relfile_call(r, OP_TO_DTYPE, arg, 2, &to, x);
}

static bool broadcast(const rule_shape *a, const rule_shape *b, rule_shape *out) {
  const rule_shape *l = a->rank >= b->rank ? a : b, *s = l == a ? b : a;
  *out = *l;
  for (uint32_t i = 0; i < s->rank; i++) {
    int64_t *d = &out->dim[l->rank - s->rank + i];
    if (*d == 1) *d = s->dim[i];
    else if (s->dim[i] != 1 && s->dim[i] != *d) return false;
  }
  return true;
}

/* float64 before float32 before those of 16 bits. */
static rule_dtype wider(rule_dtype a, rule_dtype b) {
  return rule_dtype_size(a) >= rule_dtype_size(b) ? a : b;
}

/* Of a matrix with a matrix or a vector. */
static bool product(const rule_shape *a, const rule_shape *b, rule_shape *out) {
  if (a->rank != 2 || b->rank < 1 || b->rank > 2 || a->dim[1] != b->dim[0]) return false;
  *out = (rule_shape){.rank = b->rank, .dim = {a->dim[0], b->rank == 2 ? b->dim[1] : 0}};
  return true;
}

static iso_code two(relfile_reader *r, const arithmetic *w, relfile_tensor *x) {
  relfile_tensor y;
  char p[128], q[128];
  const rule_term *arg[2];
  cap_output to = x->what;
  iso_code c = relfile_expect(r, ",");
  if (c) return c;
  if (strcmp(w->op, OP_MATMUL) != 0 && take_number(r, &arg[1])) {
    arg[0] = x->term;
    return relfile_call(r, w->op, arg, 2, &to, x);
  }
  if (!(c = relfile_expression(r, &y))) c = floating(r, &y);
  if (c) return c;
  const bool fits = strcmp(w->op, OP_MATMUL) == 0
                        ? product(&x->what.shape, &y.what.shape, &to.shape)
                        : broadcast(&x->what.shape, &y.what.shape, &to.shape);
  if (!fits)
    return RELFILE_MISFIT(r, "%s: %s and %s do not fit", w->word,
                          rule_shape_print(&x->what.shape, p, sizeof p),
                          rule_shape_print(&y.what.shape, q, sizeof q));
  to.dtype = wider(x->what.dtype, y.what.dtype);
  arg[0] = x->term;
  arg[1] = y.term;
  return relfile_call(r, w->op, arg, 2, &to, x);
}

/* node(ID) */
static iso_code operator_by_id(relfile_reader *r, relfile_tensor *out) {
  const char *id;
  bool quoted;
  const cap_graph *g = r->graph[RIGHT];
  const iso_code c = relfile_name(r, &id, &quoted);
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    const cap_node *n = &g->node[i];
    if (n->kind != CAP_OP || n->n_outputs != 1 || strcmp(n->id, id) != 0) continue;
    *out = (relfile_tensor){rule_var(&r->graph[RIGHT]->arena, (uint32_t)i), n->output[0]};
    return out->term ? ISO_OK : relfile_nomem(r);
  }
  return c ? c : RELFILE_WRONG(r, "%s has no operator \"%.80s\" of one output", g->path, id);
}

iso_code relfile_arithmetic(relfile_reader *r, const char *s, relfile_tensor *x) {
  const arithmetic *w = find(s, strlen(s));
  if (!w->op) return operator_by_id(r, x);
  iso_code c = relfile_expression(r, x);
  if (!c) c = floating(r, x);
  if (c || w->operands == 2) return c ? c : two(r, w, x);
  return relfile_call(r, w->op, &x->term, 1, &(cap_output){x->what.shape, x->what.dtype}, x);
}

/* ---- a line ---- */

typedef struct fold_line {
  relfile_reader r; /* its right graph is the one that has what the parameter is made of */
  int side;         /* of the parameter */
  uint32_t leaf;
  relfile_tensor of;
} fold_line;

/* The parameter's name stands before "=" where it is of the left, else behind it. */
static iso_code read_line(fold_line *x, cap_graph *graph[2], const char *line) {
  relfile_reader *r = &x->r;
  const char *word, *name;
  bool quoted;
  r->at = line;
  iso_code c = relfile_name(r, &word, &quoted);
  const char *start = r->at;
  if (!c) c = relfile_name(r, &name, &quoted);
  x->side = !c && relfile_take(r, "(") ? RIGHT : LEFT;
  r->at = start;
  r->graph[LEFT] = graph[x->side];
  r->graph[RIGHT] = graph[!x->side];
  if (!c && x->side == RIGHT) c = relfile_expression(r, &x->of);
  if (!c && x->side == RIGHT) c = relfile_expect(r, "=");
  if (!c) c = relfile_name(r, &name, &quoted);
  if (!c) c = relfile_find_leaf(r, LEFT, name, &x->leaf);
  if (!c && x->side == LEFT) c = relfile_expect(r, "=");
  if (!c && x->side == LEFT) c = relfile_expression(r, &x->of);
  relfile_blanks(r);
  if (!c && *r->at) c = RELFILE_WRONG(r, "something stands behind the relation: \"%.40s\"", r->at);
  const cap_node *n = c ? NULL : &r->graph[LEFT]->node[x->leaf];
  if (n && (n->kind != CAP_PARAMETER || !rule_dtype_is_float(n->value->dtype)))
    c = RELFILE_WRONG(r, "\"%.80s\" is no parameter of floating numbers", name);
  char a[128], b[128];
  if (n && !c && !rule_shape_eq(&n->output[0].shape, &x->of.what.shape))
    c = RELFILE_WRONG(r, "\"%.80s\" is %s, what it should be equal to is %s", name,
                      rule_shape_print(&n->output[0].shape, a, sizeof a),
                      rule_shape_print(&x->of.what.shape, b, sizeof b));
  return c;
}

static void mark(const cap_graph *g, const rule_term *t, bool *needed) {
  if (t->kind == RULE_VAR && !needed[t->u.i]) {
    needed[t->u.i] = true;
    if (g->node[t->u.i].call) mark(g, g->node[t->u.i].call, needed);
  }
  for (uint32_t i = 0; i < t->n; i++) mark(g, t->child[i], needed);
}

/* Whether the other graph has the parameter as it is: then it is that, and was computed of nothing
 * else. */
static bool has_counterpart(const cap_graph *g, const cap_node *n) {
  for (size_t i = 0; i < g->n_nodes; i++)
    if (g->node[i].kind == CAP_PARAMETER && rule_tensor_same(g->node[i].value, n->value))
      return true;
  return false;
}

/* Held against the captured values; in `off` how far they are apart, of the largest. */
static iso_code hold(fold_line *x, bool inferred, const rule_oracle *oracle, double *off) {
  relfile_reader *r = &x->r;
  const cap_graph *g = r->graph[RIGHT];
  const cap_node *n = &r->graph[LEFT]->node[x->leaf];
  bool *needed = calloc(g->n_nodes + 1, 1);
  rule_tensor **value = NULL, *v = NULL;
  iso_code c = needed ? ISO_OK : relfile_nomem(r);
  if (!c) mark(g, x->of.term, needed);
  if (!c) c = relations_values(g, needed, oracle, &value, r->err);
  if (!c && (c = relfile_value(g, x->of.term, value, oracle, &v, r->err))) relfile_wrong_at(r, c);
  if (!c && inferred && !synth_generic(n->value))
    c = RELFILE_WRONG(r, "\"%.80s\" has too few different numbers", n->name);
  if (!c && inferred && has_counterpart(g, n))
    c = RELFILE_WRONG(r, "%s has \"%.80s\" as it is", g->path, n->name);
  bool fine = false;
  const relations_held held = {g, x->of.term, value, oracle};
  if (!c && (c = relations_rounded(&held, n->value, v, &fine, off, r->err))) relfile_wrong_at(r, c);
  if (!c && !fine)
    c = relfile_wrong_at(r,
                         iso_fail(r->err, ISO_USAGE,
                                  "\"%.80s\" has other values than rounding explains: by %.3g of "
                                  "the largest",
                                  n->name, *off));
  rule_tensor_unref(v);
  for (size_t i = 0; value && i < g->n_nodes; i++) rule_tensor_unref(value[i]);
  free(value);
  free(needed);
  return c;
}

static iso_code note(fold_line *x, const char *line, double off, relations_folded *out) {
  const cap_node *n = &x->r.graph[LEFT]->node[x->leaf];
  const char *eq = strchr(line, '='), *of = x->side == LEFT ? eq + 1 : line + 4;
  const char *other = x->side == LEFT ? "right" : "left", *own = x->side == LEFT ? "left" : "right";
  of += strspn(of, " ");
  size_t len = x->side == LEFT ? strcspn(of, "\n") : (size_t)(eq - of);
  while (len && strchr(" \t\r", of[len - 1])) len--;
  const char *text = iso_arena_printf(
      &out->arena, "%s's %s is %.*s of the %s's by value, off by at most %.2g of the largest", own,
      n->name, (int)len, of, other, off);
  if (!text || !iso_grow(out->note, out->cap, out->n + 1)) return nomem(x->r.err);
  out->note[out->n++] =
      (cap_note){off > 0 ? RULE_ASSUMES_ROUNDING : RULE_ASSUMES_LEAF, text, -1, -1};
  return ISO_OK;
}

iso_code relations_fold(const char *line, const char *where, bool inferred, cap_graph *graph[2],
                        const rule_oracle *oracle, relations_folded *out, iso_error *err) {
  relations own = {0};
  double off = 0;
  fold_line x = {.r = {.where = where, .out = &own, .err = err, .subject = 'l', .fold = true}};
  iso_code c = read_line(&x, graph, line);
  if (!c) c = hold(&x, inferred, oracle, &off);
  if (!c) c = note(&x, line, off, out);
  const cap_fold f = {x.leaf, x.r.graph[RIGHT], x.of.term, own.call, own.n_calls};
  if (!c) c = cap_fold_leaf(x.r.graph[LEFT], &f, err);
  relations_free(&own);
  return c;
}

iso_code relations_fold_file(const char *path, cap_graph *graph[2], const rule_oracle *oracle,
                             relations_folded *out, iso_error *err) {
  if (!path) return ISO_OK;
  FILE *f = fopen(path, "re");
  if (!f) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  char *text = NULL;
  size_t cap = 0;
  iso_code c = ISO_OK;
  for (size_t i = 1; !c && getline(&text, &cap, f) >= 0; i++) {
    relfile_cut_comment(text);
    if (!relations_is_fold(text)) continue;
    const char *where = iso_arena_printf(&out->arena, "%s:%zu", path, i);
    c = where ? relations_fold(text, where, false, graph, oracle, out, err) : nomem(err);
  }
  if (!c && ferror(f)) c = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  free(text);
  fclose(f);
  return c;
}

iso_code relations_note_folds(const relations_folded *f, cap_agreement *a, iso_error *err) {
  if (!f->n) return ISO_OK;
  cap_note *all =
      iso_arena_alloc((iso_arena *)(uintptr_t)&f->arena, (a->n_notes + f->n) * sizeof *all);
  if (!all) return nomem(err);
  if (a->n_notes) memcpy(all, a->note, a->n_notes * sizeof *all);
  memcpy(all + a->n_notes, f->note, f->n * sizeof *all);
  a->note = all;
  a->n_notes += f->n;
  return ISO_OK;
}

void relations_folded_free(relations_folded *f) {
  free(f->note);
  iso_arena_fini(&f->arena);
  *f = (relations_folded){0};
}
