"""How a PDF is to be attached: as text or as pictures of its pages, and which pages."""

import asyncio

import msgspec
from PySide6.QtWidgets import QButtonGroup, QDialog, QHBoxLayout, QLabel, QLineEdit, QRadioButton, QVBoxLayout, QWidget

from qwendesk.core.errors import BadRequest
from qwendesk.services.documents.page_range import parse_pages
from qwendesk.services.documents.pdf import MOST_PICTURES, PdfFacts
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr, tr_n
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


class PdfChoice(msgspec.Struct, frozen=True):
    pages: tuple[int, ...]
    """From 1."""
    as_pictures: bool = False


class PdfSheet(QDialog):
    """Asks once; `answer` waits for it."""

    def __init__(self, keeper: ThemeKeeper, name: str, facts: PdfFacts, parent: QWidget, *, can_see: bool) -> None:
        super().__init__(parent)
        self._facts = facts
        self._future: asyncio.Future[PdfChoice | None] = asyncio.get_running_loop().create_future()
        self.setObjectName("pdf.sheet")
        self.setWindowTitle(tr("Attach {0}", name))
        self.setMinimumWidth(460)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 18, 20, 18)
        column.setSpacing(10)
        heading = QLabel(name)
        heading.setProperty("kind", "heading")
        column.addWidget(heading)
        column.addWidget(self._about(can_see=can_see))
        self._text = QRadioButton(tr("Its text"))
        describe(self._text, "pdf.text", tr("Its text"), tr("The words only: few tokens, and exact"))
        self._pictures = QRadioButton(tr("Its pages as pictures"))
        describe(
            self._pictures,
            "pdf.pictures",
            tr("Its pages as pictures"),
            tr("As they look: for scans, tables, drawings and formulas. About 1,400 tokens a page")
            if can_see
            else tr("This model cannot see pictures until its mmproj file is chosen."),
        )
        self._pictures.setEnabled(can_see)
        group = QButtonGroup(self)
        for choice in (self._text, self._pictures):
            group.addButton(choice)
            column.addWidget(choice)
        (self._pictures if can_see and facts.looks_scanned else self._text).setChecked(True)
        column.addLayout(self._pages_row())
        column.addWidget(self._problem_label())
        column.addLayout(self._buttons(keeper))
        self._text.toggled.connect(self._check)
        self._pages.textChanged.connect(self._check)
        self._check()
        self.finished.connect(self._on_finished)

    async def answer(self) -> PdfChoice | None:
        """None when it was closed."""
        self.open()
        self._pages.setFocus()
        try:
            return await self._future
        finally:
            self.hide()
            self.deleteLater()

    def _about(self, *, can_see: bool) -> QLabel:
        facts = self._facts
        words = tr_n(
            "{0} page, {1} characters of text.",
            "{0} pages, {1} characters of text.",
            facts.pages,
            f"{facts.characters:,}",
        )
        if facts.looks_scanned:
            advice = (
                tr("It looks scanned: there is next to no text in it, so take its pages as pictures.")
                if can_see
                else tr("It looks scanned: there is next to no text in it, and this model cannot see pictures.")
            )
            words = f"{words} {advice}"
        about = QLabel(words)
        about.setObjectName("pdf.about")
        about.setProperty("kind", "small")
        about.setWordWrap(True)
        return about

    def _pages_row(self) -> QHBoxLayout:
        self._pages = QLineEdit()
        self._pages.setPlaceholderText(tr("All, or 1-3, 7"))
        describe(self._pages, "pdf.pages", tr("Pages"), tr("Which pages, such as 1-3, 7; empty for all"))
        label = QLabel(tr("Pages"))
        label.setBuddy(self._pages)
        row = QHBoxLayout()
        row.setSpacing(12)
        row.addWidget(label)
        row.addWidget(self._pages, 1)
        return row

    def _problem_label(self) -> QLabel:
        self._problem = QLabel()
        self._problem.setObjectName("pdf.problem")
        self._problem.setProperty("kind", "notice")
        self._problem.setWordWrap(True)
        return self._problem

    def _buttons(self, keeper: ThemeKeeper) -> QHBoxLayout:
        cancel = TextButton(keeper, tr("Cancel"), kind="quiet")
        describe(cancel, "pdf.cancel", tr("Cancel"), tr("Attach nothing"), "Esc")
        cancel.clicked.connect(self.reject)
        self._attach = TextButton(keeper, tr("Attach"), kind="primary")
        self._attach.setDefault(True)
        describe(self._attach, "pdf.attach", tr("Attach"), tr("Attach it to the question"), "Return")
        self._attach.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(cancel)
        row.addWidget(self._attach)
        return row

    def _chosen(self) -> PdfChoice:
        """Raises BadRequest for pages that are none."""
        pages = parse_pages(self._pages.text(), self._facts.pages)
        as_pictures = self._pictures.isChecked()
        if as_pictures and len(pages) > MOST_PICTURES:
            sentence = tr("At most {0} pages can be pictures at once: say which ones.", MOST_PICTURES)
            raise BadRequest("Too many pages", sentence)
        return PdfChoice(pages, as_pictures)

    def _check(self) -> None:
        try:
            self._chosen()
        except BadRequest as error:
            self._problem.setText(error.sentence)
        else:
            self._problem.setText("")
        self._problem.setVisible(bool(self._problem.text()))
        self._attach.setEnabled(not self._problem.text())

    def _on_finished(self, result: int) -> None:
        if not self._future.done():
            self._future.set_result(self._chosen() if result == QDialog.DialogCode.Accepted else None)
