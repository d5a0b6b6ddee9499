"""Batches for training, made in a process of their own while the step before is computed."""

import random
from collections.abc import Collection, Iterator, Sequence
from typing import Literal, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, IterableDataset

from tools.demo_model.chats import Chat, ChatMaker
from tools.demo_model.drawing import Shown, draw_no_shape, draw_shape, random_shown
from tools.demo_model.preprocessing import CELL, encoded_size, fitted, patches, place
from tools.demo_model.rendering import pieces
from tools.demo_model.tokens import Tokens
from tools.demo_model.topics import Knowledge

TOKENS = 3072
"""Of a batch of text, about; padding counts. A batch with pictures may have a few more."""
LONGEST = 768
"""Chats with more tokens are left out."""
_STEP = 32
"""Lengths are padded to multiples of it."""

_SQUARE = (96, 96, 128, 128, 128, 160, 160, 192, 192, 224, 256, 256, 320)
"""Sides of square pictures, pixels, the small ones more often."""


class Pictures(NamedTuple):
    patches: Tensor
    """Pictures x patches x values; all of one size."""
    high: int
    wide: int
    """Patches down and across."""
    shown: list[Shown | None]
    """None: no single shape."""


class Batch(NamedTuple):
    tokens: Tensor
    """Chats x length."""
    positions: Tensor
    """3 x chats x length: time, down, across."""
    targets: Tensor
    """Chats x length: the next token where it is to be learnt, else -1."""
    is_picture: Tensor | None = None
    pictures: Pictures | None = None


class BatchMaker:
    """Draws batches; the same seed gives the same ones."""

    def __init__(self, tokens: Tokens, knowledge: Knowledge, seed: str, missed: Collection[str] = ()) -> None:
        self._tokens, self._rng = tokens, random.Random(seed)
        self._chats = ChatMaker(knowledge, self._rng, missed)
        self._waiting: list[tuple[list[int], list[bool]]] = []
        """Encoded chats by length, so that a batch holds chats of about one length."""

    def text(self) -> Batch:
        if len(self._waiting) < 64:
            self._waiting += [self._encoded(self._chats.chat(), 0, thinking=0.85) for _ in range(600)]
            self._waiting = sorted((each for each in self._waiting if len(each[0]) <= LONGEST), key=_length)
        at = self._rng.randrange(len(self._waiting))
        length = _padded(len(self._waiting[at][0]))
        first = max(0, at + 1 - max(1, TOKENS // length))
        taken, self._waiting[first : at + 1] = self._waiting[first : at + 1], []
        return self._collated(taken)

    def pictures(self, *, stretched: float, easy: bool = False) -> Pictures:
        """40 pictures that the encoder sees in one size. `stretched`: how often they are not about square."""
        return self._drawn(40, self._size(stretched), easy=easy)

    def _drawn(self, count: int, size: tuple[int, int], *, easy: bool = False) -> Pictures:
        """Pictures of about `size`."""
        rng, seen = self._rng, encoded_size(*size)
        rows, shown = [], []
        for _ in range(count):
            width, height = (side + rng.randint(-14, 14) for side in size)
            if encoded_size(width, height) != seen:
                width, height = size
            what = None if rng.random() < 0.09 else random_shown(rng)
            image = draw_shape(what, width, height, rng, easy=easy) if what else draw_no_shape(width, height, rng)
            rows.append(patches(fitted(image)))
            shown.append(what)
        return Pictures(torch.from_numpy(np.stack(rows)), seen[1] // CELL * 2, seen[0] // CELL * 2, shown)

    def with_pictures(self, *, stretched: float) -> Batch:
        """Chats with one picture each."""
        size = self._size(stretched)
        wide, high = (side // CELL for side in encoded_size(*size))
        grid = high, wide
        pictures = self._drawn(max(6, min(28, TOKENS // (high * wide + 80))), size)
        encoded = [
            self._encoded(self._chats.picture_chat(shown), high * wide, thinking=0.45) for shown in pictures.shown
        ]
        return self._collated(encoded, grid)._replace(pictures=pictures)

    def _size(self, stretched: float) -> tuple[int, int]:
        """Square, or any shape up to about four to one, of about the pixels of a small picture."""
        rng = self._rng
        if rng.random() >= stretched:
            side = rng.choice(_SQUARE)
            return side, side
        area_root = rng.uniform(80, 240)
        most = 2.2 if rng.random() < 0.4 else 1.0
        root = 2 ** (rng.uniform(-most, most) / 2)
        return max(40, round(area_root * root)), max(40, round(area_root / root))

    def _encoded(self, chat: Chat, picture_tokens: int, *, thinking: float) -> tuple[list[int], list[bool]]:
        ids: list[int] = []
        learnt: list[bool] = []
        for text, to_learn in pieces(chat, thinking=self._rng.random() < thinking):
            new = self._tokens.encode(text)
            if self._tokens.image in new:
                at = new.index(self._tokens.image)
                new[at : at + 1] = [self._tokens.image] * picture_tokens
            ids += new
            learnt += [to_learn] * len(new)
        return ids, learnt

    def _collated(self, chats: Sequence[tuple[list[int], list[bool]]], grid: tuple[int, int] | None = None) -> Batch:
        length = _padded(max(len(ids) for ids, _ in chats))
        tokens = np.full((len(chats), length), self._tokens.pad)
        targets = np.full((len(chats), length), -1)
        positions = np.zeros((3, len(chats), length), np.int64)
        for row, (ids, learnt) in enumerate(chats):
            tokens[row, : len(ids)] = ids
            targets[row, : len(ids) - 1] = np.where(learnt[1:], ids[1:], -1)
            positions[:, row, : len(ids)] = place(np.asarray(ids) == self._tokens.image, grid)
        whole = Batch(*(torch.from_numpy(each) for each in (tokens, positions, targets)))
        return whole._replace(is_picture=whole.tokens == self._tokens.image) if grid else whole


def _length(encoded: tuple[list[int], list[bool]]) -> int:
    return len(encoded[0])


def _padded(length: int) -> int:
    return length + -length % _STEP


class Step(NamedTuple):
    """What one step of the training learns from."""

    kind: Literal["text", "chats with pictures", "pictures", "easy pictures"]
    stretched: float = 0.0
    """The share of its pictures that are not about square."""


class Stream(IterableDataset[Batch | Pictures]):
    """A batch for each step in turn."""

    def __init__(self, maker: BatchMaker, plan: Sequence[Step]) -> None:
        self._maker, self._plan = maker, plan

    def __iter__(self) -> Iterator[Batch | Pictures]:
        for kind, stretched in self._plan:
            match kind:
                case "text":
                    yield self._maker.text()
                case "chats with pictures":
                    yield self._maker.with_pictures(stretched=stretched)
                case _:
                    yield self._maker.pictures(stretched=stretched, easy=kind == "easy pictures")


def streamed(maker: BatchMaker, plan: Sequence[Step]) -> "DataLoader[Batch | Pictures]":
    """The batches, drawn ahead by a copy of `maker` in a process of its own: `maker` itself does not move on."""
    return DataLoader(Stream(maker, plan), batch_size=None, num_workers=1, prefetch_factor=4)
