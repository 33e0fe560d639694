"""The command `isomer-capture`. Exit status: 0, or 2 with one line that says what is wrong."""

import argparse
import os
import sys

from . import __version__
from .configs import parse_set
from .errors import CaptureError, short

EPILOG = """MODEL is a folder with config.json (and weights), a JSON configuration, a model type
of Transformers such as llama (its default configuration), or a hub id such as owner/name, which
alone is downloaded. Weights are random, from --seed, unless MODEL has some and nothing was
changed; one seed gives hf and vllm the same weights."""


def positive(text):
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError("must be at least 1")
    return value


def setting(text):
    try:
        return parse_set(text)
    except CaptureError as e:
        raise argparse.ArgumentTypeError(str(e)) from None


def open_sizes(text):
    """ "length=1:512,batch": {"length": (1, 512), "batch": (1, None)}"""
    out = {}
    for part in text.split(","):
        name, _, bounds = part.partition("=")
        low, _, high = bounds.partition(":")
        try:
            out[name] = (int(low or 1), int(high) if high else None)
        except ValueError:
            raise argparse.ArgumentTypeError(
                "%s is no range, as in length=1:512" % bounds
            ) from None
        if name not in ("length", "batch"):
            raise argparse.ArgumentTypeError("%s is neither length nor batch" % name)
    return out


def add_model_options(p):
    p.add_argument(
        "--reduce",
        action="store_true",
        help="small widths and vocabulary; layers and structure stay",
    )
    p.add_argument(
        "--layers", type=positive, help="N layers only, one of each kind before a second one"
    )
    p.add_argument(
        "--set",
        dest="settings",
        type=setting,
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="change a key of the configuration (VALUE is JSON or a string; dots go inside)",
    )
    p.add_argument(
        "--attn",
        choices=("sdpa", "sdpa-mask", "eager"),
        default="sdpa",
        help=(
            "Transformers' attention: sdpa as it runs, sdpa with the mask that exporting builds, "
            "or eager"
        ),
    )
    p.add_argument(
        "--experts",
        default="batched_mm",
        help="Transformers' experts implementation (default %(default)s)",
    )
    p.add_argument("--length", type=positive, default=9, help="tokens (default %(default)s)")
    p.add_argument("--sets", type=positive, default=1, help="input sets (default %(default)s)")
    p.add_argument(
        "--dtype", choices=("float32", "float64", "bfloat16", "float16"), default="float32"
    )
    p.add_argument(
        "--head",
        choices=("lm", "mlm", "none"),
        help="language model head, masked one, or hidden states",
    )
    p.add_argument(
        "--seed", type=int, default=0, help="of weights and tokens (default %(default)s)"
    )
    p.add_argument(
        "--specialize",
        action="store_true",
        help="allow numbers read out of tensors, for these inputs only",
    )


def add_sweep_options(p):
    p.add_argument(
        "--timeout",
        type=positive,
        default=600,
        help="seconds for each capture and comparison of a sweep",
    )


