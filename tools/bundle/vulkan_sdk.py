"""`python -m tools.bundle.vulkan_sdk`: installs LunarG's Vulkan SDK on a runner of the release workflow.

Its glslc knows cooperative matrices, which Ubuntu 22.04 has no compiler for. Never run: the addresses are those of
LunarG's documentation and of llama-cpp-python's own workflow.
"""

import os
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Sequence
from pathlib import Path

from tools.setup.project import SetupError

LINUX_RELEASE = "1.4.313"
WINDOWS_RELEASE = "1.4.341.0"
"""The one that llama-cpp-python builds its own Windows wheels with."""
_PACKAGES = "https://packages.lunarg.com"
_DOWNLOADS = "https://sdk.lunarg.com/sdk/download"


def linux_files(release: str) -> dict[str, str]:
    """Return the files that make LunarG's packages known to apt on Ubuntu 22.04, and where they come from."""
    name = f"lunarg-vulkan-{release}-jammy.list"
    return {
        "/etc/apt/trusted.gpg.d/lunarg.asc": f"{_PACKAGES}/lunarg-signing-key-pub.asc",
        f"/etc/apt/sources.list.d/{name}": f"{_PACKAGES}/vulkan/{release}/{name}",
    }


def windows_installer(release: str) -> str:
    """Return the address of the installer."""
    return f"{_DOWNLOADS}/{release}/windows/vulkansdk-windows-X64-{release}.exe"


def exported(release: str) -> dict[str, str]:
    """Return the lines for the files that GITHUB_ENV and GITHUB_PATH name, after the installation on Windows."""
    folder = f"C:\\VulkanSDK\\{release}"
    return {"GITHUB_ENV": f"VULKAN_SDK={folder}", "GITHUB_PATH": f"{folder}\\Bin"}


def _install_on_linux() -> None:
    for target, address in linux_files(LINUX_RELEASE).items():
        with urllib.request.urlopen(address, timeout=60) as answer:
            Path(target).write_bytes(answer.read())
    _run(["apt-get", "update"])
    _run(["apt-get", "install", "--yes", "--no-install-recommends", "vulkan-sdk", "spirv-headers"])


def _install_on_windows() -> None:
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        installer = Path(folder, "vulkan-sdk.exe")
        urllib.request.urlretrieve(windows_installer(WINDOWS_RELEASE), installer)
        _run([str(installer), "--accept-licenses", "--default-answer", "--confirm-command", "install"])
    lines = exported(WINDOWS_RELEASE)
    if not Path(lines["GITHUB_PATH"], "glslc.exe").is_file():
        raise SetupError(f"The Vulkan SDK didn't install itself into {lines['GITHUB_PATH']}.")
    for variable, line in lines.items():
        with Path(os.environ[variable]).open("a", encoding="utf-8") as file:
            file.write(f"{line}\n")


def _run(command: Sequence[str]) -> None:
    if subprocess.run(command, check=False).returncode:
        raise SetupError(f"{command[0]} failed; what it printed is above.")


def main() -> int:
    """Return 0, or 1 with a sentence."""
    try:
        if sys.platform == "win32":
            _install_on_windows()
        else:
            _install_on_linux()
    except (SetupError, OSError) as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
