"""Menus and popovers have round corners where that works, and buttons that open them show it."""

import itertools
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QContextMenuEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QLineEdit, QMenu, QVBoxLayout, QWidget

from qwendesk.widgets import app_style
from qwendesk.widgets.buttons import ChevronButton, TextButton
from qwendesk.widgets.controls import ComboBox
from qwendesk.widgets.popups import Menu, Popover, SearchPopover
from qwendesk.widgets.theme_keeper import ThemeChoice, ThemeKeeper

NO_KEYS = Qt.KeyboardModifier.NoModifier


@pytest.fixture
def holder(keeper: ThemeKeeper) -> Iterator[QWidget]:
    holder = QWidget()
    holder.show()
    yield holder
    holder.deleteLater()


def menu(holder: QWidget) -> QWidget:
    menu = Menu(holder)
    menu.addAction("One")
    submenu = menu.add_submenu("More", "more")
    submenu.addAction("Two")
    submenu.popup(holder.pos())
    return submenu


def menu_of_qt(holder: QWidget) -> QWidget:
    field = QLineEdit("Text", holder)
    field.show()
    point = field.rect().center()
    QApplication.sendEvent(
        field, QContextMenuEvent(QContextMenuEvent.Reason.Mouse, point, field.mapToGlobal(point), NO_KEYS)
    )
    popup = QApplication.activePopupWidget()
    assert isinstance(popup, QMenu)
    return popup


def popover(holder: QWidget) -> QWidget:
    popover = Popover(holder)
    QVBoxLayout(popover).addWidget(QLabel("Text"))
    popover.show()
    return popover


def drop_down(holder: QWidget) -> QWidget:
    box = ComboBox()
    box.setParent(holder)
    box.addItems(["One", "Two"])
    box.show()
    box.showPopup()
    return box.view().window()


