/* Words for how a side loses digits. */
#include "localise/rounding/rounding_int.h"
#include "rules/operators.h"

#include <stdio.h>
#include <string.h>

bool lr_rounds(const synth_node *n) {
  const rule_operator *o = n->kind == SYNTH_OP ? rule_operator_of(n->op) : NULL;
  return o && !o->rearranges && !o->identity && !o->moves && !o->part && !o->cast && !o->joins &&
         !rule_is_getitem(n->op);
}

static bool narrows(const synth_graph *g, const synth_node *n) {
  const rule_term *x = n->call->n ? n->call->child[0] : NULL;
  return rule_operator_of(n->op)->cast && x && x->kind == RULE_VAR &&
         lr_digits(g->node[x->u.i].dtype) > lr_digits(n->dtype);
}

/* aten::add.Tensor is add. */
static void short_name(const char *op, char *out, size_t size) {
  const char *colon = strrchr(op, ':');
  snprintf(out, size, "%.*s", (int)strcspn(colon ? colon + 1 : op, "."), colon ? colon + 1 : op);
}

static size_t count_adds(const synth_graph *g, const lr_region *r, int digits) {
  size_t n = 0;
  for (size_t i = 0; i < r->n; i++) {
    const synth_node *x = &g->node[r->node[i]];
    n +=
        rule_operator_of(x->op)->arithmetic == RULE_ARITHMETIC_ADD && lr_digits(x->dtype) <= digits;
  }
  return n;
}

static size_t count_roundings(const synth_graph *g, const lr_region *r, int digits) {
  size_t n = 0;
  for (size_t i = 0; i < r->n; i++) {
    const synth_node *x = &g->node[r->node[i]];
    n += lr_digits(x->dtype) && lr_digits(x->dtype) <= digits && (lr_rounds(x) || narrows(g, x));
  }
  return n;
}

/* The narrowest format in which the region makes numbers; that of its end where it makes none. */
static rule_dtype narrowest(const synth_graph *g, const lr_region *r, rule_dtype end) {
  rule_dtype least = end;
  for (size_t i = 0; i < r->n; i++) {
    const synth_node *x = &g->node[r->node[i]];
    const int d = lr_digits(x->dtype);
    if (d && d < lr_digits(least) && (lr_rounds(x) || narrows(g, x))) least = x->dtype;
  }
  return least;
}

static const char *format_name(int digits) {
  return digits == 53   ? "float64"
         : digits == 24 ? "float32"
         : digits == 11 ? "float16"
                        : "bfloat16";
}

/* The other side's wider format for the region's nodes of format `narrow`: the digits
 * of that, 0 where it has not. */
static int wider(const lr_cuts *c, int side, uint32_t node, rule_dtype narrow, const int *wide) {
  const uint32_t class = c->result->class_of[side][node];
  if (c->graph[side]->node[node].dtype != narrow || class == UINT32_MAX) return 0;
  return wide[class] > lr_digits(narrow) ? wide[class] : 0;
}

typedef struct named {
  char text[200];
  size_t n;
  uint32_t first;
  int wide; /* digits on the other side */
} named;

/* The region's operators that compute in the narrow format a tensor that the other side has in a
 * wider one, each name once. */
static void narrow_names(const lr_cuts *c, int side, const lr_region *r, rule_dtype narrow,
                         const int *wide, named *out) {
  *out = (named){0};
  for (size_t i = 0; i < r->n; i++) {
    const synth_node *x = &c->graph[side]->node[r->node[i]];
    const int d = lr_rounds(x) ? wider(c, side, r->node[i], narrow, wide) : 0;
    char name[64];
    if (!d) continue;
    if (out->n++ == 0) out->first = r->node[i], out->wide = d;
    short_name(x->op, name, sizeof name);
    const size_t used = strlen(out->text), room = sizeof out->text - used;
    if (!strstr(out->text, name) && strlen(name) + 3 < room)
      snprintf(out->text + used, room, "%s%s", used ? ", " : "", name);
  }
}

/* A cast to the narrow format whose result the region goes on computing with; -1: none. */
static int64_t early_cast(const lr_cuts *c, int side, const lr_region *r, rule_dtype narrow,
                          const int *wide) {
  for (size_t i = 0; i + 1 < r->n; i++)
    if (narrows(c->graph[side], &c->graph[side]->node[r->node[i]]) &&
        wider(c, side, r->node[i], narrow, wide))
      return r->node[i];
  return -1;
}

lr_words lr_loss_words(const lr_cuts *c, const lr_cut *cut, int side, const lr_region region[2],
                       const int *const digits[2], iso_arena *a) {
  static const char *const name[] = {"left", "right"};
  const synth_graph *g = c->graph[side];
  const synth_node *end = &g->node[cut->node[side]];
  const char *own = name[side], *other = name[!side];
  const lr_region *here = &region[side], *there = &region[!side];
  const rule_dtype narrow = narrowest(g, here, end->dtype);
  const char *format = rule_dtype_name(narrow);
  const int d = lr_digits(narrow);
  const size_t n = count_roundings(g, here, d), m = count_roundings(c->graph[!side], there, d);
  named names;
  char op[64];
  const uint32_t node = cut->node[side];
  const int64_t cast = early_cast(c, side, here, narrow, digits[!side]);
  short_name(end->op, op, sizeof op);
  narrow_names(c, side, here, narrow, digits[!side], &names);
  if (cast >= 0)
    return (lr_words){(uint32_t)cast,
                      iso_arena_printf(a, "the %s rounds to %s before %s", own, format, op),
                      iso_arena_printf(a, "the %s after it", other)};
  if (names.n)
    return (lr_words){names.first,
                      iso_arena_printf(a, "the %s computes %s in %s", own, names.text, format),
                      iso_arena_printf(a, "the %s in %s", other, format_name(names.wide))};
  if (count_adds(g, here, d) > count_adds(c->graph[!side], there, d))
    return (lr_words){node, iso_arena_printf(a, "the %s accumulates in %s", own, format), ""};
  if (n > m)
    return (lr_words){node, iso_arena_printf(a, "the %s rounds %zu results to %s", own, n, format),
                      iso_arena_printf(a, "the %s %zu", other, m)};
  return (lr_words){node, iso_arena_printf(a, "the %s's %s loses digits of %s", own, op, format),
                    ""};
}
