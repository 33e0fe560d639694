#!/usr/bin/env python3
"""Equality saturation measured: medians, rates and peak memory on every workload, beside the textbook e-graph of
tests/support and, with --peer COMMAND, beside another engine that prints what `isomer saturate --json -` prints.

Engines take turns on each row, so that all see the same machine; ratios are of medians of that one run, over processor
time, which neighbours disturb least. Rows of the textbook that would take minutes are left out.

    egraph.py --isomer build/isomer --textbook build/tests/bench/textbook [--data DIR] [--peer COMMAND] [--repeat 5] [FILE...]
"""
import argparse, json, math, os, re, shlex, statistics, subprocess, sys

SMALL = 30000   # e-nodes at the end up to which the textbook is asked
BATCHES = [1, 64]


def measure(command, path, k, batches):
    c = command + ["saturate", path, "--json", "-", "--only", str(k)] + (["--batches", str(batches)] if batches else [])
    p = subprocess.run(c, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if p.returncode:
        return None
    r = json.loads(p.stdout)
    rows = r.get("runs", r.get("cases"))
    return rows[0] if rows else None


def end(row):
    last = row["iterations"][-1] if "iterations" in row else row
    return last["nodes"], last["classes"]


def rows(path):
    """(label, index, batches) of what a file asks for."""
    text = re.sub(r";[^\n]*", "", open(path).read())
    if "(congruence-closure" in text:
        cases = re.findall(r"\(case \((random|mirror) (\d+) (\d+)", text)
        return [("%s %s" % (kind, m), k, b) for k, (kind, m, _) in enumerate(cases) if int(m) >= 10000
                for b in (BATCHES if kind == "random" else [1])]
    return [(s, k, 0) for k, s in enumerate(re.findall(r"\(run \(scheduler (\w+)\)", text.split("(expected")[0]))]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default="build/isomer")
    a.add_argument("--textbook")
    a.add_argument("--peer")
    a.add_argument("--data", default="tests/egraph/data")
    a.add_argument("--repeat", type=int, default=3)
    a.add_argument("files", nargs="*")
    a = a.parse_args()
    engines = [("isomer", [a.isomer])] + ([("textbook", [a.textbook])] if a.textbook else [])
    engines += [("peer", shlex.split(a.peer))] if a.peer else []
    files = a.files or sorted(f[:-5] for f in os.listdir(a.data) if f.endswith(".sexp"))
    ratios = {name: [] for name, _ in engines}
    print("%-24s %-8s %10s %9s %9s %9s  %s" % ("workload", "run", "ms", "Mnodes/s", "Mmatch/s", "peak MB", "times faster, memory"))
    for f in files:
        path = os.path.join(a.data, f + ".sexp")
        for label, k, batches in rows(path):
            seen = {name: [] for name, _ in engines}
            for turn in range(a.repeat):
                for name, command in engines[::-1 if turn % 2 else 1]:  # nobody always comes behind a neighbour's memory
                    if name == "textbook" and (batches or (seen["isomer"] and end(seen["isomer"][0])[0] > SMALL)):
                        continue
                    r = measure(command, path, k, batches)
                    if r:
                        seen[name].append(r)
            if not seen["isomer"]:
                print("%-24s %-8s no answer" % (f, label))
                return 1
            ms = {n: 1e3 * statistics.median(x["cpu_seconds"] for x in r) for n, r in seen.items() if r}
            mb = {n: 1e-6 * statistics.median(x["peak_rss_bytes"] for x in r) for n, r in seen.items() if r}
            mine = seen["isomer"][0]
            matches = sum(i.get("matches", 0) for i in mine.get("iterations", []))
            text = []
            for n in ms:
                if n == "isomer":
                    continue
                q = ms[n] / max(ms["isomer"], 1e-3)
                ratios[n].append(q)
                text.append("%s %.1fx, %.2fx%s" % (n, q, mb[n] / mb["isomer"], "" if end(seen[n][0]) == end(mine) else " (other counts)"))
            t = max(ms["isomer"], 1e-3) * 1e3
            print("%-24s %-8s %10.2f %9.2f %9.2f %9.1f  %s" % (f, label + ("/%d" % batches if batches else ""), ms["isomer"],
                  end(mine)[0] / t, matches / t, mb["isomer"], "; ".join(text)), flush=True)
    for n, q in ratios.items():
        if q:
            print("%s: geometric mean %.2f, least %.2f, of %d rows" % (n, math.exp(statistics.fmean(map(math.log, q))), min(q), len(q)))
    return 0


sys.exit(main())
