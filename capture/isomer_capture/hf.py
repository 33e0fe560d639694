"""`isomer-capture hf`: a model of Hugging Face Transformers."""

import contextlib
import os
import warnings

from . import configs
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
        weights = None
    if options.layers is not None:
        configs.set_layers(config, options.layers)
        weights = None
    for key, value in options.settings:
        configs.set_key(config, key, value)
        weights = None
    return config, weights


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
    raise CaptureError(
        "Transformers has no model for %s%s"
        % (type(config).__name__, " with this head" if head else "")
    )


def encoder_only(config):
    from transformers.models.auto import modeling_auto as auto

    name = auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(config.model_type)
    return name is not None and not getattr(config, "is_decoder", False)


def build(options, config, weights):
    """The model: from its checkpoint, or with weights drawn from the seed."""
    import torch

    dtype = getattr(torch, options.dtype)
    cls = model_class(config, options.head)
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


def call_for(model):
    """How the model is called on its one input: nothing is cached. Its output is the logits, else
    the last hidden state, else the first tensor, by its name there."""
    import inspect

    import torch

    accepts = inspect.signature(type(model).forward).parameters
    flags = {"use_cache": False} if "use_cache" in accepts or "kwargs" in accepts else {}

    def call(m, **inputs):
        out = m(**inputs, return_dict=True, **flags)
        tensors = [k for k in out.keys() if isinstance(out[k], torch.Tensor)]
        named = [k for k in ("logits", "last_hidden_state") if k in tensors] or tensors
        if not named:
            raise CaptureError("%s returns no tensor" % type(m).__name__)
        return {named[0]: out[named[0]]}

    return call


def run(options):
    """Captures and returns (graph, model)."""
    config, weights = prepare(options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = build(options, config, weights)
        return capture_model(options, config, model), model


def capture_model(options, config, model):
    import transformers

    from .core import capture

    name, sets = configs.input_sets(config, model.main_input_name, options)
    with as_it_runs(options.attn):
        return capture(
            model,
            {name: sets[0]},
            options.out,
            call=call_for(model),
            more_inputs=[{name: one} for one in sets[1:]],
            model=options.name or config.model_type,
            framework="transformers",
            framework_version=transformers.__version__,
            trace=options.trace,
            specialize=options.specialize,
            metadata={
                "config": plain(config),
                "class": type(model).__name__,
                "attention": options.attn,
                "seed": options.seed,
                "dtype": options.dtype,
            },
        )


def plain(config):
    import json

    data = json.loads(config.to_json_string(use_diff=False))
    for key in ("_name_or_path", "transformers_version"):
        data.pop(key, None)
    return data
