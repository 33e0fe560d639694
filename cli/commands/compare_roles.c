/* Ranks of one role, decided once: the right capture as a graph of one rank, where that is shown.
 * What is equivalent so is equivalent; anything else is asked of the ranks as they are. */
#include "cli/commands/compare_int.h"

#include <string.h>

enum { LEAST_RANKS = 4 }; /* fewer are compared as fast as they are */

bool cmp_may_fold(const options *o) {
  return !o->unrun && !o->learning && !o->relations && !o->pinned && !o->rounding && !o->expect &&
         !o->save_relations && !o->synth.disable;
}

iso_code cmp_fold_ranks(const options *o, pair *p, const rule_oracle *oracle, iso_error *err) {
  const roles_asked q = {p->graph[0], oracle, LEAST_RANKS, o->refine, o->synth.seed};
  const iso_code c = roles_fold(p->graph[1], &q, &p->roles, err);
  return c;
}

void cmp_say_undone(const pair *p, const char *error) {
  const char *why = error               ? error
                    : p->roles.why      ? p->roles.why
                    : !p->result        ? NULL
                    : p->result->reason ? p->result->reason
                                        : "their outputs are not the left ones";
  if (why) fprintf(stderr, "the ranks are not decided as one: %s\n", why);
}

/* The rules of the argument stand with those of the comparison. */
static iso_code add_rules(pair *p, iso_error *err) {
  synth_result *r = p->result;
  const roles_result *x = &p->roles;
  synth_rule_use *use = iso_arena_alloc(&r->arena, (r->n_rules + x->n_rules + 1) * sizeof *use);
  if (!use) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (r->n_rules) memcpy(use, r->rule, r->n_rules * sizeof *use);
  for (size_t i = 0; i < x->n_rules; i++)
    use[r->n_rules + i] = (synth_rule_use){.what = rule_set_at(x->rules, x->rule[i].index),
                                           .verdict = x->rule[i].verdict,
                                           .uses = x->rule[i].uses,
                                           .needed = true};
  r->rule = use;
  r->n_rules += x->n_rules;
  return ISO_OK;
}

/* What the ranks hold of an output, rearranged, is no relation that could be written down here: the
 * ranks are compared as they are. */
static iso_code unsaid(pair *p, const char *output) {
  synth_result *r = p->result;
  r->verdict = SYNTH_UNDECIDED;
  r->reason = iso_arena_printf(&r->arena, "output %s is parts of the ranks', rearranged", output);
  return ISO_OK;
}

/* An output that ranks hold parts of is said to be so. */
static iso_code say_parts(pair *p, iso_error *err) {
  const roles_result *x = &p->roles;
  for (size_t i = 0; i < x->n_parts; i++)
    for (size_t k = 0; k < p->refinement.n; k++) {
      refined *one = &p->refinement.of[k];
      if (strcmp(one->output, x->parts[i].output) != 0) continue;
      if (one->inferred && strcmp(one->relation, one->output) != 0) return unsaid(p, one->output);
      one->relation = iso_arena_printf(&p->refinement.arena, "cat of %s of %zu ranks, dim %u",
                                       one->output, x->n_ranks, x->parts[i].dim);
      one->inferred = false; /* it is of the graph of one, in which it is the output itself */
      if (!one->relation) return iso_fail(err, ISO_NOMEM, "out of memory");
    }
  return ISO_OK;
}

iso_code cmp_say_roles(pair *p, iso_error *err) {
  const iso_code c = add_rules(p, err);
  return c ? c : say_parts(p, err);
}
