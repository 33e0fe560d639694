"""`isomer-capture upgrade MODEL... --python OLD`: did an upgrade change the models?

The old environment, where the earlier Transformers is, makes each model and captures it. The model
goes into a checkpoint that the new one, this environment, loads as users' checkpoints are loaded;
where MODEL is a checkpoint, both load that. The two captures are compared."""

import json
import os
import shutil

from . import elsewhere, sweep
from .errors import CaptureError


def shared(options):
    """The options of both captures, as words."""
    out = []
    for key in sweep.OPTIONS:
        if key != "layers" and getattr(options, key) is not None:
            out += ["--" + key, str(getattr(options, key))]
    return out + ["--specialize"] * options.specialize


def making(options):
    """The options that change what a model is: after them it has no weights of a checkpoint."""
    out = ["--reduce"] * options.reduce
    if options.layers is not None:
        out += ["--layers", str(options.layers)]
    for key, value in options.settings:
        out += ["--set", "%s=%s" % (key, json.dumps(value))]
    return out


def captures(options, model, folder):
    """None, or why one side could not be captured."""
    made, both = making(options), shared(options)
    old, new = os.path.join(folder, "old"), os.path.join(folder, "new")
    checkpoint = os.path.join(folder, "checkpoint")
    if os.path.isdir(model) and not made:
        checkpoint, write = model, []
    else:
        write = ["--checkpoint", checkpoint]
    there = ["hf", model, *made, *both, *write, "-o", old]
    status, lines = elsewhere.run(options.python, there, options.timeout)
    if status:
        return "old: " + lines[-1].removeprefix("isomer-capture: ")
    why = sweep.captured(["hf", checkpoint, *both], new, options.timeout)
    return why and "new: " + why


def version(folder):
    with open(os.path.join(folder, "graph.json"), encoding="utf-8") as f:
        return json.load(f).get("framework_version")


def compared(row, folder, limit):
    """Fills in a row's verdict, of the captures in a folder."""
    import isomer

    sides = [os.path.join(folder, side) for side in ("old", "new")]
    row["setting"] = " to ".join(str(version(side)) for side in sides)
    try:
        result = isomer.compare(*sides, timeout=limit, keep=folder)
    except isomer.Error as e:
        row.update(verdict="error", detail=str(e))
        return
    row.update(verdict=result.verdict, evidence=result.evidence)
    if not result:
        hints = [d["hint"] for d in result.divergences[:1] if d.get("hint")]
        said = result.summary.removeprefix("isomer: %s" % result.verdict.upper()).lstrip(": ")
        row["detail"] = "; ".join([said, *hints])


def run(options):
    """The table goes to stdout, progress to stderr. Status 0: all are as before; 1: some are
    different; 3: something open."""
    import isomer

    try:
        isomer.find_program()
    except isomer.Error as e:
        raise CaptureError(str(e)) from e
    elsewhere.interpreter(options.python)
    sweep.prepare([{"left": "hf", "right": "hf"}])
    rows = []
    for k, model in enumerate(options.models):
        name = os.path.basename(os.path.normpath(model)) or "model"
        folder = os.path.join(options.out, "%d-%s" % (k, name))
        shutil.rmtree(folder, ignore_errors=True)  # of an earlier call
        os.makedirs(folder)
        row = {"model": model, "setting": "", "verdict": "no capture", "evidence": None}
        row["detail"] = captures(options, model, folder) or ""
        if not row["detail"]:
            compared(row, folder, options.timeout)
        shutil.rmtree(os.path.join(folder, "checkpoint"), ignore_errors=True)
        rows.append(row)
        sweep.keep(rows, options.out, row, "upgrade.json")
    print(sweep.markdown(rows))
    return sweep.status(rows)
