"""`isomer-capture vllm`: a model as vLLM's own classes run it: one rank, the layers' native forward
on the CPU.

The weights go from the Transformers model (drawn from the seed, or a checkpoint) to a folder as
Transformers saves them, and from there through vLLM's own load_weights. Attention and other custom
operators stay operators.
"""

import contextlib
import json
import os
import tempfile
import warnings

from . import configs, hf
from . import weightless as bare_of
from .errors import CaptureError, short

TESTED = "0.24.0"


def import_vllm():
    """vLLM, on a platform of ours where there is none. Its environment is read on import."""
    os.environ.setdefault("VLLM_USE_LAYERNAME", "0")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "CRITICAL")
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_WORKER_MULTIPROC_METHOD", "spawn")
    os.environ.setdefault("VLLM_ENABLE_V1_MULTIPROCESSING", "0")
    os.environ.setdefault(
        "VLLM_MLA_DISABLE", "1"
    )  # latent attention as plain attention: the absorbed form needs a GPU
    try:
        import vllm
        import vllm.platforms as platforms
        from .vllm_attention import ReferencePlatform

        platforms._current_platform = ReferencePlatform()
        from vllm.model_executor.models import registry

        # vLLM looks at a model's class in another process, lest CUDA be touched: here that would
        # only take time.
        registry._run_in_subprocess = lambda look: look()
        from . import vllm_experts  # noqa: F401
    except ImportError as e:
        raise CaptureError(
            (
                "vLLM cannot be imported (%s); docs/capture-vllm.md tells how to install it "
                "without CUDA"
            )
            % short(e)
        ) from e
    if vllm.__version__.split("+")[0] != TESTED:
        warnings.warn("vLLM %s is untried; this was tested with %s" % (vllm.__version__, TESTED))
    return vllm


def groups():
    """Process groups of one rank."""
    from vllm.distributed import parallel_state as state

    if state._WORLD is None:
        store = os.path.join(tempfile.mkdtemp(prefix="isomer-"), "store")
        state.init_distributed_environment(1, 0, "file://" + store, 0, backend="gloo")
    if not state.model_parallel_is_initialized():
        state.initialize_model_parallel(1, 1)


def vllm_config(folder, options):
    """The engine's configuration, as vLLM makes it from its own arguments: no compiler, native
    forwards."""
    from vllm.config import CompilationConfig, CompilationMode
    from vllm.engine.arg_utils import EngineArgs

    return EngineArgs(
        model=folder,
        tokenizer=folder,
        skip_tokenizer_init=True,
        dtype=options.dtype,
        seed=options.seed,
        enforce_eager=True,
        model_impl="vllm",
        use_tqdm_on_load=False,
        enable_prefix_caching=False,
        distributed_executor_backend="uni",
        compilation_config=CompilationConfig(mode=CompilationMode.NONE, custom_ops=["none"]),
    ).create_engine_config()


def save(model, folder, weightless=False):
    """The checkpoint vLLM will read: what Transformers writes, config.json with the class's
    name; that alone where there are no weights."""
    if not model.config.architectures:
        model.config.architectures = [type(model).__name__]
    if weightless:
        model.config.save_pretrained(folder)
    else:
        model.save_pretrained(folder, safe_serialization=True)
    path = os.path.join(folder, "config.json")
    with open(path, encoding="utf-8") as f:
        data = json.load(f)
    data["architectures"] = [type(model).__name__]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(data, f)


def load(vconfig, weightless=False):
    """vLLM's model object with its weights, or with parameters that have no memory."""
    import torch
    from vllm.config import set_current_vllm_config
    from vllm.model_executor.model_loader.default_loader import DefaultModelLoader
    from vllm.model_executor.model_loader.utils import (
        initialize_model,
        process_weights_after_loading,
    )

    from . import vllm_experts

    default = torch.get_default_dtype()
    torch.set_default_dtype(vconfig.model_config.dtype)
    try:
        with set_current_vllm_config(vconfig):
            groups()
            if weightless:
                model = bare_of.build(lambda: initialize_model(vconfig))
            else:
                model = initialize_model(vconfig)
                fill_unset(model)
                loader = DefaultModelLoader(vconfig.load_config)
                try:
                    loader.load_weights(model, vconfig.model_config)
                except KeyError as e:
                    if not vllm_experts.was_renamed(model, str(e.args[0])):
                        raise
                    with vllm_experts.old_names(model):
                        loader.load_weights(model, vconfig.model_config)
            process_weights_after_loading(model, vconfig.model_config, torch.device("cpu"))
    finally:
        torch.set_default_dtype(default)
    return model.eval()


def fill_unset(model):
    """Parameters are made without values: what load_weights leaves out must not look plausible."""
    import torch

    with torch.no_grad():
        for p in model.parameters():
            if p.is_floating_point():
                p.fill_(float("nan"))


