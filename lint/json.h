/* A streaming JSON reader: the caller asks for a kind of value, and any other is an error.
 *
 * Nothing of a document is kept but the last string. Errors name the file and the line. */
#ifndef LINT_JSON_H
#define LINT_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "egraph/base/error.h"

enum { LINT_JSON_DEPTH = 64 };

typedef struct lint_json {
  int fd;
  const char *path;
  iso_error *err;
  unsigned char *buf;
  size_t at, end;
  uint64_t line;
  bool eof;
  bool is_first[LINT_JSON_DEPTH], is_object[LINT_JSON_DEPTH]; /* is_first: nothing of it was read */
  unsigned depth;
  char *str; /* the last string, with a NUL after it, and none inside */
  size_t n_str, cap_str;
} lint_json;

/* Owns: lint_json_close, also after an error. */
ISO_MUST_USE iso_code lint_json_open(lint_json *j, const char *path, iso_error *err);
void lint_json_close(lint_json *j);
/* "file:line: what". Returns: ISO_FORMAT. */
iso_code lint_json_wrong(lint_json *j, const char *fmt, ...) ISO_PRINTF(2, 3);

/* The first character of the next value: { [ " t f n - or a digit; 0 at the end, and -1 where a
 * read failed. */
int lint_json_peek(lint_json *j);
/* Into an object or a list: `open` is '{' or '['. */
ISO_MUST_USE iso_code lint_json_enter(lint_json *j, char open);
/* To the next element, or out; `close` is '}' or ']'. In an object j->str is then the key. */
ISO_MUST_USE iso_code lint_json_next(lint_json *j, char close, bool *more);
ISO_MUST_USE iso_code lint_json_string(lint_json *j);
ISO_MUST_USE iso_code lint_json_int(lint_json *j, int64_t *v);
ISO_MUST_USE iso_code lint_json_number(lint_json *j, double *v);
ISO_MUST_USE iso_code lint_json_skip(lint_json *j);
/* Fails unless only blanks follow the document. */
ISO_MUST_USE iso_code lint_json_end(lint_json *j);

#endif
