/* Stands for the program where a test starts it: `build/tests/warm/isomer` has it run by the server
 * of server.c, in which libtorch is loaded already, or becomes the program itself where there is no
 * server or the server refuses. Loading libtorch takes most of the time of a small comparison. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/warm/protocol.h"

extern char **environ;

static int in_its_place(char **argv) {
  char path[4096];
  ssize_t n = readlink("/proc/self/exe", path, sizeof path - sizeof "/isomer");
  for (int up = 0; n > 0 && up < 3; up++) { /* build/tests/warm/isomer */
    path[n] = '\0';
    char *slash = strrchr(path, '/');
    n = slash ? slash - path : 0;
  }
  if (n > 0) {
    strcpy(path + n, "/isomer");
    execv(path, argv);
  }
  perror("isomer");
  return 2;
}

/* The strings of `from`, each with its zero byte; counts them. */
static size_t gather(char **from, char *to, size_t room, uint32_t *count) {
  size_t n = 0;
  for (*count = 0; from[*count]; ++*count) {
    size_t len = strlen(from[*count]) + 1;
    if (len > room - n) return SIZE_MAX;
    memcpy(to + n, from[*count], len);
    n += len;
  }
  return n;
}

static bool send_request(int s, const request *r, const int fd[WARM_FDS]) {
  union {
    char bytes[CMSG_SPACE(sizeof(int) * WARM_FDS)];
    struct cmsghdr align;
  } control;
  memset(&control, 0, sizeof control);
  struct iovec io = {(void *)(uintptr_t)r, sizeof *r};
  struct msghdr m = {.msg_iov = &io,
                     .msg_iovlen = 1,
                     .msg_control = control.bytes,
                     .msg_controllen = sizeof control.bytes};
  struct cmsghdr *c = CMSG_FIRSTHDR(&m);
  c->cmsg_level = SOL_SOCKET;
  c->cmsg_type = SCM_RIGHTS;
  c->cmsg_len = CMSG_LEN(sizeof(int) * WARM_FDS);
  memcpy(CMSG_DATA(c), fd, sizeof(int) * WARM_FDS);
  return sendmsg(s, &m, MSG_NOSIGNAL) == (ssize_t)sizeof *r;
}

static bool send_all(int s, const char *at, size_t n) {
  while (n > 0) {
    ssize_t k = send(s, at, n, MSG_NOSIGNAL);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    at += k;
    n -= (size_t)k;
  }
  return true;
}

static int connected(const char *path) {
  struct sockaddr_un a = {.sun_family = AF_UNIX};
  if (strlen(path) >= sizeof a.sun_path) return -1;
  strcpy(a.sun_path, path);
  int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (s >= 0 && connect(s, (struct sockaddr *)&a, sizeof a) == 0) return s;
  if (s >= 0) close(s);
  return -1;
}

/* Whether the server ran it; `status` as waitpid has it. */
static bool served(const char *path, char **argv, int *status) {
  static char text[WARM_MOST];
  request r;
  memset(&r, 0, sizeof r);
  for (int k = 0; k < RLIM_NLIMITS; k++) getrlimit(k, &r.limit[k]);
  umask((mode_t)(r.mask = umask(0)));
  r.priority = getpriority(PRIO_PROCESS, 0);
  size_t n = gather(argv, text, sizeof text, &r.words), more = SIZE_MAX;
  if (n != SIZE_MAX) more = gather(environ, text + n, sizeof text - n, &r.variables);
  if (more == SIZE_MAX) return false;
  r.bytes = (uint32_t)(n + more);
  /* A closed standard stream cannot be sent: the program itself is to see that. */
  const int fd[WARM_FDS] = {0, 1, 2, open(".", O_PATH | O_DIRECTORY | O_CLOEXEC)};
  int s = connected(path);
  if (s < 0 || !send_request(s, &r, fd) || !send_all(s, text, r.bytes)) return false;
  ssize_t got;
  do got = recv(s, status, sizeof *status, MSG_WAITALL);
  while (got < 0 && errno == EINTR);
  if (got == (ssize_t)sizeof *status) return *status != WARM_REFUSED;
  fputs("the warm server ended\n", stderr);
  *status = SIGABRT;
  return true;
}

int main(int argc, char **argv) {
  (void)argc;
  const char *path = getenv("ISOMER_WARM");
  int status;
  if (!path || !served(path, argv, &status)) return in_its_place(argv);
  if (WIFEXITED(status)) return WEXITSTATUS(status);
  setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
  return 2;
}
