/* The reader of relations.h: lines. Expressions are read by relations_expr.c. */
#include "cli/config/relations_int.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

enum { MAX_LINE = 1 << 16 };

typedef relfile_reader reader;
#define WRONG RELFILE_WRONG

static bool is_none(const char *s, bool quoted) { return !quoted && strcmp(s, "none") == 0; }

/* Whether the word none stands here. */
static bool none_here(const reader *r) {
  return strncmp(r->at, "none", 4) == 0 && !relfile_name_char(r->at[4]);
}

bool relfile_near(const rule_shape *a, const rule_shape *b) {
  uint32_t i = 0, j = 0;
  for (;; i++, j++) {
    while (i < a->rank && a->dim[i] == 1) i++;
    while (j < b->rank && b->dim[j] == 1) j++;
    if (i == a->rank || j == b->rank) return i == a->rank && j == b->rank;
    if (a->dim[i] != b->dim[j]) return false;
  }
}

/* ---- outputs ---- */

bool relations_note(relations *o, const char *text) {
  if (!iso_grow(o->noted, o->cap_noted, o->n_noted + 1)) return false;
  o->noted[o->n_noted++] = text;
  return true;
}

static iso_code note_left_out(relations *o, int side, const char *name, iso_error *err) {
  const char *text = iso_arena_printf(&o->arena, "the %s output %s is left out",
                                      side == LEFT ? "left" : "right", name);
  return text && relations_note(o, text) ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

static iso_code leave_out(reader *r, int side, const char *s) {
  relations *o = r->out;
  const int64_t k = relfile_find_result(r->graph[side], s);
  if (k < 0) return WRONG(r, "%s has no output \"%.80s\"", r->graph[side]->path, s);
  if (r->inferred && (side == LEFT || !o->refines))
    return WRONG(r, "output \"%.80s\" is left out, as only a relations file may say%s", s,
                 side == LEFT ? "" : ", or --refine");
  relations_spoken *was = side == LEFT ? &o->left[k] : &o->right[k];
  if (was->left_out) return ISO_OK;
  if (was->where)
    return WRONG(r, "output \"%.80s\" is left out here, and used in %s", s, was->where);
  *was = (relations_spoken){r->where, true, r->inferred};
  return note_left_out(o, side, s, r->err);
}

iso_code relations_leave_out_right(relations *o, size_t right, iso_error *err) {
  o->right[right] = (relations_spoken){"", true, false};
  return note_left_out(o, RIGHT, o->result[RIGHT][right].name, err);
}

/* The line is kept without a term, and read to its end. */
static iso_code misfit(reader *r, uint32_t left, const char *start) {
  relations *o = r->out;
  const char *text = iso_arena_strdup(&o->arena, start);
  if (!text || !iso_grow(o->output, o->cap_outputs, o->n_outputs + 1)) return relfile_nomem(r);
  o->output[o->n_outputs++] = (relations_line){.left = left, .text = text, .where = r->where};
  r->at += strlen(r->at);
  return ISO_OK;
}

static iso_code output_line(reader *r, const char *left, bool quoted) {
  relations *o = r->out;
  iso_code c = relfile_expect(r, "=");
  if (c) return c;
  relfile_blanks(r);
  const char *start = r->at, *right;
  if (is_none(left, quoted) || (none_here(r) && !r->inferred)) {
    if ((c = relfile_name(r, &right, &quoted))) return c;
    return strcmp(left, "none") == 0 ? leave_out(r, RIGHT, right) : leave_out(r, LEFT, left);
  }
  const int64_t k = relfile_find_result(r->graph[LEFT], left);
  if (k < 0) return WRONG(r, "%s has no output \"%.80s\"", r->graph[LEFT]->path, left);
  if (o->left[k].left_out)
    return WRONG(r, "output \"%.80s\" is used here, and left out in %s", left, o->left[k].where);
  if (!o->left[k].where) o->left[k].where = r->where;
  relfile_tensor t = {0};
  c = relfile_expression(r, &t);
  if (c == ISO_RANGE) return misfit(r, (uint32_t)k, start);
  if (c) return c;
  if (r->inferred && !relations_clean(t.term))
    return WRONG(r, "output \"%.80s\": a part is added to itself", left);
  const rule_shape *want = &r->graph[LEFT]->node[o->result[LEFT][k].node].output[0].shape;
  char a[128], b[128];
  if (!relfile_near(want, &t.what.shape))
    c = RELFILE_MISFIT(r, "output \"%.80s\" is %s, what it should be equal to is %s", left,
                       rule_shape_print(want, a, sizeof a),
                       rule_shape_print(&t.what.shape, b, sizeof b));
  if (c) return c == ISO_RANGE ? misfit(r, (uint32_t)k, start) : c;
  for (size_t i = 0; i < o->n_outputs; i++)
    if (o->output[i].left == (uint32_t)k && o->output[i].term &&
        rule_term_eq(o->output[i].term, t.term))
      return ISO_OK;
  size_t n = (size_t)(r->at - start);
  while (n && strchr(" \t\r", start[n - 1])) n--;
  const char *text = iso_arena_strndup(&o->arena, start, n);
  if (!text || !iso_grow(o->output, o->cap_outputs, o->n_outputs + 1)) return relfile_nomem(r);
  o->output[o->n_outputs++] =
      (relations_line){(uint32_t)k, t.term, t.what, text, r->where, r->inferred};
  return ISO_OK;
}

/* ---- leaves ---- */

/* "input NAME range 0 63 ...": of the side that has it, the left one where both do. */
static iso_code domain_line(reader *r, const char *name_of_input) {
  uint32_t node;
  int side = LEFT;
  iso_error ignored = {0}, *err = r->err;
  r->err = &ignored;
  if (relfile_find_leaf(r, side, name_of_input, &node)) side = RIGHT;
  r->err = err;
  const iso_code c = relfile_find_leaf(r, side, name_of_input, &node);
  return c ? c : relations_domain(&r->at, r->where, r->graph[side], node, r->err);
}

/* A line that says the opposite of `g`; NULL: none does. */
static const char *contradicts(const relations *o, const synth_given *g) {
  for (size_t i = 0; i < o->n_given; i++) {
    const synth_given *x = &o->given[i];
    if (x->equals || x->left != g->left) continue;
    if (x->forbid || g->forbid
            ? x->forbid != g->forbid && x->term && g->term && rule_term_eq(x->term, g->term)
            : !x->term != !g->term)
      return x->where;
  }
  return NULL;
}

static iso_code add_given(reader *r, const char *left, synth_given g) {
  relations *o = r->out;
  const char *other = g.equals ? NULL : contradicts(o, &g);
  if (other) return WRONG(r, "this of \"%.80s\" contradicts %s", left, other);
  if (!iso_grow(o->given, o->cap_given, o->n_given + 1)) return relfile_nomem(r);
  o->given[o->n_given++] = g;
  return ISO_OK;
}

static iso_code leaf_line(reader *r, const char *left) {
  uint32_t node;
  if (r->subject == 'i' && relations_domain_begins(r->at)) return domain_line(r, left);
  iso_code c = relfile_find_leaf(r, LEFT, left, &node);
  if (c) return c;
  const bool forbid = relfile_take(r, "!=");
  if (!forbid && (c = relfile_expect(r, "="))) return c;
  relfile_blanks(r);
  const bool none = !forbid && none_here(r);
  if (none) r->at += 4;
  relfile_tensor t = {0};
  if (!none && (c = relfile_expression(r, &t))) return c;
  if (forbid && t.term->kind != RULE_VAR) return WRONG(r, "behind \"!=\" a leaf is expected");
  const cap_kind kind = r->graph[LEFT]->node[node].kind;
  if ((none || forbid) && kind != CAP_PARAMETER && kind != CAP_INPUT)
    return WRONG(r, "\"%.80s\" is no parameter: constants are compared by their values", left);
  return add_given(r, left, (synth_given){node, t.term, NULL, forbid, r->where});
}

static iso_code right_line(reader *r) {
  relfile_tensor a, b;
  char x[128], y[128];
  iso_code c = relfile_expression(r, &a);
  if (!c) c = relfile_expect(r, "=");
  if (!c) c = relfile_expression(r, &b);
  if (c) return c;
  if (!rule_shape_eq(&a.what.shape, &b.what.shape) || a.what.dtype != b.what.dtype)
    return WRONG(r, "right: what stands before \"=\" is %s %s, what stands behind is %s %s",
                 rule_dtype_name(a.what.dtype), rule_shape_print(&a.what.shape, x, sizeof x),
                 rule_dtype_name(b.what.dtype), rule_shape_print(&b.what.shape, y, sizeof y));
  return add_given(r, "", (synth_given){UINT32_MAX, b.term, a.term, false, r->where});
}

/* ---- lines ---- */

static iso_code line(reader *r) {
  static const char *const words[] = {"output", "input", "leaf", "right"};
  const char *word, *left;
  bool quoted, known = false;
  relfile_blanks(r);
  if (!*r->at) return ISO_OK;
  iso_code c = relfile_name(r, &word, &quoted);
  if (c) return c;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++)
    known |= !quoted && strcmp(word, words[i]) == 0;
  if (!known) return WRONG(r, "a line begins with output, input, leaf or right");
  if (r->inferred && *word != 'o') return WRONG(r, "a line about outputs is expected");
  r->subject = *word;
  if (*word == 'r') c = right_line(r);
  else if (!(c = relfile_name(r, &left, &quoted)))
    c = *word == 'o' ? output_line(r, left, quoted) : leaf_line(r, left);
  relfile_blanks(r);
  return c || !*r->at ? c : WRONG(r, "something stands behind the relation: \"%.40s\"", r->at);
}

