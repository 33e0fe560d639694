/* The engine: finds and opens the libtorch shim, runs calls and whole terms.
 *
 * Nothing is loaded before the first call. The shim is looked for in $ISOMER_SHIM_DIR if that is
 * set, else beside the program and in the folders above it (tests lie below the build folder).
 * Users' libraries run constructors when they are opened, and a second definition of an operator
 * aborts there: a child process opens them first, so that only the child dies.
 *
 * A term is evaluated bottom-up, each shared subterm (same pointer) once; calls go to the shim
 * flat, with literals and variables only. */
#include <dlfcn.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "egraph/base/arena.h"
#include "rules/operators.h"
#include "egraph/base/hash.h"
#include "egraph/base/vec.h"
#include "validate/branch/choice_int.h"
#include "validate/branch/range.h"
#include "validate/exec/unchecked.h"
#include "validate/exec/engine_int.h"
#include "validate/exec/helper.h"
#include "validate/exec/narrow_kernels.h"
#include "validate/prove/prove.h"
#include "validate/exec/shim.h"
#include "validate/validate.h"

enum {
  PATH_BYTES = 4096,
  FOLDERS_ABOVE = 3,
  MAX_RESULTS = 1 << 16, /* of one operator: room, not a habit */
  MAX_DEPTH = 8000,      /* of a term: each level costs some hundred bytes of stack */
  LOAD_SECONDS = 120     /* a library that takes longer to open is hung */
};

struct val_engine {
  val_options o;
  char *device;
  char **ops;
  rule_schemas *schemas;
  const shim_api *api; /* NULL until loaded */
  iso_error why;       /* why loading failed: asked again, the answer is the same */
  iso_error lost;      /* how the device failed: from then on no call is run */
  char folder[PATH_BYTES];
  helper *helper;     /* NULL: none asked for */
  rule_tensor **room; /* MAX_RESULTS, for val_eval: made once, it is half a megabyte */
};

val_options val_options_default(void) {
  return (val_options){
      .seed = 0, .n_samples = 24, .z3_rlimit = 5000000, .rel_tol = 1e-9, .device = "cpu"};
}

