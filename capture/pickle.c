/* Files of torch.save: a zip file with a pickle in it and a file for each storage.
 *
 * The pickle is read by a machine for the few opcodes that tensors and plain values need. A global
 * is looked up in a table of known names when it is named, and an unknown one ends the reading
 * there: no object is built, nothing is imported, nothing is called. The machine does not recurse,
 * and each opcode takes memory in proportion to its own bytes, so the pickle's length bounds what
 * it may cost; shared and cyclic values are possible, and whoever walks them has a limit of its
 * own.
 *
 * Source: CPython, Lib/pickletools.py (opcodes); PyTorch, torch/_utils.py and
 * torch/serialization.py (the globals). */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "capture/capture_int.h"
#include "egraph/base/vec.h"

enum { MAX_PICKLE = 1 << 28 }; /* bytes */

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

/* ---- the globals ---- */

typedef enum global {
  ORDERED_DICT,
  SIZE,
  TENSOR_V2,
  TENSOR_V3,
  PARAMETER,
  STORAGE_TYPE,
  UNTYPED,
  DTYPE
} global;

static const struct {
  const char *module, *name;
  global what;
  rule_dtype dtype;
} globals[] = {
    {"collections", "OrderedDict", ORDERED_DICT, 0},
    {"torch", "Size", SIZE, 0},
    {"torch._utils", "_rebuild_tensor_v2", TENSOR_V2, 0},
    {"torch._utils", "_rebuild_tensor_v3", TENSOR_V3, 0},
    {"torch._utils", "_rebuild_parameter", PARAMETER, 0},
    {"torch._utils", "_rebuild_parameter_with_state", PARAMETER,
     0}, /* attributes of the parameter behind the rest */
    {"torch", "DoubleStorage", STORAGE_TYPE, RULE_F64},
    {"torch", "FloatStorage", STORAGE_TYPE, RULE_F32},
    {"torch", "HalfStorage", STORAGE_TYPE, RULE_F16},
    {"torch", "BFloat16Storage", STORAGE_TYPE, RULE_BF16},
    {"torch", "ComplexFloatStorage", STORAGE_TYPE, RULE_C64},
    {"torch", "ComplexDoubleStorage", STORAGE_TYPE, RULE_C128},
    {"torch", "LongStorage", STORAGE_TYPE, RULE_I64},
    {"torch", "IntStorage", STORAGE_TYPE, RULE_I32},
    {"torch", "ShortStorage", STORAGE_TYPE, RULE_I16},
    {"torch", "CharStorage", STORAGE_TYPE, RULE_I8},
    {"torch", "ByteStorage", STORAGE_TYPE, RULE_U8},
    {"torch", "BoolStorage", STORAGE_TYPE, RULE_BOOL},
    {"torch.storage", "UntypedStorage", UNTYPED, RULE_U8},
    {"torch", "float8_e4m3fn", DTYPE, RULE_F8E4M3FN},
    {"torch", "float8_e5m2", DTYPE, RULE_F8E5M2},
    {"torch", "float64", DTYPE, RULE_F64},
    {"torch", "float32", DTYPE, RULE_F32},
    {"torch", "float16", DTYPE, RULE_F16},
    {"torch", "bfloat16", DTYPE, RULE_BF16},
    {"torch", "int64", DTYPE, RULE_I64},
    {"torch", "int32", DTYPE, RULE_I32},
    {"torch", "bool", DTYPE, RULE_BOOL},
};
enum { N_GLOBALS = sizeof globals / sizeof globals[0] };

/* ---- the machine ---- */

typedef struct machine {
  const unsigned char *p, *end;
  iso_arena *arena;
  iso_error *err;
  cap_pickled **stack; /* NULL: a mark */
  size_t n, cap;
  cap_pickled **memo;
  size_t n_memo, cap_memo;
} machine;

static iso_code malformed(const machine *m) {
  return iso_fail(m->err, ISO_FORMAT, "the pickle is malformed");
}

