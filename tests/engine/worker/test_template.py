"""Chat templates: what they may rely on, and what is found out about them."""

from collections.abc import Sequence
from datetime import datetime

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import Message, ToolCall, text_message
from qwendesk.engine.worker.conversation import SpecialTexts, render_conversation
from qwendesk.engine.worker.template import BUILTIN_CHATML, ChatTemplate, probe_abilities
from tests.engine.worker import templates
from tests.engine.worker.conftest import Demo


def render(
    source: str, *messages: dict[str, object], tools: list[dict[str, object]] | None = None, **variables: object
) -> str:
    template = ChatTemplate(source, bos="<s>", eos="</s>")
    return template.render(messages, tools=tools, add_generation_prompt=True, variables=variables)


def user(content: object) -> dict[str, object]:
    return {"role": "user", "content": content}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("{{ {'a': '<é> & \\'b\\''} | tojson }}", """{"a": "<é> & 'b'"}"""),
        ("{{ {'b': 1, 'a': [2]} | tojson(indent=2, sort_keys=true) }}", '{\n  "a": [\n    2\n  ],\n  "b": 1\n}'),
        ("{{ ['é'] | tojson(ensure_ascii=true, separators=(',', ':')) }}", '["\\u00e9"]'),
        (
            "{% for i in range(9) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}{% endif %}"
            "{{ i }}{% endfor %}",
            "02",
        ),
        ("{% generation %}a{{ 1 + 1 }}{% endgeneration %}b", "a2b"),
        ("{{ bos_token }}{{ eos_token }}", "<s></s>"),
        (
            "{{ '%s-%03d' % ('a', 7) }} {{ '%s|%s' | format('a', 'b') }} {{ '{:>3}|{x}'.format(1, x=2) }}",
            "a-007 a|b   1|2",
        ),
        ("{{ 'a' ~ 1 ~ none }} {{ 'ab' * 2 }} {{ 2 ** 3 }} {{ 7 % 4 }} {{ [1] + [2] }}", "a1None abab 8 3 [1, 2]"),
        ("{{ ['a', 'b'] | join(', ') }} {{ [{'n': 1}, {'n': 2}] | sum('n') }} {{ 2.567 | round(2) }}", "a, b 3 2.57"),
        ("{{ 'a\nb' | indent(2) }} {{ 'x' | center(5) }}|{{ 'aaa' | replace('a', 'b', 2) }}", "a\n  b   x  |bba"),
        (
            "{{ '-'.join(['a', 'b']) }} {{ 'a'.ljust(3) }}| {{ 'aa'.replace('a', 'b') }} {{ '7'.zfill(3) }}",
            "a-b a  | bb 007",
        ),
        ("  {% if true %}\n  a\n  {% endif %}\nb", "  a\nb"),
        ("{{ [1, 2, 3] | batch(2) | list }} {{ [1, 2, 3] | slice(2) | list }}", "[[1, 2], [3]] [[1, 2], [3]]"),
        ("{{ 'one two three' | wordwrap(8) }}", "one two\nthree"),
        ("{{ messages[0].content }}{{ messages | length }}{{ add_generation_prompt }}", "Hi1True"),
        ("{{ tools is none }} {{ documents is none }} {{ nothing is defined }}", "True True False"),
    ],
)
def test_templates_have_the_functions_they_expect(source: str, expected: str) -> None:
    assert render(source, user("Hi")) == expected


def test_strftime_now_returns_todays_date() -> None:
    before = datetime.now().astimezone().strftime("%d %b %Y")
    shown = render("{{ strftime_now('%d %b %Y') }}")
    assert shown in (before, datetime.now().astimezone().strftime("%d %b %Y"))


def test_raise_exception_reports_the_templates_message() -> None:
    with pytest.raises(BadRequest) as caught:
        render("{{ raise_exception('Roles must alternate!') }}")
    assert caught.value.title == "The chat template refuses this chat"
    assert caught.value.sentence == "Roles must alternate!"


