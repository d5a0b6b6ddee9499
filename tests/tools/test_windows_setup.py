"""The Windows environment on Linux: what it refuses, which stages run, and what the table of the tests says."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup.debian_mirror import debian_mirror
from tools.setup.project import ROOT, SetupError
from tools.windows import chroot, engine, suite, tree
from tools.windows.folders import SHARED
from tools.windows.machine import Machine, refusal
from tools.windows.stages import Stage, outdated, run

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")

GOOD = Machine(
    system="linux",
    processor="x86_64",
    is_root=True,
    has_debootstrap=True,
    has_unshare=True,
    has_ensurepip=True,
    mirror="http://mirror.example/debian",
    free_bytes=50 * 1024**3,
)


def changed(**values: object) -> Machine:
    return Machine(**{**vars(GOOD), **values})


@pytest.mark.parametrize(
    ("machine", "says"),
    [
        (changed(system="win32"), "needs Linux. On Windows, test.cmd runs the tests."),
        (changed(processor="aarch64"), "needs an x86-64 processor, and this one is aarch64"),
        (changed(is_root=False), "needs root. Run it with sudo."),
        (changed(has_unshare=False), "Install util-linux"),
        (changed(has_debootstrap=False), "debootstrap is missing"),
        (changed(has_ensurepip=False), "python3-venv"),
        (changed(mirror=""), "Set DEBIAN_MIRROR"),
        (changed(free_bytes=3 * 1024**3), "needs 8 GB of free space, and 3 GB are free"),
    ],
)
def test_refusal_says_what_is_missing_and_what_to_do(machine: Machine, says: str) -> None:
    assert says in (refusal(machine, is_set_up=False) or "")


@pytest.mark.parametrize(
    "text",
    [
        "deb http://mirror.example/debian bookworm main\n",
        "# a comment\ndeb [signed-by=/a.gpg arch=amd64] http://mirror.example/debian/ bookworm main\n",
        "Types: deb\nURIs: http://mirror.example/debian-security http://mirror.example/debian\nSuites: bookworm\n",
    ],
)
def test_mirror_is_the_one_of_the_systems_package_sources(text: str) -> None:
    assert debian_mirror(["deb https://packages.example/apt other main\n", text]) == "http://mirror.example/debian"


class Stages:
    """Three stages, of which the last uses the results of the first two."""

    def __init__(self, folder: Path) -> None:
        self.made: list[str] = []
        self.said: list[str] = []
        self.folder = folder

    def listed(self, *, python: str = "3.13", last: Callable[[], None] | None = None) -> list[Stage]:
        return [
            Stage("debian", "Debian", ("13",), lambda: self.made.append("debian")),
            Stage("python", "Python", (python,), lambda: self.made.append("python")),
            Stage("check", "All", (), last or (lambda: self.made.append("check")), ("debian", "python")),
        ]

    def run(self, listed: list[Stage]) -> None:
        self.made.clear()
        self.said.clear()
        run(listed, self.folder, self.said.append)


@pytest.fixture
def stages(tmp_path: Path) -> Stages:
    return Stages(tmp_path / "stamps")


def test_stages_run_once(stages: Stages) -> None:
    stages.run(stages.listed())
    assert stages.made == ["debian", "python", "check"]
    assert stages.said[0] == "Step 1 of 3: Debian"

    stages.run(stages.listed())
    assert stages.made == []
    assert stages.said[0].startswith("Step 1 of 3: Debian (ready, made in ")


def test_a_changed_stage_runs_again_with_those_that_use_it(stages: Stages) -> None:
    stages.run(stages.listed())

    assert [stage.name for stage in outdated(stages.listed(python="3.14"), stages.folder)] == ["python", "check"]
    stages.run(stages.listed(python="3.14"))
    assert stages.made == ["python", "check"]


def test_a_stage_that_failed_runs_again(stages: Stages) -> None:
    def fail() -> None:
        raise SetupError("no mirror")

    with pytest.raises(SetupError):
        stages.run(stages.listed(last=fail))

    stages.run(stages.listed())
    assert stages.made == ["check"]


def test_mounts_are_private_and_leave_the_machines_devices_alone() -> None:
    line = chroot.command("wine --version")

    assert line[:7] == ["unshare", "--mount", "--pid", "--fork", "--kill-child", "--propagation", "private"]
    mounted = [words for words in map(str.split, chroot.MOUNTS.splitlines()) if words[:1] == ["mount"]]
    assert [words[-2:] for words in mounted if "--bind" in words] == [['"$shared"', '"$root/desk"']]
    assert all("--bind" in words or words[2] in {"proc", "sysfs", "tmpfs", "devpts"} for words in mounted)
    assert str(SHARED) in line
    assert str(ROOT) not in line


@pytest.mark.skipif(sys.platform == "win32", reason="the script is for Linux")
def test_the_scripts_are_well_formed() -> None:
    for script in (chroot.MOUNTS, engine.build_script(), suite.pytest_script(["tests/hub", "-k", "a or 'b'"])):
        assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


@needs_git
def test_the_copy_follows_the_checkout(tmp_path: Path) -> None:
    root, copy = tmp_path / "checkout", tmp_path / "copy"
    (root / "tests").mkdir(parents=True)
    (root / ".gitignore").write_text("*.pyc\n")
    (root / "tests" / "one.py").write_text("1")
    (root / "tests" / "one.pyc").write_text("compiled")
    subprocess.run(["git", "init", "--quiet", str(root)], check=True)

    assert tree.update(root, copy) == 2
    assert tree.update(root, copy) == 0
    assert sorted(path.name for path in copy.rglob("*")) == [".gitignore", "one.py", "tests"]

    (root / "tests" / "one.py").unlink()
    (root / "two.py").write_text("2")
    (copy / "left by a test").mkdir()
    (copy / "left by a test" / "file").write_text("")
    assert tree.update(root, copy) == 1
    assert sorted(path.name for path in copy.rglob("*")) == [".gitignore", "two.py"]
