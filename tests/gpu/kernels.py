"""A user's kernel: RMS norm in Triton where there is a GPU, in PyTorch else. It takes float32,
float16 and bfloat16 and no float64, as such kernels do: `isomer --helper "python3 -m
isomer_capture.helper --import kernels --dtype float32"`."""

import torch

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None

TAKES = (torch.float32, torch.float16, torch.bfloat16)
torch.library.define("mine::rms_norm", "(Tensor x, Tensor w, float eps) -> Tensor")


def refuse(x):
    if x.dtype not in TAKES:
        raise TypeError("rms_norm takes float32, float16 and bfloat16, not %s" % x.dtype)


@torch.library.impl("mine::rms_norm", "CPU")
def on_cpu(x, w, eps):
    refuse(x)
    wide = x.float()
    return (wide * torch.rsqrt((wide * wide).mean(-1, keepdim=True) + eps)).to(x.dtype) * w


if triton is not None:

    @triton.jit
    def rms_kernel(x, w, y, eps, n, BLOCK: tl.constexpr):
        row = tl.program_id(0)
        at = tl.arange(0, BLOCK)
        inside = at < n
        v = tl.load(x + row * n + at, mask=inside, other=0.0).to(tl.float32)
        scale = 1.0 / tl.sqrt(tl.sum(v * v, axis=0) / n + eps)
        weight = tl.load(w + at, mask=inside, other=0.0).to(tl.float32)
        tl.store(y + row * n + at, v * scale * weight, mask=inside)

    @torch.library.impl("mine::rms_norm", "CUDA")
    def on_cuda(x, w, eps):
        refuse(x)
        x = x.contiguous()
        y = torch.empty_like(x)
        n = x.shape[-1]
        rms_kernel[(x.numel() // n,)](x, w.contiguous(), y, eps, n, BLOCK=triton.next_power_of_2(n))
        return y