static bool take(machine *m, size_t n, const unsigned char **out) {
  if ((size_t)(m->end - m->p) < n) return false;
  *out = m->p;
  m->p += n;
  return true;
}

/* A little-endian number of n <= 8 bytes. */
static bool number(machine *m, size_t n, uint64_t *out) {
  const unsigned char *b;
  if (!take(m, n, &b)) return false;
  *out = 0;
  memcpy(out, b, n);
  return true;
}

static iso_code push(machine *m, cap_pickled *v) {
  if (!iso_grow(m->stack, m->cap, m->n + 1)) return no_memory(m->err);
  m->stack[m->n++] = v;
  return ISO_OK;
}

static iso_code push_new(machine *m, cap_pickle_kind kind, cap_pickled **out) {
  cap_pickled *v = iso_arena_alloc(m->arena, sizeof *v);
  if (v == NULL) return no_memory(m->err);
  v->kind = kind;
  if (out != NULL) *out = v;
  return push(m, v);
}

static iso_code push_int(machine *m, cap_pickle_kind kind, int64_t i) {
  cap_pickled *v = NULL;
  iso_code code = push_new(m, kind, &v);
  if (code == ISO_OK) v->i = i;
  return code;
}

/* The top of the stack, taken off; NULL where there is none, or a mark. */
static cap_pickled *pop(machine *m) { return m->n > 0 ? m->stack[--m->n] : NULL; }

/* The number of values above the last mark. Returns: false where there is no mark. */
static bool above_mark(const machine *m, size_t *out) {
  for (size_t i = m->n; i-- > 0;)
    if (m->stack[i] == NULL) {
      *out = m->n - i - 1;
      return true;
    }
  return false;
}

static iso_code append(machine *m, cap_pickled *to, cap_pickled *const *from, size_t n) {
  if (to->n + n > to->cap) {
    size_t cap = 2 * (to->n + n);
    const cap_pickled **item = iso_arena_alloc(m->arena, cap * sizeof *item);
    if (item == NULL) return no_memory(m->err);
    if (to->n > 0) memcpy(item, to->item, to->n * sizeof *item);
    to->item = item;
    to->cap = cap;
  }
  for (size_t i = 0; i < n; i++) to->item[to->n++] = from[i];
  return ISO_OK;
}

static iso_code tuple(machine *m, size_t n, size_t marks) {
  if (m->n < n + marks) return malformed(m);
  for (size_t i = m->n - n; i < m->n; i++)
    if (m->stack[i] == NULL) return malformed(m);
  cap_pickled *v = iso_arena_alloc(m->arena, sizeof *v);
  if (v == NULL) return no_memory(m->err);
  v->kind = CAP_PK_TUPLE;
  iso_code code = append(m, v, m->stack + m->n - n, n);
  if (code != ISO_OK) return code;
  m->n -= n + marks;
  return push(m, v);
}

/* n values off the stack, behind the container below them (and below a mark). */
static iso_code extend(machine *m, cap_pickle_kind kind, size_t n, size_t marks) {
  if (m->n < n + marks + 1) return malformed(m);
  cap_pickled *to = m->stack[m->n - n - marks - 1];
  if (to == NULL || to->kind != kind || (kind == CAP_PK_DICT && n % 2 != 0)) return malformed(m);
  iso_code code = append(m, to, m->stack + m->n - n, n);
  m->n -= n + marks;
  return code;
}

static iso_code text(machine *m, size_t length_bytes) {
  uint64_t n;
  const unsigned char *b;
  if (!number(m, length_bytes, &n) || n > (size_t)(m->end - m->p) || !take(m, (size_t)n, &b))
    return malformed(m);
  if (memchr(b, 0, (size_t)n) != NULL)
    return iso_fail(m->err, ISO_FORMAT, "a string of the pickle has a NUL in it");
  cap_pickled *v = NULL;
  iso_code code = push_new(m, CAP_PK_STRING, &v);
  if (code == ISO_OK && (v->s = iso_arena_strndup(m->arena, (const char *)b, (size_t)n)) == NULL)
    code = no_memory(m->err);
  return code;
}

