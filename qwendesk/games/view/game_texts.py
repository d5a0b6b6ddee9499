"""What the window says while game mode makes room for a program. No widgets here."""

import msgspec

from qwendesk.core.translation import tr
from qwendesk.games.service import GameState


class NoticeTexts(msgspec.Struct, frozen=True):
    """The notice above the pages. `load` is the text of the button that undoes what was done, with its tooltip."""

    title: str
    sentence: str
    load: str
    load_tip: str


def notice_texts(state: GameState, *, question_waits: bool, is_automatic: bool) -> NoticeTexts | None:
    """Return what the notice says; None if there is nothing to say."""
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
