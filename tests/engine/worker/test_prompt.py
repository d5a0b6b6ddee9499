"""Ordinary conversations become exactly the tokens of the whole rendered text."""

import contextlib
from collections.abc import Sequence

import pytest
from hypothesis import assume, given, settings

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ImagePart, Message, TextPart, ToolCall, text_message
from qwendesk.engine.worker.prompt import ImagePlaceholder, Piece, Prompt, build_prompt
from qwendesk.engine.worker.template import BUILTIN_CHATML, ChatTemplate
from tests.engine.worker import templates
from tests.engine.worker.chats import Chat, Kind, chats, picture, rendered_openly, texts_of
from tests.engine.worker.conftest import Demo

_TRIPLE = "<|vision_start|><|image_pad|><|vision_end|>"


def pieces_of_text(demo: Demo, rendered: str, pictures: Sequence[ImagePart]) -> tuple[Piece, ...]:
    """The whole text tokenised with its special tokens, pictures in place of what stands for them."""
    runs = [tuple(demo.tokenize(text, parse_special=True)) for text in rendered.split(_TRIPLE)]
    pieces: list[Piece] = [runs[0]]
    for image, run in zip(pictures, runs[1:], strict=True):
        pieces += [ImagePlaceholder(image), run]
    return tuple(piece for piece in pieces if piece)


def prompt_of(
    demo: Demo,
    template: ChatTemplate,
    messages: Sequence[Message],
    tools_json: Sequence[str] = (),
    *,
    enable_thinking: bool = True,
    preserve_thinking: bool = False,
) -> Prompt:
    return build_prompt(
        template,
        demo.vocabulary,
        messages,
        tools_json=tools_json,
        enable_thinking=enable_thinking,
        preserve_thinking=preserve_thinking,
    )


def assert_same_as_whole_text(demo: Demo, template: ChatTemplate, chat: Chat) -> None:
    typed = "\n".join(texts_of(chat))
    # The template like Qwen's writes ">" after names of tools and arguments, which may complete a typed token.
    completed = ">".join(texts_of(chat)).replace('"', ">")
    specials = (*demo.vocabulary.control, *demo.vocabulary.user_defined)
    assume(not any(special in typed or special in completed for special in specials))
    whole = rendered_openly(template, chat)
    prompt = prompt_of(
        demo,
        template,
        chat.messages,
        chat.tools_json,
        enable_thinking=chat.enable_thinking,
        preserve_thinking=chat.preserve_thinking,
    )
    images = [image for message in chat.messages for image in message.images]
    assert prompt.pieces == pieces_of_text(demo, whole, images)


@pytest.mark.parametrize(("effort", "expected"), [("", "Effort: xhigh"), ("low", "Effort: low")])
def test_template_is_told_the_reasoning_effort(demo: Demo, effort: str, expected: str) -> None:
    question = [text_message("user", "Why?")]
    prompt = build_prompt(
        ChatTemplate(templates.WITH_EFFORT), demo.vocabulary, question,
        tools_json=(), enable_thinking=True, preserve_thinking=False, reasoning_effort=effort,
    )  # fmt: skip
    wanted = demo.tokenize(f"<|im_start|>system\n{expected}<|im_end|>\n", parse_special=True)
    assert prompt.pieces[0][: len(wanted)] == tuple(wanted)


@settings(max_examples=1500)
@given(chat=chats(Kind(pictures=True)))
def test_demo_template_gives_the_tokens_of_the_whole_text(demo: Demo, chat: Chat) -> None:
    assert_same_as_whole_text(demo, demo.template, chat)


@pytest.mark.parametrize("source", [templates.QWEN_LIKE, BUILTIN_CHATML], ids=["like Qwen's", "built in"])
@settings(max_examples=300)
@given(chat=chats(Kind(pictures=True, tools=True)))
def test_templates_with_tools_give_the_tokens_of_the_whole_text(demo: Demo, source: str, chat: Chat) -> None:
    assert_same_as_whole_text(demo, templates.compiled(source), chat)


