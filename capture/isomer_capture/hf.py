"""`isomer-capture hf`: a model of Hugging Face Transformers."""

import contextlib
import os
import sys
import warnings

from . import configs, lacking, search, weightless, widths
from .classes import model_class, own_config
from .errors import CaptureError, short

TESTED = "5.12.1"

ATTENTION = {"sdpa": "sdpa", "sdpa-mask": "sdpa", "eager": "eager"}


def offline(name):
    """Nothing but a hub id may reach for the network."""
    if not ("/" in name and not os.path.exists(name)):
        os.environ["HF_HUB_OFFLINE"] = "1"
        os.environ["TRANSFORMERS_OFFLINE"] = "1"
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")


def prepare(options):
    """(configuration, folder or hub id with weights or None), as the options ask. options.kept:
    what is to be said of the layers that stay."""
    offline(options.model)
    try:
        from transformers.utils import logging

        logging.disable_progress_bar()
    except ImportError as e:
        raise CaptureError(
            "Transformers is not installed (pip install transformers==%s)" % TESTED
        ) from e
    config, weights = configs.load_config(options.model)
    if options.reduce:
        configs.reduce(config)
    if options.layers is not None:
        options.kept = configs.set_layers(config, options.layers)
    if options.reduce:
        widths.shrink_others(config, (config, configs.text_config(config)), options.layers)
    if set_as_asked(config, options) or options.reduce or options.layers is not None:
        weights = None
    return config, weights


def say_kept(options):
    """Which layers stay, where they are not simply the first."""
    if getattr(options, "kept", None):
        print("isomer-capture: %s" % options.kept, file=sys.stderr)


def set_as_asked(config, options):
    for key, value in options.settings:
        configs.set_key(config, key, value)
    return bool(options.settings)


def build(options, config, weights):
    """The model: from its checkpoint, or with weights drawn from the seed. Where a reduced
    configuration leaves a setting open without which there is no model, it gets one."""
    cls = model_class(config, options.head)
    config = own_config(config, cls)
    for c in widths.inside(config):
        if getattr(c, "use_cache", None):
            c.use_cache = False
    filled, first = set(), None
    while True:
        try:
            return made(options, cls, config, weights)
        except CaptureError:
            raise
        except Exception as e:  # whatever a model raises
            first = first or e
            if "attention implementation" in str(e) and options.attn != "eager":
                said = "%s has no %s attention: give --attn eager" % (cls.__name__, options.attn)
                raise CaptureError(said) from e
            if not (options.reduce and fill(config, e, filled)):
                said = "%s cannot be built: %s" % (cls.__name__, short(first))
                raise CaptureError(said) from first


def fill(config, error, filled):
    """Gives a setting a value that is None where building failed; False where there is none.
    filled: (name, value) of those that have been tried."""
    entry = lacking.entry(error)
    if entry is not None and complete(entry):
        return True
    return put_first(config, lacking.settings(error), filled)


def put_first(config, settings, filled):
    """Gives the first of these settings a value that has not been tried; False: there is none."""
    for owner, name in settings:
        for value in widths.likely(config, owner, name):
            if (id(owner), name, repr(value)) not in filled:
                filled.add((id(owner), name, repr(value)))
                widths.put(owner, name, value)
                return True
    return False


def made(options, cls, config, weights):
    import torch

    dtype = getattr(torch, options.dtype)
    extra = {"attn_implementation": ATTENTION[options.attn]}
    if hasattr(config, "_experts_implementation"):
        extra["experts_implementation"] = options.experts
    torch.manual_seed(options.seed)
    if options.static:
        return weightless.build(lambda: cls._from_config(config, dtype=dtype, **extra))
    if weights is not None:
        return loaded(cls, weights, config, dtype, extra)
    # Weights are drawn in float32 and cast, so that every dtype is of one model.
    if hasattr(cls, "_from_config"):
        model = cls._from_config(config, **extra).eval()
    else:  # a layer that is no model of its own
        config._attn_implementation = extra["attn_implementation"]
        model = cls(config).eval()
    configs.draw(model, options.seed)
    return model.to(dtype).eval()


