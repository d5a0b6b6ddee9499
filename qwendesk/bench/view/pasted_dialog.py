"""The dialog in which users paste measured speeds for this PC's advice, see those that they pasted, and remove them."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QPlainTextEdit, QVBoxLayout, QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.models.catalog_service import CatalogService, CatalogState
from qwendesk.models.view.speed_texts import report_text
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.kit import paragraph
from qwendesk.widgets.layouts import steady_scroll_area
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.rows.text_row import LimitedTextEdit
from qwendesk.widgets.tasks import window_tasks

# Of the dialog and of its field, in logical pixels.
_WIDTH, _HEIGHT, _FIELD_HEIGHT = 640, 560, 150


class PastedDialog(Dialog):
    """Deletes itself when it is closed."""

    def __init__(self, parent: QWidget, catalog: CatalogService, cards_here: str) -> None:
        """`cards_here` names this PC's GPUs, as the field for the cards takes them; "" if there are none."""
        super().__init__(parent)
        self._catalog, self._cards_here, self._tasks = catalog, cards_here, window_tasks()
        title = tr("Speeds for this PC's advice")
        self.setObjectName("pasted")
        self.setWindowTitle(title)
        self.setAccessibleName(title)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        words = tr(
            "Paste a row that somebody copied here, or what llama-bench printed, with the lines that name the graphics "
            "card. The speeds of generation then count for PCs with that card, beside those that the catalog has. They "
            "stay on this PC."
        )
        self._text = LimitedTextEdit()
        self._text.setFixedHeight(_FIELD_HEIGHT)
        self._text.setProperty("kind", "details")
        self._text.setTabChangesFocus(True)
        self._text.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._text.setPlaceholderText("| model | size | params | backend | ngl | test | t/s |")
        describe(self._text, "pasted.text", tr("Measured speeds"))
        self._cards = QLineEdit()
        example = tr("Such as RTX 3090 24 GB, or DDR5-5600 for a CPU")
        self._cards.setPlaceholderText(example)
        describe(self._cards, "pasted.cards", tr("Graphics card, if the text doesn't name it"), example)
        self._note = paragraph(kind="small", name="pasted.note")
        self._note.hide()
        self._text.paste_refused.connect(self._refuse)
        self._list = QWidget()
        self._list.setProperty("kind", "column")
        self._rows = QVBoxLayout(self._list)
        self._rows.setContentsMargins(0, 0, 8, 0)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 16)
        column.setSpacing(8)
        column.addWidget(paragraph(title, "heading", name="pasted.title"))
        column.addWidget(paragraph(words, "dim", name="pasted.words"))
        column.addWidget(self._text)
        column.addWidget(
            paragraph(tr("Graphics card, if the text doesn't name it"), "small", name="pasted.cards.label")
        )
        column.addLayout(self._cards_row())
        column.addWidget(self._note)
        column.addWidget(steady_scroll_area(self._list), 1)
        column.addLayout(self._buttons())
        self.resize(min(_WIDTH, parent.window().width() - 40), min(_HEIGHT, parent.window().height() - 40))
        bind_field(self, catalog.state, _pasted, self._show_reports)
        self._text.setFocus()

    def _cards_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addWidget(self._cards, 1)
        if self._cards_here:
            here = TextButton(tr("This PC's"))
            describe(here, "pasted.here", tr("This PC's"), self._cards_here)
            here.setAutoDefault(False)
            here.clicked.connect(lambda: self._cards.setText(self._cards_here))
            row.addWidget(here)
        return row

    def _buttons(self) -> QHBoxLayout:
        add = TextButton(tr("Add"), kind="primary")
        describe(add, "pasted.add", tr("Add"), tr("Count these speeds in the advice for this PC"))
        add.clicked.connect(lambda: self._tasks.start(self._add(), owner=self))
        close = TextButton(tr("Close"))
        describe(close, "pasted.close", tr("Close"), shortcut="Esc")
        close.clicked.connect(self.reject)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addStretch(1)
        for button in (add, close):
            button.setAutoDefault(False)
            row.addWidget(button)
        return row

    async def _add(self) -> None:
        try:
            found = await self._catalog.add_reports(self._text.toPlainText(), self._cards.text())
        except QwenDeskError as error:
            self._say(error.sentence, is_error=True)
            return
        self._text.clear()
        added = tr_n("{0} speed was added.", "{0} speeds were added.", len(found.reports))
        self._say(join_sentences(added, *found.left_out))

    async def _remove(self, report: SpeedReport) -> None:
        try:
            await self._catalog.remove_report(report)
        except QwenDeskError as error:
            self._say(error.sentence, is_error=True)

    def _refuse(self, sentence: str) -> None:
        self._say(sentence, is_error=True)

    def _say(self, text: str, *, is_error: bool = False) -> None:
        restyle(self._note, "kind", "error" if is_error else "small")
        self._note.setText(text)
        self._note.show()

    def _show_reports(self, reports: tuple[SpeedReport, ...]) -> None:
        while (item := self._rows.takeAt(0)) is not None:
            if (widget := item.widget()) is not None:
                widget.deleteLater()
        for number, report in enumerate(reports, 1):
            self._rows.addWidget(self._row(number, report))
        self._rows.addStretch(1)

    def _row(self, number: int, report: SpeedReport) -> QWidget:
        text = paragraph(report_text(report), "small", name=f"pasted.report.{number}")
        remove = IconButton("close")
        describe(remove, f"pasted.remove.{number}", tr("Remove"), tr("Don't count this speed any more"))
        remove.clicked.connect(lambda: self._tasks.start(self._remove(report), owner=self))
        box = QWidget()
        row = QHBoxLayout(box)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(text, 1)
        row.addWidget(remove)
        return box


def _pasted(state: CatalogState) -> tuple[SpeedReport, ...]:
    speeds = state.catalog.contents.speeds if state.catalog is not None else ()
    return tuple(report for report in speeds if report.is_pasted)
