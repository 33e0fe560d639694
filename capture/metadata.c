/* A capture's metadata beside its graph: how its ranks are laid out, and the effects of the program
 * that are no outputs. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"

static bool print_mesh(iso_arena *a, json_t *mesh, const char **out) {
  const char *name;
  json_t *v;
  *out = "";
  if (!mesh || json_is_null(mesh)) return true;
  if (!json_is_object(mesh)) return (*out = "?") != NULL;
  json_object_foreach(mesh, name, v) if (*out) *out = iso_arena_printf(
      a, "%s%s%s=%lld", *out, **out ? "," : "", name, (long long)json_integer_value(v));
  return *out != NULL;
}

/* "S(0)", or a list of these, one for each axis. */
static bool print_place(iso_arena *a, const json_t *v, const char **out) {
  *out = json_is_string(v) ? iso_arena_strdup(a, json_string_value(v)) : "?";
  if (!json_is_array(v)) return *out != NULL;
  *out = "";
  for (size_t i = 0; i < json_array_size(v) && *out; i++) {
    const char *s = json_string_value(json_array_get(v, i));
    *out = iso_arena_printf(a, "%s%s%s", *out, i ? ", " : "", s ? s : "?");
  }
  return *out != NULL;
}

/* As text that is the same for the same value: 1 and 1.0 are one number. NULL: no memory. */
static const char *print_value(iso_arena *a, const json_t *v) {
  const char *real = json_string_value(json_object_get(v, "float"));
  if (!real) real = json_string_value(json_object_get(v, "as_float"));
  if (json_is_integer(v)) return iso_arena_printf(a, "%lld", (long long)json_integer_value(v));
  if (json_is_real(v)) return iso_arena_printf(a, "%.17g", json_real_value(v));
  if (real) return iso_arena_printf(a, "%g", strtod(real, NULL)); /* NaN or an infinity */
  char *text = json_dumps(v, JSON_ENCODE_ANY | JSON_COMPACT | JSON_SORT_KEYS);
  const char *out = text ? iso_arena_strdup(a, text) : NULL;
  free(text);
  return out;
}

/* Values that JSON has no word for are written {"float": "nan"}, {"dtype": "float32"}, and sizes
 * {"size": "2*T"}: of one text they are one value. {"object": TYPE} says no more than that, and of
 * a list nothing is known. */
static bool known_by_text(json_t *v) {
  if (!json_is_object(v)) return !json_is_array(v);
  return json_object_size(v) == 1 && !json_object_get(v, "object") &&
         json_is_string(json_object_iter_value(json_object_iter(v)));
}

static iso_code read_no_tensors(cap_graph *g, json_t *of, iso_error *err) {
  const char *name;
  json_t *v;
  cap_no_tensor *list = iso_arena_alloc(&g->arena, (json_object_size(of) + 1) * sizeof *list);
  if (!list) return cap_no_memory(err);
  g->no_tensor = list;
  json_object_foreach(of, name, v) {
    cap_no_tensor *x = &list[g->n_no_tensors++];
    *x = (cap_no_tensor){iso_arena_strdup(&g->arena, name), print_value(&g->arena, v),
                         known_by_text(v)};
    if (!x->output || !x->value) return cap_no_memory(err);
  }
  return ISO_OK;
}

static bool is_among(const char *const *list, size_t n, const char *text) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i], text) == 0) return true;
  return false;
}

/* Of several ranks, or steps, that read the same number at one place, one is told. */
static iso_code read_reads(cap_graph *g, const json_t *guards, iso_error *err) {
  const size_t n = json_array_size(guards);
  const char **list = iso_arena_alloc(&g->arena, (n + 1) * sizeof *list);
  if (!list) return cap_no_memory(err);
  for (size_t i = 0; i < n; i++) {
    const json_t *v = json_array_get(guards, i), *of = json_object_get(v, "value");
    const char *op = json_string_value(json_object_get(v, "op")),
               *at = json_string_value(json_object_get(v, "source")),
               *value = of ? print_value(&g->arena, of) : "not said",
               *text = iso_arena_printf(&g->arena,
                                        "%.80s reads a number out of a tensor%s%.120s: it is "
                                        "%.60s",
                                        op ? op : "the program", at ? " at " : "", at ? at : "",
                                        value ? value : "");
    if (!value || !text) return cap_no_memory(err);
    if (!is_among(list, g->n_reads, text)) list[g->n_reads++] = text;
  }
  g->read = list;
  return ISO_OK;
}

static iso_code read_written(cap_graph *g, const json_t *names, iso_error *err) {
  const size_t n = json_array_size(names);
  const char **list = iso_arena_alloc(&g->arena, (n + 1) * sizeof *list);
  if (!list) return cap_no_memory(err);
  for (size_t i = 0; i < n; i++) {
    const char *s = json_string_value(json_array_get(names, i));
    if (s && !(list[g->n_written++] = iso_arena_strdup(&g->arena, s))) return cap_no_memory(err);
  }
  g->written = list;
  return ISO_OK;
}

