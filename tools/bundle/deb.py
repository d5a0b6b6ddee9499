"""`make deb`: the bundle as a Debian package. Needs dpkg-deb; changes nothing outside dist/ and .work/."""

import shutil
import sys
from pathlib import Path

from qwendesk import __version__
from tools.bundle.linux import BUNDLE, copy_bundle, copy_file, fill_share, output_of
from tools.setup.project import ROOT, WORK, SetupError

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
Description: Run Qwen 3.5, 3.6 and 3.8 at home
 A desktop app that finds the right model file for this PC, plans its memory,
 and is a chat window with pictures. Everything runs on this PC.
"""


def make_deb(bundle: Path, target: Path, work: Path) -> Path:
    """Returns the package made in `target`. Raises SetupError when something it needs is missing."""
    if shutil.which("dpkg-deb") is None:
        raise SetupError("dpkg-deb is missing. Run: sudo apt-get install dpkg")
    tree = work / "deb"
    shutil.rmtree(tree, ignore_errors=True)
    copy_bundle(bundle, tree / "opt" / "qwendesk")
    fill_share(tree / "usr" / "share")
    copy_file(ROOT / "LICENSE", tree / "usr" / "share" / "doc" / "qwendesk" / "copyright")
    program = tree / "usr" / "bin" / "qwendesk"
    program.parent.mkdir(parents=True)
    program.symlink_to("/opt/qwendesk/QwenDesk")
    architecture = output_of("dpkg", "--print-architecture")
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
    output_of("dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(package))
    return package


def _newest_glibc() -> str:
    """The C library of this machine: what is built here may ask for it."""
    return output_of("ldd", "--version").splitlines()[0].rsplit(" ", 1)[-1]


if __name__ == "__main__":
    try:
        print(make_deb(BUNDLE, ROOT / "dist", WORK))
    except SetupError as error:
        sys.exit(str(error))
