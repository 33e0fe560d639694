/* The reader of json.h. Source: RFC 8259. */
#include "lint/json.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "egraph/base/vec.h"

enum { BUFFER = 1 << 16, MAX_STRING = 1 << 20 };

iso_code lint_json_wrong(lint_json *j, const char *fmt, ...) {
  char what[400];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(what, sizeof what, fmt, ap);
  va_end(ap);
  return iso_fail(j->err, ISO_FORMAT, "%s:%" PRIu64 ": %s", j->path, j->line, what);
}

static iso_code no_memory(lint_json *j) {
  return iso_fail(j->err, ISO_NOMEM, "%s: out of memory", j->path);
}

iso_code lint_json_open(lint_json *j, const char *path, iso_error *err) {
  *j = (lint_json){.fd = -1, .path = path, .err = err, .line = 1};
  j->fd = open(path, O_RDONLY | O_CLOEXEC);
  if (j->fd < 0) return iso_fail(err, ISO_IO, "%s: %s", path, strerror(errno));
  j->buf = malloc(BUFFER);
  return j->buf ? ISO_OK : no_memory(j);
}

void lint_json_close(lint_json *j) {
  if (j->fd >= 0) close(j->fd);
  free(j->buf);
  free(j->str);
  *j = (lint_json){.fd = -1};
}

/* Returns: false at the end of the file, or where it cannot be read: then `eof` is not set. */
static bool refill(lint_json *j) {
  if (j->eof) return false;
  ssize_t n;
  do n = read(j->fd, j->buf, BUFFER);
  while (n < 0 && errno == EINTR);
  j->at = 0;
  j->end = n > 0 ? (size_t)n : 0;
  j->eof = n == 0;
  return n > 0;
}

/* The next character, not taken; -1 at the end. */
static inline int look(lint_json *j) { return j->at < j->end || refill(j) ? j->buf[j->at] : -1; }

static int skip_blanks(lint_json *j) {
  for (int c; (c = look(j)) >= 0; j->at++) {
    if (c == '\n') j->line++;
    else if (c != ' ' && c != '\t' && c != '\r') return c;
  }
  return -1;
}

/* The kind of value that stands there in place of the expected one. */
static iso_code expected(lint_json *j, const char *what) {
  const int c = look(j);
  if (c < 0 && !j->eof) return iso_fail(j->err, ISO_IO, "%s: %s", j->path, strerror(errno));
  if (c < 0) return lint_json_wrong(j, "the file ends where %s is expected", what);
  if (c > 0x20 && c < 0x7f) return lint_json_wrong(j, "%s is expected, not '%c'", what, c);
  return lint_json_wrong(j, "%s is expected", what);
}

int lint_json_peek(lint_json *j) {
  const int c = skip_blanks(j);
  return c < 0 && j->eof ? 0 : c;
}

iso_code lint_json_enter(lint_json *j, char open) {
  if (skip_blanks(j) != open) return expected(j, open == '{' ? "an object" : "a list");
  if (j->depth == LINT_JSON_DEPTH) return lint_json_wrong(j, "it is nested too deep");
  j->at++;
  j->is_object[j->depth] = open == '{';
  j->is_first[j->depth++] = true;
  return ISO_OK;
}

iso_code lint_json_next(lint_json *j, char close, bool *more) {
  int c = skip_blanks(j);
  bool *first = &j->is_first[j->depth - 1];
  if (c == close) {
    j->at++;
    j->depth--;
    *more = false;
    return ISO_OK;
  }
  if (!*first) {
    if (c != ',') return expected(j, close == '}' ? "',' or '}'" : "',' or ']'");
    j->at++;
    c = skip_blanks(j);
  }
  *first = false;
  *more = true;
  if (close == ']') return ISO_OK;
  if (c != '"') return expected(j, "a key");
  const iso_code code = lint_json_string(j);
  if (code) return code;
  if (skip_blanks(j) != ':') return expected(j, "':'");
  j->at++;
  return ISO_OK;
}

/* ---- strings ---- */

static bool put(lint_json *j, const unsigned char *p, size_t n) {
  if (j->cap_str - j->n_str < n + 1 && !iso_grow(j->str, j->cap_str, j->n_str + n + 1))
    return false;
  memcpy(j->str + j->n_str, p, n);
  j->n_str += n;
  return true;
}

static bool hex4(lint_json *j, uint32_t *v) {
  *v = 0;
  for (int i = 0; i < 4; i++) {
    const int c = look(j);
    const int d = c >= '0' && c <= '9'   ? c - '0'
                  : c >= 'a' && c <= 'f' ? c - 'a' + 10
                  : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                         : -1;
    if (d < 0) return false;
    *v = *v << 4 | (uint32_t)d;
    j->at++;
  }
  return true;
}

static bool put_utf8(lint_json *j, uint32_t c) {
  unsigned char b[4];
  size_t n = 0;
  if (c < 0x80) b[n++] = (unsigned char)c;
  else if (c < 0x800) b[n++] = (unsigned char)(0xC0 | c >> 6);
  else if (c < 0x10000) b[n++] = (unsigned char)(0xE0 | c >> 12);
  else b[n++] = (unsigned char)(0xF0 | c >> 18);
  if (c >= 0x10000) b[n++] = (unsigned char)(0x80 | (c >> 12 & 0x3F));
  if (c >= 0x800) b[n++] = (unsigned char)(0x80 | (c >> 6 & 0x3F));
  if (c >= 0x80) b[n++] = (unsigned char)(0x80 | (c & 0x3F));
  return put(j, b, n);
}

