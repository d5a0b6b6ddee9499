"""The run of the checks on a card: its order, its budget and its tables, without a card."""

import asyncio
import re
import sys
from pathlib import Path

import psutil
import pytest

from bench.gpu_check import __main__ as command
from bench.gpu_check import equality
from bench.gpu_check.__main__ import PARTS, chosen_parts
from bench.gpu_check.models import CheckFailed, Models, run_program
from bench.gpu_check.steps import Found, Part, Run, Step
from tools.setup.project import ROOT


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Report:
    """A run whose steps say how long they take."""

    def __init__(self, tmp_path: Path, budget_s: float = 420.0) -> None:
        self.clock, self.lines, self.did = Clock(), [], []
        self.run = Run(budget_s, say=self.lines.append, clock=self.clock)
        self._models = Models(tmp_path, "35b", None)

    def step(self, name: str, takes_s: float = 1.0, *, is_right: bool = True, fails: str = "") -> Step:
        async def find(_models: Models) -> Found:
            self.did.append(name)
            self.clock.now += takes_s
            if fails:
                raise CheckFailed(fails)
            return Found(((name, "1.5"),), is_right=is_right)

        return Step(name, 60.0, find)

    async def take(self, *steps: Step, name: str = "spin") -> None:
        await self.run.take(Part(name, ("what", "tok/s"), steps), self._models)

    @property
    def text(self) -> str:
        return "\n".join(self.lines)


def test_what_matters_most_comes_first() -> None:
    names = [part.name for part in PARTS]
    assert names[:5] == ["equality", "model", "spin", "speeds", "plans"]
    assert len(set(names)) == len(names)
    assert PARTS[2].steps[0].name == "1000 rounds, experts of 20 layers in RAM"


def test_the_model_is_made_for_the_parts_that_need_it() -> None:
    assert [part.name for part in chosen_parts(["plans", "equality"])] == ["equality", "model", "plans"]
    assert [part.name for part in chosen_parts(["engine", "equality"])] == ["equality", "engine"]
    assert chosen_parts([]) == PARTS


def test_each_step_has_a_limit_that_leaves_time_for_others() -> None:
    assert all(0 < step.limit_s <= 120 for part in PARTS for step in part.steps)


async def test_the_rows_of_a_part_are_a_table_for_the_documentation(tmp_path: Path) -> None:
    report = Report(tmp_path)
    await report.take(report.step("short"), report.step("long", 3.0))
    assert report.text == (
        "\n### spin\n\n| what | tok/s |\n| --- | --- |\n| short | 1.5 |\n| long | 1.5 |\n\n(spin: 4 s)"
    )
    assert report.run.end() == 0
    assert report.lines[-1] == "\n(4 of 420 s)"


async def test_what_the_budget_has_no_time_for_is_listed_as_open(tmp_path: Path) -> None:
    report = Report(tmp_path, budget_s=250.0)
    await report.take(*(report.step(name, 100.0) for name in ("a", "b", "c", "d")))
    await report.take(report.step("e"), name="turns")
    assert report.did == ["a", "b", "c"]
    assert report.run.open == ["spin: d (no time was left)", "turns: e (no time was left)"]
    assert "### turns" not in report.text, "no empty table"
    assert report.run.end() == 0, "open isn't wrong"
    assert "### Open\n\n- spin: d (no time was left)\n- turns: e (no time was left)" in report.text


async def test_a_step_that_hangs_is_stopped_and_closes_what_it_opened(tmp_path: Path) -> None:
    report = Report(tmp_path)

    async def hang(_models: Models) -> Found:
        try:
            await asyncio.Event().wait()
        finally:
            report.did.append("closed")
        raise AssertionError

    await report.take(Step("hangs", 0.01, hang), report.step("next"))
    assert report.did == ["closed", "next"]
    assert report.run.open == ["spin: hangs (stopped after 0 s)"]


async def test_the_last_step_gets_no_more_time_than_the_budget_has(tmp_path: Path) -> None:
    report = Report(tmp_path, budget_s=0.01)

    async def hang(_models: Models) -> Found:
        await asyncio.Event().wait()
        raise AssertionError

    await report.take(Step("hangs", 60.0, hang))
    assert report.run.open == ["spin: hangs (stopped after 0 s)"]


async def test_a_step_that_fails_or_is_wrong_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    report = Report(tmp_path)
    await report.take(
        report.step("fails", fails="no GPU"), report.step("is off", is_right=False), report.step("is right")
    )
    assert report.did == ["fails", "is off", "is right"]
    assert "| is off | 1.5 |" in report.text
    assert report.run.end() == 1
    assert "### Wrong\n\n- spin: fails: no GPU\n- spin: is off\n" in report.text


async def test_a_program_ends_with_its_step(tmp_path: Path) -> None:
    started = tmp_path / "started"
    wait = f"import pathlib, threading; pathlib.Path({str(started)!r}).touch(); threading.Event().wait()"
    before = set(psutil.Process().children())
    step = asyncio.create_task(run_program((sys.executable, "-c", wait), {}))
    # Whether the file is there is all that tells that the program runs.
    while not started.exists():  # noqa: ASYNC110
        await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert set(psutil.Process().children()) == before


async def test_a_row_says_how_many_tests_passed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "test_one.py").write_text(
        "import os, pytest\n"
        "def test_device():\n"
        "    assert os.environ['QWENDESK_TEST_DEVICE'] == 'CUDA0'\n"
        "    open(os.environ['QWENDESK_GPU_REPORT'], 'w').write('| demo model | rms |\\n|---|--:|\\n"
        "| all layers | 0.1 | 2.9 | 0 of 72 | 0.1 s |\\n')\n"
        "def test_skipped():\n"
        "    pytest.skip('not here')\n",
        encoding="utf-8",
    )
    (tmp_path / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    models = Models(tmp_path, "35b", None)
    found = await equality._tests(("test_one.py",), models)
    assert found.rows == (
        ("all layers", "0.1", "2.9", "0 of 72"),
        ("tests: test_one.py", "1 passed, 1 skipped", "", ""),
    )
    assert found.is_right
    (tmp_path / "test_one.py").write_text("def test_it():\n    assert False\n", encoding="utf-8")
    found = await equality._tests(("test_one.py",), models)
    assert found.rows == (("tests: test_one.py", "1 failed", "", ""),)
    assert not found.is_right
    with pytest.raises(CheckFailed, match="pytest ended with"):
        await equality._tests(("missing.py",), models)


async def test_without_the_model_its_steps_say_so(tmp_path: Path) -> None:
    models = Models(tmp_path, "35b", None)
    with pytest.raises(CheckFailed, match=r"random-35b\.gguf was not made"):
        models.random()
    spin = next(part for part in PARTS if part.name == "spin")
    run = Run(420.0, say=lambda _text: None)
    await run.take(spin, models)
    assert len(run.wrong) == len(spin.steps)


def test_without_a_card_nothing_runs(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(command, "used_on_cards", list)
    monkeypatch.setattr(sys, "argv", ["bench.gpu_check"])
    assert command.main() == 0
    assert "No NVIDIA card was found" in capsys.readouterr().out


def test_the_documentation_lists_as_open_what_no_card_has_shown() -> None:
    text = (ROOT / "docs" / "measurements.md").read_text(encoding="utf-8")
    section = text.partition("### Open: what no card has shown")[2].partition("\n## ")[0]
    named = set(re.findall(r"^- `(\w+)`", section, re.MULTILINE))
    assert named
    assert named <= {part.name for part in PARTS}
