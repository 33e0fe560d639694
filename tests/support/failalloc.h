/* The failing allocator. Including this in one file of a program puts malloc, calloc, realloc and
 * free in front of the C library's (or the sanitizer's), counts live blocks and fails the call that
 * `fail_after` names. Programs that do not include it are untouched. Under a sanitizer only failing
 * is offered; it looks for leaks itself. */
#ifndef TESTS_SUPPORT_FAILALLOC_H
#define TESTS_SUPPORT_FAILALLOC_H

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

/* Exported, so that the libraries' calls come here too. */
#define FAIL_EXPORT __attribute__((visibility("default")))

/* A sanitizer's own start allocates, before it can check the reads of these. */
#define FAIL_UNSEEN __attribute__((no_sanitize("address", "undefined")))

static long fail_after = -1; /* calls that still succeed; -1: all */
static bool fail_happened;
static bool fail_always
    __attribute__((unused)); /* once one has failed, all that come after it fail too */
static long fail_live __attribute__((unused)); /* blocks alive; 0 under a sanitizer */

/* With FAIL_ONLY_OURS only calls from the program itself fail: libraries that break without memory
 * (jansson's lexer asserts that its buffer could grow) are left out. */
extern char __executable_start, etext;

FAIL_UNSEEN static bool fail_is_ours(const void *caller) {
#ifdef FAIL_ONLY_OURS
  if ((const char *)caller < &__executable_start || (const char *)caller >= &etext) return false;
#endif
  (void)caller;
  return true;
}

/* A program may look at each call that could fail, and at blocks that come and go. */
#ifndef FAIL_SEEN
#define FAIL_SEEN() (void)0
#define FAIL_TAKEN(p) (void)0
#define FAIL_GIVEN(p) (void)0
#endif

FAIL_UNSEEN static bool fail_now(const void *caller) {
  if (fail_after < 0 || !fail_is_ours(caller)) return false;
  FAIL_SEEN();
  if (fail_after > 0) {
    fail_after--;
    return false;
  }
  if (!fail_always) fail_after = -1;
  fail_happened = true;
  errno = ENOMEM;
  return true;
}

/* Let `n` calls succeed and fail the next one. */
static void fail_arm(long n) {
  fail_happened = false;
  fail_after = n;
}
/* Returns: whether a call was failed since. */
static bool fail_disarm(void) {
  fail_after = -1;
  return fail_happened;
}

#if defined(__SANITIZE_ADDRESS__)
#define FAIL_NEXT(f) __interceptor_##f
#else
#define FAIL_NEXT(f) __libc_##f
void FAIL_NEXT(free)(void *p);
FAIL_EXPORT void free(void *p) {
  fail_live -= p != NULL;
  if (p) FAIL_GIVEN(p);
  FAIL_NEXT(free)(p);
}
#endif
void *FAIL_NEXT(malloc)(size_t n);
void *FAIL_NEXT(calloc)(size_t n, size_t size);
void *FAIL_NEXT(realloc)(void *p, size_t n);

FAIL_UNSEEN static void *fail_counted(void *p, const void *caller) {
#if !defined(__SANITIZE_ADDRESS__)
  fail_live += p != NULL;
#endif
  if (p && fail_is_ours(caller)) FAIL_TAKEN(p);
  return p;
}

FAIL_UNSEEN FAIL_EXPORT void *malloc(size_t n) {
  const void *caller = __builtin_return_address(0);
  return fail_now(caller) ? NULL : fail_counted(FAIL_NEXT(malloc)(n), caller);
}
FAIL_UNSEEN FAIL_EXPORT void *calloc(size_t n, size_t size) {
  const void *caller = __builtin_return_address(0);
  return fail_now(caller) ? NULL : fail_counted(FAIL_NEXT(calloc)(n, size), caller);
}
FAIL_UNSEEN FAIL_EXPORT void *realloc(void *p, size_t n) {
  const void *caller = __builtin_return_address(0);
  if (fail_now(caller)) return NULL;
  if (p) FAIL_GIVEN(p); /* before another thread can be given the place */
  void *q = FAIL_NEXT(realloc)(p, n);
  if (!p) return fail_counted(q, caller);
  if (fail_is_ours(caller)) FAIL_TAKEN(q ? q : p);
  return q;
}

#endif
