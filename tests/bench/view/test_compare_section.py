"""The Compare tab as a user sees it: empty, running, done, stopped and failed."""

from pathlib import Path

from PySide6.QtGui import QAction, QGuiApplication, QTextFormat
from PySide6.QtWidgets import QAbstractButton, QComboBox, QFileDialog, QLineEdit, QPlainTextEdit

from qwendesk.bench.comparison import ModelChoice, column_texts
from qwendesk.bench.view.compare_column import AnswerPane
from qwendesk.bench.view.compare_section import CompareSection
from qwendesk.core.failures import LoadFailure
from qwendesk.widgets.theme_keeper import app_theme
from tests.bench.view.conftest import BenchDesk
from tests.fakes.engine import ScriptedAnswer


async def load_and_open(desk: BenchDesk, prompt: str = "Which colour?") -> None:
    """Load the demo model, open the tab and type a prompt."""
    await desk.load_demo()
    desk.open_section("compare")
    desk.find("compare.prompt", QPlainTextEdit).setPlainText(prompt)


async def compare(desk: BenchDesk, *answers: str) -> None:
    """Let the columns answer this, and wait until they have."""
    desk.client.answers = [ScriptedAnswer(reasoning="Let me think.", text=answer) for answer in answers]
    state = desk.parts.services.bench.compare.state
    before = state.value
    desk.click("compare.run")
    # Not first for its start: on Windows, whose timers are coarse, it may be over before anybody looks.
    await desk.until(lambda: state.value is not before and not state.value.is_running)
    await desk.until(lambda: desk.find("compare", CompareSection).state is state.value)


def pane(desk: BenchDesk, name: str) -> AnswerPane:
    return desk.find(f"compare.{name}", AnswerPane)


def highlighted(shown: AnswerPane) -> list[str]:
    """The parts of an answer with another background."""
    fragments = shown.document().begin().begin()
    found = []
    while not fragments.atEnd():
        fragment = fragments.fragment()
        if fragment.charFormat().hasProperty(QTextFormat.Property.BackgroundBrush):
            found.append(fragment.text())
        fragments += 1
    return found


async def test_without_a_prompt_or_a_model_nothing_can_be_compared(desk: BenchDesk) -> None:
    desk.open_section("compare")

    assert not desk.find("compare.run", QAbstractButton).isEnabled()
    assert "No model chosen" in desk.find("compare.A.model", QComboBox).currentText()
    desk.find("compare.prompt", QPlainTextEdit).setPlainText("Hi")
    assert not desk.find("compare.run", QAbstractButton).isEnabled()
    await desk.load_demo()
    await desk.until(lambda: desk.find("compare.run", QAbstractButton).isEnabled())


async def test_two_columns_answer_and_the_differing_words_are_highlighted(desk: BenchDesk) -> None:
    await load_and_open(desk)

    await compare(desk, "The sky is blue.", "The sky is grey.")

    assert pane(desk, "A.text").toPlainText() == "The sky is blue."
    assert pane(desk, "B.text").toPlainText() == "The sky is grey."
    assert highlighted(pane(desk, "B.text")) == [" grey"]
    assert desk.text_of("compare.B.difference") == "1 word differs"
    assert not desk.is_shown("compare.A.difference")
    assert "tok/s" in desk.text_of("compare.A.status")
    assert "Seed" in desk.text_of("compare.A.used")
    assert desk.find("compare.export", QAbstractButton).isEnabled()


async def test_equal_answers_say_so_and_thinking_unfolds(desk: BenchDesk) -> None:
    await load_and_open(desk)

    await compare(desk, "Yes.", "Yes.")

    assert desk.text_of("compare.B.difference") == "Same as A"
    assert not desk.is_shown("compare.A.reasoning")
    desk.click("compare.A.toggle")
    assert pane(desk, "A.reasoning").toPlainText() == "Let me think."
    assert desk.is_shown("compare.A.reasoning")