def loaded(cls, weights, config, dtype, extra):
    """A model of a checkpoint. What that does not hold is drawn by Transformers: it is told of."""
    from transformers import __version__ as version

    key = "dtype" if tuple(map(int, version.split(".")[:2])) >= (4, 56) else "torch_dtype"
    model, said = cls.from_pretrained(
        weights, config=config, output_loading_info=True, **{key: dtype}, **extra
    )
    missing = sorted(said.get("missing_keys") or ())
    if missing:
        names = ", ".join(missing[:4]) + (" ..." if len(missing) > 4 else "")
        print(
            "isomer-capture: the checkpoint %s has no values for %s (%d), which are random"
            % (weights, names, len(missing)),
            file=sys.stderr,
        )
    return model.eval()


# Transformers asks these about the values in its tensors, or whether it is being traced.
DECISIONS = (
    "find_packed_sequence_indices",
    "_ignore_causal_mask_sdpa",
    "_ignore_bidirectional_mask_sdpa",
)
# Whether they ask for it: 5.x, 4.x.
TRACING = ("is_tracing", "is_torchdynamo_compiling")
# What makes a mask of nested vmap: 5.x, 4.x.
VMAPS = ("_vmap_expansion_sdpa", "_vmap_for_bhqkv")
INDEXING = "TransformGetItemToIndex"  # and how such a mask reads a tensor at its indices


@contextlib.contextmanager
def as_it_runs(attn, static=False):
    """While exporting, Transformers builds masks that it skips when it runs. Unless `sdpa-mask`
    asks for that, its decisions are those of the plain run before. Without weights there is none:
    positions are the model's own, of one sequence."""
    with contextlib.ExitStack() as stack:
        for module in mask_modules():
            for name, value in replaced(module, attn, static).items():
                stack.callback(setattr, module, name, getattr(module, name))
                setattr(module, name, value)
        yield


def mask_modules():
    """The modules of this Transformers that make masks: before 4.53 there was one, of which models
    asked what they might skip."""
    import importlib

    out = []
    for name in ("masking_utils", "modeling_attn_mask_utils"):
        with contextlib.suppress(ImportError):
            out.append(importlib.import_module("transformers." + name))
    return out


def replaced(module, attn, static):
    """{name of a function of such a module: what stands in its place}"""
    has = vars(module)
    out = {n: broadcast(has[n]) for n in VMAPS if n in has}
    if INDEXING in has:
        out[INDEXING] = unless_traced(has[INDEXING])
    if attn != "sdpa-mask":
        out.update({n: replayed(has[n]) for n in DECISIONS if n in has})
        out.update({n: lambda tensor=None: False for n in TRACING if n in has})
    if static and "find_packed_sequence_indices" in has:
        out["find_packed_sequence_indices"] = lambda position_ids: None
    return out


