"""Training steps of a GPT-like decoder made of Megatron-core's parallel layers, embedding, loss and
DistributedDataParallel, for isomer-capture train: tensor parallel, with the sequence in parts, with
replicas, with several micro-batches. With one rank each is the step of a plain module on one
device. Megatron-core asks for CUDA where it names a device; here that is the CPU."""

import functools
import warnings

import torch
import torch.nn.functional as F
from plans import VOCABULARY, adam, batch
from torch import nn

warnings.filterwarnings("ignore")
WIDTH, HEADS, LENGTH = 16, 4, 4
HEAD = WIDTH // HEADS


class Attention(nn.Module):
    """Of (length, batch, width); q, k and v of a head lie together, as Megatron stores them."""

    def __init__(self, qkv, out, heads):
        super().__init__()
        self.qkv, self.out, self.heads = qkv, out, heads

    def forward(self, x):
        y = self.qkv(x)
        n, b = y.shape[:2]
        q, k, v = y.view(n, b, self.heads, 3, HEAD).permute(3, 1, 2, 0, 4)
        score = q @ k.transpose(-1, -2) / HEAD**0.5
        later = torch.ones(n, n, dtype=torch.bool).triu(1)
        y = score.masked_fill(later, float("-inf")).softmax(-1) @ v
        return self.out(y.permute(2, 0, 1, 3).reshape(n, b, self.heads * HEAD))


class Feed(nn.Module):
    def __init__(self, up, down):
        super().__init__()
        self.up, self.down = up, down

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Block(nn.Module):
    def __init__(self, attention, feed, norm):
        super().__init__()
        self.before, self.attention = norm(), attention
        self.behind, self.feed = norm(), feed

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.feed(self.behind(x))


class Decoder(nn.Module):
    def __init__(self, embed, blocks, norm, head):
        super().__init__()
        self.embed, self.blocks = embed, nn.ModuleList(blocks)
        self.norm, self.head = norm(), head

    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def alone(layers, bias):
    """The same on one device, without Megatron."""

    class Embed(nn.Module):
        def __init__(self):
            super().__init__()
            self.word = nn.Embedding(VOCABULARY, WIDTH)

        def forward(self, ids):
            return self.word(ids).transpose(0, 1)

    blocks = [
        Block(
            Attention(nn.Linear(WIDTH, 3 * WIDTH, bias), nn.Linear(WIDTH, WIDTH, bias), HEADS),
            Feed(nn.Linear(WIDTH, 4 * WIDTH, bias), nn.Linear(4 * WIDTH, WIDTH, bias)),
            lambda: nn.LayerNorm(WIDTH),
        )
        for _ in range(layers)
    ]
    return Decoder(
        Embed(), blocks, lambda: nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, False)
    )


