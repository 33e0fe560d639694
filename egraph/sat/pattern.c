/* Patterns: read, and their terms laid out children first. Reading needs no recursion, so depth is
 * bounded by memory. */
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "egraph/sat/query_int.h"

enum token { T_END, T_OPEN, T_CLOSE, T_ATOM, T_BAD };

typedef struct reader {
  eg_sat *s;
  const char *p, *end, *atom;
  size_t n_atom;
  bool new_vars;
  eg_pattern *out;
  uint32_t *done; /* terms read whose parent is not closed */
  size_t n_done, cap_done;
  struct frame {
    const char *name;
    size_t n_name, done;
  } * frame; /* open parentheses */
  size_t n_frames, cap_frames;
  iso_error *err;
} reader;

static bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
static bool ends_atom(char c) {
  return is_space(c) || c == '(' || c == ')' || c == ';' || c == '"' || c == '\0';
}

static enum token next(reader *r) {
  for (; r->p < r->end; r->p++) {
    if (*r->p == ';')
      while (r->p + 1 < r->end && r->p[1] != '\n') r->p++;
    else if (!is_space(*r->p)) break;
  }
  if (r->p == r->end) return T_END;
  if (*r->p == '(' || *r->p == ')') return *r->p++ == '(' ? T_OPEN : T_CLOSE;
  for (r->atom = r->p; r->p < r->end && !ends_atom(*r->p); r->p++) {
  }
  r->n_atom = (size_t)(r->p - r->atom);
  return r->n_atom ? T_ATOM : T_BAD;
}

static iso_code nomem(reader *r) {
  return iso_fail(r->err, ISO_NOMEM, "out of memory for a pattern");
}

/* A term that a right side has twice is built once; of a long one, where the two are near. Returns:
 * n_terms if it is new. */
static size_t same_term(const reader *r, const egi_term *t) {
  const eg_pattern *p = r->out;
  for (size_t i = p->n_terms; !r->new_vars && i-- > 0 && p->n_terms - i <= 64;) {
    const egi_term *o = &p->term[i];
    if (o->is_var == t->is_var && o->sym == t->sym && o->n == t->n &&
        (!t->n || !memcmp(p->kid + o->kid, p->kid + t->kid, t->n * sizeof *p->kid)))
      return i;
  }
  return p->n_terms;
}

/* The children of an application are the last of `kid`. */
static iso_code push_term(reader *r, egi_term t) {
  eg_pattern *p = r->out;
  if (!iso_grow(p->term, p->cap_terms, p->n_terms + 1) ||
      !iso_grow(r->done, r->cap_done, r->n_done + 1))
    return nomem(r);
  const size_t same = same_term(r, &t);
  if (same < p->n_terms) {
    p->n_kids -= t.n;
    r->done[r->n_done++] = (uint32_t)same;
    return ISO_OK;
  }
  r->done[r->n_done++] = (uint32_t)p->n_terms;
  p->term[p->n_terms++] = t;
  return ISO_OK;
}

static iso_code read_var(reader *r) {
  eg_pattern *p = r->out;
  size_t v = 0;
  if (r->n_atom == 1) return iso_fail(r->err, ISO_FORMAT, "a variable without a name");
  while (v < p->n_vars && (strncmp(p->var[v], r->atom, r->n_atom) != 0 || p->var[v][r->n_atom]))
    v++;
  if (v == p->n_vars) {
    if (!r->new_vars)
      return iso_fail(r->err, ISO_FORMAT, "variable %.*s is not on the left side", (int)r->n_atom,
                      r->atom);
    if (!iso_grow(p->var, p->cap_vars, v + 1)) return nomem(r);
    p->var[v] = strndup(r->atom, r->n_atom);
    if (!p->var[v]) return nomem(r);
    p->n_vars++;
  }
  return push_term(r, (egi_term){.sym = (uint32_t)v, .is_var = true});
}

static iso_code make_term(reader *r, const char *name, size_t n_name, size_t first) {
  eg_pattern *p = r->out;
  const size_t n = r->n_done - first, kid = p->n_kids;
  eg_op op;
  if (!iso_grow(p->kid, p->cap_kids, kid + n)) return nomem(r);
  const iso_code code = eg_sat_op(r->s, name, n_name, n, &op, r->err);
  if (code) return code;
  bool ground = true;
  for (size_t k = 0; k < n; k++) {
    const uint32_t t = r->done[first + k];
    p->kid[p->n_kids++] = t;
    ground = ground && p->term[t].ground;
  }
  r->n_done = first;
  return push_term(
      r, (egi_term){.sym = op.i, .kid = (uint32_t)kid, .n = (uint32_t)n, .ground = ground});
}

