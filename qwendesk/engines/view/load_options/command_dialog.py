"""The dialog for a pasted command line of llama.cpp, Ollama or vLLM: what it would set here, and what that takes."""

from collections.abc import Mapping
from typing import Any

from PySide6.QtCore import Signal
from PySide6.QtWidgets import QWidget

from qwendesk.commands.command_reader import ReadCommand, read_command
from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_titles import model_title, read_model_name
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table
from qwendesk.core.translation import join_sentences, tr
from qwendesk.engines.command_preview import CommandPreview, CommandService, load_changes
from qwendesk.engines.view.load_options.memory_card import MemoryCard
from qwendesk.widgets.buttons import describe
from qwendesk.widgets.kit import STRETCH, button, column, paragraph
from qwendesk.widgets.layouts import FlowLayout, steady_scroll_area, widget_with
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.question_dialog import Dialog
from qwendesk.widgets.rows.option_texts import value_text
from qwendesk.widgets.rows.text_row import LimitedTextEdit
from qwendesk.widgets.tasks import window_tasks

_WIDTH, _HEIGHT = 560, 600
# Least width of the window in pixels that stays visible around the dialog.
_EDGE = 60
# Height of the field in pixels: about four lines.
_FIELD_HEIGHT = 92


class CommandDialog(Dialog):
    """One for the window, shown again for each command. Applying changes options and loads nothing."""

    applied = Signal(str)
    """The text of the command, whose load options were set."""
    answer_options_pasted = Signal(object)
    """Generation options by key, and perhaps `system_prompt`, to be set for the open chat."""

    def __init__(self, service: CommandService, navigation: Navigation, parent: QWidget) -> None:
        super().__init__(parent)
        self._service, self._navigation, self._tasks = service, navigation, window_tasks()
        self._found: ReadCommand | None = None
        self._preview = CommandPreview()
        self.setObjectName("command")
        self.setWindowTitle(tr("Paste a command"))
        self._field = LimitedTextEdit()
        self._field.setFixedHeight(_FIELD_HEIGHT)
        self._field.setProperty("kind", "details")
        self._field.setTabChangesFocus(True)
        self._field.setPlaceholderText("llama-server -m … -c 65536, ollama run …, vllm serve …, FROM …, owner/name")
        describe(
            self._field, "command.text", tr("Command"),
            tr("A command line of llama.cpp, Ollama or vLLM, a Modelfile, or a link to a model"),
        )  # fmt: skip
        self._field.textChanged.connect(self._read)
        self._field.paste_refused.connect(self._refuse)
        self._model, self._target, self._changes, self._problem, self._remarks = (
            paragraph(kind=kind, name=f"command.{name}", selectable=True)
            for name, kind in (
                ("model", ""), ("target", ""), ("changes", ""), ("problem", "error"), ("remarks", "small")
            )
        )  # fmt: skip
        self._memory = MemoryCard("command.memory", can_ask=False)
        texts = (self._model, self._target, self._changes, self._memory, self._problem, self._remarks)
        results = widget_with(column(*texts, STRETCH, margins=(20, 0, 16, 0)))
        results.setProperty("kind", "column")
        field = column(self._field, margins=(20, 18, 20, 0))
        foot = column(widget_with(self._buttons()), margins=(20, 0, 20, 16))
        self.setLayout(column(field, steady_scroll_area(results), foot, spacing=10))
        self._read()

    def show_text(self, text: str) -> None:
        """Open the dialog with `text` in its field, which may be empty."""
        window = self.parentWidget()
        assert window is not None, "it belongs to the window"
        self.resize(min(_WIDTH, window.width() - _EDGE), min(_HEIGHT, window.height() - _EDGE))
        self._field.setPlainText(text)
        self._field.setFocus()
        self.open()

    def _buttons(self) -> FlowLayout:
        tip = tr("Set these options. Nothing is loaded yet.")
        self._apply = button(tr("Apply"), "command.apply", kind="primary", tip=tip)
        self._apply.clicked.connect(self._on_apply)
        self._find = button(tr("Find the model"), "command.find", tip=tr("Look for it on the Models page"))
        self._find.clicked.connect(self._on_find)
        close = button(tr("Close"), "command.close", kind="quiet", tip=tr("Change nothing"))
        close.clicked.connect(self.reject)
        buttons = FlowLayout()
        for each in (self._apply, self._find, close):
            buttons.addWidget(each)
        return buttons

    def _read(self) -> None:
        text = self._field.toPlainText()
        self._found = found = (read_command(text) or _model_alone(text)) if text.strip() else None
        self._show_preview(CommandPreview())
        if found is not None:
            self._tasks.start(self._look(found))

    async def _look(self, found: ReadCommand) -> None:
        preview = await self._service.preview(found)
        if found is self._found:
            self._show_preview(preview)

    def _show_preview(self, preview: CommandPreview) -> None:
        self._preview, found = preview, self._found
        texts = dict.fromkeys((self._model, self._target, self._changes, self._problem, self._remarks), "")
        if found is not None:
            texts[self._model] = model_text(found)
            texts[self._target] = target_text(found, preview)
            texts[self._changes] = changes_text(found)
            texts[self._problem] = problem_text(preview)
            texts[self._remarks] = remarks_text(found)
        elif self._field.toPlainText().strip():
            texts[self._changes] = tr("This isn't a command line of llama.cpp, Ollama or vLLM.")
        for label, text in texts.items():
            label.setText(text)
            label.setVisible(bool(text))
        self._memory.setVisible(preview.pending is not None)
        if preview.pending is not None:
            self._memory.show_pending(preview.pending)
        sets_load = found is not None and bool(load_changes(found)) and preview.target is not None
        self._apply.setVisible(found is not None and (sets_load or bool(_for_chat(found))) and not preview.problem)
        has_other = found is not None and found.model is not None and not found.model.file
        self._find.setVisible(has_other and not preview.is_named_model)

    def _on_apply(self) -> None:
        if self._found is not None:
            self._tasks.start(self._apply_options(self._found))

    async def _apply_options(self, found: ReadCommand) -> None:
        target, text = self._preview.target, self._field.toPlainText()
        if target is not None and (load_changes(found) or self._preview.is_named_model):
            try:
                await self._service.apply(found, target)
            except BadOption as error:
                self._refuse(error.sentence)
                return
        if for_chat := _for_chat(found):
            self.answer_options_pasted.emit(for_chat)
        self.accept()
        self._navigation.inspector_asked.emit("load")
        self.applied.emit(text)

    def _refuse(self, sentence: str) -> None:
        self._problem.setText(sentence)
        self._problem.show()

    def _on_find(self) -> None:
        if self._found is not None and self._found.model is not None:
            self.reject()
            self._navigation.model_search_asked.emit(self._found.model.text)


