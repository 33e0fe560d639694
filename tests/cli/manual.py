#!/usr/bin/env python3
"""Options: settings, usage texts, manual pages and completion say the same, and the files that
documents for developers name are there. Plain Python 3; manual
pages are held against mandoc, and completion is tried in zsh and fish, where these are installed.

    tests/cli/manual.py [--isomer build/isomer]

The last line is `N passed, N failed`."""

import argparse
import os
import pty
import re
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COMMANDS = ["compare", "check", "run", "show", "lint", "rules", "saturate"]
TALLY = [0, 0]
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


def check(ok, what):
    TALLY[not ok] += 1
    if not ok:
        print("FAILED " + what, flush=True)


def text_of(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as f:
        return f.read()


def run(args, where=None, env=None):
    e = {k: v for k, v in os.environ.items() if not k.startswith("ISOMER_")}
    e.update(env or {})
    p = subprocess.run(
        [O.isomer] + args,
        cwd=where,
        env=e,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        timeout=120,
    )
    return p.returncode, p.stdout.decode(), p.stderr.decode()


def usage(command):
    """The long options that `--help` of a command describes; a line on its own, or in the usage
    line itself."""
    status, out, err = run([command, "--help"])
    check(
        status == 0 and not err and out.startswith("usage: isomer " + command),
        "isomer %s --help" % command,
    )
    heads = [
        re.split(r"  +", line.strip(), maxsplit=1)[0]
        for line in out.split("\n")
        if line.startswith("  -") or "usage:" in line or line.startswith("       isomer")
    ]
    tails = re.findall(r"; (--[a-z-]+ \w+) for", out)
    return set(OPTION.findall(" ".join(heads + tails))) - {"--help"}


def table():
    """cli/options.def: by command, options that settings may give and what they take; and those of
    one call alone."""
    out, once = {c: {} for c in COMMANDS}, {c: set() for c in COMMANDS}
    for kind_of, command, name, kind, of in re.findall(
        r'^(OPTION|ONCE)\("([a-z.]+)", "([a-z0-9-]+)", (\w+),\s+(NULL|"[^"]*"),',
        text_of("cli/options.def"),
        re.M,
    ):
        top = command.split(".")[0]
        if kind_of == "ONCE":
            once[top].add("--" + name)
            continue
        check("--" + name not in out[top], "options.def: %s of %s is there twice" % (name, command))
        out[top]["--" + name] = (command, kind, of.strip('"'))
    return out, once


def agree(by_usage, by_table, once):
    for c in COMMANDS:
        check(
            by_usage[c] == set(by_table[c]) | once[c],
            "%s: --help and cli/options.def differ in %s"
            % (c, sorted(by_usage[c] ^ (set(by_table[c]) | once[c]))),
        )
    p = subprocess.run(
        [sys.executable, os.path.join(ROOT, ".ci", "gen-manuals"), "--check"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    check(p.returncode == 0, p.stdout.decode().strip())


GOOD = {
    "FLAG": "true",
    "TEXT": '"0"',
    "FILE": '"f"',
    "FILES": '["f"]',
    "PAIRS": '["a", "b"]',
    "COUNT": "7",
    "SECONDS": "1.5",
    "BYTES": '"1G"',
}
WRONG = {
    "FLAG": '"yes"',
    "TEXT": "1",
    "FILE": "1",
    "FILES": "true",
    "PAIRS": '["a"]',
    "COUNT": '"7"',
    "SECONDS": '"x"',
    "BYTES": '"x"',
    "CHOICE": '"x"',
    "CHOICES": '["x"]',
}


def settings(by_table, where):
    """Each option as a key: a right value goes as far as the missing capture, a wrong one stops at
    its line."""
    path = os.path.join(where, "isomer.toml")
    words = {
        "compare": ["compare", "no-l", "no-r"],
        "check": ["check", "no-c", "no-l", "no-r"],
        "run": ["run", "no-l"],
        "show": ["show", "no-l"],
        "lint": ["lint", "no-l"],
        "rules": ["rules", "check", "no.rules"],
        "saturate": ["saturate", "no.sexp"],
    }
    for c in COMMANDS:
        for option, (command, kind, of) in sorted(by_table[c].items()):
            good = GOOD.get(kind) or '"%s"' % of.split(", ")[0]
            for value, fine in ((good, True), (WRONG[kind], False)):
                with open(path, "w") as f:
                    f.write("# %s\n[%s]\n%s = %s\n" % (option, command, option[2:], value))
                status, out, err = run(words[c], where)
                check(
                    status == 2
                    and err.count("\n") == 1
                    and ("isomer.toml:3: %s: " % option[2:] in err) != fine
                    and "option" not in err,
                    "%s = %s in [%s]: %d %s" % (option, value, command, status, err),
                )


def rules_check(where, env=None, words=()):
    return run(["rules", "check", "-q"] + list(words), where, env)


def precedence(where):
    """Flag over environment over file, nearer table over farther; rules check says which it took by
    whether --json goes to stdout."""
    deep = os.path.join(where, "repo", "a", "b")
    os.makedirs(deep)
    os.makedirs(os.path.join(where, "repo", ".git"))
    rules = os.path.join(deep, "x.rules")
    with open(rules, "w") as f:
        f.write("(rule r (var a f (N)) (lhs (aten::neg (aten::neg a))) (rhs a))\n")

    def write(text, *folder):
        with open(os.path.join(where, *folder, "isomer.toml"), "w") as f:
            f.write(text)

    made = lambda name: os.path.exists(name) and (os.remove(name) or True)
    top = os.path.join(where, "repo")
    write('json = "outside.json"\n')
    rules_check(deep, words=["x.rules"])
    check(not made(os.path.join(where, "outside.json")), "a file above the repository is not read")
    write(
        'json = "top.json"\n[rules]\njson = "rules.json"\n[rules.check]\njson = "check.json"\n',
        "repo",
    )
    rules_check(deep, words=["x.rules"])
    check(
        made(os.path.join(top, "check.json")),
        "[rules.check] goes first, and files are beside the settings",
    )
    write(
        'json = "top.json"\n[rules]\njson = "rules.json"\n[compare]\njson = "compare.json"\n',
        "repo",
    )
    rules_check(deep, words=["x.rules"])
    check(made(os.path.join(top, "rules.json")), "[rules] goes before what stands above")
    write('json = "top.json"\n[compare]\njson = "compare.json"\n', "repo")
    rules_check(deep, words=["x.rules"])
    check(made(os.path.join(top, "top.json")), "what stands above the tables is for all")
    rules_check(deep, {"ISOMER_JSON": "env.json"}, ["x.rules"])
    check(
        made(os.path.join(deep, "env.json")) and not made(os.path.join(top, "top.json")),
        "the environment goes before the file",
    )
    for flag in (["--json", "flag.json"], ["--json=flag.json"]):
        rules_check(deep, {"ISOMER_JSON": "env.json"}, ["x.rules"] + flag)
        check(
            made(os.path.join(deep, "flag.json")) and not made(os.path.join(deep, "env.json")),
            "the command line goes first: %s" % flag,
        )
    for words in (["--no-config"], ["--config", os.devnull], ["--config=" + os.devnull]):
        rules_check(deep, words=["x.rules"] + words)
        check(not made(os.path.join(top, "top.json")), "%s" % words)
    status, _, err = run(["--no-config", "rules", "check", "x.rules"], deep)
    check(
        status in (0, 3) or "libtorch" in err,
        "--no-config before the command: %d %s" % (status, err),
    )
    write("json = 1\n", "repo")
    for words, env in ((["--config", "other.toml"], {}), ([], {"ISOMER_CONFIG": "other.toml"})):
        with open(os.path.join(deep, "other.toml"), "w") as f:
            f.write('json = "named.json"')
        rules_check(deep, env, ["x.rules"] + words)
        check(made(os.path.join(deep, "named.json")), "a named file: %s %s" % (words, env))
    write('json = "near.json"\n', "repo", "a")
    rules_check(deep, words=["x.rules"])
    check(made(os.path.join(top, "a", "near.json")), "the nearest file is read")
    for words, env, says in (
        (["--config", "no.toml"], {}, "no.toml: No such file"),
        ([], {"ISOMER_CONFIG": "no.toml"}, "no.toml: No such file"),
        (["--config"], {}, "no value"),
        (["--config", "x", "--no-config"], {}, "do not go together"),
        ([], {"ISOMER_REQUIRE": "proven"}, 'ISOMER_REQUIRE: "proven" is none of proved, tested'),
        ([], {"ISOMER_SEED": "-1"}, "ISOMER_SEED"),
        ([], {"ISOMER_JOBS": "0"}, "ISOMER_JOBS"),
    ):
        status, out, err = rules_check(deep, env, ["x.rules"] + words)
        check(
            status == 2 and err.count("\n") == 1 and says in err and not out,
            "%s %s: %d %s" % (words, env, status, err),
        )
    status, out, _ = run(["compare", "--help"], deep, {"ISOMER_SEED": "x"})
    check(status == 0 and "--config" not in out, "help is there whatever settings say")


def page_options(text):
    """The options that a manual page describes: its .TP heads between OPTIONS and the next section,
    and of SYNOPSIS."""
    body = text.replace("\\-", "-").split(".SH OPTIONS", 1)[1].split(".SH", 1)[0]
    heads = [
        line for before, line in zip(body.split("\n"), body.split("\n")[1:]) if before == ".TP"
    ]
    return set(
        OPTION.findall(
            " ".join(heads)
            + " "
            + text.replace("\\-", "-").split(".SH SYNOPSIS", 1)[1].split(".SH", 1)[0]
        )
    ) - {"--help"}


def pages(by_usage):
    for c in COMMANDS:
        text = text_of("docs/man/isomer-%s.1" % c)
        check(
            page_options(text) == by_usage[c],
            "isomer-%s.1 and --help differ in %s" % (c, sorted(page_options(text) ^ by_usage[c])),
        )
        _, out, _ = run([c, "--help"])
        for status in re.findall(
            r"(?<![\w.])(\d) [a-z]", " ".join(out.split("exit status", 1)[1:])
        ):
            check(
                "\n.B %s\n" % status in text.split(".SH EXIT STATUS", 1)[1],
                "isomer-%s.1: exit status %s" % (c, status),
            )
        check("\\-%s (1)" % c in text_of("docs/man/isomer.1"), "isomer.1 names isomer-%s" % c)
    _, out, _ = run(["--help"])
    check(
        page_options(text_of("docs/man/isomer.1")) == set(OPTION.findall(out)) - {"--help"},
        "isomer.1 and --help",
    )
    if shutil.which("mandoc"):
        for c in ["isomer"] + ["isomer-" + c for c in COMMANDS]:
            p = subprocess.run(
                ["mandoc", "-Tlint", "-Wwarning", os.path.join(ROOT, "docs", "man", c + ".1")],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
            )
            wrong = [x for x in p.stdout.decode().split("\n") if x and "missing date" not in x]
            check(not wrong, "mandoc: %s" % wrong)
    else:
        print("note: mandoc is not installed; manual pages were read, not formatted")


def workload_page():
    """The example of isomer-workload(5) runs, and ends as the page says."""
    text = text_of("docs/man/isomer-workload.5").replace("\\-", "-")
    example = text.split(".EX\n", 1)[1].split(".EE", 1)[0]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "tutorial.sexp")
        with open(path, "w", encoding="utf-8") as f:
            f.write(example)
        status, out, err = run(["saturate", path, "--extract", "tree"])
    check(
        status == 0 and "foo" in out and "saturated" in out, "isomer-workload.5: %s" % (out + err)
    )
    known = re.findall(
        r'^ +(?:\} known\[\] = \{)?\{"([a-z-]+)", T_', text_of("cli/saturate/rules.c"), re.M
    )
    check(len(known) > 9 and all("(" + k in text for k in known), "isomer-workload.5: %s" % known)


def documents(by_usage):
    """Options that README and docs speak of beside `isomer` are there."""
    known = set().union(*by_usage.values()) | {"--help", "--version", "--config", "--no-config"}
    paths = ["README.md"] + [
        "docs/" + n for n in sorted(os.listdir(os.path.join(ROOT, "docs"))) if n.endswith(".md")
    ]
    for path in paths:
        for line in re.findall(
            r"(?:build/)?isomer (?:%s) [^`\n]*" % "|".join(COMMANDS), text_of(path)
        ):
            check(set(OPTION.findall(line.split('"')[0])) <= known, "%s: %s" % (path, line))


def fish_and_zsh(by_usage, where):
    env = dict(
        os.environ,
        PATH=os.path.dirname(O.isomer) + os.pathsep + os.environ["PATH"],
        HOME=where,
        TERM="dumb",
    )
    if shutil.which("fish"):

        def ask(words):
            p = subprocess.run(
                [
                    "fish",
                    "--no-config",
                    "-c",
                    "source %s; complete -C '%s'"
                    % (os.path.join(ROOT, "docs", "completion", "isomer.fish"), words),
                ],
                env=env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                timeout=60,
            )
            return {line.split("\t")[0] for line in p.stdout.decode().split("\n")}

        check(set(COMMANDS) <= ask("isomer "), "fish: commands %s" % sorted(ask("isomer "))[:9])
        for c in COMMANDS:
            check(
                by_usage[c] <= ask("isomer %s --" % c),
                "fish: %s lacks %s" % (c, sorted(by_usage[c] - ask("isomer %s --" % c))),
            )
    else:
        print("note: fish is not installed")
    if shutil.which("zsh"):
        for words, want in (
            ("comp", "compare "),
            ("compare --certif", "--certificate "),
            ("rules check --cou", "--counterexample "),
            ("check --tr", "--trust-rules "),
        ):
            got = typed(words, want, env, where)
            check(want in got.replace("\a", ""), "zsh: %s: %r" % (words, got[-200:]))
    else:
        print("note: zsh is not installed")


def typed(words, want, env, where):
    """Press a tabulator in an interactive zsh, and look for `want` in the answer."""
    pid, fd = pty.fork()
    if pid == 0:
        os.chdir(where)
        os.execvpe("zsh", ["zsh", "-f", "-i"], env)
    got = ""

    def until(text, seconds):
        nonlocal got
        end = time.time() + seconds
        while text not in got and time.time() < end:
            if select.select([fd], [], [], 0.2)[0]:
                try:
                    got += os.read(fd, 4096).decode(errors="replace")
                except OSError:
                    return

    os.write(
        fd,
        (
            "fpath=(%s $fpath); autoload -Uz compinit; compinit -u -D; PS1=; echo rea''dy\n"
            % os.path.join(ROOT, "docs", "completion")
        ).encode(),
    )
    until("ready", 60)
    time.sleep(0.2)
    got = ""
    os.write(fd, ("isomer %s\t" % words).encode())
    until(want.strip()[-2:] + " ", 20)
    os.kill(pid, signal.SIGKILL)
    os.close(fd)
    os.waitpid(pid, 0)
    return got


PATH = re.compile(r"`([\w.-]+(?:/[\w.-]+)+/?)`")
SOURCE = re.compile(r"(?<![\w./-])(\w+\.(?:cc?|h|def))\b")
NAME = re.compile(r"`(\w+)` in `([\w.-]+(?:/[\w.-]+)+)`")
MADE = ("build/",)  # what only a build or an installation has


def paths():
    """Every path of the tree that a page for developers names is there, with the name that is said
    to be in it, and each folder of sources is named by the page about the folder that it is in."""
    names = subprocess.run(
        ["git", "-C", ROOT, "ls-files"], stdout=subprocess.PIPE, text=True
    ).stdout.split()
    if not names:
        return print("note: no checkout; paths named in documents were not looked at")
    pages = [n for n in names if os.path.basename(n) in ("README.md", "CONTRIBUTING.md")]
    pages.append("docs/architecture.md")
    for page in pages:
        for path in sorted(set(PATH.findall(text_of(page)))):
            here = [os.path.join(ROOT, path), os.path.join(ROOT, os.path.dirname(page), path)]
            first = path.split("/")[0]
            if path.startswith(MADE) or not os.path.isdir(os.path.join(ROOT, first)):
                continue
            check(any(map(os.path.exists, here)), "%s names %s, which is not here" % (page, path))
        for word, path in NAME.findall(text_of(page)):
            here = [os.path.join(ROOT, path), os.path.join(ROOT, os.path.dirname(page), path)]
            check(
                any(
                    re.search(r"\b%s\b" % word, text_of(at)) for at in filter(os.path.isfile, here)
                ),
                "%s names %s in %s, which is not there" % (page, word, path),
            )
        folder = os.path.dirname(page)
        own = {os.path.basename(n) for n in names if os.path.dirname(n).startswith(folder)}
        for source in sorted(set(SOURCE.findall(text_of(page))) - own):
            check(
                page.startswith("docs/"), "%s names %s, which is not in %s" % (page, source, folder)
            )
    told = text_of("docs/architecture.md")
    for folder in sorted({n.split("/")[0] for n in names if n.endswith(".c")} - {"tests"}):
        check("| `%s/` |" % folder in told, "docs/architecture.md says nothing of %s/" % folder)
    sources = {os.path.dirname(n) for n in names if n.endswith((".c", ".py")) and n.count("/") > 1}
    for folder in sorted(f for f in sources if not f.startswith("tests/")):
        top, rest = folder.split("/", 1)
        told = text_of(os.path.join(top, "README.md"))
        check("`%s/`" % rest in told, "%s/README.md says nothing of %s/" % (top, rest))


def main():
    global O
    a = argparse.ArgumentParser(
        description="options in settings, usage texts, manual pages and completion"
    )
    a.add_argument("--isomer", default=os.path.join(ROOT, "build", "isomer"))
    O = a.parse_args()
    O.isomer = os.path.abspath(O.isomer)
    by_usage, (by_table, once) = {c: usage(c) for c in COMMANDS}, table()
    agree(by_usage, by_table, once)
    with tempfile.TemporaryDirectory(prefix="isomer-manual-") as where:
        settings(by_table, where)
        precedence(where)
        fish_and_zsh(by_usage, where)
    pages(by_usage)
    workload_page()
    documents(by_usage)
    paths()
    print("%d passed, %d failed" % tuple(TALLY))
    return 1 if TALLY[1] else 0


sys.exit(main())
