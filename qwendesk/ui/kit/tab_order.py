"""The Tab key in the order of reading: top to bottom, and left to right in a line, whatever was made first.

Qt goes from widget to widget in the order they were made, which in a window of rooms that join one by one is no order.
"""

from collections.abc import Callable, Sequence
from typing import cast

from PySide6.QtCore import QRect, Qt
from PySide6.QtWidgets import QScrollArea, QWidget


def takes_tab(widget: QWidget) -> bool:
    """Whether the Tab key stops here now."""
    wants = bool(widget.focusPolicy().value & Qt.FocusPolicy.TabFocus.value)
    return wants and widget.isEnabled() and widget.isVisible() and widget.focusProxy() is None


def stops_in(root: QWidget) -> list[QWidget]:
    """Everything in `root` that takes the focus, as it is read. What knows its own order says it by `tab_stops`."""
    stops = [root] if takes_tab(root) else []
    own = cast("Callable[[], Sequence[QWidget]] | None", getattr(root, "tab_stops", None))
    if own is not None:
        return [*stops, *own()]
    for child in _as_read([each for each in root.children() if isinstance(each, QWidget)]):
        stops += stops_in(child)
    return stops


def focus_next(root: QWidget, here: QWidget | None, *, forward: bool) -> bool:
    """Move the focus from `here` to what is read next in `root`; from the last to the first. False without a stop."""
    stops = stops_in(root)
    if not stops:
        return False
    step = 1 if forward else -1
    index = stops.index(here) + step if here in stops else (0 if forward else -1)
    give_focus(stops[index % len(stops)], forward=forward)
    return True


def give_focus(widget: QWidget, *, forward: bool) -> None:
    """As the Tab key does: a field selects its text then, and what is scrolled away comes into view."""
    widget.setFocus(Qt.FocusReason.TabFocusReason if forward else Qt.FocusReason.BacktabFocusReason)
    parent = widget.parentWidget()
    while parent is not None:
        if isinstance(parent, QScrollArea):
            parent.ensureWidgetVisible(widget, 0, 40)
        parent = parent.parentWidget()


def _as_read(children: list[QWidget]) -> list[QWidget]:
    """Those on screen, line by line. Whoever is at least half beside the first of a line stands in it."""
    shown = sorted((each for each in children if each.isVisible() and not each.isWindow()), key=_top_left)
    ordered: list[QWidget] = []
    line: list[QWidget] = []
    for each in shown:
        if line and not _beside(line[0].geometry(), each.geometry()):
            ordered += sorted(line, key=_left)
            line = []
        line.append(each)
    return ordered + sorted(line, key=_left)


def _beside(first: QRect, second: QRect) -> bool:
    shared = min(first.bottom(), second.bottom()) - max(first.top(), second.top()) + 1
    return 2 * shared > min(first.height(), second.height())


def _top_left(widget: QWidget) -> tuple[int, int]:
    return widget.y(), widget.x()


def _left(widget: QWidget) -> int:
    return widget.x()
