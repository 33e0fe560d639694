/* One event of a JSON document (docs/events.md). */
#include "lint/event_read.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "egraph/base/vec.h"

enum { MAX_HANDLES = 1 << 16 };

typedef enum key {
  K_BUFFER,
  K_COST,
  K_DTYPE,
  K_GROUP,
  K_HANDLE,
  K_IN_SPLITS,
  K_MAKES,
  K_MB,
  K_NAME,
  K_NEEDS,
  K_NUMEL,
  K_ON,
  K_OP,
  K_OPS,
  K_OUT,
  K_OUT_NUMEL,
  K_OUT_SPLITS,
  K_PEER,
  K_READS,
  K_REDUCE,
  K_ROOT,
  K_SOURCE,
  K_STAGE,
  K_STREAM,
  K_TAG,
  K_WRITES,
  N_KEYS
} key;

/* In the order of `key`, which is the alphabet's. */
static const char *const keys[N_KEYS + 1] = {
    "buffer", "cost",   "dtype", "group",  "handle", "in_splits", "makes",     "mb",         "name",
    "needs",  "numel",  "on",    "op",     "ops",    "out",       "out_numel", "out_splits", "peer",
    "reads",  "reduce", "root",  "source", "stage",  "stream",    "tag",       "writes",     NULL};

/* An event while it is read: its keys stand in any order. */
typedef struct draft {
  lint_event e;
  lint_extra x;
  bool has_extra, is_inner;
  uint32_t seen;
  uint32_t on, header; /* header: the batch's place among the program's events */
  uint32_t *handles;   /* where a list is given: the further ones */
  size_t n_handles, cap_handles;
  size_t base; /* of its accesses in r->pending */
} draft;

void lint_keys_init(lint_reader *r) {
  memset(r->first, N_KEYS, sizeof r->first);
  for (unsigned char i = N_KEYS; i-- > 0;) r->first[(unsigned char)keys[i][0]] = i;
}

static key key_of(const lint_reader *r, const char *s) {
  const unsigned char c = (unsigned char)*s;
  if (c >= 128) return N_KEYS;
  for (int i = r->first[c]; i < N_KEYS && keys[i][0] == *s; i++)
    if (strcmp(keys[i], s) == 0) return (key)i;
  return N_KEYS;
}

static iso_code no_memory(lint_reader *r) { return lint_no_memory(r->json.err); }

iso_code lint_token(lint_reader *r, uint32_t *id) {
  lint_trace *t = r->t;
  return lint_intern(&t->names, &t->arena, r->json.str, r->json.n_str, id) ? ISO_OK : no_memory(r);
}

iso_code lint_name(lint_reader *r, uint32_t *id) {
  iso_code c;
  if (lint_json_peek(&r->json) == '"') {
    if ((c = lint_json_string(&r->json))) return c;
    if (r->json.n_str == 0) return lint_json_wrong(&r->json, "a name is empty");
    return lint_token(r, id);
  }
  int64_t v;
  char text[32];
  if ((c = lint_json_int(&r->json, &v))) return c;
  const int n = snprintf(text, sizeof text, "%" PRId64, v);
  return lint_intern(&r->t->names, &r->t->arena, text, (size_t)n, id) ? ISO_OK : no_memory(r);
}

/* PyTorch prints its own as torch.float32. */
static iso_code read_dtype(lint_reader *r, uint32_t *id) {
  static const char prefix[] = "torch.";
  const size_t n = sizeof prefix - 1;
  if (lint_json_peek(&r->json) != '"') return lint_name(r, id);
  const iso_code c = lint_json_string(&r->json);
  if (c) return c;
  const bool torch = r->json.n_str > n && memcmp(r->json.str, prefix, n) == 0;
  if (r->json.n_str == 0) return lint_json_wrong(&r->json, "a name is empty");
  if (!torch) return lint_token(r, id);
  return lint_intern(&r->t->names, &r->t->arena, r->json.str + n, r->json.n_str - n, id)
             ? ISO_OK
             : no_memory(r);
}

