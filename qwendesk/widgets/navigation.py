"""Navigation: what views ask the window for, wherever they are in it."""

from PySide6.QtCore import QObject, Signal

from qwendesk.core.options import LoadOptions

# The page and section of the guide about a graphics card that isn't used.
GRAPHICS_HELP = ("engine", "my-graphics-card-is-not-used")


class Navigation(QObject):
    """One for each window, handed to the views that need it. What shows a page is connected to it.

    It takes the place of signals that pages would hand on: a view emits here, and the window does it.
    """

    page_asked = Signal(str)
    """Show a page, by its id."""
    chat_asked = Signal()
    """Show the chat, with the focus in its message field."""
    settings_asked = Signal(str)
    """Show a section of the settings page: "token", "folders", "games", "mcp", "server" or "privacy"."""
    models_tab_asked = Signal(str)
    """Show a tab of the Models page."""
    why_asked = Signal(object)
    """Show why an Answer was as fast as it was."""
    bench_section_asked = Signal(str)
    """Show a section of the Bench page: "speed", "tune", "compare", "quality" or "pc"."""
    model_search_asked = Signal(str)
    """Show what Hugging Face has for these words or this link."""
    servers_asked = Signal()
    """Show where servers with models are added."""
    inspector_asked = Signal(str)
    """Show a tab of the inspector: "load", "sampling" or "system"."""
    option_asked = Signal(str)
    """Show a load option in the inspector, by its key."""
    command_asked = Signal(str)
    """Show what a command of another program means here."""
    newer_engine_asked = Signal()
    """Show where other releases of llama.cpp are found."""
    vllm_command_asked = Signal()
    """Show the command that runs the loaded model in vLLM."""
    help_asked = Signal(str, str)
    """Open the guide at a page and a section."""
    picker_asked = Signal()
    """Have the user choose a model, which is then loaded."""
    model_asked = Signal()
    """Have the user choose a model, whose load options are then shown."""
    model_file_asked = Signal()
    """Have the user choose a model file, which is then loaded."""
    mmproj_file_asked = Signal()
    """Have the user choose the vision file of the loaded model."""
    options_asked = Signal(LoadOptions)
    """Show the load options of a model in the inspector, without loading it."""
    demo_asked = Signal()
    """Load the built-in demo."""
    load_asked = Signal(LoadOptions)
    """Load a model."""
    notice_made = Signal(object)
    """Show a Notice above every page."""
    error_found = Signal(str, str)
    """Show an error: its title and a sentence."""
    announced = Signal(str)
    """Have a screen reader say a text."""
    restart_asked = Signal()
    """Quit, and start QwenDesk again."""
