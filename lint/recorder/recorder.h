/* Dumps of torch's flight recorder, one of each rank.
 *
 * An entry becomes an event: mb is its sequence number in its group, tag its state, reduce the
 * word of its operation. */
#ifndef LINT_RECORDER_H
#define LINT_RECORDER_H

#include "lint/check.h"

typedef enum lint_state_of { LINT_SCHEDULED, LINT_STARTED, LINT_COMPLETED } lint_state_of;

/* One entry of a dump, from whatever it is written in. Strings are names of the trace. */
typedef struct lint_entry {
  uint32_t word, group, dtype, source; /* word: "nccl:all_reduce"; group: as the dump calls it */
  int64_t seq, record, numel, out_numel;
  lint_state_of state;
} lint_entry;

/* One dump while it is read. */
typedef struct lint_dump {
  lint_trace *t;
  const char *path;
  iso_error *err;
  int64_t rank;
  struct {
    uint32_t name, key, ref; /* key: the name with the members; ref: once it is used */
  } * group;
  size_t n_groups, cap_groups;
  lint_entry *entry;
  size_t n_entries, cap_entries;
} lint_dump;

/* A group of the dump, with its members as text: "[0, 1]". */
ISO_MUST_USE iso_code lint_dump_group(lint_dump *d, const char *name, size_t n, const char *ranks,
                                      size_t n_ranks);
ISO_MUST_USE iso_code lint_dump_intern(lint_dump *d, const char *s, size_t n, uint32_t *id);

ISO_MUST_USE iso_code lint_dump_read_json(lint_dump *d);   /* json.c */
ISO_MUST_USE iso_code lint_dump_read_pickle(lint_dump *d); /* pickle.c */

/* Dumps of several ranks, by the digits at the end of their names. */
ISO_MUST_USE iso_code lint_read_dumps(lint_trace *t, const char *const *path, size_t n,
                                      iso_error *err);
/* The checks of dumps, in place of all others (check.c). */
ISO_MUST_USE iso_code lint_check_dumps(lint_check *c);

#endif
