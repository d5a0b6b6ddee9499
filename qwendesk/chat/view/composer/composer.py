"""The composer: attachments, the text of the message, and the controls for its answer."""

import re
from collections.abc import Sequence

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QAction, QGuiApplication, QIcon
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLabel, QToolButton, QVBoxLayout, QWidget

from qwendesk.chat.view.composer.attachments import Attachments, AttachmentShelf
from qwendesk.chat.view.composer.composer_notice import ComposerNotice, NoticeAction, PreparingNote
from qwendesk.chat.view.composer.composer_text import ComposerText
from qwendesk.chat.view.composer.folder_strip import FolderStrip
from qwendesk.chat.view.composer.pasted_strip import PastedStrip
from qwendesk.chat.view.composer.thinking_menu import BudgetMenu, EffortMenu
from qwendesk.chat.view.composer.tools_button import ButtonWords, ToolsButton
from qwendesk.core.number_format import show_count
from qwendesk.core.presets import Style
from qwendesk.core.translation import tr, tr_n
from qwendesk.engine.protocol import LoadReport, TemplateAbilities
from qwendesk.widgets.actions import COMMANDS
from qwendesk.widgets.buttons import ChevronButton, IconButton, TextButton, describe, restyle
from qwendesk.widgets.display_texts import budget_reason
from qwendesk.widgets.layouts import DensitySpacing
from qwendesk.widgets.popups import Menu
from qwendesk.widgets.theme_keeper import current_theme

# The switches that Qwen3 read in a message.
_TYPED_SWITCH = re.compile(r"(?:^|\s)/(?:no_?)?think(?:\s|$)")
_SEND_WIDTH = 36
_REMARK_MS = 4000
# Maximum width of a preset's name in logical pixels, also where there is little room; a longer one is elided.
_MAX_STYLE_WIDTH, _SHORT_STYLE_WIDTH = 150, 48


