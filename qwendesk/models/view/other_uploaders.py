"""The other uploaders of a model below its quants: what is different about their files, and a link to each."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QLabel, QVBoxLayout, QWidget

from qwendesk.core.translation import tr, tr_n
from qwendesk.models.uploaders import OtherUploader
from qwendesk.models.view.file_table import small_label
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.layouts import ResponsivePairLayout

_LEAST_TEXT = 320
"""Least width in pixels of the text beside its link."""


class OtherUploaders(QWidget):
    """Shows the other uploaders of a model. `asked` carries the repository whose files are asked for."""

    asked = Signal(str)

    def __init__(self, model: str, others: Sequence[OtherUploader]) -> None:
        super().__init__()
        self.setObjectName(f"models.others.{model}")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 6, 0, 0)
        column.setSpacing(2)
        column.addWidget(small_label(tr("The same model from other uploaders")))
        for each in others:
            column.addLayout(self._row(each))

    def _row(self, other: OtherUploader) -> ResponsivePairLayout:
        files = tr_n("{0} file", "{0} files", other.n_files)
        text = QLabel(" ".join((tr("{0}, {1}.", other.uploader, files), *other.sentences)))
        text.setObjectName(f"models.other.{other.repo}")
        text.setProperty("kind", "small")
        text.setWordWrap(True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        link = TextButton(tr("See files"), kind="link")
        tip = tr("See its files and whether they fit")
        describe(link, f"models.other.open.{other.repo}", tr("See the files of {0}", other.repo), tip)
        link.clicked.connect(lambda: self.asked.emit(other.repo))
        return ResponsivePairLayout(text, link, least=_LEAST_TEXT, spacing=8)
