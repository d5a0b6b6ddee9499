"""What the keys do with the last answer of the chat that is shown."""

from qwendesk.core.conversation import Turn
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.thread.copying import copy


class LastAnswer:
    """Nothing happens in a chat without one, or while an answer is being made."""

    def __init__(self, chat: ChatBridge) -> None:
        self._chat = chat

    def copy(self) -> None:
        """The answer alone, as Markdown; never its thought."""
        turns = [turn for turn in self._chat.conversation.turns if turn.answer.text]
        if turns:
            copy(turns[-1].answer.text)

    def regenerate(self) -> None:
        turn = self._last()
        if turn is not None:
            self._chat.regenerate(turn.id)

    def go_on(self) -> None:
        """Continue a stopped or cut answer."""
        turn = self._last()
        if turn is not None and turn.answer.can_go_on:
            self._chat.resume(turn.id)

    def _last(self) -> Turn | None:
        turns = self._chat.conversation.turns
        return turns[-1] if turns and not self._chat.busy else None
