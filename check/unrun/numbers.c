/* Facts that only a run could show. A certificate of graphs that are not run may not rest on
 * them. */
#include "check/unrun/unrun.h"

/* Each rule must hold for numbers that are NaN or infinite, too. */
static iso_code ask_rules(chk_state *k) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < k->cert.n_steps && !c && !chk_settled(k); i++) {
    if (k->cert.step[i].kind != CHK_RULE) continue;
    const uint32_t which = k->cert.step[i].rule;
    bool together = true, before = false;
    for (size_t j = 0; j < i && !before; j++)
      before = k->cert.step[j].kind == CHK_RULE && k->cert.step[j].rule == which;
    if (before || !k->o->together) continue;
    const rule *r = rule_set_at(k->rules.rule[which], 0);
    c = k->o->together(k->o->together_ctx, r, &together, k->err);
    if (!c && !together)
      c = chk_settle(k, CHK_REFUSED,
                     "rule %s holds where all parts are numbers, which only a run can tell",
                     r->name);
  }
  return c;
}

iso_code chk_unrun_numbers(chk_state *k) {
  chk_poles p;
  for (size_t i = 0; i < k->cert.n_steps; i++)
    if (k->cert.step[i].kind == CHK_RULE &&
        rule_set_at(k->rules.rule[k->cert.step[i].rule], 0)->claimed != RULE_PROVED)
      return chk_settle(k, CHK_REFUSED, "step %zu: nothing was run, and its rule is only tested",
                        i);
  iso_code c = ask_rules(k);
  if (!c && !chk_settled(k)) c = chk_poles_of(k, &p);
  if (c || chk_settled(k)) return c;
  if (p.seen || p.apart || p.told)
    return chk_settle(k, CHK_REFUSED,
                      "an operator may see what is no number, which only a run can tell");
  if (!k->mask.reads[CHK_MASK_HALF] && !k->mask.reads[CHK_MASK_OTHER]) return ISO_OK;
  return chk_assume(k, RULE_ASSUMES_LITERAL,
                    "that no number comes near a mask that is read as minus infinity was not "
                    "looked at");
}
