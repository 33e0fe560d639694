#!/usr/bin/env python3
"""`make install` brings everything, what it brought works by itself, and `make uninstall` leaves
nothing; `.ci/demo` ends with what to do next. Plain Python 3.

    tests/cli/install.py [--build build] [--no-torch]

The last line is `N passed, N failed`."""

import argparse
import os
import re
import shutil
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


DEMO = {  # what .ci/demo calls: each notes its call, or ends as it is told
    ".ci/install": "true",
    "build/isomer": 'echo "isomer $*"; exit ${ENDS:-0}',
    ".venv/bin/python3": "exit ${NO_TORCH:-0}",
    ".venv/bin/pip": 'echo "pip $*"; [ -z "${OFFLINE:-}" ] || exit 1; '
    "printf '#!/bin/sh\\n' > .venv/bin/isomer-capture; chmod +x .venv/bin/isomer-capture",
}


def demo(words=(), **settings):
    """What the demo says, in a folder where nothing has to be built, and how it ends."""
    with tempfile.TemporaryDirectory(prefix="isomer-demo-") as at:
        for name, text in DEMO.items():
            os.makedirs(os.path.dirname(os.path.join(at, name)), exist_ok=True)
            with open(os.path.join(at, name), "w") as f:
                f.write("#!/bin/bash\n%s\n" % text)
            os.chmod(os.path.join(at, name), 0o755)
        shutil.copy(os.path.join(ROOT, ".ci/demo"), os.path.join(at, ".ci"))
        with open(os.path.join(at, "Makefile"), "w") as f:
            f.write("all:\n")
        p = subprocess.run(
            ["bash", ".ci/demo", *words],
            cwd=at,
            capture_output=True,
            text=True,
            env={**os.environ, **settings},
        )
    return p.stdout, p.returncode


def the_demo_says_what_is_next():
    own = ".venv/bin/isomer-capture hf llama"
    said, status = demo()
    expect("the demo compares", "isomer compare models/gpt2-2l/hf-sdpa" in said, said)
    expect("the demo brings isomer-capture", "pip install --quiet --no-deps --editable" in said)
    told = said.partition("\nNext:\n")[2]
    expect("the demo says what is next", own in told and "docs/first.md" in told, said)
    expect("the demo ends well", status == 0, status)
    for name in re.findall(r"docs/[\w.]+|models/[\w/-]+", told):
        expect("the demo names files", os.path.exists(os.path.join(ROOT, name)), name)
    for lacking in ("NO_TORCH", "OFFLINE"):
        said, status = demo(**{lacking: "1"})
        told = said.partition("\nNext:\n")[2]
        expect("without isomer-capture: the wheel", "make wheel" in told and own not in told, said)
        expect("without isomer-capture the demo ends well", status == 0, status)
    expect("the demo ends as the comparison does", demo(ENDS="1")[1] == 1)
    said, status = demo(["rules", "list"], ENDS="3")
    expect("arguments are the program's", "isomer rules list" in said and "Next" not in said, said)
    expect("arguments: the program's end", status == 3, status)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default="build")
    a.add_argument("--no-torch", action="store_true")
    options = a.parse_args()
    the_demo_says_what_is_next()
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
