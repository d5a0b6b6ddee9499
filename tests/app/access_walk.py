"""Looks at a window as somebody without a mouse or a screen does: names, the way of the Tab key, its order."""

import re
from itertools import pairwise

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtGui import QImage
from PySide6.QtTest import QTest
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QRadioButton,
    QScrollBar,
    QTextBrowser,
    QTextEdit,
    QWidget,
)

from qwendesk.widgets.tab_order import give_focus, tab_stops_in

EXEMPT = re.compile(r"^(palette\.list|model\.picker\.list|inspector\.memory\.\d+\.bar)$")
"""Lists through which the arrow keys of the field above them move, and a bar that is a drawing with its words."""
CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSlider,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
)
_MOST_STOPS, _MOST_LINKS = 900, 60


def complaints(root: QWidget, *, where: str) -> list[str]:
    """What is wrong with everything on screen in `root`'s window, a line each."""
    begin = root.window().focusWidget()
    controls = [each for each in root.findChildren(QWidget) if _is_control(each) and each.window() is root.window()]
    found = [f"{where}: {_called(each)} {trouble}" for each in controls for trouble in _unnamed(each)]
    way, trapped = walk(root)
    reached = set(way)
    found += [f"{where}: {trouble}" for trouble in trapped]
    missed = [
        each for each in controls if each.isEnabled() and each not in reached and each.focusProxy() not in reached
    ]
    if any(isinstance(each, QRadioButton) for each in reached):  # the arrow keys go to the others from there
        missed = [each for each in missed if not isinstance(each, QRadioButton)]
    found += [
        f"{where}: {_called(each)} is not reached by Tab" for each in missed if not EXEMPT.search(each.objectName())
    ]
    found += unseen_focus([each for each in way if not each.isWindow()], where=where)
    found += [f"{where}: Tab goes to {_called(each)}, which is no control" for each in way if not _unnamed_kind(each)]
    back = [pair for pair in pairwise([*way, *(way[:1] if root.isWindow() else ())]) if _goes_back(*pair)]
    if len(back) > root.isWindow():  # one is the way from the end to the beginning
        found += [f"{where}: Tab goes back from {_called(first)} to {_called(second)}" for first, second in back]
    if begin is not None:
        begin.setFocus()
    return found


def unseen_focus(way: list[QWidget], *, where: str) -> list[str]:
    """The stops that look the same with the focus and without."""
    found = []
    for index, each in enumerate(way):
        other = way[index - 1]
        give_focus(each, forward=True)
        each.window().setAttribute(Qt.WidgetAttribute.WA_KeyboardFocusChange)  # as when the key was really pressed
        with_focus = _picture(each)
        other.setFocus(Qt.FocusReason.OtherFocusReason) if other is not each else each.clearFocus()
        if each.isVisible() and with_focus == _picture(each):
            found.append(f"{where}: {_called(each)} does not show that it has the focus")
    return found


def _picture(widget: QWidget) -> QImage:
    """With what stands around it: the composer's card shows the focus of the text in it."""
    frame = widget.parentWidget() if isinstance(widget, QPlainTextEdit) else None
    return (frame or widget).grab().toImage()


def walk(root: QWidget) -> tuple[list[QWidget], list[str]]:
    """Every stop of the Tab key from the first one on, and what is wrong with the way itself."""
    window = root.window()
    if root is not window:
        return _walk_part(root)
    first = window.focusWidget()
    if first is None:
        QTest.keyClick(window, Qt.Key.Key_Tab)
        first = window.focusWidget()
    if first is None:
        return [], []
    way: list[QWidget] = []
    here = first
    while here not in way and len(way) < _MOST_STOPS:
        way.append(here)
        if not here.isVisible():
            return way, [f"Tab goes to {_called(here)}, which is hidden"]
        after = _after(here)
        if after is None:
            return way, [f"the focus is nowhere after {_called(here)}"]
        here = after
    troubles = [] if here is first else [f"Tab comes back to {_called(here)}, not to {_called(first)}"]
    if len(way) > 1 and not troubles:
        QTest.keyClick(here, Qt.Key.Key_Backtab, Qt.KeyboardModifier.ShiftModifier)
        back = window.focusWidget()
        if back is not way[-1]:
            troubles.append(f"Shift+Tab leads from {_called(first)} to {_called(back)}, not to {_called(way[-1])}")
    return way, troubles