def unless_traced(context):
    """A context that does nothing while tracing."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    return lambda: contextlib.nullcontext() if get_proxy_mode() else context()


def broadcast(original):
    """Masks of nested vmap cannot be exported: while tracing, the mask's function gets the indices
    as dimensions."""
    from torch._subclasses.fake_tensor import FakeTensor

    def expansion(mask_function, *more, **named):
        def mask(*indices):
            if not any(isinstance(i, FakeTensor) for i in indices):
                return original(mask_function, *more, **named)(*indices)
            # Where the batch and the heads are left to broadcasting, they are None.
            given = [i for i in indices if i is not None]
            places = range(len(given))
            shaped = iter(
                [i.view([-1 if d == k else 1 for d in places]) for k, i in zip(places, given)]
            )
            made = mask_function(*(i if i is None else next(shaped) for i in indices))
            return made.expand([i.shape[0] for i in given])

        return mask

    return expansion


def replayed(function):
    """The function; while tracing, it says what it said of real tensors of the same shapes, if that
    was always one of None, True and False."""
    import torch
    from torch._subclasses.fake_tensor import FakeTensor

    answers = {}

    def decide(*args, **kwargs):
        values = list(args) + [kwargs[k] for k in sorted(kwargs)]
        key = tuple(tuple(v.shape) if isinstance(v, torch.Tensor) else repr(v) for v in values)
        said = answers.get(key, set())
        if (
            any(isinstance(v, FakeTensor) for v in values)
            and len(said) == 1
            and said <= {"None", "True", "False"}
        ):
            return {"None": None, "True": True, "False": False}[next(iter(said))]
        out = function(*args, **kwargs)
        if not any(isinstance(v, FakeTensor) for v in values):
            plain = (
                bool(out)
                if isinstance(out, torch.Tensor) and out.numel() == 1 and out.dtype == torch.bool
                else out
            )
            answers.setdefault(key, set()).add(
                repr(plain) if plain is None or isinstance(plain, bool) else "tensor"
            )
        return out

    return decide


def call_for(model, cached=0):
    """How the model is called on its one input: nothing is cached, or the last `cached` tokens come
    one after another behind a prompt of the others. Its output is the logits, else the last hidden
    state, else the first tensor, by its name there."""
    import inspect

    if cached:
        return step_by_step(model, cached)

    import torch

    from .core import as_plain
    from .files import leaves_of

    accepts = inspect.signature(type(model).forward).parameters
    asked = {"use_cache": False, "return_dict": True}
    flags = {k: False for k, p in accepts.items() if search.is_switch(p)}
    flags.update((k, v) for k, v in asked.items() if k in accepts)

    def call(m, **inputs):
        out = m(**inputs, **flags)
        tensors = {k: t for k, t in leaves_of(as_plain(out), "output") if torch.is_tensor(t)}
        named = [k for k in ("logits", "last_hidden_state") if k in tensors] or list(tensors)
        if not named:
            raise CaptureError("%s returns no tensor" % type(m).__name__)
        return {named[0]: tensors[named[0]]}

    return call


def step_by_step(model, n):
    """The same output, of a prompt and n tokens behind it with the model's own cache."""
    import inspect

    import torch

    accepts = inspect.signature(type(model).forward).parameters
    name = model.main_input_name
    if name != "input_ids" or "past_key_values" not in accepts:
        raise CaptureError("--cached: %s keeps no cache of tokens" % type(model).__name__)

    def call(m, **inputs):
        tokens, cache, found = inputs.pop(name), None, []
        if tokens.shape[1] <= n:
            raise CaptureError("--cached %d: there are only %d tokens" % (n, tokens.shape[1]))
        last = tokens[:, -n:]
        for part in (tokens[:, :-n], *(last[:, k : k + 1] for k in range(n))):
            out = m(**{name: part}, past_key_values=cache, use_cache=True, return_dict=True)
            cache = getattr(out, "past_key_values", None)
            key = next((k for k in ("logits", "last_hidden_state") if k in out), None)
            if cache is None or key is None or out[key].dim() != 3:
                raise CaptureError("--cached: %s keeps no cache of tokens" % type(m).__name__)
            found.append(out[key])
        return {key: torch.cat(found, 1)}

    return call


