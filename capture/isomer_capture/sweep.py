"""`isomer-capture --sweep FILE`: one pair of captures per setting, compared, and a table of the
verdicts.

FILE is JSON: an object, or a list of them, or one object per line. Each asks for models and
settings:

    {"models": ["gpt2"], "layers": 2, "left": "hf", "right": "vllm",
     "set": {"activation_function": ["gelu_new", "gelu"], "scale_attn_weights": [true, false]}}

`set` is tried one key at a time beside the default; `grid` in its place tries every combination. A
list under a key is the values to try: a value that is itself a list is written as a list in the
list. `left_set` and `right_set` change one side only. With a model on the command line
(`isomer-capture vllm MODEL --sweep FILE`), `models` is that one and the options there hold where
the file says nothing. Every capture runs in a process of its own, since frameworks keep objects
between models."""

import itertools
import json
import os
import re
import signal
import sys
import tempfile
import time

from .errors import CaptureError

OPTIONS = (
    "layers",
    "length",
    "seed",
    "dtype",
    "attn",
    "experts",
    "head",
    "sets",
)  # of one capture, with a value
FLAGS = ("reduce", "specialize")
KEYS = {"models", "left", "right", "set", "grid", "left_set", "right_set", "base"}.union(
    OPTIONS, FLAGS
)
SIDES = ("hf", "vllm")


def defaults(options):
    """The command line's options that hold for every request, as a request."""
    if not getattr(options, "model", None):
        return {"reduce": True}
    for name, unset in (("name", None), ("trace", False), ("batch", 1)):
        if getattr(options, name) != unset:
            raise CaptureError("--%s does not go with --sweep" % name)
    out = {
        key: getattr(options, key) for key in OPTIONS + FLAGS if getattr(options, key) is not None
    }
    return dict(out, models=[options.model], base=dict(options.settings))


def read(path, given):
    """The requests in a file, completed by what the command line says."""
    try:
        with open(path, encoding="utf-8") as f:
            text = f.read()
    except (OSError, UnicodeDecodeError) as e:
        raise CaptureError("%s: %s" % (path, e)) from e
    try:
        data = json.loads(text)
    except json.JSONDecodeError as whole:
        try:
            data = [json.loads(line) for line in text.splitlines() if line.strip()]
        except json.JSONDecodeError:
            raise CaptureError("%s is not JSON: %s" % (path, whole)) from None
    requests = data if isinstance(data, list) else [data]
    for k, r in enumerate(requests):
        unknown = sorted(set(r) - KEYS) if isinstance(r, dict) else ["(not an object)"]
        if unknown:
            raise CaptureError("%s: unknown key %s" % (path, ", ".join(unknown)))
        for key in ("set", "grid", "base", "left_set", "right_set"):
            if not isinstance(r.get(key) or {}, dict):
                raise CaptureError('%s: "%s" must be an object' % (path, key))
        if "models" in r and "models" in given:
            raise CaptureError("%s names models, and so does the command line" % path)
        r = requests[k] = {**given, **r, "base": {**given.get("base", {}), **(r.get("base") or {})}}
        if not isinstance(r.get("models"), list) or not r["models"]:
            raise CaptureError('%s: "models" must be a list of models' % path)
        for side in ("left", "right"):
            if r.get(side, "hf") not in SIDES:
                raise CaptureError('%s: "%s" must be hf or vllm' % (path, side))
    return requests


def settings(request):
    """The settings to try, each a dictionary; the first is the default."""
    out = [{}]
    tried = {k: v if isinstance(v, list) else [v] for k, v in (request.get("set") or {}).items()}
    for key, values in tried.items():
        out += [{key: v} for v in values]
    grid = {k: v if isinstance(v, list) else [v] for k, v in (request.get("grid") or {}).items()}
    if grid:
        out += [dict(zip(grid, values)) for values in itertools.product(*grid.values())]
    return out


def arguments(request, side, model, chosen):
    """The command line of one capture."""
    kind = request.get(side, "hf" if side == "left" else "vllm")
    out = [kind, model]
    out += ["--" + key for key in FLAGS if request.get(key)]
    for key in OPTIONS:
        if key in request:
            out += ["--" + key, str(request[key])]
    for each in (request.get("base") or {}), chosen, (request.get(side + "_set") or {}):
        for key, v in each.items():
            out += ["--set", "%s=%s" % (key, json.dumps(v))]
    return out


def prepare(requests):
    """Imports what every capture needs, so that each capture is a fork away."""
    import torch

    torch.set_num_threads(1)  # a process that has run libtorch on several threads cannot fork
    import torch.export  # noqa: F401
    import transformers.modeling_utils  # noqa: F401
    from transformers.models.auto import modeling_auto  # noqa: F401

    if any(r.get("left", "hf") == "vllm" or r.get("right", "vllm") == "vllm" for r in requests):
        from . import vllm_models

        vllm_models.import_vllm()


