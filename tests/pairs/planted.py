#!/usr/bin/env python3
"""Bugs planted in the modelling code of Transformers: found, and named in words.

    tests/pairs/planted.py [--isomer build/isomer] [--every K] [--only TEXT] [--keep DIR]
        [--least N] [--table FILE] [-v]

Each bug is a change of a few words in a copy of the file that makes a family's model. Both copies
are captured at a tiny configuration by isomer-capture, with the same drawn weights, and compared.
The verdict must be `different`, and what the short report says must hold the words of the cause: a
pattern that stands beside the change, written for a reader who sees the report alone. The families
occur nowhere else in the tests. The original against itself must be `equivalent`.

A verdict that is not `different` is a failure. Of reports that name another cause there may be some
(--least: how many must be named; all without it). The last line is `N passed, N failed`."""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
import tempfile
import time
import traceback
from importlib import util

import planted_bugs
import planted_bugs_more
import planted_bugs_ports
from planted_bugs import FAMILIES

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUGS = planted_bugs.BUGS + planted_bugs_more.BUGS + planted_bugs_ports.BUGS
LONGEST = 300  # seconds of a comparison
VERDICT = {0: "equivalent", 1: "different", 2: "error", 3: "undecided"}


def patched(family, changes, folder):
    """Has Transformers take a changed copy of the family's modelling code."""
    name = "transformers.models.%s.modeling_%s" % (family, family)
    with open(util.find_spec(name).origin, encoding="utf-8") as f:
        text = f.read()
    for old, new in changes:
        if old not in text:
            raise SystemExit("%s: %r is not there" % (name, old))
        text = text.replace(old, new, 1)  # later ones are of other classes
    path = os.path.join(folder, "modeling_%s.py" % family)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    spec = util.spec_from_file_location(name, path)
    module = util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    setattr(importlib.import_module("transformers.models." + family), "modeling_" + family, module)


def capture(main, family, changes, out):
    """In a child, which alone has the changed code. Returns what it said, None if all is well."""
    with tempfile.TemporaryDirectory(prefix="isomer-planted-") as folder:
        child = os.fork()
        if child == 0:
            status = 70
            try:
                log = os.open(out + ".log", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
                os.dup2(log, 1), os.dup2(log, 2)
                patched(family, changes, folder)
                options = ["--reduce", "--layers", "2", *FAMILIES[family]]
                status = main(["hf", family, *options, "-o", out])
            except SystemExit as e:
                print(e)
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush(), sys.stderr.flush()
                os._exit(status)
        _, status = os.waitpid(child, 0)
    with open(out + ".log", encoding="utf-8") as f:
        said = f.read()
    return None if os.waitstatus_to_exitcode(status) == 0 else said.strip().split("\n")[-1]


def imported():
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.path.insert(0, os.path.join(ROOT, "capture"))
    import isomer_capture.hf  # noqa: F401
    import torch
    import transformers
    from isomer_capture.cli import main
    from transformers.models.auto import modeling_auto  # noqa: F401

    torch.set_num_threads(1)  # a child has no threads of its parent's
    assert transformers
    return main


class Campaign:
    def __init__(self, o, folder):
        self.o, self.folder, self.main = o, folder, imported()
        self.originals = {}

    def original(self, family):
        if family not in self.originals:
            out = os.path.join(self.folder, family)
            self.originals[family] = out, capture(self.main, family, [], out)
        return self.originals[family]

    def run(self, bug):
        """(verdict, the hints of the report, seconds)"""
        left, why = self.original(bug.family)
        right = os.path.join(self.folder, bug.name)
        why = why or capture(self.main, bug.family, bug.changes, right)
        if why:
            return why, "", 0.0
        report, began = right + ".json", time.monotonic()
        command = [self.o.isomer, "compare", left, right, "-q", "--json", report]
        try:
            status = subprocess.run(command, check=False, timeout=LONGEST).returncode
        except subprocess.TimeoutExpired:
            return "no answer after %d s" % LONGEST, "", time.monotonic() - began
        with open(report, encoding="utf-8") as f:
            parts = json.load(f).get("divergences", [])
        return VERDICT.get(status, status), said(parts[:1]), time.monotonic() - began


def said(divergences):
    """What a reader sees of divergences: the places and the hint."""
    lines = []
    for d in divergences:
        for side in ("left", "right"):
            one = d.get(side) or {}
            lines.append(" ".join(str(one.get(k) or "") for k in ("id", "op", "scope", "source")))
        lines.append(d.get("hint") or "")
    return "\n".join(lines)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--every", type=int, default=1, help="only each K-th bug")
    a.add_argument("--only", default="", help="bugs with this in their name")
    a.add_argument("--least", type=int, help="how many must be named in the words of the cause")
    a.add_argument("--keep", help="a folder for the captures")
    a.add_argument("--table", help="a Markdown table, as a file")
    a.add_argument("-v", action="store_true", help="what each report says")
    o = a.parse_args()
    bugs = [b for b in BUGS if o.only in b.name][:: o.every]
    rows, named, failed = [], 0, 0
    with tempfile.TemporaryDirectory(prefix="isomer-planted-") as temporary:
        campaign = Campaign(o, o.keep or temporary)
        os.makedirs(campaign.folder, exist_ok=True)
        for bug in bugs:
            verdict, text, seconds = campaign.run(bug)
            good = verdict == "different"
            clear = good and re.search(bug.words, text, re.DOTALL) is not None
            named += clear
            failed += not good
            hint = text.split("\n")[-1]
            rows.append("| %s | %s | %s | %.1f |" % (bug.name, bug.what, hint, seconds))
            if o.v or not clear:
                print("%s: %s (%s)\n%s\n" % (bug.name, verdict, bug.what, text), flush=True)
    if o.table:
        with open(o.table, "w", encoding="utf-8") as f:
            f.write("| bug | what was changed | hint | s |\n| --- | --- | --- | --- |\n")
            f.write("\n".join(rows) + "\n")
    print("%d of %d are named in the words of their cause" % (named, len(bugs)))
    failed += named < (len(bugs) if o.least is None else o.least)
    print("%d passed, %d failed" % (len(bugs) - min(failed, len(bugs)), failed))
    return 1 if failed or not bugs else 0


if __name__ == "__main__":
    sys.exit(main())
