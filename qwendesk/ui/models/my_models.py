"""The tab "My models": every model file on this PC, how it is, and what can be done with it."""

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QScrollArea, QVBoxLayout, QWidget

from qwendesk.hub.deleting import Deletion
from qwendesk.ui.bridges.engine import EngineBridge
from qwendesk.ui.bridges.models import ModelEntry, ModelsBridge
from qwendesk.ui.kit.beside import BesideOrBelow
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.delete_question import ask_deletion
from qwendesk.ui.models.model_row import ModelRow
from qwendesk.ui.models.model_texts import matches, total_text
from qwendesk.ui.models.no_models import NoModels
from qwendesk.ui.models.row_menu import RowMenu, choose_folder

_PORTION = 16
"""Rows made at a time: more come as one scrolls, so that hundreds of models open at once."""
_NEAR_END_PX = 600
_LEAST_FINDING = 240
"""Pixels that the search field and the total have beside the buttons."""


class MyModels(QWidget):
    """Scrolls by itself. `offers_asked` wants the tab with what fits this PC."""

    offers_asked = Signal()

    def __init__(self, keeper: ThemeKeeper, bridge: ModelsBridge, engine: EngineBridge) -> None:
        super().__init__()
        self._keeper, self._bridge, self._engine = keeper, bridge, engine
        self._rows: dict[str, ModelRow] = {}
        self._made = 0
        self._wanted = _PORTION
        self.setObjectName("models.my")
        self._empty = NoModels(keeper)
        self._empty.folder_asked.connect(self.choose_folder)
        self._empty.offers_asked.connect(self.offers_asked)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(self._tools())
        column.addWidget(self._notice_line())
        column.addWidget(self._empty, 1)
        column.addWidget(self._list(), 1)
        bridge.changed.connect(self._refresh)
        bridge.noticed.connect(self._show_notice)
        bridge.deletion_asked.connect(self._ask_deletion)
        bridge.trash_failed.connect(self._ask_for_good)
        engine.changed.connect(self._on_engine)
        self._loaded = ""
        self._refresh()

    @property
    def rows(self) -> dict[int, ModelEntry]:
        """What is shown, by the number in the names of a row's controls."""
        return {row.number: row.entry for row in self._rows.values() if row.entry is not None}

    def choose_folder(self) -> None:
        choose_folder(self, tr("Choose a folder with model files"), self._bridge.add_folder)

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if not event.spontaneous():
            self._bridge.refresh()

    def _tools(self) -> BesideOrBelow:
        self._search = QLineEdit()
        describe(self._search, "models.my.search", tr("Find a model"), tr("Part of a name, a quant, or an app"))
        self._search.setPlaceholderText(tr("Find a model"))
        self._search.setClearButtonEnabled(True)
        self._search.setMaximumWidth(260)
        self._search.textChanged.connect(self._on_search)
        self._total = QLabel()
        self._total.setObjectName("models.my.total")
        self._total.setProperty("kind", "dim")
        self._apps = TextButton(self._keeper, tr("Other apps' files"), kind="pill")
        self._apps.setCheckable(True)
        describe(
            self._apps, "models.my.apps", tr("Other apps' files"),
            tr("Show files of LM Studio, Jan, Ollama, llama.cpp and the Hugging Face cache too; they stay as they are"),
        )  # fmt: skip
        self._apps.clicked.connect(lambda on: self._bridge.show_other_apps(wanted=on))
        compare = TextButton(self._keeper, " " + tr("Look for newer files"), icon_name="again")
        describe(
            compare, "models.my.compare", tr("Look for newer files"), tr("Ask Hugging Face what it has now"),
        )  # fmt: skip
        compare.clicked.connect(self._bridge.compare_all)
        folder = TextButton(self._keeper, " " + tr("Add folder…"), icon_name="folder")
        describe(folder, "models.my.folder", tr("Add folder…"), tr("Use the models of a folder where they are"))
        folder.clicked.connect(self.choose_folder)
        finding, tools = QWidget(), QWidget()
        row = QHBoxLayout(finding)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        row.addWidget(self._search, 1)
        row.addWidget(self._total)
        row.addStretch(1)
        flow = FlowLayout(tools)
        for button in (self._apps, compare, folder):
            flow.addWidget(button)
        return BesideOrBelow(finding, tools, least=_LEAST_FINDING)

    def _notice_line(self) -> QWidget:
        self._notice_text = QLabel()
        self._notice_text.setObjectName("models.my.notice")
        self._notice_text.setTextFormat(Qt.TextFormat.PlainText)
        self._notice_text.setWordWrap(True)
        close = IconButton(self._keeper, "close", size=16, side=28)
        describe(close, "models.my.notice.dismiss", tr("Dismiss"))
        self._notice = QFrame()
        self._notice.setProperty("kind", "attachment")
        close.clicked.connect(self._notice.hide)
        row = QHBoxLayout(self._notice)
        row.setContentsMargins(14, 6, 8, 6)
        row.addWidget(self._notice_text, 1)
        row.addWidget(close)
        self._notice.hide()
        return self._notice

    def _list(self) -> QScrollArea:
        inner = QWidget()
        inner.setProperty("kind", "column")
        self._column = QVBoxLayout(inner)
        self._column.setContentsMargins(0, 0, 8, 0)
        self._column.setSpacing(10)
        Airy(self._keeper, self._column)
        self._column.addStretch(1)
        self._area = QScrollArea()
        self._area.setWidgetResizable(True)
        self._area.setFrameShape(QFrame.Shape.NoFrame)
        self._area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self._area.setWidget(inner)
        bar = self._area.verticalScrollBar()
        bar.valueChanged.connect(self._on_scroll)
        bar.rangeChanged.connect(self._on_scroll)
        return self._area

    def _refresh(self) -> None:
        everything = self._bridge.entries
        self._apps.setChecked(self._bridge.folders.other_apps)
        self._total.setText(total_text(everything))
        self._empty.setVisible(not everything)
        self._empty.show_looking(is_looking=self._bridge.is_looking)
        self._area.setVisible(bool(everything))
        self._search.setEnabled(bool(everything))
        self._show_rows([entry for entry in everything if matches(entry, self._search.text())])

    def _show_rows(self, entries: list[ModelEntry]) -> None:
        """Rows for the first entries, in their order; one that stays keeps its widgets and the keyboard focus."""
        shown = {entry.model.path: entry for entry in entries[: self._wanted]}
        for path in [path for path in self._rows if path not in shown]:
            row = self._rows.pop(path)
            self._column.removeWidget(row)
            row.deleteLater()
        for index, (path, entry) in enumerate(shown.items()):
            row = self._rows.get(path) or self._new_row(path)
            if self._column.indexOf(row) != index:
                self._column.insertWidget(index, row)
            row.show_entry(entry, is_loaded=path == self._loaded)
        self._more_to_come = len(entries) > len(shown)

    def _new_row(self, path: str) -> ModelRow:
        self._made += 1
        row = self._rows[path] = ModelRow(self._keeper, self._made)
        row.load_asked.connect(lambda: self._bridge.load(path))
        row.verify_asked.connect(lambda: self._bridge.verify(path))
        row.cancel_asked.connect(lambda: self._bridge.cancel(path))
        row.fix_asked.connect(lambda fix: self._bridge.fix(path, fix))
        row.menu_asked.connect(lambda button: self._open_menu(path, button))
        return row

    def _open_menu(self, path: str, button: QWidget) -> None:
        entry = self._rows[path].entry
        if entry is not None:
            menu = RowMenu(self._bridge, entry, self)
            corner = button.rect().bottomRight()
            corner.setX(corner.x() - menu.sizeHint().width())
            menu.popup(button.mapToGlobal(corner))

    def _on_search(self, _text: str) -> None:
        self._wanted = _PORTION
        self._refresh()

    def _on_scroll(self) -> None:
        bar = self._area.verticalScrollBar()
        if self._more_to_come and bar.maximum() - bar.value() < _NEAR_END_PX:
            self._more_to_come = False
            self._wanted += _PORTION
            QTimer.singleShot(0, self, self._refresh)

    def _on_engine(self) -> None:
        report = self._engine.state.report
        loaded = report.options.model if report is not None else ""
        if loaded != self._loaded:
            self._loaded = loaded
            self._refresh()

    def _show_notice(self, sentence: str) -> None:
        self._notice_text.setText(sentence)
        self._notice.show()

    def _ask_deletion(self, deletion: Deletion) -> None:
        ask_deletion(self._bridge, deletion, self)

    def _ask_for_good(self, deletion: Deletion, why: str) -> None:
        ask_deletion(self._bridge, deletion, self, trash_refused=why)