@pytest.mark.parametrize(
    ("source", "line"),
    [("a\n{% if %}", "Line 2: "), ("\n\n{% nonsense %}", "Line 3: "), ("{{ 'a }}", "Line 1: ")],
)
def test_a_broken_template_is_named_with_its_line(source: str, line: str) -> None:
    with pytest.raises(BadRequest) as caught:
        ChatTemplate(source)
    assert caught.value.title == "Broken chat template"
    assert caught.value.sentence.startswith(line)


@pytest.mark.parametrize(
    ("source", "sentence"),
    [
        ("a\n{{ nothing.at.all }}", "Line 2: 'nothing' is undefined."),
        ("{{ 1 / 0 }}", "Line 1: division by zero."),
        ("{{ 'a' + 1 }}", 'Line 1: can only concatenate str (not "int") to str.'),
        ("\n\n{{ messages[7].content }}", "Line 3: list object has no element 7."),
    ],
)
def test_a_failing_template_is_a_request_error_with_its_line(source: str, sentence: str) -> None:
    with pytest.raises(BadRequest) as caught:
        render(source)
    assert caught.value.sentence == sentence


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.append(1) }}",
        "{{ ''.__class__.__mro__ }}",
        "{{ raise_exception.__globals__.os }}",
        "{{ 'a'.encode() }}",
        "{{ (1).to_bytes(9, 'big') }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{% include 'file' %}",
        "{{ lipsum(9) }}",
    ],
)
def test_templates_cannot_access_python_internals(source: str) -> None:
    with pytest.raises(BadRequest):
        render(source)


def test_the_demo_template_honours_thinking(demo: Demo) -> None:
    abilities = probe_abilities(demo.template, "model")
    assert (abilities.source, abilities.enable_thinking) == ("model", True)
    assert (abilities.preserve_thinking, abilities.tools) == (False, True)


@pytest.mark.parametrize("source", [BUILTIN_CHATML, templates.QWEN_LIKE], ids=["built in", "like Qwen's"])
def test_template_with_all_abilities_is_recognised(source: str) -> None:
    abilities = probe_abilities(ChatTemplate(source), "builtin")
    assert (abilities.enable_thinking, abilities.preserve_thinking, abilities.tools) == (True, True, True)


def test_template_without_abilities_is_recognised() -> None:
    abilities = probe_abilities(ChatTemplate(templates.LLAMA_LIKE), "file")
    assert (abilities.enable_thinking, abilities.preserve_thinking, abilities.tools) == (False, False, False)


def test_values_of_the_reasoning_effort_are_found_by_rendering_them() -> None:
    abilities = probe_abilities(ChatTemplate(templates.WITH_EFFORT), "model")

    assert abilities.reasoning_efforts == ("low", "medium", "xhigh")
    assert abilities.default_effort == "xhigh"


def test_template_that_keeps_earlier_reasoning_by_itself_is_recognised() -> None:
    keeps, drops = (
        probe_abilities(ChatTemplate(source), "model") for source in (templates.WITH_EFFORT, templates.QWEN_LIKE)
    )

    assert (keeps.preserve_thinking, keeps.preserves_by_default) == (True, True)
    assert (drops.preserve_thinking, drops.preserves_by_default) == (True, False)
    assert drops.reasoning_efforts == ()


@pytest.mark.parametrize(("source", "dialect"), [(templates.QWEN_LIKE, "xml"), (templates.WITH_JSON_CALLS, "json")])
def test_dialect_is_that_of_the_call_and_not_of_the_example_before_it(source: str, dialect: str) -> None:
    example = render(source, user("Question"), tools=[{"type": "function", "function": {"name": "probe"}}])
    assert "<tool_call>" in example
    assert probe_abilities(ChatTemplate(source), "model").call_dialect == dialect


