"""Time to the first token of a long chat's turns, and how much of it is processed again."""

from functools import partial

from bench.gpu_check.models import Models, long_question, running_engine
from bench.gpu_check.steps import Found, Part, Step
from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions

_LENGTHS = (8_000, 30_000)


async def _turns(length: int, models: Models) -> Found:
    """A second turn that processes more than its own text again is wrong."""
    async with running_engine() as engine:
        plan = await engine.plan(LoadOptions(model=str(models.random()), n_ctx=65_536))
        await engine.load(plan.options)
        await engine.answer([long_question(600)], 16)
        chat = [long_question(length)]
        text, first = await engine.answer(chat, 64)
        follow_up = [*chat, text_message("assistant", text), text_message("user", "And what follows from that?")]
        _, second = await engine.answer(follow_up, 16)
        edited = [*follow_up[:2], text_message("user", "Say it in other words.")]
        _, third = await engine.answer(edited, 16)
    row = (
        str(first.prompt_tokens),
        f"{first.ttft_s:.3f}",
        f"{second.ttft_s:.3f}",
        str(second.reread_tokens),
        f"{third.ttft_s:.3f}",
        str(third.reread_tokens),
    )
    return Found((row,), is_right=second.reread_tokens < length // 8)


TURNS = Part(
    "turns",
    ("chat of", "turn 1, s to first token", "turn 2", "tokens processed", "an old turn edited", "tokens processed"),
    tuple(Step(f"a chat of {length} tokens", 45, partial(_turns, length)) for length in _LENGTHS),
)
