/* A certificate's JSON, read strictly: a member that is missing, unknown or out of range makes it
 * malformed. Arguments are written as in graph.json (docs/capture-format.md), but that {"ref": n}
 * is term n of the certificate. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "capture/roles/roles.h"
#include "check/read_int.h"
#include "egraph/base/vec.h"

enum { MAX_NESTING = 16, MAX_DEPTH = 200000 };

static iso_code malformed(chk_state *k, const char *what, size_t i) {
  return chk_settle(k, CHK_MALFORMED, "%s %zu is malformed", what, i);
}

static iso_code no_node(chk_state *k, const char *what, size_t i) {
  return chk_settle(k, CHK_REFUSED, "%s %zu is a node that the capture does not have", what, i);
}

/* ---- captured nodes ---- */

static const rule_term *shifted(iso_arena *a, const rule_term *t, uint32_t by, const chk_term *term,
                                uint32_t *depth) {
  if (t->kind == RULE_VAR) {
    const uint32_t id = (uint32_t)t->u.i + by;
    if (term[id].depth > *depth) *depth = term[id].depth;
    return rule_var(a, id);
  }
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return t;
  const rule_term **child = iso_arena_alloc(a, (t->n + 1) * sizeof *child);
  if (!child) return NULL;
  for (uint32_t i = 0; i < t->n; i++)
    if (!(child[i] = shifted(a, t->child[i], by, term, depth))) return NULL;
  return t->kind == RULE_OP ? rule_op(a, t->u.s, child, t->n) : rule_list(a, child, t->n);
}

static iso_code add_term(chk_state *k, chk_term t) {
  if (k->n_terms >= CHK_NONE - 1 || !iso_grow(k->term, k->cap_terms, k->n_terms + 1))
    return chk_nomem(k);
  k->term[k->n_terms++] = t;
  return ISO_OK;
}

static iso_code add_graph(chk_state *k, int side) {
  const cap_graph *g = k->graph[side];
  const uint32_t base = (uint32_t)k->n_terms;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < g->n_nodes && !c; i++) {
    chk_term t = {.node = &g->node[i], .side = side, .index = (uint32_t)i};
    if (g->node[i].call && !(t.call = shifted(k->arena, g->node[i].call, base, k->term, &t.depth)))
      return chk_nomem(k);
    t.depth++;
    c = add_term(k, t);
  }
  return c;
}

static int by_id(const void *a, const void *b, void *ctx) {
  const cap_graph *g = ctx;
  return strcmp(g->node[*(const uint32_t *)a].id, g->node[*(const uint32_t *)b].id);
}

static uint32_t *sorted(const cap_graph *g) {
  uint32_t *out = malloc((g->n_nodes + 1) * sizeof *out);
  if (!out) return NULL;
  for (size_t i = 0; i < g->n_nodes; i++) out[i] = (uint32_t)i;
  qsort_r(out, g->n_nodes, sizeof *out, by_id, (void *)g);
  return out;
}

/* Term of the node with this id; CHK_NONE. */
static uint32_t find_node(const chk_reader *r, int side, const char *id) {
  const cap_graph *g = r->k->graph[side];
  size_t lo = 0, hi = g->n_nodes;
  while (lo < hi) {
    const size_t mid = (lo + hi) / 2;
    const int order = strcmp(g->node[r->by_id[side][mid]].id, id);
    if (order == 0)
      return r->by_id[side][mid] + (uint32_t)(side == RIGHT ? r->k->graph[LEFT]->n_nodes : 0);
    if (order < 0) lo = mid + 1;
    else hi = mid;
  }
  return CHK_NONE;
}

/* ---- terms ---- */

bool chk_read_number(const chk_state *k, const json_t *j, uint32_t *out) {
  if (!json_is_integer(j) || json_integer_value(j) < 0 ||
      (uint64_t)json_integer_value(j) >= k->cert.n_numbers)
    return false;
  *out = k->cert.number[json_integer_value(j)];
  return true;
}

