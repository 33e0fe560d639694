#!/usr/bin/env python3
"""Rule libraries: isomer rules minimize, stats and export. Plain Python 3; what is exported is run
where there is something that runs it: by PyTorch (.venv) the modules for FX and Inductor, by egglog
its program, by z3 and cvc5 the SMT-LIB script; mlir-pdll parses the patterns for MLIR.

    tests/cli/library.py [--isomer build/isomer] [--only NAME] [--no-torch] [--every N]

--every: the SMT-LIB script is made of each N-th rule of rules/core.rules alone.

The last line is `N passed, N failed`."""

import glob
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from harness import OPTIONS, ROOT, expect, run_functions, some_of
import commands  # harness says where

CORE = os.path.join(ROOT, "rules", "core.rules")


def isomer(*args, rc=0):
    p = subprocess.run(
        [OPTIONS.isomer, "rules"] + [str(a) for a in args],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=300,
    )
    expect(
        p.returncode == rc,
        "%s: exit status %d: %s",
        " ".join(map(str, args)),
        p.returncode,
        p.stderr[-400:],
    )
    return p


def written(text):
    f = tempfile.NamedTemporaryFile("w", suffix=".rules", dir=TMP, delete=False)
    f.write(text)
    f.close()
    return f.name


# ---- minimize ----

TWICE = (
    "(rule twice (var x f _) (lhs (aten::relu (aten::relu x))) (rhs (aten::relu x)) (evidence "
    'proved "all shapes"))\n'
)
THRICE = (
    "(rule thrice (var x f _) (lhs (aten::relu (aten::relu (aten::relu x)))) (rhs "
    '(aten::relu x)) (evidence proved "all shapes"))\n'
)
ADD = (
    "(rule add (var x f (N)) (var y f (N)) (lhs (aten::add.Tensor x y)) (rhs (aten::add.Tensor "
    'y x)) (evidence proved "these ranks"))\n'
)
BACK = (
    "(rule back (var x f (N M)) (lhs (aten::transpose.int (aten::transpose.int x 0 1) 0 1)) "
    '(rhs x) (evidence proved "these ranks"))\n'
)
ADDMM = (
    "(rule addmm (var x f (N K)) (var w f (K M)) (var b f (M)) (lhs (aten::linear x "
    "(aten::transpose.int w 0 1) b)) (rhs (aten::addmm b x w)) %s)\n"
)
LINEAR = (
    "(rule linear (var x f (N K)) (var w f (M K)) (var b f (M)) (lhs (aten::linear x w b)) (rhs "
    "(aten::addmm b x (aten::transpose.int w 0 1))) "
    '(evidence proved "these ranks"))\n'
)
PROVED, TESTED = '(evidence proved "these ranks")', '(evidence tested "these ranks")'
HALF = (
    "(rule half (var x f (N (* 2 M))) (lhs (getitem (aten::chunk x 2 1) 0)) (rhs "
    '(aten::slice.Tensor x 1 0 M)) (evidence proved "these ranks"))\n'
)
NARROW = (
    "(rule narrow (var x f (N (* 2 M))) (lhs (aten::relu (getitem (aten::chunk x 2 1) 0))) (rhs "
    "(aten::relu (aten::relu (aten::slice.Tensor x 1 0 M)))) "
    '(evidence proved "these ranks"))\n'
)


def minimized(text, *args):
    out = json.loads(isomer("minimize", written(text), "--json", "-", "-q", *args).stdout)
    return set(out["kept"]), {d["name"]: set(d["from"]) for d in out["dropped"]}


def what_follows_goes():
    kept, dropped = minimized(THRICE + TWICE + ADD)
    expect(
        kept == {"twice", "add"} and dropped == {"thrice": {"twice"}},
        "kept %s, dropped %s",
        kept,
        dropped,
    )
    kept, dropped = minimized(HALF + TWICE + NARROW)
    expect(dropped == {"narrow": {"half", "twice"}}, "dropped %s", dropped)


def through_terms_that_neither_side_has():
    """linear(x, w, b) becomes linear(x, w^TT, b) on the way; with the given terms alone there is no
    way."""
    text = BACK + ADDMM % PROVED + LINEAR
    kept, dropped = minimized(text)
    expect(
        len(kept) == 2 and "back" in kept and len(dropped) == 1,
        "kept %s, dropped %s",
        kept,
        dropped,
    )
    kept, dropped = minimized(text, "--terms", "given")
    expect(len(kept) == 3, "dropped %s", dropped)


