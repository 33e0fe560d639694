/* A dump as a pickle. Only plain values are read: texts, numbers, lists, tuples, dicts. No opcode
 * names anything to import or to call; any other ends the reading.
 *
 * Source: CPython, Lib/pickletools.py. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "egraph/base/vec.h"
#include "lint/recorder/recorder.h"

enum { MAX_BYTES = 1 << 28 };

typedef enum kind { NONE, INT, TEXT, LIST, DICT, MARK } kind;

/* Lists, tuples and dicts are runs of items; a dict's are keys and values in turn. */
typedef struct value {
  kind kind;
  int64_t i;
  const char *text; /* in the file */
  size_t n, cap;    /* of text, or of items */
  struct value **item;
  struct value *all; /* the one made before */
} value;

typedef struct machine {
  lint_dump *d;
  const unsigned char *p, *end;
  iso_arena arena;
  value **stack, **memo, *made;
  size_t n, cap, n_memo, cap_memo;
} machine;

static iso_code malformed(const machine *m) {
  return iso_fail(m->d->err, ISO_FORMAT, "%s: the pickle is malformed", m->d->path);
}
static iso_code no_memory(const machine *m) { return lint_no_memory(m->d->err); }

static value *make(machine *m, kind k) {
  value *v = iso_arena_alloc(&m->arena, sizeof *v);
  if (!v) return NULL;
  v->kind = k;
  v->all = m->made;
  m->made = v;
  return v;
}

static iso_code push(machine *m, value *v) {
  if (!v || !iso_grow(m->stack, m->cap, m->n + 1)) return no_memory(m);
  m->stack[m->n++] = v;
  return ISO_OK;
}

static bool take(machine *m, size_t n, const unsigned char **out) {
  if ((size_t)(m->end - m->p) < n) return false;
  *out = m->p;
  m->p += n;
  return true;
}

static bool number(machine *m, size_t bytes, uint64_t *out) {
  const unsigned char *b;
  if (!take(m, bytes, &b)) return false;
  *out = 0;
  for (size_t i = bytes; i-- > 0;) *out = *out << 8 | b[i];
  return true;
}

static iso_code push_int(machine *m, int64_t i) {
  value *v = make(m, INT);
  if (v) v->i = i;
  return push(m, v);
}

static iso_code read_int(machine *m, size_t bytes, bool is_signed) {
  uint64_t v;
  if (!number(m, bytes, &v)) return malformed(m);
  return push_int(m, is_signed ? (int64_t)(int32_t)v : (int64_t)v);
}

/* An integer with its length before it; one of more than eight bytes is refused. */
static iso_code read_long(machine *m) {
  uint64_t n, v = 0;
  const unsigned char *b;
  if (!number(m, 1, &n) || n > 8 || !take(m, n, &b)) return malformed(m);
  for (size_t i = n; i-- > 0;) v = v << 8 | b[i];
  if (n && n < 8 && b[n - 1] & 0x80) v |= UINT64_MAX << (8 * n);
  return push_int(m, (int64_t)v);
}

static iso_code read_text(machine *m, size_t length_bytes) {
  uint64_t n;
  const unsigned char *b;
  if (!number(m, length_bytes, &n) || n > MAX_BYTES || !take(m, n, &b)) return malformed(m);
  value *v = make(m, TEXT);
  if (v) v->text = (const char *)b, v->n = n;
  return push(m, v);
}

static bool add(value *list, value *x) {
  if (!iso_grow(list->item, list->cap, list->n + 1)) return false;
  list->item[list->n++] = x;
  return true;
}

/* The items after the last mark go into the container before it, or into a new one. */
static iso_code collect(machine *m, kind k, bool is_new) {
  size_t at = m->n;
  while (at > 0 && m->stack[at - 1]->kind != MARK) at--;
  if (at == 0) return malformed(m);
  value *list = NULL;
  if (is_new) list = make(m, k);
  else if (at >= 2 && m->stack[at - 2]->kind == k) list = m->stack[at - 2];
  else return malformed(m);
  if (!list) return no_memory(m);
  if (k == DICT && (m->n - at) % 2) return malformed(m);
  for (size_t i = at; i < m->n; i++)
    if (!add(list, m->stack[i])) return no_memory(m);
  m->n = at - 1;
  return is_new ? push(m, list) : ISO_OK;
}