iso_code lint_refer(lint_reader *r, uint32_t name, uint32_t *ref) {
  lint_trace *t = r->t;
  if (name >= r->cap_ref_of && !iso_grow(r->ref_of, r->cap_ref_of, name + 1)) return no_memory(r);
  if (r->ref_of[name] == 0) {
    if (!iso_grow(t->ref, t->cap_refs, t->n_refs + 1)) return no_memory(r);
    t->ref[t->n_refs] = (lint_group_ref){.name = name};
    r->ref_of[name] = (uint32_t)++t->n_refs;
  }
  *ref = r->ref_of[name] - 1;
  return ISO_OK;
}

iso_code lint_read_ints(lint_reader *r, const int64_t **out, size_t *n) {
  int64_t *v = NULL;
  size_t len = 0, cap = 0;
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    if (!iso_grow(v, cap, len + 1)) c = no_memory(r);
    else c = lint_json_int(&r->json, &v[len++]);
  }
  int64_t *kept = c ? NULL : iso_arena_alloc(&r->t->arena, (len + 1) * sizeof *kept);
  if (!c && !kept) c = no_memory(r);
  if (!c && len) memcpy(kept, v, len * sizeof *v);
  free(v);
  *out = kept;
  *n = len;
  return c;
}

/* ---- the values of keys ---- */

static iso_code int_between(lint_reader *r, const char *what, int64_t low, int64_t high,
                            int64_t *v) {
  const iso_code c = lint_json_int(&r->json, v);
  if (c || (*v >= low && *v <= high)) return c;
  return lint_json_wrong(&r->json, "%s is %" PRId64 ", out of range", what, *v);
}

static iso_code read_index(lint_reader *r, const char *what, int32_t *out) {
  int64_t v;
  const iso_code c = int_between(r, what, 0, INT32_MAX, &v);
  if (!c) *out = (int32_t)v;
  return c;
}

/* A peer by its distance: {"pp": 1}. Equal ones are kept once. */
static iso_code read_offset(lint_reader *r, int32_t *peer) {
  lint_raw_offset o = {.n = 0};
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    if (o.n == LINT_MAX_AXES) return lint_json_wrong(&r->json, "a peer has too many axes");
    if ((c = lint_token(r, &o.axis[o.n]))) return c;
    if ((c = int_between(r, "an offset", -INT32_MAX, INT32_MAX, &o.by[o.n]))) return c;
    o.n++;
  }
  if (c) return c;
  for (size_t i = 0; i < r->n_raw; i++) {
    if (memcmp(&r->raw[i], &o, sizeof o) != 0) continue;
    *peer = -2 - (int32_t)i;
    return ISO_OK;
  }
  if (r->n_raw == 4096) return lint_json_wrong(&r->json, "more than 4096 relative peers");
  if (!iso_grow(r->raw, r->cap_raw, r->n_raw + 1)) return no_memory(r);
  r->raw[r->n_raw] = o;
  *peer = -2 - (int32_t)r->n_raw++;
  return ISO_OK;
}

/* A group's name, or a list of axes, which stands for the name "dp+tp". */
static iso_code read_group(lint_reader *r, uint32_t *ref) {
  uint32_t name;
  iso_code c;
  if (lint_json_peek(&r->json) != '[') {
    c = lint_name(r, &name);
    return c ? c : lint_refer(r, name, ref);
  }
  char text[256];
  size_t n = 0;
  bool more = false;
  c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    if ((c = lint_json_string(&r->json))) return c;
    if (n + r->json.n_str + 2 > sizeof text)
      return lint_json_wrong(&r->json, "the names of a group's axes are too long");
    n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", n ? "+" : "", r->json.str);
  }
  if (!c && n == 0) c = lint_json_wrong(&r->json, "a group without axes");
  if (!c && !lint_intern(&r->t->names, &r->t->arena, text, n, &name)) c = no_memory(r);
  return c ? c : lint_refer(r, name, ref);
}

