/* Lines about outputs: which results are compared, and the nodes appended to the right graph that
 * put together the counterpart of a left output. */
#include "cli/config/relations_int.h"

#include <stdlib.h>
#include <string.h>

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- ranks ---- */

/* Outputs that no line spoke of, in order; with `heads` without the replicas among them. */
static size_t unspoken(const relations *r, int side, bool heads, size_t *out) {
  const relations_spoken *was = side == LEFT ? r->left : r->right;
  size_t n = 0;
  for (size_t i = 0; i < r->n_results[side]; i++)
    if (!was[i].where) {
      const size_t head = r->replicas[side].head[i];
      if (!heads || head == i || was[head].where) out[n++] = i;
    }
  return n;
}

/* ---- pairing what no line speaks of ---- */

/* As many on both sides: by name where each has its own, else in order. */
static void pair_up(const relations *r, const size_t *left, const size_t *right, size_t n,
                    int64_t *of) {
  bool by_name = true;
  for (size_t i = 0; i < n; i++) {
    of[left[i]] = -1;
    for (size_t k = 0; k < n; k++)
      if (strcmp(r->result[LEFT][left[i]].name, r->result[RIGHT][right[k]].name) == 0)
        of[left[i]] = (int64_t)right[k];
    by_name &= of[left[i]] >= 0;
  }
  for (size_t i = 0; i < n && !by_name; i++) of[left[i]] = (int64_t)right[i];
}

/* Of each left result that no line speaks of the right one that it is paired with, -1: none. All of
 * them one by one, else (in `heads`) without replicas, which go with their heads. Returns: false
 * where numbers do not fit. */
static bool find_partners(const relations *r, int64_t *of, bool *heads) {
  const size_t n_l = r->n_results[LEFT], n_r = r->n_results[RIGHT];
  size_t *left = calloc(n_l + n_r + 2, sizeof *left), *right = left ? left + n_l + 1 : NULL;
  bool fits = false;
  for (size_t i = 0; i < n_l; i++) of[i] = -1;
  for (int pass = 0; left && pass < 2 && !fits; pass++) {
    *heads = pass > 0;
    const size_t n = unspoken(r, LEFT, *heads, left);
    fits = n == unspoken(r, RIGHT, *heads, right);
    if (fits) pair_up(r, left, right, n, of);
  }
  free(left);
  return fits;
}

/* Whether right result `k` goes with `partner`, as itself or as its replica. */
static bool goes_with(const relations *r, size_t k, int64_t partner, bool heads) {
  return (int64_t)k == partner ||
         (heads && !r->right[k].where && (int64_t)r->replicas[RIGHT].head[k] == partner);
}

bool relations_open(const relations *r, const cap_graph *left, const cap_graph *right, bool all,
                    bool *open) {
  int64_t *of = calloc(r->n_results[LEFT] + 1, sizeof *of);
  bool heads = false, any = false;
  const bool fits = of && find_partners(r, of, &heads);
  for (size_t i = 0; i < r->n_results[LEFT]; i++) {
    const rule_shape *s = &left->node[r->result[LEFT][i].node].output[0].shape;
    open[i] = !r->left[i].where && (all || !fits);
    for (size_t k = 0; k < r->n_results[RIGHT] && !r->left[i].where && fits && of[i] >= 0; k++)
      if (goes_with(r, k, of[i], heads))
        open[i] |= !relfile_near(s, &right->node[r->result[RIGHT][k].node].output[0].shape);
    any |= open[i];
  }
  free(of);
  return any;
}

bool relations_fit(const relations *r) {
  int64_t *of = calloc(r->n_results[LEFT] + 1, sizeof *of);
  bool heads;
  const bool fits = of && find_partners(r, of, &heads);
  free(of);
  return fits;
}

bool relations_leave_out(relations *r, size_t left) {
  int64_t *of = calloc(r->n_results[LEFT] + 1, sizeof *of);
  bool heads = false;
  if (!of) return false;
  const bool fits = find_partners(r, of, &heads) && of[left] >= 0;
  for (size_t k = 0; k < r->n_results[RIGHT] && fits; k++)
    if (!r->right[k].where && goes_with(r, k, of[left], heads))
      r->right[k] = (relations_spoken){"", true, false};
  for (size_t k = 0; k < r->n_results[LEFT]; k++)
    if (k == left || (heads && fits && !r->left[k].where && r->replicas[LEFT].head[k] == left))
      r->left[k] = (relations_spoken){"", true, false};
  free(of);
  return true;
}

/* ---- nodes behind the right graph ---- */

static const cap_output *what_of(const relations *r, const rule_term *t) {
  for (size_t i = 0; i < r->n_calls; i++)
    if (r->call[i].term == t) return &r->call[i].what;
  return NULL;
}

