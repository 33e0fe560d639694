/* The outputs of several calls as those of one graph. */
#include <string.h>

#include "capture/calls/calls_int.h"
#include "rules/names.h"

iso_code calls_say(chain *x, const char *line) {
  if (!line) return cap_no_memory(x->err);
  x->said[x->n_said++] = line;
  return ISO_OK;
}

static void add(chain *x, const char *name, uint32_t node) {
  x->result[x->n_results++] = (cap_result){name, node};
}

/* How the other side names what this output may be of it: as it is; where both sides have one
 * output that is no state, that. */
static int64_t counterpart(const chain *x, const calls_parts *p) {
  const int64_t named = calls_result(x->other, p->name);
  if (named >= 0 || x->other->n_results != 1) return named;
  const cap_graph *last = x->g[x->n - 1];
  size_t n = 0;
  for (size_t r = 0; r < last->n_results; r++) n += calls_input(last, last->result[r].name) < 0;
  return n == 1 && calls_input(last, p->name) < 0 ? 0 : -1;
}

/* Whether the output is state that the last call leaves behind. */
static bool is_state(const chain *x, const calls_parts *p) {
  size_t call, result;
  return p->n == 1 && p->call[0] == x->n - 1 && calls_input(x->g[x->n - 1], p->name) >= 0 &&
         calls_source(x, x->n - 1, p->name, &call, &result);
}

static uint32_t stands_at(const chain *x, const calls_parts *p, size_t i) {
  return x->to[p->call[i]][p->node[i]];
}

/* The shape of the parts behind one another, and where symbols are kept its sizes. */
static iso_code shape_of_all(chain *x, const calls_parts *p, calls_made *made) {
  const cap_node *first = &x->g[p->call[0]]->node[p->node[0]];
  const uint32_t rank = first->output[0].shape.rank;
  const rule_term **dim = iso_arena_alloc(x->a, (rank + 1) * sizeof *dim);
  if (!dim) return cap_no_memory(x->err);
  made->what = first->output[0];
  for (uint32_t d = 0; d < rank && x->scale; d++)
    if (!(dim[d] = calls_translate(x, p->call[0], first->dim[d]))) return cap_no_memory(x->err);
  for (size_t i = 1; i < p->n; i++) {
    const cap_node *n = &x->g[p->call[i]]->node[p->node[i]];
    made->what.shape.dim[p->along] += n->output[0].shape.dim[p->along];
    if (!x->scale) continue;
    const rule_term *own = calls_translate(x, p->call[i], n->dim[p->along]);
    dim[p->along] = own ? calls_sum(x, dim[p->along], own) : NULL;
    if (!dim[p->along]) return cap_no_memory(x->err);
  }
  made->dim = x->scale ? dim : NULL;
  return ISO_OK;
}

static iso_code join(chain *x, const calls_parts *p) {
  const rule_term *part[CALLS_ALL];
  uint32_t node;
  for (size_t i = 0; i < p->n; i++)
    if (!(part[i] = rule_var(x->a, stands_at(x, p, i)))) return cap_no_memory(x->err);
  const rule_term *child[2] = {rule_list(x->a, part, p->n), rule_int(x->a, p->along)};
  const rule_term *call = child[0] && child[1] ? rule_op(x->a, OP_CAT, child, 2) : NULL;
  const char *id = iso_arena_printf(x->a, "%s_joined", p->name);
  if (!id || !call) return cap_no_memory(x->err);
  calls_made made = {.sized = x->scale ? call : NULL};
  iso_code c = shape_of_all(x, p, &made);
  if (!c) c = calls_add_operator(x, id, call, &made, &node);
  if (c) return c;
  add(x, p->name, node);
  return calls_say(x, iso_arena_printf(x->a,
                                       "output %.80s is those of %zu calls, one behind the other",
                                       p->name, p->n));
}

/* Each under its own name. */
static iso_code keep_apart(chain *x, const calls_parts *p) {
  for (size_t i = 0; i < p->n; i++) {
    const char *name = x->other && p->n == 1 ? p->name : calls_later(x, p->call[i], p->name);
    if (!name) return cap_no_memory(x->err);
    add(x, name, stands_at(x, p, i));
  }
  return ISO_OK;
}

static iso_code add_output(chain *x, calls_parts *p) {
  const int64_t one = x->other ? counterpart(x, p) : -1;
  const bool given = calls_result(x->other_last, p->name) >= 0;
  if (is_state(x, p) && !given)
    return calls_say(x, iso_arena_printf(x->a,
                                         "%.80s, which the last call leaves behind, is left "
                                         "out of the comparison",
                                         p->name));
  if (one < 0) return keep_apart(x, p);
  calls_settle_way(x, p, x->other->result[one].node);
  if (p->n > 1 && p->way == CALLS_BEHIND) return join(x, p);
  if (p->n < 2 || !p->last_alone) return keep_apart(x, p);
  add(x, p->name, stands_at(x, p, p->n - 1));
  return calls_say(x, iso_arena_printf(x->a,
                                       "output %.80s is the last call's: those before it are "
                                       "left out of the comparison",
                                       p->name));
}

iso_code calls_add_results(chain *x) {
  size_t most = 0;
  for (size_t k = 0; k < x->n; k++) most += x->g[k]->n_results;
  x->result = iso_arena_alloc(x->a, (most + 1) * sizeof *x->result);
  if (!x->result) return cap_no_memory(x->err);
  iso_code c = ISO_OK;
  for (size_t k = 0; k < x->n && !c; k++)
    for (size_t r = 0; r < x->g[k]->n_results && !c; r++) {
      const char *name = x->g[k]->result[r].name;
      calls_parts p = calls_outputs(x, name);
      if (!x->used[k][r] && p.call[0] == k) c = add_output(x, &p);
    }
  return c;
}
