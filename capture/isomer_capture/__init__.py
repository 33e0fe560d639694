"""Captures of PyTorch modules for Isomer. `capture` and `CaptureError` are all a program needs; the
command is `isomer-capture`. PyTorch is imported on first use."""

from .errors import CaptureError

__version__ = "0.1.0"
__all__ = ["capture", "CaptureError"]


def __getattr__(name):
    if name == "capture":
        from .core import capture

        return capture
    raise AttributeError(name)
