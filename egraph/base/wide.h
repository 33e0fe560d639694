/* Loops over many numbers, compiled for the machine's widest vectors too: which one runs is chosen
 * when the program is loaded. All of them give the same bits: nothing is contracted (-std=c11), and
 * sums are of integers or keep their order. */
#ifndef EGRAPH_BASE_WIDE_H
#define EGRAPH_BASE_WIDE_H

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    __GNUC__ >= 12 && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define ISO_WIDE __attribute__((target_clones("arch=x86-64-v4", "default")))
#else
#define ISO_WIDE
#endif

#endif