static iso_code pend(lint_reader *r, const lint_access *a) {
  if (!iso_grow(r->pending, r->cap_pending, r->n_pending + 1)) return no_memory(r);
  r->pending[r->n_pending++] = *a;
  return ISO_OK;
}

/* A buffer: a name, or {"id": NAME, "at": FIRST, "bytes": N}. */
static iso_code read_buffer(lint_reader *r, lint_access_kind kind) {
  lint_access a = {.kind = kind, .at = 0, .end = INT64_MAX};
  iso_code c;
  if (lint_json_peek(&r->json) != '{') {
    c = lint_name(r, &a.buffer);
    return c ? c : pend(r, &a);
  }
  int64_t bytes = -1;
  bool more = false;
  c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    const char *k = r->json.str;
    if (strcmp(k, "id") == 0) c = lint_name(r, &a.buffer);
    else if (strcmp(k, "at") == 0) c = int_between(r, "at", 0, INT64_MAX / 2, &a.at);
    else if (strcmp(k, "bytes") == 0) c = int_between(r, "bytes", 0, INT64_MAX / 2 - 1, &bytes);
    else c = lint_json_wrong(&r->json, "a buffer has no key \"%s\"", k);
  }
  if (c) return c;
  if (!a.buffer) return lint_json_wrong(&r->json, "a buffer without \"id\"");
  if (bytes >= 0) a.end = a.at + bytes;
  return pend(r, &a);
}

static iso_code read_buffers(lint_reader *r, lint_access_kind kind) {
  if (lint_json_peek(&r->json) != '[') return read_buffer(r, kind);
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) c = read_buffer(r, kind);
  return c;
}

/* {"buffer": "value"} */
static iso_code read_values(lint_reader *r, lint_access_kind kind) {
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    lint_access a = {.kind = kind, .at = 0, .end = INT64_MAX};
    if ((c = lint_token(r, &a.buffer)) || (c = lint_name(r, &a.value))) return c;
    if (!a.buffer) return lint_json_wrong(&r->json, "a buffer's name is empty");
    c = pend(r, &a);
  }
  return c;
}

static iso_code read_handles(lint_reader *r, draft *d) {
  if (lint_json_peek(&r->json) != '[') return lint_name(r, &d->e.handle);
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    uint32_t h;
    if ((c = lint_name(r, &h))) return c;
    if (!d->e.handle) {
      d->e.handle = h;
      continue;
    }
    if (d->n_handles == MAX_HANDLES) return lint_json_wrong(&r->json, "too many handles");
    if (!iso_grow(d->handles, d->cap_handles, d->n_handles + 1)) return no_memory(r);
    d->handles[d->n_handles++] = h;
  }
  return c;
}

static iso_code read_splits(lint_reader *r, const int64_t **v, uint32_t *n) {
  size_t len = 0;
  const iso_code c = lint_read_ints(r, v, &len);
  if (c) return c;
  for (size_t i = 0; i < len; i++)
    if ((*v)[i] < 0) return lint_json_wrong(&r->json, "a split is negative");
  if (len >= LINT_NONE) return lint_json_wrong(&r->json, "too many splits");
  *n = (uint32_t)len;
  return ISO_OK;
}

static iso_code read_op(lint_reader *r, draft *d) {
  iso_code c = lint_json_string(&r->json);
  if (c) return c;
  const lint_op op = lint_op_named(r->json.str);
  if (op == LINT_OPS) return lint_json_wrong(&r->json, "no operation \"%s\"", r->json.str);
  d->e.op = (uint8_t)op;
  return ISO_OK;
}