@pytest.mark.parametrize("make", [menu, menu_of_qt, popover, drop_down])
def test_nothing_is_drawn_outside_of_the_rounded_frame(holder: QWidget, keeper: ThemeKeeper, make: object) -> None:
    assert callable(make)
    popup = make(holder)
    image = popup.grab().toImage()
    right, bottom = image.width() - 1, image.height() - 1
    assert [image.pixelColor(x, y).alpha() for x in (0, right) for y in (0, bottom)] == [0, 0, 0, 0]
    assert image.pixelColor(image.width() // 2, 3).name() == keeper.theme["card"].lower()
    popup.close()


@pytest.mark.parametrize("theme", ["dark", "light"])
@pytest.mark.parametrize("make", [menu, menu_of_qt, popover, drop_down])
def test_corners_are_square_without_a_compositor(
    holder: QWidget, keeper: ThemeKeeper, monkeypatch: pytest.MonkeyPatch, make: object, theme: ThemeChoice
) -> None:
    assert callable(make)
    monkeypatch.setattr(app_style, "is_composited", lambda: False)
    keeper.choose(theme)
    popup = make(holder)
    image = popup.grab().toImage()
    right, bottom = image.width() - 1, image.height() - 1
    assert not popup.testAttribute(Qt.WidgetAttribute.WA_TranslucentBackground)
    corners = {image.pixelColor(x, y).name() for x in (0, right) for y in (0, bottom)}
    assert corners == {keeper.theme["border"].lower()}
    assert image.pixelColor(2, 2).name() == keeper.theme["card"].lower()
    popup.close()


def test_a_popover_is_used_with_the_keys_in_reading_order(holder: QWidget) -> None:
    popover, done = Popover(holder), list[str]()
    links = {name: TextButton(name, kind="link") for name in ("last", "first")}  # not made in reading order
    column = QVBoxLayout(popover)
    for name in ("first", "last"):
        links[name].clicked.connect(lambda _checked=False, name=name: done.append(name))
        column.addWidget(links[name])
    popover.show()
    for name in ("first", "last"):
        QTest.keyClick(popover.focusWidget() or popover, Qt.Key.Key_Tab)
        assert popover.focusWidget() is links[name]
        QTest.keyClick(links[name], Qt.Key.Key_Return)
    assert done == ["first", "last"]
    popover.close()


_ROOT = Path(__file__).resolve().parents[2]
_ASK = """
from PySide6.QtGui import QGuiApplication
from qwendesk.widgets.app_style import is_composited
app = QGuiApplication([])
print(is_composited())
"""


@pytest.mark.timeout(120)
def test_an_x_server_alone_has_no_compositor(xvfb_display: str) -> None:
    for platform, answer in (("xcb", "False"), ("offscreen", "True")):
        environment = {**os.environ, "DISPLAY": xvfb_display, "QT_QPA_PLATFORM": platform}
        asked = subprocess.run(
            [sys.executable, "-c", _ASK],
            cwd=_ROOT,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert asked.stdout.strip() == answer, asked.stderr


def test_a_button_with_a_menu_has_the_same_chevron_beside_its_text(holder: QWidget, keeper: ThemeKeeper) -> None:
    plain, button = TextButton("Profiles", kind="quiet"), ChevronButton("Profiles", kind="quiet")
    for each in (plain, button):
        each.setParent(holder)
        each.show()
    before = button.sizeHint()
    button.setMenu(Menu(button))
    assert button.sizeHint() == before
    assert button.sizeHint().width() >= plain.sizeHint().width() + 14
    button.resize(button.sizeHint())
    down = button.grab().toImage()
    button.show_chevron("right")
    assert button.grab().toImage() != down


class _Empty(SearchPopover):
    def fill(self, _query: str) -> str:
        return "Nothing"


@pytest.mark.parametrize(("left", "expected"), [(0, 8), (150, 75), (300, 92)])
def test_a_popover_is_centred_and_stays_inside_the_window(holder: QWidget, left: int, expected: int) -> None:
    holder.resize(400, 500)
    button = QWidget(holder)
    button.setGeometry(left, 10, 150, 30)
    popover = _Empty("picker", "Models", holder, width=300, row_height=30, most_rows=5)
    popover.open_at(button, 36)
    assert popover.pos() - holder.mapToGlobal(QPoint(0, 0)) == QPoint(expected, 46)
    popover.close()


def test_a_submenu_has_an_arrow_of_the_theme(holder: QWidget, keeper: ThemeKeeper) -> None:
    menu = Menu(holder)
    plain, more = menu.addAction("One"), menu.add_submenu("More", "more").menuAction()
    menu.popup(holder.pos())
    image = menu.grab().toImage()

    def colours(action: QAction) -> set[str]:
        row = menu.actionGeometry(action).adjusted(0, 4, -4, -4)
        places = itertools.product(range(row.right() - 20, row.right()), range(row.top(), row.bottom()))
        return {image.pixelColor(x, y).name() for x, y in places}

    assert keeper.theme["text_dim"].lower() in colours(more)
    assert keeper.theme["text_dim"].lower() not in colours(plain)
    menu.close()


@pytest.mark.parametrize("x", [0, 200, 300])
def test_a_menu_stays_inside_of_its_window(holder: QWidget, x: int) -> None:
    holder.setGeometry(100, 50, 400, 300)
    menu = Menu(holder)
    menu.addAction("A value that is wider than its button")
    menu.popup(holder.mapToGlobal(QPoint(x, 100)))
    assert holder.geometry().contains(menu.geometry())
    assert menu.x() <= 100 + max(x, 8)
    if x == 0:
        assert menu.x() == 100, "where there is room it stays below its button"
    menu.close()


@pytest.mark.parametrize("way", ["its own menu", "opened at it"])
@pytest.mark.parametrize("y", [20, 260])
def test_a_menu_is_above_a_button_near_the_end_of_the_window(holder: QWidget, y: int, way: str) -> None:
    holder.setGeometry(100, 50, 400, 300)
    button = TextButton("Attach")
    button.setParent(holder)
    button.setGeometry(20, y, 100, 30)
    button.show()
    menu = Menu(holder)
    menu.addActions([QAction("Files", menu), QAction("A folder", menu)])
    if way == "its own menu":
        button.setMenu(menu)
        menu.popup(button.mapToGlobal(QPoint(0, 30)))
    else:
        menu.open_at(button)
    place = menu.geometry()
    assert holder.geometry().contains(place)
    assert (place.top() >= 50 + y + 30) if y == 20 else (place.bottom() < 50 + y)
    assert place.left() == 120
    menu.close()
