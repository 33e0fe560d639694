/* A trace in memory: programs of events, the ranks that run them, their groups.
 *
 * Ranks may share a program; peers and groups in it are then relative to the axes of a mesh.
 * lint_proc has the data that differ from rank to rank. Strings are interned: equal strings, equal
 * ids. */
#ifndef LINT_TRACE_H
#define LINT_TRACE_H

#include "egraph/base/arena.h"
#include "lint/lint.h"

#define LINT_NONE UINT32_MAX
enum { LINT_NO_PEER = -1, LINT_NO_INDEX = -1, LINT_MAX_AXES = 8 };

/* ---- names.c: strings to ids ---- */

typedef struct lint_names {
  const char **text;
  struct lint_name *table; /* by text */
  size_t n, cap_text;
} lint_names;

/* Id 0 is the empty string. Returns: false when there is no memory. */
bool lint_intern(lint_names *t, iso_arena *a, const char *s, size_t n, uint32_t *id);

/* ---- events ---- */

typedef enum lint_op {
#define LINT_OP(id, word, class) LINT_OP_##id,
#include "lint/ops.def"
#undef LINT_OP
  LINT_OPS
} lint_op;
typedef enum lint_op_class { LINT_LOCAL, LINT_WORK, LINT_P2P, LINT_COLLECTIVE } lint_op_class;

const char *lint_op_word(lint_op o);
lint_op_class lint_op_classify(lint_op o);
/* Returns: LINT_OPS where there is none of this name. */
lint_op lint_op_named(const char *word);

enum { /* flags */
       LINT_IN_BATCH = 1,
       LINT_IMPLIED = 2,  /* not in the input: it stands for a dependency */
       LINT_OVERLAPS = 4, /* part of an OVERLAP_F_B */
};

typedef struct lint_event {
  uint8_t op, flags;
  uint16_t n_access;
  uint32_t position;      /* in the input's list */
  uint32_t access, extra; /* indices into the program's; extra 0: none */
  uint32_t group;         /* a reference, lint_group_ref; LINT_NONE: the world */
  int32_t peer;           /* a rank, LINT_NO_PEER, or -2 - k: offset k */
  int32_t tag;
  uint32_t handle, stream; /* names; 0: blocking, the main stream */
  uint32_t link; /* batch: the number of its operations, which follow it; one of these: its batch;
                    wait: the event waited for, or LINT_NONE; stream_wait: the stream waited for */
  int32_t stage, mb;
  int64_t numel, out_numel; /* -1: not said */
  uint32_t dtype, reduce;   /* names; 0: not said */
} lint_event;

/* Nothing is said of it but its place. */
#define LINT_UNSAID_EVENT(at) \
  { \
    .position = (at), .group = LINT_NONE, .peer = LINT_NO_PEER, .stage = LINT_NO_INDEX, \
    .mb = LINT_NO_INDEX, .numel = -1, .out_numel = -1, .link = LINT_NONE \
  }

/* Members that few events have. */
typedef struct lint_extra {
  double cost;  /* -1: not said */
  int64_t root; /* -1: not said */
  uint32_t source, name;
  const int64_t *in_split, *out_split;
  uint32_t n_in, n_out; /* LINT_NONE: not said */
} lint_extra;
#define LINT_UNSAID_EXTRA \
  { .cost = -1, .root = -1, .n_in = LINT_NONE, .n_out = LINT_NONE }

typedef enum lint_access_kind {
  LINT_READS,
  LINT_WRITES,
  LINT_NEEDS,
  LINT_MAKES,
  LINT_BUFFER, /* the buffer that a send reads or a receive writes; a collective's input */
  LINT_OUT     /* a collective's result; without one it is LINT_BUFFER */
} lint_access_kind;

typedef struct lint_access {
  uint32_t buffer;
  uint32_t kind;   /* lint_access_kind */
  int64_t at, end; /* bytes [at, end); end INT64_MAX: all of it */
  uint32_t value;  /* NEEDS, MAKES */
} lint_access;

