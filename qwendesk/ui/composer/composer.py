"""Where the next question is written: one rounded card with attachments, text and the controls of the answer."""

from collections.abc import Sequence

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QMenu, QVBoxLayout, QWidget

from qwendesk.core.presets import Style
from qwendesk.engine.protocol import LoadReport
from qwendesk.ui.composer.attachments import Attachments, AttachmentShelf
from qwendesk.ui.composer.budget_menu import BudgetMenu
from qwendesk.ui.composer.composer_text import ComposerText
from qwendesk.ui.frame.actions import COMMANDS
from qwendesk.ui.kit.buttons import IconButton, TextButton, describe, restyle
from qwendesk.ui.kit.density import Airy
from qwendesk.ui.kit.text import tr
from qwendesk.ui.kit.theme_keeper import ThemeKeeper

_WIDEST_STYLE = 150
"""Logical pixels for the name of a preset; a longer one is cut."""


class Composer(QFrame):
    """Emits what the person wants; knows no service."""

    submitted = Signal(str, list, list)
    """Text, pictures and documents."""
    told = Signal(str)
    """The sentence above the text, "" when it goes."""
    stop_asked = Signal()
    answer_now_asked = Signal()
    thinking_toggled = Signal()
    style_chosen = Signal(str)
    preset_chosen = Signal(str)
    """One of the person's own, by its name."""
    keep_asked = Signal()
    """The values that hold now are to become a preset."""
    budget_chosen = Signal(int)
    """Tokens of thought, -1 without a limit, `CUSTOM_BUDGET` to ask for another number."""
    attach_asked = Signal()
    pasted = Signal(object)
    mmproj_asked = Signal()

    def __init__(self, keeper: ThemeKeeper) -> None:
        super().__init__()
        self._keeper = keeper
        self._busy = self._sending = False
        self._own: list[QAction] = []
        self._own_name = ""
        self._style: Style = "general"
        self.setProperty("kind", "composer")
        self.setObjectName("composer")
        self.attachments = Attachments(keeper)
        self.attachments.changed.connect(self._update_send)
        self.text = ComposerText()
        self.text.textChanged.connect(self._update_send)
        self.text.submitted.connect(self._submit)
        self.text.pasted.connect(self.pasted)
        self.text.focused.connect(lambda on: restyle(self, "focused", "true" if on else "false"))
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 12, 10)
        column.setSpacing(6)
        Airy(keeper, column)
        column.addWidget(AttachmentShelf(self.attachments))
        column.addLayout(self._notice_row())
        column.addWidget(self.text)
        column.addSpacing(2)
        column.addLayout(self._controls())
        self.setFocusProxy(self.text)
        keeper.changed.connect(self.text.fit_height)
        self.set_busy(busy=False)
        self.show_thinking(on=True, report=None)
        self.show_style("general", thinking=True)

    def set_busy(self, *, busy: bool) -> None:
        """Whether an answer is being made: the send button then stops it."""
        self._busy = busy
        self._send.themed.show("stop" if busy else "send", "on_fill")
        if busy:
            describe(self._send, "composer.send", tr("Stop"), tr("Stop the answer"), COMMANDS["stop"].shortcut)
        else:
            describe(self._send, "composer.send", tr("Send"), tr("Send the question"), "Return")
            self.show_answer_now(visible=False)
            if self.notice == _still_writing():
                self.say("")
        self._update_send()

    def show_answer_now(self, *, visible: bool) -> None:
        """Only while the model thinks."""
        self._answer_now.setVisible(visible)

    def set_sending(self, *, sending: bool) -> None:
        """While a question is counted before it goes: nothing can be changed in it."""
        self._sending = sending
        self.text.setReadOnly(sending)
        self.attachments.setDisabled(sending)

    def show_thinking(self, *, on: bool, report: LoadReport | None, budget: int = -1) -> None:
        can = report is None or report.can_think
        self._thinking.setEnabled(can)
        self._thinking.setChecked(on and can)
        self._thinking.setText(" " + (_thinking_on(budget) if on and can else tr("Thinking: Off")))
        self._budget.setEnabled(can)
        self._budgets.show_budget(budget)
        tip = tr("Think before answering: better on hard questions, slower")
        if report is not None and not can:
            tip = tr(
                "This model cannot think before it answers. {0}",
                report.template.note or tr("Its chat template has no switch for it."),
            )
        describe(self._thinking, "composer.thinking", tr("Thinking"), tip, COMMANDS["thinking"].shortcut)
        self._thinking.themed.show("thought", "text" if on and can else "text_dim")

    def show_presets(self, names: Sequence[str]) -> None:
        """The person's own, to choose from."""
        for action in self._own:
            self._styles_menu.removeAction(action)
            action.deleteLater()
        self._own.clear()
        for name in names:
            action = QAction(name.replace("&", "&&"), self._styles_menu)
            action.setObjectName(f"composer.preset.own.{name}")
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, name=name: self._on_preset(name))
            self._styles_menu.insertAction(self._styles["custom"], action)
            self._own.append(action)
        self._mark_style()

    def _on_preset(self, name: str) -> None:
        self.preset_chosen.emit(name)
        self._mark_style()

    def _on_style(self, style: Style) -> None:
        self.style_chosen.emit(style)
        self._mark_style()

    def _mark_style(self) -> None:
        """Exactly one is marked in the menu; a click on it takes the mark away and must not."""
        own = f"composer.preset.own.{self._own_name}"
        is_own = any(action.objectName() == own for action in self._own)
        marked = own if is_own else f"composer.preset.{self._style}"
        for action in (*self._styles.values(), *self._own):
            action.setChecked(action.objectName() == marked)

    def show_style(self, style: Style, *, thinking: bool, preset: str = "", changed: bool = False) -> None:
        """The chosen preset; "precise" is called by what it is for in this mode. `preset` is one of the person's own,
        `changed` whether more was set by hand."""
        precise = tr("Coding") if thinking else tr("Reasoning")
        names: dict[Style, str] = {"general": tr("General"), "precise": precise, "custom": tr("Custom")}
        name, widest = preset or names[style], self._keeper.theme.px(_WIDEST_STYLE)
        elided = self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, widest).replace("&", "&&")
        is_changed = bool(preset and changed)
        self._preset.setText((tr("{0}, changed", elided) if is_changed else elided) + " ▾")
        spoken = tr("{0}, changed", name) if is_changed else name
        self._preset.setAccessibleName(tr("Style of the answer: {0}", spoken))
        self._styles["precise"].setText(precise)
        self._own_name, self._style = "" if changed else preset, "custom" if preset else style
        self._mark_style()

    def say(self, sentence: str, *, offer_mmproj: bool = False) -> None:
        """A sentence above the text, until the text changes or something is sent; "" takes it away."""
        self._notice.setText(sentence)
        self._notice.setVisible(bool(sentence))
        self._mmproj.setVisible(bool(sentence) and offer_mmproj)
        self.told.emit(sentence)

    @property
    def notice(self) -> str:
        return self._notice.text()

    @property
    def budget_button(self) -> QWidget:
        return self._budget

    @property
    def style_button(self) -> QWidget:
        return self._preset

    def clear(self) -> None:
        self.text.clear()
        self.attachments.clear()
        self.say("")

    def _submit(self) -> None:
        text = self.text.toPlainText().strip()
        if self._sending:
            return
        if self._busy:
            self.say(_still_writing())
        elif text or self.attachments.items:
            self.submitted.emit(text, self.attachments.pictures, self.attachments.documents)

    def _on_send_clicked(self) -> None:
        if self._busy:
            self.stop_asked.emit()
        else:
            self._submit()

    def _update_send(self) -> None:
        something = bool(self.text.toPlainText().strip() or self.attachments.items)
        self._send.setEnabled(self._busy or something)

    def _notice_row(self) -> QHBoxLayout:
        self._notice = QLabel()
        self._notice.setProperty("kind", "notice")
        self._notice.setObjectName("composer.notice")
        self._notice.setWordWrap(True)
        self._notice.hide()
        self._mmproj = TextButton(self._keeper, tr("Choose mmproj…"), kind="link")
        describe(
            self._mmproj,
            "composer.mmproj",
            tr("Choose mmproj file"),
            tr("Choose the picture file (mmproj) that belongs to the model"),
        )
        self._mmproj.clicked.connect(self.mmproj_asked)
        self._mmproj.hide()
        self.text.textChanged.connect(lambda: self.say(""))
        row = QHBoxLayout()
        row.addWidget(self._notice, 1)
        row.addWidget(self._mmproj)
        return row

    def _controls(self) -> QHBoxLayout:
        keeper = self._keeper
        attach = IconButton(keeper, "attach", size=19, side=34)
        describe(attach, "composer.attach", tr("Attach pictures or documents"), shortcut=COMMANDS["attach"].shortcut)
        attach.clicked.connect(self.attach_asked)
        self._thinking = TextButton(keeper, kind="pill", icon_name="thought", role="text", size=16)
        self._thinking.setCheckable(True)
        self._thinking.clicked.connect(self.thinking_toggled)
        self._budgets = BudgetMenu(self)
        self._budgets.chosen.connect(self.budget_chosen)
        self._budget = TextButton(keeper, "▾", kind="pill")
        self._budget.setFixedWidth(30)
        describe(
            self._budget,
            "composer.thinking.budget",
            tr("Thinking budget"),
            tr("How long the model may think before it must answer"),
        )
        self._budget.setMenu(self._budgets)
        self._preset = TextButton(keeper, kind="pill")
        describe(
            self._preset,
            "composer.preset",
            tr("Style of the answer"),
            tr("Sampling values that suit the kind of question"),
        )
        self._preset.setMenu(self._style_menu())
        self._answer_now = TextButton(
            keeper, " " + tr("Answer now"), kind="pill", icon_name="answer_now", role="text_link"
        )
        describe(
            self._answer_now,
            "composer.answernow",
            tr("Answer now"),
            tr("End the thought and answer now"),
            COMMANDS["answer_now"].shortcut,
        )
        self._answer_now.clicked.connect(self.answer_now_asked)
        self._send = TextButton(keeper, kind="primary", icon_name="send", role="on_fill", size=18)
        self._send.setFixedSize(36, 34)
        self._send.clicked.connect(self._on_send_clicked)
        for pill in (self._thinking, self._budget, self._preset, self._answer_now):
            pill.setFixedHeight(34)
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        thinking = QHBoxLayout()
        thinking.setSpacing(2)
        thinking.addWidget(self._thinking)
        thinking.addWidget(self._budget)
        row.addWidget(attach)
        row.addLayout(thinking)
        row.addWidget(self._preset)
        row.addStretch(1)
        row.addWidget(self._answer_now)
        row.addWidget(self._send, 0, Qt.AlignmentFlag.AlignRight)
        return row

    def _style_menu(self) -> QMenu:
        menu = self._styles_menu = QMenu(self)
        menu.setObjectName("composer.menu.styles")
        menu.setToolTipsVisible(True)
        self._styles: dict[Style, QAction] = {}
        entries: tuple[tuple[Style, str, str], ...] = (
            ("general", tr("General"), tr("Questions and chat: the values of the model's card")),
            ("precise", tr("Coding"), tr("Code and exact work: what the model's card advises for it")),
            ("custom", tr("Custom…"), tr("Set temperature, top-p, top-k and presence penalty yourself")),
        )
        for style, text, tip in entries:
            action = menu.addAction(text)
            action.setObjectName(f"composer.preset.{style}")
            action.setCheckable(True)
            action.setToolTip(tip)
            action.triggered.connect(lambda _checked=False, style=style: self._on_style(style))
            self._styles[style] = action
        menu.addSeparator()
        keep = menu.addAction(tr("Keep these values…"))
        keep.setObjectName("composer.preset.keep")
        keep.setToolTip(tr("As a preset of your own, under a name"))
        keep.triggered.connect(self.keep_asked)
        return menu


def _still_writing() -> str:
    return tr("The answer is still being written: wait for its end, or stop it with Esc.")


def _thinking_on(budget: int) -> str:
    return tr("Thinking: On") if budget < 0 else tr("Thinking: {0}", f"{budget:,}")
