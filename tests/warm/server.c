/* Preloaded into the program, makes of it a server when ISOMER_WARM_LISTEN names a socket: libtorch
 * is loaded once, then each request (protocol.h) is a child of its own in which the program's main
 * runs, with the words, environment, folder and streams that were sent. Ends when its standard
 * input does. A client that dies takes its child along. */
#include <dlfcn.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/warm/protocol.h"

enum { MOST = 64 };
typedef int main_function(int, char **, char **);

static main_function *program;
static struct {
  pid_t pid;
  int socket;
} running[MOST];
static size_t n_running;
extern char **environ;

/* Whether this variable of the environment may differ from the server's: not one that libtorch or
 * the loader reads when libtorch is loaded. */
static bool harmless(const char *variable) {
  static const char *const names[] = {
      "PWD=",  "OLDPWD=", "_=",       "SHLVL=",    "TMPDIR=",          "HOME=",
      "PATH=", "TERM=",   "COLUMNS=", "NO_COLOR=", "OMP_NUM_THREADS=", "PYTHON",
      "FAIL",  "ISOMER_", NULL};
  if (!strncmp(variable, "ISOMER_SHIM_DIR=", 16) || !strncmp(variable, "ISOMER_LIBZ3=", 13))
    return false;
  for (size_t k = 0; names[k]; k++)
    if (!strncmp(variable, names[k], strlen(names[k]))) return true;
  return false;
}

static bool holds(char **all, const char *variable) {
  for (; *all; all++)
    if (!strcmp(*all, variable)) return true;
  return false;
}

static bool all_in(char **some, char **all) {
  for (; *some; some++)
    if (!harmless(*some) && !holds(all, *some)) return false;
  return true;
}

/* Limits that the child can still set itself: memory that libtorch took before is not under
 * them. */
static bool same_limits(const request *r) {
  for (int k = 0; k < RLIM_NLIMITS; k++) {
    struct rlimit own;
    if (k == RLIMIT_CPU || k == RLIMIT_CORE || getrlimit(k, &own)) continue;
    if (own.rlim_cur != r->limit[k].rlim_cur || own.rlim_max != r->limit[k].rlim_max) return false;
  }
  return true;
}

static bool receive(int s, request *r, int fd[WARM_FDS]) {
  union {
    char bytes[CMSG_SPACE(sizeof(int) * WARM_FDS)];
    struct cmsghdr align;
  } control;
  struct iovec io = {r, sizeof *r};
  struct msghdr m = {.msg_iov = &io,
                     .msg_iovlen = 1,
                     .msg_control = control.bytes,
                     .msg_controllen = sizeof control.bytes};
  if (recvmsg(s, &m, MSG_CMSG_CLOEXEC) != (ssize_t)sizeof *r) return false;
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  if (!c || c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int) * WARM_FDS))
    return false;
  memcpy(fd, CMSG_DATA(c), sizeof(int) * WARM_FDS);
  return r->bytes <= WARM_MOST;
}

static char *split(char *at, char **to, uint32_t n) {
  for (uint32_t k = 0; k < n; k++, at += strlen(at) + 1) to[k] = at;
  to[n] = NULL;
  return at;
}

/* Does not return. */
static void run(const request *r, const int fd[WARM_FDS], char **words, char **variables) {
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
  int bad = fchdir(fd[3]);
  for (int k = 0; k < 3; k++) bad |= dup2(fd[k], k) < 0;
  if (bad || close_range(3, ~0u, 0)) _exit(99);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (int k = 0; k < RLIM_NLIMITS; k++) setrlimit(k, &r->limit[k]);
  umask((mode_t)r->mask);
  setpriority(PRIO_PROCESS, 0, r->priority);
  environ = variables;
  exit(program((int)r->words, words, variables));
}

