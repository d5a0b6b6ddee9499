"""Every page, dialog, popover and menu by keyboard alone: named, reached by Tab in reading order, seen, left by Esc."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QAbstractButton, QListView, QMenu, QTextBrowser, QWidget
from shiboken6 import isValid

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import RequestFailed
from qwendesk.help.view.crash_notices import CrashDialog
from qwendesk.hub.download_queue import DownloadItem, QueueFile, SavedDownload
from qwendesk.hub.model_deletion import ModelDeletion
from qwendesk.hub.model_folders import ModelFolders, write_folders
from qwendesk.hub.remote import RemoteFile
from qwendesk.models.view.model_actions import ask_deletion
from qwendesk.settings.view.privacy_section import PrivacySection
from qwendesk.widgets.actions import ActionId, installed
from tests.app.access_walk import complaints
from tests.chat.documents.test_document_reader import pdf
from tests.fakes.engine import FakeEngineClient, ScriptedAnswer
from tests.gguf_files import model_values, tensor, write_model
from tests.hub.hub_server import FakeHub, running_hub
from tests.window_desk import Desk

CTRL, SHIFT = Qt.KeyboardModifier.ControlModifier, Qt.KeyboardModifier.ShiftModifier
NOTHING_MUCH = ModelDeletion("a-4B", (), "")
REPO = "someone/Model-4B-GGUF"
MIXED = """# Title