/* Behind a term that is an atom, a comma is the one between two classes. */
static void leave_comma(reader *r) {
  if (r->n_atom < 2 || r->atom[r->n_atom - 1] != ',') return;
  r->n_atom--;
  r->p = r->atom + r->n_atom;
}

/* One whole term, whose first token is `t`. */
static iso_code read_term(reader *r, enum token t) {
  const size_t bottom = r->n_frames;
  for (;; t = next(r)) {
    iso_code code = ISO_OK;
    if (t == T_OPEN) {
      if (next(r) != T_ATOM)
        return iso_fail(r->err, ISO_FORMAT, "no operator behind a parenthesis");
      if (*r->atom == '?') return iso_fail(r->err, ISO_FORMAT, "an operator cannot be a variable");
      if (!iso_grow(r->frame, r->cap_frames, r->n_frames + 1)) return nomem(r);
      r->frame[r->n_frames++] = (struct frame){r->atom, r->n_atom, r->n_done};
    } else if (t == T_CLOSE && r->n_frames > bottom) {
      const struct frame f = r->frame[--r->n_frames];
      code = make_term(r, f.name, f.n_name, f.done);
    } else if (t == T_ATOM) {
      if (r->n_frames == bottom) leave_comma(r);
      code = *r->atom == '?' ? read_var(r) : make_term(r, r->atom, r->n_atom, r->n_done);
    } else {
      return iso_fail(r->err, ISO_FORMAT,
                      t == T_END ? "a pattern ends too early" : "a pattern has a wrong character");
    }
    if (code) return code;
    if (r->n_frames == bottom) return ISO_OK;
  }
}

/* On a right side a class may be made equal to that of another variable. */
static iso_code add_root(reader *r) {
  eg_pattern *p = r->out;
  struct egi_part *part = &p->part[p->n_parts - 1];
  const uint32_t t = r->done[--r->n_done];
  if (p->term[t].is_var && part->var == EG_NONE) {
    part->var = p->term[t].sym;
    return ISO_OK;
  }
  if (p->term[t].is_var && r->new_vars)
    return iso_fail(r->err, ISO_FORMAT, "a pattern with two names for its class");
  if (!iso_grow(p->root, p->cap_roots, p->n_roots + 1)) return nomem(r);
  p->root[p->n_roots++] = t;
  part->end = (uint32_t)p->n_roots;
  return ISO_OK;
}

static iso_code add_part(reader *r) {
  eg_pattern *p = r->out;
  if (!iso_grow(p->part, p->cap_parts, p->n_parts + 1)) return nomem(r);
  p->part[p->n_parts++] = (struct egi_part){EG_NONE, (uint32_t)p->n_roots};
  return ISO_OK;
}

static bool is_atom(const reader *r, enum token t, char c) {
  return t == T_ATOM && r->n_atom == 1 && *r->atom == c;
}

static iso_code read_all(reader *r) {
  iso_code code = add_part(r);
  for (enum token t = next(r); !code; t = next(r)) {
    code = read_term(r, t);
    if (!code) code = add_root(r);
    if (code) return code;
    t = next(r);
    if (t == T_END) return ISO_OK;
    if (is_atom(r, t, ',')) code = add_part(r);
    else if (!is_atom(r, t, '=')) code = iso_fail(r->err, ISO_FORMAT, "more text behind a pattern");
  }
  return code;
}

/* Of several classes each must have a term, and on a right side a name but for the first. */
static iso_code check_parts(const reader *r) {
  const eg_pattern *p = r->out;
  uint32_t start = 0;
  for (size_t i = 0; p->n_parts > 1 && i < p->n_parts; start = p->part[i++].end) {
    if (p->part[i].end == start)
      return iso_fail(r->err, ISO_FORMAT, "a class of a pattern without a term");
    if (i && !r->new_vars && p->part[i].var == EG_NONE)
      return iso_fail(r->err, ISO_FORMAT, "a class of a right side without a name");
  }
  return ISO_OK;
}

