#!/usr/bin/env python3
"""Equality saturation measured: medians, rates and peak memory on every workload, beside the
textbook e-graph of tests/support and, with --peer COMMAND, beside another engine that prints what
`isomer saturate --json -` prints. Memory is the peak of the process, and what of it came after its
start: more than a run without rules takes.

Engines take turns on each row, so that all see the same machine; ratios are of medians of that one
run, over processor time, which neighbours disturb least. Rows of the textbook that would take
minutes are left out.

    egraph.py --isomer build/isomer --textbook build/tests/bench/textbook [--data DIR]
        [--peer COMMAND] [--repeat 5] [FILE...]
"""

import argparse, json, math, os, re, shlex, statistics, subprocess, sys, tempfile

SMALL = 30000  # e-nodes at the end up to which the textbook is asked
BATCHES = [1, 64]


def measure(command, path, k, batches):
    c = (
        command
        + ["saturate", path, "--json", "-", "--only", str(k)]
        + (["--batches", str(batches)] if batches else [])
    )
    p = subprocess.run(c, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if p.returncode:
        return None
    r = json.loads(p.stdout)
    rows = r.get("runs", r.get("cases"))
    return rows[0] if rows else None


def start_mb(command):
    """Peak of a run that does nothing."""
    with tempfile.TemporaryDirectory() as t:
        path = os.path.join(t, "nothing.sexp")
        with open(path, "w") as f:
            f.write(
                "(workload (name nothing) (language simple) (analysis none) (rules) (start (term "
                "a))\n"
                "  (measure (run (scheduler simple) (iteration-limit 1) (node-limit none))))\n"
            )
        seen = [r["peak_rss_bytes"] for r in (measure(command, path, 0, 0) for _ in range(5)) if r]
        return 1e-6 * statistics.median(seen) if seen else 0.0


def end(row):
    last = row["iterations"][-1] if "iterations" in row else row
    return last["nodes"], last["classes"]


def rows(path):
    """(label, index, batches) of what a file asks for."""
    text = re.sub(r";[^\n]*", "", open(path).read())
    if "(congruence-closure" in text:
        cases = re.findall(r"\(case \((random|mirror) (\d+) (\d+)", text)
        return [
            ("%s %s" % (kind, m), k, b)
            for k, (kind, m, _) in enumerate(cases)
            if int(m) >= 10000
            for b in (BATCHES if kind == "random" else [1])
        ]
    return [
        (s, k, 0)
        for k, s in enumerate(re.findall(r"\(run \(scheduler (\w+)\)", text.split("(expected")[0]))
    ]


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
    base = {name: start_mb(command) for name, command in engines}
    above = {name: [] for name, _ in engines}
    for name, mb in base.items():
        print("%s: %.1f MB at its start" % (name, mb))
    print(
        "%-24s %-8s %10s %9s %9s %9s %9s  %s"
        % (
            "workload",
            "run",
            "ms",
            "Mnodes/s",
            "Mmatch/s",
            "peak MB",
            "+ start",
            "times faster, memory, without the start",
        )
    )
    for f in files:
        path = os.path.join(a.data, f + ".sexp")
        for label, k, batches in rows(path):
            seen = {name: [] for name, _ in engines}
            for turn in range(a.repeat):
                for name, command in engines[
                    :: -1 if turn % 2 else 1
                ]:  # nobody always comes behind a neighbour's memory
                    if name == "textbook" and (
                        batches or (seen["isomer"] and end(seen["isomer"][0])[0] > SMALL)
                    ):
                        continue
                    r = measure(command, path, k, batches)
                    if r:
                        seen[name].append(r)
            if not seen["isomer"]:
                print("%-24s %-8s no answer" % (f, label))
                return 1
            ms = {
                n: 1e3 * statistics.median(x["cpu_seconds"] for x in r)
                for n, r in seen.items()
                if r
            }
            mb = {
                n: 1e-6 * statistics.median(x["peak_rss_bytes"] for x in r)
                for n, r in seen.items()
                if r
            }
            mine = seen["isomer"][0]
            matches = sum(i.get("matches", 0) for i in mine.get("iterations", []))
            text = []
            for n in ms:
                if n == "isomer":
                    continue
                q = ms[n] / max(ms["isomer"], 1e-3)
                ratios[n].append(q)
                own = max(mb[n] - base[n], 0.01) / max(mb["isomer"] - base["isomer"], 0.01)
                if mb[n] >= 2 * base[n]:
                    above[n].append(own)  # elsewhere it is the start's noise
                text.append(
                    "%s %.1fx, %.2fx, %s%s"
                    % (
                        n,
                        q,
                        mb[n] / mb["isomer"],
                        "%.2fx" % own if mb[n] >= 2 * base[n] else "-",
                        "" if end(seen[n][0]) == end(mine) else " (other counts)",
                    )
                )
            t = max(ms["isomer"], 1e-3) * 1e3
            print(
                "%-24s %-8s %10.2f %9.2f %9.2f %9.1f %9.1f  %s"
                % (
                    f,
                    label + ("/%d" % batches if batches else ""),
                    ms["isomer"],
                    end(mine)[0] / t,
                    matches / t,
                    mb["isomer"],
                    mb["isomer"] - base["isomer"],
                    "; ".join(text),
                ),
                flush=True,
            )
    for n, q in ratios.items():
        if q:
            print(
                "%s: geometric mean %.2f, least %.2f, of %d rows"
                % (n, math.exp(statistics.fmean(map(math.log, q))), min(q), len(q))
            )
        if above[n]:
            print(
                (
                    "%s: memory without the start, where it is more than that: geometric mean "
                    "%.2f, %d of %d rows a quarter or less"
                )
                % (
                    n,
                    math.exp(statistics.fmean(map(math.log, above[n]))),
                    sum(x >= 4 for x in above[n]),
                    len(above[n]),
                )
            )
    return 0


sys.exit(main())
