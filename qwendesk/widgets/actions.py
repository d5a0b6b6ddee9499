"""The table of the window's commands: their texts, shortcuts and tooltips."""

import sys
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final, Literal

import msgspec
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QWidget

from qwendesk.core.translation import tr

Group = Literal["Chat", "Model", "View", "App"]
# The order of the groups in the menu and in the shortcuts dialog.
GROUPS: Final[tuple[Group, ...]] = ("Chat", "Model", "View", "App")

ActionId = Literal[
    "new_chat",
    "new_incognito",
    "search_chats",
    "rename_chat",
    "find",
    "stop",
    "answer_now",
    "thinking",
    "attach",
    "ask_folder",
    "regenerate",
    "continue_answer",
    "copy_answer",
    "latest",
    "turn_before",
    "turn_after",
    "system_prompt",
    "context",
    "call_log",
    "archive",
    "import_chats",
    "export_chats",
    "model_menu",
    "model_file",
    "load_options",
    "context_length",
    "demo",
    "eject",
    "downloads",
    "test_engine",
    "copy_diagnostics",
    "page_chat",
    "page_models",
    "page_engine",
    "page_bench",
    "page_server",
    "sidebar",
    "inspector",
    "zoom_in",
    "zoom_out",
    "zoom_reset",
    "theme_system",
    "theme_dark",
    "theme_light",
    "theme_contrast",
    "palette",
    "menu",
    "shortcuts",
    "guide",
    "crash_reports",
    "page_settings",
    "privacy",
    "quit",
]


class Command(msgspec.Struct, frozen=True):
    """A command of the window.

    The first of `shortcuts` is the one shown. `on_mac` replaces shortcuts that macOS uses to move in text; in it,
    "Ctrl" is the Command key and "Meta" is Control.
    """

    id: ActionId
    group: Group
    text: str
    shortcuts: tuple[str, ...] = ()
    on_mac: tuple[str, ...] = ()

    @property
    def shortcut(self) -> str:
        return self.shortcuts[0] if self.shortcuts else ""


class FixedKey(msgspec.Struct, frozen=True):
    """A key that one widget handles itself, listed in the shortcuts dialog."""

    text: str
    keys: str


FIXED_KEYS: Final = (
    FixedKey("Send the question", "Return"),
    FixedKey("New line in the question", "Shift+Return"),
    FixedKey("Scroll the conversation (from a one-line question)", "PgUp"),
    FixedKey("Go to the next control", "Tab"),
    FixedKey("Close a dialog or a menu", "Esc"),
    FixedKey("Delete the selected chat", "Del"),
    FixedKey("Remove an attached file", "Del"),
    FixedKey("Move an attached file", "Alt+Right"),
    FixedKey("Open the context menu", "Shift+F10"),
)