iso_code val_new(const val_options *o, rule_schemas *schemas, val_engine **out, iso_error *err) {
  val_engine *e = calloc(1, sizeof *e);
  if (e == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  e->o = o != NULL ? *o : val_options_default();
  e->schemas = schemas;
  e->device = strdup(e->o.device != NULL ? e->o.device : "cpu");
  e->ops = calloc(e->o.n_ops + 1, sizeof *e->ops);
  bool ok = e->device != NULL && e->ops != NULL;
  ok = ok && (e->o.scratch = sc_scratch_new()) != NULL;
  if (e->o.helper != NULL) ok = ok && (e->helper = helper_new(e->o.helper)) != NULL;
  e->o.helper = NULL; /* borrowed no longer */
  for (size_t i = 0; ok && i < e->o.n_ops; i++) ok = (e->ops[i] = strdup(e->o.ops[i])) != NULL;
  if (!ok) {
    val_free(e);
    return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  e->o.device = e->device;
  e->o.ops = (const char *const *)e->ops;
  *out = e;
  return ISO_OK;
}

void val_free(val_engine *e) {
  if (e == NULL) return;
  for (size_t i = 0; e->ops != NULL && i < e->o.n_ops; i++) free(e->ops[i]);
  free(e->ops);
  sc_scratch_free(e->o.scratch);
  free(e->device);
  free(e->room);
  helper_free(e->helper);
  free(e); /* libtorch stays: unloading it is not supported */
}

const val_options *val_engine_options(const val_engine *e) { return &e->o; }
rule_schemas *val_engine_schemas(val_engine *e) { return e->schemas; }

/* ---- loading ---- */

static bool library_in(const char *folder, const char *name, char path[PATH_BYTES + 64]) {
  int n = snprintf(path, PATH_BYTES + 64, "%s/%s", folder, name);
  return n > 0 && n < PATH_BYTES + 64 && access(path, R_OK) == 0;
}

/* Whether the shim lies in `folder`, or in the lib/isomer below it, where an installed program's
 * libraries are; `folder` is then where. */
static bool shim_below(char folder[PATH_BYTES]) {
  char path[PATH_BYTES + 64];
  if (library_in(folder, "libisomer_shim.so", path)) return true;
  size_t n = strlen(folder);
  if (n + sizeof "/lib/isomer" > PATH_BYTES) return false;
  strcpy(folder + n, "/lib/isomer");
  if (library_in(folder, "libisomer_shim.so", path)) return true;
  folder[n] = '\0';
  return false;
}

/* Sets e->folder to where the shim is. */
static bool find_folder(val_engine *e) {
  char path[PATH_BYTES + 64];
  const char *given = getenv("ISOMER_SHIM_DIR");
  if (given != NULL && *given != '\0') {
    snprintf(e->folder, sizeof e->folder, "%s", given);
    return library_in(e->folder, "libisomer_shim.so", path);
  }
  ssize_t n = readlink("/proc/self/exe", e->folder, sizeof e->folder - 1);
  if (n <= 0) return false;
  e->folder[n] = '\0';
  for (int up = 0; up <= FOLDERS_ABOVE; up++) {
    char *slash = strrchr(e->folder, '/');
    if (slash == NULL || slash == e->folder) return false;
    *slash = '\0';
    if (shim_below(e->folder)) return true;
  }
  return false;
}

/* In the child: open all that the parent is going to open. `at` tells the parent how far it came.
 * Does not return. */
static void open_all_and_exit(val_engine *e, volatile size_t *at) {
  char path[PATH_BYTES + 64];
  alarm(LOAD_SECONDS);
  library_in(e->folder, "libisomer_shim.so", path);
  if (dlopen(path, RTLD_NOW | RTLD_GLOBAL) == NULL)
    _exit(0); /* the parent fails there too, and says why */
  for (*at = 0; *at < e->o.n_ops; ++*at)
    if (dlopen(e->ops[*at], RTLD_NOW | RTLD_GLOBAL) == NULL) _exit(0);
  if (library_in(e->folder, "libisomer_kernels.so", path))
    (void)dlopen(path, RTLD_NOW | RTLD_GLOBAL);
  _exit(0);
}

/* The line of a dying library's stderr that says most. Changes `text`. */
static const char *last_words(char *text) {
  char *what = strstr(text, "what():");
  char *line = what != NULL ? what + strlen("what():") : text;
  line += strspn(line, " \n");
  line[strcspn(line, "\n")] = '\0';
  return line;
}

/* Whether users' libraries can be opened without ending the process. */
static iso_code rehearse(val_engine *e, iso_error *err) {
  size_t *at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED) return iso_fail(err, ISO_NOMEM, "out of memory");
  int pipe_fd[2] = {-1, -1};
  pid_t child = pipe(pipe_fd) == 0 ? fork() : -1;
  if (child == 0) {
    dup2(pipe_fd[1], STDERR_FILENO);
    dup2(pipe_fd[1], STDOUT_FILENO);
    close(pipe_fd[0]);
    close(pipe_fd[1]);
    open_all_and_exit(e, at);
  }
  if (pipe_fd[1] >= 0) close(pipe_fd[1]);
  iso_code code = ISO_OK;
  if (child < 0) {
    code = iso_fail(err, ISO_IO, "cannot start a process to try --ops libraries in");
  } else {
    char text[4096], more[512];
    size_t len = 0;
    for (ssize_t n; (n = read(pipe_fd[0], len + 1 < sizeof text ? text + len : more,
                              len + 1 < sizeof text ? sizeof text - 1 - len : sizeof more)) > 0;)
      if (len + 1 < sizeof text) len += (size_t)n;
    text[len] = '\0';
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      bool hung = WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM;
      code = iso_fail(err, ISO_USAGE, "%s: %s when loaded: %s",
                      *at < e->o.n_ops ? e->ops[*at] : "libtorch", hung ? "hangs" : "aborts",
                      last_words(text));
    }
  }
  if (pipe_fd[0] >= 0) close(pipe_fd[0]);
  munmap(at, sizeof *at);
  return code;
}

