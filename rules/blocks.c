/* Memory of large tensors; see tensor.h. */
#include "rules/tensor.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __linux__
#include <sys/mman.h>
#include <unistd.h>
#endif

enum { MAX_KEPT = 256 };

static struct {
  pthread_mutex_t lock;
  struct {
    void *data;
    size_t bytes;
  } kept[MAX_KEPT]; /* the oldest first */
  size_t n, bytes, most;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER,
          .most = (size_t)5 << 28}; /* a table of 150,000 words of width 900 */

/* Pages that come from the kernel after all are asked for as large ones: filling those takes a
 * third of the time. */
static void ask_large_pages(void *data, size_t bytes) {
#ifdef MADV_HUGEPAGE
  const uintptr_t page = (uintptr_t)sysconf(_SC_PAGESIZE),
                  from = ((uintptr_t)data + page - 1) / page * page;
  (void)madvise((void *)from, bytes - page, MADV_HUGEPAGE);
#else
  (void)data;
  (void)bytes;
#endif
}

static void *remove_at(size_t i) {
  void *data = pool.kept[i].data;
  pool.bytes -= pool.kept[i].bytes;
  memmove(&pool.kept[i], &pool.kept[i + 1], (--pool.n - i) * sizeof pool.kept[0]);
  return data;
}

/* Requires: the lock. */
static void shrink_to(size_t bytes) {
  while (pool.bytes > bytes) free(remove_at(0));
}

void *rule_memory_take(size_t bytes) {
  enum { ALIGNED = 64 };
  void *data = NULL;
  pthread_mutex_lock(&pool.lock);
  for (size_t i = pool.n; i-- > 0 && !data;)
    if (pool.kept[i].bytes == bytes) data = remove_at(i);
  pthread_mutex_unlock(&pool.lock);
  if (data) return data;
  if (posix_memalign(&data, ALIGNED, bytes)) {
    pthread_mutex_lock(&pool.lock);
    shrink_to(0);
    pthread_mutex_unlock(&pool.lock);
    if (posix_memalign(&data, ALIGNED, bytes)) return NULL;
  }
  ask_large_pages(data, bytes);
  return data;
}

void rule_memory_give(void *data, size_t bytes) {
  if (!data) return;
  pthread_mutex_lock(&pool.lock);
  const bool keep = bytes <= pool.most;
  if (keep) {
    shrink_to(pool.most - bytes);
    if (pool.n == MAX_KEPT) free(remove_at(0));
    pool.kept[pool.n].data = data;
    pool.kept[pool.n++].bytes = bytes;
    pool.bytes += bytes;
  }
  pthread_mutex_unlock(&pool.lock);
  if (!keep) free(data);
}

void rule_memory_keep(size_t bytes) {
  pthread_mutex_lock(&pool.lock);
  pool.most = bytes;
  shrink_to(bytes);
  pthread_mutex_unlock(&pool.lock);
}

size_t rule_memory_kept(void) {
  pthread_mutex_lock(&pool.lock);
  const size_t bytes = pool.bytes;
  pthread_mutex_unlock(&pool.lock);
  return bytes;
}