_COMMANDS: Final = (
    Command("new_chat", "Chat", "New chat", ("Ctrl+N",)),
    Command("new_incognito", "Chat", "New incognito chat", ("Ctrl+Shift+N",)),
    Command("search_chats", "Chat", "Search chats", ("Ctrl+K",)),
    Command("rename_chat", "Chat", "Rename this chat", ("F2",)),
    Command("find", "Chat", "Find in this chat", ("Ctrl+F",)),
    Command("stop", "Chat", "Stop the answer", ("Esc",)),
    Command("answer_now", "Chat", "Answer now", ("Ctrl+Return", "Ctrl+Enter")),
    Command("thinking", "Chat", "Think before answering", ("Ctrl+T",)),
    Command("attach", "Chat", "Attach pictures or documents", ("Ctrl+O",)),
    Command("ask_folder", "Chat", "Ask my files in a folder…"),
    Command("regenerate", "Chat", "Regenerate the last answer", ("Ctrl+R",)),
    Command("continue_answer", "Chat", "Continue the last answer", ("Ctrl+Shift+R",)),
    Command("copy_answer", "Chat", "Copy the last answer", ("Ctrl+Shift+C",)),
    Command("latest", "Chat", "Jump to latest", ("Ctrl+End",)),
    Command("turn_before", "Chat", "Go to the previous message", ("Alt+Up",), on_mac=("Ctrl+Alt+Up",)),
    Command("turn_after", "Chat", "Go to the next message", ("Alt+Down",), on_mac=("Ctrl+Alt+Down",)),
    Command("system_prompt", "Chat", "System prompt for this chat"),
    Command("context", "Chat", "What fills the context"),
    Command("call_log", "Chat", "Tool calls of this chat"),
    Command("archive", "Chat", "Archived chats"),
    Command("import_chats", "Chat", "Import chats…"),
    Command("export_chats", "Chat", "Export all chats…"),
    Command("model_menu", "Model", "Choose a model", ("Ctrl+L",)),
    Command("model_file", "Model", "Choose GGUF file…", ("Ctrl+Shift+O",)),
    Command("load_options", "Model", "All load options", ("Ctrl+Shift+L",)),
    Command("context_length", "Model", "Context length"),
    Command("demo", "Model", "Load the built-in demo"),
    Command("eject", "Model", "Eject the model", ("Ctrl+Shift+E",)),
    Command("downloads", "Model", "Downloads", ("Ctrl+J",)),
    Command("test_engine", "Model", "Test engine"),
    Command("copy_diagnostics", "Model", "Copy diagnostics"),
    Command("page_chat", "View", "Chat", ("Ctrl+1",)),
    Command("page_models", "View", "Models", ("Ctrl+2",)),
    Command("page_engine", "View", "Engine", ("Ctrl+3",)),
    Command("page_bench", "View", "Bench", ("Ctrl+4",)),
    Command("page_server", "View", "Server", ("Ctrl+5",)),
    Command("sidebar", "View", "Show or hide the chat list", ("Ctrl+B",)),
    Command("inspector", "View", "Show or hide the inspector", ("Ctrl+.",)),
    Command("zoom_in", "View", "Larger text", ("Ctrl++", "Ctrl+=")),
    Command("zoom_out", "View", "Smaller text", ("Ctrl+-",)),
    Command("zoom_reset", "View", "Normal text size", ("Ctrl+0",)),
    Command("theme_system", "View", "Theme: follow the system"),
    Command("theme_dark", "View", "Dark theme"),
    Command("theme_light", "View", "Light theme"),
    Command("theme_contrast", "View", "High contrast theme"),
    Command("palette", "App", "Search commands", ("Ctrl+Shift+P",)),
    Command("menu", "App", "Menu", ("F10",)),
    Command("shortcuts", "App", "Keyboard shortcuts", ("F1",)),
    Command("guide", "App", "User guide", ("Shift+F1",)),
    Command("crash_reports", "App", "Crash reports"),
    Command("page_settings", "App", "Settings", ("Ctrl+,",)),
    Command("privacy", "App", "Privacy"),
    Command("quit", "App", "Quit", ("Ctrl+Q",)),
)


def commands(*, mac: bool) -> dict[ActionId, Command]:
    """Return the commands with the shortcuts of one system."""
    keys = {each.id: each.on_mac for each in _COMMANDS if mac and each.on_mac}
    return {each.id: msgspec.structs.replace(each, shortcuts=keys.get(each.id, each.shortcuts)) for each in _COMMANDS}


COMMANDS: Final[Mapping[ActionId, Command]] = MappingProxyType(commands(mac=sys.platform == "darwin"))


def install(window: QWidget, handlers: Mapping[ActionId, Callable[[], None]]) -> dict[ActionId, QAction]:
    """Add an action with its shortcut to `window` for each handler. Raise KeyError for an unknown command."""
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


def installed(window: QWidget) -> dict[ActionId, QAction]:
    """Return the actions of `window` in the table's order, for the menu, the palette and the shortcuts dialog."""
    by_name = {action.objectName(): action for action in window.actions()}
    return {key: by_name[f"action.{key}"] for key in COMMANDS if f"action.{key}" in by_name}


def keys_text(shortcut: str) -> str:
    """Return a shortcut as this system writes it: "Ctrl+N"."""
    return QKeySequence(shortcut).toString(QKeySequence.SequenceFormat.NativeText)
