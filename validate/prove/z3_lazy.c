#include "validate/prove/z3_lazy.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "validate/validate.h"

#ifndef Z3_LIBRARY
#define Z3_LIBRARY "libz3.so"
#endif

val_z3 z3;

static bool loaded;

static void load(void) {
  const char *given = getenv("ISOMER_LIBZ3"); /* a Python's z3-solver has one of its own */
  if (given == NULL || *given == '\0') given = Z3_LIBRARY;
  void *lib = dlopen(given, RTLD_NOW | RTLD_LOCAL);
  if (!lib) return;
  bool all = true;
  /* POSIX has functions come as pointers to void. */
#define LOOK_UP(name) all &= (*(void **)&z3.name = dlsym(lib, "Z3_" #name)) != NULL;
  VAL_Z3_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
  loaded = all;
}

/* Load it, once; from any thread. Returns: false where it, or one of the functions, is not there.
 */
static bool z3_load(void) {
  static pthread_once_t once = PTHREAD_ONCE_INIT;
  return pthread_once(&once, load) == 0 && loaded;
}

static void on_error(Z3_context z, Z3_error_code e) {
  (void)z;
  (void)e;
}

Z3_context val_z3_context(void) {
  Z3_config cfg = z3_load() ? z3.mk_config() : NULL;
  if (!cfg) return NULL;
  Z3_context z = z3.mk_context(cfg);
  z3.del_config(cfg);
  if (z) z3.set_error_handler(z, on_error);
  return z;
}

enum { BACKSTOP_MS = 600000 };

static double now_ms(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

char *val_z3_answers(const char *text, uint64_t rlimit, bool *overran) {
  const double from = now_ms();
  const Z3_context z = val_z3_context();
  char limits[96];
  *overran = false;
  if (!z) return NULL;
  snprintf(limits, sizeof limits, "(set-option :timeout %d)(set-option :rlimit %llu)",
           (int)BACKSTOP_MS, (unsigned long long)rlimit);
  (void)z3.eval_smtlib2_string(z, limits);
  const char *r = z3.eval_smtlib2_string(z, text);
  char *copy = r ? strdup(r) : NULL;
  *overran =
      now_ms() - from >= BACKSTOP_MS; /* its answers do not say which of them the clock ended */
  z3.del_context(z);
  return copy;
}

void val_z3_limit(Z3_context z, Z3_solver s, uint64_t rlimit) {
  const Z3_params p = z3.mk_params(z);
  z3.params_inc_ref(z, p);
  z3.params_set_uint(z, p, z3.mk_string_symbol(z, "rlimit"),
                     rlimit > UINT32_MAX ? UINT32_MAX : (unsigned)rlimit);
  z3.params_set_uint(z, p, z3.mk_string_symbol(z, "timeout"), BACKSTOP_MS);
  z3.solver_set_params(z, s, p);
  z3.params_dec_ref(z, p);
}

bool val_z3_overran(Z3_context z, Z3_solver s) {
  const char *why = z3.solver_get_reason_unknown(z, s);
  return why && strcmp(why, "timeout") == 0; /* "canceled" is what the end of the rlimit says */
}

void val_z3_version(char *out, size_t n) {
  unsigned major, minor, build, revision;
  if (!z3_load()) {
    snprintf(out, n, "not found");
    return;
  }
  z3.get_version(&major, &minor, &build, &revision);
  snprintf(out, n, "%u.%u.%u", major, minor, build);
}