/* Behind a backslash. A zero and half a surrogate pair are no characters of a name. */
static iso_code escape(lint_json *j) {
  static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
  const int c = look(j);
  const char *p = c > 0 ? strchr(from, c) : NULL;
  uint32_t v, low;
  if (p) {
    j->at++;
    return put(j, (const unsigned char *)&to[p - from], 1) ? ISO_OK : no_memory(j);
  }
  if (c != 'u') return expected(j, "an escape");
  j->at++;
  if (!hex4(j, &v)) return expected(j, "a hexadecimal digit");
  if (v >= 0xD800 && v < 0xDC00) {
    if (look(j) != '\\') return expected(j, "the second half of a character");
    j->at++;
    if (look(j) != 'u') return expected(j, "the second half of a character");
    j->at++;
    if (!hex4(j, &low) || low < 0xDC00 || low > 0xDFFF)
      return lint_json_wrong(j, "half of a character is missing");
    v = 0x10000 + ((v - 0xD800) << 10) + (low - 0xDC00);
  } else if (v == 0 || (v >= 0xDC00 && v < 0xE000)) {
    return lint_json_wrong(j, "\\u%04X is no character of a text", v);
  }
  return put_utf8(j, v) ? ISO_OK : no_memory(j);
}

iso_code lint_json_string(lint_json *j) {
  if (skip_blanks(j) != '"') return expected(j, "a string");
  j->at++;
  j->n_str = 0;
  for (;;) {
    if (look(j) < 0) return expected(j, "the end of a string");
    const unsigned char *p = j->buf + j->at, *q = p, *end = j->buf + j->end;
    while (q < end && *q != '"' && *q != '\\' && *q >= 0x20) q++;
    if (!put(j, p, (size_t)(q - p))) return no_memory(j);
    if (j->n_str > MAX_STRING) return lint_json_wrong(j, "a string is too long");
    j->at += (size_t)(q - p);
    if (q == end) continue;
    j->at++;
    if (*q == '"') break;
    if (*q != '\\') return lint_json_wrong(j, "a control character in a string");
    const iso_code c = escape(j);
    if (c) return c;
  }
  j->str[j->n_str] = '\0';
  return ISO_OK;
}

/* ---- numbers, and what is not looked at ---- */

/* A number's text into `t`. */
static iso_code number_text(lint_json *j, char *t, size_t cap) {
  size_t n = 0;
  for (int c; (c = look(j)) >= 0; j->at++) {
    if (!((c >= '0' && c <= '9') || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'))
      break;
    if (n + 1 == cap) return lint_json_wrong(j, "a number is too long");
    t[n++] = (char)c;
  }
  t[n] = '\0';
  return ISO_OK;
}

/* RFC 8259 has neither leading zeros nor a bare point. */
static bool well_formed(const char *t) {
  if (*t == '-') t++;
  if (*t < '0' || *t > '9') return false;
  if (*t == '0') t++;
  else
    while (*t >= '0' && *t <= '9') t++;
  if (*t == '.') {
    if (*++t < '0' || *t > '9') return false;
    while (*t >= '0' && *t <= '9') t++;
  }
  if (*t == 'e' || *t == 'E') {
    t++;
    if (*t == '+' || *t == '-') t++;
    if (*t < '0' || *t > '9') return false;
    while (*t >= '0' && *t <= '9') t++;
  }
  return *t == '\0';
}

iso_code lint_json_number(lint_json *j, double *v) {
  char t[64];
  const int c = skip_blanks(j);
  if (c != '-' && (c < '0' || c > '9')) return expected(j, "a number");
  const iso_code code = number_text(j, t, sizeof t);
  if (code) return code;
  if (!well_formed(t)) return lint_json_wrong(j, "not a number: %s", t);
  *v = strtod(t, NULL);
  return *v - *v == 0 ? ISO_OK : lint_json_wrong(j, "a number out of range: %s", t);
}

iso_code lint_json_int(lint_json *j, int64_t *v) {
  char t[64], *end;
  const int c = skip_blanks(j);
  if (c != '-' && (c < '0' || c > '9')) return expected(j, "an integer");
  const iso_code code = number_text(j, t, sizeof t);
  if (code) return code;
  errno = 0;
  *v = strtoll(t, &end, 10);
  if (!well_formed(t) || *end || errno) return lint_json_wrong(j, "not an integer: %s", t);
  return ISO_OK;
}

static iso_code literal(lint_json *j, const char *word) {
  for (const char *p = word; *p; p++, j->at++)
    if (look(j) != *p) return expected(j, word);
  return ISO_OK;
}

iso_code lint_json_skip(lint_json *j) {
  const unsigned base = j->depth;
  iso_code c = ISO_OK;
  double v;
  do {
    const int first = skip_blanks(j);
    if (first == '{' || first == '[') c = lint_json_enter(j, (char)first);
    else if (first == '"') c = lint_json_string(j);
    else if (first == 't') c = literal(j, "true");
    else if (first == 'f') c = literal(j, "false");
    else if (first == 'n') c = literal(j, "null");
    else if (first == '-' || (first >= '0' && first <= '9')) c = lint_json_number(j, &v);
    else c = expected(j, "a value");
    /* Leaves the lists and objects that end here, and goes on to the next value of the one that
     * does not. */
    for (bool more = false; !c && !more && j->depth > base;)
      c = lint_json_next(j, j->is_object[j->depth - 1] ? '}' : ']', &more);
  } while (!c && j->depth > base);
  return c;
}

iso_code lint_json_end(lint_json *j) {
  return skip_blanks(j) < 0 && j->eof ? ISO_OK : expected(j, "the end of the file");
}
