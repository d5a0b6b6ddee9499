"""The menu of tools: what the model may use in this chat, with a line that says what each does."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from PySide6.QtCore import QPoint, QSize, Qt, Signal
from PySide6.QtGui import QMouseEvent, QPaintEvent
from PySide6.QtWidgets import QFrame, QStyle, QStyleOptionButton, QWidget

from qwendesk.chat.view.composer.folder_strip import folder_text
from qwendesk.core.chats import ChatSettings
from qwendesk.core.folder_state import FolderState
from qwendesk.core.number_format import show_count
from qwendesk.core.tool_context import ToolChoice
from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import TextButton, describe, restyle
from qwendesk.widgets.controls import Switch
from qwendesk.widgets.kit import STRETCH, IconLabel, button, column, label, may_shrink, paragraph, row, rule
from qwendesk.widgets.layouts import steady_scroll_area, widget_with
from qwendesk.widgets.popups import Popover
from qwendesk.widgets.tab_order import focus_next
from qwendesk.widgets.theme_keeper import current_theme

# Width with the usual text size, distance from the button and from the window's edges, and padding, in pixels.
_WIDTH, _GAP, _EDGE, _PADDING = 432, 8, 8, 8


class ToolsMenu(Popover):
    """Stays open while tools are switched. It is built when it is first opened."""

    opened = Signal()
    chosen = Signal(tuple)
    """The names of the tools that are on."""
    folder_asked = Signal()
    """The user wants to choose a folder."""
    folder_opened = Signal(str)
    """The path of a folder of which the user wants to know more."""
    models_asked = Signal()
    """The user wants a model that can read folders."""
    calls_asked = Signal()
    """The user wants to see the tool calls of this chat."""
    settings_asked = Signal()

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self._anchor = parent
        self.setObjectName("composer.menu.tools")
        self.setAccessibleName(tr("Tools"))
        # Otherwise the click on the button that closes the menu would open it again.
        self.setAttribute(Qt.WidgetAttribute.WA_NoMouseReplay)
        self._choices: tuple[ToolChoice, ...] = ()
        self._settings = ChatSettings()
        self._states: Mapping[str, FolderState] = {}
        self._fault = ""
        self._n_tokens: int | None = None
        self._rows: list[ToolRow] = []
        self._is_built = False

    def show_tools(self, choices: Sequence[ToolChoice], settings: ChatSettings, fault: str = "") -> None:
        """Show these tools, and which of them are on. `fault` says what is wrong with the model's template."""
        self._choices, self._settings, self._fault = tuple(choices), settings, fault
        self._show()

    def show_folder_states(self, states: Mapping[str, FolderState]) -> None:
        """Show how far the folders are read."""
        self._states = states
        self._show()

    def show_cost(self, n_tokens: int | None) -> None:
        """Show what the active tools take, as the engine counted it; None: it has not counted these."""
        self._n_tokens = n_tokens
        self._show()

    @property
    def cost_text(self) -> str:
        """The tokens of each prompt that the active tools take; "" if none is active."""
        active = self.active
        if not active:
            return ""
        if self._n_tokens is not None:
            return tr("The active tools take {0} tokens of each prompt", show_count(self._n_tokens))
        n_tokens = sum(choice.n_tokens for choice in active)
        return tr("The active tools take about {0} tokens of each prompt", show_count(n_tokens))

    @property
    def active(self) -> tuple[ToolChoice, ...]:
        """The tools that are on."""
        settings = self._settings
        is_on = {choice: set(choice.names) <= set(settings.tools) for choice in self._choices}
        usable = (each for each in self._choices if is_on[each] and not each.obstacle)
        return tuple(each for each in usable if settings.tool_folders or not each.needs_folder)

    def open(self) -> None:
        """Show the menu above its button, with the focus on its first row."""
        if not self._is_built:
            self._build()
        self.opened.emit()
        self._show()
        self._place()
        window, corner = self._anchor.window(), self._anchor.mapTo(self._anchor.window(), QPoint())
        left = min(corner.x(), self._right_edge() - self.width())
        place = QPoint(max(_EDGE, left), corner.y() - self.height() - _GAP)
        self.move(window.mapToGlobal(place))
        self.show()
        self.activateWindow()
        focus_next(self, None, forward=True)

    def _right_edge(self) -> int:
        """Return where the menu ends at most: with the message field, so that it doesn't cover the inspector."""
        window, field = self._anchor.window(), self._anchor.parentWidget()
        if field is None or field.width() < self.width():
            return window.width() - _EDGE
        return field.mapTo(window, QPoint(field.width(), 0)).x()

    def _build(self) -> None:
        self._is_built = True
        self._list = column(spacing=0)
        holder = widget_with(self._list)
        holder.setProperty("kind", "clear")
        self._area = steady_scroll_area(holder)
        self._area.setProperty("kind", "shelf")
        self._area.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        about = label(tr("What the model may use in this chat"), "small", wraps=True)
        head = row(label(tr("Tools"), "strong"), STRETCH, about, margins=(12, 4, 12, 4))
        self._cost = paragraph(kind="small", name="composer.tools.cost")
        self._fault_note = paragraph(kind="small", name="composer.tools.fault")
        notes = column(self._cost, self._fault_note, spacing=2, margins=(12, 4, 12, 4))
        calls = button(tr("What tools did in this chat…"), "composer.tools.calls", kind="menurow", icon_name="more")
        settings = button(tr("Tool settings…"), "composer.tools.settings", kind="menurow", icon_name="settings")
        for each, asked in ((calls, self.calls_asked), (settings, self.settings_asked)):
            each.clicked.connect(self.close)
            each.clicked.connect(asked)
        margins = (_PADDING, _PADDING, _PADDING, _PADDING)
        self._column = column(head, self._area, rule(), notes, calls, settings, spacing=2, margins=margins)
        self.setLayout(self._column)

    def _show(self) -> None:
        if not self._is_built:
            return
        ordered = self._ordered()
        if [each.names for each in ordered] != [each.names for each in self._rows]:
            self._make_rows(ordered)
        active = self.active
        for made, choice in zip(self._rows, ordered, strict=True):
            made.show_choice(choice, is_on=choice in active)
            if isinstance(made, FilesRow):
                made.show_folders(self._settings.tool_folders, self._states)
        self._cost.setText(self.cost_text or tr("Each tool that is on takes some tokens of each prompt"))
        self._fault_note.setText(self._fault)
        self._fault_note.setVisible(bool(self._fault and active))
        if self.isVisible():
            bottom = self.geometry().bottom()
            self._place()
            self.move(self.x(), bottom - self.height() + 1)

    def _ordered(self) -> list[ToolChoice]:
        """Return the choices, first the tools that read files."""
        files = next((each for each in self._choices if each.needs_folder), None)
        return [*([files] if files is not None else []), *(each for each in self._choices if each is not files)]

    def _make_rows(self, choices: Sequence[ToolChoice]) -> None:
        for old in self._rows:
            self._list.removeWidget(old)
            old.hide()
            old.deleteLater()
        self._rows = []
        for place, choice in enumerate(choices):
            made = FilesRow(choice) if place == 0 and choice.needs_folder else ToolRow(choice)
            made.switch.clicked.connect(lambda on, names=choice.names: self._toggle(names, on=on))
            if isinstance(made, FilesRow):
                made.folder_asked.connect(self._ask_for_folder)
                made.folder_opened.connect(self._open_folder)
                made.models_asked.connect(self.close)
                made.models_asked.connect(self.models_asked)
            self._list.addWidget(made)
            made.show()
            self._rows.append(made)

    def _toggle(self, names: tuple[str, ...], *, on: bool) -> None:
        others = tuple(name for name in self._settings.tools if name not in names)
        self.chosen.emit((*others, *names) if on else others)
        needs_folder = any(each.needs_folder for each in self._choices if each.names == names)
        if on and needs_folder and not self._settings.tool_folders:
            self._ask_for_folder()

    def _ask_for_folder(self) -> None:
        self.close()
        self.folder_asked.emit()

    def _open_folder(self, folder: str) -> None:
        self.close()
        self.folder_opened.emit(folder)

    def _place(self) -> None:
        """Take the size that the rows need, as far as the window has room above the button; then they scroll."""
        window = self._anchor.window()
        width = min(current_theme().px(_WIDTH), window.width() - 2 * _EDGE)
        wanted = max(self._list.totalHeightForWidth(width - 2 * _PADDING), self._list.totalMinimumSize().height())
        self._area.setFixedHeight(0)
        around = self._column.totalHeightForWidth(width)
        room = self._anchor.mapTo(window, QPoint()).y() - _GAP - _EDGE - around
        self._area.setFixedHeight(max(0, min(wanted, room)))
        self.setFixedSize(width, around + self._area.height())


