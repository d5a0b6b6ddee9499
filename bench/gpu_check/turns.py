"""Time to the first token of a long chat's turns, and how much of it is processed again."""

from bench.gpu_check.models import Models, long_question, running_engine
from qwendesk.core.messages import text_message
from qwendesk.core.options import LoadOptions

_LENGTHS = (8_000, 30_000)


async def check_turns(models: Models) -> int:
    """Print the table. Returns 1 if a second turn processes more than its own text again."""
    model = models.random()
    print("| chat of | turn 1, s to first token | turn 2 | tokens processed in turn 2 | an old turn edited | tokens |")
    print("|--:|--:|--:|--:|--:|--:|", flush=True)
    is_right = True
    async with running_engine() as engine:
        plan = await engine.plan(LoadOptions(model=str(model), n_ctx=65_536))
        await engine.load(plan.options)
        await engine.answer([long_question(600)], 16)
        for length in _LENGTHS:
            chat = [long_question(length)]
            text, first = await engine.answer(chat, 64)
            follow_up = [*chat, text_message("assistant", text), text_message("user", "And what follows from that?")]
            _, second = await engine.answer(follow_up, 16)
            edited = [*follow_up[:2], text_message("user", "Say it in other words.")]
            _, third = await engine.answer(edited, 16)
            is_right = is_right and second.reread_tokens < length // 8
            print(
                f"| {first.prompt_tokens} | {first.ttft_s:.3f} | {second.ttft_s:.3f} | {second.reread_tokens} | "
                f"{third.ttft_s:.3f} | {third.reread_tokens} |",
                flush=True,
            )
    return 0 if is_right else 1