static iso_code memoize(machine *m, uint64_t k) {
  if (m->n == 0 || m->stack[m->n - 1] == NULL || k >= (uint64_t)MAX_PICKLE) return malformed(m);
  if (k > m->n_memo + 4096) return malformed(m); /* pickles number what they keep from 0 on */
  if (k >= m->n_memo) {
    if (!iso_grow(m->memo, m->cap_memo, (size_t)k + 1)) return no_memory(m->err);
    while (m->n_memo <= k) m->memo[m->n_memo++] = NULL;
  }
  m->memo[k] = m->stack[m->n - 1];
  return ISO_OK;
}

static iso_code recall(machine *m, uint64_t k) {
  if (k >= m->n_memo || m->memo[k] == NULL) return malformed(m);
  return push(m, m->memo[k]);
}

static iso_code push_global(machine *m, const char *module, size_t n_module, const char *name,
                            size_t n_name) {
  for (int64_t i = 0; i < N_GLOBALS; i++)
    if (strlen(globals[i].module) == n_module && strlen(globals[i].name) == n_name &&
        memcmp(globals[i].module, module, n_module) == 0 &&
        memcmp(globals[i].name, name, n_name) == 0)
      return push_int(m, CAP_PK_GLOBAL, i);
  return iso_fail(m->err, ISO_FORMAT,
                  "the pickle asks for %.*s.%.*s; nothing but tensors is ever unpickled",
                  n_module < 80 ? (int)n_module : 80, module, n_name < 80 ? (int)n_name : 80, name);
}

/* Two lines: the module and the name. */
static iso_code read_global(machine *m) {
  const char *line[2];
  size_t n[2];
  for (int k = 0; k < 2; k++) {
    const unsigned char *nl = memchr(m->p, '\n', (size_t)(m->end - m->p));
    if (nl == NULL) return malformed(m);
    line[k] = (const char *)m->p;
    n[k] = (size_t)(nl - m->p);
    m->p = nl + 1;
  }
  return push_global(m, line[0], n[0], line[1], n[1]);
}

static iso_code stack_global(machine *m) {
  const cap_pickled *name = pop(m), *module = pop(m);
  if (name == NULL || module == NULL || name->kind != CAP_PK_STRING ||
      module->kind != CAP_PK_STRING)
    return malformed(m);
  return push_global(m, module->s, strlen(module->s), name->s, strlen(name->s));
}

/* ---- tensors ---- */

static bool is(const cap_pickled *v, cap_pickle_kind kind) { return v != NULL && v->kind == kind; }

/* ('storage', a storage type, key, device, number of elements) */
static iso_code persistent(machine *m) {
  const cap_pickled *id = pop(m);
  if (!is(id, CAP_PK_TUPLE) || id->n != 5 || !is(id->item[0], CAP_PK_STRING) ||
      strcmp(id->item[0]->s, "storage") != 0 || !is(id->item[1], CAP_PK_GLOBAL) ||
      !is(id->item[2], CAP_PK_STRING) || !is(id->item[4], CAP_PK_INT))
    return iso_fail(m->err, ISO_FORMAT, "the pickle refers to something that is no storage");
  const global what = globals[id->item[1]->i].what;
  if (what != STORAGE_TYPE && what != UNTYPED) return malformed(m);
  cap_pickled *v = NULL;
  iso_code code = push_new(m, CAP_PK_STORAGE, &v);
  if (code != ISO_OK) return code;
  v->s = id->item[2]->s;
  v->i = id->item[4]->i;
  v->dtype = globals[id->item[1]->i].dtype;
  v->untyped = what == UNTYPED;
  return ISO_OK;
}

static bool ints(const cap_pickled *v, int64_t *out, uint32_t *n) {
  if (!is(v, CAP_PK_TUPLE) || v->n > RULE_MAX_RANK) return false;
  *n = (uint32_t)v->n;
  for (size_t i = 0; i < v->n; i++) {
    if (!is(v->item[i], CAP_PK_INT)) return false;
    out[i] = v->item[i]->i;
  }
  return true;
}