def parser():
    p = argparse.ArgumentParser(
        prog="isomer-capture",
        description="Captures models as graphs that isomer compares.",
        epilog="isomer-capture --sweep FILE -o DIR is the command sweep.",
    )
    p.add_argument("--version", action="version", version="isomer-capture " + __version__)
    commands = p.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for name, text in (
        ("hf", "a model of Hugging Face Transformers"),
        ("vllm", "the same model as vLLM runs it"),
    ):
        c = commands.add_parser(
            name, help=text, description="Captures " + text + ".", epilog=EPILOG
        )
        c.add_argument("model", metavar="MODEL")
        c.add_argument("-o", "--out", required=True, help="the folder to write")
        add_model_options(c)
        c.add_argument(
            "--batch",
            type=positive,
            default=1,
            help=argparse.SUPPRESS if name == "vllm" else "sequences",
        )
        c.add_argument(
            "--cached",
            type=positive,
            default=0,
            metavar="N",
            help=argparse.SUPPRESS
            if name == "vllm"
            else "the last N tokens one after another, with the model's own cache behind a prompt",
        )
        c.add_argument(
            "--calls",
            type=positive,
            default=0,
            metavar="N",
            help="the prompt and the last N tokens, each call a capture of its own: OUT/1, OUT/2, "
            "..., for isomer compare --then (docs/calls.md)",
        )
        c.add_argument(
            "--cache",
            choices=("paged",) if name == "vllm" else ("dynamic", "static"),
            default="paged" if name == "vllm" else "dynamic",
            help=argparse.SUPPRESS
            if name == "vllm"
            else "of --calls: a cache that grows, with windows where the model has them, or one of "
            "as many places as there are tokens",
        )
        c.add_argument("--name", help="the model's name in the capture")
        c.add_argument("--trace", action="store_true", help="keep the value of every node")
        c.add_argument(
            "--dynamic",
            type=open_sizes,
            default={},
            metavar="SIZES",
            help="sizes that stay open, with ranges or without: %slength=1:512"
            % ("length or " if name == "vllm" else "length,batch or "),
        )
        c.add_argument(
            "--sweep",
            metavar="FILE",
            help="capture MODEL in hf and vllm at each setting of FILE, compare, and tabulate the "
            "verdicts (docs/capture-sweep.md)",
        )
        c.add_argument(
            "--static",
            action="store_true",
            help="without weights, at any size, for isomer compare --static (docs/static.md)",
        )
        c.add_argument(
            "--python",
            metavar="ENV",
            help="capture with the Python of another environment (its folder), as with the "
            "Transformers of before an upgrade",
        )
        c.add_argument(
            "--checkpoint",
            metavar="DIR",
            help=argparse.SUPPRESS
            if name == "vllm"
            else "write the model as a checkpoint too, and capture what is loaded from there",
        )
        add_sweep_options(c)
    add_upgrade(commands)
    add_hlo(commands)
    add_train(commands)
    add_record(commands)
    c = commands.add_parser(
        "sweep",
        help="capture and compare one pair per setting; a table of the verdicts",
        description=(
            "Captures and compares one pair per setting of FILE, and tabulates the verdicts."
        ),
    )
    given = c.add_mutually_exclusive_group(required=True)
    given.add_argument(
        "file", metavar="FILE", nargs="?", help="JSON: models and settings (docs/capture-sweep.md)"
    )
    given.add_argument("--sweep", metavar="FILE", help="the same")
    c.add_argument("-o", "--out", required=True, help="the folder for captures and sweep.json")
    add_sweep_options(c)
    return p


def add_upgrade(commands):
    c = commands.add_parser(
        "upgrade",
        help="did an upgrade of Transformers change these models? a table of the verdicts",
        description="Captures each MODEL with the Transformers of the old environment and with "
        "this one's, from one checkpoint, compares the two, and tabulates the verdicts.",
        epilog=EPILOG,
    )
    c.add_argument("models", metavar="MODEL", nargs="+")
    c.add_argument("--python", metavar="ENV", required=True, help="the old environment's folder")
    c.add_argument("-o", "--out", required=True, help="the folder for captures and upgrade.json")
    add_model_options(c)
    add_sweep_options(c)
    c.set_defaults(sweep=None)


def add_hlo(commands):
    c = commands.add_parser(
        "hlo",
        help="XLA's HLO text, as JAX writes it",
        description="Reads HLO text (docs/hlo.md). A partitioned module becomes one graph of all "
        "its ranks.",
    )
    c.add_argument("file", metavar="FILE")
    c.add_argument("-o", "--out", required=True, help="the folder to write")
    c.add_argument("--name", help="the model's name in the capture")
    c.add_argument(
        "--whole",
        metavar="FILE",
        help="the module before it was partitioned: writes relations.txt for isomer compare",
    )
    c.add_argument(
        "--values",
        metavar="FILE",
        help="safetensors with values of parameters, by name; others are drawn",
    )
    c.add_argument(
        "--input",
        dest="inputs",
        metavar="NAME",
        action="append",
        default=[],
        help="this parameter is an input (those of integers are)",
    )
    c.add_argument(
        "--range",
        dest="ranges",
        metavar=("NAME", "LOW", "HIGH"),
        nargs=3,
        action="append",
        default=[],
        help="the values that an input of integers may have",
    )
    c.add_argument("--seed", type=int, default=0, help="of drawn values (default %(default)s)")