/* The last `n` of the stack: a tuple, or the operands of an APPEND or SETITEM. */
static iso_code gather(machine *m, size_t n, kind into) {
  if (m->n < n + (into != NONE)) return malformed(m);
  value *list = into == NONE ? make(m, LIST) : m->stack[m->n - n - 1];
  if (!list) return no_memory(m);
  if (into != NONE && list->kind != into) return malformed(m);
  for (size_t i = m->n - n; i < m->n; i++) {
    if (m->stack[i]->kind == MARK) return malformed(m);
    if (!add(list, m->stack[i])) return no_memory(m);
  }
  m->n -= n;
  return into == NONE ? push(m, list) : ISO_OK;
}

static iso_code memoize(machine *m, uint64_t at) {
  if (m->n == 0 || at > m->n_memo + 1024 || at >= MAX_BYTES) return malformed(m);
  if (!iso_grow(m->memo, m->cap_memo, (size_t)at + 1)) return no_memory(m);
  for (; m->n_memo <= at; m->n_memo++) m->memo[m->n_memo] = NULL;
  m->memo[at] = m->stack[m->n - 1];
  return ISO_OK;
}

static iso_code recall(machine *m, uint64_t at) {
  return at < m->n_memo && m->memo[at] ? push(m, m->memo[at]) : malformed(m);
}

/* Returns: false in `more` at the end. */
static iso_code step(machine *m, bool *more) {
  const unsigned char *op;
  uint64_t v;
  if (!take(m, 1, &op)) return malformed(m);
  switch (*op) {
  case 0x80: return number(m, 1, &v) && v <= 5 ? ISO_OK : malformed(m);
  case 0x95: return number(m, 8, &v) ? ISO_OK : malformed(m); /* a frame */
  case '.': *more = false; return ISO_OK;
  case '(': return push(m, make(m, MARK));
  case 'N': return push(m, make(m, NONE));
  case 0x88: return push_int(m, 1);
  case 0x89: return push_int(m, 0);
  case 'K': return read_int(m, 1, false);
  case 'M': return read_int(m, 2, false);
  case 'J': return read_int(m, 4, true);
  case 0x8A: return read_long(m);
  case 'G': return take(m, 8, &op) ? push(m, make(m, NONE)) : malformed(m);
  case 'X': return read_text(m, 4);
  case 0x8C: return read_text(m, 1);
  case ']': return push(m, make(m, LIST));
  case ')': return push(m, make(m, LIST));
  case '}': return push(m, make(m, DICT));
  case 'e': return collect(m, LIST, false);
  case 'u': return collect(m, DICT, false);
  case 't': return collect(m, LIST, true);
  case 'a': return gather(m, 1, LIST);
  case 's': return gather(m, 2, DICT);
  case 0x85: return gather(m, 1, NONE);
  case 0x86: return gather(m, 2, NONE);
  case 0x87: return gather(m, 3, NONE);
  case 'q': return number(m, 1, &v) ? memoize(m, v) : malformed(m);
  case 'r': return number(m, 4, &v) ? memoize(m, v) : malformed(m);
  case 0x94: return memoize(m, m->n_memo);
  case 'h': return number(m, 1, &v) ? recall(m, v) : malformed(m);
  case 'j': return number(m, 4, &v) ? recall(m, v) : malformed(m);
  default:
    return iso_fail(m->d->err, ISO_FORMAT,
                    "%s: the pickle has opcode 0x%02x, of which a dump has no need", m->d->path,
                    *op);
  }
}

/* ---- values as entries ---- */

static const value *get(const value *dict, const char *key) {
  if (!dict || dict->kind != DICT) return NULL;
  const size_t len = strlen(key);
  for (size_t i = 0; i + 1 < dict->n; i += 2) {
    const value *k = dict->item[i];
    if (k->kind == TEXT && k->n == len && memcmp(k->text, key, len) == 0) return dict->item[i + 1];
  }
  return NULL;
}

static iso_code intern(machine *m, const value *v, uint32_t *id) {
  *id = 0;
  if (v && v->kind == LIST && v->n) v = v->item[0];
  if (!v || v->kind != TEXT || memchr(v->text, 0, v->n)) return ISO_OK;
  return lint_dump_intern(m->d, v->text, v->n, id);
}

static int64_t int_of(const value *v) { return v && v->kind == INT ? v->i : -1; }

static int64_t numel_of(const value *v) {
  int64_t sum = 0;
  if (!v || v->kind != LIST) return -1;
  for (size_t i = 0; i < v->n; i++) {
    int64_t n = 1;
    const value *s = v->item[i];
    for (size_t k = 0; s->kind == LIST && k < s->n; k++)
      if (__builtin_mul_overflow(n, int_of(s->item[k]), &n) || n < 0) return -1;
    if (__builtin_add_overflow(sum, n, &sum)) return -1;
  }
  return sum;
}

