"""A window like that of a file manager: `python -m tests.app.drag_source FILE`. A press in it drags the file."""

import sys
from typing import Final

from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QDrag, QMouseEvent
from PySide6.QtWidgets import QApplication, QLabel

TITLE: Final = "Window that files are dragged from"


class DragSource(QLabel):
    def __init__(self, path: str) -> None:
        super().__init__(path)
        self._path = path
        self.setWindowTitle(TITLE)
        self.setGeometry(20, 100, 300, 200)

    def mousePressEvent(self, _event: QMouseEvent) -> None:  # noqa: N802 - Qt's name
        mime = QMimeData()
        mime.setUrls([QUrl.fromLocalFile(self._path)])
        drag = QDrag(self)
        drag.setMimeData(mime)
        drag.exec(Qt.DropAction.CopyAction)


def main() -> None:
    app = QApplication(sys.argv)
    source = DragSource(sys.argv[1])
    source.show()
    sys.exit(app.exec())


if __name__ == "__main__":
    main()
