"""Kinds of rare.py: a number that is a little off, where only a truth value or a rounded number
tells; integers beside floats, which an operator rounds to the floats' dtype; inputs that an
operator takes between 0 and 1 alone; and kernels that cancel inside."""

import math

import torch


def late(rng):
    """Another number on the way to a comparison, a sign or a rounding. Inputs that tell must lie
    near that and where the number counts. The sides are written in two ways, so that a rule has to
    join them as wholes. What a number moves is added to something, so that it crosses each end's
    jumps: a positive factor alone would move no sign, and the sides would be equal."""
    x, y = torch.randn(4, 4), torch.randn(4, 4)
    c, eps = rng.choice([2.0, 3.0, 4.0]), rng.choice([1e-2, 1e-3, 1e-4])
    attended = lambda t: (t @ t.t()).softmax(-1) @ t
    steps = [
        lambda x, y, e: torch.where(x + e > y, x, y),
        lambda x, y, e: attended(y.clamp(-0.5, c + e)),
        lambda x, y, e: attended(torch.where(y > c, c + e, y)) - x.relu(),
        lambda x, y, e: torch.where(x > c, x * (1 + e), x) + y,
        lambda x, y, e: torch.where((y > c) & (x < -c), y + e, y) + x,
        lambda x, y, e: torch.where(x.abs() > c, x.abs().sqrt() + e, x) - y.relu(),
        lambda x, y, e: torch.nn.functional.elu(x, 1 + e) + y.clamp(min=-c),
        lambda x, y, e: torch.nn.functional.threshold(x, c, e) * y.sigmoid() - y,
        lambda x, y, e: torch.nn.functional.leaky_relu(x, e) + y,
        lambda x, y, e: (x * torch.where(y > c, 1 + e, 1.0)).cumsum(1),
    ]
    ends = [
        (lambda t: t > 0, lambda t: torch.logical_and(t > 0, t > 0)),
        (lambda t: torch.sign(t - 1), lambda t: (t > 1).float() - (t < 1).float()),
        (lambda t: torch.floor(t * 2), lambda t: -torch.ceil(t * -2)),
        (lambda t: (t.sum(1) > 1).long().sum(), lambda t: torch.count_nonzero(t.sum(1) > 1)),
    ]
    out = []
    for step in steps[:2] + rng.sample(steps[2:], 2):
        one, two = rng.choice(ends[:2] if step in steps[:2] else ends)

        def side(end, e, step=step):
            return lambda x, y: end(step(x, y, e))

        out += [
            (False, side(one, 0.0), side(two, eps), (x, y)),
            (False, side(two, eps), side(one, 0.0), (x, y)),
            (True, side(one, eps), side(two, eps), (x, y)),
        ]
    return out