def _model_alone(text: str) -> ReadCommand | None:
    """Return a link to a model, or its name on Hugging Face, as a command that sets nothing; None if it is neither."""
    model = read_model_name(text)
    return ReadCommand(program="llama.cpp", model=model, load={}, answer={}) if model is not None else None


def _for_chat(found: ReadCommand) -> dict[str, Any]:
    """Return what is set for the open chat, by key."""
    prompt = {"system_prompt": found.system_prompt} if found.system_prompt else {}
    return {**found.answer, **prompt}


# How many characters of a system prompt are shown.
_MOST_SHOWN = 300


def changes_text(found: ReadCommand) -> str:
    """Return a line for each option that the command sets; a sentence if it sets none."""
    values: Mapping[str, Any] = {**load_changes(found), **found.answer}
    entries = {**table(LoadOptions), **table(GenerationOptions)}
    lines = [
        tr("{0}: {1}", tr(entries[key].setting.label), value_text(entries[key], value)) for key, value in values.items()
    ]
    if found.system_prompt:
        lines.append(tr("System prompt of the open chat: {0}", _shortened(found.system_prompt)))
    return "\n".join(lines) if lines else tr("This sets no option.")


def _shortened(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _MOST_SHOWN else f"{words[:_MOST_SHOWN].rstrip()}…"


def model_text(found: ReadCommand) -> str:
    """Return which model the command names; "" if it names none."""
    return tr("Model: {0}", found.model.text) if found.model is not None else ""


def target_text(found: ReadCommand, preview: CommandPreview) -> str:
    """Return to which model on this PC the options would be applied."""
    sentences = []
    if found.model is not None and not preview.is_named_model:
        sentences.append(tr("This model isn't on this PC."))
    if preview.target is not None:
        sentences.append(tr("Applies to {0}:", model_title(preview.target.model)))
    elif load_changes(found):
        sentences.append(tr("Choose a model first to apply load options to it."))
    return join_sentences(*sentences)


def problem_text(preview: CommandPreview) -> str:
    """Return why the model can't be loaded with these options; "" if it can."""
    pending = preview.pending
    if pending is None:
        return preview.problem
    return join_sentences(*(conflict.sentence for conflict in pending.conflicts)) or pending.refusal


def remarks_text(found: ReadCommand) -> str:
    """Return a line for everything that isn't taken over, with the reason; "" if there is nothing."""
    return "\n".join(tr("{0}: {1}", remark.words, remark.sentence) for remark in found.remarks)
