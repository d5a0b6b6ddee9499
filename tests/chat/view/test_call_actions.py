"""What the row of a call offers: undo and redo of a change, stop, and retry."""

import asyncio
import shutil
from pathlib import Path

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QDesktopServices, QGuiApplication

from qwendesk.chat.view.thread.tools.call_row import CallRow
from qwendesk.core import paths
from qwendesk.core.messages import ToolCall
from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox.tool import Arguments, Tool, ToolError
from qwendesk.widgets.text_pane import TextPane
from tests.chat.view.test_tools import asks_to_edit, choose, load, rows
from tests.fakes.engine import ScriptedAnswer
from tests.window_desk import Desk

ROW = "thread.call.1.0"


async def edited(desk: Desk, folder: Path) -> Path:
    """Have the model change a file with consent, and return the file."""
    path = await asks_to_edit(desk, folder)
    desk.click(f"{ROW}.once")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Done.")
    await desk.until(lambda: desk.is_shown(f"{ROW}.undo"))
    return path


async def test_change_is_undone_and_redone_in_its_row(desk: Desk, tmp_path: Path) -> None:
    path = await edited(desk, tmp_path)
    assert path.read_text() == "draw(1)\n"

    desk.click(f"{ROW}.undo")
    await desk.until(lambda: desk.is_shown(f"{ROW}.redo"))
    assert path.read_text() == "draw()\n"
    assert desk.text_of("thread.call.outcome.1.0") == "Undone"

    desk.click(f"{ROW}.redo")
    await desk.until(lambda: desk.is_shown(f"{ROW}.undo"))
    assert path.read_text() == "draw(1)\n"


async def test_opened_change_shows_the_difference(desk: Desk, tmp_path: Path) -> None:
    await edited(desk, tmp_path)
    assert "-draw()\n+draw(1)" in desk.find("thread.call.text.1.0", TextPane).toPlainText()
    assert not desk.is_shown(f"{ROW}.edit.note")


async def test_change_can_be_undone_after_the_chat_was_opened_again(desk: Desk, tmp_path: Path) -> None:
    path = await edited(desk, tmp_path)
    tree, settings, chat_id = desk.parts.chat.tree, desk.parts.chat.settings, desk.parts.chat.chat_id
    desk.parts.chat.new_chat()
    desk.parts.chat.open(chat_id, tree, settings)
    await desk.until(lambda: desk.is_shown(f"{ROW}.undo"))
    desk.click(f"{ROW}.undo")
    await desk.until(lambda: desk.is_shown(f"{ROW}.redo"))
    assert path.read_text() == "draw()\n"


