/* Rules decided by worker processes (check.h).
 *
 * libtorch is loaded in the workers only: a fork behind it would not be safe. A worker takes the
 * next rule from a shared counter, notes which one, and sends its entry as one JSON text behind its
 * length. When it dies, the rule it had noted is unknown and another worker goes on. */
#include "cli/rules/check.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/rules/report.h"

enum { MAX_WORKERS = 64, POLL_MS = 250 };

typedef struct shared {
  size_t next;               /* rule to take */
  size_t at[MAX_WORKERS];    /* rule + 1 that a worker decides */
  double since[MAX_WORKERS]; /* when it began */
} shared;

typedef struct worker {
  pid_t pid;
  int fd;
  char *buf;
  size_t n, cap;
  bool killed;
} worker;

typedef struct pool {
  const rules_job *job;
  size_t n_jobs, n_workers;
  const val_options *o;
  double limit_s;
  const char *obligations; /* a folder, or NULL */
  shared *s;
  worker w[MAX_WORKERS];
  json_t **entry; /* by job */
} pool;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- in the worker ---- */

static bool write_all(int fd, const void *p, size_t n) {
  const char *c = p;
  while (n > 0) {
    const ssize_t k = write(fd, c, n);
    if (k < 0 && errno == EINTR) continue;
    if (k <= 0) return false;
    c += k;
    n -= (size_t)k;
  }
  return true;
}

static bool send_entry(int fd, size_t i, json_t *e) {
  char *text = e != NULL ? json_dumps(e, JSON_REAL_PRECISION(17)) : NULL;
  json_decref(e);
  const size_t head[2] = {i, text != NULL ? strlen(text) : 0};
  const bool ok = text != NULL && write_all(fd, head, sizeof head) && write_all(fd, text, head[1]);
  free(text);
  return ok;
}

/* "DIR/0007-name.smt2", with the case where there are several. */
static void file_name(char *out, size_t cap, size_t at, const char *whose, size_t k, size_t n) {
  size_t l = (size_t)snprintf(out, cap, "%04zu-%.80s", at + 1, whose);
  for (char *p = out; *p; p++)
    if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", *p)) *p = '_';
  if (n > 1) l += (size_t)snprintf(out + l, cap - l, "-%zu", k + 1);
  snprintf(out + l, cap - l, ".smt2");
}

/* Whole or not at all. */
static bool write_file(const char *folder, const char *name, const char *text) {
  char path[4096], made[4200];
  if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return false;
  snprintf(made, sizeof made, "%s.%ld", path, (long)getpid());
  FILE *f = fopen(made, "we");
  bool ok = f != NULL && fputs(text, f) >= 0;
  if (f != NULL) ok = fclose(f) == 0 && ok;
  if (ok && rename(made, path) == 0) return true;
  unlink(made);
  return false;
}

static void certify(const pool *p, size_t at, rule_schemas *schemas, json_t *entry) {
  const rule *r = p->job[at].r;
  val_obligations k;
  iso_error err = {0};
  json_t *files = json_array();
  char name[128];
  val_options o = *p->o;
  o.whole = true; /* as its verdict says where it matters */
  if (val_write_obligations(r, schemas, &o, false, &k, &err) != ISO_OK)
    snprintf(k.reason, sizeof k.reason, "%.199s", err.msg);
  for (size_t i = 0; i < k.n && files != NULL; i++) {
    file_name(name, sizeof name, at, r->name, i, k.n);
    if (write_file(p->obligations, name, k.text[i]))
      json_array_append_new(files, json_string(name));
    else snprintf(k.reason, sizeof k.reason, "%.80s could not be written", name);
  }
  const bool whole = k.n > 0 && json_array_size(files) == k.n;
  json_object_set(entry, "certificate", whole ? files : json_null());
  json_object_set_new(entry, "certificate_reason", whole ? json_null() : json_string(k.reason));
  json_decref(files);
  val_obligations_free(&k);
}

static json_t *decide(val_engine *e, rule_schemas *schemas, const pool *p, size_t at) {
  const rules_job *j = &p->job[at];
  val_finding f;
  iso_error err = {0};
  if (val_check(e, j->r, &f, &err) != ISO_OK) return rules_failure_json(j->file, j->r, err.msg);
  json_t *entry = rules_finding_json(j->file, j->r, &f, schemas);
  if (entry != NULL && p->obligations != NULL && f.verdict.status == RULE_PROVED)
    certify(p, at, schemas, entry);
  else if (entry != NULL && p->obligations != NULL) {
    json_object_set_new(entry, "certificate", json_null());
    json_object_set_new(entry, "certificate_reason", json_string("the rule is not proved"));
  }
  val_finding_free(&f);
  return entry;
}

