"""A selection across the sections of an answer. It is stored as positions, so it remains when widgets are deleted."""

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Literal

import msgspec
from PySide6.QtCore import QEvent, QMimeData, QObject, QPoint, Qt
from PySide6.QtGui import QContextMenuEvent, QGuiApplication, QKeyEvent, QKeySequence, QMouseEvent

from qwendesk.chat.view.answer.answer_section import SectionStack, section_plain_text, section_texts
from qwendesk.chat.view.answer.formulas import FormulaCache
from qwendesk.chat.view.answer.section_pane import SectionPane, section_markdown
from qwendesk.core.translation import tr
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.step_budget import StepwiseWork

_END = 1 << 30
# Up to this many selected sections are copied at once, more of them in steps.
_MAX_SECTIONS_AT_ONCE = 3
# Of more than this many selected sections, only plain text is copied. No word processor accepts so much HTML.
_MAX_RICH_SECTIONS = 300
CopyAs = Literal["rich", "plain", "markdown"]


class TextPosition(msgspec.Struct, frozen=True, order=True):
    """A position in an answer: a section, and an offset in its text."""

    section: int
    position: int


class AnswerSelection:
    """Selects text across the sections of one answer. Qt handles selections within one section."""

    def __init__(
        self,
        stack: SectionStack,
        formulas: FormulaCache,
        copying: StepwiseWork,
        *,
        markdown: Callable[[], str],
        on_dragged: Callable[[QPoint], None],
    ) -> None:
        """`markdown` returns the whole answer. `on_dragged` gets the position of the mouse in the answer."""
        self._stack = stack
        self._formulas = formulas
        self._copying = copying
        self._markdown = markdown
        self._on_dragged = on_dragged
        self._anchor: TextPosition | None = None
        self._head: TextPosition | None = None
        self.dragging = False

    @property
    def has_selection(self) -> bool:
        """Whether any text is selected."""
        if self._has_range():
            return True
        return any(each.pane is not None and each.pane.textCursor().hasSelection() for each in self._stack.live)

    @property
    def is_copying(self) -> bool:
        """Whether a long selection is still being copied."""
        return self._copying.is_active

    def starts_in(self, index: int) -> bool:
        """Return True if a selection is being dragged from this section, whose widget then has grabbed the mouse."""
        return self.dragging and self._anchor is not None and self._anchor.section == index

    def clear(self) -> None:
        self._anchor = self._head = None

    def select_all(self) -> None:
        if self._stack.sections:
            self._anchor, self._head = TextPosition(0, 0), TextPosition(len(self._stack.sections) - 1, _END)
            self._show()

    def show_in(self, index: int) -> None:
        """Show the selection in the new widget of a section."""
        pane = self._stack.sections[index].pane
        if pane is None or not self._has_range() or self._anchor is None or self._head is None:
            return
        first, last = sorted((self._anchor, self._head))
        if first.section <= index <= last.section:
            start = first.position if index == first.section else 0
            pane.select(start, last.position if index == last.section else _END)

    def extend(self, place: QPoint) -> None:
        """Extend the selection to a point in the answer's coordinates."""
        position = self._position_at(place)
        if self._anchor is None or position is None:
            return
        self._head = position
        self._show()

    def handle_event(self, watched: QObject, event: QEvent) -> bool:
        """Handle an event of a section's widget. Return True if it needs no further handling."""
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
                self._show_menu(pane, event.globalPos())
                return True
            case QEvent.Type.KeyPress if isinstance(event, QKeyEvent) and watched is pane:
                return self._on_key(event)
            case _:
                pass
        return False

    def copy(self, kind: CopyAs = "rich") -> None:
        """Put the selection on the clipboard; "rich" is plain text and HTML together."""
        self._copying.stop()
        indexes = self._selected()
        if kind == "markdown" and self._is_all(indexes):
            QGuiApplication.clipboard().setText(self._markdown())
            return
        work = self._copy(indexes, kind)
        if len(indexes) <= _MAX_SECTIONS_AT_ONCE:
            deque(work, maxlen=0)
        else:
            self._copying.start(lambda: work)

    def _copy(self, indexes: Sequence[int], kind: CopyAs) -> Iterator[None]:
        """Collect the selected text, one section per step. A long answer has thousands, few of them with widgets."""
        plain: list[str] = []
        rich: list[str] = []
        for index in indexes:
            section = self._stack.sections[index]
            is_inside = indexes[0] < index < indexes[-1]
            if kind == "markdown" and is_inside:
                plain.append(section_markdown(section.blocks))
            elif kind == "markdown":
                plain.append(self._markdown_of(index))
            elif section.pane is None and is_inside and len(indexes) > _MAX_RICH_SECTIONS:
                plain.append(section_plain_text(section, self._formulas))
            elif section.pane is None and is_inside:
                plain_part, rich_part = section_texts(section, self._formulas)
                plain.append(plain_part)
                rich.append(rich_part)
            else:
                pane = self._pane_at(index)
                plain.append(pane.plain_selection())
                rich.append(pane.rich_selection() if kind == "rich" else "")
            yield
        mime = QMimeData()
        if kind == "markdown":
            mime.setText("\n\n".join(plain))
        else:
            mime.setText("\n".join(plain))
            if kind == "rich" and len(rich) == len(plain):
                mime.setHtml("\n".join(rich))
        QGuiApplication.clipboard().setMimeData(mime)

    def _on_press(self, pane: SectionPane, event: QMouseEvent) -> bool:
        if event.button() is not Qt.MouseButton.LeftButton:
            return False
        position = self._position_at(pane.mapToParent(event.position().toPoint()))
        if event.modifiers() & Qt.KeyboardModifier.ShiftModifier and self._anchor is not None and position is not None:
            self._head = position
            self._show()
            return True
        self._unselect(keep=pane)
        self._anchor, self._head, self.dragging = position, None, True
        return False

    def _on_move(self, pane: SectionPane, event: QMouseEvent) -> bool:
        if not (self.dragging and event.buttons() & Qt.MouseButton.LeftButton) or self._anchor is None:
            return False
        place = pane.mapToParent(event.position().toPoint())
        self._on_dragged(place)
        position = self._position_at(place)
        if position is None or (position.section == self._anchor.section and not self._has_range()):
            return False
        self._head = position
        self._show()
        return True

    def _on_key(self, event: QKeyEvent) -> bool:
        if event.matches(QKeySequence.StandardKey.SelectAll):
            self.select_all()
        elif event.matches(QKeySequence.StandardKey.Copy) and self.has_selection:
            self.copy()
        else:
            return False
        return True

    def _show_menu(self, pane: SectionPane, place: QPoint) -> None:
        menu = Menu(pane)
        menu.setObjectName("thread.copymenu")
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        can_copy = self.has_selection
        for text, kind in (
            (tr("Copy"), "rich"),
            (tr("Copy as plain text"), "plain"),
            (tr("Copy as Markdown"), "markdown"),
        ):
            action = menu.addAction(text)
            action.setEnabled(can_copy)
            action.triggered.connect(lambda _checked=False, kind=kind: self.copy(kind))
        menu.addSeparator()
        menu.addAction(tr("Select the whole answer")).triggered.connect(self.select_all)
        menu.popup(place)

    def _has_range(self) -> bool:
        return self._head is not None and self._anchor is not None and self._head != self._anchor

    def _position_at(self, place: QPoint) -> TextPosition | None:
        if not self._stack.sections:
            return None
        index = self._stack.geometry.index_at(max(0, place.y()))
        in_section = place - QPoint(0, self._stack.geometry.top(index))
        return TextPosition(index, self._pane_at(index).cursorForPosition(in_section).position())

    def _pane_at(self, index: int) -> SectionPane:
        return self._stack.pane(self._stack.sections[index])

    def _show(self) -> None:
        """Show the selection in the widgets of its sections."""
        if self._anchor is None or self._head is None:
            return
        first, last = sorted((self._anchor, self._head))
        for section in self._stack.live:
            if first.section <= section.index <= last.section:
                self.show_in(section.index)
            elif section.pane is not None:
                _unselect(section.pane)

    def _unselect(self, keep: SectionPane) -> None:
        for section in self._stack.live:
            if section.pane is not None and section.pane is not keep:
                _unselect(section.pane)

    def _selected(self) -> list[int]:
        if self._has_range() and self._anchor is not None and self._head is not None:
            first, last = sorted((self._anchor, self._head))
            return list(range(first.section, last.section + 1))
        return sorted(
            each.index for each in self._stack.live if each.pane is not None and each.pane.textCursor().hasSelection()
        )

    def _is_all(self, indexes: Sequence[int]) -> bool:
        sections = self._stack.sections
        return len(indexes) == len(sections) > 0 and self._is_whole(0) and self._is_whole(len(sections) - 1)

    def _is_whole(self, index: int) -> bool:
        """Return True if a section is selected completely."""
        pane = self._pane_at(index)
        cursor = pane.textCursor()
        return cursor.selectionStart() == 0 and cursor.selectionEnd() >= pane.document().characterCount() - 1

    def _markdown_of(self, index: int) -> str:
        """Return the Markdown of a completely selected section, or the selected text of a partly selected one."""
        if self._is_whole(index):
            return section_markdown(self._stack.sections[index].blocks)
        return self._pane_at(index).plain_selection()


def _unselect(pane: SectionPane) -> None:
    cursor = pane.textCursor()
    if cursor.hasSelection():
        cursor.clearSelection()
        pane.setTextCursor(cursor)
