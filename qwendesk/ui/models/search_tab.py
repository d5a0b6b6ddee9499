"""The tab "Hugging Face": search, sort, filter by fit, and look into any repository with GGUF files."""

from typing import Final

from PySide6.QtCore import QPoint, Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QMenu, QVBoxLayout, QWidget

from qwendesk.hub.remote import Sort
from qwendesk.services.models.search import Hit, RepoItem, SearchState
from qwendesk.ui.bridges.search import SearchBridge
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.text import mark, tr, tr_n
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.models.have import Have
from qwendesk.ui.models.offers_files import OffersFiles
from qwendesk.ui.models.repo_view import RepoView, marks_text

_FIRST_QUERY = "Qwen3.5"
_SORTS: Final[dict[Sort, str]] = {
    "downloads": mark("Most downloaded"),
    "trending_score": mark("Trending"),
    "likes": mark("Most liked"),
    "last_modified": mark("Newest"),
}


class SearchTab(OffersFiles):
    """Shows the bridge's SearchState; the window never waits for the Hub."""

    download_asked = Signal(str, str)
    """Repository, path in it."""

    def __init__(self, keeper: ThemeKeeper, search: SearchBridge) -> None:
        super().__init__()
        self._keeper, self._bridge = keeper, search
        self._shown: tuple[Hit, ...] | None = None
        self._rows: list[tuple[Hit, QFrame]] = []
        self._query = QLineEdit(_FIRST_QUERY)
        describe(self._query, "hub.query", tr("Search Hugging Face"), tr("Words of a name; only GGUF files are shown"))
        self._query.setPlaceholderText(tr("Search Hugging Face for GGUF models"))
        self._query.setClearButtonEnabled(False)
        self._query.returnPressed.connect(self._search)
        self._sort = TextButton(keeper, icon_name="down")
        self._sort.setLayoutDirection(Qt.LayoutDirection.RightToLeft)
        self._sort.clicked.connect(self._open_sorts)
        self._sorts = self._sort_menu()
        self._choose_sort("downloads")
        self._fits = TextButton(keeper, tr("Only what may fit"), kind="pill")
        self._fits.setCheckable(True)
        tip = tr("Hide repositories whose name tells a size that does not fit here even with 4 bits")
        describe(self._fits, "hub.fits", tr("Only what may fit"), tip)
        self._fits.toggled.connect(self._filter)
        go = TextButton(keeper, tr("Search"), kind="primary")
        describe(go, "hub.search", tr("Search"))
        go.clicked.connect(self._search)
        top = QHBoxLayout()
        top.setSpacing(10)
        top.addWidget(self._query, 1)
        tools = FlowLayout(spacing=10)
        for widget in (self._sort, self._fits, go):
            tools.addWidget(widget)
        top.addLayout(tools)
        self._status = QLabel()
        self._status.setObjectName("hub.status")
        self._status.setWordWrap(True)
        self._status.setProperty("kind", "dim")
        self._repo = RepoView(keeper)
        self._repo.back_asked.connect(search.close_repo)
        self._repo.wanted.connect(self._on_wanted)
        self._results = QWidget()
        self._list = QVBoxLayout(self._results)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(8)
        Airy(keeper, self._list)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(12)
        column.addLayout(top)
        column.addWidget(self._status)
        column.addWidget(self._repo)
        column.addWidget(self._results)
        column.addStretch(1)
        search.changed.connect(self._refresh)
        self._refresh()

    def show_have(self, have: Have) -> None:
        """What is on this PC or on its way."""
        self._have = have
        self._repo.show_have(have)

    def say(self, problem: str) -> None:
        """Why a download could not be begun; "" for nothing to say."""
        self._repo.say(problem)

    def _sort_menu(self) -> QMenu:
        menu = QMenu(self)
        menu.setObjectName("hub.sorts")
        for value, text in _SORTS.items():
            action = menu.addAction(tr(text))
            action.setObjectName(f"hub.sort.{value}")
            action.triggered.connect(lambda _checked=False, value=value: self._sort_by(value))
        return menu

    def _open_sorts(self) -> None:
        self._sorts.popup(self._sort.mapToGlobal(QPoint(0, self._sort.height() + 4)))

    def _sort_by(self, sort: Sort) -> None:
        self._choose_sort(sort)
        if self._bridge.state.state != "idle":
            self._search()

    def _choose_sort(self, sort: Sort) -> None:
        self._sorted_by: Sort = sort
        self._sort.setText(tr(_SORTS[sort]))
        describe(self._sort, "hub.sort", tr("Sorted by: {0}", tr(_SORTS[sort])), tr("Sort by something else"))

    def _search(self) -> None:
        text = self._query.text().strip()
        if text.count("/") == 1 and " " not in text and all(text.split("/")):
            self._bridge.open(text)
            return
        self._bridge.close_repo()
        self._bridge.search(text, self._sorted_by)

    def _refresh(self) -> None:
        state = self._bridge.state
        self._status.setText(status_text(state))
        self._status.setVisible(state.opened is None)
        if state.hits != self._shown:
            self._show_hits(state.hits)
        opened = state.opened
        self._repo.setVisible(opened is not None)
        self._results.setVisible(opened is None)
        if opened is not None:
            marks = next((hit.found.marks for hit in state.hits if hit.found.repo == opened.repo), ())
            self._repo.show_repo(opened, marks)
            self._repo.show_have(self._have)

    def _show_hits(self, hits: tuple[Hit, ...]) -> None:
        self._shown = hits
        for _, row in self._rows:
            self._list.removeWidget(row)
            row.setParent(None)
            row.deleteLater()
        self._rows = [(hit, self._row(hit)) for hit in hits]
        for _, row in self._rows:
            self._list.addWidget(row)
        self._filter()

    def _row(self, hit: Hit) -> QFrame:
        found = hit.found
        card = QFrame()
        card.setProperty("kind", "modelcard")
        card.setObjectName(f"hub.hit.{found.repo}")
        row = QHBoxLayout(card)
        row.setContentsMargins(16, 8, 12, 8)
        row.setSpacing(8)
        Airy(self._keeper, row)
        name = QLabel(found.repo)
        name.setTextFormat(Qt.TextFormat.PlainText)
        row.addWidget(name)
        for text, tone in _chips(hit):
            chip = QLabel(text)
            chip.setProperty("chip", tone)
            row.addWidget(chip, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addStretch(1)
        about = QLabel(
            tr(
                "{0} · {1} · {2}",
                tr_n("{0} download", "{0} downloads", found.downloads),
                tr_n("{0} like", "{0} likes", found.likes),
                (found.date or "")[:10],
            )
        )
        about.setProperty("kind", "small")
        row.addWidget(about)
        opener = TextButton(self._keeper, tr("Open"))
        describe(opener, f"hub.open.{found.repo}", tr("Open {0}", found.repo), tr("Its files, sizes and fit"))
        opener.clicked.connect(lambda: self._bridge.open(found.repo))
        row.addWidget(opener)
        return card

    def _filter(self) -> None:
        for hit, row in self._rows:
            row.setVisible(not self._fits.isChecked() or hit.may_fit is not False)

    def _on_wanted(self, item: RepoItem) -> None:
        opened = self._bridge.state.opened
        if opened is None:
            return
        if not self.take_next_step(opened.repo, item.path):
            self.download_asked.emit(opened.repo, item.path)


def status_text(state: SearchState) -> str:
    """What the search does, or why it has nothing, with what to do next."""
    match state.state:
        case "idle":
            return tr("Search by name, or type owner/name to open a repository. Only GGUF files are shown.")
        case "searching":
            return tr("Asking Hugging Face…")
        case "failed":
            return tr("{0} The tab For this PC works without it.", state.problem)
    if not state.hits:
        return tr("Nothing with GGUF files is called “{0}”. Try fewer words.", state.query)
    return tr_n("{0} repository with GGUF files", "{0} repositories with GGUF files", len(state.hits))


def _chips(hit: Hit) -> list[tuple[str, str]]:
    chips = []
    if hit.found.marks:
        chips.append((marks_text(hit.found.marks), "warn"))
    if hit.found.gated:
        chips.append((tr("terms to accept"), "info"))
    if hit.may_fit is False:
        chips.append((tr("Too large for this PC"), "bad"))
    return chips
