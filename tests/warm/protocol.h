/* A client of the warm program sends four file descriptors (the three standard ones and the
 * working folder) with a `request`, then `bytes` bytes: the words and the environment, each ended
 * by a zero byte. The answer is one int: a status as waitpid has it, or WARM_REFUSED. */
#ifndef TESTS_WARM_PROTOCOL_H
#define TESTS_WARM_PROTOCOL_H

#include <stdint.h>
#include <sys/resource.h>

#define WARM_FDS 4
#define WARM_REFUSED (-1)
#define WARM_MOST (8u << 20)

typedef struct request {
  uint32_t words, variables, bytes;
  uint32_t mask; /* umask */
  int priority;
  struct rlimit limit[RLIM_NLIMITS];
} request;

#endif
