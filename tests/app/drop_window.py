"""The main window as a program of its own: `python -m tests.app.drop_window LOG`, for drags from another program.

It writes a line to LOG when something is dragged over it, and one for each file that is attached.
"""

import asyncio
import sys
from pathlib import Path

from PySide6.QtCore import QEvent, QObject
from PySide6.QtWidgets import QApplication

from qwendesk.app.event_loop import EventLoop
from qwendesk.app.parts import build
from qwendesk.widgets.theme_keeper import ThemeKeeper
from tests.fakes.engine import FakeEngineClient, decide_by_default

TITLE = "Window that files are dropped on"


class Shown(QObject):
    """Writes "over" when the watched widget is shown."""

    def __init__(self, log: Path, watched: QObject) -> None:
        super().__init__(watched)
        self._log = log
        watched.installEventFilter(self)

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:  # noqa: N802 - Qt's name
        if event.type() == QEvent.Type.Show:
            write(self._log, "over")
        return super().eventFilter(watched, event)


def write(log: Path, line: str) -> None:
    with log.open("a", encoding="utf-8") as file:
        file.write(line + "\n")


async def run(app: QApplication, log: Path) -> None:
    ThemeKeeper(app, "dark")
    parts = build(FakeEngineClient(), decide=decide_by_default)
    page, window = parts.window.chat_page, parts.window
    Shown(log, parts.window.drop_target)

    def on_attached() -> None:
        for part in page.composer.attachments.pictures:
            write(log, Path(part.path).name)

    page.composer.attachments.changed.connect(on_attached)
    window.setWindowTitle(TITLE)
    window.setGeometry(400, 100, 1000, 700)
    closed = asyncio.Event()
    window.closed.connect(closed.set)
    window.show()
    await closed.wait()
    await parts.close()


def main() -> None:
    app = QApplication(sys.argv)
    app.setQuitOnLastWindowClosed(False)
    with asyncio.Runner(loop_factory=lambda: EventLoop(app)) as runner:
        runner.run(run(app, Path(sys.argv[1])))


if __name__ == "__main__":
    main()
