"""What was lacking where a model failed: inputs, and settings of its configuration, that are None
where the line that failed reads them. Python's traceback has both the line and the values."""

import functools
import inspect
import itertools
import linecache
import re

from .widths import inside

NAME = re.compile(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
NEVER = re.compile(r"label|past_key|cache|^use_|^output_|^return_|loss|_outputs?$|^kwargs$")


def read_at(tb):
    """The source of what a frame was doing: of the expression where Python says which."""
    return source_of(tb.tb_frame.f_code, tb.tb_lasti, tb.tb_lineno)


@functools.lru_cache(maxsize=None)  # many runs of a search fail at one place
def source_of(code, instruction, line):
    first, last = line, line
    places = getattr(code, "co_positions", None)
    if places is not None:
        one = next(itertools.islice(places(), instruction // 2, None))
        if one[0] is not None and one[1] is not None:
            first, last = one[0], one[1]
    lines = [linecache.getline(code.co_filename, n) for n in range(first, last + 1)]
    return "".join(lines)


def steps(error):
    """(names and dotted names, values of locals) of each frame, the innermost first."""
    out, tb = [], error.__traceback__
    while tb is not None:
        names = list(dict.fromkeys(NAME.findall(read_at(tb))))
        out.append((names, tb.tb_frame.f_locals))
        tb = tb.tb_next
    return out[::-1]


def inputs(error, accepts):
    """Names among `accepts` that were None where the error arose, or that it speaks of; the
    likeliest first."""
    out = []
    for names, values in steps(error):
        heads = [n.split(".")[0] for n in names]
        heads = [n for n in heads if n in accepts and values.get(n, 0) is None]
        out += [n for n in heads if not NEVER.search(n)]
        if out:
            break
    out += [w for w in re.findall(r"\w+", str(error)) if w in accepts]
    out = [n for n in dict.fromkeys(out) if n != "self" and not NEVER.search(n)]
    # Embeddings are what tokens become: they come last.
    return sorted(out, key=lambda n: n.endswith("inputs_embeds"))


def settings(error):
    """(configuration, name) of each attribute that is not there, or is None, where the error arose:
    on the line that failed, then anywhere in a function that failed."""
    out, elsewhere = [], []
    if isinstance(error, AttributeError) and is_configuration(error.obj):
        out.append((error.obj, error.name))
    out += [found for step in steps(error) for found in read_as_none(*step)]
    tb = error.__traceback__
    while tb is not None:
        read = tb.tb_frame.f_code.co_names
        owners = [v for v in tb.tb_frame.f_locals.values() if is_configuration(v)]
        elsewhere += [(c, n) for c in owners for n in read if getattr(c, n, 0) is None]
        tb = tb.tb_next
    return out + [found for found in elsewhere[::-1] if found not in out]


def read_as_none(names, values):
    """(configuration, name) of each setting among dotted names that is None."""
    for name in names:
        at, parts = values.get(name.split(".")[0]), name.split(".")[1:]
        for part in parts:
            owner, at = at, getattr(at, part, 0)
            if at is None and is_configuration(owner):
                yield owner, part


def held(error):
    """(configuration, name) of settings that are None and are read on the line that failed, or with
    which a module was made that failed in a function which reads them:
    `self.top_k = config.num_experts_per_tok` in its __init__."""
    frames, tb = [], error.__traceback__
    while tb is not None:
        frames.append((tb.tb_frame.f_code.co_names, tb.tb_frame.f_locals.get("self")))
        tb = tb.tb_next
    whole = [getattr(owner, "config", None) for _, owner in frames]
    configs = {id(c): c for one in whole if is_configuration(one) for c in inside(one)}.values()
    out = list(read_as_none(*steps(error)[0]))
    for names, owner in reversed(frames):
        for name in [n for n in names if getattr(owner, n, 0) is None]:
            said = made_from(type(owner), name)
            found = [(c, n) for n in said for c in configs if getattr(c, n, 0) is None]
            out += [one for one in found if one not in out]
    return out


def made_from(cls, name):
    """The settings that an attribute of a class is said to be in its __init__."""
    return re.findall(r"self\.%s = .*?config\.(?:\w+\.)*(\w+)" % name, making_of(cls))


@functools.lru_cache(maxsize=None)  # finding it takes longer than a run of a small model
def making_of(cls):
    try:
        return inspect.getsource(cls.__init__)
    except (OSError, TypeError):
        return ""


def rows(error):
    """Of the table that was read beyond its end; None where it is another error."""
    tb = error.__traceback__ if isinstance(error, IndexError) else None
    found = None
    while tb is not None:
        table = tb.tb_frame.f_locals.get("weight")
        if tb.tb_frame.f_code.co_name == "embedding" and getattr(table, "ndim", 0) == 2:
            found = table.shape[0]
        tb = tb.tb_next
    return found


def is_configuration(value):
    return hasattr(value, "to_dict") and hasattr(value, "model_type")


def entry(error):
    """(configuration, name of a dictionary in it, key) where the error is that the key is not
    there, or where a function that failed reads parts of a rotation that the dictionary does not
    give; then what it takes in their place, if it says. None where it is another error."""
    missing = error.args[0] if isinstance(error, KeyError) and error.args else None
    for names, values in steps(error):
        for at in values.values():
            config = at if hasattr(at, "to_dict") else getattr(at, "config", None)
            for name in names:
                last = name.split(".")[-1]
                inner = getattr(config, last, None)
                if missing is not None and isinstance(inner, dict) and missing not in inner:
                    return config, last, missing
    return section(error)


def section(error):
    """The same of a list of parts that a function which failed reads out of a dictionary, or that
    the __init__ of its module read."""
    tb, found = error.__traceback__, None
    while tb is not None:
        held = tb.tb_frame.f_locals
        module = held.get("self")
        init = getattr(type(module).__init__, "__code__", None)
        config = getattr(module, "config", None)
        codes = [tb.tb_frame.f_code] + [init] * (is_configuration(config) and init is not None)
        owners = [at for at in (*held.values(), config) if is_configuration(at)]
        for code in codes:
            keys = [k for k in code.co_consts if isinstance(k, str) and k.endswith("_section")]
            for at, name in itertools.product(owners, code.co_names if keys else ()):
                inner = getattr(at, name, None)
                if isinstance(inner, dict) and keys[0] not in inner:
                    usual = [c for c in code.co_consts if isinstance(c, tuple) and len(c) == 3]
                    found = at, name, keys[0], *usual[:1]
        tb = tb.tb_next
    return found