static iso_code open_shim(val_engine *e, const shim_api **out, iso_error *err) {
  char path[PATH_BYTES + 64];
  if (!library_in(e->folder, "libisomer_shim.so", path))
    return iso_fail(err, ISO_UNSUPPORTED, "%s cannot be read", path);
  /* Global: users' libraries need not name libtorch. Lazy: of libtorch's 43,000 functions few are
   * called, and binding all took a twentieth of a comparison; the shim itself is linked to be bound
   * at once, so that a function that another version lacks is reported here. */
  void *lib = dlopen(path, RTLD_LAZY | RTLD_GLOBAL);
  if (lib == NULL)
    return iso_fail(err, ISO_UNSUPPORTED, "libtorch cannot be loaded: %s", dlerror());
  shim_entry entry;
  void *symbol = dlsym(lib, "isomer_shim");
  memcpy(&entry, &symbol,
         sizeof entry); /* ISO C has no cast from an object to a function pointer */
  if (symbol == NULL || entry()->abi != SHIM_ABI)
    return iso_fail(err, ISO_UNSUPPORTED, "%s is of another version of this program", path);
  *out = entry();
  return ISO_OK;
}

static iso_code load_now(val_engine *e, iso_error *err) {
  static const shim_hooks hooks = {rule_tensor_wrap, rule_tensor_ref, rule_tensor_unref,
                                   rule_memory_take, rule_memory_give};
  if (!find_folder(e))
    return iso_fail(err, ISO_UNSUPPORTED,
                    "there is no libisomer_shim.so: built without libtorch, or "
                    "isomer-build-shim has not been run");
  iso_code code = e->o.n_ops > 0 ? rehearse(e, err) : ISO_OK;
  const shim_api *api = NULL;
  if (code == ISO_OK) code = open_shim(e, &api, err);
  if (code == ISO_OK) code = api->init(&hooks, e->device, err);
  for (size_t i = 0; code == ISO_OK && i < e->o.n_ops; i++) code = api->load(e->ops[i], err);
  char path[PATH_BYTES + 64]; /* behind users' libraries: it leaves alone what they define */
  if (code == ISO_OK && library_in(e->folder, "libisomer_kernels.so", path))
    code = api->load(path, err);
  if (code == ISO_OK) e->api = api;
  return code;
}

static iso_code load(val_engine *e, iso_error *err) {
  if (e->api != NULL) return ISO_OK;
  if (e->why.code == ISO_OK) {
    iso_code code = load_now(e, &e->why);
    if (code == ISO_OK) return ISO_OK;
    e->why.code = code;
  }
  return iso_fail(err, e->why.code, "%s", e->why.msg);
}

iso_code val_torch_version(val_engine *e, const char **out, iso_error *err) {
  iso_code code = load(e, err);
  if (code == ISO_OK) *out = e->api->version();
  return code;
}

iso_code val_torch_schema(val_engine *e, const char *op, char **out, iso_error *err) {
  iso_code code = load(e, err);
  if (code != ISO_OK) return code;
  *out = e->api->schema(op);
  return ISO_OK;
}

/* ---- one call ---- */

static double coarsest(const rule_term *t, rule_tensor *const *bind) {
  if (t->kind == RULE_VAR) return bind[t->u.i] == NULL ? 0 : bind[t->u.i]->coarse;
  double most = 0;
  for (uint32_t i = 0; i < t->n; i++) most = fmax(most, coarsest(t->child[i], bind));
  return most;
}

