/* What a capture's meaning is in, by content. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "check/sha256.h"
#include "egraph/base/vec.h"

#include <stdlib.h>

/* Returns: in `there` false where the file does not exist. */
static iso_code digest(const char *dir, const char *name, char out[CHK_DIGEST], bool *there, iso_error *err) {
  static const size_t chunk = 1 << 18;
  iso_arena a;
  iso_arena_init(&a);
  char *path = iso_arena_printf(&a, "%s/%s", dir, name);
  unsigned char *buffer = iso_arena_alloc(&a, chunk);
  FILE *f = NULL;
  iso_code c = path && buffer ? ISO_OK : iso_fail(err, ISO_NOMEM, "out of memory");
  *there = false;
  if (!c && !(f = fopen(path, "rb")) && errno != ENOENT) c = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  if (f) {
    chk_sha256 s;
    size_t n;
    *there = true;
    chk_sha256_init(&s);
    while ((n = fread(buffer, 1, chunk, f)) > 0) chk_sha256_add(&s, buffer, n);
    if (ferror(f)) c = iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
    chk_sha256_hex(&s, out);
    fclose(f);
  }
  iso_arena_fini(&a);
  return c;
}

iso_code chk_files(const char *dir, iso_arena *a, const chk_file **out, size_t *n, iso_error *err) {
  static const char *const first[] = {"graph.json", "weights.safetensors", "inputs.safetensors"};
  chk_file *file = NULL;
  size_t cap = 0, k = 0;
  bool there = true;
  iso_code c = ISO_OK;
  if (cap_is_archive(dir)) return iso_fail(err, ISO_UNSUPPORTED, "%s: certificates are for captures, not for archives", dir);
  for (size_t i = 0; !c && (i < 3 || there); i++) {
    if (!iso_grow(file, cap, k + 1) || !(file[k].name = i < 3 ? first[i] : iso_arena_printf(a, "inputs.%zu.safetensors", i - 2)))
      c = iso_fail(err, ISO_NOMEM, "out of memory");
    if (!c) c = digest(dir, file[k].name, file[k].digest, &there, err);
    k += !c && there;
  }
  chk_file *kept = c ? NULL : iso_arena_alloc(a, (k + 1) * sizeof *kept);
  if (!c && !kept) c = iso_fail(err, ISO_NOMEM, "out of memory");
  if (!c && k) memcpy(kept, file, k * sizeof *kept);
  free(file);
  if (c) return c;
  *out = kept;
  *n = k;
  return ISO_OK;
}
