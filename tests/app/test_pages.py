"""A page is imported and built when it is first shown, and everything that leads to one finds it.

In which modules a start imports is tested in tests/bench/test_startup.py, in a process of its own.
"""

from collections.abc import Callable

import pytest
from PySide6.QtWidgets import QWidget

from qwendesk.app.parts import Parts
from qwendesk.widgets.lazy_page import LazyPage
from qwendesk.widgets.navigation import Navigation
from tests.window_desk import Desk

LINKS: dict[str, tuple[str, Callable[[Navigation], None], str]] = {
    "a part of the settings": ("settings", lambda to: to.settings_asked.emit("privacy"), "settings.privacy.delete"),
    "a tab of the models": ("models", lambda to: to.models_tab_asked.emit("downloads"), "models.tab.downloads"),
    "a search for models": ("models", lambda to: to.model_search_asked.emit("Qwen3"), "models.tab.hub"),
    "a section of the bench": ("bench", lambda to: to.bench_section_asked.emit("speed"), "bench.speed.back"),
    "other servers": ("server", lambda to: to.servers_asked.emit(), "server.tab.engines"),
    "the command for vLLM": ("engine", lambda to: to.vllm_command_asked.emit(), ""),
    "a page": ("settings", lambda to: to.page_asked.emit("settings"), "settings.privacy.delete"),
}
"""What asks for a page, and a control on it that is then on screen."""


def lazy_pages(parts: Parts) -> dict[str, LazyPage[QWidget]]:
    return {
        name: getattr(parts, f"{name}_page")  # the attributes are what features name
        for name in ("models", "engine", "bench", "server", "settings")
    }


def built(desk: Desk) -> set[str]:
    return {name for name, page in lazy_pages(desk.parts).items() if page.is_built}


async def test_no_page_is_built_with_the_window(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    desk.parts.start()
    desk.parts.begin()
    await desk.parts.chats.opened()
    assert built(desk) == set()


@pytest.mark.parametrize("link", LINKS)
async def test_a_link_builds_its_page_alone(desk: Desk, link: str) -> None:
    page, follow, control = LINKS[link]
    follow(desk.parts.navigation)
    assert built(desk) == {page}
    assert desk.window.page == page
    if control:
        assert desk.is_shown(control)


@pytest.mark.parametrize("page", ["models", "engine", "bench", "server", "settings"])
async def test_a_page_of_the_rail_is_built_when_it_is_first_chosen(desk: Desk, page: str) -> None:
    assert built(desk) == set()
    desk.click(f"rail.{page}")
    assert built(desk) == {page}
    first = lazy_pages(desk.parts)[page].page()
    desk.window.go_to("chat")
    desk.click(f"rail.{page}")
    assert lazy_pages(desk.parts)[page].page() is first


async def test_the_first_start_is_built_only_for_whom_has_no_model(make_desk: Callable[[], Desk]) -> None:
    desk = make_desk()
    assert not desk.has("start")
    assert not desk.has("nomodel")
    desk.parts.begin()
    assert desk.is_shown("start")


async def test_a_banner_is_built_with_its_first_content(desk: Desk) -> None:
    assert not desk.has("banner.title")
    desk.window.report("No disk", "Free some room.")
    assert desk.text_of("banner.title") == "No disk"
    assert desk.is_shown("banner.sentence")


async def test_the_window_says_when_it_was_drawn(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qwendesk.app.window.main_window._DRAWN_WITHIN_S", None)
    await make_desk().window.drawn()


async def test_a_window_that_is_not_drawn_is_not_waited_for(
    make_desk: Callable[[], Desk], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("qwendesk.app.window.main_window._DRAWN_WITHIN_S", 0.0)
    desk = make_desk()
    desk.window.hide()
    await desk.window.drawn()
