/* Domains that a capture gives to its inputs, and its declarations of what numbers count. */
#include "capture/capture_int.h"
#include "rules/operators.h"

#include <math.h>
#include <string.h>

static const double most = 9007199254740992; /* whole numbers beyond 2^53 are not all doubles */

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* A JSON number, or {"float": "inf" | "-inf"}. */
static bool read_number(const json_t *v, double *out) {
  const char *s = json_string_value(json_object_get(v, "float"));
  if (s && strcmp(s, "inf") == 0) return *out = INFINITY, true;
  if (s && strcmp(s, "-inf") == 0) return *out = -INFINITY, true;
  if (!json_is_number(v)) return false;
  *out = json_number_value(v);
  return !json_is_integer(v) || fabs(*out) < most;
}

static iso_code read_range(const json_t *v, rule_domain *d, iso_error *err) {
  if (!json_is_array(v) || json_array_size(v) != 2 || !read_number(json_array_get(v, 0), &d->low) ||
      !read_number(json_array_get(v, 1), &d->high))
    return iso_fail(err, ISO_FORMAT, "domain: \"range\" is not of the form [lowest, highest]");
  return ISO_OK;
}

static iso_code read_exclude(iso_arena *a, const json_t *v, rule_domain *d, double **out,
                             iso_error *err) {
  const size_t n = json_array_size(v);
  if (!json_is_array(v))
    return iso_fail(err, ISO_FORMAT, "domain: \"exclude\" is not a list of numbers");
  if (!(*out = iso_arena_alloc(a, (n + 1) * sizeof **out))) return no_memory(err);
  for (size_t i = 0; i < n; i++)
    if (!read_number(json_array_get(v, i), &(*out)[i]))
      return iso_fail(err, ISO_FORMAT, "domain: \"exclude\" is not a list of numbers");
  d->exclude = *out;
  d->n_exclude = n;
  return ISO_OK;
}

static iso_code read_flag(const char *key, const json_t *v, bool *out, iso_error *err) {
  if (!json_is_boolean(v))
    return iso_fail(err, ISO_FORMAT, "domain: \"%s\" is not true or false", key);
  *out = json_is_true(v);
  return ISO_OK;
}

bool cap_mask_form(const char *word, unsigned *out) {
  if (strcmp(word, "any") == 0) *out = RULE_MASK;
  else if (strcmp(word, "left") == 0) *out = RULE_MASK | RULE_MASK_LEFT;
  else if (strcmp(word, "right") == 0) *out = RULE_MASK | RULE_MASK_RIGHT;
  else return false;
  return true;
}

static iso_code read_mask(const json_t *v, unsigned *out, iso_error *err) {
  const char *s = json_string_value(v);
  if (json_is_boolean(v)) *out = json_is_true(v) ? RULE_MASK : 0;
  else if (!s || !cap_mask_form(s, out))
    return iso_fail(err, ISO_FORMAT, "domain: \"mask\" is none of \"any\", \"left\" and \"right\"");
  return ISO_OK;
}

/* A key that is not known here would be a restriction that nobody keeps: it is no harmless one. */
static iso_code read_keys(iso_arena *a, const json_t *v, rule_domain *d, double **exclude,
                          iso_error *err) {
  const char *key;
  json_t *x;
  json_object_foreach((json_t *)(uintptr_t)v, key, x) {
    iso_code c;
    if (strcmp(key, "range") == 0) c = read_range(x, d, err);
    else if (strcmp(key, "exclude") == 0) c = read_exclude(a, x, d, exclude, err);
    else if (strcmp(key, "distinct") == 0) c = read_flag(key, x, &d->distinct, err);
    else if (strcmp(key, "sorted") == 0) c = read_flag(key, x, &d->sorted, err);
    else if (strcmp(key, "mask") == 0) c = read_mask(x, &d->mask, err);
    else
      c = iso_fail(err, ISO_FORMAT,
                   "domain: \"%.40s\" is none of range, exclude, distinct, sorted and mask", key);
    if (c) return c;
  }
  return ISO_OK;
}