def evidence_is_not_lost():
    """A proved rule is kept although tested rules imply it: they are weaker evidence."""
    kept, dropped = minimized(THRICE + TWICE.replace("proved", "tested"))
    expect(kept == {"twice", "thrice"}, "dropped %s", dropped)
    out = isomer("minimize", written(THRICE + TWICE), "-q").stdout
    expect('(evidence proved "all shapes")' in out and out.count("(rule ") == 1, "%s", out)


def sizes_are_not_an_accident():
    """The rule for two halves says nothing about another split, whatever the sizes of an
    instance."""
    other = (
        HALF.replace("rule half", "rule third")
        .replace("(* 2 M)", "(* 3 M)")
        .replace("chunk x 2", "chunk x 3")
    )
    kept, dropped = minimized(HALF + other)
    expect(kept == {"half", "third"}, "dropped %s", dropped)


def a_rule_that_does_not_hold_is_named():
    wrong = (
        "(rule wrong (var x f _) (lhs (aten::relu x)) (rhs (aten::neg x)) (evidence proved "
        '"all shapes"))\n'
    )
    p = isomer("minimize", written(wrong + THRICE), rc=2)
    expect("wrong" in p.stderr and p.stderr.count("\n") == 1, "%s", p.stderr)


def attention_with_any_scale():
    """An instance's scale may be negative, for which libtorch's fused causal attention has NaN."""
    library = open(os.path.join(ROOT, "rules", "core.rules"), encoding="utf-8").read()
    kept, dropped = minimized(
        "\n".join(
            r
            for r in re.split(r"\n(?=\(rule )", library)
            if re.match(
                r"\(rule (matmul-(scaled_dot_product_attention-4|unified_attention-2)"
                r"|scaled_dot_product_attention-unified_attention-3)\n",
                r,
            )
        )
    )
    expect(len(kept) + len(dropped) == 3, "kept %s, dropped %s", kept, dropped)


def the_same_twice():
    a, b = (
        isomer("minimize", written(HALF + TWICE + NARROW + THRICE + BACK + LINEAR + ADDMM % TESTED))
        for _ in range(2)
    )
    expect((a.stdout, a.stderr) == (b.stdout, b.stderr), "two runs differ")


# ---- stats ----


def families():
    text = (
        ADD
        + BACK
        + HALF
        + "(rule w (var x f _) (attr p float) (lhs (aten::dropout x p false)) (rhs x))\n"
        "(rule d (var x f _) (lhs (aten::to.dtype x float32)) (rhs x))\n"
        "(rule n (var x f (A B)) (attr e float) (lhs (aten::mul.Tensor x (aten::rsqrt "
        "(aten::add.Scalar (aten::mean.dim (aten::pow.Tensor_Scalar x 2) (list -1) true) e))))"
        " (rhs (aten::rms_norm x (list B) none e)) (where (> e 0)))\n"
        "(rule b (var x f (A B)) (var w f (B)) (attr e float) (lhs (aten::rms_norm x (list B) w "
        "e)) (rhs (_C::rms_norm.isomer x w e)))\n"
        "(rule p (var x f (A B)) (var y f (A B)) (lhs (getitem (isomer::all_reduce (list x y) "
        '"sum") 0)) (rhs (aten::add.Tensor x y)))\n'
    )
    if (
        subprocess.run(
            [OPTIONS.isomer, "rules", "list", written(text)], capture_output=True
        ).returncode
        != 0
    ):
        text = text[: text.index("(rule p ")]  # this build has no such collective
    s = json.loads(isomer("stats", written(text), "--json", "-").stdout)
    want = {"layout": 2, "other": 1, "wrapper": 1, "dtype": 1, "normalisation": 1, "bridge": 1}
    expect(
        {k: v for k, v in s["families"].items() if k != "partition"} == want,
        "families %s",
        s["families"],
    )
    expect(
        s["rules"] == s["distinct"] == sum(s["families"].values()) and s["evidence"]["proved"] == 3,
        "%s",
        s,
    )
    s = json.loads(
        isomer(
            "stats", written(TWICE), written(TWICE.replace("twice", "again")), "--json", "-"
        ).stdout
    )
    expect((s["rules"], s["distinct"]) == (2, 1), "%s", s)


