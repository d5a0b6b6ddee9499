"""A conversation becomes tokens: the template's own special tokens count, typed ones are only characters.

The texts of the messages are hidden while the template runs, its own text is then cut at the special tokens, and
each plain run between two of them, texts put back, is tokenised as one. So the tokens are those of the whole rendered
text wherever nobody typed a special token.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from qwendesk.core.messages import ImagePart, Message
from qwendesk.engine.protocol import Begun
from qwendesk.engine.worker.conversation import PICTURE_TOKENS, RenderedPiece, render_conversation
from qwendesk.engine.worker.literals import Literals
from qwendesk.engine.worker.template import ChatTemplate

_ALWAYS_LITERAL = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
"""Hidden from templates where they are no tokens, too: templates take texts apart at them."""
_LAST_WORD = re.compile(r"\s{0,8}\S{0,16}\Z")
"""The white space before it belongs to its first token."""
_BOUNDARY_ORDER = ("system", "user_turn", "image", "thought")


class Vocabulary(msgspec.Struct, frozen=True):
    """What building a prompt needs of a model's tokenizer."""

    control: Mapping[str, int]
    """Text to id of the control tokens (`<|im_start|>`)."""
    user_defined: Mapping[str, int]
    """Text to id of the tokens llama.cpp finds in any text (`<think>`)."""
    tokenize: Callable[[str], list[int]]
    """The ids of a text, with nothing added and no control token recognised."""


class Picture(msgspec.Struct, frozen=True):
    """Stands for one picture; the vision encoder adds the tokens around it itself."""

    image: ImagePart


Piece = tuple[int, ...] | Picture
"""A run of token ids, or a picture."""


BoundaryKind = Literal["system", "user_turn", "image", "thought"]


class Boundary(msgspec.Struct, frozen=True):
    """A place where a checkpoint belongs: before token `offset` of piece `piece`, or before a picture (offset 0)."""

    piece: int
    """May be the number of pieces: after a picture that ends the prompt."""
    offset: int
    kind: BoundaryKind
    """`system`: the first user turn's start, so the end of the system prompt and the tools. `user_turn`: the start of
    a later user or tool message. `image`: right after a picture. `thought`: before the `<think>` that opens the answer.
    """


class Prompt(msgspec.Struct, frozen=True):
    pieces: tuple[Piece, ...]
    boundaries: tuple[Boundary, ...]
    """In order, no two of one place; (0, 0) is possible."""
    opens_thought: bool
    """The prompt, without what was begun of the answer, ends inside an open `<think>`."""
    begun: tuple[int, ...] = ()
    """Tokens that say what was begun of the answer. The pieces end with it, but perhaps by other tokens, as a text
    joins those around it.
    """
    rest: str = ""
    """The last word of what was begun. The pieces end before it: it is written again, so that half a word becomes the
    tokens of the whole one.
    """


def build_prompt(
    template: ChatTemplate,
    vocabulary: Vocabulary,
    messages: Sequence[Message],
    *,
    tools_json: Sequence[str],
    enable_thinking: bool,
    preserve_thinking: bool,
    begun: Begun | None = None,
) -> Prompt:
    """The prompt that asks the model for the next message of a conversation, or for the rest of one that was begun.

    A model without `<think>` and `</think>` as tokens is never asked to think. Raises BadRequest when the template
    refuses the conversation, leaves out a picture, or a tool definition or call is not a JSON object.
    """
    special = {**vocabulary.user_defined, **vocabulary.control}
    has_think_tokens = "<think>" in special and "</think>" in special
    rendered = render_conversation(
        template,
        messages,
        tools_json=tools_json,
        typed=Literals([*_cuttable(vocabulary), *_ALWAYS_LITERAL, *PICTURE_TOKENS]),
        variables={
            "enable_thinking": enable_thinking and has_think_tokens,
            "preserve_thinking": preserve_thinking,
            "has_think_tokens": has_think_tokens,
        },
    )
    assembly = _Assembly(vocabulary, texts_are_hidden=rendered.texts_are_hidden)
    for piece in rendered.pieces:
        assembly.add(piece)
    if begun is not None:
        assembly.resume(begun)
    return assembly.finish()


def _cuttable(vocabulary: Vocabulary) -> list[str]:
    """The special tokens to cut at. Those that are only white space are left to the tokenizer, which finds them in
    any text: they are no markup, and a user's blank lines must become the same tokens as anybody's.
    """
    return [*vocabulary.control, *_inertable(vocabulary)]


