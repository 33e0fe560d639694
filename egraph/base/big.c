/* Arrays that grow far. Small ones come from malloc. Arrays of middle size share shelves of one
 * huge page each: a huge page is cleared in the time of 60 to 160 small pages, and costs one fault,
 * not 512. The first ones stand on a shelf of small pages, so that a run that needs no more than
 * these is not slower by what clearing a huge page takes, a quarter of a millisecond. Large arrays
 * are mappings of their own, in huge pages, where the system has mremap: growing then moves no byte
 * and never holds the old and the new, new room takes no memory before it is used, and freed memory
 * goes back at once. Under AddressSanitizer all come from malloc, which it watches. */
#include "egraph/base/big.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The unused rest is not copied: that would touch it. */
static void *grow_small(void *p, size_t old, size_t used, size_t new) {
  if (used > old / 2 || !old) return realloc(p, new);
  void *q = malloc(new);
  if (!q) return NULL;
  memcpy(q, p, used);
  free(p);
  return q;
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

/* Bytes. From EGI_LARGE on arrays lie on a shelf, beyond SHELVED, or where there is no room on one,
 * they are mappings. MANY: slots. */
enum {
  SLOT = 1 << 15,
  SLOTS = 64,
  FIRST_SLOTS = 8,
  PAGE = SLOT * SLOTS,
  SHELVED = PAGE / 2,
  SHELVES = 16,
  MANY = 8
};

/* The first shelf is the one of small pages: what lies beyond its slots is never free. */
enum { OF_SMALL_PAGES };
static const uint64_t beyond_first = ~UINT64_C(0) << FIRST_SLOTS;

/* An empty shelf is unmapped. */
static struct shelf {
  unsigned char *mem; /* NULL: there is none */
  uint64_t used;      /* a bit for each slot */
} shelf[SHELVES] = {[OF_SMALL_PAGES] = {NULL, beyond_first}};
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void *map_anywhere(size_t bytes) {
  void *p = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return p == MAP_FAILED ? NULL : p;
}

/* A mapping that begins where a huge page can. */
static void *map(size_t bytes) {
  const size_t small = (size_t)sysconf(_SC_PAGESIZE), all = (bytes + small - 1) & ~(small - 1);
  unsigned char *p = map_anywhere(all + PAGE);
  if (!p) return NULL;
  const size_t before = -(uintptr_t)p & (PAGE - 1);
  if (before) (void)munmap(p, before);
  (void)munmap(p + before + all, PAGE - before);
  return p + before;
}

static int slots_of(size_t bytes) { return (int)((bytes + SLOT - 1) / SLOT); }
static uint64_t bits_of(int n, int at) { return ((UINT64_C(1) << n) - 1) << at; }

static bool small_pages(const struct shelf *s) { return s == &shelf[OF_SMALL_PAGES]; }
static size_t bytes_of(const struct shelf *s) { return small_pages(s) ? FIRST_SLOTS * SLOT : PAGE; }

static struct shelf *shelf_of(const void *p) {
  for (int i = 0; i < SHELVES; i++)
    if (shelf[i].mem && (uintptr_t)p - (uintptr_t)shelf[i].mem < bytes_of(&shelf[i]))
      return &shelf[i];
  return NULL;
}
static uint64_t bits_at(const struct shelf *s, const unsigned char *p, size_t bytes) {
  return bits_of(slots_of(bytes), (int)((p - s->mem) / SLOT));
}

static void *new_shelf(bool small) {
  void *p = small ? map_anywhere(FIRST_SLOTS * SLOT) : map(PAGE);
  if (p && !small) (void)madvise(p, PAGE, MADV_HUGEPAGE);
  return p;
}

/* Large arrays are put at the back, small ones at the front, which keeps the free slots together.
 */
static void *put_on(struct shelf *s, int n) {
  const int step = n < MANY ? 1 : -1;
  int at = n < MANY ? 0 : SLOTS - n;
  while (at >= 0 && at <= SLOTS - n && s->used & bits_of(n, at)) at += step;
  if (at < 0 || at > SLOTS - n) return NULL;
  if (!s->mem && !(s->mem = new_shelf(small_pages(s)))) return NULL;
  s->used |= bits_of(n, at);
  return s->mem + (size_t)at * SLOT;
}
/* Where a huge page is there and has room, it is filled first. */
static void *put(size_t bytes) {
  struct shelf *none = NULL;
  void *p = NULL;
  for (int i = OF_SMALL_PAGES + 1; i < SHELVES && !p; i++) {
    if (shelf[i].mem) p = put_on(&shelf[i], slots_of(bytes));
    else if (!none) none = &shelf[i];
  }
  if (!p) p = put_on(&shelf[OF_SMALL_PAGES], slots_of(bytes));
  return p || !none ? p : put_on(none, slots_of(bytes));
}
static void give_back(struct shelf *s) {
  if (!s || s->used != (small_pages(s) ? beyond_first : 0)) return;
  (void)munmap(s->mem, bytes_of(s));
  s->mem = NULL;
}

/* An array goes onto a shelf, or to another place there, which may overlap with where it is.
 * Returns: NULL without memory, and then nothing changed. */
static void *shelve(void *p, size_t old, size_t used, size_t new) {
  pthread_mutex_lock(&lock);
  struct shelf *from = shelf_of(p);
  if (from) from->used &= ~bits_at(from, p, old);
  void *q = put(new);
  if (q && used) memmove(q, p, used);
  if (!q && from) from->used |= bits_at(from, p, old);
  give_back(from);
  pthread_mutex_unlock(&lock);
  if (q && old && !from) egi_big_free(p, old);
  return q;
}

void egi_big_free(void *p, size_t bytes) {
  if (bytes < EGI_LARGE) {
    free(p);
    return;
  }
  pthread_mutex_lock(&lock);
  struct shelf *s = shelf_of(p);
  if (s) s->used &= ~bits_at(s, p, bytes);
  give_back(s);
  pthread_mutex_unlock(&lock);
  if (!s) (void)munmap(p, bytes);
}

/* A mapping grows where it is, or where there is room. */
static void *remap(void *p, size_t old, size_t new) {
  void *q = mremap(p, old, new, 0), *to = NULL;
  if (q != MAP_FAILED) return q;
  if (!(to = map(new))) return NULL;
  q = mremap(p, old, new, MREMAP_MAYMOVE | MREMAP_FIXED, to);
  if (q != MAP_FAILED) return q;
  (void)munmap(to, new);
  return NULL;
}

static void *resize(void *p, size_t old, size_t used, size_t new, bool full) {
  void *q = NULL;
  if (new < EGI_LARGE) return grow_small(p, old, used, new);
  if (new <= SHELVED && full && (q = shelve(p, old, used, new))) return q;
  const bool mapped = old > SHELVED;
  if (!(q = mapped ? remap(p, old, new) : full ? map(new) : map_anywhere(new))) return NULL;
  if (new > SHELVED && full) (void)madvise(q, new, MADV_HUGEPAGE);
  if (mapped) return q;
  if (used) memcpy(q, p, used);
  if (old) egi_big_free(p, old);
  return q;
}
#else
static void *resize(void *p, size_t old, size_t used, size_t new, bool full) {
  (void)full;
  if (new < EGI_LARGE) return grow_small(p, old, used, new);
  void *q = aligned_alloc(EGI_LINE, new);
  if (!q) return NULL;
  if (used) memcpy(q, p, used);
  free(p);
  return q;
}

void egi_big_free(void *p, size_t bytes) {
  (void)bytes;
  free(p);
}
#endif

/* Small arrays grow by four: unused room is never touched, but a move touches all that is used. */
enum { FIRST = 512, SMALL = 1 << 16 };

bool egi_big_grow(void **p, size_t *cap, size_t used, size_t need, size_t elem, bool full) {
  if (need <= *cap) return true;
  size_t n = *cap ? *cap : elem < FIRST / 16 ? FIRST / elem : 16;
  while (n < need) {
    if (n > SIZE_MAX / 4 / elem) return false;
    n *= n * elem < SMALL ? 4 : 2;
  }
  void *q = resize(*p, *cap * elem, used * elem, n * elem, full);
  if (!q) return false;
  *p = q;
  *cap = n;
  return true;
}
