/* What a capture's metadata say beside its graph: how its ranks are laid out, and what the program
 * does that is no output. */
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

/* What the program does that is no output of the capture, by name: "b is written to". */
static iso_code read_left_out(cap_graph *g, const json_t *metadata, iso_error *err) {
  const json_t *list[2] = {json_object_get(metadata, "left_out"),
                           json_object_get(metadata, "written_leaves")};
  const size_t n = json_array_size(list[0]) + json_array_size(list[1]);
  const char **line = iso_arena_alloc(&g->arena, (n + 1) * sizeof *line);
  if (!line) return cap_no_memory(err);
  for (int k = 0; k < 2; k++)
    for (size_t i = 0; i < json_array_size(list[k]); i++) {
      const char *s = json_string_value(json_array_get(list[k], i));
      if (!s) continue;
      if (!(line[g->n_left_out++] =
                iso_arena_printf(&g->arena, k ? "%.200s is written to" : "%.200s", s)))
        return cap_no_memory(err);
    }
  g->left_out = line;
  return ISO_OK;
}

static bool has_line(const cap_graph *g, const char *line) {
  for (size_t i = 0; i < g->n_left_out; i++)
    if (strcmp(g->left_out[i], line) == 0) return true;
  return false;
}

iso_code cap_left_out(const cap_graph *const g[2], iso_arena *a, const char *const **line,
                      size_t *n, iso_error *err) {
  const char **out = iso_arena_alloc(a, (g[0]->n_left_out + g[1]->n_left_out + 1) * sizeof *out);
  *n = 0;
  for (int side = 0; side < 2 && out; side++)
    for (size_t i = 0; i < g[side]->n_left_out; i++) {
      const char *s = g[side]->left_out[i];
      const bool no_tensor = strstr(s, "no tensor") != NULL;
      if (no_tensor && has_line(g[!side], s)) continue; /* the same number, or none */
      out[*n] = iso_arena_printf(a, "left out of the comparison: on the %s %s",
                                 side ? "right" : "left", s);
      if (!out[(*n)++]) return cap_no_memory(err);
    }
  *line = out;
  return out ? ISO_OK : cap_no_memory(err);
}

iso_code cap_read_metadata(cap_graph *g, const json_t *metadata, iso_error *err) {
  const char *name, *place;
  json_t *v;
  char *text = NULL;
  size_t n = 0;
  if (!print_mesh(&g->arena, json_object_get(metadata, "mesh"), &g->mesh))
    return cap_no_memory(err);
  const iso_code c = read_left_out(g, metadata, err);
  FILE *f = c ? NULL : open_memstream(&text, &n);
  if (!f) return c ? c : cap_no_memory(err);
  json_object_foreach(json_object_get(metadata, "placements"), name, v) {
    if (print_place(&g->arena, v, &place)) fprintf(f, "%s = %s\n", name, place);
  }
  if (fclose(f) == 0) g->placements = iso_arena_strdup(&g->arena, text);
  free(text);
  return g->placements && !g->arena.failed ? ISO_OK : cap_no_memory(err);
}
