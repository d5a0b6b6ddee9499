"""The memory that a process may use where its control group has a limit, as in containers and services (Linux)."""

from pathlib import Path, PurePosixPath

_GROUPS = Path("/sys/fs/cgroup")


def memory_limit(pid: int, proc: Path = Path("/proc"), groups: Path = _GROUPS) -> int | None:
    """Return the bytes that `pid` may use; None if nothing but the PC's RAM limits it. Never raises."""
    try:
        lines = (proc / str(pid) / "cgroup").read_text("utf-8", "replace").splitlines()
    except OSError:
        return None
    limits = [limit for line in lines for limit in _limits(line, groups)]
    return min(limits, default=None)


def _limits(line: str, groups: Path) -> list[int]:
    """Return the limits of a group and of those that it is in. A line is "0::/path" or "4:memory:/path"."""
    _, controllers, path = (*line.split(":", 2), "", "")[:3]
    if not controllers:
        folder, name = groups, "memory.max"
    elif "memory" in controllers.split(","):
        folder, name = groups / "memory", "memory.limit_in_bytes"
    else:
        return []
    group = PurePosixPath(path.lstrip("/"))
    return [
        limit
        for each in (group, *group.parents)
        if ".." not in each.parts and (limit := _number(folder / each / name)) is not None
    ]


def _number(file: Path) -> int | None:
    """Return a limit in a file; None if it is no limit. Version 1 writes a number near 2**63 for none."""
    try:
        limit = int(file.read_text("ascii"))
    except (OSError, ValueError):
        return None
    return limit if limit < 2**60 else None
