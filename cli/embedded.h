/* Python code that the program copies into its output, turned into strings by the Makefile. */
#ifndef CLI_EMBEDDED_H
#define CLI_EMBEDDED_H

/* The kernels' meanings (cli/templates/repro_kernels.py), in pieces that begin with "# ---- NAME".
 */
extern const char repro_kernels[];
/* Exported rules (rules export): the matching and building that both kinds of modules share, and
 * the part of each. */
extern const char export_rules[], export_fx[], export_inductor[], export_egg[];

#endif
