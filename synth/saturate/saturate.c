/* Saturation as compare and minimize ask for it (saturate.h): the loop over rules that turn out not
 * to hold, and which pairs of tensors are to meet. */
#include "synth/saturate/saturate_int.h"
#include "synth/search/search.h"

#include <stdio.h>
#include <stdlib.h>

enum { MAX_RUNS = 16, MAX_GOALS = 512 };

static iso_code nomem(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* One copy, grown and repeated. Returns: in `again` whether a rule was refused, and is marked. */
static iso_code once(state *s, st_saturation *o, bool *refused[2], bool *again, iso_error *err) {
  sat_run x = {.s = s, .o = o, .refused = {refused[0], refused[1]}};
  const sat_rule *r = NULL;
  iso_code c = sat_grow(&x, err);
  if (!c) c = sat_replay(&x, &r, err);
  *again = !c && r;
  if (*again) refused[r->given][r->index] = true;
  sat_free(&x);
  return c;
}

iso_code st_saturate(state *s, st_saturation *o, iso_error *err) {
  /* Rules that replays add to the set are decided: none of them is new to the run. */
  const size_t n_known = s->known ? rule_set_count(s->known) : 0;
  bool *refused[2] = {NULL, calloc(n_known + 1, 1)}, again = true;
  size_t apart = 0, n_set = 0;
  iso_code c = refused[1] ? ISO_OK : nomem(err);
  for (size_t i = 0; i < o->n_goals; i++) apart += !eg_equal(s->g, o->goal[i].a, o->goal[i].b);
  o->n_grown = 0;
  for (int k = 0; k < MAX_RUNS && again && !c; k++) {
    const size_t n = rule_set_count(s->rules.set);
    bool *more = realloc(refused[0], n + 1);
    if (!more) c = nomem(err);
    else {
      for (refused[0] = more; n_set < n; n_set++) more[n_set] = false;
      c = once(s, o, refused, &again, err);
    }
  }
  if (!c && again && !o->limit) o->limit = "runs";
  size_t left = 0;
  for (size_t i = 0; i < o->n_goals; i++) left += !eg_equal(s->g, o->goal[i].a, o->goal[i].b);
  o->n_joined = apart - left;
  free(refused[0]);
  free(refused[1]);
  return c;
}

/* ---- what keeps the outputs apart ---- */

typedef struct goals {
  st_goal *at;
  size_t n, cap;
} goals;

static iso_code add_goal(state *s, goals *g, eg_node a, eg_node b, iso_error *err) {
  for (size_t i = 0; i < g->n; i++)
    if (eg_equal(s->g, g->at[i].a, a) && eg_equal(s->g, g->at[i].b, b)) return ISO_OK;
  if (!iso_grow(g->at, g->cap, g->n + 1)) return nomem(err);
  g->at[g->n++] = (st_goal){a, b};
  return ISO_OK;
}

/* Whether joining the two would tell more of the graphs than each tells of itself. */
static bool across(state *s, eg_node a, eg_node b) {
  return (st_has_side(s, a, LEFT) && st_has_side(s, b, RIGHT)) ||
         (st_has_side(s, a, RIGHT) && st_has_side(s, b, LEFT));
}

/* Of each class of a group, its pair with the first class that has its shape and values. */
static iso_code pairs_of(state *s, const group *q, goals *g, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t j = 1; j < q->n && g->n < MAX_GOALS && !c; j++)
    for (size_t i = 0; i < j; i++) {
      const eg_node a = q->member[i], b = q->member[j];
      if (eg_equal(s->g, a, b)) break;
      if (!across(s, a, b) || !rule_shape_eq(&s->rec[a.i].shape, &s->rec[b.i].shape) ||
          !st_values_equal(s, a, b))
        continue;
      c = add_goal(s, g, a, b, err);
      break;
    }
  return c;
}

iso_code st_saturate_open(state *s, const st_goal *output, size_t n_outputs, bool *gained,
                          iso_error *err) {
  goals g = {0};
  iso_code c = ISO_OK;
  *gained = false;
  for (size_t i = 0; i < n_outputs && !c; i++) c = add_goal(s, &g, output[i].a, output[i].b, err);
  for (size_t i = 0; i < s->groups.n && g.n < MAX_GOALS && !c; i++)
    c = pairs_of(s, &s->groups.of[i], &g, err);
  st_saturation o = {.goal = g.at,
                     .n_goals = g.n,
                     .given = true,
                     .iterations = s->o->saturate_iterations,
                     .nodes = s->o->saturate_nodes,
                     .classes = 4000};
  if (!c && g.n) c = st_saturate(s, &o, err);
  *gained = o.n_joined > 0;
  if (s->o->trace && !c && g.n) {
    char line[160];
    snprintf(line, sizeof line, "saturate %zu pairs: %zu e-nodes made, %zu pairs joined%s%s", g.n,
             o.n_grown, o.n_joined, o.limit ? ", ended at its limit of " : "",
             o.limit ? o.limit : "");
    s->o->trace(s->o->ctx, line);
  }
  s->search.saturated_to = o.limit;
  s->res->n_saturated += o.n_joined;
  s->res->n_grown += o.n_grown;
  free(g.at);
  return c;
}
