"""One repository of the Hub: quick facts, and each file with its size and whether it fits."""

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QGridLayout, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.services.models.search import Opened, RepoItem
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.text import tr, tr_n
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.have import Have
from qwendesk.ui.models.wording import fit_details, fit_text


class RepoView(QFrame):
    """`wanted` carries the RepoItem to download, or to use when it is on this PC."""

    wanted = Signal(object)
    back_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._shown: Opened | None = None
        self._have = Have()
        self._buttons: list[tuple[RepoItem, TextButton]] = []
        self._table: QWidget | None = None
        self.setProperty("kind", "modelcard")
        self.setObjectName("hub.repo")
        back = TextButton(keeper, tr("Back to the results"), kind="quiet")
        describe(back, "hub.back", tr("Back to the results"))
        back.clicked.connect(self.back_asked)
        self._name = QLabel()
        self._name.setProperty("kind", "heading")
        self._name.setObjectName("hub.repo.name")
        self._marks = QLabel()
        self._marks.setProperty("chip", "warn")
        self._facts = QLabel()
        self._facts.setProperty("kind", "dim")
        self._facts.setObjectName("hub.repo.facts")
        self._facts.setWordWrap(True)
        self._problem = QLabel()
        self._problem.setProperty("kind", "error")
        self._problem.setObjectName("hub.repo.problem")
        self._problem.setWordWrap(True)
        head = QHBoxLayout()
        head.addWidget(self._name)
        head.addWidget(self._marks)
        head.addStretch(1)
        head.addWidget(back)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(18, 14, 18, 14)
        self._column.setSpacing(8)
        Airy(keeper, self._column)
        self._column.addLayout(head)
        self._column.addWidget(self._facts)
        self._column.addWidget(self._problem)

    def show_repo(self, opened: Opened, marks: tuple[str, ...]) -> None:
        if opened == self._shown:
            return
        self._shown = opened
        self._name.setText(opened.repo)
        self._marks.setText(marks_text(marks))
        self._marks.setVisible(bool(marks))
        self._facts.setText(_facts_line(opened))
        self._problem.setText(opened.problem)
        self._problem.setVisible(bool(opened.problem))
        self._show_items(opened.items)

    def show_have(self, have: Have) -> None:
        self._have = have
        repo = self._shown.repo if self._shown is not None else ""
        for item, button in self._buttons:
            have.show_on(button, repo, item.path)

    def say(self, problem: str) -> None:
        """Why a download could not be begun."""
        self._problem.setText(problem)
        self._problem.setVisible(bool(problem))

    def _show_items(self, items: tuple[RepoItem, ...]) -> None:
        if self._table is not None:
            self._column.removeWidget(self._table)
            self._table.setParent(None)
            self._table.deleteLater()
        self._buttons = []
        self._table = QWidget()
        grid = QGridLayout(self._table)
        grid.setContentsMargins(0, 0, 0, 0)
        grid.setHorizontalSpacing(16)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(3, 1)
        for row, item in enumerate(items):
            self._add(grid, row, item)
        self._column.addWidget(self._table)
        self._table.show()
        self.show_have(self._have)

    def _add(self, grid: QGridLayout, row: int, item: RepoItem) -> None:
        name = QLabel(item.quant or item.name)
        name.setToolTip(item.path)
        size = show_bytes(item.n_bytes + item.mmproj_bytes)
        words = tr("{0} with pictures", size) if item.mmproj_bytes else size
        if item.n_parts > 1:
            words = tr_n("{1}, {0} part", "{1}, {0} parts", item.n_parts, words)
        text, tone = fit_text(item.fit) if item.fit is not None else ("", "plain")
        fit = QLabel(text)
        fit.setVisible(bool(text))
        fit.setProperty("chip", tone)
        fit.setObjectName(f"hub.fit.{item.name}")
        fit.setToolTip(fit_details(item.fit) if item.fit is not None else "")
        date = QLabel(item.date)
        date.setProperty("kind", "small")
        get = TextButton(self._keeper, tr("Download"), kind="quiet")
        describe(get, f"hub.get.{item.name}", tr("Download {0}, {1}", item.name, words))
        get.clicked.connect(lambda: self.wanted.emit(item))
        self._buttons.append((item, get))
        left = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        for column, cell in enumerate((name, QLabel(words), fit, date)):
            grid.addWidget(cell, row, column, left)
        grid.addWidget(get, row, 4)


def marks_text(marks: tuple[str, ...]) -> str:
    """ "uncensored, abliterated", or "" for a repository that admits to nothing."""
    return ", ".join(
        {"uncensored": tr("uncensored"), "abliterated": tr("abliterated")}.get(mark, mark) for mark in marks
    )


def _facts_line(opened: Opened) -> str:
    if opened.state == "looking":
        return tr("Asking Hugging Face…")
    if opened.state == "failed":
        return ""
    if not opened.items:
        return tr("There is no GGUF model in this repository.")
    if opened.facts is not None:
        return _header_text(opened.facts)
    if opened.facts_problem:
        return tr("The header could not be read, so the fit is not known: {0}", opened.facts_problem)
    if opened.model:
        return tr("{0}, by the catalog.", opened.model)
    return tr("Reading the header of a file…")


def _header_text(facts: ModelFacts) -> str:
    """ "Qwen3.5 9B · qwen35 · 32 layers · context 256K"."""
    parts = [
        facts.name,
        facts.architecture,
        tr_n("{0} layer", "{0} layers", facts.block_count) if facts.block_count else "",
        tr_n("{0} expert", "{0} experts", facts.expert_count) if facts.expert_count else "",
        tr("context {0}", show_tokens(facts.context_length)) if facts.context_length else "",
    ]
    return " · ".join(part for part in parts if part)