iso_code egi_pattern_read(eg_sat *s, const char *text, size_t n, bool new_vars, eg_pattern *p,
                          iso_error *err) {
  reader r = {.s = s, .p = text, .end = text + n, .new_vars = new_vars, .out = p, .err = err};
  iso_code code = read_all(&r);
  if (!code) code = check_parts(&r);
  p->root_var = p->n_parts ? p->part[0].var : EG_NONE;
  free(r.done);
  free(r.frame);
  return code;
}

void egi_pattern_fini(eg_pattern *p) {
  for (size_t i = 0; i < p->n_vars; i++) free(p->var[i]);
  free(p->var);
  free(p->term);
  free(p->kid);
  free(p->root);
  free(p->part);
  egi_query_free(p->query);
}

iso_code eg_pattern_parse(eg_sat *s, const char *text, size_t n, eg_pattern **out, iso_error *err) {
  eg_pattern *p = calloc(1, sizeof *p);
  if (!p) return iso_fail(err, ISO_NOMEM, "out of memory for a pattern");
  iso_code code = egi_pattern_read(s, text, n, true, p, err);
  if (!code) code = egi_query_new(s, p, false, &p->query, err);
  if (code) {
    eg_pattern_free(p);
    return code;
  }
  *out = p;
  return ISO_OK;
}

void eg_pattern_free(eg_pattern *p) {
  if (!p) return;
  egi_pattern_fini(p);
  free(p);
}

size_t eg_pattern_count_vars(const eg_pattern *p) { return p->n_vars; }
const char *eg_pattern_var(const eg_pattern *p, size_t k) { return p->var[k]; }

static iso_code read_ground(eg_sat *s, const char *text, size_t n, eg_pattern *p, iso_error *err) {
  const iso_code code = egi_pattern_read(s, text, n, true, p, err);
  return !code && (p->n_vars || p->n_roots != 1)
             ? iso_fail(err, ISO_FORMAT, "a term has no variables")
             : code;
}

iso_code eg_sat_build(eg_sat *s, const eg_pattern *p, const eg_class *var, eg_class *out,
                      iso_error *err) {
  eg_class few[32], kids[8], *made = p->n_terms <= 32 ? few : malloc(p->n_terms * sizeof *made),
                             *child = kids;
  iso_code code = ISO_OK;
  if (s->max_arity > 8) child = malloc(s->max_arity * sizeof *child);
  if (!made || !child) code = iso_fail(err, ISO_NOMEM, "out of memory for a term");
  for (size_t i = 0; i < p->n_terms && !code; i++) {
    const egi_term *t = &p->term[i];
    for (uint32_t k = 0; k < t->n; k++) child[k] = made[p->kid[t->kid + k]];
    if (t->is_var) made[i] = var[t->sym];
    else code = eg_sat_add(s, (eg_op){t->sym}, child, &made[i], err);
  }
  if (!code) *out = p->n_roots ? made[p->root[0]] : var[p->root_var];
  if (made != few) free(made);
  if (child != kids) free(child);
  return code;
}

iso_code eg_sat_lookup_term(eg_sat *s, const char *text, size_t n, bool *found, eg_class *out,
                            iso_error *err) {
  eg_pattern p = {0};
  iso_code code = read_ground(s, text, n, &p, err);
  eg_class *made = code ? NULL : malloc(p.n_terms * sizeof *made);
  eg_class *child = code ? NULL : malloc((s->max_arity + 1) * sizeof *child);
  if (!code && (!made || !child)) code = iso_fail(err, ISO_NOMEM, "out of memory for a term");
  bool all = !code;
  for (size_t i = 0; i < p.n_terms && all; i++) {
    const egi_term *t = &p.term[i];
    for (uint32_t k = 0; k < t->n; k++) child[k] = made[p.kid[t->kid + k]];
    all = eg_sat_lookup(s, (eg_op){t->sym}, child, &made[i]);
  }
  if (all) *out = made[p.root[0]];
  if (!code) *found = all;
  free(made);
  free(child);
  egi_pattern_fini(&p);
  return code;
}

iso_code eg_sat_add_term(eg_sat *s, const char *text, size_t n, eg_class *out, iso_error *err) {
  eg_pattern p = {0};
  iso_code code = read_ground(s, text, n, &p, err);
  if (!code) code = eg_sat_build(s, &p, NULL, out, err);
  egi_pattern_fini(&p);
  return code;
}
