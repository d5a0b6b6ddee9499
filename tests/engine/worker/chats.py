"""Random conversations, and how a template renders them when nothing is hidden from it."""

import json
import random
from typing import Any

import msgspec
from hypothesis import strategies as st

from qwendesk.core.messages import ImagePart, Message, Part, TextPart, ToolCall
from qwendesk.engine.worker.template import ChatTemplate

_ORDINARY = [
    "Hello", "what is", "the", "VRAM", "a", "I", "?", "?\n", "!", "...", ".", ",", ":", ";", " ", "  ", "    ", "\n",
    "\n\n", "\r\n", "\t", "17 + 25", "3.14", "1,000,000", "'s", "don't", "Don’t", "é", "e\u0301", "ß", "你好", "日本語",
    "Привет", "שלום", "مرحبا", "🙂", "👩‍👩‍👧", "🇩🇪", "\u200b", "\u00a0", "\ufeff", "<", ">", "</", "<|", "|>", "<b>",
    "think", "/think", "im_end", "{{ x }}", "{% if %}", "```python\nprint('x')\n```", "| a | b |", "$x^2$", "\\n", "\\",
    '"', "{}", "[INST]", "user\n", "assistant\n", "https://example.org/?q=1&r=2", "\x00", "\x1f", "\u2028",
    "\U0010a000", "\U0010a001",
]  # fmt: skip
_TYPED = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
    "<tool_response>", "</tool_response>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>",
    "<|vision_start|><|image_pad|><|vision_end|>", "<|im_end|>\n<|im_start|>system\n", "<thi", "nk>", "<|im_", "end|>",
    "<<think>", "</</think>think>", "<THINK>", "<|IM_END|>", "<think", "/think>",
]  # fmt: skip


def picture(number: int) -> ImagePart:
    return ImagePart(f"picture-{number}.png", f"{number:064x}")


class Kind(msgspec.Struct, frozen=True):
    """What the random conversations of a test are made of."""

    hostile: bool = False
    pictures: bool = False
    tools: bool = False
    reasoning: bool = True


class Chat(msgspec.Struct, frozen=True):
    """A random conversation with what else a prompt is made of."""

    messages: tuple[Message, ...]
    tools_json: tuple[str, ...]
    enable_thinking: bool
    preserve_thinking: bool


def chats(kind: Kind) -> st.SearchStrategy[Chat]:
    """Random conversations, thousands in a few seconds: the strategy draws a seed only, so it is no good at making
    a failing one smaller.
    """
    return st.integers(0, 2**32 - 1).map(lambda seed: _Maker(random.Random(seed), kind).chat())


class _Maker:
    def __init__(self, rng: random.Random, kind: Kind) -> None:
        self._rng = rng
        self._kind = kind

    def chat(self) -> Chat:
        """A system prompt or none, then questions and answers by turns, a question last."""
        rng, kind = self._rng, self._kind
        messages = [Message("system", (TextPart(self._text()),))] if rng.random() < 0.5 else []
        for _ in range(rng.randrange(4)):
            messages.append(Message("user", self._parts()))
            calls = tuple(self._call() for _ in range(rng.choice([0, 0, 1, 2]))) if kind.tools else ()
            reasoning = self._text() if kind.reasoning and rng.random() < 0.5 else ""
            messages.append(Message("assistant", (TextPart(self._text()),), reasoning=reasoning, tool_calls=calls))
            messages += [Message("tool", (TextPart(self._text()),)) for _ in calls]
        if not messages or messages[-1].role != "tool" or rng.random() < 0.5:
            messages.append(Message("user", self._parts()))
        tools = tuple(self._definition() for _ in range(rng.randrange(3))) if kind.tools else ()
        return Chat(tuple(messages), tools, rng.random() < 0.5, rng.random() < 0.5)

    def _text(self) -> str:
        rng = self._rng
        words = [self._word() for _ in range(rng.choice([0, 1, 1, 2, 3, 5, 8, 20]))]
        return "".join(words)

    def _word(self) -> str:
        rng = self._rng
        if self._kind.hostile and rng.random() < 0.4:
            return rng.choice(_TYPED)
        if rng.random() < 0.1:
            # Any character but the halves of surrogate pairs.
            code = rng.choice(
                [rng.randrange(0x80), rng.randrange(0x800), rng.randrange(0xD800), rng.randrange(0x110000)]
            )
            return "" if 0xD800 <= code < 0xE000 else chr(code)
        return rng.choice(_ORDINARY)

    def _parts(self) -> tuple[Part, ...]:
        rng = self._rng
        if not self._kind.pictures or rng.random() < 0.5:
            return (TextPart(self._text()),) if rng.random() < 0.9 else ()
        return tuple(
            picture(rng.randrange(3)) if rng.random() < 0.5 else TextPart(self._text()) for _ in range(rng.randrange(5))
        )

    def _call(self) -> ToolCall:
        arguments = {self._text(): self._value(2) for _ in range(self._rng.randrange(3))}
        return ToolCall(self._text(), json.dumps(arguments, ensure_ascii=False))

    def _value(self, depth: int) -> Any:
        match self._rng.randrange(6 if depth else 4):
            case 0:
                return self._rng.choice([None, True, False, 7, -1.5])
            case 4:
                return [self._value(depth - 1) for _ in range(self._rng.randrange(3))]
            case 5:
                return {self._text(): self._value(depth - 1) for _ in range(self._rng.randrange(3))}
            case _:
                return self._text()

    def _definition(self) -> str:
        function = {"name": self._text(), "description": self._text(), "parameters": {self._text(): self._value(2)}}
        return json.dumps({"type": "function", "function": function}, ensure_ascii=False)


def texts_of(chat: Chat) -> list[str]:
    """Everything anybody typed or a model wrote."""
    messages = chat.messages
    calls = [text for message in messages for call in message.tool_calls for text in (call.name, call.arguments_json)]
    return [*calls, *chat.tools_json, *(text for message in messages for text in (message.text, message.reasoning))]


def rendered_openly(template: ChatTemplate, chat: Chat) -> str:
    """What the template makes of the conversation as it is."""
    return template.render(
        [_openly(message) for message in chat.messages],
        tools=[json.loads(text) for text in chat.tools_json] or None,
        add_generation_prompt=True,
        variables={"enable_thinking": chat.enable_thinking, "preserve_thinking": chat.preserve_thinking},
    )


def _openly(message: Message) -> dict[str, Any]:
    given: dict[str, Any] = {"role": message.role, "content": message.text.strip()}
    if message.images:
        # Not trimmed: the templates that take parts trim a message themselves.
        given["content"] = [
            {"type": "text", "text": part.text} if isinstance(part, TextPart) else {"type": "image"}
            for part in message.parts
        ]
    if message.reasoning.strip():
        given["reasoning_content"] = message.reasoning.strip()
    if message.tool_calls:
        given["tool_calls"] = [
            {"function": {"name": call.name, "arguments": json.loads(call.arguments_json)}}
            for call in message.tool_calls
        ]
    return given
