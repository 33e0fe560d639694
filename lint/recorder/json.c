/* A dump in JSON, as _dump_fr_trace_json writes it. */
#include <string.h>

#include "egraph/base/vec.h"
#include "lint/json.h"
#include "lint/recorder/recorder.h"

typedef struct reader {
  lint_json json;
  lint_dump *d;
} reader;

static iso_code text(reader *r, uint32_t *id) {
  const iso_code c = lint_json_string(&r->json);
  return c ? c : lint_dump_intern(r->d, r->json.str, r->json.n_str, id);
}

/* [[4, 2], [3]] is 11 elements. */
static iso_code sizes(reader *r, int64_t *numel) {
  bool more = false, inner = false;
  *numel = 0;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    int64_t n = 1, v;
    c = lint_json_enter(&r->json, '[');
    while (!c && !(c = lint_json_next(&r->json, ']', &inner)) && inner)
      if (!(c = lint_json_int(&r->json, &v)) && (v < 0 || __builtin_mul_overflow(n, v, &n)))
        c = lint_json_wrong(&r->json, "a size is out of range");
    if (!c && __builtin_add_overflow(*numel, n, numel))
      c = lint_json_wrong(&r->json, "sizes are out of range");
  }
  return c;
}

/* The first of a list of texts; with `many`, of its first element. */
static iso_code first_text(reader *r, uint32_t *id) {
  bool more = false;
  uint32_t other;
  iso_code c = lint_json_enter(&r->json, '[');
  for (size_t i = 0; !c && !(c = lint_json_next(&r->json, ']', &more)) && more; i++) {
    if (lint_json_peek(&r->json) != '"') c = lint_json_skip(&r->json);
    else c = text(r, i == 0 ? id : &other);
  }
  return c;
}

static iso_code state(reader *r, lint_state_of *out) {
  const iso_code c = lint_json_string(&r->json);
  if (c) return c;
  *out = strcmp(r->json.str, "completed") == 0 ? LINT_COMPLETED
         : strcmp(r->json.str, "started") == 0 ? LINT_STARTED
                                               : LINT_SCHEDULED;
  return ISO_OK;
}

/* The line of the program: the first frame that is not torch's own. */
static iso_code frames(reader *r, uint32_t *source) {
  bool more = false, inner = false;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    uint32_t file = 0;
    int64_t line = 0;
    c = lint_json_enter(&r->json, '{');
    while (!c && !(c = lint_json_next(&r->json, '}', &inner)) && inner) {
      if (strcmp(r->json.str, "filename") == 0) c = text(r, &file);
      else if (strcmp(r->json.str, "line") == 0) c = lint_json_int(&r->json, &line);
      else c = lint_json_skip(&r->json);
    }
    if (c || *source || !file || strstr(lint_text(r->d->t, file), "/torch/")) continue;
    char *at =
        iso_arena_printf(&r->d->t->arena, "%s:%lld", lint_text(r->d->t, file), (long long)line);
    if (!at) return lint_no_memory(r->json.err);
    c = lint_dump_intern(r->d, at, strlen(at), source);
  }
  return c;
}

static iso_code member(reader *r, lint_entry *e) {
  const char *k = r->json.str;
  if (strcmp(k, "profiling_name") == 0) return text(r, &e->word);
  if (strcmp(k, "process_group") == 0) return first_text(r, &e->group);
  if (strcmp(k, "input_dtypes") == 0) return first_text(r, &e->dtype);
  if (strcmp(k, "state") == 0) return state(r, &e->state);
  if (strcmp(k, "input_sizes") == 0) return sizes(r, &e->numel);
  if (strcmp(k, "output_sizes") == 0) return sizes(r, &e->out_numel);
  if (strcmp(k, "collective_seq_id") == 0) return lint_json_int(&r->json, &e->seq);
  if (strcmp(k, "record_id") == 0) return lint_json_int(&r->json, &e->record);
  if (strcmp(k, "frames") == 0) return frames(r, &e->source);
  return lint_json_skip(&r->json);
}

static iso_code entries(reader *r) {
  lint_dump *d = r->d;
  bool more = false, inner = false;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    lint_entry e = {.seq = -1, .record = -1, .numel = -1, .out_numel = -1};
    c = lint_json_enter(&r->json, '{');
    while (!c && !(c = lint_json_next(&r->json, '}', &inner)) && inner) c = member(r, &e);
    if (!c && (!e.word || e.seq < 0))
      c = lint_json_wrong(&r->json, "an entry without \"profiling_name\" or \"collective_seq_id\"");
    if (c) return c;
    if (!iso_grow(d->entry, d->cap_entries, d->n_entries + 1)) return lint_no_memory(d->err);
    d->entry[d->n_entries++] = e;
  }
  return c;
}

/* {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}} */
static iso_code groups(reader *r) {
  bool more = false, inner = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    uint32_t name, ranks = 0;
    if ((c = lint_dump_intern(r->d, r->json.str, r->json.n_str, &name))) return c;
    c = lint_json_enter(&r->json, '{');
    while (!c && !(c = lint_json_next(&r->json, '}', &inner)) && inner) {
      if (strcmp(r->json.str, "ranks") == 0 && lint_json_peek(&r->json) == '"') c = text(r, &ranks);
      else c = lint_json_skip(&r->json);
    }
    const char *n = lint_text(r->d->t, name), *m = lint_text(r->d->t, ranks);
    if (!c) c = lint_dump_group(r->d, n, strlen(n), m, strlen(m));
  }
  return c;
}

iso_code lint_dump_read_json(lint_dump *d) {
  reader r = {.d = d};
  bool more = false, has = false;
  iso_code c = lint_json_open(&r.json, d->path, d->err);
  if (!c) c = lint_json_enter(&r.json, '{');
  while (!c && !(c = lint_json_next(&r.json, '}', &more)) && more) {
    const bool is_entries = strcmp(r.json.str, "entries") == 0;
    if (is_entries && has) c = lint_json_wrong(&r.json, "\"entries\" is there twice");
    else if (is_entries) c = entries(&r);
    else if (strcmp(r.json.str, "pg_config") == 0) c = groups(&r);
    else c = lint_json_skip(&r.json);
    has |= is_entries;
  }
  if (!c) c = lint_json_end(&r.json);
  if (!c && !has) c = lint_json_wrong(&r.json, "a dump without \"entries\"");
  lint_json_close(&r.json);
  return c;
}