static iso_code source_of(machine *m, const value *frames, uint32_t *id) {
  *id = 0;
  if (!frames || frames->kind != LIST) return ISO_OK;
  for (size_t i = 0; i < frames->n; i++) {
    const value *file = get(frames->item[i], "filename");
    if (!file || file->kind != TEXT || memchr(file->text, 0, file->n) ||
        memmem(file->text, file->n, "/torch/", 7))
      continue;
    char *at = iso_arena_printf(&m->arena, "%.*s:%" PRId64, (int)file->n, file->text,
                                int_of(get(frames->item[i], "line")));
    return at ? lint_dump_intern(m->d, at, strlen(at), id) : no_memory(m);
  }
  return ISO_OK;
}

static bool is_text(const value *v, const char *s) {
  return v && v->kind == TEXT && v->n == strlen(s) && memcmp(v->text, s, v->n) == 0;
}

static iso_code entry_of(machine *m, const value *v) {
  lint_dump *d = m->d;
  const value *state = get(v, "state");
  lint_entry e = {.seq = int_of(get(v, "collective_seq_id")),
                  .record = int_of(get(v, "record_id")),
                  .numel = numel_of(get(v, "input_sizes")),
                  .out_numel = numel_of(get(v, "output_sizes")),
                  .state = is_text(state, "completed") ? LINT_COMPLETED
                           : is_text(state, "started") ? LINT_STARTED
                                                       : LINT_SCHEDULED};
  iso_code c = intern(m, get(v, "profiling_name"), &e.word);
  if (!c) c = intern(m, get(v, "process_group"), &e.group);
  if (!c) c = intern(m, get(v, "input_dtypes"), &e.dtype);
  if (!c) c = source_of(m, get(v, "frames"), &e.source);
  if (c) return c;
  if (!e.word || e.seq < 0)
    return iso_fail(d->err, ISO_FORMAT,
                    "%s: an entry without \"profiling_name\" or \"collective_seq_id\"", d->path);
  if (!iso_grow(d->entry, d->cap_entries, d->n_entries + 1)) return no_memory(m);
  d->entry[d->n_entries++] = e;
  return ISO_OK;
}

static iso_code walk(machine *m, const value *top) {
  const value *entries = get(top, "entries"), *groups = get(top, "pg_config");
  iso_code c = ISO_OK;
  if (!entries || entries->kind != LIST)
    return iso_fail(m->d->err, ISO_FORMAT, "%s: a dump without \"entries\"", m->d->path);
  for (size_t i = 0; !c && groups && groups->kind == DICT && i + 1 < groups->n; i += 2) {
    const value *name = groups->item[i], *ranks = get(groups->item[i + 1], "ranks");
    const bool is = ranks && ranks->kind == TEXT;
    if (name->kind != TEXT) continue;
    c = lint_dump_group(m->d, name->text, name->n, is ? ranks->text : "", is ? ranks->n : 0);
  }
  for (size_t i = 0; !c && i < entries->n; i++) c = entry_of(m, entries->item[i]);
  return c;
}

/* ---- the file ---- */

static iso_code read_file(lint_dump *d, unsigned char **out, size_t *n) {
  struct stat st;
  const int fd = open(d->path, O_RDONLY | O_CLOEXEC);
  if (fd < 0 || fstat(fd, &st) != 0) {
    const int why = errno;
    if (fd >= 0) close(fd);
    return iso_fail(d->err, ISO_IO, "%s: %s", d->path, strerror(why));
  }
  *n = 0;
  *out = st.st_size < 0 || st.st_size > MAX_BYTES ? NULL : malloc((size_t)st.st_size + 1);
  ssize_t k = 1;
  while (*out && *n < (size_t)st.st_size && (k = read(fd, *out + *n, (size_t)st.st_size - *n)) > 0)
    *n += (size_t)k;
  close(fd);
  if (k < 0) return iso_fail(d->err, ISO_IO, "%s: %s", d->path, strerror(errno));
  return *out ? ISO_OK : lint_no_memory(d->err);
}

iso_code lint_dump_read_pickle(lint_dump *d) {
  machine m = {.d = d};
  unsigned char *bytes = NULL;
  size_t n = 0;
  bool more = true;
  iso_code c = read_file(d, &bytes, &n);
  m.p = bytes;
  m.end = bytes ? bytes + n : bytes;
  while (!c && more) c = step(&m, &more);
  if (!c && (m.n != 1 || m.p != m.end)) c = malformed(&m);
  if (!c) c = walk(&m, m.stack[0]);
  for (value *v = m.made; v; v = v->all) free(v->item);
  iso_arena_fini(&m.arena);
  free(m.stack);
  free(m.memo);
  free(bytes);
  return c;
}
