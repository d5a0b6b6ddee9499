"""The window of the user guide: contents, search, pages, and a Back button."""

import itertools
from pathlib import PurePosixPath
from typing import Any

from markdown_it import MarkdownIt
from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QCloseEvent, QImage, QKeySequence, QShortcut, QTextDocument
from PySide6.QtWidgets import (
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QTextBrowser,
    QVBoxLayout,
    QWidget,
)

from qwendesk.core.translation import tr
from qwendesk.help.guide import INDEX, Guide, GuidePage, heading_anchor
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.controls import add_clear_button
from qwendesk.widgets.tab_order import refocus
from qwendesk.widgets.theme import Theme, mono_families_css
from qwendesk.widgets.theme_keeper import app_theme, current_theme

_PLACE = Qt.ItemDataRole.UserRole
_CONTENTS_WIDTH = 250


class HelpWindow(QWidget):
    """Stays open next to the main window; `open` brings it to the front."""

    def __init__(self, guide: Guide, parent: QWidget) -> None:
        super().__init__(parent, Qt.WindowType.Window)
        self._guide = guide
        self._place = ("", "")
        self._history: list[tuple[str, str, int]] = []
        """Page, section, and scroll position."""
        self.setObjectName("help")
        self.setProperty("kind", "page")
        self.resize(1000, 720)
        self._back = TextButton(tr("Back"))
        describe(self._back, "help.back", tr("Back"), tr("Previous page"), "Alt+Left")
        self._back.clicked.connect(self.go_back)
        self._search = QLineEdit()
        self._search.setPlaceholderText(tr("Search the guide"))
        add_clear_button(self._search)
        describe(self._search, "help.search", tr("Search the guide"), tr("Search all pages of the guide"), "Ctrl+F")
        self._search.textChanged.connect(self._fill_contents)
        self._contents = QListWidget()
        self._contents.setWordWrap(True)
        describe(self._contents, "help.contents", tr("Contents of the guide"), tr("Enter opens a page"))
        self._contents.itemClicked.connect(self._on_item)
        self._contents.itemActivated.connect(self._on_item)
        self.view = GuideView(guide.folder)
        self.view.setObjectName("help.page")
        self.view.link_asked.connect(self._on_link)
        self._build_layout()
        QShortcut(QKeySequence("Alt+Left"), self, self.go_back)
        QShortcut(QKeySequence("Ctrl+F"), self, self._search.setFocus)
        QShortcut(QKeySequence("Esc"), self, self.close)
        app_theme().changed.connect(self._on_theme)
        self._on_theme()
        self._fill_contents()

    def focusNextPrevChild(self, forward: bool) -> bool:
        return refocus(self) or super().focusNextPrevChild(forward)

    @property
    def page(self) -> str:
        """The name of the current page."""
        return self._place[0]

    def open(self, page: str = "", section: str = "") -> None:
        """Bring the window to the front and show `page`; "" shows the last one, at first the index."""
        if page or not self.page:
            self.show_page(page or INDEX, section)
        self.show()
        self.raise_()
        self.activateWindow()

    def show_page(self, page: str, section: str = "") -> None:
        """Show a page, scrolled to a section given by its id or anchor. Does nothing if there is no such page."""
        found = self._guide.find(page)
        if found is None:
            return
        if self.page:
            self._history.append((*self._place, self.view.verticalScrollBar().value()))
        self._place = (page, found.section_id(section))
        self._draw()

    def go_back(self) -> None:
        if not self._history:
            return
        page, section, scrolled = self._history.pop()
        self._place = (page, section)
        self._draw()
        self.view.verticalScrollBar().setValue(scrolled)

    def closeEvent(self, event: QCloseEvent) -> None:
        self._history.clear()
        self._back.setEnabled(False)
        super().closeEvent(event)

    def _build_layout(self) -> None:
        head = QHBoxLayout()
        head.addWidget(self._back)
        head.addWidget(self._search, 1)
        side = QVBoxLayout()
        side.setContentsMargins(14, 14, 0, 14)
        side.setSpacing(10)
        side.addLayout(head)
        side.addWidget(self._contents, 1)
        holder = QWidget()
        holder.setFixedWidth(_CONTENTS_WIDTH)
        holder.setLayout(side)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        row.addWidget(holder)
        row.addWidget(self.view, 1)

    def _fill_contents(self) -> None:
        """List all pages, or the results of the search."""
        words = self._search.text().strip()
        self._contents.clear()
        if words:
            entries = [(hit.title, hit.page, hit.section) for hit in self._guide.search(words)]
        else:
            entries = [(page.title, page.name, "") for page in self._guide.pages]
        for title, page, section in entries:
            item = QListWidgetItem(title)
            item.setData(_PLACE, (page, section))
            self._contents.addItem(item)
        if not entries:
            nothing = QListWidgetItem(tr("No results"))
            nothing.setFlags(Qt.ItemFlag.NoItemFlags)
            self._contents.addItem(nothing)
        self._select_current()

    def _select_current(self) -> None:
        """Select the current page in the contents."""
        if self._search.text().strip():
            return
        for row in range(self._contents.count()):
            place = self._contents.item(row).data(_PLACE)
            if place is not None and place[0] == self.page:
                self._contents.setCurrentRow(row)

    def _draw(self) -> None:
        page = self._guide.find(self.page)
        if page is None:
            return
        self.view.show_page(page, self._place[1])
        self.setWindowTitle(tr("{0} – QwenDesk guide", page.title))
        self._back.setEnabled(bool(self._history))
        self._select_current()

    def _on_theme(self) -> None:
        self._contents.setStyleSheet(contents_style(current_theme()))
        self._draw()

    def _on_item(self, item: QListWidgetItem) -> None:
        place = item.data(_PLACE)
        if place is not None and tuple(place) != self._place:
            self.show_page(*place)

    def _on_link(self, page: str, section: str) -> None:
        self.show_page(page or self.page, section)