static const cap_no_tensor *find_no_tensor(const cap_graph *g, const char *output) {
  for (size_t i = 0; i < g->n_no_tensors; i++)
    if (strcmp(g->no_tensor[i].output, output) == 0) return &g->no_tensor[i];
  return NULL;
}

/* The other side's of that name; else one of its value that no name of this side is. */
static const cap_no_tensor *counterpart(const cap_graph *own, const cap_graph *other,
                                        const cap_no_tensor *x) {
  const cap_no_tensor *y = find_no_tensor(other, x->output);
  for (size_t i = 0; i < other->n_no_tensors && !y; i++)
    if (strcmp(other->no_tensor[i].value, x->value) == 0 &&
        !find_no_tensor(own, other->no_tensor[i].output))
      y = &other->no_tensor[i];
  return y;
}

/* The lines of one side, behind the `n` that there are. */
static bool say_side(const cap_graph *const g[2], int side, iso_arena *a, const char **line,
                     size_t *n, const char **apart) {
  const char *where = side ? "right" : "left", *left_out = "left out of the comparison: on the";
  for (size_t i = 0; i < g[side]->n_said; i++)
    if (!(line[(*n)++] = iso_arena_printf(a, "on the %s %s", where, g[side]->said[i])))
      return false;
  for (size_t i = 0; i < g[side]->n_written; i++)
    if (!(line[(*n)++] = iso_arena_printf(a, "%s %s %.120s is written to", left_out, where,
                                          g[side]->written[i])))
      return false;
  for (size_t i = 0; i < g[side]->n_no_tensors; i++) {
    const cap_no_tensor *x = &g[side]->no_tensor[i], *y = counterpart(g[side], g[!side], x);
    const bool alike = y && strcmp(x->value, y->value) == 0, same = alike && x->known;
    if (same || (!y && strcmp(x->value, "null") == 0)) continue; /* none is what is not there */
    if (!(line[(*n)++] = iso_arena_printf(a, "%s %s output %.60s is no tensor, but %.60s", left_out,
                                          where, x->output, x->value)))
      return false;
    if ((y && side) || (alike && *x->value != '[') || (!y && !x->known) || *apart) continue;
    const char *other = y ? y->value : "not there";
    *apart =
        iso_arena_printf(a,
                         "output %.60s is no tensor: on the left it is %.60s, and on the right "
                         "%.60s",
                         x->output, side ? other : x->value, side ? x->value : other);
    if (!*apart) return false;
  }
  return true;
}

iso_code cap_what_is_left_out(const cap_graph *const g[2], iso_arena *a, const char *const **line,
                              size_t *n, const char **apart, iso_error *err) {
  size_t most = 0;
  for (int side = 0; side < 2; side++)
    most += g[side]->n_said + g[side]->n_written + g[side]->n_no_tensors;
  const char **out = iso_arena_alloc(a, (most + 1) * sizeof *out);
  *n = 0, *apart = NULL, *line = out;
  for (int side = 0; side < 2; side++)
    if (!out || !say_side(g, side, a, out, n, apart)) return cap_no_memory(err);
  return ISO_OK;
}

iso_code cap_what_was_read(const cap_graph *const g[2], iso_arena *a, const char *const **line,
                           size_t *n, iso_error *err) {
  const char **out = iso_arena_alloc(a, (g[0]->n_reads + g[1]->n_reads + 1) * sizeof *out);
  *n = 0, *line = out;
  if (!out) return cap_no_memory(err);
  for (int side = 0; side < 2; side++)
    for (size_t i = 0; i < g[side]->n_reads; i++)
      if (!(out[(*n)++] =
                iso_arena_printf(a, "on the %s %s", side ? "right" : "left", g[side]->read[i])))
        return cap_no_memory(err);
  return ISO_OK;
}

iso_code cap_read_metadata(cap_graph *g, const json_t *metadata, iso_error *err) {
  const char *name, *place;
  json_t *v;
  char *text = NULL;
  size_t n = 0;
  if (!print_mesh(&g->arena, json_object_get(metadata, "mesh"), &g->mesh))
    return cap_no_memory(err);
  iso_code c = read_written(g, json_object_get(metadata, "written_leaves"), err);
  if (!c) c = read_no_tensors(g, json_object_get(metadata, "no_tensors"), err);
  if (!c) c = read_reads(g, json_object_get(metadata, "guards"), err);
  FILE *f = c ? NULL : open_memstream(&text, &n);
  if (!f) return c ? c : cap_no_memory(err);
  json_object_foreach(json_object_get(metadata, "placements"), name, v) {
    if (print_place(&g->arena, v, &place)) fprintf(f, "%s = %s\n", name, place);
  }
  if (fclose(f) == 0) g->placements = iso_arena_strdup(&g->arena, text);
  free(text);
  return g->placements && !g->arena.failed ? ISO_OK : cap_no_memory(err);
}
