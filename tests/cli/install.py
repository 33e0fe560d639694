#!/usr/bin/env python3
"""`make install` brings everything, what it brought works by itself, and `make uninstall` leaves
nothing. Plain Python 3.

    tests/cli/install.py [--build build] [--no-torch]

The last line is `N passed, N failed`."""

import argparse
import os
import re
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PAIR = [os.path.join(ROOT, "models/gpt2-2l", side) for side in ("hf-sdpa", "vllm")]
EXPECTED = [
    "bin/isomer",
    "include/egraph/egraph.h",
    "include/egraph/base/error.h",
    "lib/libegraph.a",
    "lib/libegraph.so",
    "lib/pkgconfig/egraph.pc",
    "share/isomer/rules/core.rules",
    "share/man/man1/isomer-compare.1",
    "share/bash-completion/completions/isomer",
    "share/zsh/site-functions/_isomer",
    "share/fish/vendor_completions.d/isomer.fish",
]
# Libraries that ldd may name: the C library, and the runtime of a build with sanitizers.
ALWAYS_THERE = {
    "lib",
    "lib64",
    "libc",
    "libm",
    "libdl",
    "libpthread",
    "libgcc_s",
    "libasan",
    "libubsan",
}
LIBRARIES = ["lib/isomer/libisomer_shim.so", "lib/isomer/libisomer_kernels.so"]

passed, failures = 0, []


def expect(what, good, seen=""):
    global passed
    if good:
        passed += 1
    else:
        failures.append(what)
        print("FAILED %s: %s" % (what, seen))


def make(target, to, options):
    command = ["make", "-s", target, "B=" + options.build, "DESTDIR=" + to, "PREFIX=/opt/isomer"]
    if options.no_torch:
        command.append("TORCH=0")
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True)


def run(*command):
    env = {"PATH": "/usr/bin:/bin"}
    return subprocess.run(command, cwd="/", env=env, capture_output=True, text=True)


def files_below(folder):
    return [os.path.join(r, f) for r, _, files in os.walk(folder) for f in files]


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default="build")
    a.add_argument("--no-torch", action="store_true")
    options = a.parse_args()
    with tempfile.TemporaryDirectory(prefix="isomer-install-") as to:
        at = os.path.join(to, "opt/isomer")
        p = make("install", to, options)
        expect("make install succeeds", p.returncode == 0, p.stderr)
        for name in EXPECTED + ([] if options.no_torch else LIBRARIES):
            expect("%s is installed" % name, os.path.exists(os.path.join(at, name)))
        program = os.path.join(at, "bin/isomer")
        rules = os.path.join(at, "share/isomer/rules/core.rules")
        p = run(program, "rules", "list", rules)
        expect("the rules that were installed can be read", p.returncode == 0, p.stderr)
        if not options.no_torch:
            p = run(program, "compare", *PAIR)
            expect(
                "the program that was installed finds its libraries and compares",
                p.returncode == 0 and "EQUIVALENT" in p.stdout,
                p.stdout[-200:] + p.stderr,
            )
        p = make(os.path.join(options.build, "portable/isomer"), to, options)
        expect("the program of the wheel can be linked", p.returncode == 0, p.stderr)
        program = os.path.join(ROOT, options.build, "portable/isomer")
        p = run(program, "rules", "list", rules)
        expect("the program of the wheel reads rules", p.returncode == 0, p.stderr)
        needed = set(re.findall(r"(lib\w+)", run("ldd", program).stdout)) - ALWAYS_THERE
        expect("the program of the wheel needs no library of Debian's", not needed, needed)
        p = make("uninstall", to, options)
        expect("make uninstall succeeds", p.returncode == 0, p.stderr)
        expect("nothing is left", not files_below(to), files_below(to))
        left = os.listdir(at) if os.path.exists(at) else []
        expect("no folder is left", not left, left)
    print("%d passed, %d failed" % (passed, len(failures)))
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
