"""The Windows environment on Linux: what it refuses, which stages run, and what the table of the tests says."""

import email
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tools.setup.debian_mirror import debian_mirror
from tools.setup.project import ROOT, SetupError, engine_version
from tools.windows import chroot, engine, python, suite, tree
from tools.windows.folders import SHARED, TREE, for_windows, inside
from tools.windows.machine import Machine, refusal
from tools.windows.stages import Stage, keys, outdated, read_stamp, run

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


def test_a_debian_machine_with_root_is_not_refused() -> None:
    assert refusal(GOOD, is_set_up=False) is None


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


def test_an_environment_that_is_ready_needs_no_mirror_and_no_space() -> None:
    assert refusal(changed(mirror="", free_bytes=0, has_debootstrap=False), is_set_up=True) is None
    assert refusal(changed(is_root=False), is_set_up=True) is not None


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


@pytest.mark.parametrize(
    "text",
    [
        "",
        "# deb http://mirror.example/debian bookworm main\n",
        "deb http://snapshot.example/archive/debian bookworm main\nURIs: http://archive.example/ubuntu\n",
    ],
)
def test_no_mirror_is_guessed(text: str) -> None:
    assert debian_mirror([text]) == ""


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


def test_an_unreadable_stamp_counts_as_none(stages: Stages) -> None:
    listed = stages.listed()
    stages.run(listed)
    (stages.folder / "python.json").write_text("{")
    (stages.folder / "debian.json").write_text(json.dumps({"seconds": 1}))

    assert read_stamp(stages.folder, listed[0]) is None
    assert [stage.name for stage in outdated(listed, stages.folder)] == ["debian", "python"]


def test_the_key_of_a_stage_does_not_depend_on_later_ones(stages: Stages) -> None:
    assert keys(stages.listed()[:2]) == {name: key for name, key in keys(stages.listed()).items() if name != "check"}


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


def test_paths_as_each_side_sees_them() -> None:
    assert inside(SHARED) == "/desk"
    assert inside(TREE / "tests") == "/desk/tree/tests"
    assert for_windows(TREE) == "Z:\\desk\\tree"


def test_every_pin_is_installed_on_windows_unless_it_cannot_be() -> None:
    wanted = python.pinned_for_windows(
        "# A comment.\nPySide6_Essentials==6.11.3; python_version < '3.12'\n"
        "PySide6_Essentials==6.12.0; python_version >= '3.12'\n"
        "numpy==2.4.6\nSecretStorage==3.5.0\nllama_cpp_python==0.3.36\n"
    )
    assert wanted == ["PySide6_Essentials==6.12.0", python.BECAUSE_OF_WINE["numpy"], *python.NOT_PINNED]


def test_the_app_is_recorded_with_what_it_asks_for() -> None:
    project = {"name": "qwendesk", "dependencies": ["psutil>=7,<8"], "optional-dependencies": {"dev": ["pytest>=9"]}}
    record = email.message_from_string(python.metadata(project))

    assert (record["Name"], record["Provides-Extra"]) == ("qwendesk", "dev")
    assert record.get_all("Requires-Dist") == ["psutil>=7,<8", "pytest>=9; extra == 'dev'"]


def test_the_pinned_engine_has_a_hash() -> None:
    assert engine_version() in engine.SHA256


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


@needs_git
def test_a_folder_that_git_does_not_know_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="git cannot list the files"):
        tree.source_files(tmp_path)


def test_each_package_of_tests_has_a_row(tmp_path: Path) -> None:
    for name in ("hub/test_a.py", "app/window/test_b.py", "fakes/peer.py", "test_c.py", "conftest.py"):
        path = tmp_path / "tests" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()

    assert suite.packages(tmp_path / "tests") == {
        "app": ["tests/app"],
        "hub": ["tests/hub"],
        "(beside them)": ["tests/test_c.py"],
    }


def test_the_table_counts_errors_as_failures(tmp_path: Path) -> None:
    report = tmp_path / "hub.xml"
    report.write_text('<testsuites><testsuite tests="10" failures="1" errors="2" skipped="3"/></testsuites>')

    hub = suite.read_report("hub", report, 65.0)
    hung = suite.read_report("app", tmp_path / "none.xml", 5400.0, "pytest ended with code 137")

    assert suite.table([hub, hung]).splitlines()[2:] == [
        "| hub | 4 | 3 | 3 | 1 min 05 s |",
        "| app (pytest ended with code 137) | 0 | 0 | 0 | 90 min 00 s |",
        "| all | 4 | 3 | 3 | 91 min 05 s |",
    ]
