"""Where checkpoints belong: at the starts of turns, after pictures, before the answer's thought."""

import pytest

from qwendesk.core.messages import Message, TextPart, ToolCall, text_message
from qwendesk.engine.protocol import Begun
from qwendesk.engine.worker.prompt import ImagePlaceholder, Prompt, build_prompt
from qwendesk.engine.worker.template import BUILTIN_CHATML
from tests.engine.worker import templates
from tests.engine.worker.chats import picture
from tests.engine.worker.conftest import Demo
from tests.engine.worker.test_prompt import prompt_of

_CHATML = (
    "{%- for m in messages -%}{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' -}}{%- endfor -%}"
    "{{- '<|im_start|>assistant\\n' -}}"
)
_CHAT = (
    text_message("system", "Be brief."),
    text_message("user", "First?"),
    text_message("assistant", "One.", reasoning="Easy."),
    text_message("user", "Second?"),
)


def places(demo: Demo, prompt: Prompt) -> list[tuple[str, str, str]]:
    """Each boundary's kind, the end of what is read before it, and the beginning of what follows."""
    tokens: list[str] = []
    starts: list[int] = []
    for piece in prompt.pieces:
        starts.append(len(tokens))
        tokens += (
            ["[picture]"] if isinstance(piece, ImagePlaceholder) else [demo.detokenize([token]) for token in piece]
        )
    starts.append(len(tokens))
    indices = [(starts[boundary.piece] + boundary.offset, boundary.kind) for boundary in prompt.boundaries]
    assert [index for index, _ in indices] == sorted({index for index, _ in indices})
    return [(kind, "".join(tokens[:index])[-11:], "".join(tokens[index:])[:19]) for index, kind in indices]


@pytest.mark.parametrize("thinking", [True, False])
def test_turns_and_reasoning_have_boundaries(demo: Demo, thinking: bool) -> None:
    prompt = prompt_of(demo, demo.template, _CHAT, enable_thinking=thinking)
    assert places(demo, prompt) == [
        ("system", "<|im_end|>\n", "<|im_start|>user\nFi"),
        ("user_turn", "<|im_end|>\n", "<|im_start|>user\nSe"),
        ("reasoning", ">assistant\n", "<think>\n" if thinking else "<think>\n\n</think>\n\n"),
    ]
    assert prompt.opens_reasoning is thinking


def test_without_a_system_prompt_the_first_turn_starts_at_the_beginning(demo: Demo) -> None:
    prompt = prompt_of(demo, demo.template, [text_message("user", "Hi")])
    assert places(demo, prompt)[0] == ("system", "", "<|im_start|>user\nHi")


def test_tools_belong_to_the_system_prompt(demo: Demo) -> None:
    tool = '{"type": "function", "function": {"name": "look"}}'
    prompt = prompt_of(demo, templates.compiled(BUILTIN_CHATML), [text_message("user", "Hi")], [tool])
    assert places(demo, prompt)[0] == ("system", "<|im_end|>\n", "<|im_start|>user\nHi")


def test_boundary_follows_each_picture(demo: Demo) -> None:
    messages = (
        Message("user", (picture(1), TextPart("What?"), picture(2), picture(3))),
        text_message("assistant", "Red."),
        Message("user", (TextPart("And "), picture(1))),
    )
    kinds = [
        (kind, before[-9:], after[:7]) for kind, before, after in places(demo, prompt_of(demo, demo.template, messages))
    ]
    assert kinds == [
        ("system", "", "<|im_st"),
        ("image", "[picture]", "What?[p"),
        ("image", "[picture]", "[pictur"),
        ("image", "[picture]", "<|im_en"),
        ("user_turn", "im_end|>\n", "<|im_st"),
        ("image", "[picture]", "<|im_en"),
        ("reasoning", "ssistant\n", "<think>"),
    ]


def test_a_turn_may_begin_with_a_picture(demo: Demo) -> None:
    messages = (text_message("system", "Be brief."), Message("user", (picture(1), TextPart("What?"))))
    assert places(demo, prompt_of(demo, demo.template, messages))[:2] == [
        ("system", "<|im_end|>\n", "<|im_start|>user\n[p"),
        ("image", "r\n[picture]", "What?<|im_end|>\n<|i"),
    ]