class ToolRow(QFrame):
    """A tool: its icon, its name, what it does or why it can't be used, and a switch. A click on the row switches."""

    def __init__(self, choice: ToolChoice, title: str = "", kind: str = "") -> None:
        super().__init__()
        self.names = choice.names
        self.setProperty("kind", "menurow")
        self._title, self._kind = title or choice.title, kind
        self.switch = Switch()
        self.name, self.line = paragraph(self._title, kind), paragraph(kind="small")
        self.texts = column(self.name, self.line, spacing=0)
        role = "text_link" if kind else "text_dim"
        self.row = row(IconLabel(choice.icon, role, 18), self.texts, self.switch, spacing=12, margins=(12, 4, 8, 4))
        self.row.setStretchFactor(self.texts, 1)
        self.setLayout(self.row)

    def show_choice(self, choice: ToolChoice, *, is_on: bool) -> None:
        self.line.setText(choice.obstacle or choice.promise)
        cost = tr("Takes about {0} tokens of each prompt.", show_count(choice.n_tokens))
        describe(self.switch, f"composer.tools.{choice.names[0]}", self._title, choice.obstacle or cost)
        self.switch.setAccessibleDescription(self.line.text())
        self.switch.setChecked(is_on)
        self.switch.setEnabled(not choice.obstacle)
        restyle(self.name, "kind", "dim" if choice.obstacle else self._kind)

    def mousePressEvent(self, event: QMouseEvent) -> None:
        event.accept()

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        if self.switch.isVisible() and self.rect().contains(event.position().toPoint()):
            self.switch.click()


