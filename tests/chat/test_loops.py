"""What follows a loop that was broken: thinking continues, or the answer is generated again with other sampling."""

import msgspec
import pytest

from qwendesk.chat.partial_answer import joined
from qwendesk.chat.request import varied
from qwendesk.chat.tree_edits import edited_answer
from qwendesk.core.conversation import answer_of
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.stats import AnswerStats
from qwendesk.engine.protocol import Begun
from tests.fakes.engine import ScriptedAnswer

OPTIONS = LoadOptions(model="/models/qwendesk-demo.gguf")
LOOPED = ScriptedAnswer(reasoning="round and round", text="Perhaps four.", reasoning_looped=True)


async def test_thinking_continues_in_another_version_of_the_answer(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [LOOPED, ScriptedAnswer(reasoning=" until it ends", text="Four.")]
    turn = await desk.chat.send("2 + 2?")
    assert turn.answer.stats.reasoning_looped
    desk.chat.set_thinking(thinking=False)
    again = await desk.chat.continue_thinking(turn.id)
    request = desk.client.asked[-1]
    assert request.begun == Begun("round and round", "", stage="thinking")
    assert request.begun.thought_is_open
    assert (request.options.break_loops, request.options.enable_thinking) == (False, True)
    assert [message.text for message in request.messages] == ["2 + 2?"]
    assert (again.answer.reasoning, again.answer.text) == ("round and round until it ends", "Four.")
    assert again.answer_version == (2, 2)
    assert again.answer.stats.reasoning_tokens == 6
    assert again.answer.stats.answer_tokens == 1
    assert not again.answer.stats.reasoning_looped
    assert desk.client.asked[0].options.break_loops
    desk.client.answers = [ScriptedAnswer(text="Fine.")]
    await desk.chat.send("Thanks")
    assert desk.client.asked[-1].options.break_loops, "only that answer was generated without"


async def test_only_the_next_try_has_other_sampling(desk):
    await desk.engine.load(OPTIONS)
    desk.chat.set_overrides({"temperature": "0.1", "presence_penalty": "0.25", "seed": "7"})
    desk.client.answers = [ScriptedAnswer(text="la la", stop_reason="repetition")]
    turn = await desk.chat.send("Sing")
    assert turn.answer.stop_reason == "repetition"
    assert turn.answer.can_continue
    await desk.chat.regenerate(turn.id, varied=True)
    await desk.chat.regenerate(turn.id)
    used = [(o.temperature, o.presence_penalty, o.seed) for o in (each.options for each in desk.client.asked)]
    assert used == [(0.1, 0.25, 7), (0.7, 0.75, -1), (0.1, 0.25, 7)]


@pytest.mark.parametrize(("penalty", "expected"), [(-1.0, -0.5), (0.0, 0.5), (1.5, 2.0), (1.8, 2.0), (3.0, 3.0)])
def test_another_try_is_never_less_random(penalty: float, expected: float):
    options = varied(GenerationOptions(temperature=1.2, presence_penalty=penalty))
    assert (options.temperature, options.presence_penalty, options.seed) == (1.2, expected, -1)


def test_a_continued_answer_keeps_that_its_thinking_looped():
    first, rest = AnswerStats(prompt_tokens=9, reasoning_looped=True), AnswerStats(prompt_tokens=20, answer_tokens=3)
    assert joined(first, rest).reasoning_looped
    assert joined(msgspec.structs.replace(first, reasoning_looped=False), rest).reasoning_looped is False


def test_the_figures_of_the_reasoning_alone():
    stats = AnswerStats(
        prompt_tokens=9, reasoning_tokens=30, answer_tokens=10, decode_s=4.0, drafted_tokens=20, accepted_tokens=8
    ).of_reasoning
    assert (stats.reasoning_tokens, stats.answer_tokens, stats.decode_s) == (30, 0, 3.0)
    assert (stats.drafted_tokens, stats.accepted_tokens, stats.prompt_tokens) == (15, 6, 9)
    assert AnswerStats().of_reasoning == AnswerStats()


async def test_an_edited_answer_is_the_users(desk):
    await desk.engine.load(OPTIONS)
    desk.client.answers = [LOOPED]
    turn = await desk.chat.send("2 + 2?")
    answer = answer_of(edited_answer(desk.chat.tree.nodes[turn.answer_id], text="Five.", reasoning=""))
    assert answer.by_hand
    assert not answer.stats.reasoning_looped
