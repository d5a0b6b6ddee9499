"""Turn a conversation into tokens. Only the template's special tokens count; typed ones are plain characters.

The texts of the messages are hidden while the template runs. The template's output is then cut at the special tokens,
the texts are put back, and each run between two special tokens is tokenized as a whole. Where nobody typed a special
token, the result is the same as tokenizing the whole rendered text.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

import msgspec

from qwendesk.core.messages import ImagePart, Message
from qwendesk.engine.protocol import Begun
from qwendesk.engine.worker.conversation import PICTURE_TOKENS, RenderedPiece, SpecialTexts, render_conversation
from qwendesk.engine.worker.template import ChatTemplate

# Hidden from templates even if the model has no such tokens, because templates split texts at them.
_ALWAYS_LITERAL = ("<think>", "</think>", "<tool_call>", "</tool_call>", "<tool_response>", "</tool_response>")
# A text's last word with the white space before it, which belongs to the word's first token.
_LAST_WORD = re.compile(r"\s{0,8}\S{0,16}\Z")
_BOUNDARY_ORDER = ("system", "user_turn", "tool_turn", "image", "reasoning", "generation")


class Vocabulary(msgspec.Struct, frozen=True):
    """The parts of a model's tokenizer that are needed to build a prompt."""

    control: Mapping[str, int]
    """The ids of the control tokens, such as `<|im_start|>`, by their text."""
    user_defined: Mapping[str, int]
    """The ids of the tokens that llama.cpp recognizes in any text, such as `<think>`, by their text."""
    tokenize: Callable[[str], list[int]]
    """Returns the token ids of a text, with nothing added. Control tokens are not recognized."""
    begin: str = ""
    """The control token with which every text has to begin; "" if there is none."""


class ImagePlaceholder(msgspec.Struct, frozen=True):
    """Stands for one image. The vision encoder adds the tokens around it."""

    image: ImagePart


# A run of token ids, or an image.
Piece = tuple[int, ...] | ImagePlaceholder


BoundaryKind = Literal["system", "user_turn", "tool_turn", "image", "reasoning", "generation"]


class Boundary(msgspec.Struct, frozen=True):
    """A possible position of a checkpoint: before token `offset` of piece `piece`, or before an image (offset 0)."""

    piece: int
    """Index of the piece. It is the number of pieces if an image ends the prompt."""
    offset: int
    kind: BoundaryKind
    """`system`: the start of the first user turn, which is the end of the system prompt and the tools. `user_turn`:
    the start of a later user message. `tool_turn`: the start of a tool's result. `image`: right after an image.
    `reasoning`: before the `<think>` that begins the answer. `generation`: the start of the generation prompt, if that
    has no `<think>`.
    """


class Prompt(msgspec.Struct, frozen=True):
    pieces: tuple[Piece, ...]
    boundaries: tuple[Boundary, ...]
    """In order, at most one at each position. One at (0, 0) is possible."""
    opens_reasoning: bool
    """True if the prompt, without the partial answer, ends inside an open `<think>`."""
    begun: tuple[int, ...] = ()
    """The tokens of the partial answer, tokenized by itself. At the end of the pieces its tokens may differ, because
    there it is tokenized together with the text before it.
    """
    last_word: str = ""
    """The last word of the partial answer. The pieces end before it: it is generated again, so that half a word becomes
    the tokens of the whole word.
    """


def build_prompt(
    template: ChatTemplate,
    vocabulary: Vocabulary,
    messages: Sequence[Message],
    *,
    tools_json: Sequence[str],
    enable_thinking: bool,
    preserve_thinking: bool,
    reasoning_effort: str = "",
    begun: Begun | None = None,
) -> Prompt:
    """Return the prompt that asks for the next message of a conversation, or for the rest of a partial answer.

    The template isn't told an empty `reasoning_effort`. A model that does not have `<think>` and `</think>` as tokens
    is never asked to think. Raise BadRequest if the template refuses the conversation or leaves out an image, and if a
    tool definition or call is not a JSON object.
    """
    special = {**vocabulary.user_defined, **vocabulary.control}
    has_think_tokens = "<think>" in special and "</think>" in special
    rendered = render_conversation(
        template,
        messages,
        tools_json=tools_json,
        typed=SpecialTexts([*_markup_tokens(vocabulary), *_ALWAYS_LITERAL, *PICTURE_TOKENS]),
        variables={
            "enable_thinking": enable_thinking and has_think_tokens,
            "preserve_thinking": preserve_thinking,
            "has_think_tokens": has_think_tokens,
            **({"reasoning_effort": reasoning_effort} if reasoning_effort else {}),
        },
    )
    assembly = _Assembly(vocabulary, texts_are_hidden=rendered.texts_are_hidden)
    if not "".join(piece for piece in rendered.pieces[:1] if isinstance(piece, str)).startswith(vocabulary.begin):
        assembly.add(vocabulary.begin)  # as llama.cpp does, because some templates leave it out
    for piece in rendered.pieces:
        assembly.add(piece)
    if begun is not None:
        assembly.resume(begun)
    return assembly.finish()


