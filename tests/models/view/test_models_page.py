"""The frame of the Models page: its tabs in order, the strip above them, the machine's line."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from qwendesk.models.view.models_page import ORDER
from qwendesk.widgets.tabbed_page import TabbedPage
from tests.window_desk import Desk


async def test_ctrl_2_opens_the_models_page(desk: Desk) -> None:
    desk.press(Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert desk.is_shown("models.tabs")
    desk.press(Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert not desk.is_shown("models.tabs")


async def test_rail_opens_the_models_page(desk: Desk) -> None:
    desk.click("rail.models")
    assert desk.is_shown("models.tabs")


def make_page(*keys: str) -> TabbedPage:
    page = TabbedPage("models", "Models", "Sections", ORDER, QLabel())
    for key in keys:
        page.add_tab(key, key.title(), QLabel(f"this is {key}"))
    page.show()
    return page


def tabs_of(page: TabbedPage) -> list[str]:
    holder = page.findChild(QWidget, "models.tabs")
    assert holder is not None
    buttons = holder.findChildren(QPushButton)
    return [each.objectName() for each in sorted(buttons, key=lambda each: each.x())]


def test_tabs_have_a_fixed_order(keeper: object) -> None:
    page = make_page("downloads", "pc", "hub", "mine")
    assert tabs_of(page) == ["models.tab.pc", "models.tab.mine", "models.tab.hub", "models.tab.downloads"]
    assert page.shown_tab == "pc"
    page.deleteLater()


def test_clicked_tab_opens_and_is_announced(keeper: object) -> None:
    page = make_page("pc", "downloads")
    opened: list[str] = []
    page.tab_shown.connect(opened.append)
    button = page.findChild(QPushButton, "models.tab.downloads")
    assert button is not None
    button.click()
    assert (page.shown_tab, opened) == ("downloads", ["downloads"])
    assert button.isChecked()
    page.set_tab_title("downloads", "Downloads · 3")
    assert button.text() == button.accessibleName() == "Downloads · 3"
    page.deleteLater()
