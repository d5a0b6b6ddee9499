"""The tab "Hugging Face": searching, sorting, filtering by fit, and opening a repository."""

from typing import Final

from PySide6.QtCore import Qt
from PySide6.QtGui import QShowEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QVBoxLayout, QWidget

from qwendesk.commands.pasted_text import named_model
from qwendesk.core.number_format import show_date
from qwendesk.core.translation import mark, tr, tr_n
from qwendesk.hub.remote import Sort
from qwendesk.models.model_list import FileStatuses
from qwendesk.models.repo_files import RepoFile
from qwendesk.models.search import HubSearchHit, SearchState
from qwendesk.models.services import ModelServices
from qwendesk.models.view.file_button import FileOffersTab
from qwendesk.models.view.model_actions import ModelActions
from qwendesk.models.view.offer_texts import model_facts_text
from qwendesk.models.view.repo_view import RepoView, marks_text
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.buttons import ChevronButton, TextButton, describe
from qwendesk.widgets.layouts import DensitySpacing, FlowLayout, ResponsivePairLayout, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.text_layout import WrappingLabel

# Least width in pixels of the search field and of a repository's name next to what is on their right.
_LEAST_QUERY, _LEAST_NAME = 240, 320
_SORTS: Final[dict[Sort, str]] = {
    "downloads": mark("Most downloaded"),
    "trending_score": mark("Trending"),
    "likes": mark("Most liked"),
    "last_modified": mark("Newest"),
}


class SearchTab(FileOffersTab):
    """The tab "Hugging Face"."""

    def __init__(self, services: ModelServices, actions: ModelActions, navigation: Navigation) -> None:
        super().__init__(services, actions, navigation, "hub")
        self._service = search = services.search
        self._shown: tuple[HubSearchHit, ...] | None = None
        self._rows: list[tuple[HubSearchHit, QFrame]] = []
        self._query = QLineEdit()
        describe(
            self._query,
            "hub.query",
            tr("Search Hugging Face"),
            tr("Search by name, or paste a link, owner/name:quant or a command. Only GGUF models are shown."),
        )
        self._query.setPlaceholderText(tr("Search Hugging Face for GGUF models"))
        self._query.returnPressed.connect(self._search)
        self._sort = ChevronButton()
        self._sort.clicked.connect(self._open_sorts)
        self._sorts = self._sort_menu()
        self._choose_sort("downloads")
        self._fits = TextButton(tr("Fits this PC"), kind="pill")
        self._fits.setCheckable(True)
        tip = tr("Hide models that are too large for this PC, judging by their name")
        describe(self._fits, "hub.fits", tr("Fits this PC"), tip)
        self._fits.toggled.connect(self._filter)
        go = TextButton(tr("Search"), kind="primary")
        describe(go, "hub.search", tr("Search"))
        go.clicked.connect(self._search)
        tools = FlowLayout()
        for widget in (self._sort, self._fits, go):
            tools.addWidget(widget)
        top = ResponsivePairLayout(self._query, widget_with(tools), least=_LEAST_QUERY)
        self._status = QLabel()
        self._status.setObjectName("hub.status")
        self._status.setWordWrap(True)
        self._status.setProperty("kind", "dim")
        self._search_again = TextButton(tr("Retry"), icon_name="again")
        describe(self._search_again, "hub.retry", tr("Retry"), tr("Ask Hugging Face again"))
        self._search_again.clicked.connect(self._search)
        self._status_row = widget_with(ResponsivePairLayout(self._status, self._search_again, least=_LEAST_QUERY))
        self._repo = RepoView()
        self._repo.back_asked.connect(self._close_repo)
        self._repo.retry_asked.connect(self._open)
        self._repo.chosen.connect(self._on_chosen)
        self._results = QWidget()
        self._list = QVBoxLayout(self._results)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(8)
        DensitySpacing(self._list)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(top)
        column.addWidget(self._status_row)
        column.addWidget(self.problem)
        column.addWidget(self._repo)
        column.addWidget(self._results)
        column.addStretch(1)
        bind(self, search.state, self._show)
        bind_field(self, services.list.state, lambda state: state.statuses, self.show_statuses)

    def show_statuses(self, statuses: FileStatuses) -> None:
        self._statuses = statuses
        self._repo.show_statuses(statuses)

    def _sort_menu(self) -> Menu:
        menu = Menu(self)
        menu.setObjectName("hub.sorts")
        for value, text in _SORTS.items():
            action = menu.addAction(tr(text))
            action.setObjectName(f"hub.sort.{value}")
            action.triggered.connect(lambda _checked=False, value=value: self._sort_by(value))
        return menu

    def _open_sorts(self) -> None:
        self._sorts.open_at(self._sort)

    def _sort_by(self, sort: Sort) -> None:
        self._choose_sort(sort)
        if self._service.state.value.state != "idle":
            self._search()

    def _choose_sort(self, sort: Sort) -> None:
        self._sorted_by: Sort = sort
        self._sort.setText(tr(_SORTS[sort]))
        describe(self._sort, "hub.sort", tr("Sorted by: {0}", tr(_SORTS[sort])), tr("Change the sort order"))

    def showEvent(self, event: QShowEvent) -> None:
        super().showEvent(event)
        if self._service.state.value.state == "idle":
            self._tasks.start(self._service.show_catalog())

    def search(self, text: str, sort: Sort = "downloads") -> None:
        """Open the repository that `text` names, or search for its words. "" shows the catalog.

        A repository is named as "owner/name", with ":QUANT" behind it, by a link to it or to one of its files, or in a
        command.
        """
        named = named_model(text)
        if named is not None and named.repo:
            self._repo.show_named(named)
            self._open(named.repo)
            return
        self._close_repo()
        text = named.words if named is not None else text
        self._tasks.start(self._service.search(text, sort) if text else self._service.show_catalog())

    def _search(self) -> None:
        self.search(self._query.text().strip(), self._sorted_by)

    def _open(self, repo: str) -> None:
        self._repo.forget_named(repo)
        self.problem.show_problem("")
        self._tasks.start(self._service.open(repo))

    def _close_repo(self) -> None:
        self.problem.show_problem("")
        self._service.close_repo()

    def _show(self, state: SearchState) -> None:
        self._status.setText(status_text(state))
        self._status_row.setVisible(state.opened is None)
        self._search_again.setVisible(state.state == "failed")
        if state.hits != self._shown:
            self._show_hits(state.hits)
        opened = state.opened
        self._repo.setVisible(opened is not None)
        self._results.setVisible(opened is None)
        if opened is not None:
            marks = next((hit.found.marks for hit in state.hits if hit.found.repo == opened.repo), ())
            self._repo.show_repo(opened, marks)
            self._repo.show_statuses(self._statuses)

    def _show_hits(self, hits: tuple[HubSearchHit, ...]) -> None:
        self._shown = hits
        for _, row in self._rows:
            self._list.removeWidget(row)
            row.setParent(None)
            row.deleteLater()
        self._rows = [(hit, self._row(hit)) for hit in hits]
        for _, row in self._rows:
            self._list.addWidget(row)
        self._filter()

    def _row(self, hit: HubSearchHit) -> QFrame:
        found = hit.found
        card = QFrame()
        card.setProperty("kind", "modelcard")
        card.setObjectName(f"hub.hit.{found.repo}")
        title = FlowLayout()
        name = WrappingLabel(found.repo)
        name.setTextFormat(Qt.TextFormat.PlainText)
        title.addWidget(name)
        for text, tone in _chips(hit):
            chip = WrappingLabel(text)
            chip.setProperty("chip", tone)
            title.addWidget(chip)
        about = WrappingLabel(_about(hit))
        about.setProperty("kind", "small")
        opener = TextButton(tr("Open"))
        describe(opener, f"hub.open.{found.repo}", tr("Open {0}", found.repo), tr("See its files and whether they fit"))
        opener.clicked.connect(lambda: self._open(found.repo))
        column = QVBoxLayout(card)
        column.setContentsMargins(16, 8, 12, 8)
        DensitySpacing(column)
        row = QHBoxLayout()
        row.addLayout(ResponsivePairLayout(widget_with(title), about, least=_LEAST_NAME, spacing=4), 1)
        row.addWidget(opener)
        column.addLayout(row)
        return card

    def _filter(self) -> None:
        for hit, row in self._rows:
            row.setVisible(not self._fits.isChecked() or hit.may_fit is not False)

    def _on_chosen(self, item: RepoFile) -> None:
        opened = self._service.state.value.opened
        if opened is not None:
            self.handle_click(opened.repo, item.path)


