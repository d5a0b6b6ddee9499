"""What the line below the window says of an answer: the loaded model's speed, and a counter that moves."""

from PySide6.QtCore import Qt

from qwendesk.engine.state import Phase
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk


async def test_the_counter_moves_while_an_answer_is_written(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(reasoning="so " * 50, text="word " * 5000, tokens_per_second=300))
    seen = {desk.text_of("meter.context")}
    desk.send("Write a lot")

    def moved() -> bool:
        seen.add(desk.text_of("meter.context"))
        return len(seen) > 5

    await desk.until(moved)
    assert desk.parts.chat.busy
    desk.press(Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.parts.chat.busy)
    total = desk.parts.chat.conversation.turns[-1].answer.stats.total_tokens
    await desk.until(lambda: desk.text_of("meter.context") not in seen or f" {total} " in desk.text_of("meter.context"))


async def test_the_speed_is_that_of_the_loaded_model(desk: Desk) -> None:
    desk.client.answers.append(ScriptedAnswer(text="d e f g h i j"))
    await desk.ask("Count")
    first = desk.text_of("meter.speed")
    assert "tok/s" in first
    desk.window.load_model("/models/Qwen3.5-9B-Q4_K_M.gguf")
    await desk.until(lambda: desk.text_of("model.button").startswith("Qwen3.5"))
    await desk.until(lambda: desk.parts.engine.state.phase is Phase.READY)
    assert desk.text_of("meter.speed") == "", "it hasn't answered yet"
    desk.client.answers.append(ScriptedAnswer(text="d e f g h i j"))
    await desk.ask("Count")
    assert desk.text_of("meter.speed") == first
