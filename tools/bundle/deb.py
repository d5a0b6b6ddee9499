"""`make deb`: the bundle as a Debian package. Needs dpkg-deb; changes nothing outside dist/ and .work/."""

import shutil
import subprocess
import sys
from pathlib import Path

from PySide6.QtCore import QByteArray, QSize
from PySide6.QtGui import QImage, QPainter
from PySide6.QtSvg import QSvgRenderer

from qwendesk import __version__
from tools.setup.project import ROOT, WORK, SetupError

BUNDLE = ROOT / "dist" / "QwenDesk"
_LINUX = ROOT / "packaging" / "linux"
_ICON_SIZES = (48, 128, 256)
LOGO_COLOUR = "#6C5CF0"
"""The accent as fill of both themes (resources/themes)."""

_CONTROL = """\
Package: qwendesk
Version: {version}
Architecture: {architecture}
Maintainer: The QwenDesk authors <qwendesk@example.invalid>
Installed-Size: {kilobytes}
Depends: libc6 (>= {glibc}), libstdc++6, libgcc-s1, libegl1, libgl1, libxkbcommon-x11-0, libxcb-cursor0,\
 libxcb-icccm4, libxcb-keysyms1, libxcb-shape0, libdbus-1-3, libfontconfig1
Recommends: fonts-noto-core, libvulkan1
Section: utils
Priority: optional
Description: Run Qwen 3.5 and 3.6 at home
 A desktop app that finds the right model file for this PC, plans its memory,
 and is a chat window with pictures. Everything runs on this PC.
"""


def make_deb(bundle: Path, target: Path, work: Path) -> Path:
    """Returns the package made in `target`. Raises SetupError when something it needs is missing."""
    if shutil.which("dpkg-deb") is None:
        raise SetupError("dpkg-deb is missing. Run: sudo apt-get install dpkg")
    if not bundle.is_dir():
        raise SetupError("There is no bundle yet: run `make bundle`.")
    tree = work / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    shutil.copytree(bundle, tree / "opt" / "qwendesk", symlinks=True)
    share = tree / "usr" / "share"
    _copy(_LINUX / "qwendesk.desktop", share / "applications" / "qwendesk.desktop")
    _copy(_LINUX / "qwendesk-mime.xml", share / "mime" / "packages" / "qwendesk.xml")
    _copy(ROOT / "LICENSE", share / "doc" / "qwendesk" / "copyright")
    draw_icons(share / "icons" / "hicolor")
    program = tree / "usr" / "bin" / "qwendesk"
    program.parent.mkdir(parents=True)
    program.symlink_to("/opt/qwendesk/QwenDesk")
    architecture = _output("dpkg", "--print-architecture")
    n_bytes = sum(path.stat().st_size for path in tree.rglob("*") if path.is_file() and not path.is_symlink())
    control = tree / "DEBIAN" / "control"
    control.parent.mkdir()
    control.write_text(
        _CONTROL.format(
            version=__version__, architecture=architecture, kilobytes=n_bytes // 1024, glibc=_newest_glibc()
        ),
        encoding="utf-8",
    )
    package = target / f"qwendesk_{__version__}_{architecture}.deb"
    _output("dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(package))
    return package


def draw_icons(folder: Path) -> None:
    """The logo in the sizes that desktops ask for, below `folder`, which is laid out like an icon theme."""
    svg = logo_svg(LOGO_COLOUR)
    for side in _ICON_SIZES:
        path = folder / f"{side}x{side}" / "apps" / "qwendesk.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not logo_image(svg, side).save(str(path)):
            raise SetupError(f"The icon {path} could not be written.")


def logo_svg(colour: str) -> str:
    """The logo's drawing, whose lines are black in the file, in another colour."""
    text = (ROOT / "resources" / "icons" / "logo.svg").read_text(encoding="utf-8")
    return text.replace('"#000"', f'"{colour}"')


def logo_image(svg: str, side: int) -> QImage:
    """The logo on nothing, `side` pixels wide and high."""
    image = QImage(QSize(side, side), QImage.Format.Format_ARGB32)
    image.fill(0)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(svg.encode())).render(painter)
    painter.end()
    return image


def _newest_glibc() -> str:
    """The C library of this machine: what is built here may ask for it."""
    return _output("ldd", "--version").splitlines()[0].rsplit(" ", 1)[-1]


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SetupError(f"{command[0]} failed: {done.stderr.strip()}")
    return done.stdout.strip()


if __name__ == "__main__":
    try:
        print(make_deb(BUNDLE, ROOT / "dist", WORK))
    except SetupError as error:
        sys.exit(str(error))