def run(options):
    """Captures and returns (graph, model). What the rules for decoders do not make small is made
    small by dividing all widths, as far as the model still runs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            config, weights = prepare(options)
            model, inputs = runs(options, config, weights)
            say_kept(options)
        except Exception as e:  # a rule for decoders may not fit what this one is
            if not options.reduce:
                raise
            config, model, inputs = shrunk(options, e)
        if options.checkpoint:
            config, model = through_checkpoint(options, model)
        return capture_model(options, config, model, inputs), model


def through_checkpoint(options, model):
    """(configuration, model) loaded from the folder that the model is written to."""
    if not hasattr(model, "save_pretrained"):
        raise CaptureError(
            "--checkpoint: %s is a layer that Transformers writes no checkpoint of"
            % type(model).__name__
        )
    model.save_pretrained(options.checkpoint)
    config, weights = configs.load_config(options.checkpoint)
    return config, build(options, config, weights)


MOST_FILLED = 8  # values of settings that are tried for a model that is built and does not run
LARGEST = 300_000_000  # elements of what is built only to see whether it runs


def runs(options, config, weights):
    """(a model, example inputs that it runs on)"""
    if "batch" in options.dynamic:
        options.batch = max(options.batch, 2)  # an open batch is captured at two
    filled = set()
    while True:
        model = build(options, config, weights)
        if options.static:
            return model, weightless_inputs(options, config, model)
        try:
            call = call_for(model, options.cached)
            return model, configs.input_sets(config, model, options, call)
        except CaptureError as e:
            if "tuple" in str(e) and configs.with_tuples(config):
                continue
            if options.reduce and "channels, but got" in str(e) and widths.all_features(config):
                continue  # a model may put the features of all stages together
            lacked = getattr(e, "settings", ())
            if not options.reduce or len(filled) == MOST_FILLED:
                raise
            if not (complete(getattr(e, "entry", None)) or put_first(config, lacked, filled)):
                raise


def complete(found):
    """Puts an entry into the dictionary of a configuration that lacks it (lacking.entry); False:
    that is not what was raised."""
    value = found and widths.entry(*found)
    if value:
        getattr(found[0], found[1])[found[2]] = value
    return bool(value)


def weightless_inputs(options, config, model):
    if model.main_input_name != "input_ids" or options.dynamic or options.trace:
        raise CaptureError("--static is for models that read tokens, without --dynamic and --trace")
    sets = configs.token_sets(config, options.length, options.sets, options.seed, options.batch)
    return [{"input_ids": one} for one in sets]


def shrunk(options, error):
    """The smallest configuration whose model runs: (it, the model, its inputs)."""
    whole, _ = configs.load_config(options.model)
    configs.reduce_vocabulary(whole)
    for c in widths.inside(whole):
        if getattr(c, "prediction_length", 0) is None:
            c.prediction_length = 4  # of a series; without it there is no model
    for config in widths.smaller(whole, options.layers):
        try:
            set_as_asked(config, options)
            if elements(options, config) > LARGEST:
                continue
            model, inputs = runs(options, config, None)
            return config, model, inputs
        except Exception as e:
            error = e  # of the widest: it is the model's own
    raise error if isinstance(error, CaptureError) else CaptureError(short(error)) from error


def elements(options, config):
    """Of the parameters of a model that is not built."""
    import torch

    try:
        with torch.device("meta"):
            cls = model_class(config, options.head)
            model = cls(own_config(config, cls))
    except CaptureError:
        raise
    except Exception:
        return 0  # building it says what is wrong
    return sum(p.numel() for p in model.parameters())


def capture_model(options, config, model, sets=None):
    """sets: of example inputs, by name; found where they are not given."""
    from . import generation

    # One sequence is a case of its own in many programs: an open batch is captured at two.
    if "batch" in options.dynamic:
        options.batch = max(options.batch, 2)
    call = call_for(model, options.cached)
    sets = sets or configs.input_sets(config, model, options, call)
    if getattr(options, "calls", 0):
        refuse_with_calls(options, "cached", "static")
        return generation.of_transformers(
            model,
            [one.get("input_ids") for one in sets],
            options,
            lambda *one: write_one(options, config, model, *one),
        )
    name = getattr(model, "main_input_name", next(iter(sets[0])))
    open_ones = open_dimensions(options.dynamic, name)
    return write_one(options, config, model, options.out, call, sets, open_ones)


def refuse_with_calls(options, *names):
    for name in names:
        if getattr(options, name):
            raise CaptureError("--calls does not go with --%s" % name)


def write_one(options, config, model, out, call, sets, open_ones):
    """open_ones: `dynamic` of capture()."""
    import transformers

    from .core import capture

    # What Transformers decides by the length of one prompt holds for no other length.
    attn = "sdpa-mask" if options.dynamic and options.attn == "sdpa" else options.attn
    with as_it_runs("sdpa-mask" if options.dynamic else attn, options.static):
        return capture(
            model,
            sets[0],
            out,
            call=call,
            more_inputs=sets[1:],
            model=options.name or config.model_type,
            framework="transformers",
            framework_version=transformers.__version__,
            trace=options.trace,
            specialize=options.specialize,
            dynamic=open_ones,
            weightless=options.static,
            metadata={
                "config": plain(config),
                "class": type(model).__name__,
                "attention": attn,
                **({"cached": options.cached} if options.cached else {}),
                "seed": options.seed,
                "dtype": options.dtype,
            },
        )


def open_dimensions(asked, name):
    """What capture() is asked to leave open of the model's one input."""
    if "length" in asked and name != "input_ids":
        raise CaptureError("--dynamic length is for models that read tokens, not %s" % name)
    names = {"batch": (0, "B"), "length": (1, "T")}
    dims = {names[k][0]: (names[k][1], *bounds) for k, bounds in asked.items()}
    return {name: dims} if dims else None


def plain(config):
    import json

    data = json.loads(config.to_json_string(use_diff=False))
    for key in ("_name_or_path", "transformers_version"):
        data.pop(key, None)
    return data
