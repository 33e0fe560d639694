/* The reader of toml.h: one pass over the text, a function for each thing that may stand there. */
#include "cli/config/toml.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

enum { MAX_ENTRIES = 4096, MAX_ITEMS = 4096 };

typedef struct reader {
  const char *at, *end, *path;
  int line;
  iso_arena *arena;
  iso_error *err;
  const char *table;
  toml_entry *entry;
  size_t n, cap;
  toml_table *seen;
  size_t n_seen, cap_seen;
} reader;

static iso_code wrong(const reader *r, const char *what) {
  return iso_fail(r->err, ISO_FORMAT, "%s:%d: %s", r->path, r->line, what);
}
static iso_code nomem(const reader *r) {
  return iso_fail(r->err, ISO_NOMEM, "%s: out of memory", r->path);
}

static int peek(const reader *r) { return r->at < r->end ? (unsigned char)*r->at : -1; }

static void blanks(reader *r) {
  while (peek(r) == ' ' || peek(r) == '\t') r->at++;
}

static bool control(int c) { return (c >= 0 && c < 0x20 && c != '\t') || c == 0x7f; }

/* Past a comment, up to the end of the line. */
static iso_code comment(reader *r) {
  if (peek(r) != '#') return ISO_OK;
  for (; r->at < r->end && *r->at != '\n' &&
         !(*r->at == '\r' && r->at + 1 < r->end && r->at[1] == '\n');
       r->at++)
    if (control((unsigned char)*r->at)) return wrong(r, "a control character in a comment");
  return ISO_OK;
}

/* Past the end of a line. Returns: false where something else stands. */
static bool newline(reader *r) {
  if (peek(r) == '\r' && r->at + 1 < r->end && r->at[1] == '\n') r->at++;
  if (peek(r) != '\n') return false;
  r->at++;
  r->line++;
  return true;
}

static iso_code end_of_line(reader *r) {
  blanks(r);
  const iso_code c = comment(r);
  if (c) return c;
  return r->at == r->end || newline(r)
             ? ISO_OK
             : wrong(r, "something stands behind the end of what is expected on this line");
}

/* ---- strings ---- */

static size_t put_utf8(char *out, uint32_t x) {
  if (x < 0x80) return out[0] = (char)x, 1;
  if (x < 0x800) return out[0] = (char)(0xc0 | x >> 6), out[1] = (char)(0x80 | (x & 63)), 2;
  if (x < 0x10000)
    return out[0] = (char)(0xe0 | x >> 12), out[1] = (char)(0x80 | (x >> 6 & 63)),
           out[2] = (char)(0x80 | (x & 63)), 3;
  out[0] = (char)(0xf0 | x >> 18), out[1] = (char)(0x80 | (x >> 12 & 63)),
  out[2] = (char)(0x80 | (x >> 6 & 63)), out[3] = (char)(0x80 | (x & 63));
  return 4;
}

static iso_code unicode(reader *r, int digits, char *out, size_t *n) {
  uint32_t x = 0;
  for (int i = 0; i < digits; i++, r->at++) {
    const char *const hex = "0123456789abcdefABCDEF",
                      *p = peek(r) > 0 ? strchr(hex, peek(r)) : NULL;
    if (!p) return wrong(r, "an escape needs hexadecimal digits");
    x = x << 4 | (uint32_t)(p - hex < 16 ? p - hex : p - hex - 6);
  }
  if (x == 0 || x > 0x10ffff || (x >= 0xd800 && x < 0xe000))
    return wrong(r, "an escape that is no character");
  *n += put_utf8(out + *n, x);
  return ISO_OK;
}

static iso_code escape(reader *r, char *out, size_t *n) {
  static const char from[] = "btnfr\"\\", to[] = "\b\t\n\f\r\"\\";
  const int c = peek(r);
  const char *const p = c > 0 ? strchr(from, c) : NULL;
  if (c == -1) return wrong(r, "a string does not end");
  r->at++;
  if (p) return out[(*n)++] = to[p - from], ISO_OK;
  return c == 'u'   ? unicode(r, 4, out, n)
         : c == 'U' ? unicode(r, 8, out, n)
                    : wrong(r, "no such escape in a string");
}

static iso_code string(reader *r, const char **out) {
  const char quote = *r->at++;
  size_t n = 0;
  if (r->end - r->at >= 2 && r->at[0] == quote && r->at[1] == quote)
    return wrong(r, "strings of several lines are not read here");
  const char *const stop = memchr(r->at, '\n', (size_t)(r->end - r->at)), *const line =
                                                                              stop ? stop : r->end;
  char *const s = iso_arena_alloc(
      r->arena, (size_t)(line - r->at) + 5); /* no escape is shorter than what it stands for */
  if (!s) return nomem(r);
  while (peek(r) != quote) {
    const int c = peek(r);
    if (c == -1 || c == '\n') return wrong(r, "a string does not end");
    if (control(c)) return wrong(r, "a control character in a string");
    r->at++;
    if (c == '\\' && quote == '"') {
      const iso_code code = escape(r, s, &n);
      if (code) return code;
    } else s[n++] = (char)c;
  }
  r->at++;
  s[n] = 0;
  *out = s;
  return ISO_OK;
}