def _inertable(vocabulary: Vocabulary) -> list[str]:
    return [text for text in vocabulary.user_defined if len(text) > 1 and not text.isspace()]


class _Assembly:
    """Takes the rendered pieces in order and makes tokens of them."""

    def __init__(self, vocabulary: Vocabulary, *, texts_are_hidden: bool) -> None:
        self._tokenize = vocabulary.tokenize
        self._ids = {**vocabulary.user_defined, **vocabulary.control}
        self._own = Literals(_cuttable(vocabulary))
        self._inert = Literals(_inertable(vocabulary))
        self._texts_are_hidden = texts_are_hidden
        self._pieces: list[Piece] = []
        self._run: list[int] = []
        self._text: list[str] = []
        self._boundaries: dict[tuple[int, int], Boundary] = {}
        self._last_special: tuple[int, int] | None = None
        self._thought: tuple[int, int] | None = None
        self._thought_is_open = False
        self._opened: bool | None = None
        """Whether the prompt opened a thought, once more follows."""
        self._begun: list[int] = []
        self._rest = ""

    def add(self, piece: RenderedPiece) -> None:
        """The next piece of the rendered conversation."""
        if isinstance(piece, str):
            for text, is_special in self._own.cut(piece):
                if is_special:
                    self._add_special(text)
                else:
                    self._add_text(text, may_be_message=not self._texts_are_hidden)
            return
        if piece.opens_turn and self._last_special:
            self._mark(self._last_special, piece.opens_turn)
        if piece.picture:
            self._add_picture(piece.picture)
        else:
            self._add_text(piece.text, may_be_message=True)

    def resume(self, begun: Begun) -> None:
        """What was begun of the answer goes to the end, in the form that Qwen's templates give a whole one."""
        self._opened = self._ends_in_thought()
        if begun.reasoning and "<think>" in self._ids and "</think>" in self._ids:
            if not self._opened:
                self._begin_special("<think>")
                self._text.append("\n")
            self._begin_text(begun.reasoning, is_last=begun.thought_is_open)
        if not begun.text:
            return
        if self._ends_in_thought():
            self._text.append("\n")
            self._begin_special("</think>")
            self._text.append("\n\n")
        self._begin_text(begun.text, is_last=True)

    def finish(self) -> Prompt:
        opened = self._ends_in_thought() if self._opened is None else self._opened
        self._end_run()
        if self._thought:
            self._mark(self._thought, "thought")
        boundaries = [self._boundaries[place] for place in sorted(self._boundaries)]
        return Prompt(tuple(self._pieces), tuple(boundaries), opened, tuple(self._begun), self._rest)

    def _ends_in_thought(self) -> bool:
        return self._thought is not None and self._thought_is_open

    def _begin_special(self, text: str) -> None:
        self._add_special(text)
        self._begun.append(self._ids[text])

    def _begin_text(self, text: str, *, is_last: bool) -> None:
        if is_last:
            self._rest = _LAST_WORD.search(text)[0]  # type: ignore[index]
            text = text[: len(text) - len(self._rest)]
        self._text.append(text)
        for fragment in self._inert.split_inert(text):
            self._begun.extend(self._tokenize(fragment))

    def _add_special(self, text: str) -> None:
        self._end_text()
        self._last_special = (len(self._pieces), len(self._run))
        self._run.append(self._ids[text])
        if text == "<think>":
            self._thought = self._last_special
        if text in ("<think>", "</think>"):
            self._thought_is_open = text == "<think>"

    def _add_text(self, text: str, *, may_be_message: bool) -> None:
        self._text.append(text)
        if may_be_message and text.strip():
            self._thought = None

    def _add_picture(self, image: ImagePart) -> None:
        self._end_run()
        self._pieces.append(Picture(image))
        self._thought = None
        self._mark((len(self._pieces), 0), "image")

    def _mark(self, place: tuple[int, int], kind: BoundaryKind) -> None:
        known = self._boundaries.get(place)
        if known is None or _BOUNDARY_ORDER.index(kind) < _BOUNDARY_ORDER.index(known.kind):
            self._boundaries[place] = Boundary(*place, kind)

    def _end_text(self) -> None:
        if not self._text:
            return
        for fragment in self._inert.split_inert("".join(self._text)):
            self._run.extend(self._tokenize(fragment))
        self._text.clear()

    def _end_run(self) -> None:
        self._end_text()
        if self._run:
            self._pieces.append(tuple(self._run))
            self._run = []
