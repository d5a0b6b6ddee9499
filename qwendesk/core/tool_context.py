"""Where a tool call comes from, and what the user must be asked before it runs."""

from collections.abc import Callable
from typing import Literal

import msgspec

from qwendesk.core.chats import ChatSettings
from qwendesk.core.messages import ToolCall

# Of a tool's result: about 6,000 tokens of English.
MOST_CHARACTERS = 24_000


def _tell_nobody(_progress: str) -> None:
    """Ignore how far a call is."""


class CallContext(msgspec.Struct, frozen=True):
    """The chat that a call comes from."""

    chat_id: str
    settings: ChatSettings
    is_incognito: bool = False
    is_tainted: bool = False
    """True if the model has read anything that the user did not type, which may contain instructions."""
    n_ctx: int = 0
    """The model's context in tokens; 0 if unknown."""
    can_see: bool = True
    """True if the model can see pictures."""
    confirmed: str = ""
    """Preview that the user allowed; "" if they were not asked."""
    call_id: str = ""
    """The `id` of the call's record."""
    n_citations: int = 0
    """The highest number that a place in a file has in this chat; see core/citations.py."""
    report_progress: Callable[[str], None] = _tell_nobody
    """Shows the user in a few words how far the call is."""

    @property
    def most_characters(self) -> int:
        """How long a result may be: at most half of the context, if each character took a token."""
        return min(MOST_CHARACTERS, self.n_ctx // 2) if self.n_ctx else MOST_CHARACTERS


# The user's answer: yes for this call, for this tool in this chat, for this tool in this folder, or no.
Decision = Literal["once", "chat", "always", "refuse"]


class ConsentRequest(msgspec.Struct, frozen=True):
    """A call that waits for the user."""

    chat_id: str
    call: ToolCall
    sentence: str
    """Effect of the call."""
    details: str = ""
    """All of it: the change as a diff, the address, or the arguments."""
    choices: tuple[Decision, ...] = ("once", "refuse")


class CallProgress(msgspec.Struct, frozen=True):
    """How far a running call is, in a few words."""

    chat_id: str
    call: ToolCall
    text: str


class ToolLook(msgspec.Struct, frozen=True):
    """How the calls of a tool look to the user."""

    title: str
    icon: str = "tool"
    changes_files: bool = False
    """True if its arguments are a change of a file, which may be undone."""
    shows_code: bool = False
    """True if arguments and results are shown like code."""


class ToolChoice(msgspec.Struct, frozen=True):
    """Tools that are on or off together in a chat, as the user sees them."""

    title: str
    promise: str
    """What they do and send, in a few words."""
    names: tuple[str, ...]
    n_tokens: int
    """About how many tokens of the prompt they take."""
    icon: str = "tool"
    needs_folder: bool = False
    obstacle: str = ""
    """Reason why they can't be switched on, as a sentence; "" if they can."""
