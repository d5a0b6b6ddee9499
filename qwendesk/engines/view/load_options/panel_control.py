"""The controls of the Load tab, and what it shares with the sheet of all options: the verdict and the reload button."""

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from qwendesk.core.translation import tr
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.engines.view.load_options import load_text
from qwendesk.engines.view.load_options.load_text import Control, FootVerdict
from qwendesk.widgets.buttons import ChevronButton, IconButton, TextButton, describe, restyle
from qwendesk.widgets.kit import STRETCH, IconLabel, column, label, paragraph, row
from qwendesk.widgets.layouts import ResponsivePairLayout, widget_with
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.theme_keeper import app_theme, current_theme

# Least width of the field, and the arrow's side and distance, in pixels at the normal text size.
_FIELD, _ARROW, _ARROW_GAP = 152, 24, 2


class PanelControl(QWidget):
    """Shows a Control: its label, an arrow that undoes a change, a field with a menu, and a note."""

    chosen = Signal(object)
    """The load options to change, by key."""
    exact_asked = Signal()
    """The user wants a value that isn't in the menu."""

    def __init__(self, name: str) -> None:
        """`name` is the object name of the field, and the beginning of the others'."""
        super().__init__()
        self._name, self._control = name, Control("", "", (), -1, "", "")
        self._label = label(kind="strong", name=f"{name}.label", wraps=True)
        self._undo = IconButton("undo", size=14, side=_ARROW)
        self._undo.clicked.connect(self._on_undo)
        self.field = ChevronButton()
        self.field.setProperty("leading", "true")
        self._menu = Menu(self)
        self.field.clicked.connect(self._open_menu)
        self._note = paragraph(kind="small", name=f"{name}.note")
        name_part = widget_with(row(self._label, self._undo, STRETCH, spacing=_ARROW_GAP))
        self._head = ResponsivePairLayout(name_part, self.field, least=0)
        self.setLayout(column(self._head, self._note, spacing=4))
        self._scale()
        app_theme().follow(self, self._scale)

    def show_control(self, control: Control, *, is_changed: bool) -> None:
        self._control = control
        self._label.setText(control.label)
        self.field.setText(control.text)
        describe(self.field, self._name, tr("{0}: {1}", control.label, control.text), control.label)
        self.field.setVisible(bool(control.choices))
        describe(
            self._undo, f"{self._name}.undo", tr("Undo: {0}", control.label), tr("Reset to default: {0}", tr("Auto"))
        )
        self._undo.setVisible(is_changed)
        self._fit_label()
        self._note.setText(control.note)
        self._note.setVisible(bool(control.note))

    def _on_undo(self) -> None:
        self.field.setFocus()
        self.chosen.emit(self._control.choices[0].changes)

    def _open_menu(self) -> None:
        self._menu.clear()
        for number, choice in enumerate(self._control.choices):
            text = choice.text_with_kind
            text = tr("{0} · {1}", text, choice.more) if choice.more else text
            action = self._menu.addAction(text)
            action.setObjectName(f"{self._name}.{number}")
            action.setCheckable(True)
            action.setChecked(number == self._control.chosen)
            action.triggered.connect(lambda _on=False, choice=choice: self.chosen.emit(choice.changes))
        self._menu.addSeparator()
        exact = self._menu.addAction(tr("Set exactly…"))
        exact.setObjectName(f"{self._name}.exact")
        exact.triggered.connect(self.exact_asked)
        self._menu.open_at(self.field)

    def _scale(self) -> None:
        self.field.setMinimumWidth(current_theme().px(_FIELD))
        self._fit_label()

    def _fit_label(self) -> None:
        """Keep the label in one line: where it has no room beside the field, the field is below it."""
        arrow = 0 if self._undo.isHidden() else self._undo.sizeHint().width() + _ARROW_GAP
        self._head.set_least(self._label.fontMetrics().horizontalAdvance(self._label.text()) + arrow)


class VerdictLine(QWidget):
    """Says whether the options can be loaded, and what that would do."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._icon = IconLabel()
        self._text = paragraph(name=name)
        line = row(self._icon, self._text)
        line.setStretch(1, 1)
        self.setLayout(line)

    def show_verdict(self, verdict: FootVerdict) -> None:
        self._icon.show_icon("warning" if verdict.is_bad else "done", "text_bad" if verdict.is_bad else "text_good")
        self._text.setText(verdict.text)
        restyle(self._text, "kind", "error" if verdict.is_bad else "")
        self.setVisible(bool(verdict.text))


class ReloadButton(TextButton):
    """Loads the model with the pending options. It is hidden while there is nothing to apply."""

    def __init__(self, name: str, service: PendingLoadService) -> None:
        super().__init__(kind="primary")
        tasks = window_tasks()
        describe(
            self, name, tr("Reload to apply"), tr("Load the model again with these options, after the current answer")
        )
        self.clicked.connect(lambda: tasks.start(service.reload()))

    def show_pending(self, pending: PendingLoad, *, is_bad: bool) -> None:
        text = load_text.reload_text(pending)
        self.setText(text)
        self.setAccessibleName(text)
        is_busy = pending.is_waiting or pending.is_loading
        self.setVisible(pending.needs_reload or not pending.is_loaded or is_busy)
        self.setEnabled(not is_bad and not is_busy)
