/* Operators that only Python can call, run by a process of the user's (`--helper CMD`).
 *
 * The command is started by sh in a session of its own when an operator first needs it, and gets
 * two descriptors: a socket (ISOMER_HELPER_SOCKET) and a memory file (ISOMER_HELPER_MEMORY).
 * Messages are a 32-bit length and JSON. The helper says hello, {"isomer-helper": 1, "seconds": how
 * long a call may take}, then answers calls:
 *
 *   a call            {"op": "mine::f", "args": [...], "float64": true}
 *   its answer        {"outputs": [[dtype, shape, offset], ...]}
 *   or, of an error,  {"error": "one line", "unknown": true where there is no such operator}
 *
 * Arguments are null, booleans, strings, integers, {"float": "0.5"}, {"dtype": "float32"},
 * {"list": [...]}, and tensors, {"tensor": [dtype, shape, offset]}, of which the row-major bytes
 * lie in the memory file at the offset; it puts results there too, wherever it likes. On this side
 * the file is read and written and never mapped: a helper that truncates it must not end us.
 *
 * Nothing that the helper does ends the run. Its output goes to stderr; if it dies, hangs or
 * answers nonsense it is killed with all that it started, and that call fails with ISO_DEVICE, as
 * where a GPU is lost: nothing is known of the operator. An error that it answers is the operator's
 * own error on these arguments, unless memory ran out. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "validate/exec/helper.h"
#include "validate/exec/narrow_kernels.h"

enum {
  SOCKET_FD = 3,
  MEMORY_FD = 4,
  START_SECONDS = 180,
  CALL_SECONDS = 60,
  MAX_SECONDS = 3600,
  MAX_FAILURES = 3,
  MAX_MESSAGE = 1 << 26,
  ALIGN = 64,
  MAX_DEPTH = 64
};

struct helper {
  char *command;
  pid_t pid; /* 0: not running */
  int socket, memory, failures, seconds;
};

static iso_code no_memory(iso_error *err) { return iso_fail(err, ISO_NOMEM, "out of memory"); }

helper *helper_new(const char *command) {
  helper *h = calloc(1, sizeof *h);
  if (h == NULL || (h->command = strdup(command)) == NULL) {
    free(h);
    return NULL;
  }
  h->socket = h->memory = -1;
  return h;
}

/* ---- the process ---- */

static void end_process(helper *h) {
  if (h->pid > 0) {
    kill(-h->pid, SIGKILL); /* its session: what it started too */
    kill(h->pid, SIGKILL);
    while (waitpid(h->pid, NULL, 0) < 0 && errno == EINTR) {
    }
  }
  if (h->socket >= 0) close(h->socket);
  if (h->memory >= 0) close(h->memory);
  h->pid = 0;
  h->socket = h->memory = -1;
}

void helper_free(helper *h) {
  if (h == NULL) return;
  end_process(h);
  free(h->command);
  free(h);
}

/* In the child, where other threads' locks may be held: system calls only. `env` was made before.
 * Does not return. */
static void become(const helper *h, int socket, char *const *env, pid_t parent) {
  char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", h->command, NULL};
  /* Both are moved away first: either may be where the other should go. */
  const int s = fcntl(socket, F_DUPFD, 10), m = fcntl(h->memory, F_DUPFD, 10),
            none = open("/dev/null", O_RDONLY);
  setsid();
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent || s < 0 || m < 0 || dup2(s, SOCKET_FD) < 0 || dup2(m, MEMORY_FD) < 0)
    _exit(127);
  if (none >= 0) dup2(none, STDIN_FILENO);
  dup2(STDERR_FILENO, STDOUT_FILENO);
  close(s);
  close(m);
  for (int fd = MEMORY_FD + 1; fd < 1024; fd++) close(fd);
  sigset_t all;
  sigemptyset(&all);
  sigprocmask(SIG_SETMASK, &all, NULL);
  execve("/bin/sh", argv, env);
  _exit(127);
}

