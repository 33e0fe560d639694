/* The document of events (docs/events.md): groups, mesh, programs, and who runs which. A name may
 * be used before its definition, so names are resolved after the whole document is read. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/event_read.h"

enum { BY_NAME = 1u << 31 }; /* in run_by, while the document is read */

enum { MAX_WORLD = 1 << 20 };

static iso_code no_memory(lint_reader *r) { return lint_no_memory(r->json.err); }

static iso_code count(lint_reader *r, const char *what, int64_t max, int64_t *v) {
  const iso_code c = lint_json_int(&r->json, v);
  if (c || (*v >= 1 && *v <= max)) return c;
  return lint_json_wrong(&r->json, "%s is %" PRId64 ", out of range", what, *v);
}

static iso_code read_backend(lint_reader *r) {
  static const char *const word[] = {"", "nccl", "gloo", "mpi"};
  const iso_code c = lint_json_string(&r->json);
  if (c) return c;
  for (int i = 1; i < 4; i++) {
    if (strcmp(r->json.str, word[i]) != 0) continue;
    r->t->backend = (lint_backend)i;
    return ISO_OK;
  }
  return lint_json_wrong(&r->json, "no backend \"%s\": nccl, gloo or mpi", r->json.str);
}

static iso_code read_groups(lint_reader *r) {
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    uint32_t name, ref;
    const int64_t *rank;
    size_t n;
    if (r->json.n_str == 0) return lint_json_wrong(&r->json, "a group's name is empty");
    if ((c = lint_token(r, &name)) || (c = lint_refer(r, name, &ref))) return c;
    if ((c = lint_read_ints(r, &rank, &n))) return c;
    lint_group_ref *g = &r->t->ref[ref];
    if (g->defined)
      return lint_json_wrong(&r->json, "group \"%s\" is there twice", lint_text(r->t, name));
    if (n == 0) return lint_json_wrong(&r->json, "group \"%s\" is empty", lint_text(r->t, name));
    *g = (lint_group_ref){.name = name, .defined = true, .rank = rank, .n_ranks = n};
  }
  return c;
}

static iso_code read_mesh(lint_reader *r) {
  lint_trace *t = r->t;
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    if (t->n_axes == LINT_MAX_AXES) return lint_json_wrong(&r->json, "more than 8 axes");
    lint_axis *a = &t->axis[t->n_axes++];
    if ((c = lint_token(r, &a->name)) || (c = count(r, "an axis", MAX_WORLD, &a->size))) return c;
    for (size_t i = 0; i + 1 < t->n_axes; i++)
      if (t->axis[i].name == a->name)
        return lint_json_wrong(&r->json, "axis \"%s\" is there twice", lint_text(t, a->name));
  }
  return c;
}

static iso_code read_pipeline(lint_reader *r) {
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    if (strcmp(r->json.str, "stages") == 0) c = count(r, "stages", MAX_WORLD, &r->t->stages);
    else if (strcmp(r->json.str, "microbatches") == 0)
      c = count(r, "microbatches", INT32_MAX, &r->t->microbatches);
    else c = lint_json_wrong(&r->json, "a pipeline has no key \"%s\"", r->json.str);
  }
  return c;
}

/* A list of events: a new program. */
static iso_code read_program(lint_reader *r, uint32_t name, uint32_t *out) {
  lint_trace *t = r->t;
  if (t->n_programs >= BY_NAME || !iso_grow(t->program, t->cap_programs, t->n_programs + 1))
    return no_memory(r);
  *out = (uint32_t)t->n_programs;
  lint_program *p = &t->program[t->n_programs++];
  *p = (lint_program){.name = name};
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '[');
  for (uint32_t i = 0; !c && !(c = lint_json_next(&r->json, ']', &more)) && more; i++)
    c = i == INT32_MAX ? lint_json_wrong(&r->json, "too many events") : lint_read_event(r, p, i);
  return c;
}

