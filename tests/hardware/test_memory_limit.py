"""The memory limit of a process, by files of control groups as Linux, Docker and systemd write them."""

from pathlib import Path

import pytest

from qwendesk.hardware.memory_limit import memory_limit


def limit_of(tmp_path: Path, cgroup: str, **limits: str) -> int | None:
    """Return the limit of a process with this /proc/PID/cgroup; `limits` are files by path with "__" for "/"."""
    (tmp_path / "proc/7").mkdir(parents=True)
    (tmp_path / "proc/7/cgroup").write_text(cgroup)
    for name, text in limits.items():
        file = tmp_path / "groups" / name.replace("__", "/").replace("memory_", "memory.")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return memory_limit(7, tmp_path / "proc", tmp_path / "groups")


def test_version_2_takes_the_lowest_limit_on_the_way_up(tmp_path: Path) -> None:
    found = limit_of(
        tmp_path, "0::/user.slice/app.scope\n",
        **{"user.slice__app.scope__memory_max": "max\n", "user.slice__memory_max": "8589934592\n"},
    )  # fmt: skip

    assert found == 8 * 1024**3


def test_version_1_has_a_folder_for_memory_and_a_huge_number_for_no_limit(tmp_path: Path) -> None:
    found = limit_of(
        tmp_path, "9:cpu,cpuacct:/x\n4:memory:/docker/ab\n0::/\n",
        memory__docker__ab__memory_limit_in_bytes="536870912\n",
        memory__memory_limit_in_bytes="9223372036854771712\n",
    )  # fmt: skip

    assert found == 512 * 1024**2


@pytest.mark.parametrize("cgroup", ["0::/\n", "", "damaged\n", "0::/../../x\n", "4:memory:/\n"])
def test_no_limit(tmp_path: Path, cgroup: str) -> None:
    assert limit_of(tmp_path, cgroup, memory__memory_limit_in_bytes="9223372036854771712\n") is None


def test_a_process_that_is_gone_has_none(tmp_path: Path) -> None:
    assert memory_limit(7, tmp_path, tmp_path) is None
