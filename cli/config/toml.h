/* A strict reader of the part of TOML 1.0 that settings need: comments, [tables] with bare and
 * dotted names, bare and quoted keys, basic and literal strings of one line, integers, floats,
 * booleans, and arrays of strings (over several lines, too). Everything else (dates, inline tables,
 * arrays of tables, dotted keys, strings of several lines, inf and nan) is an error, and so is
 * anything that TOML forbids: a key or a table given twice, control characters, text that is no
 * UTF-8. */
#ifndef CLI_CONFIG_TOML_H
#define CLI_CONFIG_TOML_H

#include <stdbool.h>
#include <stdint.h>

#include "egraph/base/arena.h"
#include "egraph/base/error.h"

typedef enum toml_kind {
  TOML_STRING,
  TOML_INTEGER,
  TOML_FLOAT,
  TOML_BOOLEAN,
  TOML_STRINGS
} toml_kind;

typedef struct toml_entry {
  const char *table; /* as its parts joined with "."; "" above the first table */
  const char *key;
  int line; /* of the key, from 1 */
  toml_kind kind;
  const char
      *text; /* STRING; INTEGER and FLOAT: as they were written, without underscores and "+" */
  int64_t integer;
  double real;
  bool boolean;
  const char *const *item; /* STRINGS */
  size_t n_items;
} toml_entry;

typedef struct toml_table {
  const char *name;
  int line;
} toml_table;

typedef struct toml {
  const toml_entry *entry; /* in the order of the file */
  size_t n;
  const toml_table *table; /* those written as [NAME], with keys or without */
  size_t n_tables;
  iso_arena arena; /* private */
} toml;

/* Parse `n` bytes; messages begin with "PATH:LINE: ". Owns: toml_free, also after an error. Errors:
 * ISO_FORMAT, ISO_NOMEM. */
ISO_MUST_USE iso_code toml_parse(const char *text, size_t n, const char *path, toml *out,
                                 iso_error *err);
void toml_free(toml *t);

const char *toml_kind_name(toml_kind k); /* "a string", ... */

#endif