extern char **environ;

/* The environment with the two descriptors. Owns: free() the array; the two texts are in `text`. */
static char **environment(char text[2][48]) {
  size_t n = 0;
  while (environ[n] != NULL) n++;
  char **env = calloc(n + 3, sizeof *env);
  if (env == NULL) return NULL;
  snprintf(text[0], 48, "ISOMER_HELPER_SOCKET=%d", SOCKET_FD);
  snprintf(text[1], 48, "ISOMER_HELPER_MEMORY=%d", MEMORY_FD);
  env[0] = text[0];
  env[1] = text[1];
  size_t k = 2;
  for (size_t i = 0; i < n; i++)
    if (strncmp(environ[i], "ISOMER_HELPER_", 14) != 0) env[k++] = environ[i];
  return env;
}

static iso_code spawn(helper *h, iso_error *err) {
  int pair[2] = {-1, -1};
  char text[2][48], **env = environment(text);
  h->memory = memfd_create("isomer-helper", MFD_CLOEXEC);
  if (env == NULL || h->memory < 0 ||
      socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
    free(env);
    end_process(h);
    return iso_fail(err, ISO_UNSUPPORTED, "the helper cannot be started: %s", strerror(errno));
  }
  const pid_t parent = getpid(), pid = fork();
  if (pid == 0) become(h, pair[1], env, parent);
  free(env);
  close(pair[1]);
  h->socket = pair[0];
  h->pid = pid > 0 ? pid : 0;
  if (pid > 0) return ISO_OK;
  end_process(h);
  return iso_fail(err, ISO_UNSUPPORTED, "the helper cannot be started: %s", strerror(errno));
}

/* ---- messages ---- */

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef enum ending { DONE, DIED, HANGS } ending;

/* Move `n` bytes to or from the helper before the deadline. */
static ending transfer(helper *h, bool out, void *bytes, size_t n, double deadline) {
  char *p = bytes;
  while (n > 0) {
    const double left = deadline - now();
    struct pollfd f = {.fd = h->socket, .events = out ? POLLOUT : POLLIN};
    if (left <= 0) return HANGS;
    const int ready = poll(&f, 1, left > 1 ? 1000 : (int)(left * 1000) + 1);
    if (ready < 0 && errno != EINTR) return DIED;
    if (ready <= 0) continue;
    const ssize_t k = out ? send(h->socket, p, n, MSG_NOSIGNAL | MSG_DONTWAIT)
                          : recv(h->socket, p, n, MSG_DONTWAIT);
    if (k < 0 && (errno == EINTR || errno == EAGAIN)) continue;
    if (k <= 0) return DIED;
    p += k;
    n -= (size_t)k;
  }
  return DONE;
}

static ending receive(helper *h, double deadline, json_t **out) {
  uint32_t length;
  ending e = transfer(h, false, &length, sizeof length, deadline);
  if (e != DONE) return e;
  if (length > MAX_MESSAGE) return DIED;
  char *text = malloc((size_t)length + 1);
  if (text == NULL) return DIED;
  e = transfer(h, false, text, length, deadline);
  *out = e == DONE ? json_loadb(text, length, JSON_REJECT_DUPLICATES, NULL) : NULL;
  free(text);
  return e == DONE && *out == NULL ? DIED : e;
}