Words with a [link](https://example.org/a), $x^2$ and a note[^1].

```python
x = 1
```

| a | b |
|---|---|
| 1 | 2 |

- [ ] to do
- [x] done

```c
int y;
```

[^1]: The note.
"""


@pytest.fixture
def client(client: FakeEngineClient) -> FakeEngineClient:
    card = DeviceInfo("CUDA0", "RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)
    client.devices = (card, *client.devices)
    return client


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A Hub of our own, and folders of this test's own with one model in them."""
    from huggingface_hub.utils import close_session

    for name in ("config", "data", "cache"):
        monkeypatch.setattr(paths, f"{name}_folder", lambda name=name: tmp_path / name)
    monkeypatch.delenv("HF_TOKEN", raising=False)
    write_folders(ModelFolders((str(tmp_path / "ours"),), other_apps=False))
    (tmp_path / "ours" / REPO).mkdir(parents=True)
    small = write_model(tmp_path / "ours" / REPO / "here-4B.gguf", model_values(), [tensor("token_embd.weight", 64)])
    with running_hub() as hub:
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        hub.add(REPO, "a-4B-Q4_K_M.gguf", small.read_bytes())
        hub.add(REPO, "b-4B-Q8_0.gguf", small.read_bytes())
        hub.hold.clear()
        yield hub
        hub.hold.set()
        close_session()


async def mixed_chat(desk: Desk, picture: Path, folder: Path) -> None:
    """Two versions of an answer, a failed one, a long one; a picture, a document; a chat list; a tall window."""
    desk.window.resize(1280, 2800)
    desk.parts.chats.start(folder)
    await desk.until(lambda: desk.parts.chats.services.chat_list.state.value.is_loaded)
    (folder / "main.py").write_bytes(b"print(1)\n")
    desk.drop(picture, folder / "main.py")
    await desk.until(lambda: desk.has("composer.attachment.2"))
    failed = RequestFailed(id=1, title="No", sentence="It does not work.")
    desk.client.answers += [
        ScriptedAnswer(reasoning="hm", text="One"),
        ScriptedAnswer(text="Two", fail=failed),
        ScriptedAnswer(reasoning="hm", text=MIXED),
        ScriptedAnswer(reasoning="hm", text="Another one"),
    ]
    for question in ("First", "Second", "Third"):
        await desk.ask(question)
    desk.parts.tasks.start(desk.parts.chat.regenerate(last_turn(desk)))
    await desk.until(lambda: desk.parts.chat.conversation.turns[-1].answer.text == "Another one")
    await desk.until(lambda: not desk.parts.chat.busy)
    desk.click(f"thread.earlier.{last_turn(desk)}")
    await desk.until(lambda: desk.parts.chat.conversation.turns[-1].answer.text == MIXED)
    desk.click(f"thread.think.{last_turn(desk)}")
    desk.drop(picture)
    await desk.until(lambda: bool(desk.window.chat_page.composer.attachments.items))
    desk.window.chat_page.report("A title", "A sentence")
    await in_front(desk.window, desk)


def last_turn(desk: Desk) -> int:
    return desk.parts.chat.conversation.turns[-1].id


async def in_front(window: QWidget, desk: Desk) -> None:
    """The window has the keys, and everything in it its place."""
    window.activateWindow()
    await desk.until(window.isActiveWindow)
    # Qt hands out layouts between two turns of the loop. Not processEvents: a task that another one lets run is lost.
    await asyncio.sleep(0)
    await asyncio.sleep(0)


async def test_chat_page_is_accessible(desk: Desk, shape_picture: Callable[..., Path], tmp_path: Path) -> None:
    await mixed_chat(desk, shape_picture("red", "circle"), tmp_path)
    desk.composer_text.setFocus()
    assert complaints(desk.window, where="chat") == []
    installed(desk.window)["inspector"].trigger()
    for tab in ("load", "sampling", "system"):
        desk.click(f"inspector.tab.{tab}")
        await in_front(desk.window, desk)
        assert complaints(desk.find("inspector", QWidget), where=f"inspector, {tab}") == []


async def lasting(page: QWidget, desk: Desk, where: str) -> list[str]:
    """What is still wrong when the page has come to rest: rows and devices arrive while it is looked at."""
    found: list[str] = []
    for _ in range(5):
        await in_front(desk.window, desk)
        found = complaints(page, where=where)
        if not found:
            break
    return found


async def test_models_engine_and_settings_pages_are_accessible(
    hub: FakeHub, make_desk: Callable[[], Desk], tmp_path: Path
) -> None:
    desk = make_desk()
    desk.window.resize(1280, 1200)
    services, tasks = desk.parts.services.models, desk.parts.tasks
    services.downloads.start()
    tasks.start(services.offers.update())
    desk.window.show_page("models")
    await services.library.refresh()
    await services.checks.wait_until_settled()
    hub.faults = ["stall"]
    tasks.start(services.downloads.add(REPO, "a-4B-Q4_K_M.gguf", with_mmproj=False))
    desk.parts.navigation.model_search_asked.emit(REPO)
    await desk.until(lambda: desk.has("downloads.1.pause") and desk.has("models.my.1"))
    await desk.until(lambda: services.offers.state.value.state == "ready")
    await desk.until(lambda: services.search.state.value.opened is not None)
    for tab in ("pc", "mine", "hub", "downloads"):
        desk.click(f"models.tab.{tab}")
        assert await lasting(desk.parts.models_page.page(), desk, f"models, {tab}") == []
    desk.click("rail.engine")
    assert await lasting(desk.find("engine.page", QWidget), desk, "engine") == []
    desk.click("rail.settings")
    assert await lasting(desk.parts.settings_page.page(), desk, "settings") == []


async def test_first_start_and_guide_are_accessible(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.parts.begin()
    desk.parts.tasks.start(desk.parts.services.models.offers.update())
    await desk.until(lambda: desk.parts.services.models.first_start.state.value.offers.state != "looking")
    await in_front(desk.window, desk)
    assert complaints(desk.window, where="first start") == []
    desk.parts.help.open()
    guide = desk.parts.help.shown
    assert guide is not None
    await in_front(guide, desk)
    assert complaints(guide, where="guide") == []


async def test_popups_are_accessible_and_return_the_focus(
    desk: Desk, shape_picture: Callable[..., Path], tmp_path: Path
) -> None:
    await mixed_chat(desk, shape_picture("red", "circle"), tmp_path)
    page, last = desk.window.chat_page, last_turn(desk)

    def key(key: Qt.Key, modifier: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier) -> Callable[[], None]:
        return lambda: desk.press(key, modifier)

    def action(name: ActionId) -> Callable[[], None]:
        return installed(desk.window)[name].trigger

    def button(name: str) -> Callable[[], QWidget]:
        def press() -> QWidget:
            pressed = desk.find(name, QAbstractButton)
            pressed.setFocus()
            desk.press(Qt.Key.Key_Space)
            return pressed

        return press

    def delete_model() -> None:
        ask_deletion(desk.parts.model_actions, NOTHING_MUCH, desk.window)

    (tmp_path / "a.pdf").write_bytes(pdf("Hello"))
    desk.parts.settings_page.page()  # is built without being opened
    ways: list[tuple[str, Callable[[], object]]] = [
        ("shortcuts", key(Qt.Key.Key_F1)),
        ("palette", key(Qt.Key.Key_P, CTRL | SHIFT)),
        ("menu", key(Qt.Key.Key_F10)),
        ("model.picker", key(Qt.Key.Key_L, CTRL)),
        ("thread.find", key(Qt.Key.Key_F, CTRL)),
        ("context.sheet", action("context")),
        ("picture.viewer", button("thread.picture.1")),
        ("document.viewer", button("thread.document.1")),
        ("thread.copyas.menu", button(f"thread.copyas.{last}")),
        (f"thread.editor.{last}", button(f"thread.edit.{last}")),
        (f"thread.editor.{last}", button(f"thread.question.edit.{last}")),
        ("chats.more_menu", button("chats.more")),
        ("chats.menu", lambda: context_menu(desk, desk.find("chats.list", QListView))),
        ("thread.copymenu", lambda: context_menu(desk, text_of_answer(desk, last))),
        ("composer.custom", lambda: page.composer.style_chosen.emit("custom")),
        ("composer.custom", lambda: page.composer.budget_chosen.emit(-2)),
        ("meter.history", desk.window.meter_bar.show_history),
        ("composer.menu.budget", button("composer.thinking.budget")),
        ("composer.menu.styles", button("composer.preset")),
        ("privacy.dialog", desk.find("settings.privacy", PrivacySection).ask),
        ("models.delete", delete_model),
        ("crash.dialog", lambda: CrashDialog((), desk.window).open()),
        ("pdf.sheet", lambda: desk.drop(tmp_path / "a.pdf")),
    ]
    troubles: list[str] = []
    for name, opens in ways:
        troubles += await over_the_chat(desk, name, opens)
    assert troubles == []


async def over_the_chat(desk: Desk, name: str, opens: Callable[[], object]) -> list[str]:
    """Open it, walk through it, and close it by Esc; what is wrong with that.

    `opens` returns where the focus was before, nothing for the composer.
    """
    await in_front(desk.window, desk)
    desk.composer_text.setFocus()
    told = opens()
    came_from = told if isinstance(told, QWidget) else desk.composer_text
    await desk.until(lambda: bool(on_screen(desk, name)))
    shown = on_screen(desk, name)[0]
    window = shown.window()
    if window.windowType() != Qt.WindowType.Popup:
        await in_front(window, desk)
    found = [] if isinstance(shown, QMenu) else complaints(shown, where=name)
    QTest.keyClick(window.focusWidget() or shown, Qt.Key.Key_Escape)
    await asyncio.sleep(0)
    if isValid(shown) and shown.isVisible():
        found.append(f"{name}: Esc does not close it")
        shown.close()
    await in_front(desk.window, desk)
    focus = desk.window.focusWidget()
    if focus is not came_from:
        found.append(
            f"{name}: the focus was on {came_from.objectName()} and comes back to {focus and focus.objectName()}"
        )
    return found


def on_screen(desk: Desk, name: str) -> list[QWidget]:
    return [each for each in desk.window.findChildren(QWidget, name) if each.isVisible()]


def context_menu(desk: Desk, widget: QWidget) -> QWidget:
    widget.setFocus(Qt.FocusReason.TabFocusReason)
    QTest.keyClick(widget, Qt.Key.Key_F10, SHIFT)
    return widget


def text_of_answer(desk: Desk, turn: int) -> QTextBrowser:
    text = desk.message(turn).answer_view.findChild(QTextBrowser, "thread.text")
    assert text is not None
    return text


async def test_screen_readers_hear_events_but_no_tokens(desk: Desk) -> None:
    said: list[str] = []
    desk.window.announcer.announced.connect(said.append)
    desk.client.answers += [
        ScriptedAnswer(reasoning="one two three", text="four five six"),
        ScriptedAnswer(text="", fail=RequestFailed(id=1, title="No", sentence="It does not work.")),
    ]
    await desk.ask("First")
    assert said == ["Thinking", "Answering", "Answer finished"]
    await desk.ask("Second")
    assert said[-1] == "It does not work."
    desk.window.chat_page.report("A title", "A sentence.")
    desk.window.chat_page.composer.show_notice("Not now.")
    file = RemoteFile("o/r", "a.gguf", "0" * 40, 1, None, "", None)
    download = SavedDownload("one", (QueueFile(file, "/models/a.gguf"),), "done")
    desk.parts.services.models.downloads._finished.notify(DownloadItem(download, 1, "downloading"))
    assert said[-3:] == ["A title. A sentence.", "Not now.", "Download finished: a.gguf"]


async def test_first_start_and_suggestions_move_the_focus_to_the_composer(
    make_desk: Callable[[], Desk],
) -> None:
    desk = make_desk()
    desk.parts.begin()
    await desk.until(lambda: desk.is_shown("start.demo"))
    await in_front(desk.window, desk)
    desk.find("start.demo", QAbstractButton).setFocus()
    desk.press(Qt.Key.Key_Space)
    await desk.until(desk.composer_text.hasFocus)
    await desk.until(lambda: desk.parts.engine.state.report is not None)
    suggestion = next(each for each in desk.window.chat_page.welcome.findChildren(QAbstractButton) if each.isVisible())
    suggestion.setFocus()
    desk.press(Qt.Key.Key_Space)
    await desk.until(lambda: bool(desk.parts.chat.conversation.turns) and not desk.parts.chat.busy)
    assert desk.composer_text.hasFocus()