def add_train(commands):
    c = commands.add_parser(
        "train",
        help="a training step of one or more ranks",
        description="Runs FUNCTION of SCRIPT on so many ranks, gloo processes of this machine, and "
        "writes the step that it records as one graph (docs/training.md).",
    )
    c.add_argument("script", metavar="SCRIPT:FUNCTION")
    c.add_argument("-o", "--out", required=True, help="the folder to write")
    c.add_argument("--world", type=positive, default=1, help="ranks (default %(default)s)")
    c.add_argument(
        "--rank",
        choices=("all", "roles"),
        default="all",
        help="write every rank's graph, or one of them for all, with the leaves in which they "
        "differ: then they have to run the same program (default %(default)s)",
    )
    c.add_argument("--name", help="the model's name in the capture")
    c.add_argument(
        "--seed", type=int, default=0, help="of weights and states (default %(default)s)"
    )
    c.add_argument(
        "--timeout",
        type=positive,
        default=300,
        help="seconds that a rank waits for another (default %(default)s)",
    )


def add_record(commands):
    c = commands.add_parser(
        "record",
        help="what the ranks of a program do, for isomer lint",
        description="Runs a program of several ranks and writes down what they send, wait for and "
        "compute (docs/events.md).",
    )
    c.add_argument("--ranks", type=positive, required=True, help="how many processes")
    c.add_argument("--events", metavar="FILE", help="write events for isomer lint")
    c.add_argument(
        "--capture",
        metavar="DIR",
        help="write a capture of the ranks, of what the program names with recorded()",
    )
    c.add_argument("--trace", action="store_true", help="keep the value of every node")
    c.add_argument("--mesh", help="axes for the capture, as in dp=2,tp=4")
    c.add_argument(
        "--backend",
        choices=("gloo", "fake"),
        default="gloo",
        help="of the run: gloo, or fake groups, on which no rank waits and nothing is sent",
    )
    c.add_argument(
        "--target",
        choices=("nccl", "gloo", "mpi"),
        default="nccl",
        help="the backend that the events are checked for (default %(default)s)",
    )
    c.add_argument("--timeout", type=positive, default=600, help="seconds (default %(default)s)")
    c.set_defaults(sweep=None)
    c.add_argument("program", metavar="PROGRAM")
    c.add_argument("args", metavar="ARGS", nargs=argparse.REMAINDER)


def with_command(argv):
    """`isomer-capture --sweep FILE` is `isomer-capture sweep FILE`."""
    swept = any(a == "--sweep" or a.startswith("--sweep=") for a in argv)
    return ["sweep"] + argv if swept and argv[0].startswith("-") else argv


def captured_there(environment, words):
    """The same command by another environment's Python."""
    from . import elsewhere

    status, lines = elsewhere.run(environment, words)
    for line in lines:
        print(line, file=sys.stderr)
    return status


def main(argv=None, here=False):
    """here: the environment that --python names is this one."""
    words = with_command(sys.argv[1:] if argv is None else list(argv))
    options = parser().parse_args(words)
    if options.command in ("hlo", "train"):
        options.sweep = None
    else:
        options.sweep = getattr(options, "file", None) or options.sweep
    try:
        if options.sweep:
            from . import sweep

            os.makedirs(options.out, exist_ok=True)
            return sweep.run(options)
        if options.command == "upgrade":
            from . import upgrade

            os.makedirs(options.out, exist_ok=True)
            return upgrade.run(options)
        if getattr(options, "python", None) and not here:
            return captured_there(options.python, words)
        if options.command == "record":
            from .record.launch import run as record

            return record(options)
        if options.command == "hf":
            from . import hf as one
        elif options.command == "hlo":
            from . import hlo as one
        elif options.command == "train":
            from . import train as one
        else:
            from . import vllm_models as one
        graph, _ = one.run(options)
        print("%s: %d nodes" % (options.out, len(graph["nodes"])))
        return 0
    except CaptureError as e:
        print("isomer-capture: " + " ".join(str(e).split()), file=sys.stderr)
        return 2
    except OSError as e:
        if e.filename is None or os.environ.get("ISOMER_TRACEBACK"):
            raise
        print("isomer-capture: %s: %s" % (e.filename, e.strerror), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except Exception as e:  # of a library, or ours: what it says, in one line, and how to see where
        if os.environ.get("ISOMER_TRACEBACK"):
            raise
        text = "%s: %s" % (type(e).__name__, " ".join(short(e).split()))
        print("isomer-capture: %s (ISOMER_TRACEBACK=1 says where)" % text, file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