def status_text(state: SearchState) -> str:
    """Return what the search is doing, or why it found nothing and what to do."""
    match state.state:
        case "idle":
            return tr(
                "Qwen models to begin with. To find more, search by name, or paste a link, owner/name:quant or a "
                "command."
            )
        case "searching":
            return tr("Asking Hugging Face…")
        case "failed":
            if state.hits:
                return tr("{0} The built-in list below works offline.", state.problem)
            return tr("{0} The built-in list has nothing for “{1}”.", state.problem, state.query)
    if not state.hits:
        return tr("No GGUF models found for “{0}”. Try fewer words.", state.query)
    return tr_n("{0} repository with GGUF files", "{0} repositories with GGUF files", len(state.hits))


def _about(hit: HubSearchHit) -> str:
    """Return how popular and how old the repository is, or what its model is if it is from the catalog."""
    found = hit.found
    if hit.model is not None:
        return model_facts_text(hit.model, with_pictures=False)
    return tr(
        "{0} · {1} · {2}",
        tr_n("{0} download", "{0} downloads", found.downloads),
        tr_n("{0} like", "{0} likes", found.likes),
        show_date(found.date or ""),
    )


def _chips(hit: HubSearchHit) -> list[tuple[str, str]]:
    chips = []
    if hit.found.marks:
        chips.append((marks_text(hit.found.marks), "warn"))
    if hit.found.gated:
        chips.append((tr("requires accepting terms"), "info"))
    if hit.may_fit is False:
        chips.append((tr("Too large for this PC"), "bad"))
    return chips