static iso_code read_ops(lint_reader *r, draft *d, lint_program *p) {
  if (d->is_inner) return lint_json_wrong(&r->json, "a batch within a batch");
  d->header = (uint32_t)p->n;
  if (!lint_push(p, LINT_OP_BATCH, d->e.position)) return no_memory(r);
  bool more = false;
  iso_code c = lint_json_enter(&r->json, '[');
  while (!c && !(c = lint_json_next(&r->json, ']', &more)) && more) {
    const size_t i = p->n;
    if ((c = lint_read_event(r, p, d->e.position))) return c;
    if (lint_op_classify(p->event[i].op) < LINT_P2P)
      return lint_json_wrong(&r->json, "a batch has sends, receives and collectives");
    p->event[i].flags |= LINT_IN_BATCH;
    p->event[i].link = d->header;
  }
  return c;
}

static iso_code extra_value(lint_reader *r, draft *d, key k) {
  lint_extra *x = &d->x;
  d->has_extra = true;
  if (k == K_SOURCE) return lint_name(r, &x->source);
  if (k == K_NAME) return lint_name(r, &x->name);
  if (k == K_ROOT) return int_between(r, "root", 0, INT32_MAX, &x->root);
  if (k == K_IN_SPLITS) return read_splits(r, &x->in_split, &x->n_in);
  if (k == K_OUT_SPLITS) return read_splits(r, &x->out_split, &x->n_out);
  const iso_code c = lint_json_number(&r->json, &x->cost);
  if (c || (x->cost >= 0 && x->cost <= 1e15)) return c;
  return lint_json_wrong(&r->json, "a cost is out of range");
}

static iso_code value(lint_reader *r, draft *d, lint_program *p, key k) {
  lint_event *e = &d->e;
  int64_t v;
  iso_code c;
  switch (k) {
  case K_OP: return read_op(r, d);
  case K_OPS: return read_ops(r, d, p);
  case K_GROUP: return read_group(r, &e->group);
  case K_PEER:
    return lint_json_peek(&r->json) == '{' ? read_offset(r, &e->peer)
                                           : read_index(r, "peer", &e->peer);
  case K_TAG:
    c = int_between(r, "tag", 0, INT32_MAX, &v);
    e->tag = c ? 0 : (int32_t)v;
    return c;
  case K_NUMEL: return int_between(r, "numel", 0, INT64_MAX / 2, &e->numel);
  case K_OUT_NUMEL: return int_between(r, "out_numel", 0, INT64_MAX / 2, &e->out_numel);
  case K_STAGE: return read_index(r, "stage", &e->stage);
  case K_MB: return read_index(r, "mb", &e->mb);
  case K_DTYPE: return read_dtype(r, &e->dtype);
  case K_REDUCE: return lint_name(r, &e->reduce);
  case K_STREAM: return lint_name(r, &e->stream);
  case K_ON: return lint_name(r, &d->on);
  case K_HANDLE: return read_handles(r, d);
  case K_BUFFER: return read_buffers(r, LINT_BUFFER);
  case K_OUT: return read_buffers(r, LINT_OUT);
  case K_READS: return read_buffers(r, LINT_READS);
  case K_WRITES: return read_buffers(r, LINT_WRITES);
  case K_NEEDS: return read_values(r, LINT_NEEDS);
  case K_MAKES: return read_values(r, LINT_MAKES);
  default: return extra_value(r, d, k);
  }
}

/* ---- an event ---- */

