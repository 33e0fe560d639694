#!/usr/bin/env python3
"""Textual mutants of the operators' definitions against the differential test. Plain Python 3.

    make mutants-text [SITES=120] [SEED=1] [FILE=reduce | FILE=sampling | FILE=localise]

Each mutant is a definition file with one token changed: a sign of arithmetic, a comparison, a
logical operation, a constant, an index, a function of expressions, a kind, an operator's entry in
its table, or a check left out. Only the changed file is compiled, into a folder of its own, and
linked before the library, which then leaves its own out; nothing in the tree is touched. Mutants
that do not compile, or into the same code, are passed over. A mutant is caught if
build/tests/validate/test_prove_diff ends with an error (or does not end) with it; open leading
dimensions, which have no numbers, by the rules of tests/validate/rules/anyshape.rules; what differs
in what samples do not show, by tests/rules/traps.rules. Of localisation each file is held against
the C test beside it. What is not caught is listed, and must stand in SAME, with the reason why it
means the same. The last line is `N caught, N mean the same, N not caught`; the exit status is 1 if
any is not caught."""

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FILES = sorted(f[:-2] for f in os.listdir(ROOT + "/validate/ops") if f.endswith(".c"))
# How rules are sampled, counterexamples made small, and rounding told apart: the tests of that, in
# place of the differential one.
SAMPLING = "condition problem draw_names instance counterexample floats sample".split()
# Localisation, each by the test of its name. There a read beyond the end, or a leak, is noticed.
LOCALISE = "suspects rank_mend".split()
ASAN = ["-fsanitize=address"]
# Where a change means the same, by why it does: file, a part of the changed line, the change (or ""
# for any).
SAME = {
    "a bound on ranks that no tensor here has": [
        ("composite", "2 * n[0] + RULE_MAX_RANK", ""),
        ("layout", "> RULE_MAX_RANK", ""),
        ("nn", "> RULE_MAX_RANK) return NULL", ""),
    ],
    "of no parts none can be taken": [("layout", "k > 8 || k < 1", "")],
    "without a dtype a cast is the identity": [
        ("elementwise", "define_cast, SAME}", "SAME -> CAST")
    ],
    (
        "open leading dimensions have no numbers: rules of "
        "tests/validate/rules/anyshape.rules hold them"
    ): [("elementwise", "i < n && *lead; i++", "")],
    "a failure sticks, whoever looks first": [
        ("order", "!place || !value || c->failed", ""),
        ("nn", "if (!x || !y) return NULL", ""),
        ("nn", "if (!x || !i || x->rank == 0", "|| -> &&"),
        ("reduce", "if (!x || !m || !v || x->lead", "|| -> &&"),
        ("nn", "sx_eq(c, p, c->one), sx_eq(c, q, c->one)", "false -> true"),
        ("elementwise", "if (!sc_require(c, sx_eq(c, d, c->one))) return false", "false -> true"),
        ("nn", "if (!a || !b || a->rank", "|| -> &&"),
        ("elementwise", "if (!r || !t[1]) return NULL", "1 -> 2"),
        ("kernels", "if (!q || !k || !v || c->failed", "|| -> &&"),
        ("elementwise", "if (!x || !y) return NULL", "|| -> &&"),
        ("layout", "&& !clamped(c, sc_size(c, e), size, &end)) return false", ""),
    ],
    "no function has four numbers": [("unary", "i < 4 && names[which][i]", "")],
    "of how many bits an integer may be": [("elementwise", "k < 40 && sx_is_int", "")],
    "the order of positive numbers is that of their reciprocals turned round, twice": [
        ("order", "over_sum ? sx_neg", "sx_inv -> sx_neg")
    ],
    "any number but 0 says that there are groups": [("window", "t->which = 1;", "1 -> 2")],
    "sizes of 0, which rules do not have": [
        ("nn", "sx_eq(c, p, c->one), sx_eq(c, q, c->one)", "sx_eq -> sx_le")
    ],
    "nobody passes a tensor that is not there": [
        ("layout", "if (!t) return NULL;", "if ( -> if (0 && (")
    ],
    "there is a first part": [("layout", "return r ? r : c->zero;", "c->zero -> c->one")],
    "the step between elements of which there are none": [
        ("layout", "pt_slice(c, x, d, c->zero, c->zero, c->one)", "c->one -> c->zero")
    ],
    "a bound on parts that no concatenation here has": [("layout", "n == 0 || n > 64", "")],
    "the name in the answer is for reading": [
        ("order", "(pt_definition){table[i].name", "[i] -> [i + 1]")
    ],
    "a longer array of which three words are read": [
        ("reduce", "(uint32_t[3]){g, c->no, c->yes}", "3 -> 4")
    ],
    "the default of an argument that is there": [
        ("kernels", 'pt_arg_size(a, "num_heads", 0)', "0 -> 1"),
        ("kernels", 'pt_arg_flag(a, "causal", false)', "false -> true"),
        ("fill", 'pt_arg_size(a, "diagonal", 0)', "0 -> 1"),
        ("fill", 'pt_arg_dim(a, "dim2", 1', "1 -> 2"),
        ("layout", 'pt_arg_dim(a, "dim", 0, each[0]', "0 -> 1"),
        ("order", 'pt_arg_dim(a, "dim", 0, x, &d)) || !sc_require', "0 -> 1"),
        ("window", 'pt_arg_size(a, "groups", 1)', "1 -> 2"),
        ("order", 'pt_arg_flag(a, "largest", true)', "true -> false"),
    ],
    "as numbers, false and 0 are the same": [
        ("fill", "t->kind == 'b' ? c->no : c->zero", "'b' -> 'f'")
    ],
    ("in float64 narrow floats hold all integers; rules of tests/validate/rules hold it"): [
        ("elementwise", "case RULE_F16: return 1 << 11", ""),
        ("elementwise", "case RULE_BF16: return 1 << 8", ""),
        ("elementwise", "case RULE_F32: return 1 << 24", ""),
    ],
    "behind the last dimension both have none": [
        ("composite", "k < x->rank && which == SCATTER; k++", "< -> <="),
        ("nn", "d < 4; d++", "< -> <="),
        ("reduce", "for (uint32_t i = 0; i < x->rank; i++) {", "< -> <="),
    ],
    "a shift by the whole size is one by 0": [
        ("layout", "sx_lt(c, shift, c->zero)", "sx_lt -> sx_le")
    ],
    "a longer array": [
        ("composite", "(sx[4]){n, c->one", "4 -> 5"),
        ("unary", "names[][4] = ", "4 -> 5"),
        ("nn", "at[256] = {0}, k[16]", ""),
        ("kernels", "(sx[2]){o->dim[0]", "2 -> 3"),
    ],
    "room to spare": [
        ("nn", "2 * strlen(from) + 64", ""),
        ("suspects", "calloc(g->n_nodes + 1", "1 -> 2"),
        ("rank_mend", "calloc(n + 1", "1 -> 2"),
    ],
    "what changes nothing, or does not fit, mends nothing": [
        ("rank_mend", "if (!may_stand(out[0], old)", "|| -> &&")
    ],
    "the first node is a leaf": [
        ("rank_mend", "rule_tensor_unref(m.owned[i])", "0 -> 1"),
        ("suspects", "if (*found || q->odd < 0", "< -> <="),
    ],
    "whoever is asked says how many": [("rank_mend", "size_t n_out = 0;", "0 -> 1")],
    "what is not read towards the goal mends nothing": [
        ("suspects", "if (!flag[i] && !read[i]) continue;", "[i] -> [i + 1]")
    ],
    "no two of them are the same": [("bits", "x[k - 1] > x[k]; k--", "> -> >=")],
    "of a mask that is not negative the highest bit is 0": [
        ("bits", "to < 63 && mask >> to", "< -> <=")
    ],
    "memory ran out, which sticks": [("", "if (!t) return NULL;", "if ( -> if (0 && (")],
    "a frame of zeros is a border of zeros told otherwise": [
        ("window", "x = value == c->zero ? pt_frame", "c->zero -> c->one")
    ],
    "what is a whole part more leaves nothing, which was asked before": [
        ("layout", "for (int64_t r = 1; r < k; r++)", "< -> <=")
    ],
    "the first is like itself": [("dist", "for (size_t i = 0; i < n; i++) {", "0 -> 1")],
    "beyond 1 the arc has no value either, and below all powers are below 1": [
        ("unary", "sx_powi(c, x, 2), c->one)); /* of a sine", "2 -> 3")
    ],
    "a head is at least as wide as the table, whose size is not 0": [
        ("kernels", "sx_lt(c, c->zero, head)", "sx_lt -> sx_le")
    ],
    "a length of 0 is 0 either way": [("fill", "sx_lt(c, c->zero, n), &some", "sx_lt -> sx_le")],
    "what is not seen to be the same is expanded to itself": [
        ("elementwise", "k < t->rank && same; k++) same = t->dim", "[k] -> [k + 1]")
    ],
    "another number for the place": [("layout", "c->at_place = p + 1", "1 -> 2")],
    "a shift counts up to multiples of the size": [("layout", "if (holds) shift = sx_add", "")],
    "at 0 both branches are 0": [("unary", "sx_lt(c, c->zero, x), x, y)", "sx_lt -> sx_le")],
    "another form of the same order": [("order", "for (size_t i = 0; i < n; i++) {", "0 -> 1")],
    "a bound on letters that no equation here has": [("nn", "if (n == 16) {", "")],
    "behind the last there is none in the set": [
        ("bits", "for (size_t i = 0; i < a->n; i++)", "< -> <=")
    ],
    "a value that is no number is refused before": [
        ("elementwise", "if (!x || !y || !z || kind == 'b'", "|| -> &&")
    ],
    "a product takes no factor besides": [
        ("elementwise", "combine(c, divides ? DIV : MUL, y, z, c->one", "c->one -> c->zero")
    ],
    "another grouping of the same sizes": [("layout", "const bool grow_to", "")],
    "the least head that is not below is the head": [
        ("kernels", "slope = h + 1 == t->which", "sx_eq -> sx_le")
    ],
}

