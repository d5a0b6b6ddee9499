"""The language model for training: its parameters have the names and layouts that GGUF gives them.

Written for a CPU: all experts are computed at once and weighted, which at this size costs less than sorting tokens.
"""

import math
from collections.abc import Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_model import dimensions as d

_CHUNK = 16
"""Tokens that linear attention takes at once; lengths must be multiples of it."""

_OUT = 0.35
"""What writes into the residual stream begins this much smaller."""


class Weight(nn.Module):
    """A matrix `weight`, outputs x inputs, and perhaps a `bias`: what nn.Linear is, with our first values."""

    def __init__(self, n_out: int, n_in: int, *, gain: float = 1.0, bias: bool = False) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(n_out, n_in) * gain * n_in**-0.5)
        self.bias = nn.Parameter(torch.zeros(n_out)) if bias else None

    def forward(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


class Norm(nn.Module):
    """RMS norm with a learnt scale."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(size))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x.float(), (x.shape[-1],), self.weight, d.EPSILON)


class Experts(nn.Module):
    """One matrix per expert."""

    def __init__(self, n_out: int, n_in: int, *, gain: float = 1.0) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(d.EXPERTS, n_out, n_in) * gain * n_in**-0.5)


class LinearAttention(nn.Module):
    """The gated delta net. Mixed into Layer: its tensors have no prefix of their own in GGUF."""

    def __init__(self) -> None:
        super().__init__()
        keys, values = d.LINEAR_KEY_HEADS * d.LINEAR_HEAD_SIZE, d.LINEAR_VALUE_HEADS * d.LINEAR_HEAD_SIZE
        self.attn_qkv = Weight(2 * keys + values, d.HIDDEN)
        self.attn_gate = Weight(values, d.HIDDEN)
        self.ssm_beta = Weight(d.LINEAR_VALUE_HEADS, d.HIDDEN)
        self.ssm_alpha = Weight(d.LINEAR_VALUE_HEADS, d.HIDDEN, gain=0.5)
        self.ssm_conv1d = nn.Module()
        kernel = torch.randn(2 * keys + values, d.CONVOLUTION) * 0.2
        kernel[:, -1] += 0.8
        self.ssm_conv1d.weight = nn.Parameter(kernel)
        # A head forgets by exp(-exp(ssm_a) * step) a token; steps begin spread from 0.003 to 0.1.
        self.ssm_a = nn.Parameter(torch.linspace(0.5, 8, d.LINEAR_VALUE_HEADS).log())
        steps = torch.linspace(math.log(0.003), math.log(0.1), d.LINEAR_VALUE_HEADS).exp()
        self.ssm_dt = nn.Module()
        self.ssm_dt.bias = nn.Parameter(steps + torch.log(-torch.expm1(-steps)))
        self.ssm_norm = Norm(d.LINEAR_HEAD_SIZE)
        self.ssm_out = Weight(d.HIDDEN, values, gain=_OUT)

    def forward(self, x: Tensor, _turns: tuple[Tensor, Tensor]) -> Tensor:
        n_chats, length, _ = x.shape
        keys = d.LINEAR_KEY_HEADS * d.LINEAR_HEAD_SIZE
        mixed = F.pad(self.attn_qkv(x).float(), (0, 0, d.CONVOLUTION - 1, 0))
        kernel = self.ssm_conv1d.weight
        mixed = F.silu(sum(mixed[:, i : i + length] * kernel[:, i] for i in range(d.CONVOLUTION)))
        query, key, value = (
            part.reshape(n_chats, length, -1, d.LINEAR_HEAD_SIZE).transpose(1, 2)
            for part in mixed.split([keys, keys, mixed.shape[-1] - 2 * keys], -1)
        )
        # Value head h reads key head h modulo their number, as ggml repeats them.
        repeats = (1, d.LINEAR_VALUE_HEADS // d.LINEAR_KEY_HEADS, 1, 1)
        with torch.autocast("cpu", enabled=False):
            plain = x.float()
            strength = self.ssm_beta(plain).sigmoid().transpose(1, 2)
            steps = F.softplus(self.ssm_alpha(plain) + self.ssm_dt.bias)
            decay = (-self.ssm_a.exp() * steps).transpose(1, 2)
            read = delta_rule(query.repeat(repeats), key.repeat(repeats), value, decay, strength).transpose(1, 2)
        gate = F.silu(self.attn_gate(x).float().view(n_chats, length, d.LINEAR_VALUE_HEADS, -1))
        return self.ssm_out((self.ssm_norm(read) * gate).reshape(n_chats, length, -1))


def delta_rule(query: Tensor, key: Tensor, value: Tensor, decay: Tensor, strength: Tensor) -> Tensor:
    """The gated delta rule, chunk by chunk: all are chats x heads x length (x head size), 32-bit.

    For each token the state forgets by exp(decay), what `key` finds in it is moved towards `value` by `strength`, and
    `query` reads it. Within a chunk that is a triangular system, solved by a product of powers: it is nilpotent.
    """
    n_chats, heads, length, size = query.shape
    n_chunks = length // _CHUNK
    query = F.rms_norm(query, (size,), None, d.EPSILON / size) / size
    key = F.rms_norm(key, (size,), None, d.EPSILON / size) * size**-0.5
    chunked = (n_chats, heads, n_chunks, _CHUNK)
    query, key, value = (each.reshape(*chunked, size) for each in (query, key, value))
    decay = decay.reshape(chunked).cumsum(-1)
    strength = strength.reshape(*chunked, 1)

    later = torch.ones(_CHUNK, _CHUNK, dtype=torch.bool).tril()
    fade = (decay.unsqueeze(-1) - decay.unsqueeze(-2)).masked_fill(~later, -torch.inf).exp()
    strong_key = key * strength
    overlap = ((strong_key @ key.transpose(-1, -2)) * fade).tril(-1)
    one = torch.eye(_CHUNK)
    power2 = overlap @ overlap
    power4 = power2 @ power2
    solve = (one - overlap) @ (one + power2) @ (one + power4) @ (one + power4 @ power4)
    since_start = decay.exp().unsqueeze(-1)
    solved = solve @ torch.cat([value * strength, strong_key * since_start], -1)
    new, old = solved[..., :size], solved[..., size:]

    reads = torch.cat([old, query * since_start], -2)
    writes = (key * (decay[..., -1:] - decay).exp().unsqueeze(-1)).transpose(-1, -2)
    left = decay[..., -1].exp()[..., None, None]
    state = torch.zeros(n_chats, heads, size, size)
    written, carried = [], []
    # Unbound, not indexed: the gradient of an index would fill a tensor of the whole length for every chunk.
    for read, write, fresh, kept in zip(*(each.unbind(2) for each in (reads, writes, new, left)), strict=True):
        found = read @ state
        written.append(fresh - found[:, :, :_CHUNK])
        carried.append(found[:, :, _CHUNK:])
        state = state * kept + write @ written[-1]
    within = (query @ key.transpose(-1, -2)) * fade
    return (torch.stack(carried, 2) + within @ torch.stack(written, 2)).reshape(n_chats, heads, length, size)


class FullAttention(nn.Module):
    """Gated attention with rotary positions. Mixed into Layer, as LinearAttention."""

    def __init__(self) -> None:
        super().__init__()
        self.attn_q = Weight(2 * d.HEADS * d.HEAD_SIZE, d.HIDDEN)
        self.attn_k = Weight(d.KV_HEADS * d.HEAD_SIZE, d.HIDDEN)
        self.attn_v = Weight(d.KV_HEADS * d.HEAD_SIZE, d.HIDDEN)
        self.attn_q_norm = Norm(d.HEAD_SIZE)
        self.attn_k_norm = Norm(d.HEAD_SIZE)
        self.attn_output = Weight(d.HIDDEN, d.HEADS * d.HEAD_SIZE, gain=_OUT)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        n_chats, length, _ = x.shape
        query, gate = self.attn_q(x).view(n_chats, length, d.HEADS, 2 * d.HEAD_SIZE).chunk(2, -1)
        key = self.attn_k(x).view(n_chats, length, d.KV_HEADS, d.HEAD_SIZE)
        value = self.attn_v(x).view(n_chats, length, d.KV_HEADS, d.HEAD_SIZE).transpose(1, 2)
        query, key = (
            rotated(norm(each), *turns).transpose(1, 2).to(value.dtype)
            for norm, each in ((self.attn_q_norm, query), (self.attn_k_norm, key))
        )
        shared_by = d.HEADS // d.KV_HEADS
        key, value = key.repeat_interleave(shared_by, 1), value.repeat_interleave(shared_by, 1)
        read = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        read = read.transpose(1, 2).reshape(n_chats, length, -1)
        return self.attn_output(read * gate.reshape(n_chats, length, -1).sigmoid())


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`x` with its first values turned in pairs that lie half of them apart."""
    size = cos.shape[-1]
    first, second = x[..., : size // 2], x[..., size // 2 : size]
    return torch.cat([x[..., :size] * cos + torch.cat([-second, first], -1) * sin, x[..., size:]], -1)


class Layer(nn.Module):
    """Attention of one kind, then experts; `forward` gives the experts' balance too."""

    def __init__(self, attention: nn.Module) -> None:
        super().__init__()
        self.attn_norm = Norm(d.HIDDEN)
        self.attention = attention
        self.post_attention_norm = Norm(d.HIDDEN)
        self.ffn_gate_inp = Weight(d.EXPERTS, d.HIDDEN)
        self.ffn_gate_exps = Experts(d.EXPERT_SIZE, d.HIDDEN)
        self.ffn_up_exps = Experts(d.EXPERT_SIZE, d.HIDDEN)
        self.ffn_down_exps = Experts(d.HIDDEN, d.EXPERT_SIZE, gain=_OUT)
        self.ffn_gate_inp_shexp = Weight(1, d.HIDDEN)
        self.ffn_gate_shexp = Weight(d.SHARED_EXPERT_SIZE, d.HIDDEN)
        self.ffn_up_shexp = Weight(d.SHARED_EXPERT_SIZE, d.HIDDEN)
        self.ffn_down_shexp = Weight(d.HIDDEN, d.SHARED_EXPERT_SIZE, gain=_OUT)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        x = x + self.attention(self.attn_norm(x), turns).float()
        mixed, balance = self._mixture(self.post_attention_norm(x))
        return x + mixed.float(), balance

    def _mixture(self, x: Tensor) -> tuple[Tensor, Tensor]:
        shape = x.shape
        x = x.reshape(-1, shape[-1])
        with torch.autocast("cpu", enabled=False):
            chances = self.ffn_gate_inp(x.float()).softmax(-1)
        best, chosen = chances.topk(d.EXPERTS_USED, -1)
        weights = torch.zeros_like(chances).scatter(1, chosen, best / best.sum(-1, keepdim=True))
        balance = d.EXPERTS * ((weights > 0).float().mean(0) * chances.mean(0)).sum() / d.EXPERTS_USED
        gate = F.linear(x, self.ffn_gate_exps.weight.flatten(0, 1)).unflatten(-1, (d.EXPERTS, -1))
        up = F.linear(x, self.ffn_up_exps.weight.flatten(0, 1)).unflatten(-1, (d.EXPERTS, -1))
        inner = F.silu(gate) * up * weights.to(up.dtype).unsqueeze(-1)
        mixed = F.linear(inner.flatten(1), self.ffn_down_exps.weight.permute(1, 0, 2).flatten(1))
        shared = self.ffn_down_shexp(F.silu(self.ffn_gate_shexp(x)) * self.ffn_up_shexp(x))
        return (mixed + shared * self.ffn_gate_inp_shexp(x).sigmoid()).view(shape), balance


class DraftHead(Layer):
    """Guesses the next token but one (MTP): from a token, and the hidden values of the token before it."""

    def __init__(self) -> None:
        super().__init__(FullAttention())
        self.nextn = nn.Module()
        self.nextn.eh_proj = Weight(d.HIDDEN, 2 * d.HIDDEN)
        self.nextn.enorm, self.nextn.hnorm, self.nextn.shared_head_norm = (Norm(d.HIDDEN) for _ in range(3))

    def guess(self, embedded: Tensor, hidden: Tensor, turns: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Hidden values from which the same `output` reads the next token, and the experts' balance."""
        both = torch.cat([self.nextn.enorm(embedded), self.nextn.hnorm(hidden)], -1)
        x, balance = self(self.nextn.eh_proj(both).float(), turns)
        return self.nextn.shared_head_norm(x), balance


class TextNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.token_embd = nn.Module()
        self.token_embd.weight = nn.Parameter(torch.randn(d.VOCABULARY, d.HIDDEN) * 0.5)
        self.blk = nn.ModuleList(
            Layer(LinearAttention() if (index + 1) % d.FULL_ATTENTION_EVERY else FullAttention())
            for index in range(d.N_LAYERS)
        )
        self.blk.append(DraftHead())
        self.output_norm = Norm(d.HIDDEN)
        self.output = Weight(d.VOCABULARY, d.HIDDEN)

    def forward(
        self, tokens: Tensor, positions: Tensor, pictures: Tensor | None = None, is_picture: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """The last hidden values, chats x length x HIDDEN, and the experts' balance (1 is even).

        `positions` is 3 x chats x length (time, down, across); `pictures` are the encoder's vectors, in order, for the
        tokens where `is_picture`.
        """
        x = F.embedding(tokens, self.token_embd.weight)
        if pictures is not None and is_picture is not None:
            x = x.masked_scatter(is_picture.unsqueeze(-1), pictures.reshape(-1))
        turns = _turns(positions)
        balances = []
        for layer in self.blk[: d.N_LAYERS]:
            x, balance = layer(x, turns)
            balances.append(balance)
        return self.output_norm(x), torch.stack(balances).mean()

    def guesses(self, tokens: Tensor, positions: Tensor, hidden: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
        """Hidden values of the draft head's first guess, of the next one made from that, and so on, with the balance.

        Only the head learns from them: what it takes of the model is cut off from the gradient.
        """
        embedded = F.embedding(tokens, self.token_embd.weight.detach())
        turns, hidden = _turns(positions), hidden.detach()
        while True:
            hidden, balance = self.blk[d.N_LAYERS].guess(embedded, F.pad(hidden[:, :-1], (0, 0, 1, 0)), turns)
            yield hidden, balance


def _turns(positions: Tensor) -> tuple[Tensor, Tensor]:
    """Cosine and sine for `rotated`: the pairs turn with time, down, across in turn, as far as their sections go."""
    speeds = d.ROPE_BASE ** -(torch.arange(0, d.ROTATED, 2).float() / d.ROTATED)
    angles = positions[..., None].float() * speeds
    mixed = angles[0].clone()
    for axis in (1, 2):
        pairs = slice(axis, 3 * d.ROPE_SECTIONS[axis], 3)
        mixed[..., pairs] = angles[axis][..., pairs]
    both = torch.cat([mixed, mixed], -1).unsqueeze(2)
    return both.cos(), both.sin()