iso_code cap_domain_new(iso_arena *a, const rule_domain *said, double *exclude,
                        const cap_node *node, const rule_domain **out, iso_error *err) {
  const cap_output *o = &node->output[0];
  char why[128];
  if (rule_dtype_is_complex(o->dtype))
    return iso_fail(err, ISO_FORMAT, "domain: a complex input has none");
  rule_domain *d = iso_arena_alloc(a, sizeof *d);
  if (!d) return no_memory(err);
  *d = *said;
  if (!rule_domain_settle(d, exclude, o->dtype, &o->shape, why, sizeof why))
    return iso_fail(err, ISO_FORMAT, "domain: nothing is inside: %s", why);
  *out = d;
  return ISO_OK;
}

iso_code cap_read_domain(iso_arena *a, const json_t *leaf, const char *path, cap_node *node,
                         iso_error *err) {
  const json_t *v = json_object_get(leaf, "domain");
  double *exclude = NULL;
  if (v == NULL || json_is_null(v)) return ISO_OK;
  if (node->kind != CAP_INPUT) return iso_fail(err, ISO_FORMAT, "domain: only inputs have one");
  if (!json_is_object(v)) return iso_fail(err, ISO_FORMAT, "\"domain\" is not an object");
  rule_domain d = rule_domain_all(path);
  const iso_code c = read_keys(a, v, &d, &exclude, err);
  return c ? c : cap_domain_new(a, &d, exclude, node, &node->domain, err);
}

iso_code cap_pass_domain(cap_graph *g, uint32_t node, const rule_domain *d, iso_error *err) {
  const cap_node *n = &g->node[node];
  if (n->kind != CAP_INPUT || rule_domain_is_open(d)) return ISO_OK;
  const rule_domain was = n->domain ? *n->domain : rule_domain_all(d->who),
                    alone = {.low = d->low,
                             .high = d->high,
                             .exclude = d->exclude,
                             .n_exclude = d->n_exclude,
                             .who = d->who};
  bool empty = false;
  const rule_domain *both =
      rule_domain_meet(&g->arena, &was, &alone, n->output[0].dtype, &n->output[0].shape, &empty);
  if (!both) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (!empty) cap_set_domain(g, node, both);
  return ISO_OK;
}

/* The input whose numbers, all of them, are those of `t`; NULL: none. */
static const cap_node *whole_input(const cap_graph *g, const rule_term *t) {
  while (t->kind == RULE_VAR) {
    const cap_node *n = &g->node[t->u.i];
    if (n->kind == CAP_INPUT) return n;
    const rule_operator *o = n->call && n->call->n ? rule_operator_of(n->op) : NULL;
    if (!o || !(o->identity || o->rearranges || o->broadcasts || o->cast)) return NULL;
    t = n->call->child[0];
  }
  return NULL;
}

iso_code cap_note_units(cap_graph *g, iso_error *err) {
  rule_domain unit = rule_domain_all(g->path);
  iso_code c = ISO_OK;
  unit.low = 0, unit.high = 1;
  for (size_t i = 0; i < g->n_nodes; i++) {
    const rule_term *call = g->node[i].call;
    const uint32_t args = call ? rule_operator_of(g->node[i].op)->unit : 0;
    for (uint32_t k = 0; call && k < call->n && k < 32 && !c; k++) {
      const cap_node *x = args >> k & 1 ? whole_input(g, call->child[k]) : NULL;
      if (x) c = cap_pass_domain(g, (uint32_t)(x - g->node), &unit, err);
    }
  }
  return c;
}

iso_code cap_check_domain(const cap_graph *g, uint32_t node, iso_error *err) {
  const cap_node *n = &g->node[node];
  const size_t n_ranks = cap_role_ranks(g) ? cap_role_ranks(g) : 1;
  char why[160], says[256];
  for (size_t k = 0; n->domain && k < g->n_sets * n_ranks; k++) {
    const size_t set = k / n_ranks;
    const rule_tensor *t = cap_role_value(g, node, (uint32_t)(k % n_ranks), set);
    if (!rule_domain_admits(n->domain, t, why, sizeof why))
      return iso_fail(err, ISO_FORMAT,
                      "%s: node \"%.120s\": %s of input set %zu, and its domain (%s) says: %s",
                      g->path, n->id, why, set, n->domain->who,
                      rule_domain_print(n->domain, says, sizeof says));
  }
  return ISO_OK;
}

void cap_read_counts(const json_t *v, cap_node *node) {
  const char *s = json_string_value(json_object_get(v, "counts"));
  node->counts_ranks = s && strcmp(s, "ranks") == 0;
  node->counts_elements = s && strcmp(s, "elements") == 0;
  node->counts_nothing = s && strcmp(s, "nothing") == 0;
}
