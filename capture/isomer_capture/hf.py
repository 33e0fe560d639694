"""`isomer-capture hf`: a model of Hugging Face Transformers."""

import contextlib
import os
import warnings

from . import configs, widths
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
    """(configuration, folder or hub id with weights or None), as the options ask."""
    offline(options.model)
    try:
        import transformers  # noqa: F401
    except ImportError as e:
        raise CaptureError(
            "Transformers is not installed (pip install transformers==%s)" % TESTED
        ) from e
    config, weights = configs.load_config(options.model)
    if options.reduce:
        configs.reduce(config)
    if options.layers is not None:
        configs.set_layers(config, options.layers)
    if options.reduce:
        widths.shrink_others(config, (config, configs.text_config(config)), options.layers)
    if set_as_asked(config, options) or options.reduce or options.layers is not None:
        weights = None
    return config, weights


def set_as_asked(config, options):
    for key, value in options.settings:
        configs.set_key(config, key, value)
    return bool(options.settings)


def model_class(config, head):
    """The module that Transformers' auto classes make of a configuration."""
    from transformers.models.auto import modeling_auto as auto

    import transformers

    named = [n for n in getattr(config, "architectures", None) or [] if hasattr(transformers, n)]
    if named and head is None:
        return getattr(transformers, named[0])
    tables = {
        "lm": "MODEL_FOR_CAUSAL_LM_MAPPING",
        "none": "MODEL_MAPPING",
        "mlm": "MODEL_FOR_MASKED_LM_MAPPING",
    }
    order = [head] if head else ["none"] if encoder_only(config) else ["lm", "none"]
    for one in order:
        table = getattr(auto, tables[one])
        if type(config) in table:
            found = table[type(config)]
            return found[0] if isinstance(found, (list, tuple)) else found
    found = None if head else other_class(config)
    if found is None:
        raise CaptureError(
            "Transformers has no model for %s%s"
            % (type(config).__name__, " with this head" if head else "")
        )
    return found


def other_class(config):
    """The class of a part of a model, or of one that has a head of its own kind: what stands beside
    the configuration and is made of it. None: there is none."""
    import importlib

    from transformers import PreTrainedModel

    place = type(config).__module__.rpartition(".")
    try:
        module = importlib.import_module(
            place[0] + "." + place[2].replace("configuration_", "modeling_")
        )
    except ImportError:
        return None
    stem = type(config).__name__.removesuffix("Config")
    found = [
        c
        for n, c in vars(module).items()
        if isinstance(c, type)
        and issubclass(c, PreTrainedModel)
        and getattr(c, "config_class", None) is type(config)
        and not n.endswith("PreTrainedModel")
        and "forward" in vars(c)
    ]
    # That which has the configuration's own name, then the plain model.
    return min(
        found,
        key=lambda c: (
            c.__name__ not in (stem, stem + "Model"),
            not c.__name__.endswith("Model"),
            len(c.__name__),
        ),
        default=None,
    )


def encoder_only(config):
    from transformers.models.auto import modeling_auto as auto

    name = auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(config.model_type)
    return name is not None and not getattr(config, "is_decoder", False)


def own_config(config, cls):
    """The configuration that a class is of: it, or the one inside it, as of a language model."""
    if isinstance(config, cls.config_class or object):
        return config
    return next((c for c in widths.inside(config) if isinstance(c, cls.config_class)), config)


def build(options, config, weights):
    """The model: from its checkpoint, or with weights drawn from the seed."""
    import torch

    dtype = getattr(torch, options.dtype)
    cls = model_class(config, options.head)
    config = own_config(config, cls)
    extra = {"attn_implementation": ATTENTION[options.attn]}
    try:
        if weights is not None:
            model = cls.from_pretrained(weights, config=config, dtype=dtype, **extra)
        else:
            torch.manual_seed(options.seed)
            if hasattr(config, "_experts_implementation"):
                extra["experts_implementation"] = options.experts
            # Weights are drawn in float32 and cast, so that every dtype is of one model.
            model = cls._from_config(config, **extra).eval()
            configs.draw(model, options.seed)
            model = model.to(dtype)
    except CaptureError:
        raise
    except Exception as e:
        raise CaptureError("%s cannot be built: %s" % (cls.__name__, short(e))) from e
    return model.eval()