/* The helper did not do as it should: it goes, and its call with it. */
static iso_code give_up(helper *h, ending e, const char *what, iso_error *err) {
  int status = 0;
  char how[64] = "";
  if (e == DIED && h->pid > 0) {
    const struct timespec moment = {0, 20000000};
    for (int i = 0; i < 25; i++) { /* it has closed its socket: it is about to end */
      if (waitpid(h->pid, &status, WNOHANG) == h->pid) {
        if (WIFSIGNALED(status)) snprintf(how, sizeof how, " (signal %d)", WTERMSIG(status));
        else snprintf(how, sizeof how, " (exit status %d)", WEXITSTATUS(status));
        kill(-h->pid, SIGKILL);
        h->pid = 0;
        break;
      }
      nanosleep(&moment, NULL);
    }
  }
  end_process(h);
  h->failures++;
  if (e == HANGS)
    return iso_fail(err, ISO_DEVICE, "%s: the helper did not answer in time, and was ended", what);
  return iso_fail(err, ISO_DEVICE, "%s: the helper ended without an answer%s", what, how);
}

static iso_code start(helper *h, const char *what, iso_error *err) {
  if (h->pid > 0) return ISO_OK;
  if (h->failures >= MAX_FAILURES)
    return iso_fail(err, ISO_DEVICE, "%s: the helper failed %d times, and is not started again",
                    what, h->failures);
  iso_code code = spawn(h, err);
  json_t *hello = NULL;
  if (code != ISO_OK) return code;
  const ending e = receive(h, now() + START_SECONDS, &hello);
  const json_int_t seconds = json_integer_value(json_object_get(hello, "seconds"));
  const bool good = e == DONE && json_integer_value(json_object_get(hello, "isomer-helper")) == 1;
  json_decref(hello);
  if (!good) return give_up(h, e == DONE ? DIED : e, "starting", err);
  h->seconds = seconds >= 1 && seconds <= MAX_SECONDS ? (int)seconds : CALL_SECONDS;
  return ISO_OK;
}

/* ---- arguments ---- */

typedef struct request {
  helper *h;
  rule_tensor *const *bind;
  bool float64;
  uint64_t at; /* where the next tensor goes in the memory file */
  iso_error *err;
} request;

static bool write_at(int fd, const void *bytes, size_t n, uint64_t at) {
  const char *p = bytes;
  while (n > 0) {
    const ssize_t k = pwrite(fd, p, n, (off_t)at);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    p += k;
    n -= (size_t)k;
    at += (uint64_t)k;
  }
  return true;
}

static bool read_at(int fd, void *bytes, size_t n, uint64_t at) {
  char *p = bytes;
  while (n > 0) {
    const ssize_t k = pread(fd, p, n, (off_t)at);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    p += k;
    n -= (size_t)k;
    at += (uint64_t)k;
  }
  return true;
}

static iso_code tensor_json(request *q, rule_tensor *given, json_t **out) {
  rule_tensor *t = NULL;
  if (given == NULL) return iso_fail(q->err, ISO_USAGE, "a variable has no value");
  iso_code code = q->float64 ? rule_tensor_to_float64(given, &t, q->err) : ISO_OK;
  if (code != ISO_OK) return code;
  if (t == NULL) t = rule_tensor_ref(given);
  const size_t bytes = (size_t)t->numel * rule_dtype_size(t->dtype);
  if (!write_at(q->h->memory, t->data, bytes, q->at))
    code = iso_fail(q->err, ISO_NOMEM, "no memory to share with the helper");
  json_t *shape = json_array();
  for (uint32_t k = 0; k < t->shape.rank; k++)
    json_array_append_new(shape, json_integer(t->shape.dim[k]));
  *out = json_pack("{s:[s, o, I]}", "tensor", rule_dtype_name(t->dtype), shape, (json_int_t)q->at);
  q->at += (bytes + ALIGN - 1) / ALIGN * ALIGN;
  rule_tensor_unref(t);
  if (code == ISO_OK && *out == NULL) code = no_memory(q->err);
  return code;
}

static iso_code argument_json(request *q, const rule_term *t, int depth, json_t **out);

