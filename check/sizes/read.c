/* The scope in a certificate's JSON, read as strictly as the rest. */
#include <string.h>

#include "check/read_int.h"
#include "check/sizes/sizes.h"
#include "egraph/base/vec.h"

static iso_code malformed(chk_state *k, const char *what, size_t i) {
  return chk_settle(k, CHK_MALFORMED, "%s %zu of its sizes is malformed", what, i);
}

static iso_code read_symbol(chk_state *k, const json_t *j, size_t i) {
  const json_t *name = json_object_get(j, "name"), *min = json_object_get(j, "min"),
               *max = json_object_get(j, "max");
  cap_symbol *s = &k->cert.sizes->symbol[i];
  if (!json_is_string(name) || !json_is_integer(min) || (max && !json_is_integer(max)) ||
      json_object_size(j) != (max ? 3 : 2))
    return malformed(k, "symbol", i);
  *s = (cap_symbol){.name = iso_arena_strdup(k->arena, json_string_value(name)),
                    .min = json_integer_value(min),
                    .max = max ? json_integer_value(max) : INT64_MAX};
  return s->name ? ISO_OK : chk_nomem(k);
}

static iso_code read_call(chk_reader *r, const json_t *j, size_t i) {
  chk_state *k = r->k;
  chk_sizes_call *x = &k->cert.sizes->call[i];
  const json_t *args = json_object_get(j, "args");
  const rule_term **child;
  if (!chk_read_number(k, json_object_get(j, "term"), &x->term) || !json_is_array(args) ||
      json_object_size(j) != 2 || !k->term[x->term].call)
    return malformed(k, "call", i);
  const iso_code c = chk_read_list(r, args, 0, &child);
  if (c) return c;
  if (!child) return malformed(k, "call", i);
  x->call = rule_op(k->arena, k->term[x->term].call->u.s, child, json_array_size(args));
  return x->call ? ISO_OK : chk_nomem(k);
}

static iso_code read_names(chk_reader *r, const json_t *given, chk_sizes_step *x, bool *fine) {
  chk_state *k = r->k;
  const char *name;
  json_t *v;
  x->first_name = (uint32_t)k->cert.n_names;
  json_object_foreach((json_t *)(uintptr_t)given, name, v) {
    const rule_term *value;
    const iso_code c = chk_read_argument(r, v, 0, &value);
    if (c || !value) return *fine = false, c;
    if (!iso_grow(k->cert.name, k->cert.cap_names, k->cert.n_names + 1)) return chk_nomem(k);
    chk_name *n = &k->cert.name[k->cert.n_names++];
    *n = (chk_name){iso_arena_strdup(k->arena, name), value};
    if (!n->name) return chk_nomem(k);
    x->n_names++;
  }
  return ISO_OK;
}

static bool step_number(const chk_state *k, const json_t *j, uint32_t *out) {
  if (!json_is_integer(j) || json_integer_value(j) < 0 ||
      (uint64_t)json_integer_value(j) >= k->cert.n_steps)
    return false;
  *out = (uint32_t)json_integer_value(j);
  return true;
}

/* A step's number; or an object with it, and its names' sizes or how it is proved. */
static iso_code read_step(chk_reader *r, const json_t *j, size_t i) {
  chk_state *k = r->k;
  chk_sizes_step *x = &k->cert.sizes->step[i];
  const json_t *names = json_object_get(j, "names"), *over = json_object_get(j, "proved");
  if (step_number(k, j, &x->step)) return ISO_OK;
  bool fine = step_number(k, json_object_get(j, "step"), &x->step) && json_object_size(j) == 2;
  if (fine && json_is_string(over)) {
    const char *how = json_string_value(over);
    x->how = strcmp(how, "shared") == 0  ? CHK_SIZES_SHARED
             : strcmp(how, "table") == 0 ? CHK_SIZES_TABLE
                                         : CHK_SIZES_PROVED;
    fine = x->how != CHK_SIZES_PROVED || strcmp(how, "whole") == 0;
  } else fine = fine && json_is_object(names) && json_object_size(names) > 0;
  const iso_code c = fine && names ? read_names(r, names, x, &fine) : ISO_OK;
  return c || fine ? c : malformed(k, "step", i);
}

iso_code chk_read_sizes(chk_reader *r, const json_t *j) {
  chk_state *k = r->k;
  if (!j) return ISO_OK;
  const json_t *symbols = json_object_get(j, "symbols"), *calls = json_object_get(j, "calls"),
               *steps = json_object_get(j, "steps");
  if (!json_is_array(symbols) || !json_is_array(calls) || !json_is_array(steps) ||
      json_object_size(j) != 3)
    return chk_settle(k, CHK_MALFORMED, "its sizes are malformed");
  chk_sizes *x = k->cert.sizes = iso_arena_alloc(k->arena, sizeof *x);
  if (!x) return chk_nomem(k);
  *x = (chk_sizes){.n_symbols = json_array_size(symbols),
                   .n_calls = json_array_size(calls),
                   .n_steps = json_array_size(steps)};
  x->symbol = iso_arena_alloc(k->arena, (x->n_symbols + 1) * sizeof *x->symbol);
  x->call = iso_arena_alloc(k->arena, (x->n_calls + 1) * sizeof *x->call);
  x->step = iso_arena_alloc(k->arena, (x->n_steps + 1) * sizeof *x->step);
  if (!x->symbol || !x->call || !x->step) return chk_nomem(k);
  iso_code c = ISO_OK;
  r->sizes = true;
  for (size_t i = 0; i < x->n_symbols && !c && !chk_settled(k); i++)
    c = read_symbol(k, json_array_get(symbols, i), i);
  for (size_t i = 0; i < x->n_calls && !c && !chk_settled(k); i++)
    c = read_call(r, json_array_get(calls, i), i);
  for (size_t i = 0; i < x->n_steps && !c && !chk_settled(k); i++)
    c = read_step(r, json_array_get(steps, i), i);
  r->sizes = false;
  return c;
}
