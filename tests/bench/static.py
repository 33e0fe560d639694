#!/usr/bin/env python3
"""Models that are not run, by the configurations in tests/static/: what `compare --static --learn`
and `check --learn` cost, Transformers against vLLM. Needs a Python with both
(capture/requirements-vllm.txt).

    tests/bench/static.py [--isomer build/isomer] [--only NAME] [--folder DIR]

Captures that --folder has are taken, others are made there. Of each pair: operators, the verdict,
seconds of processor and of wall clock, and peak resident memory. Exit status 1 where one is not
equivalent, its certificate does not hold, or more than 10 s of processor or 1 GiB is used."""

import argparse
import glob
import json
import os
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SECONDS, MEBIBYTES = 10, 1024


def captured(config, folder):
    """The four captures of a configuration: small ones of both sides, large ones of both sides."""
    with open(config, encoding="utf-8") as f:
        eager = json.load(f)["model_type"] == "gpt_oss"  # Transformers has no other with sinks
    paths = []
    for size in ("small", "big"):
        for side in ("hf", "vllm"):
            path = os.path.join(folder, "%s-%s" % (size, side))
            paths.append(path)
            if os.path.exists(os.path.join(path, "graph.json")):
                continue
            how = ["--static"] if size == "big" else ["--reduce", "--layers", "2"]
            if side == "hf" and eager:
                how += ["--attn", "eager"]
            command = [sys.executable, "-m", "isomer_capture", side, config, "-o", path, *how]
            env = dict(os.environ, PYTHONPATH=os.path.join(ROOT, "capture"))
            subprocess.run(command, env=env, check=True, stdout=subprocess.DEVNULL)
    return paths


def measured(command):
    """(last line, exit status, seconds of processor, of wall clock, MiB)."""
    begin = time.time()
    with tempfile.TemporaryFile("w+") as out:
        p = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out)
        _, status, usage = os.wait4(p.pid, 0)
        out.seek(0)
        lines = out.read().strip().split("\n")
    used = usage.ru_utime + usage.ru_stime
    status = os.waitstatus_to_exitcode(status)
    return lines[-1], status, used, time.time() - begin, usage.ru_maxrss / 1024


def operators(path):
    with open(os.path.join(path, "graph.json"), encoding="utf-8") as f:
        return len(json.load(f)["nodes"])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    parser.add_argument("--only", default="")
    parser.add_argument("--folder")
    options = parser.parse_args()
    folder = options.folder or tempfile.mkdtemp()
    wrong = 0
    for config in sorted(glob.glob(os.path.join(ROOT, "tests", "static", "*.json"))):
        name = os.path.basename(config)[: -len(".json")]
        if options.only not in name:
            continue
        at = os.path.join(folder, name)
        os.makedirs(at, exist_ok=True)
        small_left, small_right, left, right = captured(config, at)
        learn, chain = ["--learn", small_left, small_right], os.path.join(at, "chain.json")
        for command in (
            ["compare", "--static", *learn, left, right],
            ["compare", "--static", *learn, left, right, "--certificate", chain],
            ["check", chain, left, right, *learn],
        ):
            said, status, used, wall, memory = measured([options.isomer, *command])
            bad = status != 0 or used > SECONDS or memory > MEBIBYTES
            wrong += bad
            print(
                "%-16s %5d / %5d  %5.1f s of processor, %5.1f s, %4.0f MiB  %s%s"
                % (
                    name,
                    operators(left),
                    operators(right),
                    used,
                    wall,
                    memory,
                    said[:60],
                    "  WRONG" if bad else "",
                ),
                flush=True,
            )
    return wrong > 0


if __name__ == "__main__":
    sys.exit(main())