# Transformers asks these about the values in its tensors, or whether it is being traced.
DECISIONS = (
    "find_packed_sequence_indices",
    "_ignore_causal_mask_sdpa",
    "_ignore_bidirectional_mask_sdpa",
)


@contextlib.contextmanager
def as_it_runs(attn):
    """While exporting, Transformers builds masks that it skips when it runs. Unless `sdpa-mask`
    asks for that, its decisions are those of the plain run before."""
    from transformers import masking_utils

    names = ("is_tracing", "_vmap_expansion_sdpa") + DECISIONS
    saved = {n: getattr(masking_utils, n) for n in names if hasattr(masking_utils, n)}
    if "_vmap_expansion_sdpa" in saved:
        masking_utils._vmap_expansion_sdpa = broadcast(saved["_vmap_expansion_sdpa"])
    if attn != "sdpa-mask" and "is_tracing" in saved:
        for name in DECISIONS:
            if name in saved:
                setattr(masking_utils, name, replayed(saved[name]))
        masking_utils.is_tracing = lambda tensor=None: False
    try:
        yield
    finally:
        for name, original in saved.items():
            setattr(masking_utils, name, original)


def broadcast(original):
    """Masks of nested vmap cannot be exported: while tracing, the mask's function gets the indices
    as dimensions."""
    from torch._subclasses.fake_tensor import FakeTensor

    def expansion(mask_function):
        def mask(*indices):
            if not any(isinstance(i, FakeTensor) for i in indices):
                return original(mask_function)(*indices)
            shaped = [
                i.view([-1 if d == k else 1 for d in range(4)]) for k, i in enumerate(indices)
            ]
            return mask_function(*shaped).expand([i.shape[0] for i in indices])

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

    from .core import as_plain, leaves_of

    accepts = inspect.signature(type(model).forward).parameters
    flags = {"use_cache": False} if "use_cache" in accepts or "kwargs" in accepts else {}

    def call(m, **inputs):
        out = m(**inputs, return_dict=True, **flags)
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
        except CaptureError as e:
            if not options.reduce:
                raise
            config, model, inputs = shrunk(options, e)
        return capture_model(options, config, model, inputs), model


LARGEST = 300_000_000  # elements of what is built only to see whether it runs


def runs(options, config, weights):
    """(a model, example inputs that it runs on)"""
    model = build(options, config, weights)
    if "batch" in options.dynamic:
        options.batch = max(options.batch, 2)  # an open batch is captured at two
    sets = configs.input_sets(config, model, options, call_for(model, options.cached))
    return model, sets


def shrunk(options, error):
    """The smallest configuration whose model runs: (it, the model, its inputs)."""
    whole, _ = configs.load_config(options.model)
    configs.reduce_vocabulary(whole)
    for c in widths.inside(whole):
        configs.reduce_images(c)
        if getattr(c, "prediction_length", 0) is None:
            c.prediction_length = 4  # of a series; without it there is no model
    for config in widths.smaller(whole, options.layers):
        set_as_asked(config, options)
        try:
            if elements(options, config) > LARGEST:
                break
            model, inputs = runs(options, config, None)
            return config, model, inputs
        except CaptureError as e:
            error = e  # of the widest: it is the model's own
    raise error


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
    import transformers

    from .core import capture

    # One sequence is a case of its own in many programs: an open batch is captured at two.
    if "batch" in options.dynamic:
        options.batch = max(options.batch, 2)
    call = call_for(model, options.cached)
    sets = sets or configs.input_sets(config, model, options, call)
    name = model.main_input_name
    # What Transformers decides by the length of one prompt holds for no other length.
    attn = "sdpa-mask" if options.dynamic and options.attn == "sdpa" else options.attn
    with as_it_runs("sdpa-mask" if options.dynamic else attn):
        return capture(
            model,
            sets[0],
            options.out,
            call=call,
            more_inputs=sets[1:],
            model=options.name or config.model_type,
            framework="transformers",
            framework_version=transformers.__version__,
            trace=options.trace,
            specialize=options.specialize,
            dynamic=open_dimensions(options.dynamic, name),
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
