"""`python -m tools.bundle.portable`: the bundle for Windows as a zip, which runs from where it is unpacked."""

import sys
import zipfile
from pathlib import Path

from qwendesk import __version__
from tools.setup.project import ROOT


def make_zip(bundle: Path, target: Path) -> Path:
    """Pack the folder `bundle`, under its own name, into an archive in the folder `target`, and return the archive."""
    archive = target / f"QwenDesk-{__version__}-windows-x64-portable.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as packed:
        for path in sorted(bundle.rglob("*")):
            packed.write(path, path.relative_to(bundle.parent))
    return archive


def main() -> int:
    bundle = ROOT / "dist" / "QwenDesk"
    if not bundle.is_dir():
        print("There is no bundle yet: run python -m tools.bundle.", file=sys.stderr)
        return 1
    print(make_zip(bundle, ROOT / "dist"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
