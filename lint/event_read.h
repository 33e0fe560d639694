/* Shared by the two files that read events in JSON: the document, and one event. */
#ifndef LINT_EVENT_READ_H
#define LINT_EVENT_READ_H

#include "lint/json.h"
#include "lint/trace.h"

/* A peer relative to the mesh, as it is written; the axes may be named later in the file. */
typedef struct lint_raw_offset {
  uint32_t axis[LINT_MAX_AXES];
  int64_t by[LINT_MAX_AXES];
  size_t n;
} lint_raw_offset;

typedef struct lint_reader {
  lint_json json;
  lint_trace *t;
  lint_raw_offset *raw; /* one for each lint_trace.offset */
  size_t n_raw, cap_raw;
  uint32_t *ref_of; /* of each name: its group reference plus 1 */
  size_t cap_ref_of;
  lint_access *pending; /* of the events that are being read, the inner one's last */
  size_t n_pending, cap_pending;
  unsigned n_open;          /* events that are being read: 2 within a batch */
  unsigned char first[128]; /* by the first letter of a key: where to look in the table of keys */
} lint_reader;

void lint_keys_init(lint_reader *r);
/* The last string of the document, interned. */
ISO_MUST_USE iso_code lint_token(lint_reader *r, uint32_t *id);
/* A name: a string, or an integer's digits. */
ISO_MUST_USE iso_code lint_name(lint_reader *r, uint32_t *id);
/* The group reference of this name, made where there is none. */
ISO_MUST_USE iso_code lint_refer(lint_reader *r, uint32_t name, uint32_t *ref);
/* An event at the end of `p`. */
ISO_MUST_USE iso_code lint_read_event(lint_reader *r, lint_program *p, uint32_t position);
/* A list of integers into the trace's arena. */
ISO_MUST_USE iso_code lint_read_ints(lint_reader *r, const int64_t **out, size_t *n);

#endif