class Composer(QFrame):
    """The composer. It uses no services: signals report what the user wants."""

    submitted = Signal(str, list, list)
    """Text, pictures and documents."""
    notice_changed = Signal(str)
    """The notice above the text; "" if it was removed."""
    notice_action = Signal(str)
    """The NoticeAction that the user chose."""
    stop_asked = Signal()
    answer_now_asked = Signal()
    thinking_toggled = Signal()
    style_chosen = Signal(str)
    preset_chosen = Signal(str)
    """Name of a preset that the user saved."""
    save_preset_asked = Signal()
    """The user wants to save the current values as a preset."""
    budget_chosen = Signal(int)
    """Tokens of thinking, -1 for no limit, CUSTOM_BUDGET to ask for a number."""
    effort_chosen = Signal(str)
    """A value of the reasoning effort, "auto" for the chat template's default."""
    attach_asked = Signal()
    folder_asked = Signal()
    """The user wants the model to read a folder."""
    pasted = Signal(object)
    """A PastedContent to attach."""

    def __init__(self) -> None:
        super().__init__()
        self._busy = self._sending = self._is_stopping = False
        self._thinks_now = False
        self._shown_budget: int | None = None
        """The thinking budget of the next message; None if it is sent without thinking."""
        self._preset_actions: list[QAction] = []
        self._chosen_preset = ""
        self._remark = ""
        self._remark_timer = QTimer(self, singleShot=True, interval=_REMARK_MS)
        self._remark_timer.timeout.connect(self._hide_remark)
        self._style: Style = "general"
        self.setProperty("kind", "composer")
        self.setObjectName("composer")
        self.attachments = Attachments()
        self.attachments.changed.connect(self._update_send)
        self.text = ComposerText()
        self.text.textChanged.connect(self._update_send)
        self.text.submitted.connect(self._submit)
        self.text.pasted.connect(self.pasted)
        self.text.focused.connect(lambda on: restyle(self, "focused", "true" if on else "false"))
        self.pasted_strip = PastedStrip(self.text)
        self.pasted_strip.picture_asked.connect(self.pasted)
        self.folders = FolderStrip()
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 12, 12, 10)
        column.setSpacing(6)
        DensitySpacing(column)
        column.addWidget(self.folders)
        column.addWidget(AttachmentShelf(self.attachments))
        column.addWidget(self.pasted_strip)
        column.addWidget(self._notice_above_text())
        column.addWidget(self.text)
        column.addSpacing(2)
        column.addLayout(self._controls())
        self.setFocusProxy(self.text)
        self.set_busy(busy=False)
        self.show_thinking(on=True, report=None)
        self.show_style("general", thinking=True)

    def set_busy(self, *, busy: bool) -> None:
        """Set whether an answer is being generated. If so, the send button stops it."""
        self._busy, self._is_stopping = busy, False
        self._send.setText("")
        self._send.setFixedWidth(_SEND_WIDTH)
        self._send.themed.show("stop" if busy else "send", "on_fill")
        if busy:
            describe(self._send, "composer.send", tr("Stop"), tr("Stop the answer"), COMMANDS["stop"].shortcut)
        else:
            describe(self._send, "composer.send", tr("Send"), tr("Send the message"), "Return")
            self.show_answer_now(visible=False)
            if self.notice == _busy_notice():
                self.show_notice("")
        self._update_send()

    def show_stopping(self) -> None:
        """Say that the answer is being stopped, until it has ended."""
        self._is_stopping = True
        self.show_answer_now(visible=False)
        if self._send.hasFocus():
            self.text.setFocus()
        self._send.setIcon(QIcon())
        self._send.setText(tr("Stopping…"))
        describe(self._send, "composer.send", tr("Stopping…"), tr("The answer is being stopped"))
        self._send.setFixedWidth(self._send.sizeHint().width())
        self._update_send()

    @property
    def is_stopping(self) -> bool:
        return self._is_stopping

    def show_answer_now_reason(self, reason: str) -> None:
        """Grey the button that ends thinking, with the reason as its tooltip; "" enables it."""
        self._answer_now.setEnabled(not reason)
        tip, shortcut = reason or tr("Stop thinking and answer now"), "" if reason else COMMANDS["answer_now"].shortcut
        describe(self._answer_now, "composer.answernow", tr("Answer now"), tip, shortcut)

    def show_answer_now(self, *, visible: bool) -> None:
        """Show or hide the button that ends thinking."""
        self._answer_now.setVisible(visible and not self._is_stopping)
        self._thinks_now = visible
        self._show_thinking_text()

    def show_tokens(self, tokens: int | None) -> None:
        """Show how many tokens the typed text has; None if unknown."""
        self._tokens.setText("" if tokens is None else tr_n("{0} token", "{0} tokens", tokens))
        self._tokens.setVisible(tokens is not None)

    def set_sending(self, *, sending: bool) -> None:
        """Lock the message while it is being counted before it is sent."""
        self._sending = sending
        self.text.setReadOnly(sending)
        self.attachments.setDisabled(sending)

    def show_vision(self, *, can_see: bool) -> None:
        """Set whether the loaded model sees pictures, which the composer then asks for."""
        self.text.show_vision(can_see=can_see)
        self.pasted_strip.show_vision(can_see=can_see)

    def show_thinking(self, *, on: bool, report: LoadReport | None, budget: int = -1) -> None:
        can = report is None or report.can_think
        self._thinking.setEnabled(can)
        self._thinking.setChecked(on and can)
        self._shown_budget = budget if on and can else None
        self._show_thinking_text()
        self._budget.setEnabled(can)
        self._budgets.show_budget(budget)
        self._budgets.show_reason(budget_reason(report))
        tip = tr("Thinks before answering. Better on hard questions, but slower.")
        if report is not None and not can:
            tip = tr("This model can't think before it answers: its chat template doesn't support it.")
            if report.template.notice:
                tip = tr("This model can't think before it answers. {0}", report.template.notice)
        describe(self._thinking, "composer.thinking", tr("Thinking"), tip, COMMANDS["thinking"].shortcut)
        self._thinking.themed.show("thought", "text" if on and can else "text_dim")

    def _show_thinking_text(self) -> None:
        """Say whether the model thinks: it may do so now although it can't be asked to."""
        budget = -1 if self._thinks_now and self._shown_budget is None else self._shown_budget
        self._words.set(self._thinking, *_thinking_texts(budget), "")

    def show_effort(self, abilities: TemplateAbilities | None, chosen: str) -> None:
        """Show how much the model thinks, where its chat template can be told; None hides it."""
        efforts = abilities.reasoning_efforts if abilities is not None else ()
        self._efforts.menuAction().setVisible(bool(efforts))
        if abilities is not None and efforts:
            self._efforts.show_values(efforts, abilities.default_effort, chosen)

    def event(self, event: QEvent) -> bool:
        handled = super().event(event)
        if event.type() in (QEvent.Type.Resize, QEvent.Type.LayoutRequest):
            self._words.fit()
            if (layout := self.layout()) is not None:
                layout.activate()  # else a frame would show the new texts in the old places
        return handled

    def show_presets(self, names: Sequence[str]) -> None:
        """Show the user's presets in the style menu."""
        for action in self._preset_actions:
            self._styles_menu.removeAction(action)
            action.deleteLater()
        self._preset_actions.clear()
        for name in names:
            action = QAction(name.replace("&", "&&"), self._styles_menu)
            action.setObjectName(f"composer.preset.own.{name}")
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, name=name: self._on_preset(name))
            self._styles_menu.insertAction(self._styles["custom"], action)
            self._preset_actions.append(action)
        self._check_style()

    def _on_preset(self, name: str) -> None:
        self.preset_chosen.emit(name)
        self._check_style()

    def _on_style(self, style: Style) -> None:
        self.style_chosen.emit(style)
        self._check_style()

    def _check_style(self) -> None:
        """Check exactly one entry of the menu. Qt unchecks a checked entry when it is clicked."""
        own = f"composer.preset.own.{self._chosen_preset}"
        is_own = any(action.objectName() == own for action in self._preset_actions)
        marked = own if is_own else f"composer.preset.{self._style}"
        for action in (*self._styles.values(), *self._preset_actions):
            action.setChecked(action.objectName() == marked)

    def show_style(self, style: Style, *, thinking: bool, preset: str = "", changed: bool = False) -> None:
        """Show the style, or the user's `preset` unless it is "". `changed` says whether overrides change its values.

        The style "precise" is shown as Coding with thinking, and as Reasoning without.
        """
        precise = tr("Coding") if thinking else tr("Reasoning")
        names: dict[Style, str] = {"general": tr("General"), "precise": precise, "custom": tr("Custom")}
        name, is_changed = preset or names[style], bool(preset and changed)
        long, short = (self._elided(name, width) for width in (_MAX_STYLE_WIDTH, _SHORT_STYLE_WIDTH))
        long = tr("{0}, changed", long) if is_changed else long
        self._words.set(self._preset, long, long, short)
        accessible_name = tr("{0}, changed", name) if is_changed else name
        self._preset.setAccessibleName(tr("Answer style: {0}", accessible_name))
        self._styles["precise"].setText(precise)
        self._chosen_preset, self._style = "" if changed else preset, "custom" if preset else style
        self._check_style()

    def _elided(self, name: str, width: int) -> str:
        """Return a name for a button, cut off to a width in logical pixels."""
        elided = self.fontMetrics().elidedText(name, Qt.TextElideMode.ElideRight, current_theme().px(width))
        return elided.replace("&", "&&")

    def show_notice(self, sentence: str, actions: tuple[NoticeAction, ...] = (), *, warns: bool = True) -> None:
        """Show a notice above the text until the text changes or is sent; "" hides it."""
        self._notice.show_sentence(sentence, actions, warns=warns)

    def show_remark(self, sentence: str) -> None:
        """Show a sentence above the text for some seconds, unless a notice is there, which is more important."""
        if self.notice in ("", self._remark):
            self._remark = sentence
            self.show_notice(sentence, warns=False)
            self._remark_timer.start()

    def _hide_remark(self) -> None:
        if self.notice == self._remark:
            self.show_notice("")

    @property
    def notice(self) -> str:
        return self._notice.sentence

    @property
    def budget_button(self) -> QWidget:
        return self._budget

    @property
    def style_button(self) -> QWidget:
        return self._preset

    def clear(self) -> None:
        self.text.clear()
        self.attachments.clear()
        self.show_notice("")

    def _submit(self) -> None:
        text = self.text.toPlainText().strip()
        if self._sending:
            return
        if self._busy:
            self.show_notice(_busy_notice())
        elif text or self.attachments.items:
            self.submitted.emit(text, self.attachments.pictures, self.attachments.documents)

    def _on_send_clicked(self) -> None:
        if self._busy:
            self.stop_asked.emit()
        else:
            self.text.setFocus()  # before the button is disabled, which would move the focus somewhere else
            QGuiApplication.inputMethod().commit()  # what is still being composed belongs to the message
            self._submit()

    def _update_send(self) -> None:
        if not self.text.toPlainText():
            self.show_tokens(None)
        has_content = bool(self.text.toPlainText().strip() or self.text.is_composing or self.attachments.items)
        self._send.setEnabled(not self._is_stopping and (self._busy or has_content))

    def _notice_above_text(self) -> ComposerNotice:
        self._notice = ComposerNotice()
        self._notice.changed.connect(self.notice_changed)
        self._notice.chosen.connect(self.notice_action)
        self.text.textChanged.connect(lambda: self.show_notice(_switch_notice(self.text.toPlainText())))
        return self._notice

    def _controls(self) -> QHBoxLayout:
        row = QHBoxLayout()
        self._words = ButtonWords(row)
        self.tools = ToolsButton(self._words)
        attach = IconButton("attach", size=19, side=34)
        describe(
            attach, "composer.attach", tr("Attach pictures, clips or documents"), shortcut=COMMANDS["attach"].shortcut
        )
        attach.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        menu = self._attach_menu()
        attach.setMenu(menu)
        # A dialog that an entry opens takes the event with which the mouse leaves the button.
        menu.aboutToHide.connect(lambda: attach.setAttribute(Qt.WidgetAttribute.WA_UnderMouse, False))
        self._thinking = TextButton(kind="pill", icon_name="thought", role="text", size=16)
        self._thinking.setCheckable(True)
        self._thinking.clicked.connect(self.thinking_toggled)
        self._budgets = BudgetMenu(self)
        self._budgets.chosen.connect(self.budget_chosen)
        self._budget = TextButton(kind="pill", icon_name="down", size=14)
        self._budget.setFixedWidth(30)
        describe(
            self._budget,
            "composer.thinking.budget",
            tr("Thinking budget"),
            tr("How long the model may think before it must answer"),
        )
        self._budget.setMenu(self._budgets)
        self._efforts = EffortMenu(self)
        self._efforts.chosen.connect(self.effort_chosen)
        self._efforts.menuAction().setVisible(False)
        self._budgets.addSeparator()
        self._budgets.addMenu(self._efforts)
        self._preset = ChevronButton(kind="pill")
        describe(
            self._preset,
            "composer.preset",
            tr("Answer style"),
            tr("Sampling values for this kind of question"),
        )
        self._preset.setMenu(self._style_menu())
        self._answer_now = TextButton(kind="pill", icon_name="answer_now", role="text_link")
        self._words.set(self._answer_now, tr("Answer now"), "", "")
        self.show_answer_now_reason("")
        self._answer_now.clicked.connect(self.answer_now_asked)
        self._send = TextButton(kind="primary", icon_name="send", role="on_fill", size=18)
        self._send.setFixedSize(_SEND_WIDTH, 34)
        self._send.clicked.connect(self._on_send_clicked)
        self.preparing = PreparingNote()
        self._tokens = QLabel()
        self._tokens.setObjectName("composer.tokens")
        self._tokens.setProperty("kind", "small")
        self._tokens.setToolTip(tr("The length of your message, as the loaded model counts it"))
        self._tokens.hide()
        for pill in (self._thinking, self._budget, self.tools, self._preset, self._answer_now):
            pill.setFixedHeight(34)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(8)
        thinking = QHBoxLayout()
        thinking.setSpacing(2)
        thinking.addWidget(self._thinking)
        thinking.addWidget(self._budget)
        row.addWidget(attach)
        row.addLayout(thinking)
        row.addWidget(self.tools)
        row.addWidget(self._preset)
        row.addStretch(1)
        row.addWidget(self.preparing)
        row.addWidget(self._tokens)
        row.addWidget(self._answer_now)
        row.addWidget(self._send, 0, Qt.AlignmentFlag.AlignRight)
        return row

    def _attach_menu(self) -> Menu:
        menu = Menu(self)
        menu.setObjectName("composer.menu.attach")
        menu.setToolTipsVisible(True)
        # The keys are text here: the shortcut is the window's own.
        files = menu.addAction(tr("Files…") + "\t" + COMMANDS["attach"].shortcut)
        files.setObjectName("composer.attach.files")
        files.setToolTip(tr("Attach pictures, clips or documents"))
        files.triggered.connect(self.attach_asked)
        folder = menu.addAction(tr("A folder…"))
        folder.setObjectName("composer.attach.folder")
        folder.setToolTip(tr("The model answers from its files, with sources"))
        folder.triggered.connect(self.folder_asked)
        return menu

    def _style_menu(self) -> Menu:
        menu = self._styles_menu = Menu(self)
        menu.setObjectName("composer.menu.styles")
        menu.setToolTipsVisible(True)
        self._styles: dict[Style, QAction] = {}
        entries: tuple[tuple[Style, str, str], ...] = (
            ("general", tr("General"), tr("For questions and chat, as the model card recommends")),
            ("precise", tr("Coding"), tr("For code and exact work, as the model card recommends")),
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
        keep = menu.addAction(tr("Save as a preset…"))
        keep.setObjectName("composer.preset.keep")
        keep.setToolTip(tr("Save these values under a name"))
        keep.triggered.connect(self.save_preset_asked)
        return menu


def _switch_notice(text: str) -> str:
    """Return what to use instead of the switches that Qwen3 read in messages; "" if `text` has none."""
    if _TYPED_SWITCH.search(text) is None:
        return ""
    return tr("Qwen3.5 and later ignore /think and /no_think. Use the Thinking button instead.")


def _busy_notice() -> str:
    return tr("An answer is still being generated. Wait for it, or press Esc to stop it.")


def _thinking_texts(budget: int | None) -> tuple[str, str]:
    """Return a long and a short text of the thinking button; `budget` is None if thinking is off."""
    if budget is None:
        return tr("Thinking: Off"), tr("Off")
    if budget < 0:
        return tr("Thinking: On"), tr("On")
    return tr("Thinking: {0}", show_count(budget)), show_count(budget)
