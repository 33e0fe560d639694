/* needs libtorch. A command of the program, run once for each place of it that allocates, with that
 * place's first calls failing:
 *
 *     out_of_memory [--times N] [--from A] [--every K] [--list] COMMAND ARGUMENT...
 *
 * A place is the program's two innermost return addresses; its calls after the first N (1) are left
 * alone. Each run is a process of its own, forked where the command has run once and libraries are
 * loaded. A run either ends with status 2 and one line that says that there is no memory, or claims
 * no more than the command does when nothing fails. Nothing of the program's own stays allocated.
 * Pieces of arenas fail one by one. */
static void seen(void);
static void taken(void *p);
static void given(void *p);
#define FAIL_ONLY_OURS
#define FAIL_SEEN() seen()
#define FAIL_TAKEN(p) taken(p)
#define FAIL_GIVEN(p) given(p)
#include "tests/support/failalloc.h"

#include <execinfo.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"
#include "egraph/base/arena.h"
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/lsan_interface.h>
#endif

enum { NEVER = 1000000000, SECONDS = 300, FRAMES = 2, PLACES = 1 << 16, BLOCKS = 1 << 22 };

/* ---- pieces of arenas fail one by one ---- */

void *__real_iso_arena_alloc(iso_arena *a, size_t n);
char *__real_iso_arena_strndup(iso_arena *a, const char *s, size_t n);
void *__wrap_iso_arena_alloc(iso_arena *a, size_t n);
char *__wrap_iso_arena_strndup(iso_arena *a, const char *s, size_t n);
char *__wrap_iso_arena_strdup(iso_arena *a, const char *s);
char *__wrap_iso_arena_printf(iso_arena *a, const char *format, ...);

static bool arena_fails(iso_arena *a, const void *caller) {
  if (!fail_now(caller)) return false;
  a->failed = true;
  return true;
}

void *__wrap_iso_arena_alloc(iso_arena *a, size_t n) {
  return arena_fails(a, __builtin_return_address(0)) ? NULL : __real_iso_arena_alloc(a, n);
}
char *__wrap_iso_arena_strndup(iso_arena *a, const char *s, size_t n) {
  return arena_fails(a, __builtin_return_address(0)) ? NULL : __real_iso_arena_strndup(a, s, n);
}
char *__wrap_iso_arena_strdup(iso_arena *a, const char *s) {
  return arena_fails(a, __builtin_return_address(0)) ? NULL
                                                     : __real_iso_arena_strndup(a, s, strlen(s));
}
char *__wrap_iso_arena_printf(iso_arena *a, const char *format, ...) {
  char text[1 << 14];
  va_list v;
  if (arena_fails(a, __builtin_return_address(0))) return NULL;
  va_start(v, format);
  const int n = vsnprintf(text, sizeof text, format, v);
  va_end(v);
  if (n < 0 || (size_t)n >= sizeof text) abort();
  return __real_iso_arena_strndup(a, text, (size_t)n);
}

/* ---- the program's blocks that are alive ---- */

static bool watching; /* not under a sanitizer, which looks for leaks itself */
static void **block;  /* open addressing; what went leaves GONE */
static size_t n_blocks;
static char gone;
#define GONE ((void *)&gone)

