"""Writes folders as /sys and /proc have them."""

from pathlib import Path


def write_files(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text + "\n", encoding="utf-8")
    return root


def write_process(root: Path, pid: int, comm: str, *infos: str, target: str = "/dev/dri/renderD128") -> Path:
    """A process with these fdinfo texts behind descriptors 3, 4, ..., and a plain file as descriptor 0."""
    folder = root / str(pid)
    (folder / "fd").mkdir(parents=True)
    write_files(folder, {"comm": comm, "fdinfo/0": "pos:\t0\nflags:\t02"})
    (folder / "fd" / "0").symlink_to("/dev/null")
    for number, info in enumerate(infos, 3):
        (folder / "fd" / str(number)).symlink_to(target)
        write_files(folder, {f"fdinfo/{number}": info})
    return folder
