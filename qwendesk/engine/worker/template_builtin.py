"""The built-in chat template, in Qwen's variant of ChatML, for models that have none or one that cannot be used.

Reasoning before the last question is dropped unless `preserve_thinking` is set. An answer after the last question
always has a `<think>` block, even an empty one, as when it was generated. `has_think_tokens` is false if `<think>` is
plain text for the model.
"""

BUILTIN_CHATML = """\
{%- macro shown(content) -%}
    {%- if content is string -%}
        {{- content -}}
    {%- elif content -%}
        {%- for part in content -%}
            {{- part.text if part.type == 'text' else '<|vision_start|><|image_pad|><|vision_end|>' -}}
        {%- endfor -%}
    {%- endif -%}
{%- endmacro -%}
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
