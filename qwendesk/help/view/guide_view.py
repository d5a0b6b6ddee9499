"""Shows one page of the guide. Pictures are read only from the guide's folder, never from the network."""

from pathlib import PurePosixPath
from typing import Any

from PySide6.QtCore import Qt, QUrl, Signal
from PySide6.QtGui import QImage, QTextDocument
from PySide6.QtWidgets import QFrame, QTextBrowser, QWidget

from qwendesk.help.guide import GuidePage
from qwendesk.help.view.page_html import page_style, page_to_html
from qwendesk.widgets.theme_keeper import current_theme

_MARGIN = 28
WIDEST_PICTURE = 640


class GuideView(QTextBrowser):
    """Emits `link_asked` with the name of a page and the anchor of a section; either may be ""."""

    link_asked = Signal(str, str)

    def __init__(self, folder: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
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