def check_loaded(model):
    import torch

    for name, p in model.named_parameters():
        if p.is_floating_point() and torch.isnan(p).any() and not torch.isnan(p).all():
            with torch.no_grad():  # rows past the vocabulary, which vLLM pads
                p.copy_(torch.nan_to_num(p, nan=0.0))


def attributes_by_name(vconfig):
    """The functions that tell what a custom operator finds behind its layer's name."""
    layers = vconfig.compilation_config.static_forward_context

    def attention(layer_name, **_):
        return layers[getattr(layer_name, "value", layer_name)].impl.attributes()

    return {"vllm::unified_attention_with_output": attention, "vllm::unified_attention": attention}


def call_for(model, counted=False):
    """counted: positions are no input, but counted from 0 as a prompt's are. Of an input nobody
    knows what it is at other lengths."""
    import torch

    def hidden(m, input_ids, positions=None):
        if counted:
            positions = torch.arange(input_ids.shape[0])
        out = m(input_ids=input_ids, positions=positions)
        return out[0] if isinstance(out, tuple) else out

    def logits(m, input_ids, positions=None):
        return m.compute_logits(hidden(m, input_ids, positions))

    return (logits, "logits") if hasattr(model, "compute_logits") else (hidden, "last_hidden_state")


def open_length(options, vconfig):
    """What capture() is asked to leave open; the engine takes no longer prompts."""
    if "length" not in options.dynamic:
        return None
    least, largest = options.dynamic["length"]
    longest = vconfig.model_config.max_model_len
    largest = longest if largest is None else min(largest, longest)
    return {"input_ids": {0: ("T", least, largest)}}


@contextlib.contextmanager
def forward_context(vconfig, tokens):
    from vllm.config import set_current_vllm_config
    from vllm.forward_context import set_forward_context

    with contextlib.ExitStack() as stack:
        stack.enter_context(set_current_vllm_config(vconfig))
        stack.enter_context(set_forward_context(None, vconfig, num_tokens=tokens, slot_mapping={}))
        try:  # norms as PyTorch code, and not wrapped into operators for vLLM's own compiler
            from vllm.ir import enable_torch_wrap

            stack.enter_context(enable_torch_wrap(False))
        except ImportError:
            pass
        yield


def run(options):
    if "batch" in options.dynamic:
        raise CaptureError("vLLM runs one sequence per capture; --dynamic length leaves its length")
    if options.dynamic and options.static:
        raise CaptureError("--static is without --dynamic")
    config, weights = hf.prepare(options)
    options.attn = "eager"  # every class has it; only the weights matter here
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        reference = hf.build(options, config, weights)
    hf.say_kept(options)
    import_vllm()
    return capture_model(options, reference)


def capture_model(options, reference):
    import torch
    import vllm

    from . import generation, vllm_attention, vllm_experts
    from .core import capture

    if options.batch != 1:
        raise CaptureError("vLLM runs one sequence per capture; leave --batch at 1")
    with tempfile.TemporaryDirectory(prefix="isomer-") as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        save(reference, folder, options.static)
        try:
            vconfig = vllm_config(folder, options)
            model = load(vconfig, options.static)
        except CaptureError:
            raise
        except Exception as e:
            raise CaptureError(
                "vLLM cannot build %s: %s: %s"
                % (type(reference).__name__, type(e).__name__, short(e))
            ) from e
    if not options.static:
        check_loaded(model)
    vllm_experts.open_layers(model)
    vllm_attention.open_sinks(model)
    counted = "length" in options.dynamic
    call, output = call_for(model, counted)

    def write(out, call, sets, names):
        with forward_context(vconfig, options.length):
            return capture(
                model,
                sets[0],
                out,
                call=call,
                more_inputs=sets[1:],
                model=options.name or reference.config.model_type,
                framework="vllm",
                framework_version=vllm.__version__.split("+")[0],
                output_names=names,
                trace=options.trace,
                attributes=attributes_by_name(vconfig),
                specialize=options.specialize,
                dynamic=open_length(options, vconfig),
                weightless=options.static,
                metadata={
                    "config": hf.plain(reference.config),
                    "class": type(model).__name__,
                    "seed": options.seed,
                    "dtype": options.dtype,
                    "kernels": "native forward; reference attention on the CPU",
                },
            )

    ids = configs.token_sets(reference.config, options.length, options.sets, options.seed)
    positions = {} if counted else {"positions": torch.arange(options.length)}
    sets = [{"input_ids": i[0], **positions} for i in ids]
    if getattr(options, "calls", 0):
        hf.refuse_with_calls(options, "cached", "dynamic", "static")
        layers = vconfig.compilation_config.static_forward_context
        vllm_attention.open_pages(layers)
        with forward_context(vconfig, options.length):
            return generation.of_vllm(model, call, output, sets, options, write), model
    return write(options.out, call, sets, [output]), model