_FOREIGN = {
    "llama": templates.LLAMA_LIKE,
    "mistral": templates.MISTRAL_LIKE,
    "upper case": templates.UPPER_CASE,
    "lower case": templates.LOWER_CASE,
    "repeating": templates.REPEATING,
    "shortening": templates.SHORTENING,
}


@pytest.mark.parametrize("name", _FOREIGN)
@settings(max_examples=120)
@given(chat=chats(Kind(reasoning=False)))
def test_foreign_and_odd_templates_give_the_tokens_of_the_whole_text(demo: Demo, name: str, chat: Chat) -> None:
    assert_same_as_whole_text(demo, templates.compiled(_FOREIGN[name]), chat)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=100_000)
@given(chat=chats(Kind(pictures=True)))
def test_many_more_chats_give_the_tokens_of_the_whole_text(demo: Demo, chat: Chat) -> None:
    assert_same_as_whole_text(demo, demo.template, chat)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@settings(max_examples=20_000)
@given(chat=chats(Kind(pictures=True, tools=True)))
def test_many_more_chats_with_tools_give_the_tokens_of_the_whole_text(demo: Demo, chat: Chat) -> None:
    assert_same_as_whole_text(demo, templates.compiled(templates.QWEN_LIKE), chat)


def test_text_is_tokenized_together_with_the_adjacent_template_text(demo: Demo) -> None:
    """The case that makes tokenising each text by itself wrong: a full stop and the newline after it are one token."""
    messages = (text_message("user", "One."), text_message("assistant", "Two."), text_message("user", "Three."))
    template = templates.compiled("{% for m in messages %}{{ m.content + '\n' }}{% endfor %}")
    (run,) = prompt_of(demo, template, messages).pieces
    assert run == tuple(demo.tokenize("One.\nTwo.\nThree.\n", parse_special=True))
    apart = [demo.tokenize(text, parse_special=True) for text in ("One.", "\n", "Two.", "\n", "Three.", "\n")]
    assert list(run) != [token for ids in apart for token in ids]


@pytest.mark.parametrize("source", [templates.LLAMA_LIKE, templates.UPPER_CASE, templates.REPEATING])
def test_pictures_work_with_templates_that_know_none(demo: Demo, source: str) -> None:
    message = Message("user", (TextPart("One "), picture(1), picture(2), TextPart(" two")))
    prompt = prompt_of(demo, templates.compiled(source), [message])
    shown = [piece.image if isinstance(piece, ImagePlaceholder) else demo.detokenize(piece) for piece in prompt.pieces]
    first = shown.index(picture(1))
    assert str(shown[first - 1]).lower().endswith("one ")
    assert shown[first + 1] == picture(2)
    assert str(shown[first + 2]).lower().startswith(" two")


def test_a_picture_the_template_leaves_out_is_an_error(demo: Demo) -> None:
    template = ChatTemplate("{% for m in messages %}{{ m.role }}{% endfor %}")
    with pytest.raises(BadRequest, match="leaves out a picture"):
        prompt_of(demo, template, [Message("user", (picture(1),))])


def test_text_between_and_around_pictures_is_trimmed_only_at_the_ends_of_the_message(demo: Demo) -> None:
    parts = (TextPart(" \n"), picture(1), TextPart(" and "), picture(2), TextPart("\n"), TextPart(" \n"))
    prompt = prompt_of(demo, demo.template, [Message("user", parts)])
    shown = [piece.image if isinstance(piece, ImagePlaceholder) else demo.detokenize(piece) for piece in prompt.pieces]
    assert shown == [
        "<|im_start|>user\n", picture(1), " and ", picture(2), "<|im_end|>\n<|im_start|>assistant\n<think>\n",
    ]  # fmt: skip