_MARGIN = 28
WIDEST_PICTURE = 640


class GuideView(QTextBrowser):
    """Emits `link_asked` with the name of a page and the anchor of a section; either may be ""."""

    link_asked = Signal(str, str)

    def __init__(self, folder: str) -> None:
        super().__init__()
        self._folder = folder
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.document().setDocumentMargin(_MARGIN)
        self.anchorClicked.connect(self._on_link)

    def show_page(self, page: GuidePage, section: str = "") -> None:
        self.document().setDefaultStyleSheet(page_style(current_theme()))
        self.setHtml(page_to_html(page))
        self.setAccessibleName(page.title)
        if section:
            self.scrollToAnchor(section)

    def focusNextPrevChild(self, forward: bool) -> bool:
        """Move the focus through the links, then to the next widget; at once if the page was hidden or disabled."""
        if self.isVisible() and self.isEnabled():
            return super().focusNextPrevChild(forward)
        return self.window().focusNextPrevChild(forward)

    def loadResource(self, kind: int, name: QUrl | str) -> Any:
        """Return a picture of the guide, at most WIDEST_PICTURE logical pixels wide; None for any other file."""
        path = PurePosixPath(name.toString() if isinstance(name, QUrl) else name)
        inside = not path.is_absolute() and ".." not in path.parts and path.parts[:1] == ("images",)
        if kind != QTextDocument.ResourceType.ImageResource.value or not inside:
            return None
        image = QImage(f"{self._folder}/{path}")
        if image.isNull():
            return None
        ratio = self.devicePixelRatioF()
        if image.width() > WIDEST_PICTURE * ratio:
            image = image.scaledToWidth(round(WIDEST_PICTURE * ratio), Qt.TransformationMode.SmoothTransformation)
        image.setDevicePixelRatio(max(image.width() / WIDEST_PICTURE, 1.0))
        return image

    def _on_link(self, url: QUrl) -> None:
        path = url.path()
        if not url.scheme() and (not path or path.endswith(".md")):
            self.link_asked.emit(path.removesuffix(".md"), url.fragment())


def page_to_html(page: GuidePage) -> str:
    """Return the page with its section ids as anchors. HTML in its Markdown is shown as text."""
    markdown = MarkdownIt("commonmark", {"html": False}).enable("table")
    tokens = markdown.parse(page.markdown)
    for before, token in itertools.pairwise(tokens):
        if before.type == "heading_open":
            before.attrSet("id", page.section_id(heading_anchor(token.content)))
        if before.type == "paragraph_open" and token.content.startswith("!["):
            before.attrSet("class", "picture")
        if token.type == "table_open":
            token.attrSet("cellpadding", "6")
            token.attrSet("cellspacing", "0")
        if token.type == "fence":
            token.content = token.content.rstrip("\n")  # Qt would draw an empty line
    return str(markdown.renderer.render(tokens, markdown.options, {}))


def page_style(theme: Theme) -> str:
    """Return the style sheet of a page, for QTextDocument.setDefaultStyleSheet."""
    return f"""
    h1 {{ font-size: {theme.px(24)}px; font-weight: 600; margin-bottom: 12px; }}
    h2 {{ font-size: {theme.px(18)}px; font-weight: 600; margin-top: 22px; margin-bottom: 8px; }}
    h3 {{ font-size: {theme.px(15)}px; font-weight: 600; margin-top: 16px; margin-bottom: 6px; }}
    p, li {{ font-size: {theme.px(14)}px; line-height: 135%; margin-top: 6px; margin-bottom: 6px; }}
    p.picture {{ line-height: 100%; }}
    td, th {{ font-size: {theme.px(13)}px; border: 1px solid {theme["border"]}; }}
    th {{ font-weight: 600; text-align: left; background-color: {theme["card"]}; }}
    table {{ border-collapse: collapse; margin-top: 8px; margin-bottom: 10px; }}
    a {{ color: {theme["text_link"]}; text-decoration: none; }}
    code {{ font-family: {mono_families_css()}; color: {theme["code_text"]}; }}
    code {{ background-color: {theme["code_background"]}; }}
    pre {{ background-color: {theme["code_background"]}; white-space: pre-wrap; margin-top: 8px; margin-bottom: 10px; }}
    """


def contents_style(theme: Theme) -> str:
    """Return the style sheet of the list of pages."""
    return f"""
    QListWidget {{ background: transparent; border: none; outline: none; }}
    QListWidget::item {{ color: {theme["text"]}; padding: 6px 8px; border-radius: 6px; }}
    QListWidget::item:hover {{ background: {theme["hover"]}; }}
    QListWidget::item:selected {{ background: {theme["card"]}; color: {theme["text"]}; }}
    QListWidget:focus {{ border: 1px solid {theme["focus"]}; border-radius: 8px; }}
    """