void relfile_cut_comment(char *s) {
  for (bool quoted = false; *s; s++) {
    quoted ^= *s == '"';
    if ((*s == '#' && !quoted) || *s == '\n') *s = 0;
  }
}

static iso_code read_lines(reader *r, FILE *f, const char *path) {
  char *text = NULL;
  size_t cap = 0;
  ssize_t n;
  iso_code c = ISO_OK;
  for (size_t i = 1; !c && (n = getline(&text, &cap, f)) >= 0; i++) {
    if (!(r->where = iso_arena_printf(&r->out->arena, "%s:%zu", path, i))) c = relfile_nomem(r);
    else if (n > MAX_LINE || strlen(text) != (size_t)n) c = WRONG(r, "this is no line of text");
    if (c) break;
    relfile_cut_comment(text);
    r->at = text;
    if (!relations_is_fold(text)) c = line(r);
  }
  if (!c && ferror(f)) c = iso_fail(r->err, ISO_IO, "%s: %s", path, strerror(errno));
  free(text);
  return c;
}

static const char *name_at(const void *results, size_t i) {
  const cap_result *r = results;
  return r[i].name;
}

iso_code relations_load(const char *path, bool misfits, cap_graph *left, cap_graph *right,
                        relations *out, iso_error *err) {
  *out = (relations){.result = {left->result, right->result},
                     .n_results = {left->n_results, right->n_results},
                     .left = calloc(left->n_results + 1, sizeof *out->left),
                     .right = calloc(right->n_results + 1, sizeof *out->right)};
  reader r = {.graph = {left, right}, .out = out, .err = err, .misfits = misfits};
  if (!out->left || !out->right) return relfile_nomem(&r);
  for (int side = 0; side < 2; side++) {
    const iso_code c = rule_replicas_init(&out->replicas[side], out->n_results[side], name_at,
                                          out->result[side], err);
    if (c) return c;
  }
  if (!path) return ISO_OK;
  FILE *f = fopen(path, "re");
  if (!f) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  const iso_code c = read_lines(&r, f, path);
  fclose(f);
  return c;
}

iso_code relations_add(relations *o, const char *text, cap_graph *left, cap_graph *right,
                       iso_error *err) {
  reader r = {.graph = {left, right},
              .out = o,
              .err = err,
              .inferred = true,
              .at = text,
              .where = iso_arena_printf(&o->arena, "relation \"%.200s\"", text)};
  return r.where ? line(&r) : relfile_nomem(&r);
}

void relations_free(relations *r) {
  free(r->given);
  free(r->output);
  free(r->call);
  free(r->left);
  free(r->right);
  free(r->noted);
  rule_replicas_fini(&r->replicas[LEFT]);
  rule_replicas_fini(&r->replicas[RIGHT]);
  iso_arena_fini(&r->arena);
  *r = (relations){0};
}
