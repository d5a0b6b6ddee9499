"""What is asked before an engine is changed under a running answer, and before one is deleted."""

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from qwendesk.core.units import show_bytes
from qwendesk.ui.engine.row_texts import EngineLine
from qwendesk.ui.kit.buttons import describe
from qwendesk.ui.kit.text import tr


def ask_when(parent: QWidget, change: Callable[[bool], None]) -> QMessageBox:
    """Asks whether a change shall stop the answer (`change(True)`) or come after it. Esc changes nothing."""
    box = _box(parent, "engine.when", tr("Change the engine"), tr("An answer is being written. Change the engine now?"))
    box.setInformativeText(tr("A change ends the engine, so it would stop the answer. The model is loaded again."))
    after = box.addButton(tr("After the answer"), QMessageBox.ButtonRole.AcceptRole)
    now = box.addButton(tr("Stop it and change"), QMessageBox.ButtonRole.DestructiveRole)
    keep = box.addButton(tr("Keep this engine"), QMessageBox.ButtonRole.RejectRole)
    describe(after, "engine.when.after", after.text())
    describe(now, "engine.when.now", now.text())
    describe(keep, "engine.when.keep", keep.text(), shortcut="Esc")
    box.setDefaultButton(after)
    box.setEscapeButton(keep)
    after.clicked.connect(lambda: change(False))
    now.clicked.connect(lambda: change(True))
    box.open()
    return box


def ask_deletion(parent: QWidget, line: EngineLine, delete: Callable[[], None], *, can_fetch: bool) -> QMessageBox:
    """Enter and Esc both mean no."""
    box = _box(parent, "engine.deletion", tr("Delete"), tr("Delete {0}?", line.title))
    freed = tr("This frees {0}.", show_bytes(line.n_bytes)) if line.n_bytes else tr("Its folder is removed.")
    later = tr("It can be fetched again.") if can_fetch else tr("It cannot be fetched from here again.")
    box.setInformativeText(f"{freed} {later}")
    yes = box.addButton(tr("Delete"), QMessageBox.ButtonRole.DestructiveRole)
    no = box.addButton(tr("Keep"), QMessageBox.ButtonRole.RejectRole)
    describe(yes, "engine.deletion.yes", yes.text())
    describe(no, "engine.deletion.no", no.text(), shortcut="Esc")
    box.setDefaultButton(no)
    box.setEscapeButton(no)
    yes.clicked.connect(delete)
    box.open()
    return box


def _box(parent: QWidget, name: str, title: str, text: str) -> QMessageBox:
    box = QMessageBox(parent)
    box.setObjectName(name)
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle(title)
    box.setText(text)
    return box