/* (storage, offset, sizes, strides, requires_grad, hooks[, dtype][, metadata]) */
static iso_code rebuild_tensor(machine *m, const cap_pickled *args, bool v3) {
  cap_pickled t = {.kind = CAP_PK_TENSOR}, *v = NULL;
  uint32_t n_strides;
  const size_t least = v3 ? 7 : 6;
  if (args->n < least || args->n > least + 1 || !is(args->item[0], CAP_PK_STORAGE) ||
      !is(args->item[1], CAP_PK_INT) || !ints(args->item[2], t.shape.dim, &t.shape.rank) ||
      !ints(args->item[3], t.stride, &n_strides) || n_strides != t.shape.rank)
    return iso_fail(m->err, ISO_FORMAT, "a tensor of the pickle is malformed");
  if (args->n > least && is(args->item[least], CAP_PK_DICT) && args->item[least]->n > 0)
    return iso_fail(m->err, ISO_UNSUPPORTED,
                    "a tensor of the pickle is conjugated or negated lazily; save a plain one");
  if (args->item[0]->untyped && !v3)
    return iso_fail(m->err, ISO_FORMAT, "a tensor of the pickle has no dtype");
  t.dtype = args->item[0]->dtype;
  if (v3) {
    if (!is(args->item[6], CAP_PK_GLOBAL) || globals[args->item[6]->i].what != DTYPE)
      return malformed(m);
    t.dtype = globals[args->item[6]->i].dtype;
  }
  t.s = args->item[0]->s;
  t.i = args->item[1]->i;
  iso_code code = push_new(m, CAP_PK_TENSOR, &v);
  if (code == ISO_OK) *v = t;
  return code;
}

static iso_code reduce(machine *m) {
  cap_pickled *args = pop(m), *f = pop(m);
  if (!is(args, CAP_PK_TUPLE) || !is(f, CAP_PK_GLOBAL)) return malformed(m);
  switch (globals[f->i].what) {
  case ORDERED_DICT: return args->n == 0 ? push_new(m, CAP_PK_DICT, NULL) : malformed(m);
  case SIZE:
    return args->n == 1 && is(args->item[0], CAP_PK_TUPLE)
               ? push(m, (cap_pickled *)(uintptr_t)args->item[0])
               : malformed(m);
  case TENSOR_V2: return rebuild_tensor(m, args, false);
  case TENSOR_V3: return rebuild_tensor(m, args, true);
  case PARAMETER:
    return (args->n == 3 || args->n == 4) && is(args->item[0], CAP_PK_TENSOR)
               ? push(m, (cap_pickled *)(uintptr_t)args->item[0])
               : malformed(m);
  case STORAGE_TYPE:
  case UNTYPED:
  case DTYPE: break;
  }
  return malformed(m);
}

/* The state of an OrderedDict (a state dict's versions) says nothing of tensors. */
static iso_code build(machine *m) {
  const cap_pickled *state = pop(m);
  return state != NULL && m->n > 0 && is(m->stack[m->n - 1], CAP_PK_DICT) ? ISO_OK : malformed(m);
}

static iso_code long1(machine *m) {
  uint64_t n, bits = 0;
  const unsigned char *b;
  if (!number(m, 1, &n) || n > 8 || !take(m, (size_t)n, &b)) return malformed(m);
  if (n > 0 && b[n - 1] >= 0x80) bits = UINT64_MAX; /* two's complement */
  if (n > 0) memcpy(&bits, b, (size_t)n);
  return push_int(m, CAP_PK_INT, (int64_t)bits);
}

static iso_code binfloat(machine *m) {
  const unsigned char *b;
  cap_pickled *v = NULL;
  if (!take(m, 8, &b)) return malformed(m);
  uint64_t bits = 0;
  for (int i = 0; i < 8; i++) bits = bits << 8 | b[i];
  iso_code code = push_new(m, CAP_PK_FLOAT, &v);
  if (code == ISO_OK) memcpy(&v->f, &bits, 8);
  return code;
}