def beside_floats(rng):
    """k + x is to(k, the dtype of x) + x to the bit, whatever k is, and the rounding of another
    dtype is another function."""
    most = rng.choice([9, 1 << 26])
    k = torch.randint(most // 2, most, (3, 4))
    x, table = torch.randn(3, 4), torch.randn(5)
    c = rng.choice([0.5, 3.0, 7.0])
    ends = [
        lambda k, x, t: k + x,
        lambda k, x, t: x * k - 1,
        lambda k, x, t: torch.cos(k.unsqueeze(-1) * t).sum(-1) * x,
        lambda k, x, t: x / (k + x * x),
        lambda k, x, t: x * (k > x),
    ]
    out = []
    for end in rng.sample(ends, 4):
        for dtype in (torch.float32, torch.bfloat16):
            plain = lambda k, x, t, end=end: end(k, x, t).float()
            cast = lambda k, x, t, end=end: end(k.to(x.dtype), x, t).float()
            out.append(("equal", plain, cast, (k, x.to(dtype), table.to(dtype))))
    out.append(("equal", lambda k, x: k * c + x, lambda k, x: k.float() * c + x, (k, x)))
    # Whole numbers to 256 are exact in bfloat16.
    twice = lambda k, x: k.to(torch.bfloat16).float() + x
    out.append((False, twice, lambda k, x: k + x, (torch.randint(257, 999, (3, 4)), x)))
    back = lambda k: k.float().long()
    out.append((False, back, lambda k: k + 0, (k + (1 << 30) + 1,)))
    return out


def between_0_and_1(rng):
    """Chances and targets that are inputs, laid out in some way first: no others are drawn."""
    f = torch.nn.functional.binary_cross_entropy
    p, t = torch.rand(3, 4), (torch.rand(3, 4) < 0.5).float()
    lay = rng.choice([lambda x: x, lambda x: x.t(), lambda x: x.reshape(-1), lambda x: x.float()])
    how = rng.choice(["mean", "sum", "none"])
    loss = lambda p, t: f(lay(p), lay(t), reduction=how)
    return [
        (True, loss, lambda p, t: f(lay(p).clone(), lay(t), reduction=how), (p, t)),
        (False, loss, lambda p, t: loss(p, t) * 1.01, (p, t)),
        (False, loss, lambda p, t: f(1 - lay(p), lay(t), reduction=how), (p, t)),
        (False, lambda x, t: f(x.sigmoid(), t), lambda x, t: f((x * 1.01).sigmoid(), t), (p, t)),
    ]


def cancelled_inside(rng):
    """Kernels that subtract 1 from what is all but 1, so that far below 0 their result is the
    rounding of 1, and other spellings of them, which keep its digits; beside a maximum over padded
    windows, in search of which such inputs are drawn."""
    f = torch.nn.functional
    k = 1.5957691216057308
    seed = rng.randint(0, 9)
    x = torch.randn(4, 4, generator=torch.Generator().manual_seed(seed))
    padded = lambda x: f.pad(x, (1, 1), value=-math.inf).unfold(1, 3, 1).amax(-1)
    pooled = lambda x: f.max_pool1d(x[None], 3, 1, 1)[0]
    by_tanh = lambda x, k=k: x * torch.sigmoid(k * (x + 0.044715 * x * x * x))
    by_erf = lambda x, half=0.5: half * x * torch.special.erfc(-x * math.sqrt(0.5))
    kernel, other, wrong = rng.choice(
        [
            (lambda x: f.gelu(x, approximate="tanh"), by_tanh, lambda x: by_tanh(x, k * 1.01)),
            (lambda x: f.gelu(x), by_erf, lambda x: by_erf(x, 0.505)),
        ]
    )
    moved = lambda x: torch.roll(x, 2, 0)
    cut = lambda x: torch.cat([x.narrow(0, 2, 2), x.narrow(0, 0, 2)], 0)
    left = lambda x: (pooled(x), kernel(moved(x)))
    return [
        ("equal", left, lambda x: (padded(x), other(cut(x))), (x,)),
        (False, lambda x: kernel(moved(x)), lambda x: wrong(cut(x)), (x,)),
    ]


def divided_by_positive(rng):
    """Quotients that are compared: numbers where what they are divided by is positive, which takes
    a proof to see, and none at some inputs where it may be 0."""
    c = rng.choice([0.1, 0.5, 2.0])
    x, y = torch.randn(3, 4), torch.randn(3, 4)
    spread = rng.choice(
        [
            lambda x: x.amax(1, keepdim=True) - x.amin(1, keepdim=True),
            lambda x: (x * x).mean(1, keepdim=True) - x.mean(1, keepdim=True) ** 2,
            lambda x: x.amax(0) - x.mean(0),
            lambda x: torch.maximum(x, x.flip(0)) - x,
        ]
    )
    other = rng.choice([lambda x: 1 - torch.sin(x), lambda x: x.abs() - x])
    d = rng.choice([spread, other])
    more = lambda s: lambda x, y: torch.where((y / s(x)) > 0.3, x, y)
    less = lambda s: lambda x, y: torch.where((y / s(x)) <= 0.3, y, x)
    return [
        ("equal", more(lambda x: d(x) + c), less(lambda x: d(x) + c), (x, y)),
        (False, more(lambda x: spread(x)), less(lambda x: spread(x)), (x, y)),
        (False, more(lambda x: d(x) + c), less(lambda x: d(x) + 2 * c), (x, y)),
    ]


def overflowed(rng):
    """Sums as logarithms of products of exponentials, which overflow where the sums are large, that
    operators compare with large numbers. Of real numbers both spellings are one."""
    x = torch.randn(3, 4)
    low = rng.choice([720.0, 900.0, 1500.0])
    high = low + rng.choice([25.0, 100.0])
    dim = rng.choice([0, 1])
    plain = lambda x: x.sum(dim)
    by_exp = lambda x: x.exp().prod(dim).log()
    seen = rng.choice(
        [
            lambda e, low: (e > low) & (e < high),
            lambda e, low: (e >= low) ^ (e > high),
            lambda e, low: (e < low) | (e > high),
        ]
    )
    return [
        (True, lambda x: seen(plain(x), low), lambda x: seen(by_exp(x), low), (x,)),
        (False, lambda x: seen(plain(x), low), lambda x: seen(plain(x), low - 1), (x,)),
    ]
