"""`python -m tools.bundle.installer`: the installer for Windows in dist, by Inno Setup 6 on Windows.

`make windows-bundle` compiles the same script by Inno Setup under Wine (tools/windows/innosetup.py).
"""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from qwendesk import __version__
from tools.setup.project import ROOT, SetupError

_SCRIPT = ROOT / "packaging" / "windows" / "qwendesk.iss"


def find_compiler(environment: Mapping[str, str]) -> Path:
    """Return ISCC.exe. Raises SetupError if Inno Setup 6 isn't installed."""
    for name in ("ProgramFiles(x86)", "ProgramFiles"):
        compiler = Path(environment.get(name, ""), "Inno Setup 6", "ISCC.exe")
        if compiler.is_file():
            return compiler
    raise SetupError("Inno Setup 6 is missing. Run: winget install --id JRSoftware.InnoSetup --exact")


def main() -> int:
    """Return 0, or 1 with a sentence."""
    try:
        command = [str(find_compiler(os.environ)), "/Qp", f"/DVersion={__version__}", str(_SCRIPT)]
        if subprocess.run(command, check=False).returncode:
            raise SetupError("Inno Setup failed; what it printed is above.")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
