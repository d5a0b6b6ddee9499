"""Shows the options as a complete command for another program, ready to copy."""

import sys

from PySide6.QtCore import Qt
from PySide6.QtGui import QTextOption
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QPlainTextEdit, QVBoxLayout

from qwendesk.commands.command_writer import COMMAND_KINDS, CommandKind, command, difference, for_commands
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.observed import Observed
from qwendesk.core.translation import tr
from qwendesk.engines.outgrown_service import serving_of
from qwendesk.engines.pending_load import PendingLoad
from qwendesk.engines.pending_load_service import PendingLoadService
from qwendesk.widgets.bind import bind
from qwendesk.widgets.buttons import TextButton, copy_text, describe
from qwendesk.widgets.layouts import FlowLayout
from qwendesk.widgets.text_layout import WrappingLabel

_NAMES = {"llama-server": "llama-server", "ollama": "Ollama", "vllm": "vLLM", "sglang": "SGLang", "mlx": "MLX"}
# Shown only on a Mac.
_FOR_MACS = ("mlx",)


class CommandCard(QFrame):
    """Shows the command for a PendingLoad. Names of its controls begin with `prefix`."""

    def __init__(self, prefix: str, *, height: int = 132) -> None:
        super().__init__()
        self._kind: CommandKind = "llama-server"
        self._draft: PendingLoad | None = None
        self._answer = GenerationOptions()
        self.setObjectName(prefix)
        heading = QLabel(tr("Command line"))
        heading.setProperty("kind", "heading")
        self._copy = TextButton(tr("Copy"), kind="quiet", icon_name="copy")
        describe(self._copy, f"{prefix}.copy", tr("Copy"), tr("Copy the whole command"))
        self._copy.clicked.connect(self._on_copy)
        self._text = QPlainTextEdit()
        self._text.setReadOnly(True)
        self._text.setProperty("kind", "details")
        self._text.setTabChangesFocus(True)
        self._text.setFixedHeight(height)
        self._text.setWordWrapMode(QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere)
        describe(self._text, f"{prefix}.text", tr("Command"), tr("The same options for another program"))
        self._difference = WrappingLabel()
        self._difference.setProperty("kind", "small")
        self._difference.setObjectName(f"{prefix}.difference")
        self._tabs: dict[CommandKind, TextButton] = {}
        tabs = FlowLayout(spacing=2)
        kinds = (kind for kind in COMMAND_KINDS if sys.platform == "darwin" or kind not in _FOR_MACS)
        for kind in kinds:
            tab = TextButton(_NAMES[kind], kind="tab")
            tab.setCheckable(True)
            describe(tab, f"{prefix}.{kind}", _NAMES[kind], tr("For {0}", _NAMES[kind]))
            tab.clicked.connect(lambda _checked=False, kind=kind: self._choose(kind))
            self._tabs[kind] = tab
            tabs.addWidget(tab)
        head = QHBoxLayout()
        head.addWidget(heading, 1)
        head.addWidget(self._copy)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(6)
        column.addLayout(head)
        column.addLayout(tabs)
        column.addWidget(self._text)
        column.addWidget(self._difference)
        self._choose("llama-server")

    def show_pending(self, pending: PendingLoad, answer: GenerationOptions) -> None:
        self._draft, self._answer = pending, pending.answer_options(answer)
        self._write()

    def show_kind(self, kind: CommandKind) -> None:
        """Show the command for this program."""
        self._choose(kind)

    def _on_copy(self) -> None:
        copy_text(self._copy, self._text.toPlainText())

    def _choose(self, kind: CommandKind) -> None:
        self._kind = kind
        for each, tab in self._tabs.items():
            tab.setChecked(each == kind)
        self._write()

    def _write(self) -> None:
        pending = self._draft
        has_model = pending is not None and pending.requested is not None
        text = tr("No model is loaded.")
        if pending is not None and pending.served_by:
            text = tr("The loaded model runs on {0}. The command that started it is there.", pending.served_by)
        if pending is not None and pending.requested is not None:
            load = for_commands(pending.requested, pending.decided if not pending.conflicts else None)
            text = command(self._kind, load, self._answer, serving_of(pending), windows=sys.platform == "win32")
        self._copy.setEnabled(has_model)
        note = difference(self._kind, self._answer) if has_model else ""
        self._difference.setText(note)
        self._difference.setVisible(bool(note))
        if text != self._text.toPlainText():
            self._text.setPlainText(text)


class LoadedCommand(QFrame):
    """The card of the Engine page with the command of the loaded model."""

    def __init__(self, service: PendingLoadService, options: Observed[GenerationOptions]) -> None:
        super().__init__()
        self._service, self._options = service, options
        self.setProperty("kind", "modelcard")
        self.card = CommandCard("engine.command", height=110)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 4, 16, 6)
        column.addWidget(self.card, 0, Qt.AlignmentFlag.AlignTop)
        bind(self, service.state, self._show)
        bind(self, options, self._show)

    def _show(self, _change: object) -> None:
        """Show the command of the loaded model, also while the inspector shows the options of another one."""
        shown, last = self._service.pending, self._service.of_loaded.value
        if shown.other_loaded and last.requested is not None and last.requested.model == shown.other_loaded:
            shown = last
        self.card.show_pending(shown, self._options.value)
