"""`python -m tools.bundle.sign PATH...`: signs every unsigned program and library for Windows in files and folders.

The variables CERTIFICATE (a PFX file in base64) and PASSWORD hold the certificate; without it nothing is signed, and
that is said. Smart App Control refuses unsigned libraries too, so programs alone are not enough. Never run on Windows:
docs/release.md.
"""

import base64
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import pefile

from tools.setup.project import SetupError

_TIMESTAMPS = "http://timestamp.digicert.com"
_AT_ONCE = 50
"""Files of one call: Windows' command lines end at 32,767 characters."""
_SECURITY = pefile.DIRECTORY_ENTRY["IMAGE_DIRECTORY_ENTRY_SECURITY"]


def unsigned(paths: Sequence[Path]) -> list[Path]:
    """Return the PE files among `paths` and in folders among them that have no signature, by their content.

    Those of Microsoft and Python are signed already and keep their signatures.
    """
    return [file for file in _files(paths) if _lacks_signature(file)]


def sign(files: Sequence[Path], certificate: bytes, password: str, tool: Path) -> None:
    """Sign `files` with signtool. Raises SetupError."""
    with tempfile.TemporaryDirectory() as folder:
        pfx = Path(folder, "certificate.pfx")
        pfx.write_bytes(certificate)
        for first in range(0, len(files), _AT_ONCE):
            command = sign_command(tool, pfx, password, files[first : first + _AT_ONCE])
            # Not through the shell, and not printed: the password is in it.
            if subprocess.run(command, check=False).returncode:
                raise SetupError("signtool failed; what it printed is above.")
    left = unsigned(files)
    if left:
        raise SetupError(f"Still without a signature: {', '.join(file.name for file in left)}.")


def sign_command(tool: Path, pfx: Path, password: str, files: Sequence[Path]) -> list[str]:
    options = ["/fd", "SHA256", "/td", "SHA256", "/tr", _TIMESTAMPS, "/f", str(pfx), "/p", password]
    return [str(tool), "sign", *options, *map(str, files)]


def find_signtool(environment: Mapping[str, str]) -> Path:
    """Return the newest signtool of Windows' SDK. Raises SetupError if there is none."""
    kits = Path(environment.get("ProgramFiles(x86)", "C:/Program Files (x86)"), "Windows Kits", "10", "bin")
    found = sorted(kits.glob("*/x64/signtool.exe"))
    if not found:
        raise SetupError(f"There is no signtool.exe below {kits}. Install the Windows SDK.")
    return found[-1]


def _files(paths: Sequence[Path]) -> Iterator[Path]:
    for path in paths:
        yield from (file for file in sorted(path.rglob("*")) if file.is_file()) if path.is_dir() else [path]


def _lacks_signature(file: Path) -> bool:
    with file.open("rb") as opened:
        if opened.read(2) != b"MZ":
            return False
    try:
        with pefile.PE(str(file), fast_load=True) as read:
            return bool(read.OPTIONAL_HEADER.DATA_DIRECTORY[_SECURITY].VirtualAddress == 0)
    except pefile.PEFormatError:
        return False


def main(arguments: Sequence[str]) -> int:
    """Return 0, also without a certificate, or 1 with a sentence."""
    files = unsigned([Path(argument) for argument in arguments])
    certificate = os.environ.get("CERTIFICATE", "")
    if not certificate:
        print(f"Not signed, because there is no certificate: {len(files)} programs and libraries.")
        return 0
    try:
        sign(files, base64.b64decode(certificate), os.environ.get("PASSWORD", ""), find_signtool(os.environ))
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    print(f"Signed: {len(files)} programs and libraries.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
