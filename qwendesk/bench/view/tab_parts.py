"""What the tabs of the Bench page share: how far a run is or why it ended early, and the exports of its result."""

from collections.abc import Callable

from PySide6.QtWidgets import QFrame, QLabel, QProgressBar, QVBoxLayout, QWidget

from qwendesk.bench.bench_engine import BenchFailure
from qwendesk.core.failures import LoadFailure
from qwendesk.core.translation import join_sentences, tr
from qwendesk.widgets.buttons import ChevronButton, describe
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.text_layout import WrappingLabel


class RunStatus(QWidget):
    """A failure in a red card, or else a text over a progress bar, or nothing."""

    def __init__(self, name: str) -> None:
        """`name` begins the object names: NAME.trouble, NAME.progress and NAME.progress.text."""
        super().__init__()
        self._trouble = QFrame()
        self._trouble.setProperty("kind", "failure")
        self._trouble_text = WrappingLabel()
        self._trouble_text.setObjectName(f"{name}.trouble")
        around = QVBoxLayout(self._trouble)
        around.setContentsMargins(14, 10, 14, 10)
        around.addWidget(self._trouble_text)
        self._text = QLabel()
        self._text.setObjectName(f"{name}.progress.text")
        self._bar = QProgressBar()
        self._bar.setObjectName(f"{name}.progress")
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(6)
        self._bar.setRange(0, 1000)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for widget in (self._trouble, self._text, self._bar):
            column.addWidget(widget)
        self.show_nothing()

    def show_nothing(self) -> None:
        self.hide()

    def show_failure(self, failure: BenchFailure | LoadFailure, more: str = "") -> None:
        """Show why a run ended early, and a further sentence."""
        sentences = (f"{failure.title}." if failure.title else "", failure.sentence, more)
        self._trouble_text.setText(join_sentences(*sentences))
        self._show(is_failure=True)

    def show_progress(self, text: str, fraction: float) -> None:
        """Show what is done now, and how much of all is done, from 0 to 1."""
        self._text.setText(text)
        self._bar.setValue(round(1000 * fraction))
        self._show(is_failure=False)

    def _show(self, *, is_failure: bool) -> None:
        self._trouble.setVisible(is_failure)
        self._text.setVisible(not is_failure)
        self._bar.setVisible(not is_failure)
        self.show()


class ExportButton(ChevronButton):
    """A button with a menu of the ways to export a result."""

    def __init__(self, name: str, tip: str, *entries: tuple[str, str, Callable[[], object]]) -> None:
        """`name` begins the object names. Each entry is a key, its text, and what happens."""
        super().__init__(tr("Export"))
        describe(self, f"{name}.export", tr("Export"), tip)
        menu = Menu(self)
        for key, text, chosen in entries:
            action = menu.addAction(text)
            action.setObjectName(f"{name}.export.{key}")
            action.triggered.connect(chosen)
        self.setMenu(menu)
