"""Whether the card answers as the CPU does: tests of the engine that need no other model than the demo."""

import os
import re
import sys
import tempfile
from functools import partial
from pathlib import Path

from bench.gpu_check.models import CheckFailed, Models, run_program
from bench.gpu_check.steps import Found, Part, Step

_LOGITS = "tests/gpu/test_logits.py"
_WORKER = "tests/engine/worker"
_COUNTS = re.compile(r"(\d+) (passed|failed|errors?|skipped)")
_DEVICE = "CUDA0"


async def _tests(chosen: tuple[str, ...], _models: Models) -> Found:
    """Run tests on the card, with a row for each comparison of logits, and one for all of them together."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "table.md"
        variables = {"QWENDESK_TEST_DEVICE": _DEVICE, "QWENDESK_GPU_REPORT": str(report)}
        command = (sys.executable, "-m", "pytest", "-q", "-n0", "-p", "no:cacheprovider", *chosen)
        done = await run_program(command, {**os.environ, **variables})
        lines = report.read_text(encoding="utf-8").splitlines()[2:] if report.exists() else []
    counts = {what: number for number, what in _COUNTS.findall(done.output)}
    if not counts:
        raise CheckFailed(f"pytest ended with {done.code}: {done.output[-400:]}{done.errors[-400:]}")
    rows = [tuple(cell.strip() for cell in line.strip("|").split("|"))[:4] for line in lines]
    summary = ", ".join(f"{number} {what}" for what, number in counts.items())
    return Found((*rows, (f"tests: {' '.join(chosen)}", summary, "", "")), is_right=done.code == 0)


def _step(name: str, limit_s: float, *chosen: str) -> Step:
    return Step(name, limit_s, partial(_tests, chosen))


_COLUMNS = ("demo model", "rms", "maximum", "changed tokens")

EQUALITY = Part(
    "equality",
    _COLUMNS,
    (
        _step("placements", 90, _LOGITS, "-k", "cpu_agrees or gpu_agrees_with_the_truth and not cache"),
        _step("interrupted answers", 60, f"{_WORKER}/test_interruptions.py"),
        _step("quantized caches", 45, _LOGITS, "-k", "cache"),
        _step("a picture", 30, _LOGITS, "-k", "picture"),
    ),
    needs_model=False,
)

ENGINE = Part(
    "engine",
    _COLUMNS,
    (
        _step("drafts", 90, f"{_WORKER}/test_drafts.py"),
        _step("turns", 90, f"{_WORKER}/test_turns.py"),
        _step("the real engine", 120, "tests/engine/test_real_engine.py"),
    ),
    needs_model=False,
)
