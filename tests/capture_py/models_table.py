#!/usr/bin/env python3
"""Every model type of the installed Transformers: captured, and `eager` attention against `sdpa`.

    tests/capture_py/models_table.py [--isomer build/isomer] [--output FILE.md] [--seconds 60]
        [--every K] [--start I] [--capture-only] [TYPE...]

Each type is captured by `isomer-capture hf TYPE --reduce --layers 2`, in a process of its own with
a limit of processor time: forked from one that has imported PyTorch and Transformers, which takes
longer than most captures. One that reads numbers out of its tensors is captured once more with
--specialize.
What fails gives its one line; a Python traceback is a failure of ours. The table has a row for each
type, and counts of causes at its top; without --output it goes to the standard output. The last
line is `N passed, N failed`: failed are tracebacks, crashes and captures that the program
refuses."""

import argparse
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
VERDICT = {0: "equivalent", 1: "different", 3: "undecided"}


def model_types():
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    return sorted(CONFIG_MAPPING_NAMES)


def answer(status, text):
    """(status or None after the time limit, the last line of its errors, all of them)"""
    lines = [line for line in text.splitlines() if line.strip()]
    return status, lines[-1] if lines else "", text


BUSY = 10  # on a machine that others use too, the clock may run so much faster


def late(seconds):
    return None, "no answer after %g s" % seconds


def run(command, seconds):
    try:
        p = subprocess.run(
            command, capture_output=True, text=True, timeout=BUSY * seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return answer(*late(seconds))
    return answer(p.returncode, p.stderr)


def imported():
    """isomer_capture's main function, with all that captures of Transformers need."""
    os.environ["HF_HUB_OFFLINE"] = "1"
    sys.path.insert(0, os.path.join(ROOT, "capture"))
    import isomer_capture.hf  # noqa: F401
    import torch
    import transformers  # noqa: F401
    from isomer_capture.cli import main

    torch.set_num_threads(1)  # a child has no threads of its parent's
    return main


def forked(main, arguments, seconds):
    """The same of a main function, in a child."""
    with tempfile.TemporaryFile() as out:
        child = os.fork()
        if child == 0:
            status = 70  # of what ends without a status
            resource.setrlimit(resource.RLIMIT_CPU, (int(seconds), int(seconds) + 1))
            try:
                os.dup2(out.fileno(), 1)
                os.dup2(out.fileno(), 2)
                status = main(arguments)
            except SystemExit as e:
                status = e.code if isinstance(e.code, int) else 1
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        end = time.monotonic() + BUSY * seconds
        while time.monotonic() < end:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                out.seek(0)
                text = out.read().decode("utf-8", "replace")
                status = os.waitstatus_to_exitcode(status)
                return answer(*(late(seconds) if status == -signal.SIGXCPU else (status, text)))
            time.sleep(0.05)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    return answer(*late(seconds))


NUMBERS = "pass specialize=True"  # what is said of a model that reads numbers out of its tensors


def capture(kind, attention, folder, o):
    """(why there is none, whether that is a failure of ours)"""
    arguments = ["hf", kind, "--reduce", "--layers", "2", "--attn", attention, "-o", folder]
    status, line, err = forked(o.main, arguments, o.seconds)
    if status == 2 and NUMBERS in line:
        status, line, err = forked(o.main, [*arguments, "--specialize"], o.seconds)
        o.specialized = status == 0
    if status == 0:
        return None, False
    broken = status not in (None, 2) or "Traceback (most recent call last)" in err
    return line or "status %s" % status, broken


def row(kind, o):
    """(what is said of it, whether it was captured, whether that is a failure of ours)"""
    with tempfile.TemporaryDirectory(prefix="isomer-table-") as folder:
        sides = [os.path.join(folder, a) for a in ("eager", "sdpa")]
        o.specialized = False
        why, broken = capture(kind, "eager", sides[0], o)
        if why:
            return why, False, broken
        if o.capture_only:
            return "captured" + " for these inputs only" * o.specialized, True, broken
        why, broken = capture(kind, "sdpa", sides[1], o)
        if why:
            return "eager alone: " + why, True, broken
        status, line, _ = run([o.isomer, "compare", "-q", *sides], o.seconds)
        said = VERDICT.get(status)
        return said or line, True, status not in (None, *VERDICT)


def cause(text):
    """A failure without its names and numbers, to count it by."""
    text = re.sub(r"^isomer-capture: (hf [^:]*: )?", "", text)
    return re.sub(r"\d+", "N", re.sub(r"[\"'`][^\"'`]*[\"'`]", "...", text))[:70]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    a.add_argument("--output", help="the table as a file of its own")
    a.add_argument("--seconds", type=float, default=60)
    a.add_argument("--every", type=int, default=1, help="only each K-th type")
    a.add_argument("--start", type=int, default=0, help="and from this one on")
    a.add_argument("--capture-only", action="store_true", help="no comparison")
    a.add_argument("types", nargs="*")
    o = a.parse_args()
    o.main = imported()
    rows, causes, captured, failed = [], {}, 0, 0
    for kind in o.types or model_types()[o.start :: o.every]:
        said, was, broken = row(kind, o)
        captured += was
        failed += broken
        if not was:
            causes[cause(said)] = causes.get(cause(said), 0) + 1
        rows.append("| %s | %s |" % (kind, said.replace("|", "\\|")))
        print("%s: %s" % ("FAILED " * broken + kind, said), file=sys.stderr, flush=True)
    head = "%d of %d model types are captured." % (captured, len(rows))
    most = sorted(causes.items(), key=lambda c: -c[1])
    lines = [head, "", *("- %d: %s" % (n, text) for text, n in most), ""]
    text = "\n".join([*lines, "| type | eager against sdpa |", "| --- | --- |", *rows, ""])
    if o.output:
        with open(o.output, "w", encoding="utf-8") as f:
            f.write(text)
    else:
        print(text)
    print("%d passed, %d failed" % (len(rows) - failed, failed))
    return 1 if failed or not rows else 0


if __name__ == "__main__":
    sys.exit(main())
