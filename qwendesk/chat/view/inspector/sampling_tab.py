"""The Sampling tab: the presets and all generation options of the open chat."""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.chat.chat_settings import with_foreign_values
from qwendesk.chat.presets import PresetsService
from qwendesk.chat.service import ChatService
from qwendesk.chat.view.inspector.preset_menu import PresetMenu
from qwendesk.core.architectures import OtherSampling
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.presets import PresetSource, Style
from qwendesk.core.settings import Entry, table
from qwendesk.core.translation import join_list, join_sentences, tr
from qwendesk.engine.protocol import LoadReport
from qwendesk.widgets.bind import bind_field
from qwendesk.widgets.buttons import TextButton, describe
from qwendesk.widgets.display_texts import unused_option_reason
from qwendesk.widgets.layouts import panel_scroll_area
from qwendesk.widgets.rows.option_texts import edit_text, value_text
from qwendesk.widgets.rows.row_factory import make_row
from qwendesk.widgets.rows.setting_row import SettingRow
from qwendesk.widgets.rows.sliding_row import SlidingRow

# Options without a field in this tab: the schema is in the System prompt tab, thinking in the composer.
_SHOWN_ELSEWHERE = ("json_schema", "enable_thinking")
_BASIC_KEYS = ("temperature", "top_k", "top_p", "min_p", "presence_penalty", "repeat_penalty", "max_tokens", "seed")
# The usual values of options with a slider; any other value can be typed.
_SLIDER_STOPS: Mapping[str, tuple[float, ...]] = MappingProxyType(
    {
        "temperature": tuple(round(0.05 * step, 2) for step in range(41)),
        "top_k": (0, 1, 5, 10, 20, 30, 40, 50, 64, 80, 100),
        "top_p": tuple(round(0.05 * step, 2) for step in range(21)),
        "min_p": tuple(round(0.01 * step, 2) for step in range(31)),
        "presence_penalty": tuple(round(0.1 * step, 1) for step in range(21)),
        "repeat_penalty": tuple(round(1 + 0.05 * step, 2) for step in range(11)),
    }
)


