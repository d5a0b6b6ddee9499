"""`make windows-bundle-test`: the installer as a stranger would use it, in a fresh drive C: with a screen."""

import shutil
from collections.abc import Sequence
from pathlib import Path

from qwendesk import __version__
from tools.setup.project import ROOT, WORK, SetupError
from tools.windows import bundle, chroot, innosetup, tree, wine32
from tools.windows.folders import BUNDLE, BUNDLE_TEST, inside
from tools.windows.python import COMPILER

OLDER = "0.0.1"
"""Version of the installer that the update starts from. It has the same files, so only the update itself is tried."""
PROGRAM_FILES = BUNDLE_TEST / "tree"
"""The copy of this checkout whose tools run in the Debian folder."""
PICTURES = BUNDLE_TEST / "pictures"
RESULTS = WORK / "windows-bundle-test"
_SCRIPT = """
openbox &
wine wineboot --init </dev/null
cp {colours} "$WINEPREFIX/drive_c/windows/system32/mscms.dll"
code=0
python3 -m tools.windows.bundle_test {files} 2>&1 || code=$?
exit $code
"""


def run(arguments: Sequence[str]) -> int:
    """Try the installer that make windows-bundle made. Returns 0 if nothing failed, else 1.

    Raises SetupError if there is no installer, and for arguments: it takes none.
    """
    if arguments:
        raise SetupError(f"windows-bundle-test takes no arguments, so {' '.join(arguments)} means nothing.")
    current = bundle.DIST / innosetup.installer_name(__version__)
    if not current.is_file():
        raise SetupError("There is no installer yet: run make windows-bundle.")
    older = bundle.DIST / innosetup.installer_name(OLDER)
    if not older.is_file() or older.stat().st_mtime < current.stat().st_mtime:
        print(f"Making an installer of version {OLDER} from the same files", flush=True)
        innosetup.compile_installer(BUNDLE / innosetup.SCRIPT, bundle.DIST, OLDER, quick=True)
    for folder in (BUNDLE_TEST, RESULTS):
        shutil.rmtree(folder, ignore_errors=True)
    tree.update(ROOT, PROGRAM_FILES)
    # Copies, so that the next bundle can be made meanwhile.
    installers = [Path(shutil.copy(each, BUNDLE_TEST)) for each in (older, current)]
    prefix = BUNDLE_TEST / "prefix"
    prefix.mkdir()
    PICTURES.mkdir()
    colours = BUNDLE_TEST / "mscms.dll"
    source = PROGRAM_FILES / "tools" / "windows" / "mscms_stub.c"
    chroot.run("Compiling a stand-in for mscms.dll", f"{COMPILER} -o {inside(colours)} {inside(source)}", "mscms")
    # winemenubuilder would put menus and file types of the Windows programs into the Debian folder.
    overrides = "WINEDLLOVERRIDES=winemenubuilder.exe=d;mscms=n"
    more = [f"WINEPREFIX={inside(prefix)}", *wine32.ENVIRONMENT[:1], overrides]
    files = " ".join(inside(path) for path in (PICTURES, *installers))
    line = chroot.command(
        chroot.SCREEN + _SCRIPT.format(files=files, colours=inside(colours)), inside(PROGRAM_FILES), more
    )
    code = chroot.run_to_log(line, BUNDLE_TEST / "log.txt", lambda text: print(text, end="", flush=True))
    shutil.copytree(PICTURES, RESULTS)
    print(f"Screenshots: {RESULTS.relative_to(ROOT)}", flush=True)
    return 1 if code else 0
