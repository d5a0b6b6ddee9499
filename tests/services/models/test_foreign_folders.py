"""Folders of other apps: after everything that QwenDesk can do to a model they hold the very same bytes."""

import asyncio
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.deleting import NotDeleted
from qwendesk.hub.findings import Fix, FixKind
from qwendesk.hub.importing import Imported, NotImported
from qwendesk.hub.library import LibraryModel
from qwendesk.services.models.fixes import FixesService, FixToAgree
from qwendesk.services.models.moves import MovesService
from qwendesk.services.models.templates import TemplatesService
from tests.hub.verified import BROKEN_TEMPLATE, mmproj, mxfp4, split, unsloth
from tests.services.models.library import Shelf, make_shelf

REPO = "unsloth/Qwen3.5-35B-A3B-GGUF"
OLD = "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"


class Queue:
    """Notes where downloads would go."""

    def __init__(self) -> None:
        self.folders: list[Path | None] = []

    async def add(self, repo: str, path: str, *, with_mmproj: bool = True, models_folder: Path | None = None) -> str:
        self.folders.append(models_folder)
        return "1"


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Shelf:
    async def make() -> Shelf:
        return make_shelf(tmp_path, monkeypatch)

    return asyncio.run(make())


def fill(shelf: Shelf) -> list[Path]:
    """Sound, outdated, broken, split and double, in the folders of four apps."""
    jan = shelf.root / "home" / ".config" / "Jan" / "data" / "llamacpp" / "models" / "qwen"
    cache = shelf.root / "home" / ".cache" / "huggingface" / "hub" / f"models--{REPO.replace('/', '--')}"
    outdated = unsloth(
        shelf.lm_studio / REPO / OLD, [mxfp4("blk.0.attn_qkv.weight")], tokenizer__chat_template=BROKEN_TEMPLATE
    )
    mmproj(outdated.with_name("mmproj-F16.gguf"), 128)
    cut = unsloth(shelf.lm_studio / "o/cut-GGUF" / "cut.gguf")
    cut.write_bytes(cut.read_bytes()[:-40])
    parts = split(shelf.lm_studio / "o" / "set-GGUF")
    parts[2].unlink()
    return [
        outdated,
        cut,
        parts[0],
        unsloth(jan / "model.gguf"),
        unsloth(cache / "snapshots" / "abc" / "Qwen3.5-35B-A3B-Q4_K_M.gguf"),
    ]


def everything_in(folder: Path) -> dict[str, tuple[int, bytes]]:
    return {
        str(path.relative_to(folder)): (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.mark.asyncio
async def test_nothing_that_can_be_done_changes_another_apps_folder(shelf: Shelf) -> None:
    files = fill(shelf)
    home = shelf.root / "home"
    before = everything_in(home)
    checks, queue = shelf.checks(), Queue()
    moves = MovesService(shelf.models, checks)
    fixes = FixesService(shelf.models, TemplatesService(), queue)
    await shelf.looked(checks)
    seen = [each for each in shelf.models.library.everything if each.path in map(str, files)]
    assert len(seen) == len(files)
    assert not any(each.writable for each in seen)

    for model in seen:
        await checks.verify(model.path)
        await apply_every_fix(fixes, model)
        assert isinstance(shelf.models.deletion_of(model), NotDeleted)
        refused = await shelf.models.import_model(Path(model.path), "move")
        assert isinstance(refused, NotImported)
        copied = await moves.bring(model, shelf.ours, "copy")
        assert isinstance(copied, Imported) is not bool(model.problem)
        assert isinstance(await moves.bring(model, Path(model.path).parent, "copy"), NotImported)
    with pytest.raises(QwenDeskError):
        await shelf.models.set_folders(
            msgspec.structs.replace(shelf.models.folders, models=(str(shelf.lm_studio / "ours"),))
        )
    await moves.close()
    await checks.close()

    assert everything_in(home) == before
    assert set(queue.folders) == {shelf.ours}, "downloads go to our folder"


async def apply_every_fix(fixes: FixesService, model: LibraryModel) -> None:
    for kind in set(get_args(FixKind)) - {"fetch_template"}:  # that one asks the Hub; test_fixes.py has it
        try:
            outcome = await fixes.apply(model, Fix(kind, "Do it", REPO, OLD))
        except QwenDeskError:
            continue
        assert not isinstance(outcome, FixToAgree), "nothing of theirs is offered for deletion"
