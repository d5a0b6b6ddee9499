"""Whoever waits for a download may be cancelled at any moment: none is lost, and the next one arrives."""

import itertools
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from qwendesk.models.downloads import DownloadsService
from tests.cancelling import cancelled_at, public_coroutines
from tests.models.test_downloads import BIG, REPO, Desk, desk

__all__ = ["desk"]
pytestmark = pytest.mark.asyncio
METHODS: dict[str, Callable[[DownloadsService, str], Coroutine[Any, Any, Any]]] = {
    "plan": lambda downloads, _: downloads.plan(REPO, "small-4B.gguf"),
    "add": lambda downloads, _: downloads.add(REPO, "small-4B.gguf"),
    "pause": lambda downloads, known: downloads.pause(known),
    "resume": lambda downloads, known: downloads.resume(known),
    "cancel": lambda downloads, known: downloads.cancel(known),
    "move": lambda downloads, known: downloads.move(known, 1),
    "clear_done": lambda downloads, _: downloads.clear_done(),
    "pause_all": lambda downloads, _: downloads.pause_all(),
    "resume_all": lambda downloads, _: downloads.resume_all(),
    "close": lambda downloads, _: downloads.close(),
}


async def test_every_coroutine_of_the_downloads_is_tried():
    assert set(METHODS) == public_coroutines(DownloadsService)


async def changed_on_the_hub(desk: Desk) -> str:
    """Return a download whose file has been replaced on the Hub, so that `resume` queues the present one."""
    desk.hub.hold.clear()
    desk.hub.faults = ["stall"]
    desk.hub.add(REPO, "big-4B.gguf", BIG)
    known = await desk.downloads.add(REPO, "big-4B.gguf", with_mmproj=False)
    await desk.under_way()
    await desk.downloads.pause(known)
    desk.hub.add(REPO, "big-4B.gguf", BIG[::-1])
    await desk.downloads.resume(known)
    await desk.until(lambda: desk.states() == ["failed"])
    desk.hub.hold.set()
    return known


@pytest.mark.parametrize(("name", "when_done"), [*((name, False) for name in METHODS), ("add", True), ("resume", True)])
async def test_cancelled_at_each_await_it_loses_no_download(desk: Desk, name: str, when_done: bool):
    for number in itertools.count(1):
        desk.downloads.start()
        known = await changed_on_the_hub(desk)
        has_ended = await cancelled_at(number, METHODS[name](desk.downloads, known), when_done=when_done)
        await desk.close()
        desk.restart()
        desk.downloads.start()
        await desk.downloads.add(REPO, "small-4B.gguf", with_mmproj=False)
        await desk.until(lambda: desk.target("small-4B.gguf").exists() and "done" in desk.states())
        names = {item.saved.files[0].file.path for item in desk.downloads.state.value.items}
        assert "big-4B.gguf" in names or name == "cancel"
        for item in desk.downloads.state.value.items:
            await desk.downloads.cancel(item.saved.id)
        await desk.until(lambda: not desk.states())
        for model in desk.target("").glob("*.gguf"):
            model.unlink()
        if has_ended:
            break
        await desk.close()
        desk.restart()