# A token, and the one that replaces it. Functions with the same arguments replace one another.
PAIRS = [
    ("sx_add", "sx_sub"),
    ("sx_sub", "sx_add"),
    ("sx_mul", "sx_add"),
    ("sx_max", "sx_min"),
    ("sx_min", "sx_max"),
    ("sx_lt", "sx_le"),
    ("sx_le", "sx_lt"),
    ("sx_eq", "sx_le"),
    ("sx_and", "sx_or"),
    ("sx_or", "sx_and"),
    ("sx_div", "sx_mod"),
    ("sx_mod", "sx_div"),
    ("pv_add", "pv_sub"),
    ("pv_sub", "pv_add"),
    ("pv_mul", "pv_add"),
    ("pv_div", "pv_mul"),
    ("pv_and", "pv_or"),
    ("pv_or", "pv_and"),
    ("pv_lt", "pv_eq"),
    ("pv_eq", "pv_lt"),
    ("sx_exp", "sx_neg"),
    ("pv_exp", "pv_neg"),
    ("sx_inv", "sx_neg"),
    ("sx_sqrt", "sx_neg"),
    ("pv_sqrt", "pv_neg"),
    ("pv_neg", "pv_exp"),
    ("F_FLOOR", "F_CEIL"),
    ("F_TRUNC", "F_FLOOR"),
    ("F_ROUND", "F_FLOOR"),
    ("F_SIN", "F_COS"),
    ("F_COS", "F_SIN"),
    ("PV_SIN", "PV_COS"),
    ("PV_COS", "PV_SIN"),
    ("PV_ONE_Q", "PV_MINUS_Q"),
    ("PV_MINUS_Q", "PV_ONE_Q"),
    ("true", "false"),
    ("false", "true"),
]
MEMBERS = [
    ("c->one", "c->zero"),
    ("c->zero", "c->one"),
    ("c->minus_one", "c->one"),
    ("c->neginf", "c->zero"),
    ("c->yes", "c->no"),
    ("c->no", "c->yes"),
]
SIGNS = [
    ("+", "-"),
    ("-", "+"),
    ("*", "+"),
    ("/", "*"),
    ("%", "/"),
    ("<", "<="),
    ("<=", "<"),
    (">", ">="),
    (">=", ">"),
    ("==", "!="),
    ("!=", "=="),
    ("&&", "||"),
    ("||", "&&"),
    ("+=", "-="),
    ("*=", "+="),
    ("|=", "&="),
    ("&=", "|="),
]


