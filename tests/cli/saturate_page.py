#!/usr/bin/env python3
"""The page of `isomer saturate --html`: it says what --json says, whole and well-formed, and
nothing but the times differs from run to run. Plain Python 3.

    tests/cli/saturate_page.py [--isomer build/isomer]

The last line is `N passed, N failed`."""

import argparse
import html.parser
import json
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VOID = {"meta", "line", "polyline"}
TALLY = [0, 0]
# Names and atoms that a page must not take for its own.
WORKLOAD = """(workload (name "a<b&c") (language l) (analysis none)
  (rules (rule commute (+ ?x ?y) (+ ?y ?x))
         (rule associate (+ ?x (+ ?y ?z)) (+ (+ ?x ?y) ?z))
         (rule "</td><script>" (zero ?x) ?x))
  (start (term (+ a (+ b (+ c (+ d (+ e (+ f (zero g)))))))))
  (measure (run (scheduler simple) (iteration-limit 6) (node-limit none))
           (run (scheduler backoff) (iteration-limit 20) (node-limit none))
           (run (scheduler simple) (iteration-limit 50) (node-limit 300))))
"""


def check(ok, what, seen=""):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED %s: %s" % (what, str(seen)[:300]), flush=True)


class Page(html.parser.HTMLParser):
    """Tables as rows of texts, points of curves, and whether all that opens is closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.wrong, self.tables, self.titles, self.curves = [], [], [], [], []
        self.heads = []
        self.feed(text)
        self.wrong += self.open

    def handle_starttag(self, tag, attrs):
        a = dict(attrs)
        if tag not in VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")
            if "title" in a:
                self.titles.append(a["title"])
        elif tag == "h2":
            self.heads.append("")
        elif tag == "polyline":
            self.curves.append((a["class"], a["points"].split()))

    def handle_endtag(self, tag):
        if tag not in VOID and (not self.open or self.open.pop() != tag):
            self.wrong.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        elif self.open and self.open[-1] == "h2":
            self.heads[-1] += data


def made(path, folder, name):
    page = os.path.join(folder, name)
    p = subprocess.run(
        [O.isomer, "saturate", path, "--html", page, "--json", "-"], capture_output=True, text=True
    )
    check(p.returncode == 0, "exit status", p.stderr)
    with open(page, encoding="utf-8") as f:
        return f.read(), json.loads(p.stdout)


def says_what_json_says(text, report):
    page = Page(text)
    check(not page.wrong, "all that opens is closed", page.wrong)
    check("<script" not in text, "a rule's name is text")
    check(len(page.tables) == 2 * len(report["runs"]), "two tables a run", len(page.tables))
    titles = iter(page.titles)
    for k, run in enumerate(report["runs"]):
        check(
            page.heads[k] == "%s scheduler: %s" % (run["scheduler"], run["stop"]),
            "head",
            page.heads[k],
        )
        rules, iterations = page.tables[2 * k], page.tables[2 * k + 1]
        counts = [[str(i[x]) for x in ("nodes", "classes", "matches")] for i in run["iterations"]]
        check([row[1:4] for row in iterations[1:]] == counts, "iterations", iterations)
        check(len(rules) == 4, "rules", rules)
        added = [0] * len(counts)
        found = [0] * len(counts)
        for row in rules[1:]:
            cells = [
                re.fullmatch(r"(\d+): (\d+) matches, (\d+) e-nodes", next(titles)).groups()
                for _ in counts[1:]
            ]
            cells = [tuple(map(int, c)) for c in cells]
            check([c[0] for c in cells] == list(range(1, len(counts))), "iterations of a rule")
            check(int(row[1]) == sum(c[1] for c in cells), "a rule's matches", row)
            check(int(row[2]) == sum(c[2] for c in cells), "a rule's e-nodes", row)
            for i, matches, nodes in cells:
                found[i] += matches
                added[i] += nodes
        check(found == [int(c[2]) for c in counts], "matches of all rules", (found, counts))
        for i in range(1, len(counts)):
            grown = int(counts[i][0]) - int(counts[i - 1][0])
            check(added[i] >= grown, "e-nodes of all rules", (i, added[i], grown))
        for name, points in page.curves[3 * k : 3 * k + 3]:
            check(len(points) == len(counts), "a point an iteration", name)
            x = [int(p.split(",")[0]) for p in points]
            y = [int(p.split(",")[1]) for p in points]
            check(x == sorted(x) and all(0 <= v <= 240 for v in y), "a curve in its frame", points)
            column = ("nodes", "classes", "matches").index(name.split()[-1])
            values = [int(c[column]) for c in counts]
            for i in range(1, len(values)):
                up = values[i] >= values[i - 1]
                check(y[i] <= y[i - 1] if up else y[i] >= y[i - 1], "more is higher", name)
    check(next(titles, None) is None, "cells beyond the iterations")


def main():
    with tempfile.TemporaryDirectory(prefix="isomer-page-") as folder:
        path = os.path.join(folder, "w.sexp")
        with open(path, "w", encoding="utf-8") as f:
            f.write(WORKLOAD)
        first, report = made(path, folder, "1.html")
        second, _ = made(path, folder, "2.html")
        says_what_json_says(first, report)
        time = re.compile(r'<td class="time">[\d.]+</td>')
        check(time.sub("", first) == time.sub("", second), "only times differ")
        check(len(time.findall(first)) > 50, "times are there")
        missing = os.path.join(folder, "no/where.html")
        p = subprocess.run(
            [O.isomer, "saturate", path, "--html", missing], capture_output=True, text=True
        )
        check(p.returncode == 2 and p.stderr.count("\n") == 1, "no such folder", p.stderr)
        with open(path, "w", encoding="utf-8") as f:
            f.write(WORKLOAD.replace("(start", "(start (term ?x)"))
        page = os.path.join(folder, "3.html")
        p = subprocess.run(
            [O.isomer, "saturate", path, "--html", page], capture_output=True, text=True
        )
        check(p.returncode == 2 and not os.path.exists(page), "nothing half-written", p.stderr)
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] else 0


if __name__ == "__main__":
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    O = a.parse_args()
    sys.exit(main())