def test_arguments_reach_the_template_as_an_object(demo: Demo) -> None:
    call = ToolCall("add", '{"a": 1, "list": ["é", null]}')
    messages = [text_message("user", "Add"), Message("assistant", tool_calls=(call,)), text_message("tool", "3")]
    prompt = prompt_of(demo, templates.compiled(templates.QWEN_LIKE), messages)
    (run,) = prompt.pieces
    assert not isinstance(run, ImagePlaceholder)
    assert '<function=add>\n<parameter=a>\n1\n</parameter>\n<parameter=list>\n["é", null]\n' in demo.detokenize(run)


@pytest.mark.parametrize("arguments", ["{", "[1]", '"text"', "[" * 100_000])
def test_invalid_tool_arguments_are_a_request_error(demo: Demo, arguments: str) -> None:
    messages = [text_message("user", "Add"), Message("assistant", tool_calls=(ToolCall("add", arguments),))]
    with pytest.raises(BadRequest):
        prompt_of(demo, templates.compiled(templates.QWEN_LIKE), messages)


def test_deeply_nested_tool_arguments_are_rendered_or_a_request_error(demo: Demo) -> None:
    """Up to Python 3.12 they are too deep for its json module; later ones read them."""
    arguments = '{"a":' * 900 + "1" + "}" * 900
    messages = [text_message("user", "Add"), Message("assistant", tool_calls=(ToolCall("add", arguments),))]
    with contextlib.suppress(BadRequest):
        (run,) = prompt_of(demo, templates.compiled(templates.QWEN_LIKE), messages).pieces
        assert not isinstance(run, ImagePlaceholder)
        assert '{"a": ' * 899 + "1" in demo.detokenize(run)


@pytest.mark.parametrize("tool", ["nothing", "[]"])
def test_a_tool_that_is_no_json_object_is_a_request_error(demo: Demo, tool: str) -> None:
    with pytest.raises(BadRequest, match="Invalid tool"):
        prompt_of(demo, templates.compiled(templates.QWEN_LIKE), [text_message("user", "Hi")], [tool])


def test_calls_and_their_results_carry_the_same_id(demo: Demo) -> None:
    source = (
        "{% for m in messages %}{% for c in m.tool_calls or [] %}call {{ c.id }} {{ c.function.name }};{% endfor %}"
        "{% if m.role == 'tool' %}result {{ m.tool_call_id }} {{ m.name }};{% endif %}{{ m.content }}{% endfor %}"
    )
    calls = (ToolCall("add"), ToolCall("look"))
    messages = [Message("assistant", tool_calls=calls), text_message("tool", "3"), text_message("tool", "sun")]
    (run,) = prompt_of(demo, ChatTemplate(source), messages).pieces
    assert not isinstance(run, ImagePlaceholder)
    assert demo.detokenize(run) == (
        "call call00001 add;call call00002 look;result call00001 add;3result call00002 look;sun"
    )


def test_a_template_that_refuses_the_conversation_is_a_request_error(demo: Demo) -> None:
    with pytest.raises(BadRequest, match="Roles must take turns"):
        prompt_of(demo, templates.compiled(templates.MISTRAL_LIKE), [text_message("assistant", "Hi")])


def test_without_think_tokens_the_model_is_not_asked_to_think(demo: Demo) -> None:
    plain = {text: token for text, token in demo.vocabulary.user_defined.items() if "think" not in text}
    vocabulary = type(demo.vocabulary)(demo.vocabulary.control, plain, demo.vocabulary.tokenize)
    prompt = build_prompt(
        ChatTemplate(BUILTIN_CHATML),
        vocabulary,
        [text_message("user", "Hi")],
        tools_json=(),
        enable_thinking=True,
        preserve_thinking=False,
    )
    (run,) = prompt.pieces
    assert not isinstance(run, ImagePlaceholder)
    assert demo.detokenize(run).endswith("<|im_start|>assistant\n")
    assert not prompt.opens_reasoning