def uses_in_reports():
    def report(model, *rules):
        return written(
            json.dumps(
                {
                    "format": "isomer-report",
                    "left": {"path": "p", "model": model},
                    "rules": [{"lhs": l, "rhs": "r", "status": s, "uses": n} for l, s, n in rules],
                }
            )
        )

    a, b = report("one", ("l", "proved", 3), ("m", "tested", 1)), report("two", ("l", "proved", 2))
    use = json.loads(
        isomer("stats", written(TWICE), "--report", a, "--report", b, "--json", "-").stdout
    )["use"]
    expect(
        use
        == {
            "reports": 2,
            "instances": 3,
            "applications": 6,
            "distinct": 2,
            "shared": 1,
            "proved": 1,
        },
        "%s",
        use,
    )
    expect(
        "1 shared" in isomer("stats", written(TWICE), "--report", a, "--report", b).stdout,
        "the text",
    )
    for text in ("{", "[]", '{"format": "other"}'):
        p = isomer("stats", written(TWICE), "--report", written(text), rc=2)
        expect(p.stderr.count("\n") == 1, "%s", p.stderr)


# ---- export ----


def only_what_is_proved():
    """Rules that are refuted or only tested are named and left out, whatever their file claims;
    --unchecked takes all of them, and says so."""
    claim = '(evidence proved "all shapes")'
    good = (
        "(rule good (var x f (N)) (lhs (aten::relu (aten::relu x))) (rhs (aten::relu x)) %s)\n"
        % claim
    )
    rest = {
        "refuted": "(rule bad (var x f (N)) (lhs (aten::relu x)) (rhs x) %s)\n" % claim,
        "tested": "(rule bad (var x f (4)) (lhs (aten::erfinv (aten::erf x))) (rhs x) %s)\n"
        % claim,
        "unknown": "(rule bad (var x f (4)) (lhs (aten::bernoulli x)) (rhs x) %s)\n" % claim,
    }
    marks = {
        "egg": "// UNCHECKED",
        "egglog": "; UNCHECKED",
        "fx": "# UNCHECKED",
        "inductor": "# UNCHECKED",
        "json": '"unchecked": true',
        "pdll": "// UNCHECKED",
        "smtlib": "; UNCHECKED",
    }
    for target, mark in marks.items():
        p = isomer("export", "--to", target, written(good))
        expect(
            mark not in p.stdout and "isomer: 1 of 1 rules exported" in p.stderr,
            "%s: %s",
            target,
            p.stderr,
        )
    for target, mark in (("json", marks["json"]), ("egglog", marks["egglog"])):
        for status, bad in rest.items():
            p = isomer(
                "export",
                "--to",
                target,
                written(bad + good),
                "-q",
                rc=1 if status == "refuted" else 3,
            )
            expect(
                p.stderr.startswith("isomer: rule bad is not exported: it is " + status)
                and p.stderr.count("\n") == 1,
                "%s: %s",
                target,
                p.stderr,
            )
            expect("bad" not in p.stdout and "good" in p.stdout, "%s, %s", target, status)
            p = isomer("export", "--unchecked", "--to", target, written(bad + good), "-q")
            expect(
                mark in p.stdout and p.stderr == "" and ("bad" in p.stdout or target != "json"),
                "%s, %s: %s",
                target,
                status,
                p.stderr,
            )


def every_rule_is_there_or_listed():
    ranged = (
        "(rule ranged (var i i (N)) (var w f (V D)) (in i 0 V) (lhs (aten::embedding w i)) "
        "(rhs (aten::embedding w i)))\n"
    )
    whole, some = open(CORE).read() + ranged, some_of(CORE) + ranged
    for target, mark in (
        ("json", None),
        ("fx", "# not here: "),
        ("inductor", "# not here: "),
        ("egglog", "; not here: "),
        ("egg", "//! not here: "),
        ("pdll", "// not here: "),
        ("smtlib", "; not here: "),
    ):
        text = some if target == "smtlib" else whole
        n = text.count("(rule ")
        p = isomer("export", "--unchecked", "--to", target, written(text))
        left_out = p.stderr.count(" is left out: ")
        expect(
            "isomer: %d of %d rules exported" % (n - left_out, n) in p.stderr,
            "%s: %s",
            target,
            p.stderr[-200:],
        )
        if mark is None:
            expect(
                left_out == 0 and len(json.loads(p.stdout)["rules"]) == n,
                "json: %d left out",
                left_out,
            )
        else:
            expect(
                left_out > 0
                and p.stdout.count(mark) == left_out
                and (target == "smtlib" or "ranged is left out: it holds for a range" in p.stderr),
                "%s: %d",
                target,
                left_out,
            )
    isomer("export", "--unchecked", "--to", "nothing", CORE, rc=2)
    isomer("export", CORE, rc=2)