async def test_columns_are_added_with_the_settings_of_the_last_and_removed(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.find("compare.B.seed", QLineEdit).setText("42")
    assert not desk.is_shown("compare.A.remove")

    desk.click("compare.more")
    desk.click("compare.more")

    assert desk.find("compare.D.seed", QLineEdit).text() == "42"
    assert not desk.find("compare.more", QAbstractButton).isEnabled()
    desk.click("compare.A.remove")
    assert not desk.is_shown("compare.D")
    assert desk.find("compare.A.seed", QLineEdit).text() == "42"


async def test_the_settings_of_a_column_are_sent(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.find("compare.A.options", QLineEdit).setText("seed=9")
    desk.find("compare.B.seed", QLineEdit).setText("7")
    desk.find("compare.B.options", QLineEdit).setText("temperature=0.3; top_k=5")
    thinking = desk.find("compare.B.thinking", QComboBox)
    thinking.setCurrentIndex(thinking.findText("No thinking"))

    await compare(desk, "One.", "Two.")

    first, second = desk.client.asked
    assert first.options.enable_thinking
    assert first.options.seed == 9
    assert (second.options.seed, second.options.temperature, second.options.top_k) == (7, 0.3, 5)
    assert not second.options.enable_thinking
    assert not first.options.cache_prompt
    assert not desk.is_shown("compare.B.toggle")


async def test_an_option_that_does_not_exist_is_named_before_anything_runs(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.find("compare.A.options", QLineEdit).setText("temprature=0.3")

    desk.click("compare.run")

    assert "temprature" in desk.text_of("compare.trouble")
    assert not desk.parts.services.bench.compare.state.value.is_running


async def test_other_load_options_use_the_engine_for_measurements(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.find("compare.B.options", QLineEdit).setText("n_ctx=4096")
    desk.bench_client.answers = [ScriptedAnswer(text="One."), ScriptedAnswer(text="Two.")]

    await compare(desk)
    await desk.parts.engine.wait_until_settled()

    assert pane(desk, "A.text").text == "One."
    assert pane(desk, "B.text").text == "Two."
    assert not desk.parts.services.bench.compare.state.value.uses_loaded_model
    assert desk.parts.engine.state.report is not None


async def test_a_column_that_cannot_be_loaded_says_why(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.find("compare.A.options", QLineEdit).setText("n_ctx=4096")
    desk.bench_client.load_result = LoadFailure("out_of_ram", "Not enough memory", "It needs more memory.")

    await compare(desk)
    await desk.parts.engine.wait_until_settled()

    assert desk.text_of("compare.A.failure") == "It needs more memory."
    assert desk.is_shown("compare.A.failure")


async def test_stop_keeps_what_has_arrived(desk: BenchDesk) -> None:
    await load_and_open(desk)
    desk.client.answers = [ScriptedAnswer(text="One two three four five " * 40, tokens_per_second=20)]
    desk.click("compare.run")
    await desk.until(lambda: desk.is_shown("compare.A.text"))
    assert desk.text_of("compare.run") == "Stop"

    desk.click("compare.run")
    await desk.until(lambda: desk.text_of("compare.run") == "Compare")

    assert desk.text_of("compare.A.status") == "Stopped"
    assert pane(desk, "A.text").text.startswith("One")
    assert desk.text_of("compare.B.status") == "Stopped"
    assert not desk.is_shown("compare.trouble")


async def test_a_late_click_on_stop_begins_nothing(desk: BenchDesk) -> None:
    await load_and_open(desk)
    compared, state = desk.find("compare", CompareSection), desk.parts.services.bench.compare.state
    # The test ends this time itself: on a busy machine it would be over before the click.
    compared._ended.setInterval(600_000)
    desk.client.answers = [ScriptedAnswer(text="One two three four five", tokens_per_second=20) for _ in "AB"]
    desk.click("compare.run")
    await desk.until(lambda: compared.state.is_running)
    await desk.until(lambda: not compared.state.is_running)
    assert desk.text_of("compare.run") == "Stop", "it keeps its place"
    before = state.value
    desk.click("compare.run")
    assert state.value is before
    compared._ended.stop()
    compared._ended.timeout.emit()
    assert desk.text_of("compare.run") == "Compare"
    desk.client.answers = [ScriptedAnswer(text="Green."), ScriptedAnswer(text="Grey.")]
    desk.click("compare.run")
    await desk.until(lambda: state.value is not before and not state.value.is_running)


async def test_thinking_is_offered_only_of_models_that_can(desk: BenchDesk) -> None:
    desk.open_section("compare")
    setup = desk.find("compare", CompareSection)._columns[0].setup
    able, unable = ModelChoice("/m/able.gguf", "Able"), ModelChoice("/m/unable.gguf", "Unable", can_think=False)
    setup.set_choices(able.path, (able, unable), ())
    assert desk.is_shown("compare.A.thinking")
    assert "Thinking" in column_texts(setup.column())
    setup.set_choices(unable.path, (able, unable), ())
    assert not desk.is_shown("compare.A.thinking")
    assert column_texts(setup.column()) == ("unable", "General")
    desk.find("compare.A.model", QComboBox).setCurrentText("Able")
    assert desk.is_shown("compare.A.thinking")


async def test_files_are_shown_and_removed(desk: BenchDesk, tmp_path: Path) -> None:
    note = tmp_path / "note & more.txt"
    note.write_text("Buy bread.")
    await load_and_open(desk)
    desk.click("compare.files")
    desk.find("compare.files.dialog", QFileDialog).filesSelected.emit([str(note)])
    await desk.until(lambda: desk.is_shown("compare.file.0"))

    await compare(desk, "Bread.", "Bread.")
    desk.click("compare.file.0")

    (first, _) = desk.client.asked
    assert "Buy bread." in first.messages[-1].text
    await desk.until(lambda: not desk.is_shown("compare.file.0"))


async def test_a_comparison_is_copied_and_saved_as_markdown(desk: BenchDesk, tmp_path: Path) -> None:
    await load_and_open(desk)
    await compare(desk, "The sky is blue.", "The sky is grey.")

    desk.find("compare.export", QAbstractButton).menu()
    desk.window.findChild(QAction, "compare.export.copy").trigger()
    assert "The sky is grey." in QGuiApplication.clipboard().text()
    desk.window.findChild(QAction, "compare.export.save").trigger()
    desk.find("compare.save", QFileDialog).fileSelected.emit(str(tmp_path / "c.md"))

    assert (tmp_path / "c.md").read_text() == QGuiApplication.clipboard().text()


async def test_highlights_follow_the_theme(desk: BenchDesk) -> None:
    await load_and_open(desk)
    await compare(desk, "The sky is blue.", "The sky is grey.")
    for choice in ("light", "dark"):
        app_theme().choose(choice)
        assert pane(desk, "B.text").toPlainText() == "The sky is grey."
        assert highlighted(pane(desk, "B.text")) == [" grey"]
