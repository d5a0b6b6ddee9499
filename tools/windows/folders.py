"""Where the Windows environment lies, outside and inside its Debian folder."""

from pathlib import Path

from tools.setup.project import ROOT

WINDOWS = ROOT / ".windows"
DEBIAN = WINDOWS / "debian"
"""Debian 13 with Wine and the compiler for Windows."""
SHARED = WINDOWS / "shared"
"""All that programs in the Debian folder see of this machine. It lies at INSIDE there."""
DOWNLOADS = WINDOWS / "downloads"
LOGS = WINDOWS / "logs"
STAMPS = WINDOWS / "stamps"
LOCK = WINDOWS / "lock"

PYTHON = SHARED / "python"
SITE_PACKAGES = PYTHON / "Lib" / "site-packages"
ENGINE = SHARED / "engine"
COMPILED = SHARED / "compiled"
"""What ccache keeps of the compilers' work: engines of several kinds share most of it."""
PREFIX = SHARED / "prefix"
"""Wine's drive C: and registry."""
WINE32 = SHARED / "wine32"
"""Wine's DLLs for 32-bit programs."""
PREFIX32 = SHARED / "prefix32"
"""A drive C: for 32-bit and 64-bit programs: for Inno Setup."""
INNO_SETUP = SHARED / "innosetup"
ENGINES = SHARED / "engines"
"""The engines of the bundle, each in a folder with its name."""
BUNDLE = SHARED / "bundle"
"""The copy of this checkout that the bundle is made in."""
BUNDLE_TEST = SHARED / "bundle-test"
"""The drive C: in which the installer is tried, and screenshots."""
TREE = SHARED / "tree"
"""The copy of this checkout that the tests run in."""
FFMPEG = SHARED / "ffmpeg"
REPORTS = SHARED / "reports"

INSIDE = "/desk"


def inside(path: Path) -> str:
    """Return the place that a file or folder below SHARED has for programs in the Debian folder."""
    relative = path.relative_to(SHARED).as_posix()
    return INSIDE if relative == "." else f"{INSIDE}/{relative}"


def for_windows(path: Path) -> str:
    """Return the place that a file or folder below SHARED has for Windows programs, where Wine's Z: is the root."""
    return "Z:" + inside(path).replace("/", "\\")
