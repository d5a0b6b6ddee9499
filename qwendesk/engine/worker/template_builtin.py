"""The built-in chat templates, for models that have none or one that cannot be used.

A model gets that of its family, if the family's marks are single tokens of its vocabulary. `BUILTIN_CHATML` is Qwen's
variant of ChatML, with tools and thinking, for a model that was trained to chat.
"""

from collections.abc import Container

import msgspec

from qwendesk.core.generation_options import ChatFormat


class TurnMarks(msgspec.Struct, frozen=True, kw_only=True):
    """The text before and after each turn."""

    needs: tuple[str, ...] = ()
    """Tokens without which it is only noise to the model."""
    user: tuple[str, str]
    answer: tuple[str, str]
    system: tuple[str, str] | None = None
    """None if the system prompt stands at the beginning of the first question."""
    stops: tuple[str, ...] = ()
    """Texts at which an answer ends, because the model goes on with the next turn. Tokens that end a text, and those
    in `needs`, always end it."""

    @property
    def source(self) -> str:
        """The Jinja template."""
        values = {"user": self.user, "answer": self.answer, "system": self.system or (self.user[0], "\n\n")}
        head = f"{{%- set marks = {values!r} -%}}{{%- set joins_system = {self.system is None} -%}}"
        return _PICTURES + head + _TURNS


def usable_formats(special: Container[str]) -> tuple[ChatFormat, ...]:
    """Return the formats for a model with these special tokens, the most fitting one first."""
    return tuple(name for name, marks in FORMATS.items() if all(mark in special for mark in marks.needs))


_PICTURES = """\
{%- macro shown(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content -%}
        {%- for part in content -%}
            {{- part.text if part.type == 'text' else '<|vision_start|><|image_pad|><|vision_end|>' -}}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
"""
_TURNS = """\
{%- set seen = namespace(open=false) -%}
{%- for message in messages -%}
    {%- set text = shown(message.content) | trim -%}
    {%- if message.role == 'system' -%}
        {{- marks.system[0] + text + marks.system[1] -}}
        {%- set seen.open = joins_system -%}
    {%- elif message.role == 'assistant' -%}
        {{- marks.user[1] if seen.open else '' -}}
        {%- set seen.open = false -%}
        {{- marks.answer[0] + text + marks.answer[1] -}}
    {%- else -%}
        {{- ('' if seen.open else marks.user[0]) + text + marks.user[1] -}}
        {%- set seen.open = false -%}
    {%- endif -%}
{%- endfor -%}
{{- marks.user[1] if seen.open else '' -}}
{{- marks.answer[0].rstrip(' ') -}}
"""

FORMATS: dict[ChatFormat, TurnMarks] = {
    "gemma": TurnMarks(
        needs=("<start_of_turn>", "<end_of_turn>"),
        user=("<start_of_turn>user\n", "<end_of_turn>\n"),
        answer=("<start_of_turn>model\n", "<end_of_turn>\n"),
    ),
    "llama3": TurnMarks(
        needs=("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"),
        user=("<|start_header_id|>user<|end_header_id|>\n\n", "<|eot_id|>"),
        answer=("<|start_header_id|>assistant<|end_header_id|>\n\n", "<|eot_id|>"),
        system=("<|start_header_id|>system<|end_header_id|>\n\n", "<|eot_id|>"),
    ),
    "mistral": TurnMarks(needs=("[INST]", "[/INST]"), user=("[INST] ", "[/INST]"), answer=(" ", "</s>")),
    "chatml": TurnMarks(
        needs=("<|im_start|>", "<|im_end|>"),
        user=("<|im_start|>user\n", "<|im_end|>\n"),
        answer=("<|im_start|>assistant\n", "<|im_end|>\n"),
        system=("<|im_start|>system\n", "<|im_end|>\n"),
    ),
    "plain": TurnMarks(
        user=("User: ", "\n"),
        answer=("Assistant: ", "\n"),
        system=("", "\n\n"),
        stops=("\nUser:", "\nAssistant:", "User:", "Assistant:"),
    ),
    "none": TurnMarks(user=("", ""), answer=("", "\n\n"), system=("", "\n\n")),
}

# Reasoning before the last question is dropped unless `preserve_thinking` is set. An answer after the last question
# always has a `<think>` block, even an empty one, as when it was generated. `has_think_tokens` is false if `<think>` is
# plain text for the model.
BUILTIN_CHATML = (
    _PICTURES
    + """\
{%- set seen = namespace(question=-1, system='', open_tools=false) -%}
{%- for message in messages -%}
    {%- if message.role == 'user' -%}{%- set seen.question = loop.index0 -%}{%- endif -%}
{%- endfor -%}
{%- set thinks = has_think_tokens is not defined or has_think_tokens -%}
{%- set first_is_system = messages and messages[0].role == 'system' -%}
{%- if first_is_system or tools -%}
    {{- '<|im_start|>system\\n' -}}
    {%- if first_is_system -%}{{- shown(messages[0].content) | trim -}}{%- endif -%}
    {%- if tools -%}
        {{- '\\n\\n' if first_is_system and messages[0].content else '' -}}
        {{- 'You can call these tools. Each line describes one:\\n' -}}
        {%- for tool in tools -%}{{- tool | tojson + '\\n' -}}{%- endfor -%}
        {{- 'To call one, write its name and arguments as JSON:\\n' -}}
        {{- '<tool_call>\\n{"name": "...", "arguments": {...}}\\n</tool_call>' -}}
    {%- endif -%}
    {{- '<|im_end|>\\n' -}}
{%- endif -%}
{%- for message in messages -%}
    {%- set text = shown(message.content) | trim -%}
    {%- if message.role == 'tool' -%}
        {{- '<|im_start|>user' if not seen.open_tools else '' -}}
        {%- set seen.open_tools = true -%}
        {{- '\\n<tool_response>\\n' + text + '\\n</tool_response>' -}}
        {%- if loop.last or loop.nextitem.role != 'tool' -%}
            {%- set seen.open_tools = false -%}
            {{- '<|im_end|>\\n' -}}
        {%- endif -%}
    {%- elif message.role == 'assistant' -%}
        {{- '<|im_start|>assistant\\n' -}}
        {%- set thought = (message.reasoning_content or '') | trim -%}
        {%- if thinks and (loop.index0 > seen.question or (preserve_thinking and thought)) -%}
            {{- '<think>\\n' + thought + '\\n</think>\\n\\n' -}}
        {%- endif -%}
        {{- text -}}
        {%- for call in message.tool_calls or [] -%}
            {{- '\\n' if text or not loop.first else '' -}}
            {{- '<tool_call>\\n' + call.function | tojson + '\\n</tool_call>' -}}
        {%- endfor -%}
        {{- '<|im_end|>\\n' -}}
    {%- elif not (loop.first and first_is_system) -%}
        {{- '<|im_start|>' + message.role + '\\n' + text + '<|im_end|>\\n' -}}
    {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{- '<|im_start|>assistant\\n' -}}
    {%- if thinks -%}
        {{- '<think>\\n' -}}
        {%- if enable_thinking is defined and not enable_thinking -%}{{- '\\n</think>\\n\\n' -}}{%- endif -%}
    {%- endif -%}
{%- endif -%}
"""
)
