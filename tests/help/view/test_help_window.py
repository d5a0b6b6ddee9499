"""The guide's window: every page, links, back, search; no network and nothing but the guide's own pictures."""

from collections.abc import Iterator

import pytest
from PySide6.QtCore import Qt, QUrl
from PySide6.QtGui import QImage, QTextDocument
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLineEdit, QListWidget, QPushButton, QWidget

from qwendesk.core.paths import guide_folder
from qwendesk.help.guide import Guide, read_guide
from qwendesk.help.view.help_window import HelpWindow
from qwendesk.widgets.theme_keeper import ThemeKeeper

GUIDE = read_guide(guide_folder())
IMAGE = QTextDocument.ResourceType.ImageResource.value


@pytest.fixture
def guide_window(keeper: ThemeKeeper) -> Iterator[HelpWindow]:
    owner = QWidget()
    window = HelpWindow(GUIDE, owner)
    window.open()
    yield window
    owner.close()
    owner.deleteLater()


def contents(window: HelpWindow) -> QListWidget:
    found = window.findChild(QListWidget, "help.contents")
    assert isinstance(found, QListWidget)
    return found


def titles(window: HelpWindow) -> list[str]:
    return [contents(window).item(row).text() for row in range(contents(window).count())]


def back(window: HelpWindow) -> QPushButton:
    found = window.findChild(QPushButton, "help.back")
    assert isinstance(found, QPushButton)
    return found


@pytest.mark.parametrize("page", [page.name for page in GUIDE.pages])
def test_every_page_is_drawn_with_its_pictures(guide_window: HelpWindow, page: str) -> None:
    wanted = GUIDE.find(page)
    assert wanted is not None
    guide_window.show_page(page)

    text = guide_window.view.toPlainText()
    for section in wanted.sections:
        assert section.title in text
    assert "](" not in text
    assert "**" not in text
    assert text.count("\ufffc") == wanted.markdown.count("![")


def test_only_pictures_of_the_guide_are_read(guide_window: HelpWindow) -> None:
    read = guide_window.view.loadResource
    for name in ("https://example.org/images/x.png", "../images/chat-dark.png", "/images/x.png", "images/none.png"):
        assert read(IMAGE, QUrl(name)) is None
    picture = read(IMAGE, QUrl("images/meter.png"))
    assert isinstance(picture, QImage)
    assert picture.deviceIndependentSize().width() <= 640
    assert read(QTextDocument.ResourceType.HtmlResource.value, QUrl("images/meter.png")) is None


def test_guide_opens_at_the_contents_and_lists_every_page(guide_window: HelpWindow) -> None:
    assert guide_window.page == "index"
    assert titles(guide_window) == [page.title for page in GUIDE.pages]


def test_links_open_pages_and_back_returns(guide_window: HelpWindow) -> None:
    assert not back(guide_window).isEnabled()
    guide_window.view.anchorClicked.emit(QUrl("spill.md"))
    guide_window.view.anchorClicked.emit(QUrl("which-model.md#which-quant"))
    assert guide_window.page == "which-model"
    assert guide_window.view.verticalScrollBar().value() > 0, "it goes to the section"
    current = contents(guide_window).currentItem()
    assert current is not None
    assert current.text() == "Which model"

    QTest.mouseClick(back(guide_window), Qt.MouseButton.LeftButton)
    assert guide_window.page == "spill"
    QTest.mouseClick(back(guide_window), Qt.MouseButton.LeftButton)
    assert guide_window.page == "index"
    assert not back(guide_window).isEnabled()


def test_links_out_of_the_guide_are_not_followed(guide_window: HelpWindow) -> None:
    for address in ("https://example.org/spill.md", "file:///etc/hosts", "nothing.md"):
        guide_window.view.anchorClicked.emit(QUrl(address))
        assert guide_window.page == "index"


def test_search_lists_sections_and_one_press_opens_it(guide_window: HelpWindow) -> None:
    field = guide_window.findChild(QLineEdit, "help.search")
    assert isinstance(field, QLineEdit)
    QTest.keyClicks(field, "temperature of 0 rarely")
    assert titles(guide_window) == ["Thinking: Thoughts that repeat themselves"]
    contents(guide_window).setCurrentRow(0)
    QTest.keyClick(contents(guide_window), Qt.Key.Key_Return)
    QApplication.processEvents()
    assert guide_window.page == "thinking"

    field.setText("xyzzy")
    assert titles(guide_window) == ["No results"]
    field.clear()
    assert len(titles(guide_window)) == len(GUIDE.pages)


def test_new_theme_redraws_the_page(guide_window: HelpWindow, keeper: ThemeKeeper) -> None:
    before = guide_window.view.toHtml()
    keeper.choose("light")
    assert guide_window.view.toHtml() != before


def test_escape_closes_and_the_page_is_kept(guide_window: HelpWindow) -> None:
    guide_window.show_page("meter")
    guide_window.close()
    guide_window.open()
    assert guide_window.page == "meter"
    guide_window.open("spill")
    assert guide_window.page == "spill"


def test_a_guide_without_a_page_shows_nothing_strange(keeper: ThemeKeeper) -> None:
    owner = QWidget()
    window = HelpWindow(Guide((), ""), owner)
    window.open()
    assert window.page == ""
    owner.deleteLater()
