"""The card of the Engine page that finds, tries and uses other releases of llama.cpp."""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.core.number_format import show_date
from qwendesk.core.translation import tr
from qwendesk.core.units import show_bytes
from qwendesk.engines.engine_switch import EngineSwitch
from qwendesk.engines.engine_updates import EngineUpdates, EngineUpdateState, what_is_trusted, what_it_costs
from qwendesk.widgets import kit
from qwendesk.widgets.bind import REPAINT_EVERY_MS, bind
from qwendesk.widgets.file_dialogs import ask_for_file
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.question_dialog import DialogButton, QuestionDialog
from qwendesk.widgets.tasks import window_tasks


class EngineUpdateCard(QWidget):
    """Says which release is in use and which is newer. Nothing is downloaded before the user agrees."""

    def __init__(self, updates: EngineUpdates, switch: EngineSwitch) -> None:
        super().__init__()
        self._updates, self._tasks = updates, window_tasks()
        self._status = kit.paragraph(name="engine.update.status", selectable=True)
        self._findings = kit.paragraph(kind="dim", name="engine.update.findings", selectable=True)
        self._problem = kit.paragraph(kind="error", name="engine.update.problem", selectable=True)
        self._get = kit.button(
            tr("Get and try it"), "engine.update.get", kind="primary", tip=tr("Download, check, try and compare it")
        )
        self._use = kit.button(
            tr("Use it"), "engine.update.use", kind="primary", tip=tr("Load the model again with this engine")
        )
        self._back = kit.button(
            tr("Use the previous engine"), "engine.update.back", tip=tr("Load the model again with that engine")
        )
        self._stop = kit.button(tr("Stop"), "engine.update.stop", tip=tr("What was downloaded is kept"))
        self._look = kit.button(
            tr("Check for newer engines"), "engine.update.look", tip=tr("Ask GitHub for llama.cpp's newest release")
        )
        self._file = kit.button(
            tr("From a file…"), "engine.update.file", tip=tr("Take a release from a folder, without a network")
        )
        self._get.clicked.connect(self._ask)
        self._use.clicked.connect(lambda: self._start(switch.use(self._candidate, at_once=False)))
        self._back.clicked.connect(lambda: self._start(switch.use(updates.previous, at_once=False)))
        self._stop.clicked.connect(updates.stop)
        self._look.clicked.connect(lambda: self._start(updates.look()))
        self._file.clicked.connect(self._ask_file)
        buttons = FlowLayout()
        for button in (self._get, self._use, self._back, self._stop, self._look, self._file):
            buttons.addWidget(button)
        title = kit.label(tr("Newer llama.cpp"), "heading")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        content = kit.column(title, self._status, self._findings, self._problem, buttons)
        column.addWidget(kit.card(content, name="engine.update", padding=16))
        bind(self, updates.state, self._show, every_ms=REPAINT_EVERY_MS)
        bind(self, updates.engines.observed, lambda _: self._show(updates.state.value))

    @property
    def _candidate(self) -> str:
        """Name of the engine that was added here, or of the release that was found."""
        state = self._updates.state.value
        return state.added or (state.found.name if state.found is not None else "")

    def _show(self, state: EngineUpdateState) -> None:
        engines, is_busy = self._updates.engines.engines, bool(state.phase)
        candidate = engines.find(self._candidate)
        can_use = candidate is not None and not candidate.reason and candidate.name != engines.chosen
        self._status.setText(status_text(self._updates))
        findings = " ".join(state.comparison.sentences) if state.comparison is not None else ""
        for label, text in ((self._findings, findings), (self._problem, state.problem)):
            label.setText(text)
            label.setVisible(bool(text) and not is_busy)
        self._get.setVisible(not is_busy and self._updates.newer is not None)
        self._use.setVisible(not is_busy and can_use)
        self._back.setVisible(not is_busy and bool(self._updates.previous))
        self._stop.setVisible(is_busy and state.phase != "looking")
        for button in (self._look, self._file):
            button.setVisible(not is_busy)
        for button in (self._look, self._get):
            button.setEnabled(not state.is_offline)

    def _start(self, work: Coroutine[Any, Any, object]) -> None:
        self._tasks.start(work)

    def _ask(self) -> None:
        newer = self._updates.newer
        if newer is not None:
            question = tr("Get llama.cpp {0} ({1})?", newer.tag, show_bytes(newer.download_bytes))
            ask_update(self, question, lambda: self._start(self._updates.get()))

    def _ask_file(self) -> None:
        filters = (tr("llama.cpp's archives ({0})", "*.zip *.tar.gz"), tr("All files ({0})", "*"))
        ask_for_file(self, "engine.update.filedialog", tr("From a file…"), filters, self._ask_folder, kind="downloads")

    def _ask_folder(self, path: str) -> None:
        question = tr("Add the llama.cpp release in {0}?", str(Path(path).parent))
        ask_update(self, question, lambda: self._start(self._updates.add_from(Path(path))))


def ask_update(parent: QWidget, question: str, add: Callable[[], None]) -> None:
    """Say what another release costs and what is trusted, and call `add` if the user agrees."""
    consequence = f"{what_it_costs()}\n\n{what_is_trusted()}"
    answers = (DialogButton("yes", tr("Get and try it"), add), DialogButton("no", tr("Cancel")))
    QuestionDialog(parent, "engine.update.question", question, consequence, answers, default="yes").open()


def status_text(updates: EngineUpdates) -> str:
    """Return what is known or going on, in a sentence or two."""
    state, newer, in_use = updates.state.value, updates.newer, updates.release_in_use
    found = state.found
    n_bytes = found.download_bytes if found is not None else 0
    match state.phase:
        case "looking":
            return tr("Asking GitHub…")
        case "checking":
            return tr("Checking whether it fits…")
        case "downloading" | "waiting":
            return tr("Downloading: {0} of {1}", show_bytes(state.done_bytes), show_bytes(n_bytes))
        case "unpacking":
            return tr("Unpacking…")
        case "trying":
            return tr("Trying it in a process of its own…")
        case "comparing":
            return tr("Comparing its answers and speed with the engine in use. This takes a minute or more.")
    if newer is not None:
        day = show_date(newer.date)
        return tr(
            "{0} of {1} is available ({2}). In use: {3}.", newer.tag, day, show_bytes(newer.download_bytes), in_use
        )
    if found is not None and state.done is not None:
        day = show_date(state.done.astimezone().date())
        if found.tag == in_use:
            return tr("In use: {0}, the newest release. Checked on {1}.", in_use, day)
        return tr("In use: {0}. You also have {1}, the newest release. Checked on {2}.", in_use, found.tag, day)
    return tr(
        "In use: {0}. A newer one may load models that this one doesn't know. QwenDesk checks that it fits before it "
        "is used.",
        in_use,
    )
