"""Which inputs a model of Transformers needs, and of which shapes: found by running it. What it
raises says what it lacks (lacking.py) and which sizes do not fit."""

import inspect
import itertools
import math
import re

from . import documented, lacking
from .errors import CaptureError, short
from .kinds import Kinds

# What a model may want beside its main input, the likeliest first.
BESIDE = (
    "decoder_input_ids",
    "bbox",
    "pixel_values",
    "input_ids",
    "input_values",
    "input_features",
    "image_grid_thw",
    "encoder_hidden_states",
    "hidden_states",
    "attention_mask",
)
MOST_SETS = 16  # sets of inputs that are tried
MOST_RUNS = 24  # with values for one set
LARGEST_SIZE = 8192  # of a dimension that an error asks for
MOST_REFITS = 3  # after errors that differ in numbers only: they are no way forward
LONGEST = 512  # sequence that an error asks for: attention is its square
LARGEST = 1 << 19  # elements of an input of such a size


def is_switch(parameter):
    """Whether it is true or false, and a model's forward cannot be called without it."""
    return parameter.default is parameter.empty and parameter.annotation in (bool, "bool")


def first_set(model, config, accepts):
    """What the model's forward cannot be called without, and what it is named for."""
    needed = [
        n
        for n, p in accepts.items()
        if n != "self" and p.default is p.empty and p.kind == p.POSITIONAL_OR_KEYWORD
        if not is_switch(p)
    ]
    main = getattr(model, "main_input_name", None)
    if main not in accepts and needed:
        main = needed[0]
    first = [main] if main in accepts else []
    first += [n for n in needed if n not in first]
    if getattr(config, "is_encoder_decoder", False) and "decoder_input_ids" in accepts:
        first += [n for n in ("decoder_input_ids",) if n not in first]
    return first


def usual_sets(first, accepts):
    """Sets of names to try where no failure says what is lacking."""
    beside = [n for n in BESIDE if n in accepts and n not in first]
    out = [[*first, name] for name in beside]
    out += [first + beside[:k] for k in range(2, len(beside) + 1)]
    return out + [[n] for n in ("input_values", "input_features", "pixel_values") if n in accepts]


def goes(model, inputs, call):
    """Whether the model runs on these. What it says where it does not is found again below."""
    import torch

    try:
        with torch.no_grad():
            call(model, **inputs)
        return True
    except Exception:  # whatever a model raises
        return False


def valued(kinds, names):
    """Dictionaries of values to try for a set of names: the k-th of each, or its last. Raises
    CaptureError for a name of which nothing is known."""
    values = {}
    for n in names:
        given = {m: v[0] for m, v in values.items()}
        values[n] = kinds.tensors(n, given)
        if not values[n]:
            raise CaptureError(
                "no example is known for the input %s; capture it from Python, with example "
                "inputs (docs/capture-python.md)" % n
            )
    for k in range(max((len(v) for v in values.values()), default=0)):
        one = {}
        for n in names:
            v = kinds.tensors(n, one) if k else values[n]
            one[n] = v[min(k, len(v) - 1)]
        yield one


def numbers(error):
    """The sizes that an error speaks of, and for a shape that does not fit what it comes to."""
    text = re.sub(r"(?<=\d)x(?=\d)", " ", str(error)[:1000])
    out = [int(n) for n in re.findall(r"(?<![\w.])\d+(?![\w.])", text)]
    for shape in re.findall(r"\[([-\d, ]+)\]", text):
        sizes = [int(n) for n in re.findall(r"-?\d+", shape)]
        out.append(math.prod(n for n in sizes if n > 0))
    return [n for n in dict.fromkeys(out) if 0 < n <= LARGEST_SIZE]


def others(size, sizes):
    """What may stand in the place of a size: the others that are spoken of with it. Where a few
    columns of an input are read apart, the size is that of the rest."""
    if size in sizes:
        return [n for n in sizes if n != size]
    near = [n for n in sizes if 0 < size - n <= 4]
    return [size - near[0] + n for n in sizes if n != near[0]] if near else []