static iso_code list_json(request *q, const rule_term *t, int depth, json_t **out) {
  json_t *list = json_array();
  iso_code code = list != NULL ? ISO_OK : no_memory(q->err);
  for (uint32_t i = 0; i < t->n && code == ISO_OK; i++) {
    json_t *item = NULL;
    code = argument_json(q, t->child[i], depth + 1, &item);
    if (code == ISO_OK && json_array_append_new(list, item) != 0) code = no_memory(q->err);
  }
  if (code == ISO_OK) *out = list;
  else json_decref(list);
  return code;
}

static iso_code argument_json(request *q, const rule_term *t, int depth, json_t **out) {
  char number[40];
  iso_code code;
  if (depth > MAX_DEPTH) return iso_fail(q->err, ISO_LIMIT, "lists are nested too deeply");
  switch (t->kind) {
  case RULE_VAR: return tensor_json(q, q->bind[t->u.i], out);
  case RULE_INT: *out = json_integer(t->u.i); break;
  case RULE_FLOAT:
    snprintf(number, sizeof number, isnan(t->u.f) ? "nan" : "%.17g", t->u.f);
    *out = json_pack("{s:s}", "float", number);
    break;
  case RULE_BOOLEAN: *out = json_boolean(t->u.i); break;
  case RULE_NONE: *out = json_null(); break;
  case RULE_STRING: *out = json_string(t->u.s); break;
  case RULE_DTYPE: *out = json_pack("{s:s}", "dtype", rule_dtype_name((rule_dtype)t->u.i)); break;
  case RULE_LIST: {
    json_t *list = NULL;
    if ((code = list_json(q, t, depth, &list)) != ISO_OK) return code;
    *out = json_pack("{s:o}", "list", list);
    break;
  }
  case RULE_OP:
  case RULE_NAME:
  case RULE_EXPR: return iso_fail(q->err, ISO_USAGE, "an argument is no value");
  }
  return *out != NULL ? ISO_OK : no_memory(q->err);
}

static iso_code make_request(request *q, const rule_term *call, char **out) {
  json_t *args = NULL;
  iso_code code = list_json(q, call, 0, &args);
  if (code != ISO_OK) return code;
  json_t *top = json_pack("{s:s, s:o, s:b}", "op", call->u.s, "args", args, "float64", q->float64);
  *out = top != NULL ? json_dumps(top, JSON_COMPACT) : NULL;
  json_decref(top);
  return *out != NULL ? ISO_OK : no_memory(q->err);
}

/* ---- results ---- */

static bool read_shape(const json_t *v, rule_shape *out) {
  if (!json_is_array(v) || json_array_size(v) > RULE_MAX_RANK) return false;
  out->rank = (uint32_t)json_array_size(v);
  for (uint32_t k = 0; k < out->rank; k++) {
    if (!json_is_integer(json_array_get(v, k))) return false;
    out->dim[k] = json_integer_value(json_array_get(v, k));
  }
  return true;
}

static bool bools_are(const rule_tensor *t) {
  const unsigned char *p = t->data;
  for (int64_t i = 0; t->dtype == RULE_BOOL && i < t->numel; i++)
    if (p[i] > 1) return false;
  return true;
}

static iso_code read_result(helper *h, const json_t *v, bool float64, rule_tensor **out,
                            iso_error *err) {
  const char *dtype = json_string_value(json_array_get(v, 0));
  const json_t *at = json_array_get(v, 2);
  rule_shape shape = {0};
  rule_dtype d;
  int64_t numel;
  struct stat st;
  if (dtype == NULL || !rule_dtype_find(dtype, &d) || !read_shape(json_array_get(v, 1), &shape) ||
      !json_is_integer(at) || json_integer_value(at) < 0 ||
      rule_shape_numel(&shape, &numel, NULL) != ISO_OK || fstat(h->memory, &st) != 0)
    return iso_fail(err, ISO_DEVICE, "the helper's answer is malformed");
  const uint64_t bytes = (uint64_t)numel * rule_dtype_size(d),
                 begin = (uint64_t)json_integer_value(at);
  if (begin > (uint64_t)st.st_size || bytes > (uint64_t)st.st_size - begin)
    return iso_fail(err, ISO_DEVICE, "the helper's answer lies outside the shared memory");
  rule_tensor *t = NULL;
  iso_code code = rule_tensor_new(d, &shape, &t, err);
  if (code == ISO_OK && (!read_at(h->memory, t->data, (size_t)bytes, begin) || !bools_are(t)))
    code = iso_fail(err, ISO_DEVICE, "the helper's answer is malformed");
  if (code == ISO_OK && float64) code = rule_tensor_to_float64(t, out, err);
  else if (code == ISO_OK) *out = rule_tensor_ref(t);
  if (code == ISO_OK && float64) (*out)->coarse = narrow_tolerance(d);
  rule_tensor_unref(t);
  return code;
}