def code_of(text):
    """The text with comments, strings and characters blanked out, and the lines of the
    preprocessor."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\])*"', blank, text, flags=re.S)
    return re.sub(r"^#[^\n]*", blank, text, flags=re.M)


def enums(code):
    """Each name of an enumeration, with the others of it."""
    others = {}
    for body in re.findall(r"enum \{([^}]*)\}", code):
        names = [n.split("=")[0].strip() for n in body.split(",") if n.strip()]
        if "=" not in body:
            for n in names:
                others[n] = [m for m in names if m != n]
    return others


def unread(text):
    """Where tables of definitions have a number that the definition does not read."""
    idle = {
        m.group(1)
        for m in re.finditer(
            (
                r"\n\w[^\n]*\b(define_\w+|kernel_\w+)\(pt_args \*a, int which\) \{\n(?:  [^\n]*\n"
                r"){0,12}?  \(void\)which;"
            ),
            text,
        )
    }
    return [
        m.span(2)
        for m in re.finditer(r"\{\"[^\"]*\", (define_\w+|kernel_\w+), (\w+)\}", text)
        if m.group(1) in idle
    ]


def sites(text):
    """(offset, what stands there, what to put there) of every change."""
    code, out = code_of(text), []
    start = code.find("\nstatic")
    skip = [m.span() for m in re.finditer(r"enum \{[^}]*\}", code)] + unread(text)

    def add(at, old, new):
        if at > start and not any(a <= at < b for a, b in skip):
            out.append((at, old, new))

    for m in re.finditer(r"\b[A-Za-z_]\w*\b", code):
        for old, new in PAIRS:
            if m.group() == old:
                add(m.start(), old, new)
    for old, new in MEMBERS:
        for m in re.finditer(re.escape(old) + r"\b", code):
            add(m.start(), old, new)
    for old, new in SIGNS:
        for m in re.finditer(r"(?<= )" + re.escape(old) + r"(?= )", code):
            if old == "*" and re.search(
                r"\b(const|char|void|\w+_\w+|sx|sc|FILE) $", code[: m.start()]
            ):
                continue  # a pointer
            add(m.start(), old, new)
    for m in re.finditer(r"(?<![\w.])(\d+)(?![\w.])", code):
        add(m.start(), m.group(), str(int(m.group()) + 1))
        if int(m.group()) > 0:
            add(m.start(), m.group(), str(int(m.group()) - 1))
    for m in re.finditer(r"(?<![\w.])\d+\.\d+", code):
        add(m.start(), m.group(), m.group() + "1")
    for m in re.finditer(r"\[([a-z]\w*)\]", code):
        add(m.start(), m.group(), "[%s + 1]" % m.group(1))
        add(m.start(), m.group(), "[0]")
    for m in re.finditer(r"(?<![\w)=])!(?=[\w(])", code):
        add(m.start(), "!", "")
    for m in re.finditer(r"'([fib])'", text):
        add(m.start(), m.group(), "'%s'" % {"f": "i", "i": "b", "b": "f"}[m.group(1)])
    for m in re.finditer(r"\bif \((?=[^\n]*\) return NULL;)", code):
        add(m.start(), "if (", "if (0 && (")  # closed where it is put in
    for m in re.finditer(r"\b[A-Z][A-Z_0-9]+\b", code):
        for new in enums(code).get(m.group(), [])[:2]:
            add(m.start(), m.group(), new)
    return out


def changed(text, site):
    at, old, new = site
    if new.endswith("(0 && ("):  # a check left out: all of its condition goes within parentheses
        end = text.index(") return NULL;", at)
        return text[:at] + new + text[at + len(old) : end] + ")" + text[end:]
    return text[:at] + new + text[at + len(old) :]


class Builder:
    """One definition file compiled, and linked with the rest of the tree."""

    def __init__(self, o, work):
        self.compile, self.link, self.libraries, self.build, self.work = (
            shlex.split(o.compile),
            shlex.split(o.link),
            shlex.split(o.libraries),
            o.build,
            work,
        )
        for name in ("shim", "kernels"):  # the program looks for its libraries beside itself
            os.symlink(
                os.path.join(ROOT, o.build, "libisomer_%s.so" % name),
                os.path.join(work, "libisomer_%s.so" % name),
            )

    def object(self, name, text):
        """The code, without what debuggers read; None where it does not compile."""
        source, out = os.path.join(self.work, name + ".c"), os.path.join(self.work, name + ".o")
        with open(source, "w") as f:
            f.write(text)
        options = [w for w in self.compile if w not in ("-g", "-MMD", "-MP", "-Werror")]
        options += ASAN if name in LOCALISE else []
        p = subprocess.run(options + ["-w", "-c", source, "-o", out], cwd=ROOT, capture_output=True)
        return open(out, "rb").read() if p.returncode == 0 else None

    def fails(self, test, name, folder="validate", **settings):
        """Whether the test fails with this object."""
        program = os.path.join(self.work, test)
        run(
            self.link
            + (ASAN if name in LOCALISE else [])
            + [
                os.path.join(self.build, "obj/tests", folder, test + ".o"),
                os.path.join(self.work, name + ".o"),
                os.path.join(self.build, "libisomer.a"),
            ]
            + self.libraries
            + ["-o", program]
        )
        try:
            return (
                subprocess.run(
                    [program],
                    cwd=ROOT,
                    capture_output=True,
                    timeout=240,
                    env=dict(os.environ, **settings),
                ).returncode
                != 0
            )
        except subprocess.TimeoutExpired:
            return True

    def noticed(self, name):
        """Whether the differential test does; leading dimensions that are left open have no
        numbers: of them, rules with known answers do."""
        if name in LOCALISE:
            return self.fails("test_" + name, name, "localise")
        if name in SAMPLING:
            return self.fails("test_sampling", name) or self.fails("test_refute", name)
        if name == "narrow":
            return self.fails("test_prove_rules", name, PROVE_ONLY="../../rules/traps")
        return self.fails("test_prove_diff", name, DIFF_FIRST="1") or (
            name in FILES
            and self.fails("test_prove_rules", name, PROVE_ONLY="anyshape ../../rules/traps")
        )


def run(command):
    p = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    if p.returncode:
        sys.exit("%s: %s" % (" ".join(command)[:200], p.stderr[-500:]))
    return p


def folder(name):
    return (
        "localise"
        if name in LOCALISE
        else os.path.join("validate", "ops" if name in FILES else "sample")
    )


def means_the_same(name, line, old, new):
    return next(
        (
            why
            for why, places in SAME.items()
            for f, part, change in places
            if f in ("", name) and part in line and change in ("", old + " -> " + new)
        ),
        None,
    )


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--build", default="build")
    a.add_argument("--compile", required=True, help="the compiler with its options")
    a.add_argument("--link", required=True, help="the same for programs")
    a.add_argument("--libraries", required=True)
    a.add_argument("--sites", type=int, default=120)
    a.add_argument("--seed", type=int, default=1)
    a.add_argument(
        "--file",
        help=(
            "only of this file (nn, reduce, ...), or of what samples rules: counterexample, "
            "floats, ..., or all of that: sampling; of localise/: suspects, rank_mend, or localise"
        ),
    )
    a.add_argument("--verbose", action="store_true")
    o = a.parse_args()
    rng = random.Random(o.seed)
    files = [f for f in FILES if o.file in (None, f)]
    for of, group in (("sampling", SAMPLING), ("localise", LOCALISE)):
        files = files or [f for f in group if o.file in (of, f)]
    text = {f: open(os.path.join(ROOT, folder(f), f + ".c")).read() for f in files}
    every = [(f, s) for f in text for s in sites(text[f])]
    rng.shuffle(every)
    caught = same = 0
    missed = []
    with tempfile.TemporaryDirectory() as work:
        b = Builder(o, work)
        original = {f: b.object(f, text[f]) for f in text}
        for f in text:
            if f in LOCALISE and b.noticed(f):
                sys.exit("the test of %s.c fails as it is" % f)
        for f, site in every:
            if caught + same + len(missed) >= o.sites:
                break
            if b.object(f, changed(text[f], site)) in (None, original[f]):
                continue
            noticed = b.noticed(f)
            at = text[f].count("\n", 0, site[0]) + 1
            line = text[f].split("\n")[at - 1].strip()
            why = None if noticed else means_the_same(f, line, site[1], site[2])
            caught += noticed
            same += why is not None
            if not noticed and why is None:
                missed.append((f, at))
                start = text[f].rfind("\n", 0, site[0]) + 1
                marked = (
                    text[f][start : site[0]]
                    + "<<"
                    + site[1]
                    + ">>"
                    + text[f][site[0] + len(site[1]) : text[f].find("\n", site[0])]
                )
                print(
                    "%s.c:%d: %s -> %s: %s"
                    % (f, at, site[1], site[2] or "nothing", marked.strip()),
                    flush=True,
                )
            elif o.verbose:
                print(
                    "%s %s.c:%d: %s -> %s"
                    % ("caught" if noticed else "same  ", f, at, site[1], site[2] or "nothing"),
                    flush=True,
                )
    print("%d caught, %d mean the same, %d not caught" % (caught, same, len(missed)))
    return bool(missed)


if __name__ == "__main__":
    sys.exit(main())