/* No core files; and a rule that asks for more memory than there is fails alone. */
static void limit_self(const pool *p) {
  const struct rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
#if !defined(__SANITIZE_ADDRESS__) /* which maps terabytes */
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  const rlim_t least = (rlim_t)4 << 30;
  if (pages <= 0 || page <= 0 || strcmp(p->o->device, "cpu") != 0) return;
  const rlim_t share = (rlim_t)pages * (rlim_t)page / 2 / p->n_workers;
  const struct rlimit data = {share > least ? share : least, RLIM_INFINITY};
  setrlimit(RLIMIT_DATA, &data);
#else
  (void)p;
#endif
}

/* Does not return. */
static void work(pool *p, size_t me, int fd) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  signal(SIGPIPE, SIG_DFL);
  dup2(STDERR_FILENO, STDOUT_FILENO); /* what libraries print is no result */
  limit_self(p);
  rule_schemas *schemas = NULL;
  val_engine *e = NULL;
  iso_error err;
  if (rule_schemas_new(&schemas, &err) || val_new(p->o, schemas, &e, &err)) _exit(1);
  for (;;) {
    const size_t i = __atomic_fetch_add(&p->s->next, 1, __ATOMIC_SEQ_CST);
    if (i >= p->n_jobs) break;
    p->s->since[me] = now();
    __atomic_store_n(&p->s->at[me], i + 1, __ATOMIC_SEQ_CST);
    if (!send_entry(fd, i, decide(e, schemas, p, i))) _exit(1);
    __atomic_store_n(&p->s->at[me], 0, __ATOMIC_SEQ_CST);
  }
  _exit(0); /* libtorch's destructors have nothing to add */
}

/* ---- in the parent ---- */

static iso_code start(pool *p, size_t i, iso_error *err) {
  int fd[2];
  p->s->at[i] = 0;
  if (pipe(fd) != 0) return iso_fail(err, ISO_IO, "no pipe: %s", strerror(errno));
  fflush(stdout);
  fflush(stderr);
  const pid_t pid = fork();
  if (pid == 0) {
    close(fd[0]);
    for (size_t k = 0; k < p->n_workers; k++)
      if (p->w[k].fd > 0) close(p->w[k].fd);
    work(p, i, fd[1]);
  }
  close(fd[1]);
  if (pid < 0) {
    close(fd[0]);
    return iso_fail(err, ISO_IO, "no process: %s", strerror(errno));
  }
  p->w[i] = (worker){.pid = pid, .fd = fd[0]};
  return ISO_OK;
}

/* Takes the complete entries off the bytes that a worker has sent. */
static iso_code take_entries(pool *p, worker *w, iso_error *err) {
  size_t head[2];
  while (w->n >= sizeof head) {
    memcpy(head, w->buf, sizeof head);
    if (w->n < sizeof head + head[1]) break;
    json_t *e = json_loadb(w->buf + sizeof head, head[1], 0, NULL);
    if (e == NULL || head[0] >= p->n_jobs) {
      json_decref(e);
      return iso_fail(err, ISO_INTERNAL, "a worker sent what is no entry");
    }
    json_decref(p->entry[head[0]]);
    p->entry[head[0]] = e;
    w->n -= sizeof head + head[1];
    memmove(w->buf, w->buf + sizeof head + head[1], w->n);
  }
  return ISO_OK;
}

static void fail_current(pool *p, size_t i, int status) {
  char why[120];
  const size_t at = p->s->at[i];
  if (at == 0 || p->entry[at - 1] != NULL) return;
  if (p->w[i].killed) snprintf(why, sizeof why, "stopped after %g seconds", p->limit_s);
  else if (WIFSIGNALED(status))
    snprintf(why, sizeof why, "an operator ended its process: %s", strsignal(WTERMSIG(status)));
  else
    snprintf(why, sizeof why, "an operator ended its process with status %d", WEXITSTATUS(status));
  p->entry[at - 1] = rules_failure_json(p->job[at - 1].file, p->job[at - 1].r, why);
}

