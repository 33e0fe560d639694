"""Made block.pt2 and capture/ with PyTorch 2.6 (python3-torch of Debian 13): PYTHONPATH=capture
python3 make.py, in an empty folder."""

import torch
from isomer_capture import capture


class Block(torch.nn.Module):
    """Attention and a gated MLP with an in-place mask, tied embeddings and a table that is not
    saved with the weights."""

    def __init__(self, d=8, heads=2, vocab=12, length=5):
        super().__init__()
        self.heads = heads
        self.embed = torch.nn.Embedding(vocab, d)
        self.norm = torch.nn.LayerNorm(d)
        self.qkv = torch.nn.Linear(d, 3 * d)
        self.out = torch.nn.Linear(d, d)
        self.gate = torch.nn.Linear(d, 2 * d, bias=False)
        self.down = torch.nn.Linear(2 * d, d)
        self.head = torch.nn.Linear(d, vocab, bias=False)
        self.head.weight = self.embed.weight
        self.register_buffer("place", torch.randn(length, d).bfloat16(), persistent=False)
        self.register_buffer("turn", torch.randn(d, d).t())

    def forward(self, ids, bias):
        x = self.embed(ids) + self.place.float()
        q, k, v = (
            self.qkv(self.norm(x))
            .view(*x.shape[:2], 3, self.heads, -1)
            .permute(2, 0, 3, 1, 4)
            .unbind(0)
        )
        mask = torch.zeros(x.shape[1], x.shape[1])
        mask.masked_fill_(torch.ones_like(mask, dtype=torch.bool).triu(1), float("-inf"))
        mask[:, 0] += bias
        y = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        x = x + self.out(y.transpose(1, 2).flatten(2))
        with torch.no_grad():
            g = torch.nn.functional.silu(self.gate(x))
        x = x + self.down(g) @ self.turn
        values, places = x.topk(2, -1)
        return {"logits": self.head(x), "top": (values, places)}


torch.manual_seed(7)
m = Block().eval()
with torch.no_grad():
    for p in m.parameters():
        p.normal_(0, 0.5)
inputs = {"ids": torch.tensor([[1, 4, 2, 9, 11], [0, 3, 3, 7, 5]]), "bias": torch.tensor(0.25)}

g = capture(m, inputs, "capture")
torch.export.save(torch.export.export(m, (inputs["ids"],), {"bias": inputs["bias"]}), "block.pt2")
