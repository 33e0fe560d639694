/* See ci_text.h. */
#include "cli/ci_text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "cli/config/utf8.h"

size_t ci_split_source(const char *source, long *line) {
  const char *colon = strrchr(source, ':');
  char *end;
  *line = 0;
  if (!colon || colon[1] < '0' || colon[1] > '9') return strlen(source);
  const long n = strtol(colon + 1, &end, 10);
  if (*end) return strlen(source);
  *line = n > 0 && n < INT32_MAX ? n : 0;
  return (size_t)(colon - source);
}

json_t *ci_uri(const char *file, size_t n) {
  char *out = malloc(3 * n + 1), *q = out;
  if (!out) return NULL;
  for (size_t i = 0; i < n; i++) {
    const unsigned char c = (unsigned char)file[i];
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (plain || strchr("/._-~+@", c)) *q++ = (char)c;
    else q += sprintf(q, "%%%02X", c);
  }
  json_t *j = json_stringn(out, (size_t)(q - out));
  free(out);
  return j;
}

/* XML 1.0 has no control characters but three, and not the last two of the characters with 16
 * bits. */
void ci_put_xml(FILE *f, const char *s) {
  uint32_t c;
  for (size_t n; *s; s += n) {
    n = utf8_decode(s, &c);
    if (c == '&') fputs("&amp;", f);
    else if (c == '<') fputs("&lt;", f);
    else if (c == '>') fputs("&gt;", f);
    else if (c == '"') fputs("&quot;", f);
    else if (c == '\n') fputs("&#10;", f);
    else if (c == 0xFFFD || c == 0xFFFE || c == 0xFFFF) fputs("\xEF\xBF\xBD", f);
    else if (c >= 0x20 || c == '\t') fwrite(s, 1, n, f);
    else fputc('?', f);
  }
}

void ci_put_attribute(FILE *f, const char *name, const char *value) {
  fprintf(f, " %s=\"", name);
  ci_put_xml(f, value);
  fputc('"', f);
}

void ci_put_command(FILE *f, const char *s, size_t n, bool property) {
  for (size_t i = 0; i < n; i++) {
    if (s[i] == '%') fputs("%25", f);
    else if (s[i] == '\r') fputs("%0D", f);
    else if (s[i] == '\n') fputs("%0A", f);
    else if (property && s[i] == ':') fputs("%3A", f);
    else if (property && s[i] == ',') fputs("%2C", f);
    else fputc(s[i], f);
  }
}