iso_code chk_read_list(chk_reader *r, const json_t *j, int nesting, const rule_term ***out) {
  const size_t n = json_array_size(j);
  const rule_term **child = iso_arena_alloc(r->k->arena, (n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : chk_nomem(r->k);
  for (size_t i = 0; i < n && !c; i++) {
    c = chk_read_argument(r, json_array_get(j, i), nesting + 1, &child[i]);
    if (!c && !child[i]) child = NULL;
    if (!child) break;
  }
  *out = child;
  return c;
}

/* An object with one key. NULL in `out`: it is no argument. */
static iso_code read_object(chk_reader *r, const json_t *j, const rule_term **out) {
  chk_state *k = r->k;
  rule_dtype dtype;
  const json_t *ref = json_object_get(j, "ref"), *d = json_object_get(j, "dtype"),
               *f = json_object_get(j, "float"), *size = json_object_get(j, "size");
  uint32_t id;
  iso_error ignored;
  *out = NULL;
  if (json_object_size(j) != 1) return ISO_OK;
  if (r->sizes && json_is_string(size)) {
    const iso_code c =
        cap_read_size(k->graph[LEFT], json_string_value(size), k->arena, out, &ignored);
    return c == ISO_NOMEM ? chk_nomem(k) : ISO_OK;
  }
  if (ref) {
    if (!chk_read_number(k, ref, &id)) return ISO_OK;
    if (k->term[id].depth > r->depth) r->depth = k->term[id].depth;
    *out = rule_var(k->arena, id);
  } else if (json_is_string(d) && rule_dtype_find(json_string_value(d), &dtype)) {
    *out = rule_dtype_term(k->arena, dtype);
  } else if (json_is_string(f)) {
    const char *s = json_string_value(f);
    const double x = strcmp(s, "inf") == 0    ? (double)__builtin_inf()
                     : strcmp(s, "-inf") == 0 ? -(double)__builtin_inf()
                                              : 0;
    if (strcmp(s, "nan") == 0) *out = rule_float(k->arena, (double)__builtin_nan(""));
    else if (x != 0) *out = rule_float(k->arena, x);
    else return ISO_OK;
  } else {
    return ISO_OK;
  }
  return *out ? ISO_OK : chk_nomem(k);
}

iso_code chk_read_argument(chk_reader *r, const json_t *j, int nesting, const rule_term **out) {
  iso_arena *a = r->k->arena;
  const rule_term **child;
  *out = NULL;
  if (nesting > MAX_NESTING) return ISO_OK;
  switch (json_typeof(j)) {
  case JSON_OBJECT: return read_object(r, j, out);
  case JSON_INTEGER: *out = rule_int(a, json_integer_value(j)); break;
  case JSON_REAL: *out = rule_float(a, json_real_value(j)); break;
  case JSON_TRUE:
  case JSON_FALSE: *out = rule_bool(a, json_is_true(j)); break;
  case JSON_NULL: *out = rule_none(a); break;
  case JSON_STRING: *out = rule_string(a, json_string_value(j)); break;
  case JSON_ARRAY: {
    iso_code c = chk_read_list(r, j, nesting, &child);
    if (c || !child) return c;
    *out = rule_list(a, child, json_array_size(j));
    break;
  }
  }
  return *out ? ISO_OK : chk_nomem(r->k);
}

/* A node of a side, {"left": id}. Returns: in `there` false where the capture has none of that id;
 * CHK_NONE then, and where it is malformed. */
static uint32_t read_node(const chk_reader *r, const json_t *j, bool *there) {
  *there = true;
  for (int side = 0; side < 2; side++) {
    const json_t *id = json_object_get(j, side == LEFT ? "left" : "right");
    if (!json_is_string(id) || json_object_size(j) != 1) continue;
    const uint32_t node = find_node(r, side, json_string_value(id));
    *there = node != CHK_NONE;
    return node;
  }
  return CHK_NONE;
}

static iso_code read_term(chk_reader *r, const json_t *j, size_t i) {
  chk_state *k = r->k;
  const json_t *op = json_object_get(j, "op"), *args = json_object_get(j, "args");
  uint32_t id;
  bool there;
  if (!iso_grow(k->cert.number, k->cert.cap_numbers, k->cert.n_numbers + 1)) return chk_nomem(k);
  if (json_is_string(op) && json_is_array(args) && json_object_size(j) == 2) {
    const rule_term **child;
    r->depth = 0;
    iso_code c = chk_read_list(r, args, 0, &child);
    if (c) return c;
    const rule_term *call =
        child ? rule_op(k->arena, json_string_value(op), child, json_array_size(args)) : NULL;
    if (child && !call) return chk_nomem(k);
    if (!call || r->depth >= MAX_DEPTH) return malformed(k, "term", i);
    id = (uint32_t)k->n_terms;
    if ((c = add_term(k, (chk_term){.call = call, .depth = r->depth + 1}))) return c;
  } else if ((id = read_node(r, j, &there)) == CHK_NONE) {
    return there ? malformed(k, "term", i) : no_node(k, "term", i);
  }
  k->cert.number[k->cert.n_numbers++] = id;
  return ISO_OK;
}

/* ---- steps ---- */

static bool read_pair(const chk_state *k, const json_t *j, uint32_t *a, uint32_t *b) {
  return json_is_array(j) && json_array_size(j) == 2 &&
         chk_read_number(k, json_array_get(j, 0), a) && chk_read_number(k, json_array_get(j, 1), b);
}

static iso_code read_vars(chk_state *k, const json_t *vars, chk_step *x, bool *fine) {
  const rule *r = rule_set_at(k->rules.rule[x->rule], 0);
  x->first_var = (uint32_t)k->cert.n_vars;
  *fine = json_array_size(vars) == r->n_vars;
  for (size_t i = 0; i < r->n_vars && *fine; i++) {
    const json_t *v = json_array_get(vars, i);
    if (!iso_grow(k->cert.var, k->cert.cap_vars, k->cert.n_vars + 1)) return chk_nomem(k);
    k->cert.var[k->cert.n_vars] = CHK_NONE;
    *fine = json_is_null(v) || chk_read_number(k, v, &k->cert.var[k->cert.n_vars]);
    k->cert.n_vars++;
  }
  return ISO_OK;
}

/* Values of the rule's sizes and attributes: an object, {"size0": 7}. */
static iso_code read_names(chk_reader *r, const json_t *given, chk_step *x, bool *fine) {
  chk_state *k = r->k;
  const char *name;
  json_t *v;
  x->first_name = (uint32_t)k->cert.n_names;
  *fine = json_is_object(given) && json_object_size(given) > 0;
  if (!*fine) return ISO_OK;
  json_object_foreach((json_t *)given, name, v) {
    chk_name *n;
    if (json_is_object(v)) return *fine = false, ISO_OK; /* a number or a list of them, no term */
    if (!iso_grow(k->cert.name, k->cert.cap_names, k->cert.n_names + 1)) return chk_nomem(k);
    n = &k->cert.name[k->cert.n_names++];
    if (!(n->name = iso_arena_strdup(k->arena, name))) return chk_nomem(k);
    iso_code c = chk_read_argument(r, v, 0, &n->value);
    if (c || !n->value) return *fine = false, c;
    x->n_names++;
  }
  return ISO_OK;
}

static iso_code read_step(chk_reader *r, const json_t *j, size_t i) {
  chk_state *k = r->k;
  static const char *const names[CHK_KINDS] = {"leaf",     "bound", "value",
                                               "rounding", "rule",  "same"};
  chk_step x = {.kind = CHK_KINDS};
  bool fine = false;
  for (int n = 0; n < CHK_KINDS; n++)
    if (json_object_get(j, names[n])) x.kind = (chk_kind)n;
  if (x.kind == CHK_RULE) {
    const json_t *which = json_object_get(j, "rule"), *vars = json_object_get(j, "vars");
    const json_t *given = json_object_get(j, "names");
    fine = json_object_size(j) == (given ? 4 : 3) && json_is_integer(which) &&
           json_integer_value(which) >= 0 && (uint64_t)json_integer_value(which) < k->rules.n &&
           json_is_array(vars) && read_pair(k, json_object_get(j, "terms"), &x.a, &x.b);
    if (fine) {
      x.rule = (uint32_t)json_integer_value(which);
      iso_code c = read_vars(k, vars, &x, &fine);
      if (!c && fine && given) c = read_names(r, given, &x, &fine);
      if (c) return c;
    }
  } else if (x.kind != CHK_KINDS) {
    fine = json_object_size(j) == 1 && read_pair(k, json_object_get(j, names[x.kind]), &x.a, &x.b);
  }
  if (!fine) return malformed(k, "step", i);
  if (!iso_grow(k->cert.step, k->cert.cap_steps, k->cert.n_steps + 1)) return chk_nomem(k);
  k->cert.step[k->cert.n_steps++] = x;
  return ISO_OK;
}

/* ---- the rest ---- */

static iso_code read_rule(chk_state *k, const json_t *j, size_t i) {
  rule_set *set = NULL;
  iso_error why = {0};
  if (!json_is_string(j)) return malformed(k, "rule", i);
  iso_code c = rule_set_parse(json_string_value(j), json_string_length(j), "rule", &set, &why);
  if (c == ISO_NOMEM) return chk_nomem(k);
  if (c || rule_set_count(set) != 1) {
    rule_set_free(set);
    return chk_settle(k, CHK_MALFORMED, "rule %zu is malformed: %s", i,
                      c ? why.msg : "there is not one rule in it");
  }
  if (!iso_grow(k->rules.rule, k->rules.cap, k->rules.n + 1)) {
    rule_set_free(set);
    return chk_nomem(k);
  }
  k->rules.rule[k->rules.n++] = set;
  return ISO_OK;
}

static iso_code read_output(chk_state *k, const json_t *j, size_t i) {
  const char *l = json_string_value(json_object_get(j, "left")),
             *r = json_string_value(json_object_get(j, "right"));
  chk_output o = {0};
  if (!l || !r || json_object_size(j) != 3 ||
      !read_pair(k, json_object_get(j, "terms"), &o.a, &o.b))
    return malformed(k, "output", i);
  o.left = iso_arena_strdup(k->arena, l);
  o.right = iso_arena_strdup(k->arena, r);
  if (!o.left || !o.right || !iso_grow(k->cert.output, k->cert.cap_outputs, k->cert.n_outputs + 1))
    return chk_nomem(k);
  k->cert.output[k->cert.n_outputs++] = o;
  return ISO_OK;
}

static iso_code read_fixed(chk_reader *r, const json_t *j, size_t i) {
  chk_state *k = r->k;
  bool there;
  const uint32_t id = read_node(r, j, &there);
  if (id == CHK_NONE) return there ? malformed(k, "fixed input", i) : no_node(k, "fixed input", i);
  if (!iso_grow(k->cert.fixed, k->cert.cap_fixed, k->cert.n_fixed + 1)) return chk_nomem(k);
  k->cert.fixed[k->cert.n_fixed++] = id;
  return ISO_OK;
}

static iso_code read_side(chk_state *k, int side, json_t *j) {
  const json_t *files = json_object_get(j, "files");
  const char *name, *model = json_string_value(json_object_get(j, "model"));
  json_t *v;
  if (!model || json_object_size(j) != 2 || !json_is_object(files))
    return chk_settle(k, CHK_MALFORMED, "\"%s\" is malformed", side == LEFT ? "left" : "right");
  /* An archive has no name but its file's. */
  if (!json_object_get(files, "archive") && strcmp(model, k->graph[side]->model) != 0)
    return chk_settle(k, CHK_REFUSED, "the %s model is \"%.80s\", and the certificate's \"%.80s\"",
                      side == LEFT ? "left" : "right", k->graph[side]->model, model);
  k->cert.file[side] =
      iso_arena_alloc(k->arena, (json_object_size(files) + 1) * sizeof *k->cert.file[side]);
  k->cert.digest[side] =
      iso_arena_alloc(k->arena, (json_object_size(files) + 1) * sizeof *k->cert.digest[side]);
  if (!k->cert.file[side] || !k->cert.digest[side]) return chk_nomem(k);
  json_object_foreach((json_t *)files, name, v) {
    if (!json_is_string(v))
      return chk_settle(k, CHK_MALFORMED, "the digest of \"%s\" is malformed", name);
    const size_t n = k->cert.n_files[side]++;
    if (!(k->cert.file[side][n] = iso_arena_strdup(k->arena, name)) ||
        !(k->cert.digest[side][n] = iso_arena_strdup(k->arena, json_string_value(v))))
      return chk_nomem(k);
  }
  return ISO_OK;
}

/* The graphs must have been changed by just these lines. */
static iso_code read_relations(chk_state *k, const json_t *list) {
  size_t n = 0;
  if (list && !json_is_array(list)) return chk_settle(k, CHK_MALFORMED, "\"relations\" is no list");
  for (; n < json_array_size(list); n++) {
    const char *line = json_string_value(json_array_get(list, n));
    if (!line) return chk_settle(k, CHK_MALFORMED, "relation %zu is malformed", n);
    if (n >= k->o->n_relations || strcmp(line, k->o->relation[n]) != 0)
      return chk_settle(k, CHK_REFUSED, "the captures were not related by its line \"%.200s\"",
                        line);
  }
  return n == k->o->n_relations
             ? ISO_OK
             : chk_settle(k, CHK_REFUSED, "the captures were related by lines that it has not");
}

iso_code chk_relation_lines(const char *path, iso_arena *a, const char *const **out, size_t *n,
                            iso_error *err) {
  FILE *f = fopen(path, "rb");
  if (!f) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  json_t *doc = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
  fclose(f);
  const json_t *list = json_object_get(doc, "relations");
  const size_t most = json_array_size(list);
  const char **line = iso_arena_alloc(a, (most + 1) * sizeof *line);
  iso_code c = line ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  for (*n = 0; !c && *n < most; ++*n) {
    const char *s = json_string_value(json_array_get(list, *n));
    if (!s) break;
    if (!(line[*n] = iso_arena_strdup(a, s))) c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  json_decref(doc);
  *out = line;
  return c;
}

/* NULL: it is no JSON, which chk_check says. */
static iso_code whole_document(const char *path, json_t **doc, iso_error *err) {
  FILE *f = fopen(path, "rb");
  if (!f) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  *doc = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
  fclose(f);
  return ISO_OK;
}

iso_code chk_at_these_weights(const char *path, bool *out, iso_error *err) {
  json_t *doc = NULL;
  const iso_code c = whole_document(path, &doc, err);
  *out = json_is_true(json_object_get(doc, "at_these_weights"));
  json_decref(doc);
  return c;
}

iso_code chk_roles(const char *path, size_t *out, iso_error *err) {
  json_t *doc = NULL;
  const iso_code c = whole_document(path, &doc, err);
  const json_int_t n = json_integer_value(json_object_get(doc, "roles"));
  *out = n > 0 ? (size_t)n : 0;
  json_decref(doc);
  return c;
}

iso_code chk_static(const char *path, bool *out, iso_error *err) {
  json_t *doc = NULL;
  const iso_code c = whole_document(path, &doc, err);
  *out = json_is_true(json_object_get(doc, "static"));
  json_decref(doc);
  return c;
}

static iso_code read_document(chk_reader *r, json_t *doc) {
  chk_state *k = r->k;
  json_t *left, *right, *fixed, *rules, *terms, *steps, *outputs, *relations = NULL, *sizes = NULL;
  const char *format, *evidence;
  int version, half = 0, other = 0, pinned = 0, unrun = 0;
  json_int_t ranks = 0;
  json_error_t why;
  if (json_unpack_ex(
          doc, &why, JSON_STRICT,
          "{s:s, s:i, s?[b, b], s?b, s?b, s?I, s?o, s?o, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o}",
          "format", &format, "version", &version, "masks_read", &half, &other, "static", &unrun,
          "at_these_weights", &pinned, "roles", &ranks, "relations", &relations, "sizes", &sizes,
          "left", &left, "right", &right, "evidence", &evidence, "fixed", &fixed, "rules", &rules,
          "terms", &terms, "steps", &steps, "outputs", &outputs))
    return chk_settle(k, CHK_MALFORMED, "%s", why.text);
  if (strcmp(format, "isomer-certificate") != 0 || version != 1)
    return chk_settle(k, CHK_MALFORMED, "it is no certificate of version 1");
  if ((pinned != 0) != k->o->pinned)
    return chk_settle(k, CHK_REFUSED, "whether parameters keep their values was not read from it");
  if ((unrun != 0) != k->o->unrun)
    return chk_settle(k, CHK_REFUSED, "whether anything was run was not read from it");
  if (unrun && (pinned || ranks || relations || sizes))
    return chk_settle(k, CHK_REFUSED, "it says more than is said of what was not run");
  if (ranks != (k->o->roles ? (json_int_t)k->o->roles->n_ranks : 0))
    return chk_settle(k, CHK_REFUSED, "its ranks are not as many as were made one");
  k->mask.reads[CHK_MASK_HALF] = half != 0;
  k->mask.reads[CHK_MASK_OTHER] = other != 0;
  k->cert.evidence = strcmp(evidence, "certified") == 0 ? RULE_CERTIFIED
                     : strcmp(evidence, "proved") == 0  ? RULE_PROVED
                     : strcmp(evidence, "tested") == 0  ? RULE_TESTED
                                                        : RULE_UNKNOWN;
  if (k->cert.evidence == RULE_UNKNOWN || !json_is_array(fixed) || !json_is_array(rules) ||
      !json_is_array(terms) || !json_is_array(steps) || !json_is_array(outputs))
    return chk_settle(k, CHK_MALFORMED, "a part of it is of the wrong type");
  size_t i;
  json_t *j;
  iso_code c = read_relations(k, relations);
  if (!c && !chk_settled(k)) c = read_side(k, LEFT, left);
  if (!c) c = read_side(k, RIGHT, right);
  /* Of other captures nothing below can make sense. */
  for (int side = 0; side < 2 && !c && !chk_settled(k); side++) c = chk_same_files(k, side);
  for (i = 0; i < json_array_size(fixed) && !c && !chk_settled(k); i++)
    c = read_fixed(r, json_array_get(fixed, i), i);
  json_array_foreach(rules, i, j) if (!c && !chk_settled(k)) c = read_rule(k, j, i);
  json_array_foreach(terms, i, j) if (!c && !chk_settled(k)) c = read_term(r, j, i);
  json_array_foreach(steps, i, j) if (!c && !chk_settled(k)) c = read_step(r, j, i);
  json_array_foreach(outputs, i, j) if (!c && !chk_settled(k)) c = read_output(k, j, i);
  return c || chk_settled(k) ? c : chk_read_sizes(r, sizes);
}

iso_code chk_read(chk_state *k, const char *path) {
  chk_reader r = {.k = k};
  json_error_t why;
  errno = 0;
  FILE *f = fopen(path, "rb");
  if (!f) return iso_fail(k->err, ISO_IO, "%s: %s", path, strerror(errno));
  json_t *doc = json_loadf(f, JSON_REJECT_DUPLICATES, &why);
  const bool unreadable = ferror(f) != 0;
  fclose(f);
  if (unreadable) {
    json_decref(doc);
    return iso_fail(k->err, ISO_IO, "%s: it cannot be read", path);
  }
  if (!doc) {
    if (json_error_code(&why) == json_error_out_of_memory) return chk_nomem(k);
    return chk_settle(k, CHK_MALFORMED, "line %d: %s", why.line, why.text);
  }
  iso_code c = ISO_OK;
  for (int side = 0; side < 2 && !c; side++)
    if (!(r.by_id[side] = sorted(k->graph[side]))) c = chk_nomem(k);
  for (int side = 0; side < 2 && !c; side++) c = add_graph(k, side);
  if (!c) c = read_document(&r, doc);
  json_decref(doc);
  free(r.by_id[LEFT]);
  free(r.by_id[RIGHT]);
  return c;
}
