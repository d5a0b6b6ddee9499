"""A prompt laid out for memory: items in order, where checkpoints go, and the batches it is read in. Pure.

Batches always end at the same places for the same prompt, whether its beginning was in memory or not:
that is what makes an answer with the cache equal to one without.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from qwendesk.engine.worker.cache import Item
from qwendesk.engine.worker.prompt import Boundary, BoundaryKind, Picture, Prompt
from qwendesk.engine.worker.vision import PreparedPicture, Tile

_CHECKPOINT_EVERY = 1024
"""Tokens between checkpoints inside one long text; another one goes before its last batch. Stopping in the middle,
or another question at the end of a long document, then re-reads little."""


NEAR_ITEMS = 128
"""A user turn this near to the checkpoint before it gets none of its own: a batch more would cost every turn what it
saves only when that very message is edited."""


class Step(msgspec.Struct, frozen=True):
    """One decode: tokens, or one picture. `save` says whether a checkpoint follows it."""

    items: tuple[Item, ...]
    tile: Tile | None = None
    save: bool = False
    pinned: bool = False
    is_last: bool = False
    """The answer begins after it, so its last token's logits are wanted."""


class Layout(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]
    tiles: Mapping[int, Tile]
    """The pictures, by their place in `items`."""
    cuts: Mapping[int, bool]
    """Places (numbers of items) where a batch ends and a checkpoint is taken; True where it is pinned."""
    opens_thought: bool
    begun: tuple[int, ...] = ()
    rest: str = ""
    """Both as in Prompt."""

    @property
    def image_tokens(self) -> int:
        return sum(tile.item.n_tokens for tile in self.tiles.values())

    @property
    def n_tokens(self) -> int:
        """Places the prompt takes in the context; a picture takes one per token."""
        return len(self.items) - len(self.tiles) + self.image_tokens

    def steps(self, start: int, n_ubatch: int) -> Iterator[Step]:
        """The decodes that read everything from item `start` on."""
        every = max(1, _CHECKPOINT_EVERY // n_ubatch) * n_ubatch
        segment = start
        for end in sorted(cut for cut in self._ends() if cut > start):
            if segment in self.tiles:
                yield Step((self.items[segment],), self.tiles[segment], end in self.cuts, self.cuts.get(end, False))
                segment = end
                continue
            for first in range(segment, end, n_ubatch):
                last = min(first + n_ubatch, end)
                on_the_way = last < end and ((last - segment) % every == 0 or end - last <= n_ubatch)
                save = last in self.cuts or on_the_way
                yield Step(self.items[first:last], None, save, self.cuts.get(last, False), last == len(self.items))
            segment = end

    def _ends(self) -> set[int]:
        around_tiles = {place for index in self.tiles for place in (index, index + 1)}
        return {*self.cuts, *around_tiles, len(self.items)}


def lay_out(prompt: Prompt, pictures: Mapping[str, PreparedPicture]) -> Layout:
    """`pictures` by file hash, one for every picture of the prompt."""
    items: list[Item] = []
    tiles: dict[int, Tile] = {}
    starts: list[int] = []
    for piece in prompt.pieces:
        starts.append(len(items))
        if not isinstance(piece, Picture):
            items.extend(piece)
            continue
        for chunk in pictures[piece.image.sha256].chunks:
            if isinstance(chunk, Tile):
                tiles[len(items)] = chunk
                items.append(chunk.item)
            else:
                items.extend(chunk)
    starts.append(len(items))

    def place(boundary: Boundary) -> int:
        return starts[boundary.piece] + boundary.offset

    places = {kind: [place(each) for each in prompt.boundaries if each.kind == kind] for kind in get_args(BoundaryKind)}
    turns, thoughts = sorted(places["system"] + places["user_turn"]), places["thought"]
    answers = list(_answer_starts(items, turns, thoughts[-1])) if turns and thoughts else []
    wanted = {0, *places["system"], *places["image"], *answers, *thoughts}
    wanted |= {turn for turn in places["user_turn"] if turn - max(cut for cut in wanted if cut <= turn) >= NEAR_ITEMS}
    cuts = {cut: cut in places["system"] for cut in sorted(wanted) if 0 < cut < len(items)}
    return Layout(tuple(items), tiles, cuts, prompt.opens_thought, prompt.begun, prompt.rest)


def _answer_starts(items: Sequence[Item], turns: Sequence[int], thought: int) -> Iterator[int]:
    """Where earlier answers begin: after every copy of the tokens that head this one.

    When those answers were made, reading stopped there to take a checkpoint; reading them again must too.
    """
    first = items[turns[0]]
    opener = max((i for i in range(turns[-1], thought) if items[i] == first), default=thought)
    header = list(items[opener:thought])
    if not header:
        return
    for index in range(turns[0], thought - len(header) + 1):
        if items[index] == header[0] and list(items[index : index + len(header)]) == header:
            yield index + len(header)
