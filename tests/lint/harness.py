"""Running `isomer lint`, and counting what passes."""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TALLY = [0, 0]
STATUS = {"clean": 0, "findings": 1, "malformed": 2, "undecided": 3}


class Lint:
    """One call: status, the last line of the text, the report."""

    def __init__(self, isomer, *args):
        p = subprocess.run(
            [isomer, "lint", "--json", "-"] + [str(a) for a in args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            timeout=300,
        )
        self.status, self.text = p.returncode, p.stderr.decode("utf-8", "replace")
        self.last = self.text.strip().split("\n")[-1]
        self.report = json.loads(p.stdout) if p.returncode in (0, 1, 3) else None

    def kinds(self):
        return [f["kind"] for f in self.report["findings"] if f["severity"] == "error"]

    def events(self):
        return [tuple(e) for f in self.report["findings"] for e in f["events"]]


def check(ok, what, *args):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED " + (what % args if args else what), flush=True)
    return ok


def finish():
    print("%d passed, %d failed" % tuple(TALLY))
    sys.exit(TALLY[1] != 0)
