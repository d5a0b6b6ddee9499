"""One repository of the Hub: its model, and each file with its size and whether it fits."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QLabel, QVBoxLayout

from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.model_titles import ModelName
from qwendesk.core.number_format import show_date
from qwendesk.core.translation import join_list, tr, tr_n
from qwendesk.core.units import show_bytes, show_tokens
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.repo_files import RepoFile
from qwendesk.models.search import OpenedRepo
from qwendesk.models.view.file_button import file_button, show_file_status
from qwendesk.models.view.file_table import FileLine, FileTable, fit_chip, small_label
from qwendesk.models.view.offer_texts import licence_text
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, ResponsivePairLayout, widget_with
from qwendesk.widgets.text_layout import WrappingLabel

# Least width in pixels of the name next to the button.
_LEAST_NAME = 320


class RepoView(QFrame):
    """Shows an OpenedRepo. `chosen` carries the RepoFile whose button was clicked."""

    chosen = Signal(object)
    back_asked = Signal()
    retry_asked = Signal(str)
    """Asks to list the files of this repository again."""

    def __init__(self) -> None:
        super().__init__()
        self._shown: OpenedRepo | None = None
        self._named: ModelName | None = None
        self._statuses = FileStatuses()
        self._buttons: list[tuple[RepoFile, TextButton]] = []
        self._table: FileTable | None = None
        self.setProperty("kind", "modelcard")
        self.setObjectName("hub.repo")
        back = TextButton(tr("Back to results"))
        describe(back, "hub.back", tr("Back to results"))
        back.clicked.connect(self.back_asked)
        self._name = WrappingLabel()
        self._name.setProperty("kind", "heading")
        self._name.setObjectName("hub.repo.name")
        self._marks = WrappingLabel()
        self._marks.setProperty("chip", "warn")
        self._facts = QLabel()
        self._facts.setProperty("kind", "dim")
        self._facts.setObjectName("hub.repo.facts")
        self._facts.setWordWrap(True)
        self._licence = small_label("")
        self._licence.setObjectName("hub.repo.licence")
        self._licence.setTextFormat(Qt.TextFormat.PlainText)
        self._licence.setWordWrap(True)
        self._problem = QLabel()
        self._problem.setProperty("kind", "error")
        self._problem.setObjectName("hub.repo.problem")
        self._problem.setWordWrap(True)
        self._retry = TextButton(tr("Retry"), icon_name="again")
        describe(self._retry, "hub.repo.retry", tr("Retry"), tr("Ask Hugging Face again"))
        self._retry.clicked.connect(self._on_retry)
        title = FlowLayout()
        title.addWidget(self._name)
        title.addWidget(self._marks)
        head = ResponsivePairLayout(widget_with(title), back, least=_LEAST_NAME)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(18, 14, 18, 14)
        self._column.setSpacing(8)
        DensitySpacing(self._column)
        self._column.addLayout(head)
        self._column.addWidget(self._facts)
        self._column.addWidget(self._licence)
        self._column.addWidget(self._problem)
        self._named_note = QLabel()
        self._named_note.setProperty("kind", "small")
        self._named_note.setObjectName("hub.repo.named")
        self._named_note.setWordWrap(True)
        self._named_note.setTextFormat(Qt.TextFormat.PlainText)
        self._named_note.hide()
        self._column.addWidget(self._named_note)
        self._column.addWidget(self._retry, 0, Qt.AlignmentFlag.AlignLeft)

    def show_named(self, name: ModelName) -> None:
        """Remember which file of a repository was named, to show it first once the repository is open."""
        self._named = name

    def forget_named(self, repo: str) -> None:
        """Forget the named file unless it is one of `repo`."""
        if self._named is not None and self._named.repo != repo:
            self._named = None

    def show_repo(self, opened: OpenedRepo, marks: tuple[str, ...]) -> None:
        if opened == self._shown:
            return
        self._shown = opened
        self._name.setText(opened.repo)
        self._marks.setText(marks_text(marks))
        self._marks.setVisible(bool(marks))
        facts = _facts_line(opened)
        self._facts.setText(facts)
        self._facts.setVisible(bool(facts))
        self._licence.setText(licence_text(opened.licence) if opened.licence is not None else "")
        self._licence.setVisible(opened.licence is not None)
        self._problem.setText(opened.problem)
        self._problem.setVisible(bool(opened.problem))
        self._retry.setVisible(opened.state == "failed")
        self._show_items(opened.items)

    def show_statuses(self, statuses: FileStatuses) -> None:
        self._statuses = statuses
        repo = self._shown.repo if self._shown is not None else ""
        for item, button in self._buttons:
            show_file_status(button, statuses, repo, item.path)

    def _on_retry(self) -> None:
        if self._shown is not None:
            self.retry_asked.emit(self._shown.repo)

    def _show_items(self, items: tuple[RepoFile, ...]) -> None:
        if self._table is not None:
            self._column.removeWidget(self._table)
            self._table.setParent(None)
            self._table.deleteLater()
            self._table = None
        self._buttons = []
        if items:
            named = _named_file(self._named, items)
            in_order = sorted(
                items,
                key=lambda item: (item is not named, bool(item.program), item.fit.rank if item.fit is not None else 0),
            )
            self._show_named(named, items)
            self._table = FileTable("hub.files", [self._line(item) for item in in_order])
            self._column.addWidget(self._table)
            self._table.show()
        self.show_statuses(self._statuses)

    def _show_named(self, named: RepoFile | None, items: Sequence[RepoFile] = ()) -> None:
        """Say which of the files was named, that the name could mean another one too, or that it isn't here."""
        wanted = self._named.path or self._named.quant if self._named is not None else ""
        text = ""
        if wanted and named is not None:
            text = tr("You named {0}: it's the first.", wanted)
            twin = next((each for each in items if _is_twin(named, each)), None)
            if twin is not None and self._named is not None and not self._named.path:
                text += " " + tr("{0} could mean {1} too.", wanted, twin.name)
        elif wanted:
            text = tr("{0} isn't here.", wanted)
        self._named_note.setText(text)
        self._named_note.setVisible(bool(text))

    def _line(self, item: RepoFile) -> FileLine:
        name = WrappingLabel(item.quant or item.name)
        name.setToolTip(item.path)
        size = show_bytes(item.n_bytes + item.mmproj_bytes)
        words = tr("{0} with vision file", size) if item.mmproj_bytes else size
        if item.n_shards > 1:
            words = tr_n("{1}, {0} shard", "{1}, {0} shards", item.n_shards, words)
        fit = fit_chip(item.fit) if item.fit is not None and not item.program else QLabel()
        fit.setObjectName(f"hub.fit.{item.name}")
        date = small_label(show_date(item.date))
        get = file_button()
        describe(get, f"hub.get.{item.name}", tr("Download {0}, {1}", item.name, words))
        get.clicked.connect(lambda: self.chosen.emit(item))
        self._buttons.append((item, get))
        return FileLine(
            name=name,
            size=WrappingLabel(words),
            fit=fit,
            detail=date,
            button=get,
            notes=(WrappingLabel(tr("Not for QwenDesk, but for {0}.", item.program)),) if item.program else (),
            # The file that was named is among the first, even if it doesn't fit.
            fits=item.fit is None or item.fit.kind != "too_large" or item is _named_file(self._named, (item,)),
        )


