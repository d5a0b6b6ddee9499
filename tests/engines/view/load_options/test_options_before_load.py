"""Load options of a model that isn't loaded: set in the inspector, kept for its next load."""

from pathlib import Path

from PySide6.QtWidgets import QAbstractButton, QPlainTextEdit, QWidget

from tests.engines.view.load_options.inspector_desk import InspectorDesk
from tools.hollow_model import write_hollow


async def prepared(desk: InspectorDesk, model: Path) -> None:
    """Show the load options of `model` without loading it, as the row of My models does."""
    desk.parts.model_actions.show_options(str(model))
    await desk.until(lambda: desk.is_shown("inspector.memory.0.fit") and is_about(desk, model))


def is_about(desk: InspectorDesk, model: Path) -> bool:
    pending = desk.parts.services.pending_load.pending
    return pending.requested is not None and pending.requested.model == str(model) and pending.plan is not None


async def test_options_are_set_before_the_first_load(desk: InspectorDesk, model: Path) -> None:
    await prepared(desk, model)
    assert desk.text_of("inspector.load.unloaded").startswith(f"Options for {model.stem}, which isn't loaded.")
    assert desk.text_of("inspector.load.reload") == "Load"
    assert not desk.is_shown("inspector.load.show_loaded")
    assert not desk.loads, "nothing is loaded by looking"

    amount = desk.text_of("inspector.memory.0.amount")
    desk.parts.services.pending_load.change({"n_ctx": 4096})
    await desk.estimated(amount)
    desk.click("inspector.load.reload")
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    assert [load.options.n_ctx for load in desk.loads] == [4096]
    assert not desk.is_shown("inspector.load.unloaded")


async def test_nothing_can_be_pressed_or_called_unloaded_while_it_is_being_loaded(
    desk: InspectorDesk, model: Path
) -> None:
    await prepared(desk, model)
    shown: list[tuple[str, bool, bool]] = []
    button = desk.find("inspector.load.reload", QAbstractButton)

    def look(_pending: object) -> None:
        if button.isVisible():
            shown.append((button.text(), button.isEnabled(), desk.is_shown("inspector.load.unloaded")))

    async def load() -> set[tuple[str, bool, bool]]:
        shown.clear()
        button.click()
        await desk.until(lambda: not button.isVisible())
        return set(shown)

    desk.parts.services.pending_load.state.subscribe(look)
    assert await load() == {("Waiting…", False, True), ("Loading…", False, False)}

    desk.parts.services.pending_load.change({"n_ctx": 4096})
    await desk.until(button.isEnabled)
    assert await load() == {("Waiting…", False, False), ("Loading…", False, False)}, "when it is loaded again, too"


async def test_options_set_before_a_load_are_used_by_every_later_load(desk: InspectorDesk, model: Path) -> None:
    await prepared(desk, model)
    desk.parts.services.pending_load.change({"n_ctx": 8192})
    await desk.load(model)
    assert [load.options.n_ctx for load in desk.loads] == [8192]


async def test_another_models_options_leave_the_loaded_model_alone(
    desk: InspectorDesk, model: Path, tmp_path: Path
) -> None:
    await desk.open(model)
    n_loads = len(desk.loads)
    other = write_hollow(tmp_path / "Qwen3.5-9B-Q4_K_M.gguf", "9b")
    await prepared(desk, other)
    assert desk.text_of("inspector.load.sentence").endswith(f"Replaces {model.stem}. Your chat is kept.")
    desk.parts.services.pending_load.change({"n_ctx": 4096})

    desk.click("inspector.load.show_loaded")
    await desk.until(lambda: is_about(desk, model))
    assert not desk.is_shown("inspector.load.unloaded")
    assert desk.text_of("inspector.load.n_ctx").startswith("Auto · ")
    assert not desk.is_shown("inspector.load.reload")
    assert len(desk.loads) == n_loads

    await prepared(desk, other)
    assert desk.text_of("inspector.load.n_ctx") == "4K"
    desk.click("inspector.load.reload")
    await desk.until(lambda: len(desk.loads) > n_loads)
    assert desk.loads[-1].options.model == str(other)


async def test_loading_another_model_shows_its_options(desk: InspectorDesk, model: Path, tmp_path: Path) -> None:
    other = write_hollow(tmp_path / "Qwen3.5-9B-Q4_K_M.gguf", "9b")
    await prepared(desk, other)
    await desk.load(model)
    assert is_about(desk, model)
    assert desk.parts.services.pending_load.pending.is_loaded


async def test_an_unreadable_file_says_why_and_cannot_be_loaded(desk: InspectorDesk, tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"no model")
    desk.parts.model_actions.show_options(str(broken))
    await desk.until(lambda: bool(desk.parts.services.pending_load.pending.refusal))
    assert desk.is_shown("inspector.load.sentence")
    assert not desk.find("inspector.load.reload", QWidget).isEnabled()


async def test_the_command_of_a_model_that_is_not_loaded_has_its_own_sampling(
    desk: InspectorDesk, model: Path, tmp_path: Path
) -> None:
    """This one's header has no template, so it can't think, whatever the open chat does."""
    await desk.open(model)
    other = write_hollow(tmp_path / "Qwen3.6-27B-Q4_K_M.gguf", "27b")
    await prepared(desk, other)
    await desk.open_sheet()
    desk.click("options.command_line")
    desk.window.show_page("engine")

    loaded, not_loaded = (
        desk.find(f"{place}.command.text", QPlainTextEdit).toPlainText() for place in ("engine", "options")
    )

    assert str(other) in not_loaded
    assert "--temp 0.7" in not_loaded
    assert "--temp 0 " in loaded, "the values of the open chat"
