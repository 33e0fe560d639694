#!/usr/bin/env python3
"""The page of `isomer lint --html`: what it holds, and in a headless Chromium, where there is one,
what it shows. Plain Python 3.

    tests/lint/lint_page.py [--isomer build/isomer] [--pictures DIR]"""

import argparse
import json
import os
import re
import sys
import tempfile

from harness import Lint, ROOT, check, finish
from placed_programs import PROGRAMS

sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))
import browser

EVIL = "</script><script>fail()</script><!-- \"'&amp; \u65e5 \x07"


def pipeline(world, steps, hang):
    """A long pipeline that sums after each microbatch; `hang`: rank 1 sums too early once."""
    ranks = []
    for r in range(world):
        events = []
        for k in range(steps):
            if r > 0:
                events.append({"op": "recv", "peer": r - 1, "numel": 4, "handle": "h%d" % k})
                events.append({"op": "wait", "handle": "h%d" % k})
            events.append({"op": "F", "stage": r, "mb": k})
            if r + 1 < world:
                events.append({"op": "send", "peer": r + 1, "numel": 4, "source": "t.py:%d" % k})
            events.append({"op": "all_reduce", "numel": 9, "reduce": "sum"})
        ranks.append(events)
    if hang:
        at = 5 * (steps // 2) + 4
        ranks[1][at], ranks[1][at - 1] = ranks[1][at - 1], ranks[1][at]
    return {"format": "isomer-events", "version": 1, "backend": "nccl", "ranks": ranks}


class Page:
    """A page that lint wrote, and the two objects in it."""

    def __init__(self, isomer, where, name, given):
        path = os.path.join(where, name)
        if isinstance(given, dict):
            with open(path + ".json", "w", encoding="utf-8") as f:
                json.dump(given, f)
            given = path + ".json"
        self.path = path + ".html"
        self.run = Lint(isomer, given, "--html", self.path)
        with open(self.path, encoding="utf-8") as f:
            self.source = f.read()
        self.report, self.data = (
            json.loads(re.search(r'id="%s">(.*?)</script>' % k, self.source, re.S).group(1))
            for k in ("report", "graphs")
        )
        check(self.report == self.run.report, "%s: the report is the JSON report", name)
        check(self.source.count("<script") == 3, "%s: %d scripts", name, self.source.count("<scr"))
        for asks in ("http://", "https://", "@import"):
            body = self.source.replace("http://www.w3.org/2000/svg", "")
            check(asks not in body, "%s: it asks for %s", name, asks)


def lanes(p, d):
    """The lanes are the ranks' events, each with what it meets."""
    for lane, events in zip(p.data["lanes"], d["ranks"]):
        ops, at = [e["op"] for e in events], 0
        for k, step in enumerate(lane["at"]):
            at += step
            op = p.data["ops"][lane["op"][k]]
            check(ops[at] == op, "rank %d event %d: %s", lane["rank"], at, op)
        check(len(lane["op"]) + lane["never"] == len(events), "rank %d: events", lane["rank"])
        for key in ("name", "at", "start", "took", "meet"):
            check(len(lane[key]) == len(lane["op"]), "rank %d: %s", lane["rank"], key)
    meets = [m for lane in p.data["lanes"] for m in lane["meet"] if m >= 0]
    check(len(meets) > len(set(meets)), "nobody meets anybody")


def in_browser(b, pages, pictures):
    def keep(name):
        if pictures:
            os.makedirs(pictures, exist_ok=True)
            b.picture(os.path.join(pictures, name + ".png"))

    def opened(name):
        b.open(pages[name].path)
        b.settle()
        bad = b.complaints()
        check(not bad, "%s: the browser complains: %s", name, bad[:3])
        keep("lint-" + name)

    opened("hang")
    check(b.js("document.querySelectorAll('svg .box').length") == 2, "the circle has two events")
    check(b.js("document.querySelectorAll('svg path.edge').length") == 2, "and two waits")
    b.js("document.querySelector('.card button').click()")
    said = b.js("CHART.about.textContent")
    first = pages["hang"].report["findings"][0]["events"][0]
    check("rank %d event %d" % tuple(first) in said and "never ends" in said, "shown: %s", said)
    check(b.js("CHART.to - CHART.from < CHART.last"), "it comes closer")
    b.js("CHART.box.focus()")
    b.key("0")
    check(b.js("CHART.from === 0 && CHART.to === CHART.last"), "0 shows all")
    point = "(l => CHART.hit(CHART.x((l.start[3] + l.end[3]) / 2), CHART.top(l, 3) + 5))"
    check(b.js("%s(CHART.lanes[2]).i" % point) == 3, "a bar is found where it is drawn")
    opened("large")
    took = b.js(
        "(() => { const a = performance.now(); for (let k = 0; k < 10; k++) CHART.draw(); "
        "return (performance.now() - a) / 10; })()"
    )
    print("64 ranks by 10,000 events: %d ms for a picture" % took)
    opened("evil")
    check(b.js("CHART.words.some(w => w.includes('fail()'))"), "a name is what it was")
    opened("placed")
    rows = b.js("document.querySelectorAll('.placed tbody tr').length")
    check(rows == len(pages["placed"].report["placements"]), "%s rows of placements", rows)
    check(
        b.js("document.querySelectorAll('.placed tr.differs').length") >= 1, "the fault is marked"
    )


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    p.add_argument("--pictures")
    o = p.parse_args()
    with tempfile.TemporaryDirectory() as where:
        small, evil = pipeline(4, 6, True), pipeline(3, 2, False)
        for e in evil["ranks"][0]:
            e["name"] = e["source"] = EVIL
        evil["ranks"][1].pop()
        placed = os.path.join(where, "capture")
        PROGRAMS["gelu of a partial sum"].write(placed, True)
        pages = {
            "hang": Page(o.isomer, where, "hang", small),
            "large": Page(o.isomer, where, "large", pipeline(64, 2000, False)),
            "evil": Page(o.isomer, where, "evil", evil),
            "placed": Page(o.isomer, where, "placed", placed),
        }
        lanes(pages["hang"], small)
        check(pages["hang"].data["cycles"] == [2], "the circle: %s", pages["hang"].data["cycles"])
        check("<title>isomer: FINDINGS 1: deadlock" in pages["hang"].source, "the title")
        size = len(pages["large"].source)
        check(size < 18e6, "64 ranks by 10,000 events: %d bytes", size)
        check("<script>fail" not in pages["evil"].source, "a name is markup")
        check(pages["evil"].run.status == 1, "evil: %s", pages["evil"].run.last)
        bad = Lint(o.isomer, os.path.join(where, "hang.json"), "--html", where)
        check(bad.status == 2 and bad.text.count("\n") == 1, "--html of a folder: %s", bad.text)
        program = browser.find()
        if program:
            b = browser.Browser(program)
            try:
                in_browser(b, pages, o.pictures)
            finally:
                b.close()
        else:
            print("no Chromium: what the page shows was left out")
    finish()


main()
