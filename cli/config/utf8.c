#include "cli/config/utf8.h"

#include <stdlib.h>
#include <string.h>

size_t utf8_decode(const char *text, uint32_t *c) {
  const unsigned char *s = (const unsigned char *)text;
  const size_t n = s[0] < 0x80                   ? 1
                   : s[0] >= 0xC2 && s[0] < 0xE0 ? 2
                   : s[0] >= 0xE0 && s[0] < 0xF0 ? 3
                   : s[0] >= 0xF0 && s[0] < 0xF5 ? 4
                                                 : 0;
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
  *c = n < 2 ? s[0] : s[0] & (0xFFu >> (n + 1));
  for (size_t i = 1; i < n; i++) {
    if ((s[i] & 0xC0) != 0x80) { /* a NUL too */
      *c = 0xFFFD;
      return 1;
    }
    *c = *c << 6 | (s[i] & 0x3Fu);
  }
  if (n && *c >= least[n] && *c <= 0x10FFFF && (*c < 0xD800 || *c > 0xDFFF)) return n;
  *c = 0xFFFD;
  return 1;
}

char *utf8_clean(const char *s) {
  char *out = malloc(3 * strlen(s) + 1), *to = out;
  while (out && *s) {
    uint32_t c;
    const size_t n = utf8_decode(s, &c);
    const size_t len = n == 1 && c == 0xFFFD ? 3 : n; /* itself has 3 bytes */
    memcpy(to, len == n ? s : "\xEF\xBF\xBD", len);
    to += len;
    s += n;
  }
  if (out) *to = 0;
  return out;
}