def same_bytes():
    for target in ("json", "fx", "inductor", "egglog", "egg", "pdll"):
        expect(
            isomer("export", "--unchecked", "--to", target, CORE).stdout
            == isomer("export", "--unchecked", "--to", target, CORE).stdout,
            "%s",
            target,
        )


SPLIT_SCALE = (
    "(rule split (var x f (N M)) (lhs (getitem (aten::split.Tensor x S 1) 1)) (rhs (getitem "
    "(aten::chunk x 3 1) 1)) (where (= (* 3 S) M)))\n"
    "(rule scale (var x f (N D)) (attr s float) (lhs (aten::mul.Scalar x s)) (rhs "
    "(aten::div.Scalar x (* D 1))) (where (= (* s D) 1)))\n"
)


def read_term(text):
    """An s-expression as nested lists."""
    stack = [[]]
    for t in re.findall(r"[()]|[^\s()]+", text):
        if t == "(":
            stack.append([])
        elif t == ")":
            top = stack.pop()
            stack[-1].append(top)
        else:
            stack[-1].append(t)
    expect(len(stack) == 1 and len(stack[0]) == 1, "not balanced: %s", text)
    return stack[0][0]


def same_term(read, term, names):
    """Whether what was read from a pattern is the term of the JSON export; names get one pattern
    variable each."""
    ((kind, value),) = ((k, v) for k, v in term.items() if k != "args")
    if kind in ("op", "list"):
        args = term["args"] if kind == "op" else value
        return (
            isinstance(read, list)
            and read[0] == (value if kind == "op" else "list")
            and len(read) == len(args) + 1
            and all(same_term(r, t, names) for r, t in zip(read[1:], args))
        )
    if kind == "var":
        return read == "?v%d" % value
    if kind in ("name", "expr"):
        return re.fullmatch(r"\?[ne]\d+", read) is not None and (
            kind == "expr" or names.setdefault(value, read) == read
        )
    if kind == "float":
        return float(read) == float(value) and not re.fullmatch(r"-?\d+", read)
    if kind == "string":
        return read == "str:" + value
    return read == {"bool": str(value).lower(), "none": "none"}.get(kind, str(value))


def egg_reads_back():
    """Each pattern of the Rust file is the rule's side, and each has a check of its own."""
    rules = {
        r["name"]: r
        for r in json.loads(isomer("export", "--unchecked", "--to", "json", CORE, "-q").stdout)[
            "rules"
        ]
    }
    text = isomer("export", "--unchecked", "--to", "egg", CORE, "-q").stdout
    found = re.findall(
        r'rewrite!\("([^"]*)"; r"([^"]*)" => \{ when\(r"([^"]*)", check_(\d+)\) \}\)', text
    )
    ways = text.count("// not from ") + len(found)
    expect(
        len(found) > 200
        and ways == 2 * len({n[:-5] if n.endswith("-back") else n for n, *_ in found}),
        "%d patterns, %d directions",
        len(found),
        ways,
    )
    for i, (name, left, right, check) in enumerate(found):
        r, sides, names = rules[name[:-5] if name.endswith("-back") else name], ["lhs", "rhs"], {}
        if name.endswith("-back"):
            sides.reverse()
        expect(int(check) == i and "fn check_%d(" % i in text, "%s: check %s", name, check)
        for side, read in zip(sides, (left, right)):
            expect(
                same_term(read_term(read), r[side], names), "%s: %s is not its %s", name, read, side
            )
    expect(text.count("{") == text.count("}"), "braces")


def show_one():
    out = isomer("show", CORE, "--name", "id-view-2").stdout
    expect(
        out.startswith("(rule id-view-2\n") and out.count("(rule ") == 1,
        "show --name: %s",
        out[:200],
    )
    isomer("show", CORE, "--name", "nobody", rc=2)


