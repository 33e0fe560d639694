/* The files that a capture's meaning is in, by content. */
#include <errno.h>
#include <jansson.h>
#include <nettle/base16.h>
#include <nettle/sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "egraph/base/vec.h"

typedef struct listing {
  iso_arena *a;
  const char *before; /* of names: which call's they are */
  chk_file *file;
  size_t n, cap;
  iso_error *err;
} listing;

static iso_code nomem(listing *l) { return iso_fail(l->err, ISO_NOMEM, "out of memory"); }

/* Returns: in `there` false where the file does not exist. */
static iso_code digest(const char *path, char out[CHK_DIGEST], bool *there, iso_error *err) {
  enum { CHUNK = 1 << 18 };
  unsigned char *buffer = malloc(CHUNK);
  if (!buffer) return iso_fail(err, ISO_NOMEM, "out of memory");
  iso_code c = ISO_OK;
  FILE *f = fopen(path, "rb");
  *there = f != NULL;
  if (!f && errno != ENOENT) c = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  if (f) {
    struct sha256_ctx s;
    uint8_t binary[SHA256_DIGEST_SIZE];
    size_t n;
    sha256_init(&s);
    while ((n = fread(buffer, 1, CHUNK, f)) > 0) sha256_update(&s, n, buffer);
    if (ferror(f)) c = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
    sha256_digest(&s, sizeof binary, binary);
    base16_encode_update(out, sizeof binary, binary);
    out[CHK_DIGEST - 1] = 0;
    fclose(f);
  }
  free(buffer);
  return c;
}

/* The file at `path` under the name `name` (either NULL: there is no memory), if it is there. */
static iso_code add(listing *l, const char *name, const char *path, bool *there) {
  if (!name || !path || !iso_grow(l->file, l->cap, l->n + 1)) return nomem(l);
  chk_file *f = &l->file[l->n];
  f->name = *l->before ? iso_arena_printf(l->a, "%s%s", l->before, name) : name;
  if (!f->name) return nomem(l);
  const iso_code c = digest(path, f->digest, there, l->err);
  l->n += !c && *there;
  return c;
}

static iso_code add_in(listing *l, const char *dir, const char *name, bool *there) {
  return name ? add(l, name, iso_arena_printf(l->a, "%s/%s", dir, name), there) : nomem(l);
}

/* The shards that a checkpoint's index names. A malformed index adds none: the reader of captures
 * reports it. */
static iso_code add_shards(listing *l, const char *dir, const char *index) {
  const char *path = iso_arena_printf(l->a, "%s/%s", dir, index), *tensor;
  json_t *doc = path ? json_load_file(path, 0, NULL) : NULL, *shard, *seen = json_object();
  iso_code c = path && seen ? ISO_OK : nomem(l);
  json_object_foreach(json_object_get(doc, "weight_map"), tensor, shard) {
    const char *name = json_string_value(shard);
    bool there;
    if (c || !name || strchr(name, '/') || json_object_get(seen, name)) continue;
    c = json_object_set_new(seen, name, json_true())
            ? nomem(l)
            : add_in(l, dir, iso_arena_strdup(l->a, name), &there);
  }
  json_decref(seen);
  json_decref(doc);
  return c;
}

static iso_code capture_files(listing *l, const char *dir) {
  bool there, index = false;
  iso_code c = add_in(l, dir, "graph.json", &there);
  if (!c) c = add_in(l, dir, "weights.safetensors", &there);
  if (!c) c = add_in(l, dir, "model.safetensors.index.json", &index);
  if (!c)
    c = index ? add_shards(l, dir, "model.safetensors.index.json")
              : add_in(l, dir, "model.safetensors", &there);
  if (!c) c = add_in(l, dir, "inputs.safetensors", &there);
  there = true;
  for (size_t i = 1; !c && there; i++)
    c = add_in(l, dir, iso_arena_printf(l->a, "inputs.%zu.safetensors", i), &there);
  return c;
}

static iso_code archive_files(listing *l, const char *path, const char *const *inputs,
                              size_t n_inputs) {
  bool there;
  iso_code c = add(l, "archive", path, &there);
  for (size_t i = 0; i < n_inputs && !c; i++)
    c = add(l, i ? iso_arena_printf(l->a, "inputs.%zu.safetensors", i) : "inputs.safetensors",
            inputs[i], &there);
  return c;
}

static iso_code call_files(listing *l, const char *path, const char *const *inputs,
                           size_t n_inputs) {
  return cap_is_archive(path) ? archive_files(l, path, inputs, n_inputs) : capture_files(l, path);
}

iso_code chk_files(const cap_graph *g, const char *const *inputs, size_t n_inputs, iso_arena *a,
                   const chk_file **out, size_t *n, iso_error *err) {
  listing l = {.a = a, .before = "", .err = err};
  iso_code c = call_files(&l, g->path, inputs, n_inputs);
  for (size_t i = 0; i < g->n_then && !c; i++) {
    l.before = iso_arena_printf(a, "call%zu/", i + 2);
    c = l.before ? call_files(&l, g->then[i], NULL, 0) : nomem(&l);
  }
  chk_file *kept = c ? NULL : iso_arena_alloc(a, (l.n + 1) * sizeof *kept);
  if (!c && !kept) c = nomem(&l);
  if (!c && l.n) memcpy(kept, l.file, l.n * sizeof *kept);
  if (!c) *out = kept, *n = l.n;
  free(l.file);
  return c;
}