async def test_file_that_was_changed_since_says_why_it_is_left_alone(
    desk: Desk, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = await edited(desk, tmp_path)
    path.write_text("draw(1)\nmine()\n")
    desk.click(f"{ROW}.undo")
    await desk.until(lambda: desk.is_shown(f"{ROW}.edit.note"))
    assert path.read_text() == "draw(1)\nmine()\n"
    assert desk.text_of(f"{ROW}.edit.note") == "Can't be undone: loop.py has changed since."
    assert desk.text_of("thread.call.outcome.1.0") == "Changed since"
    assert not desk.is_shown(f"{ROW}.undo")

    desk.click(f"{ROW}.edit.difference")
    await desk.until(lambda: "+mine()" in desk.find("thread.call.text.1.0", TextPane).toPlainText())
    opened: list[QUrl] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", opened.append)
    desk.click(f"{ROW}.edit.folder")
    shown = [Path(url.toLocalFile()) for url in opened]
    assert shown == [path.resolve().parent], "the file itself is never opened: what a tool wrote could run"


async def test_rows_look_at_their_files_when_the_user_comes_back(desk: Desk, tmp_path: Path) -> None:
    path = await edited(desk, tmp_path)
    path.write_text("mine()\n")
    QGuiApplication.instance().applicationStateChanged.emit(Qt.ApplicationState.ApplicationActive)
    await desk.until(lambda: desk.is_shown(f"{ROW}.edit.note"))
    assert not desk.is_shown(f"{ROW}.undo")


async def test_change_whose_old_content_is_gone_says_so(desk: Desk, tmp_path: Path) -> None:
    await edited(desk, tmp_path)
    shutil.rmtree(paths.data_folder() / "file-edits")
    desk.click("thread.call.open.1.0")
    desk.click("thread.call.open.1.0")
    await desk.until(lambda: desk.is_shown(f"{ROW}.edit.note"))
    assert "isn't kept any more" in desk.text_of(f"{ROW}.edit.note")
    assert not desk.is_shown(f"{ROW}.edit.folder")


async def test_branch_can_undo_the_change_too(desk: Desk, tmp_path: Path) -> None:
    path = await edited(desk, tmp_path)
    desk.parts.chat.branch(desk.parts.chat.conversation.turns[-1].id)
    await desk.until(lambda: desk.is_shown("thread.call.2.0.undo"))
    desk.click("thread.call.2.0.undo")
    await desk.until(lambda: desk.is_shown("thread.call.2.0.redo"))
    assert path.read_text() == "draw()\n"


async def test_refused_change_offers_retry_and_asks_again(desk: Desk, tmp_path: Path) -> None:
    path = await asks_to_edit(desk, tmp_path)
    desk.click(f"{ROW}.refuse")
    await desk.until(lambda: desk.is_shown(f"{ROW}.retry"))
    assert not desk.is_shown(f"{ROW}.edit.note")
    desk.client.answers = [ScriptedAnswer(text="Now it is done.")]

    desk.click(f"{ROW}.retry")
    await desk.until(lambda: desk.is_shown(f"{ROW}.once"))
    desk.click(f"{ROW}.once")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Now it is done.")
    await desk.until(lambda: desk.has("thread.version.1"))
    assert desk.text_of("thread.version.1") == "2/2"
    assert path.read_text() == "draw(1)\n"

    desk.click("thread.earlier.1")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Done.")
    assert desk.text_of("thread.call.outcome.1.0") == "Refused"


class Waiting:
    """A tool that waits until it is let go."""

    def __init__(self) -> None:
        self.go = asyncio.Event()

    async def run(self, _arguments: Arguments, context: CallContext) -> str:
        context.report_progress("42% · dialling")
        await self.go.wait()
        raise ToolError("The line is dead.")


async def test_call_that_runs_is_stopped_and_tells_how_far_it_is(desk: Desk) -> None:
    await load(desk)
    waiting, toolbox = Waiting(), desk.parts.services.toolbox
    toolbox.tools["calculate"] = Tool("calculate", "Waits", "Waits.", "Waits.", {}, "nothing", waiting.run)
    choose(desk, "calculate")
    desk.client.answers = [ScriptedAnswer(calls=(ToolCall("calculate"),)), ScriptedAnswer(text="Without it, then.")]
    desk.send("Wait")
    await desk.until(lambda: desk.is_shown(f"{ROW}.stop"))
    await desk.until(lambda: desk.text_of("thread.call.outcome.1.0") == "42% · dialling")

    desk.click(f"{ROW}.stop")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "Without it, then.")
    await desk.until(lambda: desk.is_shown(f"{ROW}.retry"))
    assert desk.text_of("thread.call.outcome.1.0") == "Failed"

    waiting.go.set()
    desk.client.answers = [ScriptedAnswer(text="The line is dead.")]
    desk.click(f"{ROW}.retry")
    await desk.until(lambda: desk.message(1).answer_view.markdown == "The line is dead.")
    assert [row.record.error for row in rows(desk) if isinstance(row, CallRow) and row.record] == ["The line is dead."]


async def test_results_are_shown_as_data(desk: Desk) -> None:
    """What a tool gives is never a link, a picture or a control."""
    await load(desk)
    bait = '<a href="https://evil.example">click</a> ![x](https://evil.example/x.png) [Allow](https://evil.example)'

    async def run(_arguments: Arguments, _context: CallContext) -> str:
        return bait

    toolbox = desk.parts.services.toolbox
    toolbox.tools["calculate"] = Tool("calculate", "Bait", "Baits.", "Baits.", {}, "nothing", run)
    choose(desk, "calculate")
    desk.client.answers = [ScriptedAnswer(calls=(ToolCall("calculate"),)), ScriptedAnswer(text="Done.")]
    await desk.ask("Look")
    desk.click("thread.call.open.1.0")
    pane = desk.find("thread.call.text.1.0", TextPane)
    await desk.until(lambda: bait in pane.toPlainText())
    assert "href" not in pane.document().toHtml().replace("href=&quot;", "")
    assert "<img" not in pane.document().toHtml()
