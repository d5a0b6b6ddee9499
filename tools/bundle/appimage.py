"""`make appimage`: the bundle as one file that runs on other Linux systems. Changes nothing outside dist/ and .work/.

An AppImage is a small program, the runtime, with a squashfs image of a folder behind it. The runtime is no part of
this project and is asked for: docs/release.md says where it comes from. mksquashfs makes the image.
"""

import argparse
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from qwendesk import __version__
from tools.bundle.linux import BUNDLE, DESKTOP_ENTRY, copy_bundle, copy_file, fill_share, output_of
from tools.setup.project import ROOT, WORK, SetupError

_INSIDE = Path("usr", "lib", "qwendesk")
_DRAWN_AT = 256
"""Side of the icon that desktops show for the file itself, in pixels."""
_MAGIC = b"AI\x02"
"""At byte 8 of the runtime: by these three bytes systems know an AppImage of the second type."""
_MAGIC_AT = 8


def make_appimage(bundle: Path, runtime: Path, target: Path, work: Path) -> Path:
    """Returns the file made in `target`. Raises SetupError when something it needs is missing or is no such thing."""
    if shutil.which("mksquashfs") is None:
        raise SetupError("mksquashfs is missing. Run: sudo apt-get install squashfs-tools")
    program = _runtime_program(runtime)
    folder = work / "AppDir"
    shutil.rmtree(folder, ignore_errors=True)
    fill_app_folder(bundle, folder)
    image = work / "appimage.squashfs"
    image.unlink(missing_ok=True)
    # zstd: read by every runtime, and fast enough to start from. Duplicates are stored once by themselves.
    options = ["-comp", "zstd", "-Xcompression-level", "19", "-b", "256K", "-root-owned", "-noappend", "-no-progress"]
    output_of("mksquashfs", str(folder), str(image), *options)
    made = target / f"QwenDesk-{__version__}-linux-{platform.machine()}.AppImage"
    with made.open("wb") as file:
        file.write(program)
        with image.open("rb") as source:
            shutil.copyfileobj(source, file)
    made.chmod(0o755)
    image.unlink()
    return made


def fill_app_folder(bundle: Path, folder: Path) -> None:
    """What the image holds: the bundle, what starts it, and what a desktop shows of it."""
    copy_bundle(bundle, folder / _INSIDE)
    # The program finds its folder through the link, so that no shell has to be there.
    (folder / "AppRun").symlink_to(_INSIDE / "QwenDesk")
    share = folder / "usr" / "share"
    fill_share(share)
    copy_file(DESKTOP_ENTRY, folder / DESKTOP_ENTRY.name)
    icon = share / "icons" / "hicolor" / f"{_DRAWN_AT}x{_DRAWN_AT}" / "apps" / "qwendesk.png"
    copy_file(icon, folder / icon.name)
    (folder / ".DirIcon").symlink_to("qwendesk.png")


def build_runtime(source: Path, work: Path) -> Path:
    """Build the runtime in `work`, where Docker is, and return it. Raises SetupError. Never run: docs/release.md."""
    work.mkdir(parents=True, exist_ok=True)
    script = (source / "scripts" / "docker" / "build-with-docker.sh").absolute()
    machine = platform.machine()
    if subprocess.run([str(script)], cwd=work, env={**os.environ, "ARCH": machine}, check=False).returncode:
        raise SetupError("The AppImage's runtime did not build; what was printed is above.")
    return work / f"runtime-{machine}"


def _runtime_program(path: Path) -> bytes:
    try:
        program = path.read_bytes()
    except OSError as error:
        raise SetupError(f"The AppImage runtime {path} cannot be read: {error.strerror or error}.") from error
    if program[:4] != b"\x7fELF" or program[_MAGIC_AT : _MAGIC_AT + len(_MAGIC)] != _MAGIC:
        raise SetupError(f"{path} is no AppImage runtime of type 2 (docs/release.md says how to get one).")
    return program


def main(arguments: Sequence[str]) -> int:
    """Returns 0, or 1 with a sentence of what is missing."""
    parser = argparse.ArgumentParser(prog="python -m tools.bundle.appimage", description="Makes an AppImage in dist/.")
    parser.add_argument(
        "--runtime", type=Path, default=os.environ.get("APPIMAGE_RUNTIME"),
        help="the AppImage runtime of type 2; also from the variable APPIMAGE_RUNTIME",
    )  # fmt: skip
    parser.add_argument(
        "--runtime-source", type=Path, help="its source, from which it is built in the container of its authors"
    )
    options = parser.parse_args(arguments)
    try:
        if options.runtime_source is not None:
            options.runtime = build_runtime(options.runtime_source, WORK / "runtime")
        if options.runtime is None:
            raise SetupError("An AppImage needs its runtime: give it with --runtime FILE (docs/release.md).")
        print(make_appimage(BUNDLE, options.runtime, ROOT / "dist", WORK))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