/* ---- values ---- */

static bool bare(int c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '-';
}

/* Digits with single underscores between them, without the underscores. Returns: how many; 0 where
 * there are none. */
static size_t digits(const char **s, char *out, size_t *n) {
  size_t count = 0;
  while ((**s >= '0' && **s <= '9') ||
         (**s == '_' && count && (*s)[1] >= '0' && (*s)[1] <= '9' && (*s)[-1] != '_')) {
    if (**s != '_') out[(*n)++] = **s, count++;
    ++*s;
  }
  return count;
}

static iso_code number(reader *r, const char *word, toml_entry *e) {
  char *const out = iso_arena_alloc(r->arena, strlen(word) + 1);
  const char *s = word, *first;
  size_t n = 0;
  if (!out) return nomem(r);
  if (*s == '-') out[n++] = '-';
  if (*s == '+' || *s == '-') s++;
  first = s;
  const size_t whole = digits(&s, out, &n);
  bool good = whole > 0 && !(whole > 1 && *first == '0'), real = false;
  if (good && *s == '.') out[n++] = *s++, real = true, good = digits(&s, out, &n) > 0;
  if (good && (*s == 'e' || *s == 'E')) {
    out[n++] = *s++, real = true;
    if (*s == '+' || *s == '-') out[n++] = *s++;
    good = digits(&s, out, &n) > 0;
  }
  if (!good || *s)
    return iso_fail(
        r->err, ISO_FORMAT,
        "%s:%d: \"%.60s\" is no value: \"strings\", numbers, true, false and [\"lists\"] are",
        r->path, r->line, word);
  errno = 0;
  e->kind = real ? TOML_FLOAT : TOML_INTEGER;
  e->text = out;
  if (real) e->real = strtod(out, NULL);
  else e->integer = strtoll(out, NULL, 10);
  return errno == ERANGE && !(real && e->real < 1 && e->real > -1)
             ? wrong(r, "a number is too large")
             : ISO_OK;
}

static iso_code word(reader *r, toml_entry *e) {
  const char *const start = r->at;
  while (bare(peek(r)) || peek(r) == '.' || peek(r) == '+' || peek(r) == ':') r->at++;
  const char *const w = iso_arena_strndup(r->arena, start, (size_t)(r->at - start));
  if (!w) return nomem(r);
  if (!*w)
    return wrong(r,
                 peek(r) == '{'
                     ? "inline tables are not read here"
                     : "a value is missing: \"strings\", numbers, true, false and [\"lists\"] are");
  if (strcmp(w, "true") == 0 || strcmp(w, "false") == 0) {
    e->kind = TOML_BOOLEAN;
    e->boolean = *w == 't';
    return ISO_OK;
  }
  return number(r, w, e);
}

/* Blanks, comments and ends of lines, as they may stand between the items of an array. */
static iso_code between(reader *r) {
  do {
    blanks(r);
    const iso_code c = comment(r);
    if (c) return c;
  } while (newline(r));
  return ISO_OK;
}

static iso_code array(reader *r, toml_entry *e) {
  const char **item = NULL;
  size_t n = 0, cap = 0;
  iso_code c;
  r->at++;
  e->kind = TOML_STRINGS;
  while (!(c = between(r)) && peek(r) != ']') {
    if (peek(r) != '"' && peek(r) != '\'') c = wrong(r, "lists hold strings");
    else if (n == MAX_ITEMS) c = wrong(r, "a list is too long");
    else if (!iso_grow(item, cap, n + 1)) c = nomem(r);
    else c = string(r, &item[n]);
    if (c) break;
    n++;
    if ((c = between(r))) break;
    if (peek(r) == ',') r->at++;
    else if (peek(r) != ']' && (c = wrong(r, "a list goes on with \",\" or ends with \"]\"")))
      break;
  }
  if (!c) {
    const char **kept = iso_arena_alloc(r->arena, n * sizeof *kept);
    if (!kept) c = nomem(r);
    else if (n) memcpy(kept, item, n * sizeof *kept);
    e->item = kept;
    e->n_items = n;
    r->at++;
  }
  free(item);
  return c;
}

static iso_code value(reader *r, toml_entry *e) {
  if (peek(r) == '[') return array(r, e);
  if (peek(r) != '"' && peek(r) != '\'') return word(r, e);
  e->kind = TOML_STRING;
  return string(r, &e->text);
}

/* ---- keys and tables ---- */

static iso_code key(reader *r, const char **out) {
  if (peek(r) == '"' || peek(r) == '\'') return string(r, out);
  const char *const start = r->at;
  while (bare(peek(r))) r->at++;
  if (r->at == start) return wrong(r, "a key or a [table] is expected");
  *out = iso_arena_strndup(r->arena, start, (size_t)(r->at - start));
  return *out ? ISO_OK : nomem(r);
}