def _named_file(name: ModelName | None, items: Sequence[RepoFile]) -> RepoFile | None:
    """Return the file that `name` means: by its path, or by its quant; None if it isn't there or none was named."""
    if name is None or not (name.path or name.quant):
        return None
    if name.path:
        return next((item for item in items if item.path == name.path or item.path.endswith(f"/{name.path}")), None)
    quant = name.quant.upper()
    exact = next((item for item in items if item.quant.upper() == quant), None)
    return exact or next((item for item in items if f"-{quant}." in f"{item.name.upper()}."), None)


def _is_twin(one: RepoFile, other: RepoFile) -> bool:
    """Return whether two files are of one quant: one with the MTP layer inside, and one without."""
    same = one.quant.removesuffix("-MTP") == other.quant.removesuffix("-MTP")
    return bool(one.quant) and same and one.quant != other.quant


def marks_text(marks: tuple[str, ...]) -> str:
    """Return "uncensored, abliterated", or "" if there are no marks."""
    return join_list(
        {"uncensored": tr("uncensored"), "abliterated": tr("abliterated")}.get(mark, mark) for mark in marks
    )


def _facts_line(opened: OpenedRepo) -> str:
    if opened.state == "looking":
        return tr("Asking Hugging Face…")
    if opened.state == "failed":
        return ""
    if not opened.items:
        return tr("This repository has no GGUF models.")
    if opened.facts is not None:
        return _header_text(opened.facts)
    if opened.facts_problem:
        return tr("Couldn't estimate the fit: {0}", opened.facts_problem)
    if opened.model:
        return tr("Model: {0}", opened.model)
    return tr("Reading a file header…")


def _header_text(facts: ModelFacts) -> str:
    """Return "Qwen3.5 9B · qwen35 · 32 layers · context 256K". The layer for speculative decoding counts apart."""
    layers = facts.block_count - facts.nextn_layers
    parts = [
        facts.name,
        facts.architecture,
        tr_n("{0} layer", "{0} layers", layers) if layers else "",
        tr("MTP inside") if facts.nextn_layers else "",
        tr_n("{0} expert", "{0} experts", facts.expert_count) if facts.expert_count else "",
        tr("context {0}", show_tokens(facts.context_length)) if facts.context_length else "",
    ]
    return " · ".join(part for part in parts if part)