def captured(arguments, folder, limit):
    """None, or why the capture failed. In a process of its own: frameworks keep objects between
    models. A fork is ready at once, but a library's threads do not survive it, and may end the
    child by a signal: then a fresh process takes the capture."""
    arguments = [*arguments, "-o", folder]
    ended, why = forked(arguments, limit)
    if ended is not None and os.WIFSIGNALED(ended):
        from . import elsewhere

        status, lines = elsewhere.run(sys.executable, arguments, limit)
        why = lines[-1] if status else None
    return why and re.sub(r"^isomer-capture: ", "", why)


def forked(arguments, limit):
    """How a child that was forked from here ended (None: past the limit), and why it failed."""
    from .cli import main

    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            status = 2
            try:
                os.setsid()
                os.dup2(said.fileno(), 1)
                os.dup2(said.fileno(), 2)
                status = main(arguments)
            except BaseException as e:  # what it could not say itself
                os.write(2, ("\n%s: %s\n" % (type(e).__name__, e)).encode())
            finally:
                os._exit(status if isinstance(status, int) else 2)
        end = time.monotonic() + limit
        while True:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                break
            if time.monotonic() > end:
                os.killpg(child, signal.SIGKILL)
                os.waitpid(child, 0)
                return None, "no capture after %d s" % limit
            time.sleep(0.02)
        if status == 0:
            return status, None
        said.seek(0)
        lines = said.read().strip().splitlines() or ["status %d" % status]
        return status, lines[-1]


def one(request, model, chosen, folder, limit):
    """A row of the table."""
    import isomer

    row = {
        "model": model,
        "setting": ", ".join("%s=%s" % (k, json.dumps(v)) for k, v in chosen.items()) or "default",
        "verdict": None,
        "evidence": None,
        "detail": "",
        "seconds": None,
    }
    start = time.monotonic()
    for side in ("left", "right"):
        why = captured(arguments(request, side, model, chosen), os.path.join(folder, side), limit)
        if why:
            row.update(
                verdict="no capture",
                detail="%s: %s" % (request.get(side, "hf" if side == "left" else "vllm"), why),
            )
            return row
    try:
        result = isomer.compare(
            os.path.join(folder, "left"), os.path.join(folder, "right"), timeout=limit
        )
        row.update(verdict=result.verdict, evidence=result.evidence)
        if not result:
            row["detail"] = re.sub(r"^isomer: \w+:? ?", "", result.summary)
    except isomer.Error as e:
        row.update(verdict="error", detail=str(e))
    row["seconds"] = round(time.monotonic() - start, 1)
    return row


def markdown(rows):
    out = ["| model | setting | verdict | where, or why not |", "| --- | --- | --- | --- |"]
    for r in rows:
        verdict = r["verdict"] + (" [%s]" % r["evidence"] if r["evidence"] else "")
        out.append(
            "| %s | %s | %s | %s |"
            % (
                r["model"],
                r["setting"].replace("|", "\\|"),
                verdict,
                " ".join(r["detail"].split())[:200].replace("|", "\\|"),
            )
        )
    return "\n".join(out)


def run(options):
    """The table goes to stdout, progress to stderr. Status 0: all pairs equivalent; 1: some
    different; 3: something open."""
    import isomer

    requests = read(options.sweep, defaults(options))
    try:
        isomer.find_program()
    except isomer.Error as e:
        raise CaptureError(str(e)) from e
    prepare(requests)
    rows = []
    for k, request in enumerate(requests):
        for model in request["models"]:
            for j, chosen in enumerate(settings(request)):
                name = "%d-%s-%d" % (
                    k,
                    re.sub(r"[^A-Za-z0-9_.-]", "_", os.path.basename(model.rstrip("/"))),
                    j,
                )
                row = one(request, model, chosen, os.path.join(options.out, name), options.timeout)
                rows.append(row)
                keep(rows, options.out, row, "sweep.json")
    print(markdown(rows))
    return status(rows)


def keep(rows, folder, row, name):
    """Says a row on stderr, and writes all that there are."""
    print(
        "%s, %s: %s %s" % (row["model"], row["setting"], row["verdict"], row["detail"]),
        file=sys.stderr,
        flush=True,
    )
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump({"rows": rows}, f, indent=1)


def status(rows):
    verdicts = {r["verdict"] for r in rows}
    return 1 if "different" in verdicts else 0 if verdicts == {"equivalent"} else 3
