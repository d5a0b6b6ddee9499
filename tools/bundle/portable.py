"""`python -m tools.bundle.portable`: the bundle as one archive, which runs from where it is unpacked."""

import sys
import tarfile
import zipfile
from pathlib import Path

from qwendesk import __version__
from tools.setup.project import ROOT


def make_archive(bundle: Path, target: Path, *, on_windows: bool) -> Path:
    """Pack the folder `bundle`, under its own name, into an archive in the folder `target`, and return the archive.

    Windows unpacks zip files by itself; a tar file keeps which files are programs, and the links.
    """
    if on_windows:
        archive = target / f"QwenDesk-{__version__}-windows-x64-portable.zip"
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
            for path in sorted(bundle.rglob("*")):
                packed.write(path, path.relative_to(bundle.parent))
        return archive
    archive = target / f"QwenDesk-{__version__}-linux-x64.tar.xz"
    with tarfile.open(archive, "w:xz") as packed_tar:
        packed_tar.add(bundle, bundle.name, filter=_without_owner)
    return archive


def _without_owner(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.uid = entry.gid = 0
    entry.uname = entry.gname = "root"
    return entry


def main() -> int:
    bundle = ROOT / "dist" / "QwenDesk"
    if not bundle.is_dir():
        print("There is no bundle yet: run python -m tools.bundle.", file=sys.stderr)
        return 1
    print(make_archive(bundle, ROOT / "dist", on_windows=sys.platform == "win32"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