/* A result of numbers that are off is off itself, and so is one whose operator is narrow inside. */
static void carry_coarse(const rule_term *call, rule_tensor *const *bind, rule_tensor **out,
                         size_t n) {
  double given = coarsest(call, bind);
  if (rule_operator_of(call->u.s)->narrow) given = fmax(given, narrow_tolerance(RULE_F32));
  for (size_t k = 0; k < n; k++)
    if (out[k]->coarse < given) out[k]->coarse = given;
}

/* A view of other elements than there are is refused in libtorch's words, and before it: sizes that
 * fit are found by trial, and an exception costs as much as many calls. */
static iso_code refuse_view(const rule_term *call, rule_tensor *const *bind, iso_error *err) {
  const rule_operator *o = rule_operator_of(call->u.s);
  if (!o->sizes || !o->rearranges || o->strided || call->n != 2 ||
      call->child[0]->kind != RULE_VAR || call->child[1]->kind != RULE_LIST)
    return ISO_OK;
  const rule_term *list = call->child[1];
  const rule_tensor *x = bind[call->child[0]->u.i];
  const int64_t numel = x ? x->numel : -1;
  char text[160] = "";
  size_t n = 0;
  int64_t product = 1;
  for (uint32_t i = 0; i < list->n; i++) {
    const rule_term *size = list->child[i];
    if (size->kind != RULE_INT || size->u.i < 0 ||
        __builtin_mul_overflow(product, size->u.i, &product) || n >= sizeof text)
      return ISO_OK;
    n += (size_t)snprintf(text + n, sizeof text - n, i ? ", %lld" : "%lld", (long long)size->u.i);
  }
  return !x || product == numel || n >= sizeof text
             ? ISO_OK
             : iso_fail(err, ISO_TORCH, "%s: shape '[%s]' is invalid for input of size %lld",
                        call->u.s, text, (long long)numel);
}

/* parameters: those of rule_oracle.call. */
iso_code val_call(val_engine *e, const rule_term *call, rule_tensor *const *bind, unsigned flags,
                  rule_tensor **out, size_t cap, size_t *n_out, iso_error *err) {
  if (call == NULL || call->kind != RULE_OP || rule_is_getitem(call->u.s))
    return iso_fail(err, ISO_USAGE, "not a call of an operator");
  iso_code code = load(e, err);
  if (code != ISO_OK) return code;
  if (e->lost.code != ISO_OK) return iso_fail(err, ISO_DEVICE, "%s", e->lost.msg);
  const bool float64 = (flags & VAL_FLOAT64) != 0;
  const char *unfit = val_unfit(call, bind);
  if (unfit) return iso_fail(err, ISO_TORCH, "%s: %s", call->u.s, unfit);
  if ((code = refuse_view(call, bind, err)) != ISO_OK) return code;
  code = e->api->call(call, bind, float64, out, cap, n_out, err);
  if (code == ISO_UNSUPPORTED && e->helper != NULL && !rule_is_aten(call->u.s))
    code = helper_call(e->helper, call, bind, float64, out, cap, n_out, err);
  if (code == ISO_OK && float64) carry_coarse(call, bind, out, *n_out);
  if (code == ISO_DEVICE)
    iso_fail(&e->lost, ISO_DEVICE, "%s", err != NULL ? err->msg : "the device failed");
  return code;
}

const char *val_lost(const val_engine *e) { return e->lost.code == ISO_OK ? NULL : e->lost.msg; }

/* ---- terms ---- */

/* The results of an operator that was run. */
typedef struct results {
  const rule_term *term; /* the key; NULL in an empty slot */
  rule_tensor **out;
  size_t n;
} results;

typedef struct eval {
  val_engine *e;
  const rule_term *root; /* of which all calls are parts */
  rule_tensor *const *bind;
  unsigned flags;
  iso_arena arena;
  results *slot; /* open addressing by pointer; order never shows */
  size_t n_slots, n_used;
  unsigned depth;
  val_probe *probe;  /* NULL: not asked for */
  val_ranges ranges; /* where branches are noted */
} eval;

