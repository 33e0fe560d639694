"""Which class of Transformers a configuration makes: of a model, or of a part of one."""

import contextlib
import copy
import inspect
import re
import sys

from . import parts, widths
from .errors import CaptureError


def model_class(config, head):
    """What makes the module of a configuration, as it is called."""
    return called(listed(config, head))


def called(cls):
    """A class that can be called: one that encodes and has no other use is, as its `encode`."""
    from torch import nn

    if getattr(cls, "forward", None) is not nn.Module.forward or not hasattr(cls, "encode"):
        return cls
    return type(cls.__name__, (cls,), {"forward": cls.encode, "__module__": cls.__module__})


def listed(config, head):
    """The module that Transformers' auto classes make of a configuration, or that stands beside
    it."""
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
        # A table may name a class that is not there.
        with contextlib.suppress(KeyError, ValueError):
            found = table[type(config)]
            return found[0] if isinstance(found, (list, tuple)) else found
    if head is None and type(config) in auto.MODEL_FOR_BACKBONE_MAPPING:
        return auto.MODEL_FOR_BACKBONE_MAPPING[type(config)]
    found = None if head else other_class(config)
    if found is None:
        raise CaptureError(
            "Transformers has no model for %s%s"
            % (type(config).__name__, " with this head" if head else "")
        )
    return found


def other_class(config):
    """The class of a part of a model, or of one that has a head of its own kind: one in the modules
    beside the configuration that says it is made of it, or the one that the configuration's
    docstring makes. None: there is none."""
    import transformers

    stem = type(config).__name__.removesuffix("Config")
    classes = classes_of(config)
    # That which has the configuration's own name, then the plain model, then a layer of it: the
    # last in its file, which is made of the others.
    found = min(
        classes,
        key=lambda c: (
            not hasattr(c, "main_input_name"),
            c.__name__ not in (stem, stem + "Model"),
            not c.__name__.endswith("Model"),
            len(c.__name__) if hasattr(c, "main_input_name") else -classes.index(c),
        ),
        default=None,
    )
    told = re.search(r"= (\w+)\(\w*config\w*\)", type(config).__doc__ or "")
    told = told and getattr(transformers, told.group(1), None)
    return found or told or untold(config) or part_of_whole(config)


def modules_beside(config):
    """All classes of modules that are written beside a configuration and can be called."""
    import importlib
    import pkgutil

    from torch import nn

    package = importlib.import_module(type(config).__module__.rpartition(".")[0])
    out = []
    for name in [m.name for m in pkgutil.iter_modules(package.__path__)]:
        if name.startswith("modeling_") or "_" not in name:
            module = importlib.import_module(package.__name__ + "." + name)
            own = [c for c in vars(module).values() if inspect.isclass(c)]
            out += [c for c in own if c.__module__ == module.__name__]
    modules = [
        c for c in out if issubclass(c, nn.Module) and not c.__name__.endswith("PreTrainedModel")
    ]
    return [c for c in modules if vars(c).keys() & {"forward", "encode"}]


def classes_of(config):
    """Those whose one argument is of the configuration's class."""
    return [c for c in modules_beside(config) if made_of(c, type(config))]


def untold(config):
    """The first model beside a configuration that does not say what it is made of, and can be made
    of this one, or lacks one setting for it; None if there is none."""
    from transformers import PreTrainedModel

    for cls in modules_beside(config):
        given = list(inspect.signature(cls.__init__).parameters.values())[1:]
        if not issubclass(cls, PreTrainedModel) or len(given) < 1:
            continue
        if given[0].annotation is not given[0].empty:
            continue
        lacked = raised(cls, config)
        if isinstance(lacked, AttributeError) and isinstance(lacked.obj, type(config)):
            values = widths.likely(config, config, lacked.name)
            lacked = raised(cls, config, **{lacked.name: values[0]})
        if lacked is None:
            return cls
    return None


def raised(cls, config, **settings):
    """What making a model raises, with some settings more; None: it can be made."""
    import torch

    config = copy.deepcopy(config)
    try:
        for name, value in settings.items():
            setattr(config, name, value)
        with torch.device("meta"):
            cls(config)
    except Exception as e:  # whatever a model of something else raises
        return e
    return None


def part_of_whole(config):
    """What makes the part of a model that reads this configuration beside others: the first module
    that takes configurations alone, this one or one that has it inside and is read for it. None:
    there is none."""
    own, beside = type(config), vars(sys.modules[type(config).__module__]).values()
    wholes = [c for c in beside if own in parts.said(c).values()]
    for whole in wholes:
        inner = parts.said(whole)
        name = next(n for n, c in inner.items() if c is own)
        for cls in modules_beside(config):
            takes = configurations(cls, [whole, *inner.values()])
            if getattr(cls, "config_class", None) is None and takes:
                if any(own in t for t in takes) or takes == [[whole]] and reads(cls, name):
                    return Part(cls, whole, name, takes)
    return None


def configurations(cls, known):
    """For each argument of a class those of the known configurations that it may be; None where
    one is something else."""
    given = [p for n, p in inspect.signature(cls.__init__).parameters.items() if n != "self"]
    takes = []
    for p in given:
        named = re.findall(r"\w+", getattr(p.annotation, "__name__", None) or str(p.annotation))
        takes.append([c for c in known if c.__name__ in named])
    return takes if takes and all(takes) else None


def reads(cls, name):
    return re.search(r"config\.%s\b" % name, inspect.getsource(cls.__init__)) is not None


class Part:
    """Makes a module of one configuration, with what else it takes from a plain whole around it."""

    def __init__(self, cls, whole, name, takes):
        self.cls, self.whole, self.name, self.takes = cls, whole, name, takes
        self.__name__ = cls.__name__

    def __call__(self, config):
        whole = self.whole()
        setattr(whole, self.name, config)
        inner = [config] + [getattr(whole, n, None) for n in whole.sub_configs]
        return self.cls(
            *(next(c for c in [whole, *inner] if type(c) in takes) for takes in self.takes)
        )


def made_of(cls, config_class):
    """Whether a module's class says that it is made of such a configuration alone."""
    if getattr(cls, "config_class", None) is config_class:
        return True
    given = [p for n, p in inspect.signature(cls.__init__).parameters.items() if n != "self"]
    said = given[0].annotation if given else None
    return (said is config_class or said == config_class.__name__) and all(
        p.default is not p.empty or p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL) for p in given[1:]
    )


def encoder_only(config):
    from transformers.models.auto import modeling_auto as auto

    name = auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES.get(config.model_type)
    return name is not None and not getattr(config, "is_decoder", False)


def own_config(config, cls):
    """The configuration that a class is of: it, or the one inside it, as of a language model."""
    wanted = getattr(cls, "config_class", None)
    if wanted is None or isinstance(config, wanted):
        return config
    return next((c for c in widths.inside(config) if isinstance(c, wanted)), config)
