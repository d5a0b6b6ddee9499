"""Whoever waits for a download or a move may be cancelled at any moment: nothing is lost, and the next one works."""

import asyncio
import itertools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from qwendesk.hub.library import LibraryModel
from qwendesk.hub.model_import import Imported
from qwendesk.models.downloads import DownloadsService
from qwendesk.models.moves import MovesService
from tests.cancelling import cancelled_at, public_coroutines
from tests.hub.verified import unsloth
from tests.models.library import ModelHome, make_model_home
from tests.models.test_downloads import BIG, REPO, Desk, desk

__all__ = ["desk"]
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


async def imported(home: ModelHome, model: LibraryModel, target: Path) -> None:
    await home.models.add_models_folder(str(target))
    await home.models.import_model(Path(model.path), "copy", target)


MOVES: dict[str, Callable[[MovesService, ModelHome, LibraryModel, Path], Coroutine[Any, Any, Any]]] = {
    "move": lambda moves, _home, model, target: moves.move(model, target, "move"),
    "copy": lambda moves, _home, model, target: moves.move(model, target, "copy"),
    "close": lambda moves, _home, _model, _target: moves.close(),
    "import_model": lambda _moves, home, model, target: imported(home, model, target),
}


async def test_every_coroutine_of_the_moves_is_tried() -> None:
    assert public_coroutines(MovesService) == {"move", "close"}


@pytest.mark.parametrize(
    ("name", "when_done"), [*((name, False) for name in MOVES), ("move", True), ("import_model", True)]
)
async def test_a_move_that_is_cancelled_at_each_await_leaves_no_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, when_done: bool
) -> None:
    model_home = make_model_home(tmp_path, monkeypatch)
    for number in itertools.count(1):
        checks = model_home.checks()
        moves, target = MovesService(model_home.models, checks), model_home.root / f"target {number}"
        target.mkdir()
        source = model_home.ours / "o/a-GGUF" / f"a{number}.gguf"
        unsloth(source)
        await model_home.models.refresh()
        model = model_home.models.find(str(source))
        assert model is not None

        has_ended = await cancelled_at(number, MOVES[name](moves, model_home, model, target), when_done=when_done)

        assert not moves.running.value
        assert not list(target.rglob("*.importing*"))
        arrived = list(map(str, target.rglob("*.gguf")))
        # The scan that learns of it goes on by itself.
        while not set(arrived) <= {each.path for each in model_home.models.current.everything}:  # noqa: ASYNC110
            await asyncio.sleep(0)
        assert arrived or source.exists()
        again = MovesService(model_home.models, checks)
        left = model_home.models.find(arrived[0] if arrived else str(source))
        assert left is not None
        (model_home.root / f"next {number}").mkdir()
        assert isinstance(await again.move(left, model_home.root / f"next {number}", "copy"), Imported)
        await again.close()
        await checks.close()
        if has_ended:
            break
