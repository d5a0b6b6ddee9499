"""The user guide: contents, search, pages with links between them, and the way back."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QCloseEvent, QKeySequence, QShortcut
from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QListWidget, QListWidgetItem, QVBoxLayout, QWidget

from qwendesk.services.guide import INDEX, Guide
from qwendesk.ui.help.guide_view import GuideView
from qwendesk.ui.help.page_html import contents_style
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_PLACE = Qt.ItemDataRole.UserRole
_CONTENTS_WIDTH = 250


class HelpWindow(QWidget):
    """Stays open beside the chat. `open` brings it to the front."""

    def __init__(self, keeper: ThemeKeeper, guide: Guide, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._keeper, self._guide = keeper, guide
        self._place = ("", "")
        self._before: list[tuple[str, str, int]] = []
        """Page, section, and how far it was scrolled."""
        self.setObjectName("help")
        self.setProperty("kind", "page")
        self.resize(1000, 720)
        self._back = TextButton(keeper, tr("Back"))
        describe(self._back, "help.back", tr("Back"), tr("The page before"), "Alt+Left")
        self._back.clicked.connect(self.go_back)
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search the guide"))
        self._search.setClearButtonEnabled(True)
        describe(self._search, "help.search", tr("Search the guide"), tr("Words anywhere in the guide"), "Ctrl+F")
        self._search.textChanged.connect(self._list)
        self._list_view = QListWidget()
        self._list_view.setWordWrap(True)
        describe(self._list_view, "help.contents", tr("Contents of the guide"), tr("Enter opens a page"))
        self._list_view.itemClicked.connect(self._on_item)
        self._list_view.itemActivated.connect(self._on_item)
        self.view = GuideView(keeper, guide.folder)
        self.view.setObjectName("help.page")
        self.view.link_asked.connect(self._on_link)
        self._lay_out()
        QShortcut(QKeySequence("Alt+Left"), self, self.go_back)
        QShortcut(QKeySequence("Ctrl+F"), self, self._search.setFocus)
        QShortcut(QKeySequence("Esc"), self, self.close)
        keeper.changed.connect(self._on_theme)
        self._on_theme()
        self._list()

    @property
    def page(self) -> str:
        """The name of the page that is shown."""
        return self._place[0]

    def open(self, page: str = "", section: str = "") -> None:
        """Show `page` (the index, or where it was left, when empty) in front of everything."""
        if page or not self.page:
            self.show_page(page or INDEX, section)
        self.show()
        self.raise_()
        self.activateWindow()

    def show_page(self, page: str, section: str = "") -> None:
        """Go to a page and remember the one before; nothing for one that is not there."""
        if self._guide.find(page) is None:
            return
        if self.page:
            self._before.append((*self._place, self.view.verticalScrollBar().value()))
        self._place = (page, section)
        self._draw()

    def go_back(self) -> None:
        if not self._before:
            return
        page, section, scrolled = self._before.pop()
        self._place = (page, section)
        self._draw()
        self.view.verticalScrollBar().setValue(scrolled)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._before.clear()
        self._back.setEnabled(False)
        super().closeEvent(event)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._back)
        head.addWidget(self._search, 1)
        side = QVBoxLayout()
        side.setContentsMargins(14, 14, 0, 14)
        side.setSpacing(10)
        side.addLayout(head)
        side.addWidget(self._list_view, 1)
        holder = QWidget()
        holder.setFixedWidth(_CONTENTS_WIDTH)
        holder.setLayout(side)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(holder)
        row.addWidget(self.view, 1)

    def _list(self) -> None:
        """Every page, or the sections that have what is searched for."""
        words = self._search.text().strip()
        self._list_view.clear()
        if words:
            entries = [(hit.title, hit.page, hit.section) for hit in self._guide.search(words)]
        else:
            entries = [(page.title, page.name, "") for page in self._guide.pages]
        for title, page, section in entries:
            item = QListWidgetItem(title)
            item.setData(_PLACE, (page, section))
            self._list_view.addItem(item)
        if not entries:
            nothing = QListWidgetItem(tr("No page has these words."))
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self._list_view.addItem(nothing)
        self._mark()

    def _mark(self) -> None:
        """The page that is shown is the chosen one of the contents."""
        if self._search.text().strip():
            return
        for row in range(self._list_view.count()):
            place = self._list_view.item(row).data(_PLACE)
            if place is not None and place[0] == self.page:
                self._list_view.setCurrentRow(row)

    def _draw(self) -> None:
        page = self._guide.find(self.page)
        if page is None:
            return
        self.view.show_page(page, self._place[1])
        self.setWindowTitle(tr("{0} – QwenDesk guide", page.title))
        self._back.setEnabled(bool(self._before))
        self._mark()

    def _on_theme(self) -> None:
        self._list_view.setStyleSheet(contents_style(self._keeper.theme))
        self._draw()

    def _on_item(self, item: QListWidgetItem) -> None:
        place = item.data(_PLACE)
        if place is not None and tuple(place) != self._place:
            self.show_page(*place)

    def _on_link(self, page: str, section: str) -> None:
        self.show_page(page or self.page, section)