def test_known_fault_of_calls_is_found_and_does_not_happen_here() -> None:
    faulty = templates.QWEN_LIKE
    guarded = "in (call.arguments if call.arguments is mapping else {}) | items"
    corrected = faulty.replace("in call.arguments | items", guarded)
    assert corrected != faulty
    assert [probe_abilities(ChatTemplate(each), "model").needs_parsed_calls for each in (faulty, corrected)] == [
        True, False,
    ]  # fmt: skip
    assert not probe_abilities(ChatTemplate(templates.WITH_JSON_CALLS), "model").needs_parsed_calls
    call = ToolCall("read", '{"path": "a.txt", "lines": [1, 2]}')
    chat = (text_message("user", "Read it"), Message("assistant", tool_calls=(call,)), text_message("tool", "text"))
    written = [prompt_text(each, chat) for each in (faulty, corrected)]
    assert written[0] == written[1]
    assert "<parameter=path>\na.txt\n</parameter>" in written[0]


def prompt_text(source: str, chat: Sequence[Message]) -> str:
    """Return the prompt of a chat, as the worker renders it with this template."""
    rendered = render_conversation(
        ChatTemplate(source), chat, tools_json=(), typed=SpecialTexts(()), variables={"preserve_thinking": True}
    )
    return "".join(piece if isinstance(piece, str) else piece.text for piece in rendered.pieces)


def test_ability_that_makes_the_template_fail_does_not_count() -> None:
    source = "{{ raise_exception('No tools') if tools else messages[0].content }}"
    assert not probe_abilities(ChatTemplate(source), "model").tools


def test_a_template_that_cannot_render_a_plain_question_cannot_be_probed() -> None:
    with pytest.raises(BadRequest, match="never"):
        probe_abilities(ChatTemplate("{{ raise_exception('never') }}"), "model")


def test_builtin_template_writes_chatml() -> None:
    content = [{"type": "image"}, {"type": "text", "text": " What? "}]
    system: dict[str, object] = {"role": "system", "content": "Be brief."}
    answer: dict[str, object] = {"role": "assistant", "content": "Red.", "reasoning_content": "I look."}
    assert render(BUILTIN_CHATML, system, user(content), answer, user("Sure?")) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n"
        "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|> What?<|im_end|>\n"
        "<|im_start|>assistant\nRed.<|im_end|>\n"
        "<|im_start|>user\nSure?<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n"
    )


def test_builtin_template_keeps_thoughts_when_asked_and_switches_thinking_off() -> None:
    answer: dict[str, object] = {"role": "assistant", "content": "Red.", "reasoning_content": "I look."}
    shown = render(BUILTIN_CHATML, user("What?"), answer, user("Sure?"), preserve_thinking=True, enable_thinking=False)
    assert "assistant\n<think>\nI look.\n</think>\n\nRed.<|im_end|>" in shown
    assert shown.endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")


def test_builtin_template_shows_tools_calls_and_results() -> None:
    call = {"type": "function", "function": {"name": "add", "arguments": {"a": 1}}}
    answer: dict[str, object] = {
        "role": "assistant",
        "content": "",
        "reasoning_content": "I add.",
        "tool_calls": [call, call],
    }
    results: list[dict[str, object]] = [{"role": "tool", "content": "3"}, {"role": "tool", "content": "4"}]
    shown = render(BUILTIN_CHATML, user("Add"), answer, *results, tools=[{"name": "add"}])
    assert shown.startswith("<|im_start|>system\nYou can call these tools.")
    assert '\n{"name": "add"}\n' in shown
    written = '<tool_call>\n{"name": "add", "arguments": {"a": 1}}\n</tool_call>'
    assert f"<think>\nI add.\n</think>\n\n{written}\n{written}<|im_end|>\n" in shown
    assert (
        "<|im_start|>user\n<tool_response>\n3\n</tool_response>\n<tool_response>\n4\n</tool_response><|im_end|>\n"
        in shown
    )
