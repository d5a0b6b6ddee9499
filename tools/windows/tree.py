"""The copy of this checkout that Windows programs see: never the checkout itself, so that no test can change it."""

import shutil
import subprocess
from pathlib import Path

from tools.setup.project import ROOT, SetupError


def source_files(root: Path = ROOT) -> list[str]:
    """Return the files of a checkout that git knows or would add, as paths relative to it. Raises SetupError."""
    line = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    done = subprocess.run(line, capture_output=True, check=False)
    if done.returncode:
        raise SetupError(f"git cannot list the files of {root}: {done.stderr.decode(errors='replace').strip()}")
    names = {name for name in done.stdout.decode().split("\0") if name}
    return sorted(name for name in names if (root / name).is_file())


def update(root: Path, copy: Path) -> int:
    """Make `copy` equal to the source files of `root`, and return how many files were copied.

    Files that have the same size and time of change are left alone; any others in `copy` are deleted.
    """
    names = source_files(root)
    changed = [name for name in names if not _is_same(root / name, copy / name)]
    for name in changed:
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(root / name, copy / name)
    wanted = set(names)
    for path in sorted(copy.rglob("*"), reverse=True):
        if path.is_dir() and not path.is_symlink():
            if not any(path.iterdir()):
                path.rmdir()
        elif path.relative_to(copy).as_posix() not in wanted:
            path.unlink()
    return len(changed)


def _is_same(one: Path, other: Path) -> bool:
    if not other.is_file():
        return False
    first, second = one.stat(), other.stat()
    return (first.st_size, first.st_mtime_ns) == (second.st_size, second.st_mtime_ns)
