"""The states that are looked at. Each scene leaves an idle window behind."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from tools.screenshots.gallery import (
    bench_scenes,
    chat_scenes,
    failure_scenes,
    models_scenes,
    panel_scenes,
    server_scenes,
    tool_scenes,
    turn_scenes,
    window_scenes,
)
from tools.screenshots.gallery.room import Room


class Scene(msgspec.Struct, frozen=True):
    """A scene, and what it needs: a PC with a GPU or without one, and a loaded model or none."""

    take: Callable[[Room], Awaitable[None]]
    has_gpu: bool = True
    needs_model: bool = True


SCENES: Final[Mapping[str, Scene]] = {
    "first-start": Scene(models_scenes.first_start, needs_model=False),
    "empty": Scene(chat_scenes.empty, needs_model=False),
    "mixed": Scene(chat_scenes.mixed),
    "streaming": Scene(chat_scenes.streaming),
    "pictures": Scene(chat_scenes.pictures),
    "versions": Scene(turn_scenes.versions),
    "search": Scene(turn_scenes.search),
    "chat-list": Scene(turn_scenes.chat_list),
    "branch": Scene(turn_scenes.branch),
    "composer": Scene(panel_scenes.composer),
    "context": Scene(panel_scenes.context),
    "load-options": Scene(panel_scenes.load_options),
    "inspector": Scene(panel_scenes.inspector),
    "models": Scene(models_scenes.for_this_pc),
    "my-models": Scene(models_scenes.my_models),
    "hub": Scene(models_scenes.hugging_face),
    "downloads": Scene(models_scenes.downloads),
    "engine": Scene(window_scenes.engine),
    "why": Scene(bench_scenes.why),
    "bench": Scene(bench_scenes.bench),
    "server": Scene(server_scenes.this_pc_serves),
    "tools": Scene(tool_scenes.tools),
    "settings": Scene(window_scenes.settings),
    "menus": Scene(window_scenes.menus),
    "help": Scene(window_scenes.help_window),
    "questions": Scene(window_scenes.questions),
    "spill": Scene(window_scenes.spill),
    "two-gpus": Scene(window_scenes.two_gpus),
    "failures": Scene(failure_scenes.failures),
    "crash": Scene(failure_scenes.crash),
    "first-start-no-gpu": Scene(models_scenes.first_start, has_gpu=False, needs_model=False),
    "models-no-gpu": Scene(models_scenes.for_this_pc, has_gpu=False),
    "engine-no-gpu": Scene(window_scenes.engine, has_gpu=False),
}
