"""Real models come from packages by pip, whose hashes and parts are checked."""

import dataclasses
import hashlib
import zipfile
from pathlib import Path

import pytest

from tools import real_models
from tools.real_models import RealModel, Wheel
from tools.setup.project import SetupError

PARTS = (b"GGUF" + bytes(100), b"the second part")


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of packages, from which alone pip takes what it is asked for."""
    pytest.importorskip("pip", reason="pip is not in this Python")
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setattr(real_models, "MODELS", tmp_path / "models")
    monkeypatch.setattr(real_models, "WORK", tmp_path / "work")
    return folder


def laid_wheel(folder: Path, number: int, content: bytes) -> Wheel:
    """A package with one part of the model in it."""
    path, info = folder / f"tiny_part{number}-1.0-py3-none-any.whl", f"tiny_part{number}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"tiny_part{number}/model.part", content)
        archive.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tiny-part{number}\nVersion: 1.0\n")
        archive.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        archive.writestr(f"{info}/RECORD", "")
    return Wheel(
        f"tiny-part{number}==1.0", hashlib.sha256(path.read_bytes()).hexdigest(), f"tiny_part{number}/model.part"
    )


@pytest.fixture
def tiny(packages: Path) -> RealModel:
    wheels = tuple(laid_wheel(packages, number, part) for number, part in enumerate(PARTS, 1))
    whole = b"".join(PARTS)
    return RealModel("tiny", "tiny.gguf", len(whole), hashlib.sha256(whole).hexdigest(), wheels)


def test_parts_are_joined_in_order_and_kept(tiny: RealModel, packages: Path) -> None:
    assert real_models.get(tiny).read_bytes() == b"".join(PARTS)
    for wheel in packages.iterdir():
        wheel.unlink()
    assert real_models.get(tiny) == tiny.path, "what is here is not downloaded again"
    assert list(tiny.path.parent.iterdir()) == [tiny.path], "the packages are gone"


def test_another_package_under_the_same_name_is_refused(tiny: RealModel, packages: Path) -> None:
    laid_wheel(packages, 2, b"something else")
    with pytest.raises(SetupError, match=r"could not download tiny\.gguf"):
        real_models.get(tiny)
    assert not tiny.path.exists()


def test_another_model_in_the_pinned_packages_is_refused(tiny: RealModel) -> None:
    with pytest.raises(SetupError, match="isn't the file that was pinned"):
        real_models.get(dataclasses.replace(tiny, sha256="0" * 64))
    assert not tiny.path.exists()