def preconditions_are_code():
    """Exported rules check their conditions, in Rust and in C++."""
    path = written(SPLIT_SCALE)
    for target, wants in (
        (
            "egg",
            (
                "'f', Some(2), false)?",
                "mul(3, n0)? == n2",
                "close((n0 * real(n2)), 1.0",
                "n1 >= 1",
                "let n0 = int(g, s,",
                "let n0 = float(g, s,",
            ),
        ),
        (
            "pdll",
            (
                "tensor(v0, 'f', 2, false)",
                "mul(3, n0) == n2",
                "close((n0 * real(n2)), 1.0",
                "ok &= (n1 >= 1)",
                "= integer(a0)",
                "= decimal(a0)",
                "results(o0)",
                "results(o1)",
            ),
        ),
    ):
        text = isomer("export", "--unchecked", "--to", target, path, "-q").stdout
        for want in wants:
            expect(want in text, "%s: no %s", target, want)
        expect(
            text.count("not from right to left: a size or attribute of the result does not follow")
            == 1,
            "%s: scale backward",
            target,
        )


def pdll_is_parsed():
    """By MLIR's own parser, where it is installed; else patterns are counted and braces matched."""
    text = isomer("export", "--unchecked", "--to", "pdll", CORE, "-q").stdout
    patterns = text.count("\nPattern Rule")
    expect(
        patterns > 200
        and text.count("\nConstraint Holds") == patterns == text.count("  rewrite o")
        and text.count("{") == text.count("}"),
        "%d patterns",
        patterns,
    )
    tool = next(
        filter(
            None, map(shutil.which, ["mlir-pdll"] + ["mlir-pdll-%d" % v for v in range(30, 14, -1)])
        ),
        None,
    )
    if tool is None:
        print("mlir-pdll is not installed: the patterns are not parsed")
        return
    p = subprocess.run(
        [tool, "-x=mlir", "-"], input=text, capture_output=True, text=True, timeout=120
    )
    expect(
        p.returncode == 0 and p.stdout.count("pdl.pattern @Rule") == patterns,
        "mlir-pdll: %s",
        [l for l in p.stderr.splitlines() if "error" in l][:3],
    )


def smtlib_is_proved():
    """Stock solvers answer each case with unsat, then sat (or with unsat alone, where no sizes meet
    it)."""
    out = os.path.join(TMP, "core.smt2")
    p = isomer("export", "--unchecked", "--to", "smtlib", written(some_of(CORE)), "-o", out)
    n = int(re.search(r"(\d+) of \d+ rules exported", p.stderr).group(1))
    cases = open(out).read().count("(echo ")
    expect(
        n > 100 / OPTIONS.every and cases >= n and "left out" in p.stderr,
        "%d rules, %d cases",
        n,
        cases,
    )
    small = os.path.join(TMP, "small.smt2")
    isomer(
        "export",
        "--unchecked",
        "--to",
        "smtlib",
        written(TWICE + ADD + BACK + HALF + SPLIT_SCALE),
        "-o",
        small,
    )
    for tool, path in (["z3", "-smt2"], out), (["cvc5", "--incremental"], small):
        if shutil.which(tool[0]) is None:
            print("%s is not installed: it is not asked" % tool[0])
            continue
        p = subprocess.run(tool + [path], capture_output=True, text=True, timeout=300)
        answers = []
        for line in p.stdout.split("\n"):
            if line in ("sat", "unsat"):
                answers[-1].append(line)
            elif line:
                answers.append([])
        expect(
            p.returncode == 0
            and len(answers) == open(path).read().count("(echo ")
            and all(a in (["unsat", "sat"], ["unsat"]) for a in answers),
            "%s: %s %s",
            tool[0],
            p.returncode,
            (p.stdout + p.stderr)[-300:],
        )
    # A false rule is not exported, nor is one that was only tested.
    p = isomer(
        "export",
        "--unchecked",
        "--to",
        "smtlib",
        written("(rule wrong (var x f _) (lhs (aten::relu x)) (rhs (aten::neg x)))\n"),
    )
    expect(
        "wrong is left out" in p.stderr
        and "0 of 1 rules" in p.stderr
        and "check-sat" not in p.stdout,
        "%s",
        p.stderr,
    )


