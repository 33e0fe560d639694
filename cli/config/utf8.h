/* Names of files are bytes; documents are UTF-8. */
#ifndef CLI_CONFIG_UTF8_H
#define CLI_CONFIG_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* One character from `s`, not its end. Returns: its bytes; 1 and U+FFFD where they are none. */
size_t utf8_decode(const char *s, uint32_t *c);
/* The same text with U+FFFD for each byte that is part of no character. Owns: malloc'ed; NULL when
 * there is no memory. */
char *utf8_clean(const char *s);

#endif