/* Returns: the child, or -1 where it refuses. */
static pid_t start(int s) {
  request r;
  int fd[WARM_FDS];
  pid_t pid = -1;
  if (!receive(s, &r, fd)) return -1;
  char *text = calloc(1, r.bytes + 1);
  char **words = calloc(r.words + 1, sizeof *words),
       **variables = calloc(r.variables + 1, sizeof *variables);
  if (text && words && variables && recv(s, text, r.bytes, MSG_WAITALL) == (ssize_t)r.bytes) {
    split(split(text, words, r.words), variables, r.variables);
    if (n_running < MOST && same_limits(&r) && all_in(variables, environ) &&
        all_in(environ, variables))
      pid = fork();
    if (pid == 0) run(&r, fd, words, variables);
  }
  free(text);
  free(words);
  free(variables);
  for (int k = 0; k < WARM_FDS; k++) close(fd[k]);
  return pid;
}

static void accept_one(int listening) {
  int s = accept4(listening, NULL, NULL, SOCK_CLOEXEC);
  if (s < 0) return;
  pid_t pid = start(s);
  if (pid > 0) {
    running[n_running].pid = pid;
    running[n_running++].socket = s;
    return;
  }
  const int refused = WARM_REFUSED;
  (void)!send(s, &refused, sizeof refused, MSG_NOSIGNAL);
  close(s);
}

static void reap(void) {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
    for (size_t k = 0; k < n_running; k++)
      if (running[k].pid == pid) {
        (void)!send(running[k].socket, &status, sizeof status, MSG_NOSIGNAL);
        close(running[k].socket);
        running[k] = running[--n_running];
        break;
      }
}

/* Serves until the standard input ends. */
static void serve(int listening, int signals) {
  for (;;) {
    struct pollfd p[MOST + 3] = {{.fd = listening, .events = POLLIN},
                                 {.fd = signals, .events = POLLIN},
                                 {.fd = STDIN_FILENO, .events = POLLIN}};
    const size_t n = n_running;
    for (size_t k = 0; k < n; k++)
      p[3 + k] = (struct pollfd){.fd = running[k].socket, .events = POLLRDHUP};
    if (poll(p, 3 + n, -1) < 0 && errno != EINTR) return;
    if (p[2].revents) return;
    for (size_t k = 0; k < n; k++) /* the client is gone */
      if (p[3 + k].revents) kill(running[k].pid, SIGKILL);
    struct signalfd_siginfo info;
    if (p[1].revents && read(signals, &info, sizeof info) > 0) reap();
    if (p[0].revents) accept_one(listening);
  }
}

static void load_libtorch(void) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - 64);
  if (n <= 0) return;
  path[n] = '\0';
  strcpy(strrchr(path, '/'), "/libisomer_shim.so");
  (void)dlopen(path, RTLD_NOW | RTLD_GLOBAL);
}

static int server(int argc, char **argv, char **variables) {
  (void)argc, (void)argv, (void)variables;
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  const char *path = getenv("ISOMER_WARM_LISTEN");
  if (!path || strlen(path) >= sizeof a.sun_path) return 2;
  strcpy(a.sun_path, path);
  unsetenv("ISOMER_WARM_LISTEN");
  unsetenv("LD_PRELOAD");
  int listening = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sigset_t child;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  sigprocmask(SIG_BLOCK, &child, NULL);
  int signals = signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
  if (listening < 0 || signals < 0 || bind(listening, (struct sockaddr *)&a, sizeof a) ||
      listen(listening, MOST)) {
    perror("warm server");
    return 2;
  }
  load_libtorch();
  serve(listening, signals);
  for (size_t k = 0; k < n_running; k++) kill(running[k].pid, SIGKILL);
  while (wait(NULL) > 0) continue;
  unlink(path);
  _exit(0);
}

/* In place of the C library's, which is called with another main. */
__attribute__((visibility("default"))) int
__libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
                  void (*fini)(void), void (*rtld_fini)(void), void *stack_end);
int __libc_start_main(main_function *main, int argc, char **argv, void (*init)(void),
                      void (*fini)(void), void (*rtld_fini)(void), void *stack_end) {
  int (*real)(main_function *, int, char **, void (*)(void), void (*)(void), void (*)(void),
              void *);
  *(void **)&real = dlsym(RTLD_NEXT, "__libc_start_main");
  program = main;
  return real(getenv("ISOMER_WARM_LISTEN") ? server : main, argc, argv, init, fini, rtld_fini,
              stack_end);
}