/* `t` over right results, over nodes: its calls become nodes of the right graph. */
static iso_code append(const relations *r, cap_graph *g, const rule_term *t, const rule_term **out,
                       iso_error *err) {
  *out = t->kind == RULE_VAR ? rule_var(&g->arena, r->result[RIGHT][t->u.i].node) : t;
  if (t->kind != RULE_OP && t->kind != RULE_LIST) return *out ? ISO_OK : nomem(err);
  const rule_term **child = iso_arena_alloc(&g->arena, (t->n + 1) * sizeof *child);
  iso_code c = child ? ISO_OK : nomem(err);
  for (uint32_t i = 0; i < t->n && !c; i++) c = append(r, g, t->child[i], &child[i], err);
  uint32_t node = 0;
  if (!c)
    *out = t->kind == RULE_OP ? rule_op(&g->arena, t->u.s, child, t->n)
                              : rule_list(&g->arena, child, t->n);
  if (c || !*out || t->kind == RULE_LIST) return c ? c : *out ? ISO_OK : nomem(err);
  c = cap_append(g, "relation", *out, what_of(r, t), &node, err);
  if (!c && !(*out = rule_var(&g->arena, node))) c = nomem(err);
  return c;
}

/* ---- the graphs' results ---- */

typedef struct chosen { /* results as they will be */
  cap_result *left, *right;
  size_t n_left, n_right;
} chosen;

/* Whether further right results may carry the name of left result `i`: it is not one of several
 * ranks' itself. */
static bool takes_several(const relations *r, size_t i) {
  const rule_replicas *of = &r->replicas[LEFT];
  return of->head[i] == i && of->first[i] == RULE_NO_OUTPUT;
}

/* The `nth` right result of left result `i`. */
static iso_code choose(relations *r, chosen *x, size_t i, size_t nth, uint32_t node,
                       const char *text, iso_error *err) {
  const char *name = r->result[LEFT][i].name;
  if (nth) name = iso_arena_printf(&r->arena, "%s_rank%zu", name, nth);
  if (!name) return nomem(err);
  r->relation[x->n_right] = text;
  x->right[x->n_right++] = (cap_result){name, node};
  return ISO_OK;
}

static iso_code choose_given(relations *r, chosen *x, size_t i, cap_graph *g, iso_error *err) {
  size_t nth = 0;
  iso_code c = ISO_OK;
  for (size_t k = 0; k < r->n_outputs && !c; k++) {
    const relations_line *l = &r->output[k];
    const rule_term *t;
    if (l->left != i) continue;
    if (nth && !takes_several(r, i))
      return iso_fail(err, ISO_USAGE,
                      "%s: output \"%.80s\" is of one of several ranks, and may have one line",
                      l->where, r->result[LEFT][i].name);
    c = append(r, g, l->term, &t, err);
    if (!c) c = choose(r, x, i, nth++, (uint32_t)t->u.i, l->text, err);
  }
  return c;
}

/* The output that it is paired with first, then that one's replicas. */
static iso_code choose_partner(relations *r, chosen *x, size_t i, int64_t partner, bool heads,
                               iso_error *err) {
  const cap_result *right = r->result[RIGHT];
  size_t nth = 0;
  iso_code c = ISO_OK;
  for (int replicas = 0; replicas < 2; replicas++)
    for (size_t k = 0; k < r->n_results[RIGHT] && !c; k++) {
      if (((int64_t)k != partner) != replicas || !goes_with(r, k, partner, heads)) continue;
      const bool same = !nth && strcmp(right[k].name, r->result[LEFT][i].name) == 0;
      c = choose(r, x, i, nth++, right[k].node, same ? NULL : right[k].name, err);
    }
  return c;
}

static iso_code cannot_pair(const relations *r, const cap_graph *left, const cap_graph *right,
                            iso_error *err) {
  size_t n[2] = {0, 0};
  for (size_t i = 0; i < r->n_results[LEFT]; i++) n[LEFT] += !r->left[i].where;
  for (size_t i = 0; i < r->n_results[RIGHT]; i++) n[RIGHT] += !r->right[i].where;
  return iso_fail(err, ISO_USAGE,
                  "the relations leave %zu outputs of %s and %zu of %s: they cannot be paired",
                  n[LEFT], left->path, n[RIGHT], right->path);
}

/* ---- names ---- */

/* How many results of a side are NAME, or a rank's of it. */
static size_t of_stem(const relations *r, int side, const char *name) {
  size_t n = 0;
  for (size_t i = 0; i < r->n_results[side]; i++)
    n += synth_same_stem(r->result[side][i].name, name);
  return n;
}

static bool has_result(const relations *r, int side, const char *name) {
  for (size_t i = 0; i < r->n_results[side]; i++)
    if (strcmp(r->result[side][i].name, name) == 0) return true;
  return false;
}

