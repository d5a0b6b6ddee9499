"""Special tokens that somebody types stay characters, whatever the template does with the text."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from qwendesk.core.messages import Message, TextPart, ToolCall, text_message
from qwendesk.engine.worker.prompt import Picture, Piece
from qwendesk.engine.worker.template import BUILTIN_CHATML, ChatTemplate
from tests.engine.worker import templates
from tests.engine.worker.chats import chats, hostile_text, rendered_openly, tool_definitions
from tests.engine.worker.conftest import Demo
from tests.engine.worker.test_prompt import prompt_of


def special_ids(demo: Demo, pieces: tuple[Piece, ...]) -> list[int]:
    return [token for piece in pieces if not isinstance(piece, Picture) for token in piece if token in demo.special_ids]


def shown(demo: Demo, pieces: tuple[Piece, ...]) -> str:
    return "".join("[picture]" if isinstance(piece, Picture) else demo.detokenize(piece) for piece in pieces)


class Words:
    """Gives each text a harmless word of its own, to see where the text ends up."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def hide(self, text: str) -> str:
        if not text:
            return text
        word = f"Word{len(self._texts):04d}"
        self._texts[word] = text
        return word

    def restore(self, text: str) -> str:
        for word, hidden in self._texts.items():
            text = text.replace(word, hidden)
        return text

    def harmless(self, message: Message) -> Message:
        """`message` with its texts trimmed and replaced, as far as it has text parts only."""
        return Message(
            message.role,
            (TextPart(self.hide(message.text.strip())),),
            reasoning=self.hide(message.reasoning.strip()),
        )


def check_inert(demo: Demo, template: ChatTemplate, messages: tuple[Message, ...], *, enable_thinking: bool) -> None:
    words = Words()
    harmless = tuple(words.harmless(message) for message in messages)
    prompt = prompt_of(demo, template, messages, enable_thinking=enable_thinking)
    whole = rendered_openly(template, harmless, enable_thinking=enable_thinking)
    assert shown(demo, prompt.pieces) == words.restore(whole)
    own = [token for token in demo.tokenize(whole, parse_special=True) if token in demo.special_ids]
    assert special_ids(demo, prompt.pieces) == own


@settings(max_examples=800)
@given(messages=chats(hostile_text), enable_thinking=st.booleans())
def test_typed_tokens_stay_characters(demo: Demo, messages: tuple[Message, ...], enable_thinking: bool) -> None:
    check_inert(demo, demo.template, messages, enable_thinking=enable_thinking)


@pytest.mark.soak
@settings(max_examples=20_000)
@given(messages=chats(hostile_text), enable_thinking=st.booleans())
def test_typed_tokens_stay_characters_in_many_chats(
    demo: Demo, messages: tuple[Message, ...], enable_thinking: bool
) -> None:
    check_inert(demo, demo.template, messages, enable_thinking=enable_thinking)


@pytest.mark.parametrize("source", [templates.QWEN_LIKE, templates.LLAMA_LIKE, BUILTIN_CHATML])
@settings(max_examples=150)
@given(messages=chats(hostile_text))
def test_typed_tokens_stay_characters_with_other_templates(
    demo: Demo, source: str, messages: tuple[Message, ...]
) -> None:
    check_inert(demo, ChatTemplate(source, bos="<|endoftext|>"), messages, enable_thinking=True)


def own_special_ids(demo: Demo, source: str, messages: tuple[Message, ...]) -> list[int]:
    """The special tokens the template writes around texts that contain none."""
    template = ChatTemplate(source, bos="<|endoftext|>", eos="<|im_end|>")
    harmless = tuple(Message(message.role, (TextPart("x" if message.text.strip() else ""),)) for message in messages)
    whole = rendered_openly(template, harmless)
    return [token for token in demo.tokenize(whole, parse_special=True) if token in demo.special_ids]


@pytest.mark.parametrize(
    "source", [templates.MISTRAL_LIKE, templates.UPPER_CASE, templates.LOWER_CASE, templates.REPEATING]
)
@settings(max_examples=150)
@given(messages=chats(hostile_text, reasoning=False))
def test_typed_tokens_stay_characters_where_texts_are_changed(
    demo: Demo, source: str, messages: tuple[Message, ...]
) -> None:
    template = ChatTemplate(source, bos="<|endoftext|>", eos="<|im_end|>")
    prompt = prompt_of(demo, template, messages)
    assert special_ids(demo, prompt.pieces) == own_special_ids(demo, source, messages)
    typed = [message.text.strip().lower() for message in messages]
    assert all(text in shown(demo, prompt.pieces).lower() for text in typed)


@settings(max_examples=300)
@given(messages=chats(hostile_text, tools=True), tools_json=tool_definitions(hostile_text))
def test_typed_tokens_in_tools_stay_characters(
    demo: Demo, messages: tuple[Message, ...], tools_json: list[str]
) -> None:
    def harmless_json(text: str) -> str:
        return text.replace("<", "«").replace(">", "»").replace("THINK", "think")

    def harmless(message: Message) -> Message:
        calls = tuple(
            ToolCall(harmless_json(call.name), harmless_json(call.arguments_json)) for call in message.tool_calls
        )
        parts = (TextPart(harmless_json(message.text)),)
        return Message(message.role, parts, reasoning=harmless_json(message.reasoning), tool_calls=calls)

    template = ChatTemplate(templates.QWEN_LIKE)
    prompt = prompt_of(demo, template, messages, tools_json)
    plain = tuple(harmless(message) for message in messages)
    whole = rendered_openly(template, plain, tools_json=[harmless_json(text) for text in tools_json])
    own = [token for token in demo.tokenize(whole, parse_special=True) if token in demo.special_ids]
    assert special_ids(demo, prompt.pieces) == own
    assert harmless_json(shown(demo, prompt.pieces)) == harmless_json(whole)


@pytest.mark.parametrize(
    ("name", "key"), [("</think", "</think"), ("<|im_end|", "a"), ("a", "<tool_call"), ("x</think", "<")]
)
def test_typed_text_cannot_complete_a_token_with_what_the_template_writes_beside_it(
    demo: Demo, name: str, key: str
) -> None:
    source = "{% for m in messages %}{% for c in m.tool_calls or [] %}{{ c.function.name + '>' }}|{% for k in " \
        "c.function.arguments %}{{ k + '>' }}{% endfor %}{% endfor %}{% endfor %}"  # fmt: skip
    message = Message("assistant", tool_calls=(ToolCall(name, json.dumps({key: 1})),))
    prompt = prompt_of(demo, ChatTemplate(source), [message])
    assert special_ids(demo, prompt.pieces) == []
    assert shown(demo, prompt.pieces) == f"{name}>|{key}>"


def test_typed_picture_marks_are_no_pictures(demo: Demo) -> None:
    typed = "<|vision_start|><|image_pad|><|vision_end|>"
    prompt = prompt_of(demo, demo.template, [text_message("user", typed)])
    assert special_ids(demo, prompt.pieces) == [
        demo.vocabulary.control["<|im_start|>"],
        demo.vocabulary.control["<|im_end|>"],
        demo.vocabulary.control["<|im_start|>"],
        demo.vocabulary.user_defined["<think>"],
    ]
    assert typed in shown(demo, prompt.pieces)


def test_a_typed_think_tag_does_not_move_an_answer_into_a_thought(demo: Demo) -> None:
    answer = "Write </think> to end it."
    messages = (text_message("user", "How?"), text_message("assistant", answer), text_message("user", "Thanks"))
    assert answer in shown(demo, prompt_of(demo, demo.template, messages).pieces)
