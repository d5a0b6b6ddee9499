"""Rows of names and secret values, such as the environment variables of a server. Saved values are never shown."""

from collections.abc import Sequence

from PySide6.QtWidgets import QHBoxLayout, QLineEdit, QVBoxLayout, QWidget

from qwendesk.core.translation import tr
from qwendesk.widgets.buttons import IconButton, TextButton, describe


class SecretRows(QWidget):
    """The rows, with a button that adds one."""

    def __init__(self, name: str, add_text: str, names: Sequence[str], saved: Sequence[str]) -> None:
        """`names` have a row from the beginning; those in `saved` have a value, which stays if nothing is typed."""
        super().__init__()
        self._name, self._saved = name, set(saved)
        self._rows: list[tuple[QWidget, QLineEdit, QLineEdit]] = []
        self._n_made = 0
        self._list = QVBoxLayout()
        self._list.setSpacing(6)
        add = TextButton(" " + add_text, kind="quiet", icon_name="new")
        describe(add, f"{name}.add", add_text, add_text)
        add.clicked.connect(lambda: self._add("").setFocus())
        bottom = QHBoxLayout()
        bottom.addWidget(add)
        bottom.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(6)
        column.addLayout(self._list)
        column.addLayout(bottom)
        for each in names:
            self._add(each)

    @property
    def names(self) -> tuple[str, ...]:
        """The names that were entered, each once."""
        return tuple(dict.fromkeys(filter(None, (name.text().strip() for _, name, _ in self._rows))))

    @property
    def values(self) -> dict[str, str]:
        """The values that were typed, by name."""
        typed = ((name.text().strip(), value.text().strip()) for _, name, value in self._rows)
        return {name: value for name, value in typed if name and value}

    def _add(self, name: str) -> QLineEdit:
        self._n_made += 1
        number = self._n_made
        key, value = QLineEdit(name), QLineEdit()
        key.setPlaceholderText(tr("Name"))
        describe(key, f"{self._name}.{number}.name", tr("Name"), tr("As the server's instructions call it"))
        value.setEchoMode(QLineEdit.EchoMode.Password)
        value.setPlaceholderText(tr("Saved. Type to replace it.") if name in self._saved else tr("Value"))
        describe(value, f"{self._name}.{number}.value", tr("Value"), tr("Saved in your system's keyring"))
        remove = IconButton("close", size=16, side=28)
        describe(remove, f"{self._name}.{number}.remove", tr("Remove"), tr("Remove"))
        row = QWidget()
        line = QHBoxLayout(row)
        line.setContentsMargins(0, 0, 0, 0)
        line.setSpacing(6)
        line.addWidget(key, 2)
        line.addWidget(value, 3)
        line.addWidget(remove)
        entry = (row, key, value)
        self._rows.append(entry)
        remove.clicked.connect(lambda: self._remove(entry))
        self._list.addWidget(row)
        return key

    def _remove(self, entry: tuple[QWidget, QLineEdit, QLineEdit]) -> None:
        self._rows.remove(entry)
        self._list.removeWidget(entry[0])
        entry[0].hide()
        entry[0].deleteLater()
