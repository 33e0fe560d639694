#!/usr/bin/env python3
"""The pairs of parallel.py over kinds, models, ranks and layers: what each takes, as a table.

    tests/pairs/rank_table.py [--isomer build/isomer] [--only TEXT] [--every N] [--first K]
                              [--seed N] [--lines outputs|all|exchanged] [--output FILE.md]

A line per pair, as distributed.py has it. --every: each N-th of them, from the K-th on, where the
whole takes too long. --lines all: the relations file has the leaves, too, a line for each replica
and for each group of ranks that make up a parameter; outputs: their lines alone; exchanged: the
ranks' graph is the left one. --output writes a row for each kind, model and direction, with the
worst of its figures. Status 1 where a pair is not equivalent within the bounds of
distributed.py."""

import argparse
import os
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import distributed
import parallel

HEAD = """# Graphs of several ranks: what a comparison takes

`tests/pairs/rank_table.py` makes each pair from one source (`tests/pairs/parallel.py`), whole and
divided over ranks, and compares them without a file of rules. A row has the worst of its pairs:
seconds of processor time, MiB, and the share of rules that are proved. [relations.md](relations.md)
says what a relations file has; here it has the outputs' lines, and those of inputs that ranks have
parts of. %d pairs, each of %d.

| kind | model | direction | ranks | layers | pairs | equivalent | seconds | MiB | proved |
| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |
"""


def span(values):
    seen = sorted(set(values))
    return str(seen[0]) if len(seen) == 1 else ", ".join(map(str, seen))


# ---- lines about leaves ----


def cut_dim(whole, part):
    """Along which dimension a part is smaller; -1: it is as large, None: it is no part."""
    if len(whole) != len(part):
        return None
    differ = [d for d in range(len(whole)) if whole[d] != part[d]]
    return -1 if not differ else differ[0] if len(differ) == 1 else None


def joined(parts, d):
    """Values of parts of a matrix or a vector, put together along `d`."""
    if d == 0:
        return [v for p in parts for v in p.values]
    rows = parts[0].shape[0]
    width = [len(p.values) // rows for p in parts]
    return [
        v for i in range(rows) for p, n in zip(parts, width) for v in p.values[i * n : (i + 1) * n]
    ]


def groups(whole, parts, d):
    """Ranks whose parts make up the whole: neighbours, or such as are equally far apart."""
    n, m = len(parts), whole.shape[d] // parts[0].shape[d]
    for apart in (False, True):
        of = [list(range(k, n, n // m)) if apart else list(range(k * m, k * m + m))
              for k in range(n // m)]  # fmt: skip
        if all(joined([parts[r] for r in g], d) == whole.values for g in of):
            return of
    return []


def leaf_lines(left, right):
    """What each parameter of the left graph is on the ranks."""
    for name, (whole, _) in left.weights.items():
        parts = []
        while "rank%d.%s" % (len(parts), name) in right.weights:
            parts.append(right.weights["rank%d.%s" % (len(parts), name)][0])
        if not parts or not whole.shape:
            continue
        d = cut_dim(whole.shape, parts[0].shape)
        quoted = ["rank%d.%s" % (r, name) for r in range(len(parts))]
        if d == -1:
            for r, p in enumerate(parts):
                if p.values == whole.values:
                    yield "leaf %s = %s" % (name, quoted[r])
        elif d in (0, 1):
            for g in groups(whole, parts, d):
                yield "leaf %s = cat([%s], %d)" % (name, ", ".join(quoted[r] for r in g), d)


# ---- pairs ----


def write(folder, case, lines):
    left, right = parallel.build(*case)
    if lines == "all":
        right[1].lines += list(leaf_lines(left[0], right[0]))
    parallel.write_sides(folder, left, right, exchanged=lines == "exchanged")


def run(case, o):
    """(what is short, its line, report, seconds, MiB)"""
    with tempfile.TemporaryDirectory() as folder:
        write(folder, case, o.lines)
        found = distributed.compare(o.isomer, folder, ["--seed", str(o.seed)])
    wrong, line = distributed.judged(distributed.title(case), found)
    return wrong, line, found


def row(kind, model, backward, seen):
    cases = [c for c, _ in seen]
    shares = [
        sum(r["status"] == "proved" for r in rep["rules"]) / len(rep["rules"])
        for _, (_, rep, _, _, _) in seen
        if rep and rep["rules"]
    ]
    return "| %s | %s | %s | %s | %s | %d | %d | %.1f | %.0f | %s |\n" % (
        kind,
        model,
        "backward" if backward else "forward",
        span(c[2] for c in cases),
        span(c[3] for c in cases),
        len(seen),
        sum(f[0] == "equivalent" for _, f in seen),
        max(f[2] for _, f in seen),
        max(f[3] for _, f in seen),
        "%.0f %%" % (100 * min(shares)) if shares else "-",
    )


def main():
    a = argparse.ArgumentParser(description="ranks, layers and what a comparison takes")
    a.add_argument("--isomer", default=os.path.join(distributed.ROOT, "build", "isomer"))
    a.add_argument("--only", default="")
    a.add_argument("--every", type=int, default=1)
    a.add_argument("--first", type=int, default=0)
    a.add_argument("--seed", type=int, default=0)
    a.add_argument("--lines", choices=("outputs", "all", "exchanged"), default="outputs")
    a.add_argument("--output", help="the table, as Markdown")
    o = a.parse_args()
    cases = [c for c in distributed.every() if o.only in distributed.title(c)]
    failed, rows = 0, {}
    for case in cases[o.first % o.every :: o.every]:
        wrong, line, found = run(case, o)
        failed += wrong is not None
        print(line + ("  FAILED: " + wrong if wrong else ""), flush=True)
        kind, model, _, _, backward = case
        rows.setdefault((kind, model, backward), []).append((case, found))
    table = "".join(row(*key, seen) for key, seen in rows.items())
    if o.output:
        with open(o.output, "w", encoding="utf-8") as f:
            f.write(HEAD % (len(sum(rows.values(), [])), o.every) + table)
    n = sum(map(len, rows.values()))
    print("%s%d passed, %d failed" % (table, n - failed, failed))
    return 1 if failed or not n else 0


if __name__ == "__main__":
    sys.exit(main())