class SamplingTab(QWidget):
    """Shows and changes the options of the open chat. A value set here overrides the preset and is marked."""

    def __init__(self, chat: ChatService, presets: PresetsService) -> None:
        super().__init__()
        self._chat = chat
        self._report: LoadReport | None = None
        self.setObjectName("inspector.sampling")
        self._shown_preset: tuple[GenerationOptions, PresetSource, tuple[OtherSampling, ...]] | None = None
        self._rows: dict[str, SettingRow] = {}
        self._styles: dict[Style, TextButton] = {}
        self._column = QVBoxLayout()
        self._column.setContentsMargins(16, 0, 12, 12)
        self._column.setSpacing(0)
        heading = QLabel(tr("Preset"))
        heading.setProperty("kind", "strong")
        self._column.addWidget(heading)
        self._column.addLayout(self._style_row())
        self.presets = PresetMenu(presets, chat)
        self._column.addWidget(self.presets)
        self._summary = QLabel()
        self._summary.setProperty("kind", "small")
        self._summary.setWordWrap(True)
        self._summary.setObjectName("inspector.sampling.summary")
        self._column.addWidget(self._summary)
        self._column.addWidget(self._changes_note())
        self._add_rows(_BASIC_KEYS)
        self._advanced = TextButton(tr("Advanced"), kind="pill")
        self._advanced.setCheckable(True)
        describe(self._advanced, "inspector.sampling.advanced", tr("Advanced"), tr("Show all options"))
        self._advanced.toggled.connect(self._on_advanced)
        self._column.addWidget(self._advanced, 0, Qt.AlignmentFlag.AlignLeft)
        self._advanced_rows = QVBoxLayout()
        self._column.addLayout(self._advanced_rows)
        self._column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._scroll_area())
        bind_field(self, chat.state, lambda state: state.settings, self.show_options)
        bind_field(self, chat.state, lambda state: state.chat_id, self._on_chat_opened)

    def show_model(self, report: LoadReport | None) -> None:
        """Show the presets for the model that is now loaded, and grey what its server doesn't take."""
        chat = self._chat
        if report is not self._report:
            self._report = report
            self._show_unused()
        if (chat.preset_options(), chat.preset_source, chat.other_sampling) != self._shown_preset:
            self.show_options()

    def show_options(self, _settings: ChatSettings | None = None) -> None:
        """Show the options of the next answer."""
        settings, options, preset = self._chat.settings, self._chat.options(), self._chat.preset_options()
        self._shown_preset = preset, self._chat.preset_source, self._chat.other_sampling
        keys = [key for key in table(GenerationOptions) if key in settings.overrides and key not in _SHOWN_ELSEWHERE]
        changed = [key for key in keys if getattr(options, key) != getattr(preset, key)]
        if not set(changed) <= set(self._rows):
            self._make_advanced()
        for key, row in self._rows.items():
            row.set_default(getattr(preset, key))
            row.show_value(getattr(options, key))
        for style, button in self._styles.items():
            button.setChecked(style == self._chat.style and not settings.preset_name)
        precise = tr("Coding") if options.enable_thinking else tr("Reasoning")
        self._styles["precise"].setText(precise)
        numbers = tr(
            "Preset: temperature {0}, top-p {1}, top-k {2}, presence {3}.",
            *(edit_text(getattr(preset, key)) for key in ("temperature", "top_p", "top_k", "presence_penalty")),
        )
        notes = (_source_text(self._chat.preset_source), _others_text(self._chat.other_sampling))
        self._summary.setText(join_sentences(numbers, *notes))
        changes = join_list(_change_text(self._rows[key].entry, getattr(options, key)) for key in changed)
        self._changes.setText(tr("Changed for this chat: {0}. A new chat starts from the preset.", changes))
        self._changes_frame.setVisible(bool(changed))
        self._show_rows()

    def _changes_note(self) -> QFrame:
        """Return a frame that names the options changed for this chat, with a button that resets them."""
        self._changes = QLabel()
        self._changes.setObjectName("inspector.sampling.changes")
        self._changes.setProperty("kind", "small")
        self._changes.setWordWrap(True)
        reset = TextButton(tr("Reset all"), kind="link")
        describe(reset, "inspector.sampling.reset", tr("Reset all"), tr("Reset all options to the preset"))
        reset.clicked.connect(self._reset_all)
        self._changes_frame = QFrame()
        row = QHBoxLayout(self._changes_frame)
        row.setContentsMargins(0, 4, 0, 0)
        row.addWidget(self._changes, 1)
        row.addWidget(reset, 0, Qt.AlignmentFlag.AlignTop)
        return self._changes_frame

    def _on_chat_opened(self, _chat_id: str) -> None:
        self._discard_typed()
        self.show_options()

    def _reset_all(self) -> None:
        self._discard_typed()
        self._set_overrides({})

    def _discard_typed(self) -> None:
        for row in self._rows.values():
            row.discard_typed()

    def _style_row(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(0, 6, 0, 6)
        row.setSpacing(4)
        names: tuple[tuple[Style, str], ...] = (("general", tr("General")), ("precise", tr("Coding")))
        for style, name in names:
            button = TextButton(name, kind="tab")
            button.setCheckable(True)
            tip = tr("Use what the model card recommends. Your changes here are discarded.")
            describe(button, f"inspector.sampling.{style}", name, tip)
            button.clicked.connect(lambda _checked=False, style=style: self._choose_style(style))
            self._styles[style] = button
            row.addWidget(button)
        row.addStretch(1)
        return row

    def _choose_style(self, style: Style) -> None:
        self._chat.set_style(style)
        self.show_options()

    def _on_advanced(self, wanted: bool) -> None:
        if wanted:
            self._make_advanced()
        self.show_options()

    def _show_unused(self) -> None:
        for key, row in self._rows.items():
            row.show_unavailable(unused_option_reason(self._report, key))

    def _make_advanced(self) -> None:
        if len(self._rows) == len(_BASIC_KEYS):
            rest = [key for key in table(GenerationOptions) if key not in (*_BASIC_KEYS, *_SHOWN_ELSEWHERE)]
            self._add_rows(rest, self._advanced_rows)
            self._show_unused()

    def _show_rows(self) -> None:
        """Show the basic and the changed options, or all with Advanced."""
        overrides = self._chat.settings.overrides
        for key, row in self._rows.items():
            row.setVisible(self._advanced.isChecked() or key in _BASIC_KEYS or key in overrides)

    def _add_rows(self, keys: tuple[str, ...] | list[str], column: QVBoxLayout | None = None) -> None:
        for key in keys:
            row = _make_row(table(GenerationOptions)[key])
            row.chosen.connect(self._change_handler(key))
            row.reset_requested.connect(lambda key=key: self._set_overrides(self._overrides_without(key)))
            self._rows[key] = row
            (column or self._column).addWidget(row)

    def _change_handler(self, key: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            overrides = self._overrides_without(key)
            if value != self._rows[key].entry.default:
                overrides[key] = edit_text(value)
            self._set_overrides(overrides, key)

        return change

    def _overrides_without(self, key: str) -> dict[str, str]:
        return {each: text for each, text in self._chat.settings.overrides.items() if each != key}

    def _set_overrides(self, overrides: dict[str, str], key: str = "") -> None:
        try:
            self._chat.change_settings(msgspec.structs.replace(self._chat.settings, overrides=overrides))
        except QwenDeskError as error:
            if key:
                self._rows[key].refuse(error.sentence)
            return
        self.show_options()

    def _scroll_area(self) -> QScrollArea:
        inner = QWidget()
        inner.setLayout(self._column)
        return panel_scroll_area(inner)


def _make_row(entry: Entry) -> SettingRow:
    if entry.key in _SLIDER_STOPS:
        return SlidingRow(entry, "inspector.sampling", _SLIDER_STOPS[entry.key])
    row = make_row(entry, "inspector.sampling")
    row.stack()
    return row


def _source_text(source: PresetSource) -> str:
    """Return what to say of a model whose card QwenDesk doesn't know; "" for any other."""
    match source:
        case "alike":
            return tr(
                "QwenDesk doesn't know this new Qwen: these are the values of the family that it is like. Its model "
                "card may name better ones."
            )
        case "file":
            return tr("QwenDesk doesn't know this model: its file recommends these values.")
        case "llama.cpp":
            return tr(
                "QwenDesk doesn't know this model: these are llama.cpp's values. Its model card may name better ones."
            )
        case "card":
            return ""


def _others_text(others: Sequence[OtherSampling]) -> str:
    """Return what other sources than the model's card say; "" if none is known to differ."""
    options = table(GenerationOptions)
    said = []
    for each in others:
        values = join_list(_change_text(options[key], value) for key, value in each.values.items())
        said.append(tr("{0} ({1})", values, tr(each.source)))
    return tr("These are the model card's values. Others publish: {0}.", "; ".join(said)) if said else ""


def _change_text(entry: Entry, value: object) -> str:
    """Return the label of a changed option, with its value if that is short: "Temperature 0.3"."""
    label = tr(entry.setting.label)
    return label if isinstance(value, str | tuple) and not entry.choices else f"{label} {value_text(entry, value)}"


def set_pasted_options(chat: ChatService, values: Mapping[str, Any]) -> None:
    """Set generation options and `system_prompt` of a pasted command, given by key, for the open chat.

    Raises QwenDeskError if they can't be used.
    """
    settings = chat.settings
    overrides = dict(settings.overrides)
    changes: dict[str, Any] = {}
    for key, value in values.items():
        if key == "enable_thinking":
            changes["thinking"] = value
        elif key in ("json_schema", "system_prompt"):
            changes[key] = value
        else:
            overrides[key] = edit_text(value)
    changed = msgspec.structs.replace(settings, overrides=overrides, **changes)
    chat.change_settings(with_foreign_values(changed, values))
