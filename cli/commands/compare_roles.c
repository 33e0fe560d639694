/* Ranks of one role, decided once: the right capture as a graph of one rank, where that is shown.
 * EQUIVALENT is final; after any other verdict the ranks are compared as they are. Few ranks are
 * compared as they are first, and decided once where that leaves the pair undecided. */
#include "cli/commands/compare_int.h"

#include <ctype.h>
#include <string.h>

enum { LEAST_RANKS = 4 }; /* fewer are mostly compared as fast as they are */

bool cmp_may_fold(const options *o) {
  return !o->unrun && !o->learning && !o->relations && !o->pinned && !o->rounding && !o->expect &&
         !o->save_relations && !(o->synth.disable & CMP_ROLES) && !o->calls[0].n && !o->calls[1].n;
}

bool cmp_few_ranks(const options *o, const pair *p) {
  const size_t n = roles_count(p->graph[1]);
  return cmp_may_fold(o) && n > 1 && n < LEAST_RANKS;
}

iso_code cmp_fold_ranks(const options *o, pair *p, const rule_oracle *oracle, iso_error *err) {
  const roles_asked q = {.whole = p->graph[0],
                         .oracle = oracle,
                         .least = p->few ? 2 : LEAST_RANKS,
                         .parts = o->refine,
                         .seed = o->synth.seed};
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

static bool is_of_name(char c) { return isalnum((unsigned char)c) || c == '_' || c == '.'; }

/* An output whose relation rearranges the parts that ranks hold cannot be written as one relation:
 * the ranks are compared as they are. */
static iso_code unsaid(pair *p, const char *output) {
  synth_result *r = p->result;
  r->verdict = SYNTH_UNDECIDED;
  r->reason = iso_arena_printf(&r->arena, "output %s is parts of the ranks', rearranged", output);
  return ISO_OK;
}

/* Whether the name stands in the text, and not within another. */
static bool speaks_of(const char *text, const char *name) {
  const size_t n = strlen(name);
  for (const char *at = text; (at = strstr(at, name)); at++)
    if ((at == text || !is_of_name(at[-1])) && !is_of_name(at[n])) return true;
  return false;
}

/* The report says of an output that ranks hold parts of how it is put together. With one rank left,
 * that is its relation; with several left, it explains the name in the relation inferred of
 * them. */
static iso_code say_part(pair *p, refined *one, const roles_parts *part, iso_error *err) {
  iso_arena *a = &p->refinement.arena;
  if (p->roles.left > 1) {
    if (!one->relation || !speaks_of(one->relation, part->output)) return ISO_OK;
    one->where = one->where
                     ? iso_arena_printf(a, "%s; %s is %s", one->where, part->output, part->said)
                     : iso_arena_printf(a, "%s is %s", part->output, part->said);
    return one->where ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  }
  if (strcmp(one->output, part->output) != 0) return ISO_OK;
  if (one->inferred && strcmp(one->relation, one->output) != 0) return unsaid(p, one->output);
  one->relation = iso_arena_strdup(a, part->said);
  one->inferred = false;
  return one->relation ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
}

static iso_code say_parts(pair *p, iso_error *err) {
  const roles_result *x = &p->roles;
  iso_code c = ISO_OK;
  for (size_t i = 0; i < x->n_parts && !c; i++)
    for (size_t k = 0; k < p->refinement.n && !c; k++)
      c = say_part(p, &p->refinement.of[k], &x->parts[i], err);
  return c;
}

iso_code cmp_say_roles(pair *p, iso_error *err) {
  const iso_code c = add_rules(p, err);
  return c ? c : say_parts(p, err);
}
