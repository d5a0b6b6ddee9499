"""What both packages for Linux are made with: the bundle, and what a desktop shows of it."""

import shutil
import subprocess
from pathlib import Path

from tools.bundle.logo import draw_icons
from tools.setup.project import ROOT, SetupError

BUNDLE = ROOT / "dist" / "QwenDesk"
DESKTOP_ENTRY = ROOT / "packaging" / "linux" / "qwendesk.desktop"
_MIME_TYPES = ROOT / "packaging" / "linux" / "qwendesk-mime.xml"


def copy_bundle(bundle: Path, target: Path) -> None:
    """Raises SetupError when there is none."""
    if not bundle.is_dir():
        raise SetupError("There is no bundle yet: run `make bundle`.")
    shutil.copytree(bundle, target, symlinks=True)


def fill_share(share: Path) -> None:
    """The desktop entry, the file type and the icons, below `share` as below /usr/share."""
    copy_file(DESKTOP_ENTRY, share / "applications" / DESKTOP_ENTRY.name)
    copy_file(_MIME_TYPES, share / "mime" / "packages" / "qwendesk.xml")
    draw_icons(share / "icons" / "hicolor")


def copy_file(source: Path, target: Path) -> None:
    """Makes the folders above `target` too."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def output_of(*command: str) -> str:
    """What `command` prints. Raises SetupError, with what it says, when it fails or is not there."""
    if shutil.which(command[0]) is None:
        raise SetupError(f"{command[0]} is missing.")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"{command[0]} failed: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout.strip()
