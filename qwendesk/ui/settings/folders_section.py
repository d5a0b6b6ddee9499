"""The model folders on the settings page: ours in their order, those of others, other apps on or off."""

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QLabel, QVBoxLayout, QWidget

from qwendesk.ui.bridges.places import FoldersBridge
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe
from qwendesk.ui.kit.flow import FlowLayout
from qwendesk.ui.kit.shortened_label import ShortenedLabel
from qwendesk.ui.kit.switch import Switch
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.section import Section

WORDS = (
    "model folders folder drive disk where downloads go other apps lm studio jan ollama llama.cpp hugging face cache"
)


class FoldersSection(Section):
    """Follows a FoldersBridge."""

    def __init__(self, keeper: ThemeKeeper, bridge: FoldersBridge) -> None:
        super().__init__("settings.folders", tr("Model folders"))
        self._keeper, self._bridge = keeper, bridge
        self._list = QVBoxLayout()
        self._list.setSpacing(0)
        box = QWidget()
        box.setLayout(self._list)
        self._list.setContentsMargins(0, 0, 0, 0)
        self._lines: list[QFrame] = []
        self._error = QLabel()
        self._error.setProperty("kind", "error")
        self._error.setObjectName("settings.folders.error")
        self._error.setWordWrap(True)
        self._error.setContentsMargins(16, 0, 16, 8)
        self._error.hide()
        self.add(box)
        self.add(self._error)
        self.add(self._make_buttons())
        self.add(self._make_other_apps())
        bridge.changed.connect(self._show)
        bridge.refused.connect(self._on_refused)
        self._show()

    def matches(self, query: str) -> bool:
        return all(word in WORDS for word in query.lower().split())

    def choose_own(self) -> None:
        self._choose(tr("A folder for models and downloads"), own=True)

    def _show(self) -> None:
        folders = self._bridge.folders
        for line in self._lines:
            self._list.removeWidget(line)
            line.hide()
            line.deleteLater()
        self._lines = []
        for place, folder in enumerate(folders.models, 1):
            what = tr("Downloads go here") if place == 1 else tr("Ours: for downloads and imports on request")
            self._lines.append(self._line(f"settings.folders.{place}", folder, what, place=place))
        for place, folder in enumerate(folders.added, 1):
            self._lines.append(self._line(f"settings.folders.added.{place}", folder, tr("Used in place"), place=0))
        for line in self._lines:
            self._list.addWidget(line)
        self._other_apps.setChecked(folders.other_apps)

    def _line(self, name: str, folder: str, what: str, *, place: int) -> QFrame:
        line = QFrame()
        line.setObjectName(name)
        path = ShortenedLabel(f"{name}.path")
        path.setText(folder)
        path.setToolTip(folder)
        path.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        note = QLabel(what)
        note.setProperty("kind", "small")
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(path)
        texts.addWidget(note)
        row = QHBoxLayout(line)
        row.setContentsMargins(16, 8, 8, 8)
        row.setSpacing(8)
        row.addLayout(texts, 1)
        if place > 1:
            first = TextButton(self._keeper, tr("Download here"), kind="quiet")
            describe(first, f"{name}.first", tr("Download here"), tr("Downloads go to this folder from now on"))
            first.clicked.connect(lambda: self._bridge.make_first(folder))
            row.addWidget(first)
        if place != 1 or len(self._bridge.folders.models) > 1:
            remove = IconButton(self._keeper, "close", size=16, side=28)
            describe(remove, f"{name}.remove", tr("Remove"), tr("Look here no more; the files stay"))
            remove.clicked.connect(lambda: self._bridge.remove(folder))
            row.addWidget(remove)
        return line

    def _make_buttons(self) -> QWidget:
        box = QWidget()
        around = QVBoxLayout(box)
        around.setContentsMargins(16, 4, 16, 8)
        row = FlowLayout()
        around.addLayout(row)
        own = TextButton(self._keeper, " " + tr("Add a models folder…"), icon_name="folder")
        describe(own, "settings.folders.add", tr("Add a models folder…"), tr("A folder of ours, on any drive"))
        own.clicked.connect(self.choose_own)
        other = TextButton(self._keeper, tr("Use a folder in place…"), kind="quiet")
        describe(
            other, "settings.folders.add_other", tr("Use a folder in place…"), tr("Its files are used, never changed")
        )
        other.clicked.connect(lambda: self._choose(tr("A folder with models"), own=False))
        row.addWidget(own)
        row.addWidget(other)
        return box

    def _make_other_apps(self) -> QWidget:
        box = QWidget()
        text = QLabel(tr("Use models of other apps"))
        note = QLabel(
            tr("LM Studio, Jan, Ollama, llama.cpp and the Hugging Face cache; their files are never changed.")
        )
        note.setProperty("kind", "small")
        note.setWordWrap(True)
        self._other_apps = Switch(self._keeper)
        describe(self._other_apps, "settings.folders.other_apps", tr("Use models of other apps"))
        self._other_apps.clicked.connect(self._bridge.use_other_apps)
        texts = QVBoxLayout()
        texts.setSpacing(2)
        texts.addWidget(text)
        texts.addWidget(note)
        row = QHBoxLayout(box)
        row.setContentsMargins(16, 8, 16, 8)
        row.setSpacing(24)
        row.addLayout(texts, 1)
        row.addWidget(self._other_apps)
        return box

    def _choose(self, title: str, *, own: bool) -> None:
        dialog = QFileDialog(self, title)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.fileSelected.connect(self._bridge.add_own if own else self._bridge.add_other)
        dialog.open()

    def _on_refused(self, sentence: str) -> None:
        self._error.setText(sentence)
        self._error.show()
