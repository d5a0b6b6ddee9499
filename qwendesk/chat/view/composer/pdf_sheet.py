"""The dialog that asks how to attach a PDF: as text or as pictures of its pages, and which pages."""

import asyncio

import msgspec
from PySide6.QtWidgets import QButtonGroup, QDialog, QHBoxLayout, QLabel, QLineEdit, QRadioButton, QVBoxLayout, QWidget

from qwendesk.chat.documents.pdf import MAX_PAGE_IMAGES, PdfFacts, parse_pages
from qwendesk.core.errors import BadRequest
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import join_sentences, tr, tr_n
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.question_dialog import Dialog


class PdfChoice(msgspec.Struct, frozen=True):
    pages: tuple[int, ...]
    """Page numbers, counted from 1."""
    as_pictures: bool = False


class PdfSheet(Dialog):
    """The dialog. Use an object only once: `answer` opens it and waits."""

    def __init__(self, name: str, facts: PdfFacts, parent: QWidget, *, can_see: bool) -> None:
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
        describe(self._text, "pdf.text", tr("Its text"), tr("Exact, and uses few tokens"))
        self._pictures = QRadioButton(tr("Its pages as pictures"))
        describe(
            self._pictures,
            "pdf.pictures",
            tr("Its pages as pictures"),
            tr("For scans, tables, drawings and formulas. About 1,400 tokens per page.")
            if can_see
            else tr("This model can't see pictures. Choose its vision file (mmproj) first."),
        )
        self._pictures.setEnabled(can_see)
        group = QButtonGroup(self)
        for choice in (self._text, self._pictures):
            group.addButton(choice)
            column.addWidget(choice)
        (self._pictures if can_see and facts.looks_scanned else self._text).setChecked(True)
        column.addLayout(self._pages_row())
        column.addWidget(self._problem_label())
        column.addLayout(self._buttons())
        self._text.toggled.connect(self._check)
        self._pages.textChanged.connect(self._check)
        self._check()
        self.finished.connect(self._on_finished)

    async def answer(self) -> PdfChoice | None:
        """Open the dialog and return the choice; None if it was cancelled."""
        self.open()
        self._pages.setFocus()
        try:
            return await self._future
        finally:
            self.hide()
            self.deleteLater()

    def _about(self, *, can_see: bool) -> QLabel:
        facts = self._facts
        text = tr_n(
            "{0} page, {1} characters of text.",
            "{0} pages, {1} characters of text.",
            facts.pages,
            show_count(facts.characters),
        )
        if facts.looks_scanned:
            advice = (
                tr("This looks like a scan with almost no text. Attach its pages as pictures.")
                if can_see
                else tr("This looks like a scan with almost no text, and this model can't see pictures.")
            )
            text = join_sentences(text, advice)
        about = QLabel(text)
        about.setObjectName("pdf.about")
        about.setProperty("kind", "small")
        about.setWordWrap(True)
        return about

    def _pages_row(self) -> QHBoxLayout:
        self._pages = QLineEdit()
        self._pages.setPlaceholderText(tr("All, or 1-3, 7"))
        describe(self._pages, "pdf.pages", tr("Pages"), tr("The pages to attach, such as 1-3, 7. Leave empty for all."))
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

    def _buttons(self) -> QHBoxLayout:
        cancel = TextButton(tr("Cancel"), kind="quiet")
        describe(cancel, "pdf.cancel", tr("Cancel"), tr("Don't attach the file"), "Esc")
        cancel.clicked.connect(self.reject)
        self._attach = TextButton(tr("Attach"), kind="primary")
        self._attach.setDefault(True)
        describe(self._attach, "pdf.attach", tr("Attach"), tr("Attach it to the message"), "Return")
        self._attach.clicked.connect(self.accept)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(cancel)
        row.addWidget(self._attach)
        return row

    def _chosen(self) -> PdfChoice:
        """Return the choice. Raises BadRequest for too many pages, or pages that don't exist."""
        pages = parse_pages(self._pages.text(), self._facts.pages)
        as_pictures = self._pictures.isChecked()
        if as_pictures and len(pages) > MAX_PAGE_IMAGES:
            sentence = tr("You can attach at most {0} pages as pictures. Choose which ones.", MAX_PAGE_IMAGES)
            raise BadRequest(tr("Too many pages"), sentence)
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
