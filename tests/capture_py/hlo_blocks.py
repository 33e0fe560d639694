"""The blocks of tests/hlo/models.py as PyTorch modules, from the weights of a capture."""

import torch
import torch.nn.functional as F
from torch import nn

HEADS, SIZE = 8, 4


def linear(weight, bias=None):
    """A Linear of what JAX multiplies from the right, heads as one dimension."""
    m = weight.reshape(weight.shape[0], -1) if weight.shape[0] == 16 else weight.reshape(-1, 16)
    out = nn.Linear(m.shape[0], m.shape[1], bias=bias is not None)
    out.weight = nn.Parameter(m.T.contiguous())
    if bias is not None:
        out.bias = nn.Parameter(bias.reshape(-1))
    return out


class Attention(nn.Module):
    """q, k and v are projected, perhaps turned, attended to and projected back."""

    def __init__(self, w, bias):
        super().__init__()
        for n in "qkvo":
            setattr(self, n, linear(w[n], w[n + "b"] if bias else None))

    def forward(self, h, turn=lambda x: x):
        b, n, _ = h.shape
        q, k, v = (f(h).view(b, n, HEADS, SIZE).transpose(1, 2) for f in (self.q, self.k, self.v))
        a = F.scaled_dot_product_attention(turn(q), turn(k), v, is_causal=True)
        return self.o(a.transpose(1, 2).reshape(b, n, HEADS * SIZE))


class Gpt(nn.Module):
    def __init__(self, w):
        super().__init__()
        self.attention = Attention(w, True)
        self.up, self.down = linear(w["up"], w["upb"]), linear(w["down"], w["downb"])
        for n in ("ln1", "ln2"):
            norm = nn.LayerNorm(16)
            norm.weight, norm.bias = nn.Parameter(w[n]), nn.Parameter(w[n + "b"])
            setattr(self, n, norm)

    def forward(self, x):
        x = x + self.attention(self.ln1(x))
        return x + self.down(F.gelu(self.up(self.ln2(x)), approximate="tanh"))


class Llama(nn.Module):
    def __init__(self, w, eps=1e-6):
        super().__init__()
        self.attention, self.eps = Attention(w, False), eps
        for n in ("gate", "up", "down"):
            setattr(self, n, linear(w[n]))
        self.ln1, self.ln2 = nn.Parameter(w["ln1"]), nn.Parameter(w["ln2"])

    def norm(self, x, w):
        return w * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.eps))

    def forward(self, x):
        turn = torch.arange(x.shape[1]).float()
        angle = torch.outer(turn, 10000 ** -(torch.arange(SIZE // 2) / (SIZE // 2)))
        angle = torch.cat((angle, angle), -1)

        def rotary(h):
            a, b = h.chunk(2, -1)
            return h * angle.cos() + torch.cat((-b, a), -1) * angle.sin()

        x = x + self.attention(self.norm(x, self.ln1), rotary)
        h = self.norm(x, self.ln2)
        return x + self.down(F.silu(self.gate(h)) * self.up(h))