static iso_code table(reader *r) {
  const char *name = "", *part;
  r->at++;
  if (peek(r) == '[') return wrong(r, "arrays of tables are not read here");
  for (;;) {
    blanks(r);
    const iso_code c = key(r, &part);
    if (c) return c;
    if (!(name = iso_arena_printf(r->arena, "%s%s%s", name, *name ? "." : "", part)))
      return nomem(r);
    blanks(r);
    if (peek(r) != '.') break;
    r->at++;
  }
  if (peek(r) != ']') return wrong(r, "a [table] ends with \"]\"");
  r->at++;
  for (size_t i = 0; i < r->n_seen; i++)
    if (strcmp(r->seen[i].name, name) == 0)
      return iso_fail(r->err, ISO_FORMAT, "%s:%d: [%.80s] is there twice", r->path, r->line, name);
  if (r->n_seen == MAX_ENTRIES) return wrong(r, "there are too many tables");
  if (!iso_grow(r->seen, r->cap_seen, r->n_seen + 1)) return nomem(r);
  r->seen[r->n_seen++] = (toml_table){name, r->line};
  r->table = name;
  return end_of_line(r);
}

static iso_code entry(reader *r) {
  toml_entry e = {.table = r->table, .line = r->line};
  iso_code c = key(r, &e.key);
  if (c) return c;
  blanks(r);
  if (peek(r) == '.') return wrong(r, "dotted keys are not read here: use a [table]");
  if (peek(r) != '=')
    return iso_fail(r->err, ISO_FORMAT, "%s:%d: %.80s: \"=\" and a value are expected", r->path,
                    r->line, e.key);
  r->at++;
  blanks(r);
  if ((c = value(r, &e)) || (c = end_of_line(r))) return c;
  for (size_t i = 0; i < r->n; i++)
    if (strcmp(r->entry[i].table, e.table) == 0 && strcmp(r->entry[i].key, e.key) == 0)
      return iso_fail(r->err, ISO_FORMAT, "%s:%d: %.80s is there twice (the first time in line %d)",
                      r->path, e.line, e.key, r->entry[i].line);
  if (r->n == MAX_ENTRIES) return wrong(r, "there are too many keys");
  if (!iso_grow(r->entry, r->cap, r->n + 1)) return nomem(r);
  r->entry[r->n++] = e;
  return ISO_OK;
}

/* Bytes of the character at `s`, 0 where it is no UTF-8. */
static size_t utf8_length(const unsigned char *s, size_t n) {
  const size_t len = s[0] < 0x80                   ? 1
                     : s[0] >= 0xc2 && s[0] < 0xe0 ? 2
                     : (s[0] & 0xf0) == 0xe0       ? 3
                     : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                                   : 0;
  if (len == 0 || len > n) return 0;
  for (size_t i = 1; i < len; i++)
    if ((s[i] & 0xc0) != 0x80) return 0;
  const bool overlong = (s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xf0 && s[1] < 0x90),
             beyond = (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf4 && s[1] > 0x8f);
  return overlong || beyond ? 0 : len;
}

static iso_code check_utf8(reader *r, const char *text, size_t n) {
  for (size_t i = 0, len; i < n; i += len) {
    if (!(len = utf8_length((const unsigned char *)text + i, n - i)))
      return wrong(r, "this is no UTF-8");
    r->line += text[i] == '\n';
  }
  r->line = 1;
  return ISO_OK;
}

iso_code toml_parse(const char *text, size_t n, const char *path, toml *out, iso_error *err) {
  *out = (toml){0};
  reader r = {.at = text,
              .end = text + n,
              .path = path,
              .line = 1,
              .arena = &out->arena,
              .err = err,
              .table = ""};
  iso_code c = check_utf8(&r, text, n);
  while (!c && r.at < r.end) {
    blanks(&r);
    const int next = peek(&r);
    c = next == -1 || next == '#' || next == '\r' || next == '\n' ? end_of_line(&r)
        : next == '['                                             ? table(&r)
                                                                  : entry(&r);
  }
  toml_entry *const entries = iso_arena_alloc(&out->arena, r.n * sizeof *entries);
  toml_table *const tables = iso_arena_alloc(&out->arena, r.n_seen * sizeof *tables);
  if (!c && (!entries || !tables)) c = nomem(&r);
  if (!c) {
    if (r.n) memcpy(entries, r.entry, r.n * sizeof *entries);
    if (r.n_seen) memcpy(tables, r.seen, r.n_seen * sizeof *tables);
    out->entry = entries, out->n = r.n;
    out->table = tables, out->n_tables = r.n_seen;
  }
  free(r.entry);
  free(r.seen);
  return c;
}

void toml_free(toml *t) {
  iso_arena_fini(&t->arena);
  *t = (toml){0};
}

const char *toml_kind_name(toml_kind k) {
  static const char *const name[] = {"a string", "an integer", "a float", "true or false",
                                     "a list of strings"};
  return name[k];
}
