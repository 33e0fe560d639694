/* Numbers in SMT-LIB, which has decimals only: a rational is a quotient of products, powers of two
 * in factors that fit. */
#include <stdarg.h>
#include "validate/smt/obligation_int.h"

static void write_whole(unsigned __int128 v, bool whole, FILE *f) {
  char buf[48], *p = buf + sizeof buf;
  *--p = 0;
  do *--p = (char)('0' + (int)(v % 10));
  while (v /= 10);
  fprintf(f, whole ? "%s" : "%s.0", p);
}

/* 2^e x, in factors that fit. */
static void write_scaled(unsigned __int128 v, int32_t e, bool whole, FILE *f) {
  const int32_t room = 60;
  if (e > 0) fputs(whole ? "(* 1 " : "(* 1.0 ", f); /* closed by the caller */
  if (e > 0 && v < ((unsigned __int128)1 << 60)) {
    const int32_t step = e < room ? e : room;
    v <<= step, e -= step;
  }
  write_whole(v, whole, f);
  for (; e > 0; e -= room)
    fputc(' ', f), write_whole((unsigned __int128)1 << (e < room ? e : room), whole, f);
}

static void write_power(int32_t e, FILE *f) {
  for (; e > 0; e -= 60) fprintf(f, " %lld.0", 1LL << (e < 60 ? e : 60));
}

/* A number that 128 bits do not hold. It is no integer's coefficient: those are int64. */
static void write_large(smt_writer *w, uint32_t q, bool whole, FILE *f) {
  const int32_t e = pv_q_exponent(&w->c->q, q);
  char *n, *d;
  if (whole || e > 1100 || e < -1100) return smt_give_up(w, "a number too large to write");
  if (!pv_q_decimals(&w->c->q, q, &n, &d)) {
    w->c->fault.no_memory = true;
    return;
  }
  const bool negative = pv_q_sign(&w->c->q, q) < 0;
  fputs(negative ? "(- (/ (* " : "(/ (* ", f);
  fprintf(f, "%s.0 1.0", n);
  write_power(e, f);
  fprintf(f, ") (* %s.0 1.0", d);
  write_power(-e, f);
  fputs(negative ? ")))" : "))", f);
  free(n);
  free(d);
}

void smt_write_rational(smt_writer *w, uint32_t q, bool whole, FILE *f) {
  pv_q v;
  if (!pv_q_small(&w->c->q, q, &v)) return write_large(w, q, whole, f);
  const bool negative = v.n < 0;
  const unsigned __int128 n = (unsigned __int128)(negative ? -v.n : v.n),
                          d = (unsigned __int128)v.d;
  if (v.e > 1100 || v.e < -1100) return smt_give_up(w, "a number too large to write");
  if (negative) fputs("(- ", f);
  if (d == 1 && v.e == 0) {
    write_whole(n, whole, f);
  } else if (v.e >= 0 && d == 1) {
    write_scaled(n, v.e, whole, f);
    fputc(')', f);
  } else {
    fputs("(/ ", f);
    write_scaled(n, v.e > 0 ? v.e : 0, whole, f);
    fputs(v.e > 0 ? ") " : " ", f);
    write_scaled(d, v.e < 0 ? -v.e : 0, whole, f);
    fputs(v.e < 0 ? "))" : ")", f);
  }
  if (negative) fputs(")", f);
}
