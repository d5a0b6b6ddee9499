"""The Downloads tab: the total, the last action that failed, and a row for each download."""

from collections.abc import Coroutine
from typing import Any

from PySide6.QtCore import QUrl
from PySide6.QtGui import QDesktopServices
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QVBoxLayout, QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr
from qwendesk.hub.download_queue import DownloadItem
from qwendesk.hub.network import HubError
from qwendesk.models.downloads import DownloadsService, DownloadsState
from qwendesk.models.network import NetworkService
from qwendesk.models.view.download_row import DownloadRow, NextStep, folder_of, next_steps, step_text, total_text
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import IconButton, TextButton, describe
from qwendesk.widgets.kit import label
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, ResponsivePairLayout, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.tasks import window_tasks

_STEPS = 1000
# Least width in pixels of the total next to the buttons.
_LEAST_TOTAL = 200


class DownloadsTab(QWidget):
    """The tab "Downloads"."""

    def __init__(
        self, service: DownloadsService, network: NetworkService, actions: ModelActions, navigation: Navigation
    ) -> None:
        super().__init__()
        self._actions, self._navigation = actions, navigation
        self._service, self._network, self._tasks = service, network, window_tasks()
        self._rows: list[DownloadRow] = []
        self._failed_page = ""
        """Web page of the repository whose action failed."""
        self._total = self._make_total()
        self._offline = self._make_offline()
        self._refused = self._make_refused()
        self._empty = self._make_empty()
        self._list = QVBoxLayout()
        self._list.setSpacing(8)
        DensitySpacing(self._list)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        for widget in (self._refused, self._offline, self._total):
            column.addWidget(widget)
        column.addLayout(self._list)
        column.addWidget(self._empty, 1)
        column.addStretch(0)
        bind(self, service.state, self._show)

    def _show(self, state: DownloadsState) -> None:
        rows = {row.identity: row for row in self._rows}
        for identity in rows.keys() - {item.saved.id for item in state.items}:
            row = rows.pop(identity)
            self._list.removeWidget(row)
            row.hide()
            row.deleteLater()
        self._rows = []
        for place, item in enumerate(state.items):
            row = rows.get(item.saved.id) or self._new_row()
            row.show_item(item, is_offline=state.is_offline)
            row.set_place(place + 1, len(state.items))
            if self._list.indexOf(row) != place:
                self._list.insertWidget(place, row)
            self._rows.append(row)
        self._show_total(state)
        self._offline.setVisible(state.is_offline and bool(state.unfinished))
        self._empty.setVisible(not state.items)

    def _show_total(self, state: DownloadsState) -> None:
        self._total.setVisible(bool(state.items))
        self._total_text.setText(total_text(state))
        self._total_bar.setValue(round(_STEPS * state.total.n_done / max(state.total.n_bytes, 1)))
        self._total_bar.setVisible(bool(state.unfinished))
        states = [item.saved.state for item in state.items]
        self._pause_all.setVisible("running" in states or "queued" in states)
        self._resume_all.setVisible("paused" in states)
        self._clear.setVisible("done" in states)

    def _new_row(self) -> DownloadRow:
        row = DownloadRow()
        row.asked.connect(lambda what: self._on_asked(row, what))
        return row

    def _on_asked(self, row: DownloadRow, what: str) -> None:
        item = self._service.state.value.item(row.identity)
        if item is None:
            return
        first = item.saved.files[0]
        match what:
            case "pause":
                self._start(self._service.pause(row.identity), item)
            case "resume" | "retry":
                self._start(self._service.resume(row.identity), item)
            case "cancel":
                self._start(self._service.cancel(row.identity), item)
            case "up" | "down":
                self._start(self._service.move(row.identity, -1 if what == "up" else 1), item)
            case "load":
                self._actions.load(first.target)
            case "folder":
                QDesktopServices.openUrl(QUrl.fromLocalFile(folder_of(item)))
            case _:
                self._take_step(what, self._network.page_of(first.file.repo))

    def _take_step(self, step: str, page: str) -> None:
        match step:
            case "page":
                QDesktopServices.openUrl(QUrl(page))
            case "online":
                self._network.go_online()
            case "token" | "folders":
                self._navigation.settings_asked.emit(step)

    def _start(self, action: Coroutine[Any, Any, None], item: DownloadItem) -> None:
        self._tasks.start(self._run(action, item))

    async def _run(self, action: Coroutine[Any, Any, None], item: DownloadItem) -> None:
        try:
            await action
        except QwenDeskError as error:
            self._show_failure(error, item)

    def _show_failure(self, error: QwenDeskError, item: DownloadItem) -> None:
        first = item.saved.files[0].file
        self._failed_page = self._network.page_of(first.repo)
        self._refused_title.setText(tr("{0}: {1}", first.path.rpartition("/")[2], error.title))
        self._refused_text.setText(error.sentence)
        wanted = next_steps(error.kind if isinstance(error, HubError) else None)
        for step, button in self._refused_steps.items():
            button.setVisible(step in wanted)
        self._refused.show()
        self._navigation.models_tab_asked.emit("downloads")
        self._navigation.announced.emit(f"{error.title}. {error.sentence}")

    def _make_refused(self) -> QFrame:
        card = _card("failure", "downloads.refused")
        self._refused_title = label(kind="heading", name="downloads.refused.title")
        self._refused_text = label(name="downloads.refused.sentence")
        self._refused_text.setWordWrap(True)
        close = IconButton("close", size=16, side=28)
        describe(close, "downloads.refused.dismiss", tr("Dismiss"))
        close.clicked.connect(card.hide)
        head = QHBoxLayout()
        head.addWidget(self._refused_title, 1)
        head.addWidget(close)
        steps: tuple[NextStep, ...] = ("online", "page", "token", "folders")
        buttons = FlowLayout()
        self._refused_steps: dict[NextStep, TextButton] = {}
        for step in steps:
            text, tip = step_text(step)
            button = TextButton(text)
            describe(button, f"downloads.refused.{step}", text, tip)
            button.clicked.connect(lambda _checked=False, step=step: self._on_refused_step(step))
            self._refused_steps[step] = button
            buttons.addWidget(button)
        column = QVBoxLayout(card)
        column.setContentsMargins(16, 12, 10, 12)
        column.addLayout(head)
        column.addWidget(self._refused_text)
        column.addLayout(buttons)
        card.hide()
        return card

    def _on_refused_step(self, step: NextStep) -> None:
        self._take_step(step, self._failed_page)
        self._refused.hide()

    def _make_offline(self) -> QFrame:
        card = _card("notice", "downloads.offline")
        text = label(name="downloads.offline.text")
        text.setText(tr("QwenDesk is offline. Downloads resume when you go online."))
        text.setWordWrap(True)
        button = TextButton(tr("Go online"))
        describe(button, "downloads.offline.online", tr("Go online"), tr("Allow connections"))
        button.clicked.connect(self._network.go_online)
        row = QHBoxLayout(card)
        row.setContentsMargins(16, 12, 12, 12)
        row.addWidget(text, 1)
        row.addWidget(button)
        card.hide()
        return card

    def _make_total(self) -> QWidget:
        box = QWidget()
        box.setObjectName("downloads.total")
        self._total_text = label(name="downloads.total.text")
        self._total_text.setWordWrap(True)
        self._total_bar = QProgressBar()
        self._total_bar.setObjectName("downloads.total.bar")
        self._total_bar.setAccessibleName(tr("Progress of all downloads"))
        self._total_bar.setRange(0, _STEPS)
        self._total_bar.setTextVisible(False)
        self._total_bar.setFixedHeight(6)
        self._pause_all = self._command("pause_all", tr("Pause all"), tr("Pause. You can resume later."))
        self._pause_all.clicked.connect(lambda: self._tasks.start(self._service.pause_all()))
        self._resume_all = self._command("resume_all", tr("Resume all"), tr("Resume all paused downloads"))
        self._resume_all.clicked.connect(lambda: self._tasks.start(self._service.resume_all()))
        self._clear = self._command(
            "clear", tr("Clear finished"), tr("Remove finished downloads from the list. The files are kept.")
        )
        self._clear.clicked.connect(lambda: self._tasks.start(self._service.clear_done()))
        buttons = FlowLayout()
        for button in (self._pause_all, self._resume_all, self._clear):
            buttons.addWidget(button)
        column = QVBoxLayout(box)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        column.addLayout(ResponsivePairLayout(self._total_text, widget_with(buttons), least=_LEAST_TOTAL))
        column.addWidget(self._total_bar)
        return box

    def _make_empty(self) -> QWidget:
        box = QWidget()
        box.setObjectName("downloads.empty")
        title = label(kind="heading", name="downloads.empty.title")
        title.setText(tr("No downloads"))
        text = label(kind="lead", name="downloads.empty.text")
        text.setText(
            tr(
                "What you download shows up here. Downloads resume after a pause, a lost connection or a restart. "
                "Every download is verified before use."
            )
        )
        text.setWordWrap(True)
        offers = TextButton(tr("Show what fits this PC"), kind="primary")
        describe(offers, "downloads.empty.offers", tr("Show what fits this PC"))
        offers.clicked.connect(lambda: self._navigation.models_tab_asked.emit("pc"))
        column = QVBoxLayout()
        column.setSpacing(12)
        column.addSpacing(96)
        column.addWidget(title)
        column.addWidget(text)
        row = QHBoxLayout()
        row.addWidget(offers)
        row.addStretch(1)
        column.addLayout(row)
        column.addStretch(1)
        holder = QWidget()
        holder.setMaximumWidth(560)
        holder.setLayout(column)
        outer = QHBoxLayout(box)
        outer.addStretch(1)
        outer.addWidget(holder, 10)
        outer.addStretch(1)
        return box

    def _command(self, name: str, text: str, tip: str) -> TextButton:
        button = TextButton(text)
        describe(button, f"downloads.{name}", text, tip)
        return button


def _card(kind: str, name: str) -> QFrame:
    card = QFrame()
    card.setObjectName(name)
    card.setProperty("kind", kind)
    return card