class FolderLink(TextButton):
    """The name of a folder and how far it is read, elided if the menu has less room: the switches need theirs."""

    def __init__(self) -> None:
        super().__init__(kind="size")
        self._is_painting = False
        may_shrink(self)

    def minimumSizeHint(self) -> QSize:
        return QSize(1, super().minimumSizeHint().height())

    def initStyleOption(self, option: QStyleOptionButton) -> None:
        super().initStyleOption(option)
        if self._is_painting:  # a hint of the size needs the whole text
            room = self.style().subElementRect(QStyle.SubElement.SE_PushButtonContents, option, self).width()
            option.text = self.fontMetrics().elidedText(option.text, Qt.TextElideMode.ElideMiddle, room)

    def paintEvent(self, event: QPaintEvent) -> None:
        self._is_painting = True
        super().paintEvent(event)
        self._is_painting = False


class FilesRow(ToolRow):
    """The tools that read files, with the folders in which they may, or with a way to a model that can read them."""

    folder_asked = Signal()
    folder_opened = Signal(str)
    models_asked = Signal()

    def __init__(self, choice: ToolChoice) -> None:
        super().__init__(choice, tr("Ask my files"), "strong")
        self.setProperty("first", "true")
        self._folders: dict[str, FolderLink] = {}
        tip = tr("Let the model read a folder…")
        self._choose = button(tr("Choose…"), "composer.tools.pick", said=tip, tip=tip)
        self._choose.clicked.connect(self.folder_asked)
        self._get = button(tr("Get a model…"), "composer.tools.models", tip=tr("See which models suit this PC"))
        self._get.clicked.connect(self.models_asked)
        for each in (self._choose, self._get):
            self.row.insertWidget(self.row.count() - 1, each)
        self.row.setContentsMargins(12, 10, 8, 10)

    def show_choice(self, choice: ToolChoice, *, is_on: bool) -> None:
        super().show_choice(choice, is_on=is_on)
        self._choose.setHidden(bool(choice.obstacle))
        self._get.setVisible(bool(choice.obstacle))

    def show_folders(self, folders: Sequence[str], states: Mapping[str, FolderState]) -> None:
        """Show these folders with how far each is read."""
        for gone in [each for each in self._folders if each not in folders]:
            old = self._folders.pop(gone)
            self.texts.removeWidget(old)
            old.hide()
            old.deleteLater()
        for folder in folders:
            if folder not in self._folders:
                made = self._folders[folder] = FolderLink()
                describe(made, f"composer.tools.folder.{folder}", folder)
                made.clicked.connect(lambda _checked=False, folder=folder: self.folder_opened.emit(folder))
                self.texts.addWidget(made, 0, Qt.AlignmentFlag.AlignLeft)
            text = f"{folder_text(Path(folder).name or folder, states.get(folder))}…"
            self._folders[folder].setText(text.replace("&", "&&"))
            self._folders[folder].setAccessibleName(text)
        self.switch.setVisible(bool(folders))
