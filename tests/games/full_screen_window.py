"""A window in full screen as a program of its own: `python -m tests.games.full_screen_window`. Ends with its input."""

import sys
import threading

from PySide6.QtWidgets import QApplication, QWidget


def main() -> None:
    app = QApplication(sys.argv)
    window = QWidget()
    window.setWindowTitle("Game")
    window.showFullScreen()
    window.activateWindow()
    threading.Thread(target=lambda: (sys.stdin.read(), app.quit()), daemon=True).start()
    app.exec()


if __name__ == "__main__":
    main()