static iso_code read_programs(lint_reader *r) {
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    uint32_t name, at;
    if (r->json.n_str == 0) return lint_json_wrong(&r->json, "a program's name is empty");
    if ((c = lint_token(r, &name))) return c;
    for (size_t i = 0; i < r->t->n_programs; i++)
      if (r->t->program[i].name == name)
        return lint_json_wrong(&r->json, "program \"%s\" is there twice", lint_text(r->t, name));
    c = read_program(r, name, &at);
  }
  return c;
}

/* Each rank: a list of events, or the name of a program. */
static iso_code read_ranks(lint_reader *r) {
  lint_trace *t = r->t;
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    uint32_t at;
    if (t->n_ranks == MAX_WORLD) return lint_json_wrong(&r->json, "too many ranks");
    if (lint_json_peek(&r->json) == '"') {
      if ((c = lint_name(r, &at))) return c;
      at |= BY_NAME;
    } else if ((c = read_program(r, 0, &at))) {
      return c;
    }
    if (!iso_grow(t->run_by, t->cap_ranks, t->n_ranks + 1)) return no_memory(r);
    t->run_by[t->n_ranks++] = at;
  }
  return c;
}

static const char *const keys[] = {"format", "version",  "backend",  "world", "groups",
                                   "mesh",   "pipeline", "programs", "ranks"};
enum { N_KEYS = sizeof keys / sizeof *keys };

static iso_code member(lint_reader *r, int k, bool *is_ours) {
  iso_code c;
  int64_t v;
  switch (k) {
  case 0:
    if ((c = lint_json_string(&r->json))) return c;
    *is_ours = strcmp(r->json.str, "isomer-events") == 0;
    if (*is_ours) return ISO_OK;
    return lint_json_wrong(&r->json, "the format is not \"isomer-events\"");
  case 1:
    if ((c = lint_json_int(&r->json, &v))) return c;
    return v == 1 ? ISO_OK : lint_json_wrong(&r->json, "only version 1 can be read");
  case 2: return read_backend(r);
  case 3: return count(r, "world", MAX_WORLD, &r->t->world);
  case 4: return read_groups(r);
  case 5: return read_mesh(r);
  case 6: return read_pipeline(r);
  case 7: return read_programs(r);
  default: return read_ranks(r);
  }
}

static iso_code document(lint_reader *r) {
  unsigned seen = 0;
  bool more = false, is_ours = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    int k = 0;
    while (k < N_KEYS && strcmp(keys[k], r->json.str) != 0) k++;
    if (k == N_KEYS) return lint_json_wrong(&r->json, "events have no key \"%s\"", r->json.str);
    if (seen & 1u << k) return lint_json_wrong(&r->json, "\"%s\" is there twice", keys[k]);
    seen |= 1u << k;
    c = member(r, k, &is_ours);
  }
  if (!c) c = lint_json_end(&r->json);
  if (c) return c;
  if (!is_ours) return lint_json_wrong(&r->json, "\"format\" is missing");
  if (!(seen & 2)) return lint_json_wrong(&r->json, "\"version\" is missing");
  if (!(seen & 1u << 8)) return lint_json_wrong(&r->json, "\"ranks\" are missing");
  return ISO_OK;
}

/* ---- names, once everything is there ---- */

static int find_axis(const lint_trace *t, uint32_t name) {
  for (size_t i = 0; i < t->n_axes; i++)
    if (t->axis[i].name == name) return (int)i;
  return -1;
}

/* "dp+tp": axes of the mesh. Returns: 0 where one of them is none. */
static uint32_t axes_named(const lint_trace *t, const char *s) {
  uint32_t bits = 0;
  for (const char *end; *s; s = *end ? end + 1 : end) {
    end = strchrnul(s, '+');
    size_t i = 0;
    for (; i < t->n_axes; i++) {
      const char *a = lint_text(t, t->axis[i].name);
      if (strlen(a) == (size_t)(end - s) && memcmp(a, s, (size_t)(end - s)) == 0) break;
    }
    if (i == t->n_axes) return 0;
    bits |= 1u << i;
  }
  return bits;
}