EGGLOG = r"""
import glob, importlib.machinery, importlib.util, re, sys
so = glob.glob(sys.argv[1] + "/egglog/bindings*.so")[0]
loader = importlib.machinery.ExtensionFileLoader("egglog.bindings", so)
spec = importlib.util.spec_from_file_location("egglog.bindings", so, loader=loader)
b = importlib.util.module_from_spec(spec)
spec.loader.exec_module(b)
eg = b.EGraph()
# each of a program's parts would keep a copy of its whole text
for form in re.split(r"(?m)^(?=\()", open(sys.argv[2]).read()):
    eg.run_program(*eg.parse_program(form))
if len(sys.argv) > 3:
    eg.run_program(*eg.parse_program(sys.argv[3]))
"""


def egglog_takes_it():
    """The program parses and type-checks; a rule fires where its preconditions hold, and not where
    one of them fails."""
    at = next(
        iter(glob.glob(os.path.join(ROOT, ".venv", "lib", "python*", "site-packages", "egglog"))),
        None,
    )
    if at is None:
        print("egglog is not installed: its programs are not run")
        return
    python = os.path.join(ROOT, ".venv", "bin", "python3")

    def run(program, *more):
        path = written(program)
        return subprocess.run(
            [python, "-c", EGGLOG, os.path.dirname(at), path, *more], capture_output=True, text=True
        )

    p = run(isomer("export", "--unchecked", "--to", "egglog", CORE, "-q").stdout)
    expect(p.returncode == 0, "core.rules: %s", p.stderr[-400:])
    rules = isomer("export", "--unchecked", "--to", "egglog", written(SPLIT_SCALE), "-q").stdout
    facts = (
        '(constructor X () A) (set (kind (X)) "%s") (set (rank (X)) %d) (set (dim (X) 0) 4) '
        "(set (dim (X) 1) %d) "
    )
    split = (
        "(let a (getitem (aten::split.Tensor (X) (I 2) (I 1)) (I 1))) (run 3) (check (= a "
        "(getitem (aten::chunk (X) (I 3) (I 1)) (I 1))))"
    )
    scale = (
        "(let a (aten::mul.Scalar (X) (F %s))) (run 3) (check (= a (aten::div.Scalar (X) (I 8))))"
    )
    for query, kind, rank, size, fires in (
        (split, "f", 2, 6, True),
        (split, "f", 2, 5, False),
        (split, "f", 3, 6, False),
        (split, "i", 2, 6, False),
        (scale % "0.125", "f", 2, 8, True),
        (scale % "0.25", "f", 2, 8, False),
    ):
        p = run(rules, facts % (kind, rank, size) + query)
        expect(
            (p.returncode == 0) == fires,
            "%s %s %d %d: %s",
            query,
            kind,
            rank,
            size,
            p.stderr[-300:],
        )


def modules_rewrite_graphs():
    """tests/cli/rewrites.py in a Python with PyTorch: real graphs rewritten, preconditions left
    out."""
    python = next(
        (
            p
            for p in (os.path.join(ROOT, ".venv", "bin", "python3"), sys.executable)
            if os.path.exists(p) and commands.has_torch(p)
        ),
        None,
    )
    if python is None:
        print("no Python with PyTorch: the modules are not run")
        return
    script = os.path.join(ROOT, "tests", "cli", "rewrites.py")
    p = commands.python([script, "--isomer", OPTIONS.isomer], executable=python, timeout=600)
    expect(p.returncode == 0, "%s %s", p.stdout[-1500:], p.stderr[-1500:])


WITHOUT_TORCH = [
    show_one,
    families,
    uses_in_reports,
    only_what_is_proved,
    every_rule_is_there_or_listed,
    same_bytes,
    egglog_takes_it,
    egg_reads_back,
    preconditions_are_code,
    pdll_is_parsed,
    smtlib_is_proved,
]
WITH_TORCH = [
    what_follows_goes,
    through_terms_that_neither_side_has,
    evidence_is_not_lost,
    sizes_are_not_an_accident,
    a_rule_that_does_not_hold_is_named,
    attention_with_any_scale,
    the_same_twice,
    modules_rewrite_graphs,
]

if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as TMP:
        sys.exit(run_functions(WITHOUT_TORCH, WITH_TORCH, every=1))