/* ---- opcodes ---- */

static iso_code with_number(machine *m, size_t n, iso_code (*f)(machine *, uint64_t)) {
  uint64_t k;
  return number(m, n, &k) ? f(m, k) : malformed(m);
}
static iso_code push_unsigned(machine *m, uint64_t k) {
  return push_int(m, CAP_PK_INT, (int64_t)k);
}
static iso_code push_int32(machine *m, uint64_t k) {
  return push_int(m, CAP_PK_INT, (int32_t)(uint32_t)k);
}
static iso_code memoize_next(machine *m) { return memoize(m, m->n_memo); }

static iso_code marked(machine *m, unsigned char op) {
  size_t n;
  if (!above_mark(m, &n)) return malformed(m);
  return op == 't' ? tuple(m, n, 1) : extend(m, op == 'u' ? CAP_PK_DICT : CAP_PK_LIST, n, 1);
}

static iso_code step(machine *m, unsigned char op) {
  const unsigned char *skip;
  switch (op) {
  case 0x80: /* PROTO */
    return take(m, 1, &skip) && *skip >= 2 && *skip <= 5
               ? ISO_OK
               : iso_fail(m->err, ISO_FORMAT, "the pickle is of an unknown protocol");
  case 0x95: /* FRAME */ return take(m, 8, &skip) ? ISO_OK : malformed(m);
  case '(': return push(m, NULL);
  case '}': return push_new(m, CAP_PK_DICT, NULL);
  case ']': return push_new(m, CAP_PK_LIST, NULL);
  case ')': return push_new(m, CAP_PK_TUPLE, NULL);
  case 'N': return push_new(m, CAP_PK_NONE, NULL);
  case 0x88: return push_int(m, CAP_PK_BOOL, 1);
  case 0x89: return push_int(m, CAP_PK_BOOL, 0);
  case 'K': return with_number(m, 1, push_unsigned);
  case 'M': return with_number(m, 2, push_unsigned);
  case 'J': return with_number(m, 4, push_int32);
  case 0x8a: return long1(m);
  case 'G': return binfloat(m);
  case 'X': return text(m, 4);
  case 0x8c: return text(m, 1);
  case 'q': return with_number(m, 1, memoize);
  case 'r': return with_number(m, 4, memoize);
  case 0x94: return memoize_next(m);
  case 'h': return with_number(m, 1, recall);
  case 'j': return with_number(m, 4, recall);
  case 0x85: return tuple(m, 1, 0);
  case 0x86: return tuple(m, 2, 0);
  case 0x87: return tuple(m, 3, 0);
  case 't':
  case 'u':
  case 'e': return marked(m, op);
  case 's': return extend(m, CAP_PK_DICT, 2, 0);
  case 'a': return extend(m, CAP_PK_LIST, 1, 0);
  case 'c': return read_global(m);
  case 0x93: return stack_global(m);
  case 'Q': return persistent(m);
  case 'R': return reduce(m);
  case 'b': return build(m);
  default:
    return iso_fail(m->err, ISO_FORMAT,
                    "the pickle uses opcode 0x%02x, which no tensor needs; nothing but tensors is "
                    "ever unpickled",
                    op);
  }
}

static iso_code run(machine *m, const cap_pickled **out) {
  for (;;) {
    const unsigned char *op;
    if (!take(m, 1, &op)) return malformed(m);
    if (*op == '.') break;
    iso_code code = step(m, *op);
    if (code != ISO_OK) return code;
    /* Marks apart, every value on the stack may be read: extend() and the rest look below it.
     */
  }
  if (m->n != 1 || m->stack[0] == NULL) return malformed(m);
  *out = m->stack[0];
  return ISO_OK;
}