def _markup_tokens(vocabulary: Vocabulary) -> list[str]:
    """Return the special tokens at which the template's output is cut.

    Tokens of white space only are not among them: they are not markup, and the tokenizer finds them in any text, so
    that blank lines become the same tokens in a message and in the template's own text.
    """
    return [*vocabulary.control, *_user_defined_markup(vocabulary)]


def _user_defined_markup(vocabulary: Vocabulary) -> list[str]:
    return [text for text in vocabulary.user_defined if len(text) > 1 and not text.isspace()]


class _Assembly:
    """Takes the rendered pieces in order and turns them into tokens."""

    def __init__(self, vocabulary: Vocabulary, *, texts_are_hidden: bool) -> None:
        self._tokenize = vocabulary.tokenize
        self._ids = {**vocabulary.user_defined, **vocabulary.control}
        self._markup = SpecialTexts(_markup_tokens(vocabulary))
        self._inert = SpecialTexts(_user_defined_markup(vocabulary))
        self._texts_are_hidden = texts_are_hidden
        self._pieces: list[Piece] = []
        self._run: list[int] = []
        self._text: list[str] = []
        self._boundaries: dict[tuple[int, int], Boundary] = {}
        self._last_special: tuple[int, int] | None = None
        self._reasoning_tag: tuple[int, int] | None = None
        self._reasoning_is_open = False
        self._generation: tuple[int, int] | None = None
        """The position of the first special token after the last text or image of a message."""
        self._answer_is_marked = False
        self._opened: bool | None = None
        """Whether the prompt ends inside an open `<think>`; None until `resume` appends a partial answer."""
        self._begun: list[int] = []
        self._last_word = ""

    def add(self, piece: RenderedPiece) -> None:
        """Add the next piece of the rendered conversation."""
        if isinstance(piece, str):
            for text, is_special in self._markup.cut(piece):
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
        """Append the partial answer, in the form in which Qwen's templates write a complete answer."""
        self._opened = self._ends_in_reasoning()
        self._mark_answer()
        if begun.reasoning and "<think>" in self._ids and "</think>" in self._ids:
            if not self._opened:
                self._resume_special("<think>")
                self._text.append("\n")
            self._resume_text(begun.reasoning, is_last=begun.thought_is_open)
        if not begun.text and begun.stage != "answering":
            return
        if self._ends_in_reasoning():
            self._text.append("\n")
            self._resume_special("</think>")
            self._text.append("\n\n")
        self._resume_text(begun.text, is_last=True)

    def finish(self) -> Prompt:
        opened = self._ends_in_reasoning() if self._opened is None else self._opened
        self._mark_answer()
        self._end_run()
        boundaries = [self._boundaries[place] for place in sorted(self._boundaries)]
        return Prompt(tuple(self._pieces), tuple(boundaries), opened, tuple(self._begun), self._last_word)

    def _mark_answer(self) -> None:
        """Mark where the answer begins. Only the first call counts, so a partial answer does not move the mark."""
        if self._answer_is_marked:
            return
        self._answer_is_marked = True
        if self._reasoning_tag:
            self._mark(self._reasoning_tag, "reasoning")
        elif self._generation:
            self._mark(self._generation, "generation")

    def _ends_in_reasoning(self) -> bool:
        return self._reasoning_tag is not None and self._reasoning_is_open

    def _resume_special(self, text: str) -> None:
        self._add_special(text)
        self._begun.append(self._ids[text])

    def _resume_text(self, text: str, *, is_last: bool) -> None:
        if is_last:
            self._last_word = _LAST_WORD.search(text)[0]  # type: ignore[index]
            text = text[: len(text) - len(self._last_word)]
        self._text.append(text)
        for fragment in self._inert.split_inert(text):
            self._begun.extend(self._tokenize(fragment))

    def _add_special(self, text: str) -> None:
        self._end_text()
        self._last_special = (len(self._pieces), len(self._run))
        self._generation = self._generation or self._last_special
        self._run.append(self._ids[text])
        if text == "<think>":
            self._reasoning_tag = self._last_special
        if text in ("<think>", "</think>"):
            self._reasoning_is_open = text == "<think>"

    def _add_text(self, text: str, *, may_be_message: bool) -> None:
        self._text.append(text)
        if may_be_message and text.strip():
            self._reasoning_tag = self._generation = None

    def _add_picture(self, image: ImagePart) -> None:
        self._end_run()
        self._pieces.append(ImagePlaceholder(image))
        self._reasoning_tag = self._generation = None
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
