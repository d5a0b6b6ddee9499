"""Folders of other apps: after everything that QwenDesk can do to a model they hold the very same bytes."""

import asyncio
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from qwendesk.core.errors import QwenDeskError
from qwendesk.hub.finding_texts import FixCode
from qwendesk.hub.findings import FindingFix
from qwendesk.hub.library import LibraryModel
from qwendesk.hub.model_deletion import DeletionFailure
from qwendesk.hub.model_import import Imported, NotImported
from qwendesk.models.fixes import FixesService, FixToAgree
from qwendesk.models.moves import MovesService
from qwendesk.models.templates import TemplatesService
from tests.hub.verified import BROKEN_TEMPLATE, mmproj, mxfp4, split, unsloth
from tests.models.library import ModelHome, make_model_home

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
def model_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelHome:
    async def make() -> ModelHome:
        return make_model_home(tmp_path, monkeypatch)

    return asyncio.run(make())


def fill(model_home: ModelHome) -> list[Path]:
    """Sound, outdated, broken, split and double, in the folders of four apps."""
    jan = model_home.root / "home" / ".config" / "Jan" / "data" / "llamacpp" / "models" / "qwen"
    cache = model_home.root / "home" / ".cache" / "huggingface" / "hub" / f"models--{REPO.replace('/', '--')}"
    outdated = unsloth(
        model_home.lm_studio / REPO / OLD, [mxfp4("blk.0.attn_qkv.weight")], tokenizer__chat_template=BROKEN_TEMPLATE
    )
    mmproj(outdated.with_name("mmproj-F16.gguf"), 128)
    cut = unsloth(model_home.lm_studio / "o/cut-GGUF" / "cut.gguf")
    cut.write_bytes(cut.read_bytes()[:-40])
    parts = split(model_home.lm_studio / "o" / "set-GGUF")
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


async def test_no_action_changes_another_apps_folder(model_home: ModelHome) -> None:
    files = fill(model_home)
    home = model_home.root / "home"
    before = everything_in(home)
    checks, queue = model_home.checks(), Queue()
    moves = MovesService(model_home.models, checks)
    fixes = FixesService(model_home.models, TemplatesService(), queue)
    await model_home.wait_for_checks(checks)
    seen = [each for each in model_home.models.current.everything if each.path in map(str, files)]
    assert len(seen) == len(files)
    assert not any(each.writable for each in seen)

    for model in seen:
        await checks.verify(model.path)
        await apply_every_fix(fixes, model)
        assert isinstance(model_home.models.deletion_of(model), DeletionFailure)
        refused = await model_home.models.import_model(Path(model.path), "move")
        assert isinstance(refused, NotImported)
        copied = await moves.move(model, model_home.ours, "copy")
        assert isinstance(copied, Imported) is not bool(model.problem)
        assert isinstance(await moves.move(model, Path(model.path).parent, "copy"), NotImported)
    with pytest.raises(QwenDeskError):
        await model_home.models.set_folders(
            msgspec.structs.replace(model_home.models.folders, models=(str(model_home.lm_studio / "ours"),))
        )
    await moves.close()
    await checks.close()

    assert everything_in(home) == before
    assert set(queue.folders) == {model_home.ours}, "downloads go to our folder"


async def apply_every_fix(fixes: FixesService, model: LibraryModel) -> None:
    for code in set(get_args(FixCode)) - {"use_template"}:  # that one asks the Hub; test_fixes.py has it
        try:
            outcome = await fixes.apply(model, FindingFix(code, REPO, OLD))
        except QwenDeskError:
            continue
        assert not isinstance(outcome, FixToAgree), "nothing of theirs is offered for deletion"
