"""Isomer from Python: do two models compute the same function?

    import isomer
    result = isomer.compare(model_a, model_b, (x,))
    print(result.verdict, result.evidence)

A model is a torch.nn.Module, or the folder of a capture. Importing this imports neither PyTorch nor
anything else that is large; modules are captured by `isomer_capture`, captures are compared by the
program `isomer`, which is looked for in $ISOMER, in this package, on the PATH, and in the source
tree's build/.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field

from . import program, sides

__version__ = "0.1.0"
__all__ = ["compare", "find_program", "Result", "Error", "checked", "check_pass", "PassError"]


def __getattr__(name):
    if name in ("checked", "check_pass", "PassCheck", "PassError"):
        from . import passes

        return getattr(passes, name)
    raise AttributeError("module %r has no attribute %r" % (__name__, name))


class Error(Exception):
    """The comparison could not be made: bad arguments, no program, a model that cannot be captured
    or run."""


@dataclass(frozen=True)
class Result:
    """The result of `isomer compare`. Truth value: whether the verdict is "equivalent"."""

    verdict: str  # "equivalent", "different" or "undecided"
    evidence: str | None  # "proved" or "tested" where equivalent
    divergences: list = field(repr=False)  # the places where the two part, the earliest first
    rules: list = field(repr=False)  # the rewrite rules that were used
    assumptions: list = field(repr=False)
    counterexample: dict | None = field(repr=False)
    summary: str  # the last line of the report
    report: dict = field(repr=False)  # all of it, as `--json` writes it
    text: str = field(repr=False)  # all of it, as a person reads it

    def __bool__(self):
        return self.verdict == "equivalent"

    def layouts(self):
        """How outputs belong together that are not each other's as they are, as in
        "logits = transpose(logits, 0, 1)"."""
        found = [(r["output"], r.get("relation")) for r in self.report.get("refinement", ())]
        return ["%s = %s" % (name, relation) for name, relation in found if "(" in (relation or "")]

    def short(self):
        """The verdict and where the two part, in a few lines."""
        lines = [self.summary]
        lines += ["  output " + layout for layout in self.layouts()]
        if self.report.get("rounding_conclusion"):
            lines.append("  rounding: " + self.report["rounding_conclusion"])
        for d in self.divergences[:3]:
            for side in ("left", "right"):
                n = d.get(side)
                if not n:  # it has nothing there
                    continue
                place = ", ".join(str(n[k]) for k in ("scope", "source") if n.get(k))
                lines.append(
                    "  %-5s %s (%s)%s"
                    % (side, n.get("id"), n.get("op"), " in " + place if place else "")
                )
            if d.get("hint"):
                lines.append("  hint  " + d["hint"])
            if d.get("max_abs") is not None:
                lines.append("  the values differ by up to %.3g" % d["max_abs"])
        if len(self.divergences) > 3:
            lines.append("  and %d more places" % (len(self.divergences) - 3))
        c = self.counterexample
        if c and c.get("max_abs") is not None:
            lines.append(
                "  witness: output %s differs by up to %.3g" % (c.get("output"), c["max_abs"])
            )
        for u in self.report.get("unexplained_leaves", [])[:3]:
            lines.append(
                "  unexplained: %s of the %s side" % (u.get("name") or u.get("id"), u.get("side"))
            )
        return "\n".join(lines)


def find_program():
    """The path of the program `isomer`."""
    here = os.path.dirname(os.path.abspath(__file__))
    tree = os.path.join(os.path.dirname(os.path.dirname(here)), "build", "isomer")
    for path in (os.environ.get("ISOMER"), program.path(), shutil.which("isomer"), tree):
        if path and os.path.isfile(path) and os.access(path, os.X_OK):
            return path
    raise Error(
        (
            "the program isomer is not found: build it (make), put it on the PATH, or set ISOMER "
            "to its path"
        )
    )


def compare(
    model_a,
    model_b,
    inputs=None,
    *,
    inputs_b=None,
    call_a=None,
    call_b=None,
    outputs=None,
    timeout=None,
    options=(),
    keep=None,
):
    """Captures both models and compares them.

    model_a, model_b  modules in eval mode, ExportedPrograms, or folders of captures; of one under
                      torch.compile the module that it was made of
    inputs            example inputs of modules (a tensor, a tuple, a dictionary); both get the same
                      unless inputs_b is given
    call_a, call_b    call(module, **inputs) in place of module(**inputs)
    outputs           names of the modules' outputs to compare; all, if not given
    timeout           seconds for the comparison
    options           further options of `isomer compare`
    keep              a folder in which the captures and the report stay

    Returns a Result. Raises Error."""
    options = words_of(options)
    folder = folder_for(keep, "isomer-")
    try:
        both = [
            captured(model_a, inputs, call_a, outputs, os.path.join(folder, "left")),
            captured(
                model_b,
                inputs if inputs_b is None else inputs_b,
                call_b,
                outputs,
                os.path.join(folder, "right"),
            ),
        ]
        return run(both, os.path.join(folder, "report.json"), timeout, options)
    finally:
        if not keep:
            shutil.rmtree(folder, ignore_errors=True)


def words_of(options):
    """Options of the program, which the report that is read here does not depend on."""
    if isinstance(options, str) or not isinstance(options, (list, tuple)):
        raise Error('options is a list, as in ["--rounding"], not %r' % (options,))
    words = [str(o) for o in options]
    own = [w for w in words if w == "--help" or w == "--json" or w.startswith("--json=")]
    if own:
        raise Error("options cannot hold %s: keep=FOLDER leaves report.json there" % own[0])
    return words


def folder_for(keep, prefix):
    """The folder that the caller names, made where it is not there, or one that is not kept."""
    if not keep:
        return tempfile.mkdtemp(prefix=prefix)
    try:
        os.makedirs(keep, exist_ok=True)
        return os.fspath(keep)
    except OSError as e:
        raise Error("%s cannot be made: %s" % (keep, e.strerror)) from e
    except (TypeError, ValueError) as e:
        raise Error("keep is the path of a folder, not %r" % (keep,)) from e


def captured(model, inputs, call, outputs, folder):
    from isomer_capture.errors import CaptureError, short

    kind = type(model).__name__
    try:
        model = sides.plain(model, folder)
        if isinstance(model, str):
            return model
        if inputs is None:
            raise Error("a module is captured on example inputs: give inputs")
        from isomer_capture import capture

        capture(model, inputs, folder, call=call, outputs=outputs)
    except (sides.Refused, CaptureError) as e:
        raise Error("%s: %s" % (kind, e)) from e
    except Error:
        raise
    except Exception as e:  # of a library, or ours: what it says, with its traceback behind it
        why = " ".join(short(e).split())
        raise Error("%s cannot be captured: %s: %s" % (kind, type(e).__name__, why)) from e
    return folder


def talked_to(command, env):
    """Status, standard output and standard error of a command. What it says of its progress, a
    line in ten seconds, goes on to ours at once."""
    said = []

    def listen(pipe):
        for line in pipe:
            if line.startswith("isomer: after "):
                print(line, end="", file=sys.stderr, flush=True)
            else:
                said.append(line)

    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        p = subprocess.Popen(command, text=True, errors="replace", env=env, **pipes)
    except (OSError, ValueError) as e:
        raise Error("%s cannot be run: %s" % (command[0], e)) from e
    with p:
        listener = threading.Thread(target=listen, args=(p.stderr,), daemon=True)
        listener.start()
        try:
            out = p.stdout.read()
        except BaseException:  # also an interrupt: nothing goes on behind it
            p.kill()
            raise
        listener.join()
    return p.returncode, out, "".join(said)


def run(sides, report, timeout, options):
    command = [find_program(), "compare", *sides, "--json", report, *map(str, options)]
    if timeout is not None:
        command += ["--timeout", str(timeout)]
    try:
        env = program.environment("compare") if command[0] == program.path() else None
    except program.NoShim as e:
        raise Error(str(e)) from e
    status, out, err = talked_to(command, env)
    if status not in (0, 1, 3):
        raise Error(err.strip() or "isomer ended with status %d" % status)
    try:
        with open(report, encoding="utf-8") as f:
            data = json.load(f)
    except (OSError, ValueError) as e:
        raise Error("isomer left no report that can be read: %s" % e) from e
    lines = out.strip().splitlines()
    return Result(
        data["verdict"],
        data["evidence"],
        data["divergences"],
        data["rules"],
        data["assumptions"],
        data["counterexample"],
        lines[-1] if lines else "isomer: " + data["verdict"].upper(),
        data,
        out,
    )