typedef struct lint_program {
  uint32_t name;
  lint_event *event;
  lint_access *access;
  lint_extra *extra;
  uint32_t *hint; /* of each event: the value that its message carries, as far as that is said */
  int64_t first_record; /* of a dump: the number of its first entry */
  bool is_there;        /* of a dump: it was given */
  size_t n, cap, n_access, cap_access, n_extra, cap_extra;
} lint_program;

/* ---- who runs them ---- */

typedef struct lint_axis {
  uint32_t name;
  int64_t size;
} lint_axis;

/* How events name a group: explicitly, or by axes of the mesh. */
typedef struct lint_group_ref {
  uint32_t name;
  bool defined;
  const int64_t *rank;
  size_t n_ranks;
  uint32_t axes; /* a bit for each axis; 0: explicit */
} lint_group_ref;

typedef struct lint_group {
  uint32_t name;
  uint32_t *member; /* procs, ascending */
  size_t n, size;   /* size: of ranks, where a proc stands for several */
  bool by_axes;
} lint_group;

typedef struct lint_offset {
  int64_t by[LINT_MAX_AXES];
} lint_offset;

typedef struct lint_proc {
  const lint_program *prog;
  uint32_t rank; /* the lowest that it stands for */
  uint32_t n_ranks;
  uint32_t *group; /* of each reference: an instance, LINT_NONE where it is no member */
  uint32_t *meet;  /* of each event: an index into lint_trace.meet, LINT_NONE: it meets nobody */
} lint_proc;

typedef struct lint_at {
  uint32_t proc, event;
} lint_at;

/* Events that complete together: a send and its receive, a collective of all members. */
typedef struct lint_meet {
  size_t first; /* into lint_trace.member */
  uint32_t n;   /* those that are there */
  bool faulty;  /* somebody is missing, or they do not fit: it completes never */
} lint_meet;

typedef enum lint_form { LINT_EVENTS, LINT_TABLE, LINT_TABLE_COMMS, LINT_RECORDER } lint_form;
typedef enum lint_backend { LINT_ANY, LINT_NCCL, LINT_GLOO, LINT_MPI } lint_backend;

typedef struct lint_trace {
  iso_arena arena;
  lint_names names;
  lint_form form;
  lint_backend backend;
  const char *path;
  bool may_be_cut; /* a table whose last line has no end, and of which no size is said */
  int64_t world, stages, microbatches; /* stages, microbatches: -1 where there is no pipeline */
  lint_axis axis[LINT_MAX_AXES];
  size_t n_axes;
  lint_program *program;
  size_t n_programs, cap_programs;
  uint32_t *run_by; /* of each rank: its program */
  size_t n_ranks, cap_ranks;
  lint_group_ref *ref;
  size_t n_refs, cap_refs;
  lint_offset *offset;
  size_t n_offsets, cap_offsets;
  /* made by lint_link and the matching */
  lint_proc *proc;
  size_t n_procs;
  uint32_t *proc_of; /* of each rank */
  lint_group *group;
  size_t n_groups, cap_groups;
  lint_meet *meet;
  size_t n_meets, cap_meets;
  lint_at *member;
  size_t n_members, cap_members;
} lint_trace;

void lint_trace_fini(lint_trace *t);
static inline const char *lint_text(const lint_trace *t, uint32_t id) {
  return id ? t->names.text[id] : "";
}
ISO_MUST_USE iso_code lint_no_memory(iso_error *err);

/* ---- readers, by lint_run ---- */

ISO_MUST_USE iso_code lint_read_events(lint_trace *t, const char *path, iso_error *err);
ISO_MUST_USE iso_code lint_read_table(lint_trace *t, const char *path, const lint_options *o,
                                      iso_error *err);

/* A new event at the end of a program, zeroed but for members whose "not said" is another value.
 * NULL: no memory. The pointer lasts until the next one. */
lint_event *lint_push(lint_program *p, lint_op op, uint32_t position);
/* The extras of an event, made where it has none. NULL: no memory. */
lint_extra *lint_extras(lint_program *p, lint_event *e);

#endif
