"""Asks before a model is deleted: what goes, and how many bytes that is."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QMessageBox, QWidget

from qwendesk.hub.deleting import Deletion
from qwendesk.ui.bridges.models import ModelsBridge
from qwendesk.ui.kit.buttons import describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.models.model_texts import deletion_text


def ask_deletion(bridge: ModelsBridge, deletion: Deletion, parent: QWidget, *, trash_refused: str = "") -> QMessageBox:
    """Opens the question; a yes deletes. `trash_refused` is why the trash did not take it: then it would be for good.

    Enter and Esc both mean no.
    """
    permanently = bool(trash_refused)
    box = QMessageBox(parent)
    box.setObjectName("models.delete")
    box.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
    box.setIcon(QMessageBox.Icon.Question)
    box.setWindowTitle(tr("Delete"))
    box.setText(tr("Delete {0} for good?", deletion.name) if permanently else tr("Delete {0}?", deletion.name))
    sentence = deletion_text(deletion, permanently=permanently)
    box.setInformativeText(f"{trash_refused} {sentence}" if permanently else sentence)
    yes = box.addButton(
        tr("Delete for good") if permanently else tr("Move to trash"), QMessageBox.ButtonRole.DestructiveRole
    )
    no = box.addButton(tr("Keep"), QMessageBox.ButtonRole.RejectRole)
    describe(yes, "models.delete.yes", yes.text())
    describe(no, "models.delete.no", no.text(), shortcut="Esc")
    box.setDefaultButton(no)
    box.setEscapeButton(no)
    yes.clicked.connect(lambda: bridge.delete(deletion, permanently=permanently))
    box.open()
    return box
