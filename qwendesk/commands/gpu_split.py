"""How other programs should divide a model among graphics cards: each layer (tensors), or whole layers (a pipeline)."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from qwendesk.core.plan import FAST_LINK_BYTES_S

CardMaker = Literal["nvidia", "amd", "apple", ""]

# Cards count as equal if the smallest has this share of the largest's memory.
_EQUAL = 0.95
_TENSOR_SIZES = (2, 4, 8)


class Card(msgspec.Struct, frozen=True):
    """A graphics card, in bytes."""

    total_bytes: int
    budget_bytes: int | None = None
    """Bytes that a plan may use; None if unknown."""
    maker: CardMaker = ""
    link_bytes_s: float | None = None
    """Bandwidth of its PCIe link one way; None if unknown."""
    nvlinks: tuple[int, ...] = ()
    """Positions of the other cards that NVLink joins it with."""


class Split(msgspec.Struct, frozen=True):
    """A way to divide a model: `tensor` cards share every layer, and `pipeline` such groups each have some layers."""

    tensor: int = 1
    pipeline: int = 1
    order: tuple[int, ...] = ()
    """Positions of the cards in the order that makes linked ones neighbours; () if they are in that order."""
    reason: str = ""


def best_split(cards: Sequence[Card], n_heads: int = 0, n_kv_heads: int = 0) -> Split:
    """Return the split that suits the links between the cards. Without a known number of heads, any is divided."""
    n_cards = len(cards)
    if n_cards < 2:
        return Split()
    sizes = [card.total_bytes for card in cards]
    if min(sizes) < _EQUAL * max(sizes):
        return Split(1, n_cards, reason="The cards differ: layers are divided, and the smallest card sets the limit.")
    can_share = _can_share(n_cards, n_heads, n_kv_heads)
    links = [card.link_bytes_s for card in cards if card.link_bytes_s is not None]
    if can_share and all(len(card.nvlinks) == n_cards - 1 for card in cards):
        return Split(n_cards, reason="NVLink joins all cards, so they share every layer (tensor parallel).")
    if can_share and len(links) == n_cards and min(links) >= FAST_LINK_BYTES_S:
        reason = f"Every card's link carries {min(links) / 1e9:.0f} GB/s or more, so they share every layer."
        return Split(n_cards, reason=reason)
    order = _pairs(cards)
    if order and n_cards > 2 and _can_share(2, n_heads, n_kv_heads):
        reason = "NVLink joins pairs of cards: a pair shares its layers (tensor parallel), the pairs take turns."
        return Split(2, n_cards // 2, () if order == tuple(range(n_cards)) else order, reason)
    if links and min(links) < FAST_LINK_BYTES_S:
        reason = (
            f"The slowest link carries {min(links) / 1e9:.1f} GB/s, so whole layers are divided (pipeline parallel). "
            "Tensor parallel would wait for that link in every layer."
        )
        return Split(1, n_cards, reason=reason)
    if not can_share:
        heads = f", a number that divides the model's {n_heads} attention heads" if n_heads else ""
        return Split(1, n_cards, reason=f"Tensor parallel takes 2, 4 or 8 cards{heads}. So whole layers are divided.")
    reason = (
        "QwenDesk doesn't know how the cards are linked. Tensor parallel needs NVLink, or PCIe 4.0 x8 or more for each "
        f"card. With slower slots, use a pipeline-parallel size of {n_cards} instead."
    )
    return Split(n_cards, reason=reason)


def _can_share(n_cards: int, n_heads: int, n_kv_heads: int) -> bool:
    """Return whether so many cards can share a layer. KV heads are copied if there are fewer of them than cards."""
    divides_kv = n_kv_heads % n_cards == 0 or n_cards % max(n_kv_heads, 1) == 0
    return n_cards in _TENSOR_SIZES and n_heads % n_cards == 0 and divides_kv


def _pairs(cards: Sequence[Card]) -> tuple[int, ...]:
    """Return the positions of all cards, linked ones side by side; () if NVLink doesn't join all of them in pairs."""
    order: list[int] = []
    for position, card in enumerate(cards):
        if position not in order:
            other = next((each for each in card.nvlinks if each not in order and each > position), None)
            if other is None:
                return ()
            order += [position, other]
    return tuple(order)
