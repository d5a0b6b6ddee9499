"""Chat templates of other families, written for these tests, and some that do odd things."""

import functools

from qwendesk.engine.worker.template import ChatTemplate

_CALL_IN_XML = """\
      {{- ('\\n\\n' if text else '') + '<tool_call>\\n<function=' + call.name + '>\\n' -}}
      {%- for name, value in call.arguments | items -%}
        {{- '<parameter=' + name + '>\\n' -}}
        {{- value | tojson if value is mapping or (value is sequence and value is not string) else value | string -}}
        {{- '\\n</parameter>\\n' -}}
      {%- endfor -%}
      {{- '</function>\\n</tool_call>' -}}
"""
_CALL_IN_JSON = """\
      {{- ('\\n' if text else '') + '<tool_call>\\n{"name": "' + call.name + '", "arguments": ' -}}
      {{- (call.arguments | tojson) + '}\\n</tool_call>' -}}
"""
_BEFORE_CALL = """\
{%- macro body(content) -%}
  {%- if content is string -%}{{- content -}}
  {%- else -%}
    {%- for item in content -%}
      {%- if 'image' in item or item.type == 'image' -%}{{- '<|vision_start|><|image_pad|><|vision_end|>' -}}
      {%- elif 'text' in item -%}{{- item.text -}}
      {%- else -%}{{- raise_exception('What is this?') -}}
      {%- endif -%}
    {%- endfor -%}
  {%- endif -%}
{%- endmacro -%}
{%- if not messages -%}{{- raise_exception('Nothing was said.') -}}{%- endif -%}
{%- if tools -%}
  {{- '<|im_start|>system\\nTools:\\n<tools>' -}}
  {%- for tool in tools -%}{{- '\\n' + (tool | tojson) -}}{%- endfor -%}
  {{- '\\n</tools>\\nAnswer with <tool_call>\\n<function=NAME>\\n</function>\\n</tool_call>' -}}
  {%- if messages[0].role == 'system' -%}{{- '\\n\\n' + body(messages[0].content) | trim -}}{%- endif -%}
  {{- '<|im_end|>\\n' -}}
{%- elif messages[0].role == 'system' -%}
  {{- '<|im_start|>system\\n' + body(messages[0].content) | trim + '<|im_end|>\\n' -}}
{%- endif -%}
{%- set last = namespace(question=messages | length - 1, searching=true) -%}
{%- for m in messages[::-1] -%}
  {%- set text = body(m.content) | trim -%}
  {%- if last.searching and m.role == 'user'
      and not (text.startswith('<tool_response>') and text.endswith('</tool_response>')) -%}
    {%- set last.searching = false -%}
    {%- set last.question = messages | length - 1 - loop.index0 -%}
  {%- endif -%}
{%- endfor -%}
{%- for m in messages -%}
  {%- set text = body(m.content) | trim -%}
  {%- if m.role == 'system' -%}
    {%- if not loop.first -%}{{- raise_exception('The system message comes first.') -}}{%- endif -%}
  {%- elif m.role == 'user' -%}{{- '<|im_start|>user\\n' + text + '<|im_end|>\\n' -}}
  {%- elif m.role == 'assistant' -%}
    {%- set thought = '' -%}
    {%- if m.reasoning_content is string -%}{%- set thought = m.reasoning_content -%}
    {%- elif '</think>' in text -%}
      {%- set thought = text.split('</think>')[0].split('<think>')[-1] -%}
      {%- set text = text.split('</think>')[-1].lstrip('\\n') -%}
    {%- endif -%}
    {{- '<|im_start|>assistant\\n' -}}
    {%- if loop.index0 > last.question or preserve_thinking -%}
      {{- '<think>\\n' + thought | trim + '\\n</think>\\n\\n' -}}
    {%- endif -%}
    {{- text -}}
    {%- for call in m.tool_calls or [] -%}
      {%- set call = call.function -%}
"""
_AFTER_CALL = """\
    {%- endfor -%}
    {{- '<|im_end|>\\n' -}}
  {%- elif m.role == 'tool' -%}
    {%- if loop.previtem and loop.previtem.role != 'tool' -%}{{- '<|im_start|>user' -}}{%- endif -%}
    {{- '\\n<tool_response>\\n' + text + '\\n</tool_response>' -}}
    {%- if loop.last or loop.nextitem.role != 'tool' -%}{{- '<|im_end|>\\n' -}}{%- endif -%}
  {%- endif -%}
{%- endfor -%}
{%- if add_generation_prompt -%}
  {{- '<|im_start|>assistant\\n' -}}
  {{- '<think>\\n\\n</think>\\n\\n' if enable_thinking is defined and enable_thinking is false else '<think>\\n' -}}
{%- endif -%}
"""
QWEN_LIKE = _BEFORE_CALL + _CALL_IN_XML + _AFTER_CALL
WITH_JSON_CALLS = _BEFORE_CALL.replace("<function=NAME>\\n</function>", '{"name": NAME}') + _CALL_IN_JSON + _AFTER_CALL
"""Writes calls as the families before Qwen3.5 do."""