static size_t slot_of(const void *p) {
  return (size_t)(((uintptr_t)p >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 42) % BLOCKS;
}
FAIL_UNSEEN static void taken(void *p) {
  if (!watching) return;
  size_t i = slot_of(p);
  while (block[i] && block[i] != GONE) i = (i + 1) % BLOCKS;
  block[i] = p;
  n_blocks++;
}
FAIL_UNSEEN static void given(void *p) {
  if (!watching) return;
  for (size_t i = slot_of(p); block[i]; i = (i + 1) % BLOCKS) {
    if (block[i] != p) continue;
    block[i] = GONE;
    n_blocks--;
    return;
  }
}

/* ---- the places that allocate ---- */

typedef struct place {
  void *at[FRAMES];
  unsigned times;
} place;
typedef struct call {
  long n;
  void *at[FRAMES];
} call;

static place *places; /* while they are listed, else NULL */
static call *calls;
static size_t n_calls;
static unsigned times = 1;

static bool own_code(const void *p) {
  return (const char *)p >= &__executable_start && (const char *)p < &etext;
}

/* Counts down from NEVER while places are listed. */
FAIL_UNSEEN static void seen(void) {
  void *frame[FRAMES + 6], *at[FRAMES] = {NULL};
  if (!places) return;
  const int n = backtrace(frame, FRAMES + 6);
  int k = 0, from = 0;
  while (from < n && !(own_code(frame[from]) && from > 1)) from++; /* this, and the allocator */
  for (int i = from; i < n && k < FRAMES; i++)
    if (own_code(frame[i])) at[k++] = frame[i];
  size_t i = ((uintptr_t)at[0] * 31 + (uintptr_t)at[1]) % PLACES;
  while (places[i].times && memcmp(places[i].at, at, sizeof at) != 0) i = (i + 1) % PLACES;
  memcpy(places[i].at, at, sizeof at);
  if (places[i].times++ >= times || n_calls == PLACES) return;
  calls[n_calls] = (call){.n = NEVER - fail_after};
  memcpy(calls[n_calls++].at, at, sizeof at);
}

/* ---- one run ---- */

typedef struct outcome {
  int status; /* -1: by a signal, or too late */
  char out[1 << 16], err[4096];
  int claims[4];
} outcome;

static int run_command(int argc, char **argv) {
  static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
  } all[] = {{"compare", cmd_compare}, {"check", cmd_check}, {"lint", cmd_lint},
             {"run", cmd_run},         {"show", cmd_show},   {"rules", cmd_rules}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++)
    if (strcmp(argv[0], all[i].name) == 0) return all[i].run(argc, argv);
  fprintf(stderr, "isomer: no command %s\n", argv[0]);
  return CLI_ERROR;
}

/* A crash says where, as list_places does. */
static void crashed(int number) {
  void *frame[24];
  const int n = backtrace(frame, 24);
  fprintf(stderr, "signal %d at", number);
  for (int i = 0; i < n; i++)
    if (own_code(frame[i]))
      fprintf(stderr, " %#lx", (unsigned long)((char *)frame[i] - &__executable_start) - 1);
  fputc('\n', stderr);
  fflush(stderr);
  _exit(92);
}

/* The child's part. Statuses beyond the program's: 90 leaked, 91 nothing failed, 92 crashed. */
static void child(int argc, char **argv, long n, const int fd[2]) {
  alarm(SECONDS);
  for (int i = 0; i < 4; i++) signal((int[]){SIGSEGV, SIGABRT, SIGFPE, SIGBUS}[i], crashed);
  dup2(fd[0], STDOUT_FILENO);
  dup2(fd[1], STDERR_FILENO);
  const size_t before = n_blocks;
#if !defined(__SANITIZE_ADDRESS__)
  watching = true;
#endif
  fail_arm(n);
  int status = run_command(argc, argv);
  const bool failed = fail_disarm();
  watching = false;
  fflush(stdout);
  fflush(stderr);
  if (n_blocks > before) {
    fprintf(stderr, "%zu blocks are left\n", n_blocks - before);
    status = 90;
  }
#if defined(__SANITIZE_ADDRESS__)
  if (__lsan_do_recoverable_leak_check()) status = 90;
#endif
  if (!failed && n < NEVER) status = 91;
  fflush(stderr);
  _exit(status);
}

static void read_all(int fd, char *text, size_t n) {
  const ssize_t got = pread(fd, text, n - 1, 0);
  text[got > 0 ? got : 0] = 0;
}

static int count(const char *text, const char *word) {
  int n = 0;
  for (; (text = strstr(text, word)) != NULL; text += strlen(word)) n++;
  return n;
}

static void claims_of(outcome *o) {
  static const char *const word[][2] = {{"[certified]", "certified "},
                                        {"[proved]", "proved "},
                                        {"[tested]", "tested "},
                                        {"DIFFERENT", "refuted "}};
  for (int i = 0; i < 4; i++) o->claims[i] = count(o->out, word[i][0]) + count(o->out, word[i][1]);
  for (int i = 1; i < 3; i++) o->claims[i] += o->claims[i - 1]; /* or better */
}

