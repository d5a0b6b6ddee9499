"""The notice while a game or another program has the memory of the model, and its texts."""

import msgspec
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QWidget

from qwendesk.core.app_options import AppOptions
from qwendesk.core.observed import Observed
from qwendesk.core.translation import join_list, join_sentences, tr, tr_n
from qwendesk.engines.engine_service import EngineService
from qwendesk.games.service import GameMode, GameState
from qwendesk.widgets.bind import bind, bind_field
from qwendesk.widgets.navigation import Navigation
from qwendesk.widgets.notice import Notice, NoticeAction
from qwendesk.widgets.tasks import window_tasks


class NoticeTexts(msgspec.Struct, frozen=True):
    """The notice above the pages. `load` is the text of the button that undoes what was done, with its tooltip."""

    title: str
    sentence: str
    load: str
    load_tip: str
    unload: str = ""
    """The button that has other programs unload their models; "" if they hold none."""
    unload_tip: str = ""


def notice_texts(state: GameState, *, question_waits: bool, is_automatic: bool) -> NoticeTexts | None:
    """Return what the notice says; None if there is nothing to say."""
    texts = _own_texts(state, question_waits=question_waits, is_automatic=is_automatic)
    if texts is None or not state.others:
        return texts
    held = tr("Also in memory: {0}.", join_list(each.text for each in state.others))
    programs = join_list(dict.fromkeys(each.program for each in state.others))
    return msgspec.structs.replace(
        texts,
        sentence=join_sentences(texts.sentence, state.problem or held),
        unload=tr_n("Unload it too", "Unload these {0} too", len(state.others)),
        unload_tip=tr("Ask {0} to unload. The next use there loads again.", programs),
    )


def _own_texts(state: GameState, *, question_waits: bool, is_automatic: bool) -> NoticeTexts | None:
    """Return what the notice says of the model in QwenDesk."""
    name = state.program or tr("the other program")
    beside = tr("Load the model although {0} runs. Both share the memory, so both may be slow.", name)
    match state.status:
        case "waiting":
            return NoticeTexts(
                tr("Making room for {0}", name),
                tr("It needs the memory. The model makes room when this answer is finished."),
                tr("Keep loaded"),
                tr("Leave the model loaded until {0} has ended", name),
            )
        case "experts":
            return NoticeTexts(
                tr("Experts on the CPU while {0} runs", name),
                tr("Answers are slower until it has ended. Your chats are kept."),
                tr("Back to the GPU"),
                beside,
            )
        case "unloaded":
            return NoticeTexts(
                tr("Unloaded while {0} runs", name),
                _return_sentence(question_waits=question_waits, is_automatic=is_automatic),
                tr("Load anyway"),
                beside,
            )
        case _:
            return None


def _return_sentence(*, question_waits: bool, is_automatic: bool) -> str:
    if question_waits:
        return tr("Your question is answered when it has ended. Load anyway answers it now.")
    if is_automatic:
        return tr("Your chats are kept. The model loads again when it has ended.")
    return tr("Your chats are kept. When it has ended, your next message loads the model again.")


def tray_text(state: GameState) -> str:
    """Return the tooltip of the tray icon."""
    name = state.program or tr("the other program")
    match state.status:
        case "unloaded":
            return tr("QwenDesk: the model is unloaded while {0} runs", name)
        case "experts":
            return tr("QwenDesk: experts are on the CPU while {0} runs", name)
        case _:
            return "QwenDesk"


class GameNotice(QObject):
    """Shows a notice while a program has the memory, and tells the service whether the user works with QwenDesk."""

    tray_text_changed = Signal(str)

    def __init__(
        self,
        game: GameMode,
        options: Observed[AppOptions],
        engine: EngineService,
        navigation: Navigation,
    ) -> None:
        super().__init__()
        self._game, self._options, self._engine, self._navigation = game, options, engine, navigation
        self._texts: NoticeTexts | None = None
        self._notice: Notice | None = None

    def start(self) -> None:
        """Show what is so now and every change."""
        bind(self, self._game.state, self._update)
        bind(self, self._engine.question_waits, self._update)
        bind_field(self, self._options, lambda options: options.game_return, self._update)
        app = QGuiApplication.instance()
        if isinstance(app, QGuiApplication):
            app.applicationStateChanged.connect(self._on_application)
            self._on_application(app.applicationState())

    def _update(self, _change: object) -> None:
        state = self._game.state.value
        self.tray_text_changed.emit(tray_text(state))
        texts = notice_texts(
            state,
            question_waits=self._engine.question_waits.value,
            is_automatic=self._options.value.game_return == "automatic",
        )
        if texts == self._texts:
            return
        self._texts = texts
        if self._notice is not None:
            self._notice.destroyed.disconnect(self._forget_notice)
            self._notice.end()
            self._notice.setParent(None)  # it is deleted later, and there should never be two
            self._notice = None
        if texts is not None:
            self._notice = self._make_notice(texts, state.program)
            self._notice.destroyed.connect(self._forget_notice)
            self._navigation.notice_made.emit(self._notice)

    def _make_notice(self, texts: NoticeTexts, program: str) -> Notice:
        actions = [NoticeAction("load", texts.load, texts.load_tip, self._game.load_anyway, stays=True)]
        if program:
            never = tr("Always keep loaded beside {0}", program)
            tip = tr("Add a rule for this program to the list in the settings")
            actions.append(NoticeAction("never", never, tip, self._game.never_again, stays=True))
        if texts.unload:
            actions.append(NoticeAction("unload", texts.unload, texts.unload_tip, self._unload_others, stays=True))
        tip = tr("Choose when the model makes room, and for which programs")
        actions.append(NoticeAction("rules", tr("Rules…"), tip, self._show_rules, stays=True))
        notice = Notice("game", texts.title, texts.sentence, tuple(actions))
        notice.setAccessibleName(f"{texts.title}. {texts.sentence}")
        return notice

    def _unload_others(self) -> None:
        window_tasks().start(self._game.unload_others())

    def _show_rules(self) -> None:
        self._navigation.settings_asked.emit("games")

    def _on_application(self, state: Qt.ApplicationState) -> None:
        self._game.set_in_front(state is Qt.ApplicationState.ApplicationActive)

    def _forget_notice(self, _notice: QWidget) -> None:
        self._notice = None
