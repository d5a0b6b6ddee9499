"""The Sampling tab: the presets, and every option of an answer for the open chat alone."""

from collections.abc import Callable

import msgspec
from PySide6.QtCore import Qt
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QScrollArea, QVBoxLayout, QWidget

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import GenerationOptions
from qwendesk.core.presets import Style
from qwendesk.core.settings import table
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.bridges.presets import PresetsBridge
from qwendesk.ui.inspector.preset_menu import PresetMenu
from qwendesk.ui.kit.buttons import TextButton, describe
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper
from qwendesk.ui.settings.rows.make import make_row
from qwendesk.ui.settings.rows.row import SettingRow
from qwendesk.ui.settings.rows.words import edit_text

_ELSEWHERE = ("json_schema", "enable_thinking")
"""The schema is in the tab System prompt, thinking in the composer."""
_FIRST = ("temperature", "top_k", "top_p", "min_p", "presence_penalty", "repeat_penalty", "max_tokens", "seed")


class SamplingPart(QWidget):
    """Follows the open chat. What is set here wins over the preset and is marked."""

    def __init__(self, keeper: ThemeKeeper, chat: ChatBridge, presets: PresetsBridge) -> None:
        super().__init__()
        self._keeper, self._chat = keeper, chat
        self.setObjectName("inspector.sampling")
        self._preset: GenerationOptions | None = None
        self._rows: dict[str, SettingRow] = {}
        self._styles: dict[Style, TextButton] = {}
        self._column = QVBoxLayout()
        self._column.setContentsMargins(16, 0, 12, 12)
        self._column.setSpacing(0)
        heading = QLabel(tr("Preset"))
        heading.setProperty("kind", "strong")
        self._column.addWidget(heading)
        self._column.addLayout(self._presets())
        self.presets = PresetMenu(keeper, presets, chat)
        self._column.addWidget(self.presets)
        self._summary = QLabel()
        self._summary.setProperty("kind", "small")
        self._summary.setWordWrap(True)
        self._summary.setObjectName("inspector.sampling.summary")
        self._column.addWidget(self._summary)
        self._add(_FIRST)
        self._more = TextButton(keeper, tr("Advanced"), kind="pill")
        self._more.setCheckable(True)
        describe(self._more, "inspector.sampling.advanced", tr("Advanced"), tr("Show every option of an answer"))
        self._more.toggled.connect(self._on_more)
        self._column.addWidget(self._more, 0, Qt.AlignmentFlag.AlignLeft)
        self._reset = TextButton(keeper, tr("Reset all"), kind="quiet")
        describe(self._reset, "inspector.sampling.reset", tr("Reset all"), tr("Everything as the preset has it"))
        self._reset.clicked.connect(lambda: self._apply({}))
        self._rest = QVBoxLayout()
        self._column.addLayout(self._rest)
        self._column.addWidget(self._reset, 0, Qt.AlignmentFlag.AlignLeft)
        self._column.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        outer.addWidget(self._scrolled())
        chat.options_changed.connect(self.show_options)
        self.show_options()

    def show_model(self) -> None:
        """Another model has other presets."""
        if self._chat.preset_options != self._preset:
            self.show_options()

    def show_options(self) -> None:
        """As the next answer will be made."""
        settings, options, preset = self._chat.settings, self._chat.options, self._chat.preset_options
        self._preset = preset
        for key, row in self._rows.items():
            row.set_default(getattr(preset, key))
            row.show_value(getattr(options, key))
        for style, button in self._styles.items():
            button.setChecked(style == self._chat.style and not settings.preset_name)
        precise = tr("Coding") if options.enable_thinking else tr("Reasoning")
        self._styles["precise"].setText(precise)
        self._reset.setVisible(bool(settings.overrides))
        text = tr(
            "Preset: temperature {0}, top-p {1}, top-k {2}, presence {3}.",
            *(edit_text(getattr(preset, key)) for key in ("temperature", "top_p", "top_k", "presence_penalty")),
        )
        changed = sum(1 for key in settings.overrides if key in self._rows or key not in _ELSEWHERE)
        self._summary.setText(f"{text} {tr('Changed for this chat: {0}.', changed)}" if changed else text)

    def _presets(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(0, 6, 0, 6)
        row.setSpacing(4)
        names: tuple[tuple[Style, str], ...] = (("general", tr("General")), ("precise", tr("Coding")))
        for style, name in names:
            button = TextButton(self._keeper, name, kind="tab")
            button.setCheckable(True)
            tip = tr("What the model card recommends; what was changed here is dropped")
            describe(button, f"inspector.sampling.{style}", name, tip)
            button.clicked.connect(lambda _checked=False, style=style: self._choose(style))
            self._styles[style] = button
            row.addWidget(button)
        row.addStretch(1)
        return row

    def _choose(self, style: Style) -> None:
        self._chat.choose_style(style)
        self.show_options()

    def _on_more(self, wanted: bool) -> None:
        if wanted and len(self._rows) == len(_FIRST):
            rest = [key for key in table(GenerationOptions) if key not in (*_FIRST, *_ELSEWHERE)]
            self._add(rest, self._rest)
            self.show_options()
        for key, row in self._rows.items():
            row.setVisible(wanted or key in _FIRST)

    def _add(self, keys: tuple[str, ...] | list[str], column: QVBoxLayout | None = None) -> None:
        for key in keys:
            row = make_row(self._keeper, table(GenerationOptions)[key], "inspector.sampling")
            row.stack()
            row.chosen.connect(self._changer(key))
            row.reset_asked.connect(lambda key=key: self._apply(self._without(key)))
            self._rows[key] = row
            (column or self._column).addWidget(row)

    def _changer(self, key: str) -> Callable[[object], None]:
        def change(value: object) -> None:
            overrides = self._without(key)
            if value != self._rows[key].entry.default:
                overrides[key] = edit_text(value)
            self._apply(overrides, key)

        return change

    def _without(self, key: str) -> dict[str, str]:
        return {each: text for each, text in self._chat.settings.overrides.items() if each != key}

    def _apply(self, overrides: dict[str, str], key: str = "") -> None:
        try:
            self._chat.change_settings(msgspec.structs.replace(self._chat.settings, overrides=overrides))
        except QwenDeskError as error:
            if key:
                self._rows[key].refuse(error.sentence)
            return
        self.show_options()

    def _scrolled(self) -> QScrollArea:
        inner = QWidget()
        inner.setProperty("kind", "panel")
        inner.setLayout(self._column)
        area = QScrollArea()
        area.setProperty("kind", "panel")
        area.setWidgetResizable(True)
        area.setFrameShape(QFrame.Shape.NoFrame)
        area.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        area.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        area.setWidget(inner)
        return area
