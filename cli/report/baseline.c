/* A baseline: divergences by the nodes at which they are, each with a reason. */
#include "cli/report/baseline.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

typedef struct entry {
  const char *left, *right, *hint,
      *reason; /* left, right: NULL where that side has no node; hint: NULL for any */
} entry;

/* A string, or null or nothing. */
static bool optional_text(const json_t *o, const char *key, const char **out) {
  const json_t *j = json_object_get(o, key);
  *out = json_string_value(j);
  return !j || json_is_null(j) || json_is_string(j);
}

static bool read_entry(const json_t *j, entry *e) {
  size_t known = 0;
  static const char *const keys[] = {"left", "right", "hint", "reason"};
  for (size_t i = 0; i < 4; i++) known += json_object_get(j, keys[i]) != NULL;
  return json_is_object(j) && json_object_size(j) == known && optional_text(j, "left", &e->left) &&
         optional_text(j, "right", &e->right) && optional_text(j, "hint", &e->hint) &&
         optional_text(j, "reason", &e->reason) && e->reason && e->reason[0] &&
         (e->left || e->right);
}

static bool same(const char *a, const char *b) { return a && b ? strcmp(a, b) == 0 : a == b; }

static bool matches(const entry *e, const synth_divergence *d, const cap_graph *left,
                    const cap_graph *right) {
  return same(e->left, d->left < 0 ? NULL : left->node[d->left].id) &&
         same(e->right, d->right < 0 ? NULL : right->node[d->right].id) &&
         (!e->hint || same(e->hint, d->hint));
}

static iso_code match_all(const char *path, const json_t *list, const synth_result *r,
                          const cap_graph *left, const cap_graph *right, baseline *out,
                          iso_error *err) {
  const size_t n = json_array_size(list);
  const char **stale = iso_arena_alloc(&out->arena, (n + 1) * sizeof *stale);
  out->reason = iso_arena_alloc(&out->arena, (r->n_divergences + 1) * sizeof *out->reason);
  if (!stale || !out->reason) return iso_fail(err, ISO_NOMEM, "out of memory");
  out->stale = stale;
  for (size_t i = 0; i < n; i++) {
    entry e;
    bool used = false;
    if (!read_entry(json_array_get(list, i), &e))
      return iso_fail(err, ISO_FORMAT,
                      "%s: entry %zu: it takes left or right, a reason, and perhaps a hint", path,
                      i);
    for (size_t k = 0; k < r->n_divergences; k++) {
      if (!matches(&e, &r->divergence[k], left, right)) continue;
      used = true;
      if (!out->reason[k] && !(out->reason[k] = iso_arena_strdup(&out->arena, e.reason)))
        return iso_fail(err, ISO_NOMEM, "out of memory");
    }
    if (!used && !(stale[out->n_stale++] = iso_arena_printf(
                       &out->arena, "%s / %s", e.left ? e.left : "-", e.right ? e.right : "-")))
      return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  out->n = r->n_divergences;
  for (size_t k = 0; k < out->n; k++) out->n_new += !out->reason[k];
  return ISO_OK;
}

iso_code baseline_read(const char *path, const char *key, json_t **doc, json_t **list,
                       iso_error *err) {
  json_error_t why;
  errno = 0;
  FILE *f = fopen(path, "rb");
  if (!f) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  *doc = json_loadf(f, JSON_REJECT_DUPLICATES, &why);
  fclose(f);
  if (!*doc) return iso_fail(err, ISO_FORMAT, "%s:%d: %s", path, why.line, why.text);
  const char *format = NULL;
  int version = 0;
  iso_code c = ISO_OK;
  if (json_unpack_ex(*doc, &why, JSON_STRICT, "{s:s, s:i, s:o}", "format", &format, "version",
                     &version, key, list))
    c = iso_fail(err, ISO_FORMAT, "%s: %s", path, why.text);
  else if (strcmp(format, "isomer-baseline") != 0 || version != 1 || !json_is_array(*list))
    c = iso_fail(err, ISO_FORMAT, "%s: it is no baseline of version 1", path);
  if (c) json_decref(*doc);
  return c;
}

iso_code baseline_load(const char *path, const synth_result *r, const cap_graph *left,
                       const cap_graph *right, baseline *out, iso_error *err) {
  json_t *doc = NULL, *list = NULL;
  *out = (baseline){0};
  iso_code c = baseline_read(path, "divergences", &doc, &list, err);
  if (c) return c;
  c = match_all(path, list, r, left, right, out, err);
  json_decref(doc);
  return c;
}

void baseline_free(baseline *b) { iso_arena_fini(&b->arena); }

bool baseline_accepts(const baseline *b, const synth_result *r) {
  return r->verdict == SYNTH_DIFFERENT && b->n > 0 && b->n_new == 0;
}
