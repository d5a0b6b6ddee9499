"""The frame of the Models page: its tabs in order, the strip above them, the machine's line."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QLabel, QPushButton, QWidget

from qwendesk.ui.models.models_page import ModelsPage
from tests.ui.desk import Desk


async def test_ctrl_2_opens_the_models_page(desk: Desk) -> None:
    desk.press(Qt.Key.Key_2, Qt.KeyboardModifier.ControlModifier)
    assert desk.is_shown("models.tabs")
    desk.press(Qt.Key.Key_1, Qt.KeyboardModifier.ControlModifier)
    assert not desk.is_shown("models.tabs")


async def test_the_rail_opens_it_too(desk: Desk) -> None:
    desk.click("rail.models")
    assert desk.is_shown("models.tabs")


def make_page(*keys: str) -> ModelsPage:
    page = ModelsPage()
    for key in keys:
        page.add_tab(key, key.title(), QLabel(f"this is {key}"))
    page.show()
    return page


def tabs_of(page: ModelsPage) -> list[str]:
    holder = page.findChild(QWidget, "models.tabs")
    assert holder is not None
    buttons = holder.findChildren(QPushButton)
    return [each.objectName() for each in sorted(buttons, key=lambda each: each.x())]


def test_tabs_stand_in_the_same_order_whoever_comes_first(keeper: object) -> None:
    page = make_page("downloads", "pc", "hub", "mine")
    assert tabs_of(page) == ["models.tab.pc", "models.tab.mine", "models.tab.hub", "models.tab.downloads"]
    assert page.shown_tab == "pc"
    page.deleteLater()


def test_a_tab_opens_and_tells(keeper: object) -> None:
    page = make_page("pc", "hub")
    opened: list[str] = []
    page.tab_shown.connect(opened.append)
    button = page.findChild(QPushButton, "models.tab.hub")
    assert button is not None
    button.click()
    assert (page.shown_tab, opened) == ("hub", ["hub"])
    assert button.isChecked()
    page.set_title("hub", "Hugging Face · 3")
    assert button.text() == button.accessibleName() == "Hugging Face · 3"
    page.deleteLater()


def test_alerts_stay_above_every_tab(keeper: object) -> None:
    page = ModelsPage()
    alert = QLabel("A file is outdated")
    page.set_alerts(alert)
    page.add_tab("pc", "For this PC", QLabel("one"))
    page.add_tab("hub", "Hugging Face", QLabel("two"))
    page.show_machine("RTX 3090, 24 GB")
    page.show()
    page.show_tab("hub")
    assert alert.isVisible()
    page.deleteLater()
