"""What 32-bit Windows programs need of Wine, such as Inno Setup and the installers that it makes.

Wine for 64-bit programs runs them too once it finds its 32-bit DLLs. Debian has these in the package libwine for i386,
and nothing else of that package is needed: no 32-bit program of Linux is installed.
"""

import shutil
import subprocess
from collections.abc import Callable

from tools.windows import chroot
from tools.windows.debian import SUITE
from tools.windows.folders import PREFIX32, WINE32, inside

SUITES = (SUITE, "sid")
"""Where the package is looked for: a mirror's list of i386 packages may not match its signature for some days."""
ENVIRONMENT = (f"WINEDLLPATH={inside(WINE32)}", f"WINEPREFIX={inside(PREFIX32)}")
"""For a Debian folder's command that runs 32-bit Windows programs."""
_UNIX_SIDE = "/usr/lib/x86_64-linux-gnu/wine/x86_64-unix"
"""Where Wine's own DLLs have their Linux part, which it looks for beside the folder of the DLL."""
_DATE_CHECKS = ("Acquire::Check-Valid-Until", "Acquire::Check-Date")


def make(mirror: str, say: Callable[[str], None]) -> None:
    """Get the DLLs, and make a drive C: with them. Raises SetupError."""
    for folder in (WINE32, PREFIX32):
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
    chroot.run(
        "Getting Wine's 32-bit DLLs",
        download_script(mirror, date_checks()),
        "wine32",
        folder=inside(WINE32),
        take=lambda line: say(f"  {line.strip()}") if line.startswith("Wine") else None,
    )
    make_prefix()


def make_prefix() -> None:
    """Make the drive C: for 32-bit and 64-bit programs anew. Raises SetupError."""
    shutil.rmtree(PREFIX32, ignore_errors=True)
    PREFIX32.mkdir(parents=True)
    start = chroot.SCREEN + "wine wineboot --init\nwineserver --wait"
    chroot.run("Starting Wine", start, "wine32-prefix", environment=ENVIRONMENT)


def date_checks() -> list[str]:
    """Return apt's options for the age of package lists as this machine has set them.

    A machine whose mirror is a copy of a certain day has turned these checks off. Signatures are checked always.
    """
    if shutil.which("apt-config") is None:
        return []
    said = subprocess.run(["apt-config", "dump", *_DATE_CHECKS], capture_output=True, text=True, check=False).stdout
    pairs = [line.rstrip(";").split(" ", 1) for line in said.splitlines() if line.startswith(_DATE_CHECKS)]
    return [f"--option={name}={value.strip().strip(chr(34))}" for name, value in pairs]


def download_script(mirror: str, options: list[str]) -> str:
    """Return the bash script that gets the DLLs of the release of Wine that is installed into the present folder."""
    return f"""
release=$(dpkg-query --show --showformat '${{Version}}' libwine | cut -d'~' -f1)
for suite in {" ".join(SUITES)}; do
  rm -rf apt unpacked
  mkdir -p apt/lists/partial apt/cache/archives/partial unpacked
  touch apt/status
  echo "deb [arch=i386] {mirror} $suite main" > apt/sources.list
  options="--option=Dir::Etc::SourceList=$PWD/apt/sources.list --option=Dir::Etc::SourceParts=-"
  options="$options --option=Dir::State::Lists=$PWD/apt/lists --option=Dir::State::status=$PWD/apt/status"
  options="$options --option=Dir::Cache=$PWD/apt/cache --option=APT::Architectures::=i386 {" ".join(options)}"
  if (cd unpacked && apt-get $options update && apt-get $options download libwine:i386); then
    version=$(dpkg-deb --field unpacked/*.deb Version)
    if [ "${{version%%~*}}" = "$release" ]; then
      dpkg-deb --extract unpacked/*.deb unpacked
      mv unpacked/usr/lib/i386-linux-gnu/wine/i386-windows .
      ln -s {_UNIX_SIDE} .
      rm -rf apt unpacked
      echo "Wine's 32-bit DLLs, $version, of Debian $suite"
      exit 0
    fi
    echo "Debian $suite has Wine $version, but $release is installed."
  fi
done
echo "The mirror has no intact list with the package libwine $release for i386. Try again another day, or set"
echo "DEBIAN_MIRROR to another mirror."
exit 1
""".strip()