def test_a_tools_result_starts_a_turn(demo: Demo) -> None:
    messages = (
        text_message("user", "Add."),
        Message("assistant", tool_calls=(ToolCall("add", '{"a": 1}'),)),
        text_message("tool", "3"),
        text_message("tool", "4"),
    )
    kinds = places(demo, prompt_of(demo, templates.compiled(templates.QWEN_LIKE), messages))
    assert [(kind, after) for kind, _, after in kinds] == [
        ("system", "<|im_start|>user\nAd"),
        ("tool_turn", "<tool_response>\n3\n<"),
        ("tool_turn", "<tool_response>\n4\n<"),
        ("reasoning", "<think>\n"),
    ]


def test_an_empty_question_has_no_boundary_of_its_own(demo: Demo) -> None:
    messages = (*_CHAT, text_message("assistant", "Two."), text_message("user", " \n"))
    kinds = [kind for kind, _, _ in places(demo, prompt_of(demo, demo.template, messages))]
    assert kinds == ["system", "user_turn", "reasoning"]


def test_reasoning_of_earlier_turns_is_not_a_reasoning_boundary(demo: Demo) -> None:
    """With a call of a tool the thought before it is still in the prompt."""
    messages = (
        text_message("user", "Add."),
        Message("assistant", reasoning="I call.", tool_calls=(ToolCall("add"),)),
        text_message("tool", "3"),
    )
    prompt = prompt_of(demo, templates.compiled(templates.QWEN_LIKE), messages)
    thoughts = [place for place in places(demo, prompt) if place[0] == "reasoning"]
    assert [after for _, _, after in thoughts] == ["<think>\n"]


def test_a_template_without_thoughts_has_no_thought_boundary(demo: Demo) -> None:
    prompt = prompt_of(demo, templates.compiled(templates.LLAMA_LIKE), _CHAT)
    assert "reasoning" not in [kind for kind, _, _ in places(demo, prompt)]
    assert not prompt.opens_reasoning


def test_a_template_without_thoughts_marks_its_generation_prompt(demo: Demo) -> None:
    prompt = prompt_of(demo, templates.compiled(_CHATML), _CHAT)
    assert places(demo, prompt)[-1] == ("generation", "ser\nSecond?", "<|im_end|>\n<|im_sta")


def test_continuing_an_answer_does_not_move_its_generation_prompt(demo: Demo) -> None:
    template = templates.compiled(_CHATML)
    begun = Begun(reasoning="Two words.", text="It is<|im_end|> two")
    going_on = build_prompt(
        template, demo.vocabulary, _CHAT, tools_json=(), enable_thinking=True, preserve_thinking=False, begun=begun
    )
    assert going_on.boundaries == prompt_of(demo, template, _CHAT).boundaries


def test_typed_think_tags_are_not_boundaries(demo: Demo) -> None:
    prompt = prompt_of(demo, templates.compiled(templates.LLAMA_LIKE), [text_message("user", "<think>")])
    assert not prompt.opens_reasoning
    assert not [boundary for boundary in prompt.boundaries if boundary.kind == "reasoning"]


@pytest.mark.parametrize("source", [templates.REPEATING, templates.MISTRAL_LIKE], ids=["repeating", "mistral"])
def test_templates_that_move_texts_lose_only_ambiguous_boundaries(demo: Demo, source: str) -> None:
    prompt = prompt_of(demo, templates.compiled(source), _CHAT)
    kinds = {boundary.kind for boundary in prompt.boundaries} - {"generation"}
    assert kinds <= {"system", "user_turn"}
    assert bool(kinds) is (source == templates.MISTRAL_LIKE)


def test_a_template_that_changes_texts_keeps_picture_and_thought_boundaries(demo: Demo) -> None:
    source = templates.UPPER_CASE + "{{ '<|im_start|>assistant\\n<think>\\n' }}"
    messages = (Message("user", (TextPart("Look: "), picture(1), TextPart(" what?"))),)
    prompt = prompt_of(demo, templates.compiled(source), messages)
    assert [(kind, after[:7]) for kind, _, after in places(demo, prompt)] == [
        ("image", " WHAT?<"),
        ("reasoning", "<think>"),
    ]
    assert prompt.opens_reasoning


def test_a_growing_conversation_keeps_the_tokens_before_its_last_answer(demo: Demo) -> None:
    """What the prompt cache lives from: the next turn's prompt begins as this one up to the thought."""
    before = prompt_of(demo, demo.template, _CHAT)
    after = prompt_of(demo, demo.template, (*_CHAT, text_message("assistant", "Two."), text_message("user", "Third?")))
    (first,), (second,) = before.pieces, after.pieces
    thought = before.boundaries[-1]
    assert thought.kind == "reasoning"
    assert not isinstance(first, ImagePlaceholder)
    assert not isinstance(second, ImagePlaceholder)
    assert first[: thought.offset] == second[: thought.offset]