static size_t slot_of(const eval *v, const rule_term *t) {
  size_t i = (size_t)iso_hash(&t, sizeof t, 0) & (v->n_slots - 1);
  while (v->slot[i].term != NULL && v->slot[i].term != t) i = (i + 1) & (v->n_slots - 1);
  return i;
}

static bool remember(eval *v, results r) {
  if (2 * (v->n_used + 1) > v->n_slots) {
    results *old = v->slot;
    size_t n_old = v->n_slots, n = n_old ? 2 * n_old : 64;
    results *fresh = calloc(n, sizeof *fresh);
    if (fresh == NULL) return false;
    v->slot = fresh;
    v->n_slots = n;
    for (size_t i = 0; i < n_old; i++)
      if (old[i].term != NULL) v->slot[slot_of(v, old[i].term)] = old[i];
    free(old);
  }
  v->slot[slot_of(v, r.term)] = r;
  v->n_used++;
  return true;
}

static iso_code eval_op(eval *v, const rule_term *t, const results **out, iso_error *err);

/* One tensor: of a variable, or of an operator's one result, or of a projection. Borrowed. */
static iso_code eval_tensor(eval *v, const rule_term *t, rule_tensor **out, iso_error *err) {
  if (t->kind == RULE_VAR) {
    if (v->bind[t->u.i] == NULL)
      return iso_fail(err, ISO_USAGE, "variable %" PRId64 " has no value", t->u.i);
    *out = v->bind[t->u.i];
    return ISO_OK;
  }
  if (t->kind != RULE_OP)
    return iso_fail(err, ISO_USAGE, "a literal stands where a tensor is needed");
  const results *r = NULL;
  int64_t k = 0;
  bool projected = rule_is_getitem(t->u.s);
  if (projected) {
    if (t->n != 2 || t->child[0]->kind != RULE_OP || rule_is_getitem(t->child[0]->u.s) ||
        t->child[1]->kind != RULE_INT)
      return iso_fail(err, ISO_USAGE, "getitem takes an operator and an index");
    k = t->child[1]->u.i;
    t = t->child[0];
  }
  iso_code code = eval_op(v, t, &r, err);
  if (code != ISO_OK) return code;
  if (!projected && r->n != 1)
    return iso_fail(err, ISO_USAGE, "%s has %zu results, and is not projected by getitem", t->u.s,
                    r->n);
  if (k < 0 || (uint64_t)k >= r->n)
    return iso_fail(err, ISO_USAGE, "%s has %zu results, and getitem asks for %" PRId64, t->u.s,
                    r->n, k);
  *out = r->out[k];
  return ISO_OK;
}

