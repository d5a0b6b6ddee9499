"""The answer of a column, as it arrives, and what differs from the first column's."""

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCharFormat, QTextCursor
from PySide6.QtWidgets import QVBoxLayout, QWidget

from qwendesk.bench.comparison import ColumnResult
from qwendesk.bench.comparison_markdown import difference_text, figures
from qwendesk.bench.text_differences import Differences
from qwendesk.core.translation import tr, tr_n
from qwendesk.widgets.buttons import ChevronButton, describe, restyle
from qwendesk.widgets.display_texts import stop_text
from qwendesk.widgets.text_labels import WrappingLabel
from qwendesk.widgets.text_pane import TextPane, reading_line_format
from qwendesk.widgets.theme_keeper import app_theme, current_theme


class AnswerPane(TextPane):
    """A plain text that grows at its end, with the differing words highlighted when it is complete."""

    def __init__(self) -> None:
        super().__init__()
        self._text = ""
        self._differences: Differences | None = None
        app_theme().follow(self, self._draw_again)
        self._draw_again()

    @property
    def text(self) -> str:
        return self._text

    def show_text(self, text: str, found: Differences | None = None) -> None:
        """Show `text`, or what it has beyond the shown one. `found` are the differences of the whole text."""
        if (text, found) == (self._text, self._differences):
            return
        grows = found is None and self._differences is None and bool(self._text) and text.startswith(self._text)
        added, self._text, self._differences = text[len(self._text) :], text, found
        if grows:
            cursor = QTextCursor(self.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(added)
            self.fit_height()
        else:
            self._draw_again()

    def _draw_again(self) -> None:
        theme = current_theme()
        plain, different = QTextCharFormat(), QTextCharFormat()
        for form in (plain, different):
            form.setFont(theme.font(14))
            form.setForeground(theme.color("text"))
        different.setBackground(theme.color("chip_accent"))
        different.setForeground(theme.color("text_link"))
        self.clear()
        cursor = QTextCursor(self.document())
        cursor.setBlockFormat(reading_line_format())
        cursor.setCharFormat(plain)
        if self._differences is None:
            cursor.insertText(self._text, plain)
        else:
            for run in self._differences.runs:
                cursor.insertText(run.text, different if run.differs else plain)
        self.fit_height()


class ColumnAnswer(QWidget):
    """State, figures, thinking and text of one column's answer."""

    def __init__(self, letter: str) -> None:
        super().__init__()
        self._letter = letter
        self._shows_thinking = False
        self._result = ColumnResult()
        name = f"compare.{letter}"
        self._status = _label(f"{name}.status", "small")
        self._difference = _label(f"{name}.difference", "small")
        self._failure = _label(f"{name}.failure", "error")
        self._toggle = ChevronButton(kind="link")
        self._toggle.clicked.connect(self._on_toggle)
        self._thinking, self._text = AnswerPane(), AnswerPane()
        self._thinking.setAccessibleName(tr("Thinking of column {0}", letter))
        self._thinking.setObjectName(f"{name}.reasoning")
        self._text.setAccessibleName(tr("Answer of column {0}", letter))
        self._text.setObjectName(f"{name}.text")
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(8)
        for label in (self._status, self._difference, self._failure):
            column.addWidget(label)
        column.addWidget(self._toggle, 0, Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._thinking)
        column.addWidget(self._text)
        column.addStretch(1)
        self.show_result(None)

    def show_result(self, result: ColumnResult | None) -> None:
        """Show a result; None hides everything."""
        self.setVisible(result is not None)
        if result is None:
            return
        self._result = result
        self._status.setText(status_text(result))
        found = result.differences
        self._difference.setVisible(found is not None)
        if found is not None:
            self._difference.setText(difference_text(found))
            restyle(self._difference, "kind", "good" if found.are_none else "small")
        self._failure.setVisible(bool(result.failure))
        self._failure.setText(result.failure)
        self._text.setVisible(bool(result.text))
        self._text.show_text(result.text.strip(), found)
        self._show_thinking()

    def _on_toggle(self) -> None:
        self._shows_thinking = not self._shows_thinking
        self._show_thinking()

    def _show_thinking(self) -> None:
        reasoning, stats = self._result.reasoning.strip(), self._result.stats
        self._toggle.setVisible(bool(reasoning))
        self._thinking.setVisible(bool(reasoning) and self._shows_thinking)
        n_tokens = stats.reasoning_tokens
        text = tr_n("Thinking · {0} token", "Thinking · {0} tokens", n_tokens) if n_tokens else tr("Thinking")
        self._toggle.setText(text)
        describe(self._toggle, f"compare.{self._letter}.toggle", text, tr("Show or hide the thinking"))
        self._toggle.show_chevron("down" if self._shows_thinking else "right")
        if self._shows_thinking:
            self._thinking.show_text(reasoning)


def status_text(result: ColumnResult) -> str:
    """Return what a column does, or its figures."""
    match result.phase:
        case "waiting":
            return tr("Waits for the columns before it")
        case "loading":
            return tr("Loading the model…")
        case "processing":
            return tr("Processing the prompt · {0}%", round(100 * result.fraction))
        case "answering":
            return tr("Answering…")
        case "failed":
            return tr("Failed")
        case "stopped":
            return tr("Stopped")
    ended = stop_text(result.stop_reason) if result.stop_reason not in ("eos", "stop_string") else ""
    return " · ".join(part for part in (*figures(result), ended) if part)


def _label(name: str, kind: str) -> WrappingLabel:
    label = WrappingLabel()
    label.setObjectName(name)
    label.setProperty("kind", kind)
    return label
