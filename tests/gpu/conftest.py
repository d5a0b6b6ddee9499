"""The checks of a GPU engine. `make gpu-test` sets the variables that they need; nothing is collected without them."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np
import pytest

from qwendesk.core import paths
from qwendesk.core.options import DecidedOptions
from tests.engine.device import TEST_DEVICE
from tests.gpu.comparison import Difference, compare, table
from tests.gpu.logits import Outcome, Question, Request
from tests.pictures import ShapePicture
from tools.f32_model import write_f32

collect_ignore_glob = [] if TEST_DEVICE else ["test_*.py"]

_REPORT = os.environ.get("QWENDESK_GPU_REPORT", "")
"""File for the table of what was measured."""
_MAX_TOKENS = 24
_LONG_TEXT = " ".join(
    f"Line {number}: {number * 37} tokens of the KV cache take memory, and experts may stay in RAM."
    for number in range(1, 26)
)
_QUESTIONS = (
    Question("What is a quant?"),
    Question("What is VRAM spill?", thinking=True),
    # Longer than one batch of 512 tokens.
    Question(f"{_LONG_TEXT}\n2+3="),
)

Place = Mapping[str, object]
Compute = Callable[..., Path]


class Truth(NamedTuple):
    """Copies of the demo model and its vision file with 32-bit weights, whose logits on the CPU are the measure.

    The vision file as it is, with 16-bit weights, moves the CPU's own logits after a picture by an rms of 0.07.
    """

    model: Path
    mmproj: Path


@pytest.fixture(scope="session")
def truth_files(tmp_path_factory: pytest.TempPathFactory) -> Truth:
    folder = tmp_path_factory.mktemp("f32")
    return Truth(
        model=write_f32(paths.demo_model(), folder / "demo-F32.gguf"),
        mmproj=write_f32(paths.demo_mmproj(), folder / "mmproj-demo-F32.gguf"),
    )


class Computations:
    """Runs tests/gpu/logits.py, each time in a process of its own, and keeps what it found."""

    def __init__(self, folder: Path, truth_files: Truth) -> None:
        self._folder = folder
        self._truth_files = truth_files
        self._picture = folder / "picture.png"
        ShapePicture("red", "circle", "white", 128).draw().save(self._picture)
        self._truths: dict[str, Path] = {}
        self.rows: list[Difference] = []

    def truth(self, *, picture: bool = False, **options: object) -> Path:
        """Return the tokens and logits of the 32-bit copy on the CPU, with the same options. Computed once."""
        key = json.dumps({"picture": picture, **options}, sort_keys=True, default=str)
        if key not in self._truths:
            place = {"model": str(self._truth_files.model), "devices": ("none",), "n_gpu_layers": 0, "vision": "cpu"}
            if picture:
                place["mmproj"] = str(self._truth_files.mmproj)
            out, _ = self._run({**options, **place}, picture=picture)
            self._truths[key] = out
        return self._truths[key]

    def compare(
        self,
        name: str,
        options: Mapping[str, object],
        *,
        truth: Path,
        picture: bool = False,
        variables: Mapping[str, str] | None = None,
    ) -> tuple[Difference, Outcome]:
        """Follow the answers of `truth` with these options, and return how far the logits are from it."""
        out, outcome = self._run(options, picture=picture, follow=truth, variables=variables or {})
        difference = compare(name, np.load(truth), np.load(out), outcome)
        self.rows.append(difference)
        return difference, outcome

    def _run(
        self,
        options: Mapping[str, object],
        *,
        picture: bool,
        follow: Path | None = None,
        variables: Mapping[str, str] | None = None,
    ) -> tuple[Path, Outcome]:
        out = self._folder / f"{len(list(self._folder.iterdir()))}.npz"
        defaults = {"model": str(paths.demo_model()), "n_ctx": 4096, "n_threads": 2}
        if picture:
            defaults["mmproj"] = str(paths.demo_mmproj())
        questions = (Question("What is in this picture?", picture=str(self._picture)),) if picture else _QUESTIONS
        request = Request(
            options=msgspec.convert({**defaults, **options}, DecidedOptions),
            questions=questions,
            max_tokens=_MAX_TOKENS,
            out=str(out),
            follow=str(follow or ""),
        )
        file = out.with_suffix(".json")
        file.write_bytes(msgspec.json.encode(request))
        done = subprocess.run(
            [sys.executable, "-m", "tests.gpu.logits", str(file)],
            env={**os.environ, **(variables or {})},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"exit code {done.returncode}:\n{done.stderr[-4000:]}"
        return out, msgspec.json.decode(done.stdout.splitlines()[-1], type=Outcome)


@pytest.fixture(scope="session")
def computations(tmp_path_factory: pytest.TempPathFactory, truth_files: Truth):
    made = Computations(tmp_path_factory.mktemp("logits"), truth_files)
    yield made
    if _REPORT and made.rows:
        Path(_REPORT).write_text(table(made.rows), encoding="utf-8")
