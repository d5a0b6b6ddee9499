"""ServerCard: one server that the user added, with its models."""

from typing import TYPE_CHECKING

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QLineEdit, QStackedWidget, QVBoxLayout, QWidget

from qwendesk.core.served_model import ServedModel, served_name
from qwendesk.core.translation import tr
from qwendesk.remote.server_texts import about_text, model_details, status_text, status_tone
from qwendesk.remote.service import ListedServer
from qwendesk.widgets.buttons import IconButton, TextButton, describe, restyle
from qwendesk.widgets.text_labels import ElidedLabel

if TYPE_CHECKING:
    from qwendesk.remote.inspection import ModelOnServer


# Rows that are built at most. Of more, the model picker finds the one that is typed.
_MOST_MODELS = 50


class ServerCard(QFrame):
    load_asked = Signal(str)
    """The model, as `LoadOptions.model` has it."""
    refresh_asked = Signal()
    named = Signal(str)
    """Name that the user gives the server now; "" for its own name."""
    removal_asked = Signal()

    def __init__(self, number: int) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self._name = f"engines.server.{number}"
        self.setObjectName(self._name)
        self._models: tuple[ModelOnServer, ...] | None = None
        self._rows: dict[str, tuple[QLabel, TextButton]] = {}
        self._in_use = ""
        self._title = NameField(self._name)
        self._title.named.connect(self.named)
        self._about = ElidedLabel(f"{self._name}.about", kind="small")
        self._status = QLabel()
        self._status.setObjectName(f"{self._name}.status")
        self._problem = QLabel()
        self._problem.setObjectName(f"{self._name}.problem")
        self._problem.setProperty("kind", "error")
        self._problem.setTextFormat(Qt.TextFormat.PlainText)
        self._problem.setWordWrap(True)
        self._list = QVBoxLayout()
        self._list.setContentsMargins(0, 0, 0, 0)
        self._list.setSpacing(2)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 10, 12, 10)
        column.setSpacing(6)
        column.addLayout(self._make_head())
        column.addWidget(self._problem)
        column.addLayout(self._list)

    def show_server(self, listed: ListedServer) -> None:
        """Show a server as it is now."""
        self._server = listed.server
        self._title.show_name(listed.server.title, listed.server.name)
        self._about.setText(about_text(listed.server))
        self._status.setText(status_text(listed))
        restyle(self._status, "chip", status_tone(listed))
        self._problem.setText(listed.problem)
        self._problem.setVisible(bool(listed.problem))
        self._refresh.setEnabled(not listed.is_asking)
        name = listed.server.title
        describe(self._refresh, f"{self._name}.refresh", tr("Ask {0} again", name), tr("Ask it for its models again"))
        describe(self._rename, f"{self._name}.rename", tr("Rename {0}", name), tr("Give it a name of your own"))
        tip = tr("Remove it from this list, and its key from the keyring. Its models stay there.")
        describe(self._remove, f"{self._name}.remove", tr("Remove {0}", name), tip)
        self.setAccessibleName(tr("{0}, {1}", name, self._status.text()))
        if listed.models != self._models:
            self._models = listed.models
            self._show_models()

    def show_in_use(self, model: str) -> None:
        """Mark the model that the window uses, by its text in `LoadOptions.model`."""
        self._in_use = model
        for text, (chip, load) in self._rows.items():
            chip.setVisible(text == model)
            load.setVisible(text != model)

    def _make_head(self) -> QHBoxLayout:
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(self._title)
        texts.addWidget(self._about)
        self._rename = IconButton("edit", size=16, side=28)
        self._rename.clicked.connect(self._title.begin)
        self._refresh = IconButton("again", size=16, side=28)
        self._refresh.clicked.connect(self.refresh_asked)
        self._remove = IconButton("delete", size=16, side=28)
        self._remove.clicked.connect(self.removal_asked)
        row = QHBoxLayout()
        row.setSpacing(8)
        row.addLayout(texts, 1)
        row.addWidget(self._status, 0, Qt.AlignmentFlag.AlignVCenter)
        row.addWidget(self._rename)
        row.addWidget(self._refresh)
        row.addWidget(self._remove)
        return row

    def _show_models(self) -> None:
        while (item := self._list.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        self._rows = {}
        for number, model in enumerate((self._models or ())[:_MOST_MODELS], 1):
            self._list.addWidget(self._model_row(f"{self._name}.model.{number}", model))
        self.show_in_use(self._in_use)

    def _model_row(self, name: str, model: "ModelOnServer") -> QWidget:
        text = ServedModel(self._server.address, model.name).text
        title, about = ElidedLabel(f"{name}.name"), ElidedLabel(f"{name}.details", kind="small")
        title.setText(served_name(model.name))
        title.setToolTip(model.name)
        about.setText(model_details(model))
        about.setVisible(bool(about.text()))
        chip = QLabel(tr("In use"))
        chip.setProperty("chip", "info")
        load = TextButton(tr("Use"))
        tip = tr("Answer your chats with this model. It runs on the server, not on this PC.")
        describe(load, f"{name}.load", tr("Use {0}", model.name), tip)
        load.clicked.connect(lambda: self.load_asked.emit(text))
        self._rows[text] = chip, load
        words = QVBoxLayout()
        words.setSpacing(0)
        words.addWidget(title)
        words.addWidget(about)
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 4, 0, 4)
        line.setSpacing(8)
        line.addLayout(words, 1)
        line.addWidget(chip, 0, Qt.AlignmentFlag.AlignVCenter)
        line.addWidget(load)
        return row


_LONGEST = 60


class NameField(QStackedWidget):
    """Shows a title. While it is edited, Enter or leaving it takes the new name, and Esc the old one."""

    named = Signal(str)
    """The new name, which may be empty."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._title, self._field = ElidedLabel(f"{name}.title", kind="strong"), QLineEdit()
        self._field.setMaxLength(_LONGEST)
        describe(self._field, f"{name}.name", tr("Name"), tr("What you call this server. Empty: its own name."))
        self._field.editingFinished.connect(self._end)
        self._name = ""
        self.addWidget(self._title)
        self.addWidget(self._field)

    def show_name(self, title: str, name: str) -> None:
        """Show the title; `name` is what the user has called it before, or ""."""
        self._title.setText(title)
        self._name = name

    def begin(self) -> None:
        """Let the user edit the name."""
        self._field.setText(self._name)
        self._field.setPlaceholderText(self._title.text())
        self.setCurrentWidget(self._field)
        self._field.setFocus()
        self._field.selectAll()

    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Take the old name on Esc, which the field passes on."""
        if event.key() == Qt.Key.Key_Escape and self.currentWidget() is self._field:
            self._field.setText(self._name)
            self._end()
        else:
            super().keyPressEvent(event)

    def _end(self) -> None:
        if self.currentWidget() is not self._field:
            return
        name = self._field.text().strip()
        self.setCurrentWidget(self._title)
        if name != self._name:
            self.named.emit(name)