def fitting(shape, error, sizes):
    """Shapes to try in the place of one: with the channels that a convolution says it has, of an
    image with both of its sides, then with any size that is spoken of in the place of another."""
    last = len(shape) - 1
    said = re.findall(r"to have (\d+) channels, but got (\d+)", error)
    if last > 1:
        yield from ((shape[0], int(n), *shape[2:]) for n, got in said if int(got) == shape[1])
    if last > 2 and shape[-1] == shape[-2]:
        yield from ((*shape[:-2], n, n) for n in others(shape[-1], sizes) if n <= LONGEST)
    for d in range(last, 0, -1):
        for n in others(shape[d], sizes):
            if n <= LONGEST or d == last:
                yield (*shape[:d], n, *shape[d + 1 :])


def recounted(one, error, sizes):
    """Inputs that count what another one holds, where an error says how many there are: lengths
    that add up to it, and the rows and columns of a grid of so many places."""
    import torch

    total = re.search(r"sum exactly to (\d+)", error)
    for name, value in one.items():
        if value.is_floating_point() or not value.numel():
            continue
        if total and re.search("(lens|lengths)$", name):
            yield {**one, name: torch.tensor([int(total[1])])}
        row = value.reshape(-1, value.shape[-1])[0].tolist() if value.ndim > 1 else []
        for n in others(math.prod(row), sizes) if len(row) == 2 else ():
            rows = max(d for d in range(1, math.isqrt(n) + 1) if n % d == 0)
            yield {**one, name: torch.tensor([rows, n // rows]).expand(value.shape).clone()}


def unbatched(one, error):
    """Inputs without their batch, where an error is that there is a dimension too many."""
    if re.search(r"Expected \dD .* but got input of size: \[(1, .*|.*, 1)\]", error):
        for name, value in one.items():
            if value.is_floating_point() and value.ndim > 2 and value.shape[0] == 1:
                yield {**one, name: value[0]}


def refitted(kinds, one, error):
    """Inputs with one size put in the place of another, both of which an error speaks of; and
    tokens that stand for as many parts of an image or of sound."""
    yield from recounted(one, error, numbers(error))
    yield from unbatched(one, error)
    sizes, shapes = numbers(error), re.findall(r"\[[\d, ]+\]", str(error))
    named = [n for n, v in one.items() if str(list(v.shape)) in shapes]
    for name, value in [(n, v) for n, v in one.items() if not named or n in named]:
        if name.endswith("input_ids"):
            continue
        for shape in fitting(tuple(value.shape), error, sizes):
            if math.prod(shape) <= LARGEST:
                yield {**one, name: kinds.drawn(name, shape)}
    if "input_ids" in one and len(one) > 1:
        for token in kinds.placeholders():
            for n in [n for n in sizes if n <= LONGEST]:
                yield {**one, "input_ids": kinds.with_placeholders(one["input_ids"], token, n)}


def within_tables(one, error, rows):
    """Inputs that are rows of a table, where the error is that it has only so many rows, or that
    they are no integers."""
    import torch

    if isinstance(error, IndexError):
        for name, value in one.items():
            if rows and not value.is_floating_point() and int(value.max()) >= rows:
                yield {**one, name: value % rows}
    elif "indices" in str(error) and "Long" in str(error):
        for name, value in one.items():
            if value.is_floating_point():
                yield {**one, name: torch.zeros(value.shape[:2], dtype=torch.int64)}


class Failure:
    """What is kept of an exception: its traceback would keep every tensor of the run. `first`: of a
    set's runs, whose configuration is looked at; that takes longer than a run of a small model."""

    def __init__(self, error, accepts, given=None, first=True):
        self.given = given or {}
        self.text = short(error)
        self.kind = re.sub(r"\d+", "", str(error))  # what was raised, whatever the numbers
        self.known = not isinstance(error, CaptureError)
        self.wanted = lacking.inputs(error, accepts)
        self.entry = lacking.entry(error) if first else None
        self.settings = lacking.held(error) if first else []
        self.rows = lacking.rows(error)


def beside(kinds, names, held):
    """Dictionaries of values for a set of names, of which `held` are some that may fit: each value
    that is known for the others."""
    others = [n for n in names if n not in held]
    values = [kinds.tensors(n, held) for n in others]
    for k in range(max((len(v) for v in values), default=0) if all(values) else 0):
        yield {**held, **{n: v[min(k, len(v) - 1)] for n, v in zip(others, values)}}


def tried(model, kinds, names, call, held):
    """(inputs that the model runs on or None, a Failure of each that were tried). First come all
    values that are known, beside each of `held` that a run got past; then those refitted to what
    was raised, the latest first, as they have come furthest."""
    import torch

    raised, told, refits = [], {}, []
    accepts = inspect.signature(type(model).forward).parameters
    try:
        todo = [one for some in held for one in beside(kinds, names, some)]
        todo += valued(kinds, names)
    except CaptureError as e:
        return None, [Failure(e, accepts)]
    known = len(todo)
    while (todo or refits) and len(raised) < known + MOST_RUNS:
        one = todo.pop(0) if todo else next(refits[-1], None)
        if one is None:
            refits.pop()
            continue
        try:
            with torch.no_grad():
                call(model, **one)
            return one, raised
        except Exception as e:  # whatever a model raises
            failure = Failure(e, accepts, one, not raised)
            raised.append(failure)
            told[failure.kind] = told.get(failure.kind, 0) + 1
            if told[failure.kind] <= MOST_REFITS:
                # Of those that are known, the first is the likeliest.
                place = 0 if len(raised) <= known else len(refits)
                mended = within_tables(one, e, failure.rows)
                refits.insert(place, itertools.chain(mended, refitted(kinds, one, str(e))))
    return None, raised


def got_past(raised, name):
    """Values of two runs that came far before they lacked an input: of that whose error came up
    last, as refitting leads further, and of the first, as the likeliest values come first."""
    first = {}
    for k, e in enumerate(raised):
        first.setdefault(e.kind, k)
    lacking_it = [e for e in raised if name in e.wanted]
    last = max(lacking_it, key=lambda e: first[e.kind])
    return [last.given] + [lacking_it[0].given] * (last is not lacking_it[0])


def found(model, config, options, call):
    """Example inputs that the model runs on: what it cannot do without, then what a failure says
    that it lacks, then what models often want. Raises CaptureError with what it said of the first
    set."""
    accepts = inspect.signature(type(model).forward).parameters
    kinds = Kinds(config, options, documented.of_class(type(model)))
    first = first_set(model, config, accepts)
    todo = [(first, frozenset(), [])]
    usual = [(names, frozenset(), []) for names in usual_sets(first, accepts)]
    seen, told = set(), None
    while (todo or usual) and len(seen) < MOST_SETS:
        names, before, held = (todo or usual).pop(0)
        if frozenset(names) in seen:
            continue
        seen.add(frozenset(names))
        one, raised = tried(model, kinds, names, call, held)
        if one is not None:
            return one
        told = told or (raised[0] if raised else None)
        if told is not None and (told.entry is not None or told.settings):
            break  # no input mends that
        said = frozenset((e.text, *e.wanted) for e in raised)
        if said <= before:
            continue  # the last name changed nothing
        wanted = dict.fromkeys(n for e in raised for n in e.wanted if n not in names)
        todo = [([*names, n], said, got_past(raised, n)) for n in wanted] + todo
    if told is None:
        raise CaptureError("%s says nothing of its inputs" % type(model).__name__)
    error = CaptureError(("the model does not run: " if told.known else "") + told.text)
    error.entry, error.settings = told.entry, told.settings
    raise error