/* A worker has closed its pipe. */
static iso_code finish(pool *p, size_t i, iso_error *err) {
  int status = 0;
  worker *w = &p->w[i];
  close(w->fd);
  waitpid(w->pid, &status, 0);
  const bool died = !WIFEXITED(status) || WEXITSTATUS(status) != 0;
  if (died) fail_current(p, i, status);
  free(w->buf);
  *w = (worker){.fd = -1};
  return died && p->s->next < p->n_jobs ? start(p, i, err) : ISO_OK;
}

static iso_code receive(pool *p, size_t i, iso_error *err) {
  worker *w = &p->w[i];
  if (w->cap - w->n < 65536) {
    char *more = realloc(w->buf, w->cap + 131072);
    if (more == NULL) return iso_fail(err, ISO_NOMEM, "out of memory");
    w->buf = more;
    w->cap += 131072;
  }
  const ssize_t n = read(w->fd, w->buf + w->n, w->cap - w->n);
  if (n < 0)
    return errno == EINTR ? ISO_OK : iso_fail(err, ISO_IO, "a worker's pipe: %s", strerror(errno));
  if (n == 0) return finish(p, i, err);
  w->n += (size_t)n;
  return take_entries(p, w, err);
}

static void stop_late(pool *p) {
  for (size_t i = 0; i < p->n_workers; i++)
    if (p->w[i].fd > 0 && !p->w[i].killed && __atomic_load_n(&p->s->at[i], __ATOMIC_SEQ_CST) &&
        now() - p->s->since[i] > p->limit_s) {
      p->w[i].killed = true;
      kill(p->w[i].pid, SIGKILL);
    }
}

static iso_code run(pool *p, iso_error *err) {
  iso_code c = ISO_OK;
  for (size_t i = 0; i < p->n_workers && !c; i++) c = start(p, i, err);
  while (!c) {
    struct pollfd fds[MAX_WORKERS];
    size_t which[MAX_WORKERS], n = 0;
    for (size_t i = 0; i < p->n_workers; i++)
      if (p->w[i].fd > 0) {
        fds[n] = (struct pollfd){.fd = p->w[i].fd, .events = POLLIN};
        which[n++] = i;
      }
    if (n == 0) break;
    if (poll(fds, (nfds_t)n, POLL_MS) < 0 && errno != EINTR)
      return iso_fail(err, ISO_IO, "poll: %s", strerror(errno));
    for (size_t k = 0; k < n && !c; k++)
      if (fds[k].revents) c = receive(p, which[k], err);
    stop_late(p);
  }
  return c;
}

iso_code rules_check(const rules_job *job, size_t n, const rules_how *how, json_t **out,
                     iso_error *err) {
  const char *obligations = how->obligations;
  const size_t workers = how->workers;
  pool p = {
      .job = job, .n_jobs = n, .o = how->o, .limit_s = how->limit_s, .obligations = obligations};
  if (obligations != NULL &&
      ((mkdir(obligations, 0777) != 0 && errno != EEXIST) || access(obligations, W_OK | X_OK) != 0))
    return iso_fail(err, ISO_IO, "%s: %s", obligations, strerror(errno));
  p.n_workers = workers < 1 ? 1 : workers > MAX_WORKERS ? MAX_WORKERS : workers;
  if (p.n_workers > n) p.n_workers = n;
  for (size_t i = 0; i < MAX_WORKERS; i++) p.w[i].fd = -1;
  p.s = mmap(NULL, sizeof *p.s, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  p.entry = calloc(n + 1, sizeof(json_t *));
  json_t *all = json_array();
  iso_code c = p.s == MAP_FAILED || p.entry == NULL || all == NULL
                   ? iso_fail(err, ISO_NOMEM, "out of memory")
                   : run(&p, err);
  for (size_t i = 0; i < p.n_workers; i++)
    if (p.w[i].fd > 0) { /* only after an error */
      kill(p.w[i].pid, SIGKILL);
      waitpid(p.w[i].pid, NULL, 0);
      close(p.w[i].fd);
      free(p.w[i].buf);
    }
  for (size_t i = 0; p.entry != NULL && i < n; i++) {
    if (!c && p.entry[i] == NULL)
      p.entry[i] =
          rules_failure_json(job[i].file, job[i].r, "a worker ended before it was decided");
    if (c) json_decref(p.entry[i]);
    else if (json_array_append_new(all, p.entry[i]) != 0)
      c = iso_fail(err, ISO_NOMEM, "out of memory");
  }
  free(p.entry);
  if (p.s != MAP_FAILED) munmap(p.s, sizeof *p.s);
  if (c) json_decref(all);
  else *out = all;
  return c;
}
