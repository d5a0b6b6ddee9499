"""Moves the focus in reading order: top to bottom, and left to right in a line.

Qt's own order is that in which the widgets were created, which makes no sense to users, because several features create
parts of the window.
"""

from collections.abc import Callable, Sequence
from typing import cast

from PySide6.QtCore import QPoint, QRect, Qt
from PySide6.QtWidgets import (
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QScrollArea,
    QTextEdit,
    QWidget,
)


def accepts_tab(widget: QWidget) -> bool:
    """Return True if the Tab key can stop at `widget` now."""
    wants = bool(widget.focusPolicy().value & Qt.FocusPolicy.TabFocus.value)
    return wants and widget.isEnabled() and widget.isVisible() and widget.focusProxy() is None


def tab_stops_in(root: QWidget) -> list[QWidget]:
    """Return the widgets in `root` that take the focus, in reading order.

    A widget whose children need another order has a method `tab_stops`.
    """
    stops = [root] if accepts_tab(root) else []
    own = cast("Callable[[], Sequence[QWidget]] | None", getattr(root, "tab_stops", None))
    if own is not None:
        return [*stops, *own()]
    for child in _as_read([each for each in root.children() if isinstance(each, QWidget)]):
        stops += tab_stops_in(child)
    return stops


def focus_next(root: QWidget, here: QWidget | None, *, forward: bool) -> bool:
    """Move the focus from `here` to the next widget of `root` in reading order, and from the last to the first.

    Return False if no widget takes the focus.
    """
    stops = tab_stops_in(root)
    if not stops:
        return False
    step = 1 if forward else -1
    index = stops.index(here) + step if here in stops else (0 if forward else -1)
    give_focus(stops[index % len(stops)], forward=forward)
    return True


def lost_focus(window: QWidget) -> QWidget | None:
    """Return the focused widget of `window` if it was hidden or disabled: Qt then asks the window for another one."""
    focus: QWidget | None = window.focusWidget()
    return focus if focus is not None and not (focus.isVisible() and focus.isEnabled()) else None


def refocus(window: QWidget) -> bool:
    """Move the focus of `window` to the nearest widget if its own was hidden or disabled; return False if it wasn't."""
    lost = lost_focus(window)
    return lost is not None and focus_nearby(window, lost)


def focus_nearby(root: QWidget, lost: QWidget) -> bool:
    """Move the focus from a widget that lost it to the nearest one: in the same row, card or page of `root`.

    Return False if no widget in `root` takes the focus.
    """
    around: QWidget | None = lost.parentWidget()
    while around is not None:
        stops = [stop for stop in tab_stops_in(around) if stop is not around] if around.isVisible() else []
        if stops:
            place = _middle_of(lost)
            give_focus(min(stops, key=lambda stop: (_middle_of(stop) - place).manhattanLength()), forward=True)
            return True
        around = around.parentWidget() if around is not root else None
    return focus_next(root, None, forward=True)


def is_text_field(widget: QWidget) -> bool:
    """Return True if the user can type text or a number into `widget`."""
    match widget:
        case QLineEdit() | QPlainTextEdit() | QTextEdit() | QAbstractSpinBox():
            return not widget.isReadOnly()
        case QComboBox():
            return widget.isEditable()
    return False


def _middle_of(widget: QWidget) -> QPoint:
    return widget.mapTo(widget.window(), widget.rect().center())


def give_focus(widget: QWidget, *, forward: bool) -> None:
    """Focus a widget as the Tab key does: a field selects its text, and a hidden part of a page scrolls into view."""
    widget.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget, 0, 40)
        parent = parent.parentWidget()


def _as_read(children: list[QWidget]) -> list[QWidget]:
    """Return the visible children line by line.

    A widget belongs to a line if it overlaps the line's first widget by half its height.
    """
    shown = sorted((each for each in children if each.isVisible() and not each.isWindow()), key=_top_left)
    ordered: list[QWidget] = []
    line: list[QWidget] = []
    for each in shown:
        if line and not _share_a_line(line[0].geometry(), each.geometry()):
            ordered += sorted(line, key=_left)
            line = []
        line.append(each)
    return ordered + sorted(line, key=_left)


def _share_a_line(first: QRect, second: QRect) -> bool:
    shared = min(first.bottom(), second.bottom()) - max(first.top(), second.top()) + 1
    return 2 * shared > min(first.height(), second.height())


def _top_left(widget: QWidget) -> tuple[int, int]:
    return widget.y(), widget.x()


def _left(widget: QWidget) -> int:
    return widget.x()
