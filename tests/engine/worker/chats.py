"""Random conversations, and how a template renders them when nothing is hidden from it."""

import json
from typing import Any

from hypothesis import strategies as st

from qwendesk.core.messages import ImagePart, Message, Part, TextPart, ToolCall
from qwendesk.engine.worker.template import ChatTemplate

_ORDINARY = [
    "Hello", "what is", "the", "VRAM", "a", "I", "?", "?\n", "!", "...", ".", ",", ":", ";", " ", "  ", "    ", "\n",
    "\n\n", "\r\n", "\t", "17 + 25", "3.14", "1,000,000", "'s", "don't", "Don’t", "é", "e\u0301", "ß", "你好", "日本語",
    "Привет", "שלום", "مرحبا", "🙂", "👩‍👩‍👧", "🇩🇪", "\u200b", "\u00a0", "\ufeff", "<", ">", "</", "<|", "|>", "<b>",
    "think", "/think", "im_end", "{{ x }}", "{% if %}", "```python\nprint('x')\n```", "| a | b |", "$x^2$", "\\n", "\\",
    '"', "{}", "[INST]", "user\n", "assistant\n", "https://example.org/?q=1&r=2", "\x00", "\x1f", "\u2028",
]  # fmt: skip
_TYPED = [
    "<|im_start|>", "<|im_end|>", "<|endoftext|>", "<think>", "</think>", "<tool_call>", "</tool_call>",
    "<tool_response>", "</tool_response>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>",
    "<|vision_start|><|image_pad|><|vision_end|>", "<|im_end|>\n<|im_start|>system\n", "<thi", "nk>", "<|im_", "end|>",
    "<<think>", "</</think>think>", "<THINK>", "<|IM_END|>", "<think", "/think>",
]  # fmt: skip

ordinary_text = st.lists(st.sampled_from(_ORDINARY) | st.text(max_size=3), max_size=12).map("".join)
hostile_text = st.lists(st.sampled_from(_TYPED) | st.sampled_from(_ORDINARY), max_size=8).map("".join)


def picture(number: int) -> ImagePart:
    return ImagePart(f"picture-{number}.png", f"{number:064x}")


def parts(text: st.SearchStrategy[str], *, pictures: bool) -> st.SearchStrategy[tuple[Part, ...]]:
    part: st.SearchStrategy[Part] = st.builds(TextPart, text)
    if pictures:
        part |= st.builds(picture, st.integers(0, 3))
    return st.lists(part, max_size=3).map(tuple)


def calls(text: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[ToolCall, ...]]:
    value = st.recursive(
        text | st.integers(-9, 9) | st.booleans() | st.none(),
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(text, inner, max_size=2),
        max_leaves=4,
    )
    arguments = st.dictionaries(text, value, max_size=2).map(lambda value: json.dumps(value, ensure_ascii=False))
    return st.lists(st.builds(ToolCall, text, arguments), max_size=2).map(tuple)


@st.composite
def chats(
    draw: st.DrawFn,
    text: st.SearchStrategy[str] = ordinary_text,
    *,
    pictures: bool = False,
    tools: bool = False,
    reasoning: bool = True,
) -> tuple[Message, ...]:
    """A system prompt or none, then questions and answers by turns, a question last."""
    messages = [Message("system", (TextPart(draw(text)),))] if draw(st.booleans()) else []
    for _ in range(draw(st.integers(0, 3))):
        messages.append(Message("user", draw(parts(text, pictures=pictures))))
        messages.append(
            Message(
                "assistant",
                draw(parts(text, pictures=False)),
                reasoning=draw(text) if reasoning else "",
                tool_calls=draw(calls(text)) if tools else (),
            )
        )
        messages += [Message("tool", draw(parts(text, pictures=False))) for _ in messages[-1].tool_calls]
    return (*messages, Message("user", draw(parts(text, pictures=pictures))))


def tool_definitions(text: st.SearchStrategy[str]) -> st.SearchStrategy[list[str]]:
    function = st.fixed_dictionaries({"name": text, "description": text})
    definition = st.fixed_dictionaries({"type": st.just("function"), "function": function})
    return st.lists(definition.map(lambda value: json.dumps(value, ensure_ascii=False)), max_size=2)


def texts_of(messages: tuple[Message, ...]) -> list[str]:
    """Everything anybody typed or a model wrote."""
    calls = [text for message in messages for call in message.tool_calls for text in (call.name, call.arguments_json)]
    return [*calls, *(text for message in messages for text in (message.text, message.reasoning))]


def rendered_openly(
    template: ChatTemplate,
    messages: tuple[Message, ...],
    *,
    tools_json: list[str] | tuple[()] = (),
    enable_thinking: bool = True,
    preserve_thinking: bool = False,
) -> str:
    """What the template makes of the conversation as it is."""
    return template.render(
        [_openly(message) for message in messages],
        tools=[json.loads(text) for text in tools_json] or None,
        add_generation_prompt=True,
        variables={"enable_thinking": enable_thinking, "preserve_thinking": preserve_thinking},
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
            {"function": {"name": call.name, "arguments": json.loads(call.arguments_json)}} for call in message.tool_calls
        ]
    return given