WITH_EFFORT = """\
{%- set effort = reasoning_effort | default('xhigh') -%}
{%- if enable_thinking is not defined or enable_thinking -%}
  {%- if effort == 'high' -%}{%- set effort = 'xhigh' -%}{%- endif -%}
  {%- if effort not in ['low', 'medium', 'xhigh'] -%}{{- raise_exception('Unknown effort: ' + effort) -}}{%- endif -%}
  {%- if effort != 'medium' -%}{{- '<|im_start|>system\\nEffort: ' + effort + '<|im_end|>\\n' -}}{%- endif -%}
{%- endif -%}
{%- for m in messages -%}
  {{- '<|im_start|>' + m.role + '\\n' -}}
  {%- if m.reasoning_content and (preserve_thinking is not defined or preserve_thinking) -%}
    {{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' -}}
  {%- endif -%}
  {{- m.content + '<|im_end|>\\n' -}}
{%- endfor -%}
{{- '<|im_start|>assistant\\n<think>\\n' -}}
"""
"""Takes a reasoning effort, refuses values that it doesn't know, and keeps earlier reasoning unless told not to."""

LLAMA_LIKE = """\
{{- bos_token -}}
{%- for m in messages -%}
  {{- '<|start_header_id|>' + m.role + '<|end_header_id|>\\n\\n' + m['content'] | trim + '<|eot_id|>' -}}
{%- endfor -%}
{%- if add_generation_prompt -%}{{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' -}}{%- endif -%}
"""

MISTRAL_LIKE = """\
{%- if messages[0].role == 'system' -%}{%- set system = messages[0].content -%}{%- set messages = messages[1:] -%}
{%- else -%}{%- set system = '' -%}{%- endif -%}
{{- bos_token -}}
{%- for m in messages -%}
  {%- if (m.role == 'user') != (loop.index0 % 2 == 0) -%}{{- raise_exception('Roles must take turns.') -}}{%- endif -%}
  {%- if m.role == 'user' -%}
    {{- '[INST] ' + (system + '\\n\\n' if loop.last and system else '') + m.content + '[/INST]' -}}
  {%- else -%}{{- ' ' + m.content + eos_token -}}
  {%- endif -%}
{%- endfor -%}
"""
"""Puts the system prompt into the last question, so texts do not come in order."""

_ODD = "{%%- for m in messages -%%}{{- '<|im_start|>' + m.role + '\\n' + %s + '<|im_end|>\\n' -}}{%%- endfor -%%}"
UPPER_CASE = _ODD % "m.content | upper"
LOWER_CASE = _ODD % "m.content | lower"
REPEATING = _ODD % "m.content + '\\n' + m.content"
SHORTENING = _ODD % "m.content[:9]"
"""Shows the first characters of each message only."""


@functools.cache
def compiled(source: str) -> ChatTemplate:
    """The template, with tokens of the demo model as its first and last one."""
    return ChatTemplate(source, bos="<|endoftext|>", eos="<|im_end|>")
