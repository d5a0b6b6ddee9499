"""`python -m tools.bundle.macos`: signs dist/QwenDesk.app and makes the disk image for Macs. Never run on a Mac.

The variables CERTIFICATE (a P12 file in base64), PASSWORD and IDENTITY ("Developer ID Application: ...") hold the
certificate, and APPLE_ID, TEAM_ID and APP_PASSWORD the account for notarisation. Without a certificate the app is
signed for this Mac alone ("-"), and that is said; Gatekeeper then stops it on every other Mac.
"""

import base64
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from qwendesk import __version__
from tools.setup.project import ROOT, WORK, SetupError

APP = ROOT / "dist" / "QwenDesk.app"
IDENTIFIER = "org.qwendesk.QwenDesk"
OLDEST = "14.0"
"""PySide6 6.11 asks for macOS 13; nothing older than 14 is built or tried."""
_CODE = (".dylib", ".so")
ENTITLEMENTS = ROOT / "packaging" / "macos" / "entitlements.plist"


def info_plist(version: str) -> dict[str, Any]:
    """Return what Info.plist says beside what PyInstaller writes: names, version, and .gguf files to open."""
    return {
        "CFBundleDisplayName": "QwenDesk",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": version,
        "LSApplicationCategoryType": "public.app-category.productivity",
        "LSMinimumSystemVersion": OLDEST,
        "NSHighResolutionCapable": True,
        "NSHumanReadableCopyright": "Apache-2.0. The QwenDesk authors.",
        "CFBundleDocumentTypes": [
            {
                "CFBundleTypeName": "GGUF model",
                "CFBundleTypeExtensions": ["gguf"],
                "CFBundleTypeRole": "Viewer",
                # Who opens .gguf files by a double click stays the user's choice.
                "LSHandlerRank": "Alternate",
            }
        ],
    }


def sign_commands(app: Path, identity: str) -> list[list[str]]:
    """Return the calls of codesign: every library, then the programs, and the app last, since it seals the others."""
    inside = app / "Contents"
    libraries = sorted(
        path for path in inside.rglob("*") if path.suffix in _CODE and path.is_file() and not path.is_symlink()
    )
    programs = sorted(path for path in (inside / "MacOS").iterdir() if path.is_file())
    # A signature for this Mac alone has no time stamp of Apple's.
    shared = ["codesign", "--force", "--sign", identity, *(["--timestamp"] if identity != "-" else [])]
    program = [*shared, "--options", "runtime", "--entitlements", str(ENTITLEMENTS)]
    return [
        *([*shared, str(path)] for path in libraries),
        *([*program, str(path)] for path in programs),
        [*program, str(app)],
    ]


def keychain_commands(certificate: Path, password: str, keychain: Path) -> list[list[str]]:
    """Return the calls that put the certificate into a keychain of its own, which codesign may use without asking."""
    chain = str(keychain)
    return [
        ["security", "create-keychain", "-p", password, chain],
        ["security", "unlock-keychain", "-p", password, chain],
        ["security", "import", str(certificate), "-k", chain, "-P", password, "-T", "/usr/bin/codesign"],
        ["security", "set-key-partition-list", "-S", "apple-tool:,apple:", "-s", "-k", password, chain],
        ["security", "list-keychains", "-d", "user", "-s", chain, "login.keychain"],
    ]


def image_command(folder: Path, image: Path) -> list[str]:
    return [
        "hdiutil",
        "create",
        "-volname",
        "QwenDesk",
        "-srcfolder",
        str(folder),
        "-format",
        "UDZO",
        "-ov",
        str(image),
    ]


def notarise_commands(image: Path, environment: Mapping[str, str]) -> list[list[str]]:
    """Return the calls that have Apple look at the image and fasten its answer to it; none without an account."""
    account = [environment.get(name, "") for name in ("APPLE_ID", "TEAM_ID", "APP_PASSWORD")]
    if not all(account):
        return []
    apple_id, team_id, password = account
    who = ["--apple-id", apple_id, "--team-id", team_id, "--password", password]
    return [
        ["xcrun", "notarytool", "submit", str(image), *who, "--wait"],
        ["xcrun", "stapler", "staple", str(image)],
    ]


def make_image(app: Path, target: Path, work: Path, environment: Mapping[str, str]) -> Path:
    """Sign the app, and return the disk image made in `target`. Raises SetupError."""
    if not app.is_dir():
        raise SetupError("There is no app yet: run python -m tools.bundle on a Mac.")
    identity = "-"
    if environment.get("CERTIFICATE"):
        identity = environment["IDENTITY"]
        with tempfile.TemporaryDirectory() as place:
            certificate = Path(place, "certificate.p12")
            certificate.write_bytes(base64.b64decode(environment["CERTIFICATE"]))
            for command in keychain_commands(certificate, environment["PASSWORD"], work / "release.keychain"):
                _run(command)
    for command in sign_commands(app, identity):
        _run(command)
    folder = work / "image"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    shutil.copytree(app, folder / app.name, symlinks=True)
    (folder / "Applications").symlink_to("/Applications")
    image = target / f"QwenDesk-{__version__}-macos-{platform.machine()}.dmg"
    _run(image_command(folder, image))
    notarising = notarise_commands(image, environment) if identity != "-" else []
    for command in notarising:
        _run(command)
    if not notarising:
        print("Not notarised, because there is no certificate or no account: Gatekeeper stops it on other Macs.")
    return image


def _run(command: Sequence[str]) -> None:
    """Not printed: a password may be in it. Raises SetupError."""
    if subprocess.run(command, check=False).returncode:
        raise SetupError(f"{command[0]} {command[1]} failed; what it printed is above.")


def main() -> int:
    """Return 0, or 1 with a sentence."""
    try:
        print(make_image(APP, ROOT / "dist", WORK, os.environ))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