def _walk_part(root: QWidget) -> tuple[list[QWidget], list[str]]:
    """Through one part of a window, until Tab leads out of it."""
    stops = tab_stops_in(root)
    if not stops:
        return [], []
    here: QWidget | None = stops[0]
    stops[0].setFocus()
    way: list[QWidget] = []
    while here is not None and root.isAncestorOf(here):
        if here in way or not here.isVisible():
            return way, [f"Tab goes to {_called(here)} again"]
        way.append(here)
        here = _after(here)
    return way, []


def _after(here: QWidget) -> QWidget | None:
    """Where the next stop is. Text with links keeps the focus while Tab goes from link to link."""
    for _ in range(_MOST_LINKS if isinstance(here, QTextBrowser) else 1):
        QTest.keyClick(here, Qt.Key.Key_Tab)
        after: QWidget | None = here.window().focusWidget()
        if after is not here:
            return after
    return here


def _is_control(widget: QWidget) -> bool:
    return widget.isVisible() and isinstance(widget, CONTROLS) and not _is_part(widget)


def _is_part(widget: QWidget) -> bool:
    """A piece of a control of Qt's own."""
    return widget.objectName().startswith("qt_") or isinstance(widget, QScrollBar) or _inside_field(widget)


def _inside_field(widget: QWidget) -> bool:
    parent = widget.parentWidget()
    return isinstance(parent, QLineEdit | QAbstractSpinBox | QComboBox) or (
        isinstance(widget, QAbstractItemView) and widget.window() is not widget and parent is None
    )


def _unnamed_kind(widget: QWidget) -> bool:
    return isinstance(widget, CONTROLS) or bool(widget.accessibleName())


def _unnamed(control: QWidget) -> list[str]:
    missing = []
    if not control.objectName():
        missing.append("has no objectName")
    if not control.accessibleName():
        missing.append("has no accessible name")
    is_text = isinstance(control, QTextEdit) or (isinstance(control, QPlainTextEdit) and control.isReadOnly())
    if not is_text and not control.toolTip():
        missing.append("has no tooltip")
    return missing


def _goes_back(first: QWidget, second: QWidget) -> bool:
    """Whether `second` stands before `first` where people read: above it, or left of it in the same line."""
    mine, theirs = _line_up(first), _line_up(second)
    common = next((each for each in mine if each in theirs), None)
    if common is None or common in (first, second):
        return False
    one, other = mine[mine.index(common) - 1], theirs[theirs.index(common) - 1]
    a, b = _place(one, common), _place(other, common)
    if b.bottom() <= a.top():
        return True
    same_line = min(a.bottom(), b.bottom()) - max(a.top(), b.top()) > min(a.height(), b.height()) / 2
    return same_line and b.right() <= a.left()


def _line_up(widget: QWidget) -> list[QWidget]:
    """The widget and all it stands in, from the inside."""
    line: list[QWidget] = []
    each: QWidget | None = widget
    while each is not None:
        line.append(each)
        each = None if each.isWindow() else each.parentWidget()
    return line


def _place(widget: QWidget, inside: QWidget) -> QRect:
    return QRect(widget.mapTo(inside, QPoint(0, 0)), widget.size())


def _called(widget: QWidget | None) -> str:
    if widget is None:
        return "nothing"
    name = widget.objectName() or widget.accessibleName()
    inside = next((each.objectName() for each in _line_up(widget)[1:] if each.objectName()), "")
    return f"{type(widget).__name__} {name or '(no name)'}" + ("" if name else f" in {inside}")
