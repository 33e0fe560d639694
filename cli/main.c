/* Dispatch: `isomer COMMAND ...`. Exit statuses are in cli.h. */
#include <errno.h>
#include <jansson.h>
#include <malloc.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli.h"
#include "cli/config/config.h"
#include "validate/validate.h"

typedef struct command {
  const char *name;
  int (*run)(int argc, char **argv);
  const char *usage, *help;
} command;

static const command commands[] = {
    {"compare", cmd_compare, "LEFT RIGHT", "do two captured graphs compute the same function?"},
    {"check", cmd_check, "FILE LEFT RIGHT",
     "replay the certificate of a comparison, without any search"},
    {"run", cmd_run, "CAPTURE", "execute a capture and compare it with its recorded values"},
    {"show", cmd_show, "CAPTURE", "what a capture holds"},
    {"lint", cmd_lint, "INPUT...", "faults of schedules and communication, without a reference"},
    {"rules", cmd_rules, "VERB FILE...",
     "check, list, show, merge, diff, minimize, count or export rewrite rules"},
    {"saturate", cmd_saturate, "FILE.sexp", "plain equality saturation on s-expressions"},
    {NULL, NULL, NULL, NULL}};

static void usage(FILE *f) {
  fputs("usage: isomer COMMAND ...\n", f);
  for (const command *c = commands; c->name; c++)
    fprintf(f, "  isomer %-8s %-15s %s\n", c->name, c->usage, c->help);
  fputs("  isomer --version\n"
        "  --config FILE    settings, in place of isomer.toml in this folder or above "
        "(docs/settings.md)\n"
        "  --no-config      without such a file\n"
        "  isomer --help    (isomer COMMAND --help: its options)\n"
        "exit status: 0 equivalent, 1 different, 3 undecided, 2 error\n",
        f);
}

/* And of the libraries that answers rest on. */
static void version(void) {
  const val_options o = val_options_default();
  rule_schemas *schemas = NULL;
  val_engine *engine = NULL;
  const char *torch = NULL;
  char z3[64];
  iso_error err;
  if (rule_schemas_new(&schemas, &err) || val_new(&o, schemas, &engine, &err) ||
      val_torch_version(engine, &torch, &err))
    torch = "not found";
  val_z3_version(z3, sizeof z3);
  printf("isomer %s\nlibtorch %s\nz3 %s\njansson %s\n", ISO_VERSION, torch, z3,
         jansson_version_str());
  val_free(engine);
  rule_schemas_free(schemas);
}

/* A result that did not reach its reader is an error, except that a reader may stop reading (`|
 * head`): then the command's status stands. SIGPIPE is ignored, so that a file asked for with
 * --json is written all the same. */
static int flushed(int status) {
  struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
  errno = 0;
  if (fflush(stdout) == 0 && !ferror(stdout)) return status;
  int reason = errno;
  if (reason == EPIPE || (poll(&out, 1, 0) == 1 && (out.revents & POLLERR))) return status;
  fprintf(stderr, "isomer: standard output: %s\n", reason ? strerror(reason) : "write error");
  return CLI_ERROR;
}

/* libtorch takes its tens of thousands of registrations back one by one when a process exits, which
 * takes a third of the time to load it; nothing needs that. Under a sanitizer the exit is the
 * ordinary one: it looks for leaks there. */
static int finish(int status) {
  status = flushed(status);
  fflush(stderr); /* a command may have given it a buffer */
#if !defined(__SANITIZE_ADDRESS__)
  _exit(status);
#endif
  return status;
}

/* Returns: the exit status. */
static int run(int argc, char **argv) {
  if (argc < 2) {
    usage(stderr);
    return CLI_ERROR;
  }
  if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
    usage(stdout);
    return 0;
  }
  if (!strcmp(argv[1], "--version")) {
    version();
    return 0;
  }
  for (const command *c = commands; c->name; c++)
    if (!strcmp(argv[1], c->name)) return c->run(argc - 1, argv + 1);
  fprintf(stderr, "isomer: no command \"%s\" (isomer --help)\n", argv[1]);
  return CLI_ERROR;
}

int main(int argc, char **argv) {
  signal(SIGPIPE, SIG_IGN);
#ifdef __GLIBC__
  /* Values come and go by the thousand: freed blocks are used again, not handed back and cleared
   * anew by the kernel. */
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  mallopt(M_TRIM_THRESHOLD, 256 << 20);
  mallopt(M_MXFAST, 0); /* what each thread keeps of small pieces is enough: a second store of them
                           is gone through at every large one */
#endif
  setenv("THP_MEM_ALLOC_ENABLE", "1", 0); /* libtorch's large tensors in large pages */
  config_args with;
  iso_error err = {0};
  int status = CLI_ERROR;
  if (config_apply(argc, argv, &with, &err)) fprintf(stderr, "isomer: %s\n", err.msg);
  else status = run(with.argc, with.argv);
  config_free(&with);
  return finish(status);
}