def parallel(tensor, sequence, layers, bias, unmarked):
    """Returns: the module of Megatron's layers, and its configuration. `unmarked`: nobody says that
    each rank's norms see a part of the sequence."""
    torch.cuda.current_device = lambda: torch.device("cpu")
    from megatron.core import parallel_state
    from megatron.core.tensor_parallel import layers as megatron
    from megatron.core.transformer import TransformerConfig

    parallel_state.initialize_model_parallel(tensor, create_gloo_process_groups=False)
    config = TransformerConfig(
        num_layers=layers,
        hidden_size=WIDTH,
        num_attention_heads=HEADS,
        tensor_model_parallel_size=tensor,
        sequence_parallel=sequence,
        use_cpu_initialization=True,
        gradient_accumulation_fusion=False,
    )
    kind = {"config": config, "init_method": nn.init.normal_}

    class Columns(megatron.ColumnParallelLinear):
        def __init__(self, n, m, bias=bias):
            super().__init__(n, m, bias=bias, gather_output=False, **kind)

        def forward(self, x):
            return super().forward(x)[0]  # behind it is the bias, where it is not added

    class Rows(megatron.RowParallelLinear):
        def __init__(self, n, m):
            super().__init__(n, m, bias=bias, input_is_parallel=True, skip_bias_add=False, **kind)

        def forward(self, x):
            return super().forward(x)[0]

    class Embed(nn.Module):
        def __init__(self):
            super().__init__()
            self.word = megatron.VocabParallelEmbedding(
                VOCABULARY, WIDTH, reduce_scatter_embeddings=sequence, **kind
            )

        def forward(self, ids):
            x = self.word(ids)
            return x if sequence else x.transpose(0, 1)  # else it transposes, and scatters

    def norm():
        made = nn.LayerNorm(WIDTH)
        for p in made.parameters():
            p.sequence_parallel = sequence and not unmarked
        return made

    blocks = [
        Block(
            Attention(Columns(WIDTH, 3 * WIDTH), Rows(WIDTH, WIDTH), HEADS // tensor),
            Feed(Columns(WIDTH, 4 * WIDTH), Rows(4 * WIDTH, WIDTH)),
            norm,
        )
        for _ in range(layers)
    ]
    return Decoder(Embed(), blocks, norm, Columns(WIDTH, VOCABULARY, False)), config


def train(
    run, tensor=2, sequence=False, layers=1, bias=True, parts=1, clip=None, unmarked=False, scale=1
):
    """`scale`: what nobody has asked for, of the gradients on ranks."""
    if run.world == 1:
        model, replica, replicas = alone(layers, bias), 0, 1
    else:
        from megatron.core import parallel_state
        from megatron.core.distributed import (
            DistributedDataParallel,
            DistributedDataParallelConfig,
            finalize_model_grads,
        )
        from megatron.core.tensor_parallel import vocab_parallel_cross_entropy

        model, config = parallel(tensor, sequence, layers, bias, unmarked)
        replica = parallel_state.get_data_parallel_rank()
        replicas = parallel_state.get_data_parallel_world_size()
        model = DistributedDataParallel(config, DistributedDataParallelConfig(), model)
    optimizer = adam(model)

    def loss_of(ids, labels):
        logits, labels = model(ids), labels.transpose(0, 1)
        if run.world == 1:
            return F.cross_entropy(logits.flatten(0, 1), labels.flatten())
        return vocab_parallel_cross_entropy(logits, labels.contiguous()).mean()

    def step(ids, labels):
        if run.world > 1:
            model.zero_grad_buffer()
        optimizer.zero_grad()
        total = torch.zeros(())
        for i, t in zip(ids.chunk(parts), labels.chunk(parts)):
            loss = loss_of(i, t) / parts
            loss.backward()
            total = total + loss.detach()
        if run.world > 1:
            finalize_model_grads([model])
            for p in model.parameters():
                p.grad = p.main_grad * scale if scale != 1 else p.main_grad
        if clip:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        if replicas > 1:
            torch.distributed.all_reduce(total, group=parallel_state.get_data_parallel_group())
            total = total / replicas
        return {"loss": total}

    def mine(t):
        """A replica's rows of each micro-batch."""
        return torch.cat([p.chunk(replicas)[replica] for p in t.chunk(parts)]).clone()

    ids, labels = batch()
    inputs = {"ids": mine(ids), "labels": mine(labels)}
    domains = dict.fromkeys(inputs, {"range": [0, VOCABULARY - 1]})
    run.step(step, model, optimizer, inputs=inputs, domains=domains)


columns = functools.partial(train, tensor=2)
columns_4 = functools.partial(train, tensor=4)
sequence = functools.partial(train, tensor=2, sequence=True)
sequence_4 = functools.partial(train, tensor=4, sequence=True)
sequence_parts = functools.partial(sequence, parts=2)
sequence_layers = functools.partial(sequence, layers=2)
replicas = functools.partial(train, tensor=1)
replicas_parts = functools.partial(replicas, parts=2)
# Faults.
sequence_unmarked = functools.partial(sequence, unmarked=True)
replicas_scaled = functools.partial(replicas, scale=2)