/* `t` as an argument of a flat call: its tensors are appended to `bind` and become variables. */
static iso_code flatten(eval *v, const rule_term *t, rule_tensor ***bind, size_t *n, size_t *cap,
                        const rule_term **out, iso_error *err) {
  const rule_term *flat = t;
  if (t->kind == RULE_OP || t->kind == RULE_VAR) {
    rule_tensor *x = NULL;
    iso_code code = eval_tensor(v, t, &x, err);
    if (code != ISO_OK) return code;
    if (!iso_grow(*bind, *cap, *n + 1)) return iso_fail(err, ISO_NOMEM, "out of memory");
    (*bind)[*n] = x;
    flat = rule_var(&v->arena, (uint32_t)(*n)++);
  } else if (t->kind == RULE_LIST) {
    const rule_term **child = iso_arena_alloc(&v->arena, (t->n + 1) * sizeof *child);
    if (child == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
    for (uint32_t i = 0; i < t->n; i++) {
      iso_code code = flatten(v, t->child[i], bind, n, cap, &child[i], err);
      if (code != ISO_OK) return code;
    }
    flat = rule_list(&v->arena, child, t->n);
  }
  if (flat == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  *out = flat;
  return ISO_OK;
}

static bool holds(const rule_term *t, const rule_term *part) {
  if (rule_term_eq(t, part)) return true;
  for (uint32_t i = 0; i < t->n; i++)
    if (holds(t->child[i], part)) return true;
  return false;
}

/* Which branches the call took, and in which range its result lies. Errors: ISO_NOMEM, and the
 * results are let go. */
static iso_code note_branches(eval *v, size_t at, const rule_term *t, const val_ran *ran,
                              size_t shown, iso_error *err) {
  val_range *in = iso_arena_alloc(&v->arena, (ran->n + 1) * sizeof *in);
  if (in) val_ranges_in(&v->ranges, ran->bind, ran->n, in);
  if (!in || !val_ranges_note(&v->ranges, ran->call, ran->bind, in, ran->n, ran->out, ran->n_out)) {
    for (size_t i = 0; i < ran->n_out; i++) rule_tensor_unref(ran->out[i]);
    return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  if (val_reads_result(v->root, t, shown)) val_cover_note(v->probe->cover, at, t, ran, in, shown);
  return ISO_OK;
}

/* A number that the results of all but a few operators have no more elements than. */
static double most_by_products(const rule_term *t, rule_tensor *const *bind) {
  double all = 1;
  if (t->kind == RULE_INT) return fmax(1, fabs((double)t->u.i));
  if (t->kind == RULE_VAR) return fmax(1, (double)bind[t->u.i]->numel);
  for (uint32_t i = 0; i < t->n; i++) all *= most_by_products(t->child[i], bind);
  return all;
}

/* Whether a call would make more elements than a probe admits: then the memory that it asks for is
 * not to be had, or dear. */
static bool makes_too_much(eval *v, const rule_term *call, rule_tensor *const *bind) {
  const val_probe *p = v->probe;
  const bool float64 = (v->flags & VAL_FLOAT64) != 0;
  int64_t elements = 0;
  iso_error ignored;
  if (!p || p->most <= 0 || most_by_products(call, bind) <= (double)p->most) return false;
  if (load(v->e, &ignored) != ISO_OK) return false;
  return v->e->api->measure(call, bind, float64, &elements, &ignored) == ISO_OK &&
         elements > p->most;
}

static iso_code run_op(eval *v, const rule_term *t, rule_tensor ***bind, results *r,
                       iso_error *err) {
  size_t n = 0, cap = 0;
  const rule_term **child = iso_arena_alloc(&v->arena, (t->n + 1) * sizeof *child);
  if (child == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  for (uint32_t i = 0; i < t->n; i++) {
    iso_code code = flatten(v, t->child[i], bind, &n, &cap, &child[i], err);
    if (code != ISO_OK) return code;
  }
  const rule_term *call = rule_op(&v->arena, t->u.s, child, t->n);
  if (call == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
  if (makes_too_much(v, call, *bind))
    return iso_fail(err, ISO_UNSUPPORTED, "the results have too many elements");
  rule_tensor **room = v->e->room;
  iso_code code = v->probe != NULL && v->probe->noise != NULL
                      ? val_probe_blur(v->probe, call, *bind, n, err)
                      : ISO_OK;
  if (code == ISO_OK) code = val_call(v->e, call, *bind, v->flags, room, MAX_RESULTS, &r->n, err);
  const size_t at = v->probe != NULL ? v->probe->n_run : 0;
  if (code == ISO_OK && v->probe != NULL && v->probe->slip != NULL && v->probe->slip->at == at)
    code = val_slip_apply(v->probe->slip, call, *bind, n, room, r->n, err);
  const bool tied = v->probe != NULL && v->probe->tied;
  if (code == ISO_OK && v->probe != NULL)
    code = val_probe_note(v->probe, call, *bind, n, room, r->n, err);
  const size_t shown = code == ISO_OK ? val_shown_result(call, room, r->n) : 0;
  if (v->probe != NULL && v->probe->tied && !tied &&
      ((v->probe->other && holds(v->probe->other, t)) || !val_reads_result(v->root, t, shown)))
    v->probe->tied = false;
  if (code == ISO_OK && v->probe != NULL && v->probe->cover != NULL && r->n > 0)
    code = note_branches(v, at, t, &(val_ran){call, *bind, n, room, r->n}, shown, err);
  if (code == ISO_OK && v->probe != NULL && v->probe->tap != NULL && v->probe->tap->term == t &&
      r->n > 0)
    v->probe->tap->look(v->probe->tap->ctx, call, *bind, n, room[shown]);
  if (code == ISO_OK && v->probe != NULL) val_narrow_note(v->probe, call, *bind, room, r->n);
  if (code == ISO_OK && v->probe != NULL && v->probe->absorbed != NULL && r->n > 0)
    val_absorb_note(v->e, v->probe->absorbed, t, call, *bind, n, room[0]);
  if (v->probe != NULL && v->probe->noise != NULL) val_probe_unblur(*bind, n);
  if (code != ISO_OK) return code;
  r->term = t;
  r->out = malloc((r->n + 1) * sizeof *r->out);
  if (r->out != NULL) memcpy(r->out, room, r->n * sizeof *r->out);
  if (r->out == NULL || !remember(v, *r)) {
    for (size_t i = 0; i < r->n; i++) rule_tensor_unref(room[i]);
    free(r->out);
    return iso_fail(err, ISO_NOMEM, "out of memory");
  }
  return ISO_OK;
}

/* Returns: in `out` the results, borrowed until the next operator is run. */
static iso_code eval_op(eval *v, const rule_term *t, const results **out, iso_error *err) {
  if (v->n_slots == 0 || v->slot[slot_of(v, t)].term == NULL) {
    if (v->depth >= MAX_DEPTH) return iso_fail(err, ISO_LIMIT, "terms are nested too deeply");
    v->depth++;
    rule_tensor **bind = NULL;
    results r = {0};
    iso_code code = run_op(v, t, &bind, &r, err);
    free(bind);
    v->depth--;
    if (code != ISO_OK) return code;
  }
  *out = &v->slot[slot_of(v, t)];
  return ISO_OK;
}

static void eval_free(eval *v) {
  for (size_t i = 0; i < v->n_slots; i++) {
    for (size_t k = 0; k < v->slot[i].n; k++) rule_tensor_unref(v->slot[i].out[k]);
    free(v->slot[i].out);
  }
  free(v->slot);
  free(v->ranges.of);
  iso_arena_fini(&v->arena);
}

static iso_code evaluate(val_engine *e, const rule_term *t, rule_tensor *const *bind,
                         unsigned flags, rule_tensor **out, val_probe *probe, iso_error *err) {
  eval v = {.e = e, .root = t, .bind = bind, .flags = flags, .probe = probe};
  iso_arena_init(&v.arena);
  if (e->room == NULL) e->room = malloc(MAX_RESULTS * sizeof *e->room);
  rule_tensor *x = NULL;
  iso_code code =
      e->room != NULL ? eval_tensor(&v, t, &x, err) : iso_fail(err, ISO_NOMEM, "out of memory");
  if (code == ISO_OK) {
    if (flags & VAL_FLOAT64) code = rule_tensor_to_float64(x, out, err);
    else *out = rule_tensor_ref(x);
  }
  eval_free(&v);
  return code;
}

iso_code val_eval(val_engine *e, const rule_term *t, rule_tensor *const *bind, unsigned flags,
                  rule_tensor **out, iso_error *err) {
  return evaluate(e, t, bind, flags, out, NULL, err);
}

iso_code val_eval_magnitude(val_engine *e, const rule_term *t, rule_tensor *const *bind,
                            unsigned flags, rule_tensor **out, double *magnitude, iso_error *err) {
  val_probe probe = {0};
  iso_code code = evaluate(e, t, bind, flags, out, &probe, err);
  if (code == ISO_OK) *magnitude = probe.magnitude;
  return code;
}

iso_code val_eval_probe(val_engine *e, const rule_term *t, rule_tensor *const *bind,
                        val_probe *probe, rule_tensor **out, iso_error *err) {
  return evaluate(e, t, bind, VAL_FLOAT64, out, probe, err);
}
