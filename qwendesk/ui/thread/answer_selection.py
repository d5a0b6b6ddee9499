"""One selection over all sections of an answer, kept as places, so that it outlives the widgets it is shown in."""

from typing import TYPE_CHECKING, Literal

import msgspec
from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent
from PySide6.QtWidgets import QMenu

from qwendesk.ui.kit.text import tr
from qwendesk.ui.thread.section_pane import SectionPane, section_markdown

if TYPE_CHECKING:
    from qwendesk.ui.thread.answer_view import AnswerView

_END = 1 << 30
CopyAs = Literal["rich", "plain", "markdown"]


class Spot(msgspec.Struct, frozen=True, order=True):
    """A place in an answer: a section, and a position in its text."""

    section: int
    position: int


class AnswerSelection:
    """Belongs to one AnswerView. Within a section Qt selects; across sections this does."""

    def __init__(self, view: "AnswerView") -> None:
        self._view = view
        self._anchor: Spot | None = None
        self._head: Spot | None = None
        self.dragging = False

    @property
    def is_there(self) -> bool:
        """Whether anything is selected."""
        if self._spans():
            return True
        return any(each.pane is not None and each.pane.textCursor().hasSelection() for each in self._view.sections)

    def starts_in(self, index: int) -> bool:
        """Whether a selection is being dragged from this section, whose widget has the mouse then."""
        return self.dragging and self._anchor is not None and self._anchor.section == index

    def clear(self) -> None:
        self._anchor = self._head = None

    def select_all(self) -> None:
        if self._view.sections:
            self._anchor, self._head = Spot(0, 0), Spot(len(self._view.sections) - 1, _END)
            self._show()

    def watch(self, pane: SectionPane) -> None:
        pane.viewport().installEventFilter(self._view)
        pane.installEventFilter(self._view)

    def show_in(self, index: int) -> None:
        """Select in one section, whose widget is new, what belongs to the selection."""
        pane = self._view.sections[index].pane
        if pane is None or not self._spans() or self._anchor is None or self._head is None:
            return
        first, last = sorted((self._anchor, self._head))
        if first.section <= index <= last.section:
            start = first.position if index == first.section else 0
            pane.select(start, last.position if index == last.section else _END)

    def extend(self, place: QPoint) -> None:
        """Up to a place in the answer's coordinates."""
        spot = self._spot(place)
        if self._anchor is None or spot is None:
            return
        self._head = spot
        self._show()

    def handles(self, watched: QObject, event: QEvent) -> bool:
        """An event of a section's widget; True when it was dealt with here."""
        pane = watched if isinstance(watched, SectionPane) else watched.parent()
        if not isinstance(pane, SectionPane):
            return False
        match event.type():
            case QEvent.Type.MouseButtonPress if isinstance(event, QMouseEvent) and watched is pane.viewport():
                return self._on_press(pane, event)
            case QEvent.Type.MouseMove if isinstance(event, QMouseEvent) and watched is pane.viewport():
                return self._on_move(pane, event)
            case QEvent.Type.MouseButtonRelease if watched is pane.viewport():
                self.dragging = False
            case QEvent.Type.ContextMenu if isinstance(event, QContextMenuEvent):
                self._menu(pane, event.globalPos())
                return True
            case QEvent.Type.KeyPress if isinstance(event, QKeyEvent) and watched is pane:
                return self._on_key(event)
            case _:
                pass
        return False

    def copy(self, kind: CopyAs = "rich") -> None:
        """Put the selection on the clipboard; "rich" is plain text and HTML together."""
        mime = QMimeData()
        if kind == "markdown":
            mime.setText(self._markdown())
        else:
            mime.setText("\n".join(self._parts(rich=False)))
            if kind == "rich":
                mime.setHtml("\n".join(self._parts(rich=True)))
        QGuiApplication.clipboard().setMimeData(mime)

    def _on_press(self, pane: SectionPane, event: QMouseEvent) -> bool:
        if event.button() is not Qt.MouseButton.LeftButton:
            return False
        spot = self._spot(pane.mapTo(self._view, event.position().toPoint()))
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and self._anchor is not None and spot is not None:
            self._head = spot
            self._show()
            return True
        self._unselect(keep=pane)
        self._anchor, self._head, self.dragging = spot, None, True
        return False

    def _on_move(self, pane: SectionPane, event: QMouseEvent) -> bool:
        if not (self.dragging and event.buttons() & Qt.MouseButton.LeftButton) or self._anchor is None:
            return False
        place = pane.mapTo(self._view, event.position().toPoint())
        self._view.dragged.emit(place)
        spot = self._spot(place)
        if spot is None or (spot.section == self._anchor.section and not self._spans()):
            return False
        self._head = spot
        self._show()
        return True

    def _on_key(self, event: QKeyEvent) -> bool:
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif event.matches(QKeySequence.StandardKey.Copy) and self.is_there:
            self.copy()
        else:
            return False
        return True

    def _menu(self, pane: SectionPane, place: QPoint) -> None:
        menu = QMenu(pane)
        menu.setObjectName("thread.copymenu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        there = self.is_there
        for text, kind in (
            (tr("Copy"), "rich"),
            (tr("Copy as plain text"), "plain"),
            (tr("Copy as Markdown"), "markdown"),
        ):
            action = menu.addAction(text)
            action.setEnabled(there)
            action.triggered.connect(lambda _checked=False, kind=kind: self.copy(kind))
        menu.addSeparator()
        menu.addAction(tr("Select the whole answer")).triggered.connect(self.select_all)
        menu.popup(place)

    def _spans(self) -> bool:
        return self._head is not None and self._anchor is not None and self._head != self._anchor

    def _spot(self, place: QPoint) -> Spot | None:
        if not self._view.sections:
            return None
        index = self._view.index_at(min(max(0, place.y()), self._view.height() - 1))
        pane = self._view.pane_at(index)
        return Spot(index, pane.cursorForPosition(place - self._view.section_rect(index).topLeft()).position())

    def _show(self) -> None:
        """Make the sections' own selections show this one."""
        if self._anchor is None or self._head is None:
            return
        first, last = sorted((self._anchor, self._head))
        for index, section in enumerate(self._view.sections):
            if section.pane is None:
                continue
            if first.section <= index <= last.section:
                self.show_in(index)
            else:
                _unselect(section.pane)

    def _unselect(self, keep: SectionPane) -> None:
        for section in self._view.sections:
            if section.pane is not None and section.pane is not keep:
                _unselect(section.pane)

    def _selected(self) -> list[int]:
        if self._spans() and self._anchor is not None and self._head is not None:
            first, last = sorted((self._anchor, self._head))
            return list(range(first.section, last.section + 1))
        sections = enumerate(self._view.sections)
        return [index for index, each in sections if each.pane is not None and each.pane.textCursor().hasSelection()]

    def _parts(self, *, rich: bool) -> list[str]:
        panes = [self._view.pane_at(index) for index in self._selected()]
        return [pane.rich_selection() if rich else pane.plain_selection() for pane in panes]

    def _markdown(self) -> str:
        """The source of sections that are selected whole; the words of one that is selected in part."""
        parts = []
        for index in self._selected():
            pane = self._view.pane_at(index)
            cursor = pane.textCursor()
            whole = cursor.selectionStart() == 0 and cursor.selectionEnd() >= pane.document().characterCount() - 1
            parts.append(section_markdown(self._view.sections[index].blocks) if whole else pane.plain_selection())
        if len(parts) == len(self._view.sections) and all(
            part == section_markdown(each.blocks) for part, each in zip(parts, self._view.sections, strict=True)
        ):
            return self._view.markdown
        return "\n\n".join(parts)


def _unselect(pane: SectionPane) -> None:
    cursor = pane.textCursor()
    if cursor.hasSelection():
        cursor.clearSelection()
        pane.setTextCursor(cursor)