/* Whether an operator's error is none of the operator's. */
static bool out_of_resources(const char *why) {
  static const char *const signs[] = {"MemoryError",       "OutOfMemoryError", "out of memory",
                                      "allocate memory",   "CUDA error",       "CUDA driver error",
                                      "cuDNN error",       "CUBLAS_STATUS_",   "NCCL error",
                                      "device-side assert"};
  for (size_t i = 0; i < sizeof signs / sizeof *signs; i++)
    if (strstr(why, signs[i])) return true;
  return false;
}

/* parameters: those of rule_oracle.call. */
static iso_code read_reply(helper *h, const json_t *reply, const rule_term *call, bool float64,
                           rule_tensor **out, size_t cap, size_t *n_out, iso_error *err) {
  const char *why = json_string_value(json_object_get(reply, "error"));
  const json_t *outputs = json_object_get(reply, "outputs");
  if (why != NULL && out_of_resources(why))
    return iso_fail(err, ISO_DEVICE, "%s: %s", call->u.s, why);
  if (why != NULL)
    return iso_fail(err,
                    json_is_true(json_object_get(reply, "unknown")) ? ISO_UNSUPPORTED : ISO_TORCH,
                    "%s: %s", call->u.s, why);
  const size_t n = json_array_size(outputs);
  if (!json_is_array(outputs) || n > cap)
    return iso_fail(err, ISO_DEVICE, "%s: the helper's answer is malformed", call->u.s);
  size_t k = 0;
  iso_code code = ISO_OK;
  for (; k < n && code == ISO_OK; k++)
    if ((code = read_result(h, json_array_get(outputs, k), float64, &out[k], err)) != ISO_OK) {
      iso_prefix(err, "%s: ", call->u.s);
      break;
    }
  if (code == ISO_OK) *n_out = n;
  else
    while (k > 0) rule_tensor_unref(out[--k]);
  return code;
}

/* parameters: those of rule_oracle.call. */
iso_code helper_call(helper *h, const rule_term *call, rule_tensor *const *bind, bool float64,
                     rule_tensor **out, size_t cap, size_t *n_out, iso_error *err) {
  iso_code code = start(h, call->u.s, err);
  request q = {.h = h, .bind = bind, .float64 = float64, .err = err};
  char *text = NULL;
  json_t *reply = NULL;
  if (code == ISO_OK) code = make_request(&q, call, &text);
  if (code != ISO_OK) return code;
  const double deadline = now() + h->seconds;
  uint32_t length = (uint32_t)strlen(text);
  ending e = transfer(h, true, &length, sizeof length, deadline);
  if (e == DONE) e = transfer(h, true, text, length, deadline);
  free(text);
  if (e == DONE) e = receive(h, deadline, &reply);
  if (e != DONE) return give_up(h, e, call->u.s, err);
  h->failures = 0;
  code = read_reply(h, reply, call, float64, out, cap, n_out, err);
  json_decref(reply);
  /* Memory of large calls is given back: the next one writes it anew. */
  if (q.at > 1u << 26 && ftruncate(h->memory, 0) != 0) end_process(h);
  return code;
}