static void run_once(int argc, char **argv, long n, outcome *o) {
  const int fd[2] = {memfd_create("out", 0), memfd_create("err", 0)};
  int status;
  fflush(stdout);
  const pid_t pid = fork();
  if (pid == 0) child(argc, argv, n, fd);
  o->status =
      pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  read_all(fd[0], o->out, sizeof o->out);
  read_all(fd[1], o->err, sizeof o->err);
  claims_of(o);
  close(fd[0]);
  close(fd[1]);
}

/* Returns: the fault of a run, in words; NULL: none. */
static const char *wrong(const outcome *o, const outcome *whole) {
  const char *end = strchr(o->err, '\n');
  if (o->status == 91)
    return NULL; /* the command went another way, and the place was not reached */
  if (o->status < 0 || o->status == 92) return "it crashed, or did not end";
  if (o->status == 90) return "memory is left";
  if (o->status == CLI_ERROR)
    return strncmp(o->err, "isomer: ", 8) != 0 || !end || end[1] || !strstr(o->err, "memory")
               ? "the error is not one line that says so"
               : NULL;
  if (o->status != whole->status && o->status != CLI_UNDECIDED) return "another status";
  for (int i = 0; i < 4; i++)
    if (o->claims[i] > whole->claims[i]) return "it claims more";
  return NULL;
}

static void print_place(const call *c) {
  printf("  allocation %ld:", c->n);
  for (int k = 0; k < FRAMES && c->at[k]; k++)
    printf(" %#lx", (unsigned long)((char *)c->at[k] - &__executable_start) - 1);
  putchar('\n');
}

static void *pages(size_t bytes) {
  void *p =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) abort();
  return p;
}

/* The places that the command allocates at, in the order of their first calls. */
static void list_places(int argc, char **argv) {
  void *warm[4];
  (void)backtrace(warm, 4); /* loads what it needs */
  const int null = memfd_create("null", 0), out = dup(STDOUT_FILENO), err = dup(STDERR_FILENO);
  dup2(null, STDOUT_FILENO);
  dup2(null, STDERR_FILENO);
  for (int pass = 0; pass < 2; pass++) { /* what libraries keep is there after the first */
    places = pass ? pages(PLACES * sizeof *places) : NULL;
    if (pass) fail_arm(NEVER);
    (void)run_command(argc, argv);
  }
  fail_disarm();
  places = NULL;
  fflush(stdout);
  fflush(stderr);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
}

int main(int argc, char **argv) {
  static outcome whole, o;
  long from = 0, every = 1, ran = 0, bad = 0, stopped = 0;
  bool list = false;
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; i++) {
    if (strcmp(argv[i], "--list") == 0) list = true;
    else if (i + 1 < argc && strcmp(argv[i], "--times") == 0) times = (unsigned)atoi(argv[++i]);
    else if (i + 1 < argc && strcmp(argv[i], "--from") == 0) from = atol(argv[++i]);
    else if (i + 1 < argc && strcmp(argv[i], "--every") == 0) every = atol(argv[++i]);
  }
  if (i >= argc || every < 1) return 2;
  setenv("OMP_NUM_THREADS", "1", 1); /* forked processes have no other threads */
  block = pages(BLOCKS * sizeof *block);
  calls = pages(PLACES * sizeof *calls);
  list_places(argc - i, argv + i);
  for (size_t k = 0; k < n_calls && list; k++) print_place(&calls[k]);
  run_once(argc - i, argv + i, NEVER, &whole);
  if (whole.status > CLI_UNDECIDED || whole.status == CLI_ERROR || whole.status < 0) {
    printf("with all of its memory: status %d\n%s0 passed, 1 failed\n", whole.status, whole.err);
    return 1;
  }
  for (size_t k = (size_t)from; k < n_calls; k += (size_t)every, ran++) {
    run_once(argc - i, argv + i, calls[k].n, &o);
    const char *why = wrong(&o, &whole);
    stopped += o.status == CLI_ERROR;
    if (!why) continue;
    bad++;
    printf("%s (status %d)\n", why, o.status);
    print_place(&calls[k]);
    printf("%.*s", 1500, o.err);
  }
  printf("%zu places; %ld runs stopped, %ld went on\n%ld passed, %ld failed\n", n_calls, stopped,
         ran - stopped - bad, ran - bad, bad);
  return bad != 0;
}
