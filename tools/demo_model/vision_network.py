"""The vision encoder for training, its parameters named as in an mmproj file (without `v.` before most)."""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from tools.demo_model import dimensions as d
from tools.demo_model.text_network import Weight, rotated

_PATCH_VALUES = 3 * d.PATCH**2


class Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attn_qkv = Weight(3 * d.VISION_HIDDEN, d.VISION_HIDDEN, bias=True)
        self.attn_out = Weight(d.VISION_HIDDEN, d.VISION_HIDDEN, gain=0.5, bias=True)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        n_pictures, n_patches, _ = x.shape
        qkv = self.attn_qkv(x).view(n_pictures, n_patches, 3, d.VISION_HEADS, -1).permute(2, 0, 3, 1, 4)
        query, key, value = qkv[0], qkv[1], qkv[2]
        query, key = (rotated(each.float(), *turns).to(value.dtype) for each in (query, key))
        read = F.scaled_dot_product_attention(query, key, value)
        return self.attn_out(read.transpose(1, 2).reshape(n_pictures, n_patches, -1))


class Block(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.ln1 = nn.LayerNorm(d.VISION_HIDDEN, eps=d.EPSILON)
        self.attention = Attention()
        self.ln2 = nn.LayerNorm(d.VISION_HIDDEN, eps=d.EPSILON)
        self.ffn_up = Weight(d.VISION_MLP, d.VISION_HIDDEN, bias=True)
        self.ffn_down = Weight(d.VISION_HIDDEN, d.VISION_MLP, gain=0.5, bias=True)

    def forward(self, x: Tensor, turns: tuple[Tensor, Tensor]) -> Tensor:
        x = x + self.attention(self.ln1(x), turns).float()
        return x + self.ffn_down(F.gelu(self.ffn_up(self.ln2(x)), approximate="tanh")).float()


class VisionNetwork(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        # One kernel for both frames of a film: a picture is a film of two equal frames.
        self.patch_embd = Weight(d.VISION_HIDDEN, _PATCH_VALUES, bias=True)
        self.position_embd = nn.Module()
        self.position_embd.weight = nn.Parameter(torch.randn(d.VISION_GRID**2, d.VISION_HIDDEN) * 0.1)
        self.blk = nn.ModuleList(Block() for _ in range(d.VISION_LAYERS))
        self.post_ln = nn.LayerNorm(d.VISION_HIDDEN, eps=d.EPSILON)
        joined = 4 * d.VISION_HIDDEN
        self.mm = nn.ModuleDict({"0": Weight(joined, joined, bias=True), "2": Weight(d.HIDDEN, joined, bias=True)})

    def forward(self, patches: Tensor, high: int, wide: int) -> Tensor:
        """One vector for each four patches: pictures x tokens x HIDDEN. `high` and `wide` count patches."""
        grid = self.position_embd.weight.view(1, d.VISION_GRID, d.VISION_GRID, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(high, wide), mode="bilinear", align_corners=True)[0].permute(1, 2, 0)
        x = self.patch_embd(patches).float() + by_token(grid)
        turns = _turns(high, wide)
        for block in self.blk:
            x = block(x, turns)
        joined = self.post_ln(x).reshape(x.shape[0], -1, 4 * d.VISION_HIDDEN)
        return self.mm["2"](F.gelu(self.mm["0"](joined), approximate="tanh")).float()


def by_token(grid: Tensor) -> Tensor:
    """`grid`, high x wide x values, as rows in the order of `preprocessing.patches`."""
    high, wide, _ = grid.shape
    return grid.reshape(high // 2, 2, wide // 2, 2, -1).permute(0, 2, 1, 3, 4).reshape(high * wide, -1)


def _turns(high: int, wide: int) -> tuple[Tensor, Tensor]:
    half = d.VISION_HIDDEN // d.VISION_HEADS // 2
    speeds = 10_000.0 ** -(torch.arange(0, half, 2).float() / half)
    down = torch.arange(high).float()[:, None, None].expand(high, wide, 1)
    across = torch.arange(wide).float()[None, :, None].expand(high, wide, 1)
    angles = torch.cat([by_token(down) * speeds, by_token(across) * speeds], -1)
    both = torch.cat([angles, angles], -1)
    return both.cos(), both.sin()
