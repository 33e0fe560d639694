/* Limits on a command: time, memory and the user's patience. They stop a command between two steps;
 * the results so far are reported. */
#ifndef CLI_CONFIG_LIMITS_H
#define CLI_CONFIG_LIMITS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct limits {
  double seconds;        /* of wall clock, from limits_start on; 0: none */
  uint64_t memory_bytes; /* resident; 0: none */
  double end;            /* private */
} limits;

/* "1500", "64M": bytes, with K, M or G for 2^10, 2^20, 2^30. Returns: false when it is no such
 * number, or 0. */
bool limits_parse_bytes(const char *s, uint64_t *out);
/* A positive number of seconds. Returns: false when it is none. */
bool limits_parse_seconds(const char *s, double *out);
/* From here on the clock runs and SIGINT asks to stop (a second one ends the process). With a limit
 * on memory, the system refuses an operator's allocation far beyond it. */
void limits_start(limits *l);
extern const char limits_memory[]; /* why, where it is the limit on memory */
/* Returns: why to stop, NULL to go on. Static. */
const char *limits_reached(const limits *l);
bool limits_interrupted(void);

#endif
