"""Joins the context gauge, the system prompt and the library of prompts to the window."""

from collections.abc import Callable

from PySide6.QtWidgets import QWidget

from qwendesk.engine.contract import EngineClient
from qwendesk.services.chat.context_fill import ContextGauge
from qwendesk.services.chat.service import ChatService
from qwendesk.services.engine.service import EngineService
from qwendesk.ui.bridges.chat import ChatBridge
from qwendesk.ui.chat.prompt_part import PromptPart
from qwendesk.ui.frame.actions import install
from qwendesk.ui.frame.main_window import MainWindow
from qwendesk.ui.kit.tasks import Tasks
from qwendesk.ui.kit.theme_keeper import ThemeKeeper


def build_prompt_part(
    keeper: ThemeKeeper,
    tasks: Tasks,
    client: EngineClient,
    engine: EngineService,
    service: ChatService,
    chat: ChatBridge,
    window: MainWindow,
    open_prompt: Callable[[], None],
) -> PromptPart:
    """Opened from the context label of the meter bar; lives as long as the window."""
    label = window.meter_bar.findChild(QWidget, "meter.context")
    assert label is not None, "the meter bar says how full the context is"
    part = PromptPart(keeper, tasks, chat, ContextGauge(client, engine, service), label, window, open_prompt)
    install(window, {"system_prompt": part.open_prompt, "context": part.open_sheet})
    return part
