"""The layout of a prompt: its items, the positions of checkpoints, and the batches in which it is processed.

The batches of a prompt always end at the same items, whether its beginning was in memory or not. This makes an answer
with the prompt cache equal to one without.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import get_args

import msgspec

from qwendesk.engine.worker.cache import Item
from qwendesk.engine.worker.prompt import Boundary, BoundaryKind, ImagePlaceholder, Prompt
from qwendesk.engine.worker.vision import ImageChunk, PreparedImage

# Tokens between checkpoints inside one long text; there is another checkpoint before its last batch.
#
# After a stop in the middle, or with another question at the end of a long document, little is processed again.
_CHECKPOINT_EVERY = 1024


# A user turn that begins fewer items than this after a checkpoint gets none of its own.
#
# It would help only if that very message were edited, but would cost every turn another batch.
NEAR_ITEMS = 128


class DecodeStep(msgspec.Struct, frozen=True):
    """One decode of tokens or of one image. If `save`, a checkpoint is saved after it."""

    items: tuple[Item, ...]
    image_chunk: ImageChunk | None = None
    save: bool = False
    pinned: bool = False
    is_last: bool = False
    """The answer begins after this step, so the logits of its last token are needed."""


class Layout(msgspec.Struct, frozen=True):
    items: tuple[Item, ...]
    image_chunks: Mapping[int, ImageChunk]
    """The images, by their index in `items`."""
    cuts: Mapping[int, bool]
    """Numbers of items after which a batch ends and a checkpoint is saved. The value is True for a pinned one."""
    opens_reasoning: bool
    begun: tuple[int, ...] = ()
    last_word: str = ""
    """`begun` and `last_word` are those of the Prompt."""

    @property
    def image_tokens(self) -> int:
        return sum(image_chunk.item.n_tokens for image_chunk in self.image_chunks.values())

    @property
    def n_tokens(self) -> int:
        """The number of KV cells that the prompt needs; an image needs one per token."""
        return len(self.items) - len(self.image_chunks) + self.image_tokens

    def steps(self, start: int, n_ubatch: int) -> Iterator[DecodeStep]:
        """Yield the decodes that process everything from item `start` on."""
        every = max(1, _CHECKPOINT_EVERY // n_ubatch) * n_ubatch
        segment = start
        for end in sorted(cut for cut in self._ends() if cut > start):
            if segment in self.image_chunks:
                yield DecodeStep(
                    (self.items[segment],), self.image_chunks[segment], end in self.cuts, self.cuts.get(end, False)
                )
                segment = end
                continue
            for first in range(segment, end, n_ubatch):
                last = min(first + n_ubatch, end)
                on_the_way = last < end and ((last - segment) % every == 0 or end - last <= n_ubatch)
                save = last in self.cuts or on_the_way
                yield DecodeStep(
                    self.items[first:last], None, save, self.cuts.get(last, False), last == len(self.items)
                )
            segment = end

    def _ends(self) -> set[int]:
        around_images = {place for index in self.image_chunks for place in (index, index + 1)}
        return {*self.cuts, *around_images, len(self.items)}


def lay_out(prompt: Prompt, pictures: Mapping[str, PreparedImage], *, can_cut_anywhere: bool = False) -> Layout:
    """Return the layout of `prompt`. `pictures` has every image of the prompt by its key.

    A model that `can_cut_anywhere` needs no checkpoint before its generation prompt, which saves it a batch. Nor does
    a prompt need one after the token with which every text begins.
    """
    items: list[Item] = []
    image_chunks: dict[int, ImageChunk] = {}
    starts: list[int] = []
    for piece in prompt.pieces:
        starts.append(len(items))
        if not isinstance(piece, ImagePlaceholder):
            items.extend(piece)
            continue
        for chunk in pictures[piece.image.key].chunks:
            if isinstance(chunk, ImageChunk):
                image_chunks[len(items)] = chunk
                items.append(chunk.item)
            else:
                items.extend(chunk)
    starts.append(len(items))

    def place(boundary: Boundary) -> int:
        return starts[boundary.piece] + boundary.offset

    places = {kind: [place(each) for each in prompt.boundaries if each.kind == kind] for kind in get_args(BoundaryKind)}
    answers: list[int] = []
    if places["reasoning"] or not can_cut_anywhere:
        answers = _answer_starts(items, places, len(items) - len(prompt.begun))
    wanted = {0, *places["system"], *places["image"], *_after_questions(answers, places)}
    later = sorted([*places["user_turn"], *places["tool_turn"]])
    wanted |= {turn for turn in later if turn - max(cut for cut in wanted if cut <= turn) >= NEAR_ITEMS}
    cuts = {cut: cut in places["system"] for cut in sorted(wanted) if 1 < cut < len(items)}
    return Layout(tuple(items), image_chunks, cuts, prompt.opens_reasoning, prompt.begun, prompt.last_word)


def with_other_items(layout: Layout, first: int, last: int, items: Sequence[Item]) -> Layout:
    """Return `layout` with `items` in place of those from `first` up to `last`; there are no images among either."""
    longer_by = len(items) - (last - first)

    def moved(index: int) -> int:
        return index if index <= first else index + longer_by

    return msgspec.structs.replace(
        layout,
        items=(*layout.items[:first], *items, *layout.items[last:]),
        image_chunks={moved(index): chunk for index, chunk in layout.image_chunks.items()},
        cuts={moved(cut): pinned for cut, pinned in layout.cuts.items() if not first < cut < last},
    )


def _answer_starts(items: Sequence[Item], places: Mapping[BoundaryKind, Sequence[int]], end: int) -> list[int]:
    """Return the indexes of checkpoints for this answer and the earlier ones; the generation prompt stops at `end`.

    A checkpoint is before `<think>`, or before a generation prompt without `<think>`, or, if the start of the
    generation prompt is not known, before its last item. Batches ended there when the earlier answers were generated,
    so they must end there again. Earlier answers are found by copies of the tokens that introduce this one.
    """
    turns = sorted([*places["system"], *places["user_turn"], *places["tool_turn"]])
    if places["reasoning"]:
        reasoning = places["reasoning"][-1]
        if not turns:
            return [reasoning]
        opener = max((i for i in range(turns[-1], reasoning) if items[i] == items[turns[0]]), default=reasoning)
        header = items[opener:reasoning]
        return [reasoning, *(start + len(header) for start in _copies(items, header, turns[0], reasoning))]
    if places["generation"]:
        start = places["generation"][-1]
        return [start, *_copies(items, items[start:end], turns[0] if turns else 0, start)]
    return [end - 1]


def _after_questions(answers: Iterable[int], places: Mapping[BoundaryKind, Sequence[int]]) -> Iterator[int]:
    """Yield the starts of answers that follow a question, not the result of a tool.

    The next question changes the prompt where the first of them begins, so that a checkpoint at the others would cost
    another batch and help nobody.
    """
    turns = (*places["system"], *places["user_turn"], *places["tool_turn"])
    for answer in answers:
        if max((turn for turn in turns if turn < answer), default=-1) not in places["tool_turn"]:
            yield answer


def _copies(items: Sequence[Item], header: Sequence[Item], first: int, last: int) -> Iterator[int]:
    """Yield the index of each copy of `header` that begins at `first` or later and ends by `last`."""
    if not header:
        return
    for index in range(first, last - len(header) + 1):
        if items[index] == header[0] and items[index : index + len(header)] == header:
            yield index
