"""Every command of the window, once: its words, its shortcut, its tooltip."""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from qwendesk.ui.kit.text import tr

ActionId = Literal[
    "new_chat",
    "search_chats",
    "sidebar",
    "model_menu",
    "eject",
    "thinking",
    "attach",
    "stop",
    "answer_now",
    "latest",
    "find",
    "turn_before",
    "turn_after",
    "page_chat",
    "page_models",
    "page_engine",
    "page_settings",
    "zoom_in",
    "zoom_out",
    "zoom_reset",
    "quit",
]


class Command(msgspec.Struct, frozen=True):
    """One command. `shortcuts`: the first is the one shown in tooltips."""

    id: ActionId
    text: str
    shortcuts: tuple[str, ...]

    @property
    def shortcut(self) -> str:
        return self.shortcuts[0]


_COMMANDS: Final = (
    Command("new_chat", "New chat", ("Ctrl+N",)),
    Command("search_chats", "Search chats", ("Ctrl+K",)),
    Command("sidebar", "Show or hide the list of chats", ("Ctrl+B",)),
    Command("model_menu", "Choose a model", ("Ctrl+L",)),
    Command("eject", "Eject the model", ("Ctrl+Shift+E",)),
    Command("thinking", "Think before answering", ("Ctrl+T",)),
    Command("attach", "Attach pictures", ("Ctrl+O",)),
    Command("stop", "Stop the answer", ("Esc",)),
    Command("answer_now", "Answer now", ("Ctrl+Return", "Ctrl+Enter")),
    Command("latest", "Jump to latest", ("Ctrl+End",)),
    Command("find", "Find in this chat", ("Ctrl+F",)),
    Command("turn_before", "Go to the message before", ("Alt+Up",)),
    Command("turn_after", "Go to the next message", ("Alt+Down",)),
    Command("page_chat", "Chat", ("Ctrl+1",)),
    Command("page_models", "Models", ("Ctrl+2",)),
    Command("page_engine", "Engine", ("Ctrl+3",)),
    Command("page_settings", "Settings", ("Ctrl+,",)),
    Command("zoom_in", "Larger text", ("Ctrl++", "Ctrl+=")),
    Command("zoom_out", "Smaller text", ("Ctrl+-",)),
    Command("zoom_reset", "Normal text size", ("Ctrl+0",)),
    Command("quit", "Quit", ("Ctrl+Q",)),
)
COMMANDS: Final[Mapping[ActionId, Command]] = MappingProxyType({command.id: command for command in _COMMANDS})


def install(window: QWidget, handlers: Mapping[ActionId, Callable[[], None]]) -> dict[ActionId, QAction]:
    """Make an action with its shortcut for each handler. Raises KeyError for a command that is not in the table."""
    actions: dict[ActionId, QAction] = {}
    for action_id, run in handlers.items():
        command = COMMANDS[action_id]
        action = QAction(tr(command.text), window)
        action.setObjectName(f"action.{action_id}")
        action.setShortcuts([QKeySequence(keys) for keys in command.shortcuts])
        action.triggered.connect(lambda _checked=False, run=run: run())
        window.addAction(action)
        actions[action_id] = action
    return actions
