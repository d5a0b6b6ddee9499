"""TryCard: the server's first question, to copy in three languages, and to ask at once."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from PySide6.QtWidgets import QFrame, QPlainTextEdit, QPushButton

from qwendesk.core.translation import mark, tr
from qwendesk.core.units import show_elapsed, show_rate
from qwendesk.server.access import masked_key
from qwendesk.server.setups.programs import Target
from qwendesk.server.try_it import Language, TryResult, ask, snippet
from qwendesk.widgets.buttons import copy_text, describe
from qwendesk.widgets.kit import PADDING, STRETCH, IconLabel, button, card, column, keep_room, label, paragraph, row
from qwendesk.widgets.layouts import FlowLayout, widget_with
from qwendesk.widgets.tasks import window_tasks
from qwendesk.widgets.text_layout import fit_height
from qwendesk.widgets.theme_keeper import app_theme

_LANGUAGES: Final[tuple[tuple[Language, str], ...]] = (
    ("curl", mark("curl")),
    ("python", mark("Python")),
    ("javascript", mark("JavaScript")),
)
# Lines of code that are shown at once, and padding of the field in pixels.
_LINES, _AROUND = 7, 22
# Characters of an answer that are shown.
_LONGEST = 160


class TryCard(QFrame):
    """`turn_on` starts the server if it is off, and returns how programs reach it; None if it didn't start."""

    def __init__(self, turn_on: Callable[[], Awaitable[Target | None]]) -> None:
        super().__init__()
        self.setProperty("kind", "modelcard")
        self.setObjectName("serve.try")
        self._turn_on, self._tasks = turn_on, window_tasks()
        self._test: asyncio.Task[None] | None = None
        self._language: Language = "curl"
        self._address, self._key = "", ""
        self._tabs = {language: self._tab(language, tr(name)) for language, name in _LANGUAGES}
        tabs = FlowLayout(spacing=4)
        for each in self._tabs.values():
            tabs.addWidget(each)
        self._code = QPlainTextEdit()
        self._code.setReadOnly(True)
        self._code.setProperty("kind", "details")
        self._code.setLineWrapMode(QPlainTextEdit.LineWrapMode.NoWrap)
        self._code.setTabChangesFocus(True)
        describe(self._code, "serve.try.code", tr("Code to copy"), tr("The key is hidden here only"))
        app_theme().follow(self._code, self._fit_code)
        self._mark = IconLabel("", "text_good")
        keep_room(self._mark)
        self._answer = paragraph(kind="dim", name="serve.try.answer", selectable=True)
        self._figures = label(kind="small", name="serve.try.figures")
        answer = row(self._mark, self._answer, self._figures)
        answer.setStretchFactor(self._answer, 1)
        self._run = button("", "serve.try.test", icon_name="resume")
        self._run.clicked.connect(self._on_run)
        self._copy = button(tr("Copy"), "serve.try.copy", icon_name="copy", tip=tr("Copy the code, with the whole key"))
        self._copy.clicked.connect(self._on_copy)
        made = column(
            row(label(tr("Try it"), "heading"), STRETCH, widget_with(tabs)),
            self._code,
            card(answer, "details", padding=10),
            row(self._run, self._copy, STRETCH),
            STRETCH,
            spacing=12,
            margins=(PADDING, 16, PADDING, 16),
        )
        self.setLayout(made)
        self._show_text(tr("The answer appears here."))

    def show_server(self, address: str, key: str) -> None:
        """Show the question to a server at this address; the key is "" while it is off."""
        self._address, self._key = address, key
        self._copy.setEnabled(bool(key))
        self._show_code()
        self._show_run()

    def _tab(self, language: Language, name: str) -> QPushButton:
        tab = button(name, f"serve.try.{language}", kind="tab", tip=tr("The question for {0}", name))
        tab.setCheckable(True)
        tab.clicked.connect(lambda: self._choose(language))
        return tab

    def _choose(self, language: Language) -> None:
        self._language = language
        self._show_code()

    def _show_code(self) -> None:
        for language, tab in self._tabs.items():
            tab.setChecked(language == self._language)
        text = snippet(self._language, self._address, masked_key(self._key))
        if text != self._code.toPlainText():
            self._code.setPlainText(text)
        self._fit_code()

    def _fit_code(self) -> None:
        fit_height(self._code, least=_LINES, most=_LINES, extra=_AROUND)

    def _show_run(self) -> None:
        is_running = self._test is not None
        text = tr("Stop") if is_running else tr("Test") if self._key else tr("Turn on and test")
        tip = tr("Ask the server this question now, as a program would")
        self._run.setText(text)
        describe(self._run, "serve.try.test", text, tr("Stop the test") if is_running else tip)
        # The button beside it stays where it is when the text gets shorter.
        self._run.setMinimumWidth(max(self._run.minimumWidth(), self._run.sizeHint().width()))
        self._run.themed.show("stop" if is_running else "resume")

    def _on_copy(self) -> None:
        copy_text(self._copy, snippet(self._language, self._address, self._key))

    def _on_run(self) -> None:
        if self._test is not None:
            self._test.cancel()
            self._end(None)
            return
        self._test = self._tasks.start(self._ask(), self)
        self._show_text(tr("Waiting for the answer. A model that isn't loaded is loaded first."))
        self._show_run()

    async def _ask(self) -> None:
        target = await self._turn_on()
        self._end(await ask(target) if target is not None else None)

    def _show_text(self, sentence: str) -> None:
        self._mark.show_icon("")
        self._figures.clear()
        self._answer.setText(sentence)

    def _end(self, result: TryResult | None) -> None:
        """Show what came of the test; None: it was stopped, or the server didn't start."""
        self._test = None
        self._show_run()
        if result is None:
            self._show_text(tr("The answer appears here."))
            return
        self._mark.show_icon("done" if result.is_answer else "warning", "text_good" if result.is_answer else "text_bad")
        text = " ".join(result.text.split())
        self._answer.setText(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…")
        speed = tr("{0} tok/s", show_rate(result.tok_s))
        self._figures.setText(f"{show_elapsed(result.seconds)} · {speed}" if result.is_answer else "")