iso_code cap_unpickle(const cap_bytes *b, iso_arena *a, const cap_pickled **out, iso_error *err) {
  if (b->n > MAX_PICKLE)
    return iso_fail(err, ISO_LIMIT, "a pickle of %zu bytes is too large", b->n);
  machine m = {.p = b->at, .end = b->at + b->n, .arena = a, .err = err};
  iso_code code = run(&m, out);
  free(m.stack);
  free(m.memo);
  return code;
}

/* ---- files of torch.save ---- */

struct cap_saved {
  iso_arena arena;
  cap_archive *zip;
  const char *root; /* of the entries, with its slash */
  uint64_t *budget;
  const cap_pickled *value;
};

/* Sets s->root: the path before "data.pkl". */
static iso_code find_root(cap_saved *s, iso_error *err) {
  for (size_t i = 0; i < cap_archive_count(s->zip); i++) {
    const char *name = cap_archive_name(s->zip, i), *slash = strchr(name, '/');
    if (slash != NULL && strcmp(slash, "/data.pkl") == 0) {
      s->root = iso_arena_strndup(&s->arena, name, (size_t)(slash + 1 - name));
      return s->root != NULL ? ISO_OK : no_memory(err);
    }
  }
  return iso_fail(err, ISO_FORMAT, "is no file of torch.save");
}

static iso_code read_part(cap_saved *s, const char *name, cap_bytes **out, iso_error *err) {
  const char *path = iso_arena_printf(&s->arena, "%s%s", s->root, name);
  return path != NULL ? cap_archive_read(s->zip, path, out, err) : no_memory(err);
}

/* Tensors are read as they lie there. */
static iso_code check_byteorder(cap_saved *s, iso_error *err) {
  const char *path = iso_arena_printf(&s->arena, "%sbyteorder", s->root);
  cap_bytes *b = NULL;
  if (path == NULL) return no_memory(err);
  if (!cap_archive_has(s->zip, path)) return ISO_OK;
  iso_code code = cap_archive_read(s->zip, path, &b, err);
  if (code == ISO_OK && (b->n != 6 || memcmp(b->at, "little", 6) != 0))
    code = iso_fail(err, ISO_UNSUPPORTED, "its tensors are not little-endian");
  cap_bytes_unref(b);
  return code;
}

iso_code cap_saved_open(cap_bytes *file, uint64_t *budget, cap_saved **out, iso_error *err) {
  cap_saved *s = calloc(1, sizeof *s);
  cap_bytes *pickle = NULL;
  if (s == NULL) return no_memory(err);
  s->budget = budget;
  iso_arena_init(&s->arena);
  iso_code code = cap_archive_open(file, budget, &s->zip, err);
  if (code == ISO_OK) code = find_root(s, err);
  if (code == ISO_OK) code = check_byteorder(s, err);
  if (code == ISO_OK) code = read_part(s, "data.pkl", &pickle, err);
  if (code == ISO_OK) code = cap_unpickle(pickle, &s->arena, &s->value, err);
  cap_bytes_unref(pickle);
  if (code == ISO_OK) *out = s;
  else cap_saved_close(s);
  return code;
}

void cap_saved_close(cap_saved *s) {
  if (s == NULL) return;
  cap_archive_close(s->zip);
  iso_arena_fini(&s->arena);
  free(s);
}

const cap_pickled *cap_saved_value(const cap_saved *s) { return s->value; }

iso_code cap_saved_tensor(cap_saved *s, const cap_pickled *t, rule_tensor **out, iso_error *err) {
  if (t->kind != CAP_PK_TENSOR) return iso_fail(err, ISO_FORMAT, "is no tensor");
  const char *name = iso_arena_printf(&s->arena, "data/%s", t->s);
  cap_bytes *b = NULL;
  iso_code code = name != NULL ? read_part(s, name, &b, err) : no_memory(err);
  if (code == ISO_OK)
    code = cap_bytes_view(b, &(cap_strided){t->dtype, &t->shape, t->stride, t->i}, s->budget, out,
                          err);
  cap_bytes_unref(b);
  return code;
}