/* Whether the left result `name` may be made of the right result `part`. */
static bool names_go_together(const relations *r, const char *name, const char *part) {
  if (!synth_same_stem(name, part)) return !of_stem(r, RIGHT, name) && !of_stem(r, LEFT, part);
  return of_stem(r, LEFT, name) < 2 || strcmp(name, part) == 0 || !has_result(r, RIGHT, name);
}

/* The first right result of the term that left result `left` may not be made of; NULL: none.
 * `taken`: by right result, one more than the left result that is made of it. */
static const char *misnamed(const relations *r, uint32_t left, const rule_term *t,
                            uint32_t *taken) {
  if (t->kind == RULE_VAR) {
    uint32_t *by = &taken[t->u.i];
    const char *part = r->result[RIGHT][t->u.i].name;
    if ((*by && *by != left + 1) || !names_go_together(r, r->result[LEFT][left].name, part))
      return part;
    *by = left + 1;
  }
  for (uint32_t i = 0; i < t->n; i++) {
    const char *part = misnamed(r, left, t->child[i], taken);
    if (part) return part;
  }
  return NULL;
}

static bool user_spoke_of(const relations *r, uint32_t left) {
  for (size_t i = 0; i < r->n_outputs; i++)
    if (!r->output[i].inferred && r->output[i].left == left) return true;
  return false;
}

bool relations_is_model_memory(const char *output) {
  static const char of_buffers[] = "updated.buffer.";
  return strncmp(output, of_buffers, sizeof of_buffers - 1) == 0;
}

static iso_code check_left_out(const relations *r, iso_error *err) {
  for (size_t k = 0; k < r->n_results[RIGHT]; k++) {
    const relations_spoken *of = &r->right[k];
    const char *name = r->result[RIGHT][k].name;
    if (!of->left_out || !of->inferred) continue;
    if (relations_is_model_memory(name) || of_stem(r, LEFT, name))
      return iso_fail(err, ISO_FORMAT, "%s: \"%s\" is %s, and is not left out", of->where, name,
                      of_stem(r, LEFT, name) ? "an output of the left, too"
                                             : "memory of the model");
    for (size_t i = 0; i < r->n_results[LEFT]; i++)
      if (!r->left[i].where)
        return iso_fail(err, ISO_FORMAT, "%s: \"%s\" may belong to \"%s\", of which no line speaks",
                        of->where, name, r->result[LEFT][i].name);
  }
  return ISO_OK;
}

iso_code relations_check_names(const relations *r, iso_error *err) {
  const iso_code fits = check_left_out(r, err);
  if (fits) return fits;
  uint32_t *taken = calloc(r->n_results[RIGHT] + 1, sizeof *taken);
  if (!taken) return nomem(err);
  iso_code c = ISO_OK;
  for (size_t i = 0; i < r->n_outputs && !c; i++) {
    const relations_line *l = &r->output[i];
    if (!l->inferred || !l->term || user_spoke_of(r, l->left)) continue;
    const char *part = misnamed(r, l->left, l->term, taken);
    if (part)
      c = iso_fail(err, ISO_FORMAT,
                   "%s: by its name, \"%s\" is another output, and no part of \"%s\"", l->where,
                   part, r->result[LEFT][l->left].name);
  }
  free(taken);
  return c;
}

iso_code relations_apply(relations *r, cap_graph *left, cap_graph *right, iso_error *err) {
  const size_t n_l = r->n_results[LEFT], n_r = r->n_results[RIGHT],
               most = n_l + n_r + r->n_outputs + 1;
  bool any = false; /* else the graphs stay as they are */
  for (size_t i = 0; i < n_l; i++) any |= r->left[i].where != NULL;
  for (size_t i = 0; i < n_r; i++) any |= r->right[i].where != NULL;
  if (!any) return ISO_OK;
  chosen x = {calloc(most, sizeof *x.left), calloc(most, sizeof *x.right), 0, 0};
  int64_t *of = calloc(n_l + 1, sizeof *of);
  bool heads = false;
  r->relation = iso_arena_alloc(&r->arena, most * sizeof *r->relation);
  iso_code c = x.left && x.right && of && r->relation ? ISO_OK : nomem(err);
  if (!c && !find_partners(r, of, &heads)) c = cannot_pair(r, left, right, err);
  for (size_t i = 0; i < n_l && !c; i++) {
    if (r->left[i].left_out) continue;
    if (r->left[i].where) c = choose_given(r, &x, i, right, err);
    else if (of[i] >= 0) c = choose_partner(r, &x, i, of[i], heads, err);
    x.left[x.n_left++] = r->result[LEFT][i];
  }
  if (!c && x.n_left == 0) c = iso_fail(err, ISO_USAGE, "no output is left to compare");
  if (!c) c = cap_set_results(left, x.left, x.n_left, err);
  if (!c) c = cap_set_results(right, x.right, x.n_right, err);
  free(x.left);
  free(x.right);
  free(of);
  return c;
}