/* The members that an operation needs. */
static iso_code complete(lint_reader *r, const draft *d) {
  const lint_op op = d->e.op;
  const char *what = NULL;
  if (!(d->seen & 1u << K_OP)) return lint_json_wrong(&r->json, "an event without \"op\"");
  if ((op == LINT_OP_BATCH) != (d->header != LINT_NONE)) what = "ops";
  else if (lint_op_classify(op) == LINT_P2P && d->e.peer == LINT_NO_PEER) what = "peer";
  else if (op == LINT_OP_WAIT && !d->e.handle) what = "handle";
  else if (op == LINT_OP_STREAM_WAIT && !d->on) what = "on";
  else if (op >= LINT_OP_F && op <= LINT_OP_B && d->e.stage < 0) what = "stage";
  else if (op >= LINT_OP_F && op <= LINT_OP_B && d->e.mb < 0) what = "mb";
  else if (op >= LINT_OP_UNSHARD && op <= LINT_OP_REDUCE_GRAD && d->e.stage < 0) what = "stage";
  if (what && strcmp(what, "ops") == 0)
    return lint_json_wrong(&r->json, "\"ops\" and the operation batch go together");
  if (what) return lint_json_wrong(&r->json, "%s without \"%s\"", lint_op_word(op), what);
  if (d->n_handles && op != LINT_OP_WAIT)
    return lint_json_wrong(&r->json, "only wait takes a list of handles");
  return ISO_OK;
}

/* Move a draft to its place, with its accesses. */
static iso_code settle(lint_reader *r, draft *d, lint_program *p) {
  const size_t n = r->n_pending - d->base;
  if (n > UINT16_MAX) return lint_json_wrong(&r->json, "an event has too many buffers");
  if (p->n_access + n >= LINT_NONE || !iso_grow(p->access, p->cap_access, p->n_access + n + 1))
    return no_memory(r);
  if (n) memcpy(p->access + p->n_access, r->pending + d->base, n * sizeof *p->access);
  r->n_pending = d->base;
  d->e.access = (uint32_t)p->n_access;
  d->e.n_access = (uint16_t)n;
  p->n_access += n;
  if (d->e.stream && strcmp(lint_text(r->t, d->e.stream), "main") == 0) d->e.stream = 0;
  if (d->e.op == LINT_OP_STREAM_WAIT)
    d->e.link = strcmp(lint_text(r->t, d->on), "main") == 0 ? 0 : d->on;
  lint_event *e;
  if (d->header != LINT_NONE) {
    e = &p->event[d->header];
    d->e.link = (uint32_t)(p->n - d->header - 1);
  } else if (!(e = lint_push(p, d->e.op, d->e.position))) {
    return no_memory(r);
  }
  *e = d->e;
  if (!d->has_extra) return ISO_OK;
  lint_extra *x = lint_extras(p, e);
  if (!x) return no_memory(r);
  *x = d->x;
  return ISO_OK;
}

/* A wait for several handles is as many waits. */
static iso_code further_waits(lint_reader *r, const draft *d, lint_program *p) {
  for (size_t i = 0; i < d->n_handles; i++) {
    const lint_event *first = &p->event[p->n - 1];
    const uint32_t extra = first->extra, stream = first->stream;
    lint_event *e = lint_push(p, LINT_OP_WAIT, d->e.position);
    if (!e) return no_memory(r);
    e->handle = d->handles[i];
    e->extra = extra;
    e->stream = stream;
  }
  return ISO_OK;
}

iso_code lint_read_event(lint_reader *r, lint_program *p, uint32_t position) {
  draft d = {.e = LINT_UNSAID_EVENT(position),
             .x = LINT_UNSAID_EXTRA,
             .is_inner = r->n_open > 0,
             .header = LINT_NONE,
             .base = r->n_pending};
  bool more = false;
  r->n_open++;
  iso_code c = lint_json_enter(&r->json, '{');
  while (!c && !(c = lint_json_next(&r->json, '}', &more)) && more) {
    const key k = key_of(r, r->json.str);
    if (k == N_KEYS) c = lint_json_wrong(&r->json, "an event has no key \"%s\"", r->json.str);
    else if (d.seen & 1u << k) c = lint_json_wrong(&r->json, "\"%s\" is there twice", keys[k]);
    else c = value(r, &d, p, k);
    d.seen |= k < N_KEYS ? 1u << k : 0;
  }
  r->n_open--;
  if (!c) c = complete(r, &d);
  if (!c) c = settle(r, &d, p);
  if (!c) c = further_waits(r, &d, p);
  free(d.handles);
  return c;
}
