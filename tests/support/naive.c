#include "tests/support/naive.h"

uint32_t naive_add(naive *s, uint32_t symbol, const uint32_t *child, size_t n) {
  const uint32_t id = (uint32_t)s->n++;
  s->term[id].symbol = symbol;
  s->term[id].arity = (uint32_t)n;
  for (size_t k = 0; k < n; k++) s->term[id].child[k] = child[k];
  s->block[id] = id;
  return id;
}

bool naive_congruent(const naive *s, uint32_t a, uint32_t b) {
  if (s->term[a].symbol != s->term[b].symbol || s->term[a].arity != s->term[b].arity) return false;
  for (uint32_t k = 0; k < s->term[a].arity; k++)
    if (s->block[s->term[a].child[k]] != s->block[s->term[b].child[k]]) return false;
  return true;
}

void naive_merge(naive *s, uint32_t a, uint32_t b) {
  const uint32_t x = s->block[a], y = s->block[b], least = x < y ? x : y;
  for (size_t i = 0; i < s->n; i++)
    if (s->block[i] == x || s->block[i] == y) s->block[i] = least;
}

void naive_close(naive *s) {
  for (bool again = true; again;) {
    again = false;
    for (uint32_t i = 0; i < s->n; i++)
      for (uint32_t j = 0; j < i; j++)
        if (s->block[i] != s->block[j] && naive_congruent(s, i, j)) {
          naive_merge(s, i, j);
          again = true;
        }
  }
}

size_t naive_count_blocks(const naive *s) {
  size_t n = 0;
  for (size_t i = 0; i < s->n; i++) n += s->block[i] == i;
  return n;
}

size_t naive_count_nodes(const naive *s) {
  size_t n = 0;
  for (uint32_t i = 0; i < s->n; i++) {
    bool first = true;
    for (uint32_t j = 0; j < i && first; j++) first = !naive_congruent(s, i, j);
    n += first;
  }
  return n;
}

bool naive_is_parent(const naive *s, uint32_t term, uint32_t block) {
  for (uint32_t k = 0; k < s->term[term].arity; k++)
    if (s->block[s->term[term].child[k]] == block) return true;
  return false;
}