static iso_code resolve_groups(lint_reader *r) {
  lint_trace *t = r->t;
  iso_error *err = r->json.err;
  for (size_t i = 0; i < t->n_refs; i++) {
    lint_group_ref *g = &t->ref[i];
    const char *name = lint_text(t, g->name);
    if (!g->defined && !(g->axes = axes_named(t, name)))
      return iso_fail(err, ISO_FORMAT, "%s: there is no group \"%s\"", t->path, name);
    for (size_t k = 0; k < g->n_ranks; k++)
      if (g->rank[k] < 0 || g->rank[k] >= t->world)
        return iso_fail(err, ISO_FORMAT, "%s: group \"%s\" has a rank %" PRId64 " of %" PRId64,
                        t->path, name, g->rank[k], t->world);
  }
  return ISO_OK;
}

static iso_code resolve_offsets(lint_reader *r) {
  lint_trace *t = r->t;
  if (r->n_raw && !iso_grow(t->offset, t->cap_offsets, r->n_raw)) return no_memory(r);
  for (size_t i = 0; i < r->n_raw; i++)
    for (size_t k = 0; k < r->raw[i].n; k++) {
      const int a = find_axis(t, r->raw[i].axis[k]);
      if (a < 0)
        return iso_fail(r->json.err, ISO_FORMAT, "%s: a peer names axis \"%s\", of no mesh",
                        t->path, lint_text(t, r->raw[i].axis[k]));
      t->offset[i].by[a] = r->raw[i].by[k];
    }
  t->n_offsets = r->n_raw;
  return ISO_OK;
}

static iso_code resolve_programs(lint_reader *r) {
  lint_trace *t = r->t;
  for (size_t i = 0; i < t->n_ranks; i++) {
    if (!(t->run_by[i] & BY_NAME)) continue;
    const uint32_t name = t->run_by[i] & ~(uint32_t)BY_NAME;
    size_t p = 0;
    while (p < t->n_programs && t->program[p].name != name) p++;
    if (p == t->n_programs)
      return iso_fail(r->json.err, ISO_FORMAT, "%s: rank %zu: there is no program \"%s\"", t->path,
                      i, lint_text(t, name));
    t->run_by[i] = (uint32_t)p;
  }
  return ISO_OK;
}

static iso_code resolve(lint_reader *r) {
  lint_trace *t = r->t;
  if (t->world < 0) t->world = (int64_t)t->n_ranks;
  if ((size_t)t->world != t->n_ranks)
    return iso_fail(r->json.err, ISO_FORMAT, "%s: the world has %" PRId64 " ranks, events of %zu",
                    t->path, t->world, t->n_ranks);
  if (t->n_ranks == 0) return iso_fail(r->json.err, ISO_FORMAT, "%s: no ranks", t->path);
  int64_t product = 1;
  for (size_t i = 0; i < t->n_axes && product <= MAX_WORLD; i++) product *= t->axis[i].size;
  if (t->n_axes && product != t->world)
    return iso_fail(r->json.err, ISO_FORMAT,
                    "%s: the mesh has not as many places as there are ranks", t->path);
  iso_code c = resolve_groups(r);
  if (!c) c = resolve_offsets(r);
  return c ? c : resolve_programs(r);
}

iso_code lint_read_events(lint_trace *t, const char *path, iso_error *err) {
  lint_reader r = {.t = t};
  t->form = LINT_EVENTS;
  lint_keys_init(&r);
  iso_code c = lint_json_open(&r.json, path, err);
  if (!c) c = document(&r);
  if (!c) c = resolve(&r);
  lint_json_close(&r.json);
  free(r.raw);
  free(r.ref_of);
  free(r.pending);
  return c;
}
