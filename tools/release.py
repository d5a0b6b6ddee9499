"""What a release says of itself: `python -m tools.release check|describe`, for the release workflow.

`check --tag v1.2.3` stops unless the tag, the version and CHANGELOG.md agree. `describe FOLDER TEXTS` writes, for the
files in FOLDER, SHA256SUMS and latest.json beside them, and into TEXTS the page NOTES.md and the three files of a
winget manifest (schema 1.10).
"""

import argparse
import datetime
import hashlib
import json
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from qwendesk import RELEASES, __version__
from qwendesk.help.app_updates import Release, ReleaseFile, read_release
from tools.setup.project import ROOT, SetupError

PACKAGE = "QwenDesk.QwenDesk"
"""How winget calls the app. The name must be free in its repository when the first manifest is sent."""
_SCHEMA = "1.10.0"
_APP_ID = "{6E0E3B1C-6A37-4B0B-9E0B-2C3E52F9D7A1}"
"""AppId in packaging/windows/qwendesk.iss."""
_WRITTEN = ("SHA256SUMS", "latest.json")
_MOST_WINGET_NOTES = 10_000


def notes_of(version: str, changelog: str) -> str:
    """Return the section of CHANGELOG.md about `version`. Raises SetupError unless it has one with a date."""
    found = re.search(
        rf"^## {re.escape(version)} \((?P<date>[^)]*)\)\n(?P<notes>.*?)(?=^## |\Z)", changelog, re.DOTALL | re.MULTILINE
    )
    if found is None:
        raise SetupError(f"CHANGELOG.md has no section “## {version} (date)”.")
    if re.fullmatch(r"\d{4}-\d\d-\d\d", found["date"]) is None:
        raise SetupError(f"CHANGELOG.md says “{version} ({found['date']})”. Write the date of the release: 2026-12-31.")
    return found["notes"].strip()


def check_tag(tag: str, version: str, changelog: str, *, releases: str = RELEASES) -> None:
    """Raise SetupError unless everything that a release needs in the sources is there."""
    if tag != f"v{version}":
        raise SetupError(f"The tag is {tag} and qwendesk/__init__.py says {version}.")
    notes_of(version, changelog)
    if not releases:
        raise SetupError("qwendesk/__init__.py has no address yet. docs/release.md says what goes with it.")


def describe(folder: Path, texts: Path, *, releases: str, version: str, changelog: str, date: datetime.date) -> Release:
    """Write everything about the files in `folder`, and return the content of latest.json. Raises SetupError."""
    files = tuple(
        ReleaseFile(path.name, path.stat().st_size, _sha256(path))
        for path in sorted(folder.iterdir())
        if path.is_file() and path.name not in _WRITTEN
    )
    if not files:
        raise SetupError(f"{folder} has no files.")
    notes = notes_of(version, changelog)
    release = Release(version, date, notes, files)
    content = msgspec.json.format(msgspec.json.encode(release), indent=2) + b"\n"
    try:
        read_release(content)
    except msgspec.DecodeError as error:
        raise SetupError(f"The app couldn't read this latest.json: {error}.") from error
    (folder / "latest.json").write_bytes(content)
    sums = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    (folder / "SHA256SUMS").write_text(sums, encoding="utf-8", newline="\n")
    texts.mkdir(parents=True, exist_ok=True)
    (texts / "NOTES.md").write_text(f"{notes}\n", encoding="utf-8", newline="\n")
    installer = next((file for file in files if file.name.endswith("-setup.exe")), None)
    if installer is not None:
        for name, manifest in winget_manifests(release, installer, releases).items():
            (texts / name).write_text(_as_yaml(manifest), encoding="utf-8", newline="\n")
    return release


def winget_manifests(release: Release, installer: ReleaseFile, releases: str) -> dict[str, dict[str, Any]]:
    """Return the three manifests of microsoft/winget-pkgs by the names of their files."""
    page = f"{releases}/tag/v{release.version}"
    both = {"PackageIdentifier": PACKAGE, "PackageVersion": release.version}
    installing = {
        "InstallerLocale": "en-US",
        "InstallerType": "inno",
        "Scope": "user",
        "InstallModes": ["interactive", "silent", "silentWithProgress"],
        "UpgradeBehavior": "install",
        "MinimumOSVersion": "10.0.19041.0",
        "ProductCode": f"{_APP_ID}_is1",
        "ReleaseDate": release.date.isoformat(),
        "Installers": [
            {
                "Architecture": "x64",
                "InstallerUrl": f"{releases}/download/v{release.version}/{installer.name}",
                "InstallerSha256": installer.sha256.upper(),
            }
        ],
    }
    about = {
        "PackageLocale": "en-US",
        "Publisher": "The QwenDesk authors",
        "PackageName": "QwenDesk",
        "PackageUrl": releases.removesuffix("/releases"),
        "License": "Apache-2.0",
        "ShortDescription": "Run Qwen3.5, 3.6 and 3.8 on your own PC, in a window.",
        "Moniker": "qwendesk",
        "Tags": ["chat", "gguf", "llama-cpp", "llm", "local-ai", "qwen"],
        "ReleaseNotes": release.notes[:_MOST_WINGET_NOTES],
        "ReleaseNotesUrl": page,
    }
    manifests: Sequence[tuple[str, str, Mapping[str, Any]]] = (
        (f"{PACKAGE}.yaml", "version", {"DefaultLocale": "en-US"}),
        (f"{PACKAGE}.installer.yaml", "installer", installing),
        (f"{PACKAGE}.locale.en-US.yaml", "defaultLocale", about),
    )
    return {
        name: {**both, **fields, "ManifestType": kind, "ManifestVersion": _SCHEMA} for name, kind, fields in manifests
    }


def _as_yaml(manifest: Mapping[str, Any]) -> str:
    """Return YAML with each value written as JSON, which YAML includes."""
    return "".join(f"{key}: {json.dumps(value, ensure_ascii=False)}\n" for key, value in manifest.items())


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def main(arguments: Sequence[str]) -> int:
    """Return 0, or 1 with a sentence of what is wrong."""
    parser = argparse.ArgumentParser(prog="python -m tools.release", description="Checks and describes a release.")
    commands = parser.add_subparsers(dest="command", required=True)
    check = commands.add_parser("check", help="stop unless tag, version and changelog agree")
    check.add_argument("--tag", required=True)
    describing = commands.add_parser("describe", help="write sums, latest.json, notes and the winget manifest")
    describing.add_argument("folder", type=Path, help="with the files that users download")
    describing.add_argument("texts", type=Path, help="for what is published elsewhere")
    describing.add_argument("--releases", default=RELEASES, help="address of the page of releases")
    describing.add_argument("--changelog", type=Path, default=ROOT / "CHANGELOG.md")
    options = parser.parse_args(arguments)
    try:
        if options.command == "check":
            check_tag(options.tag, __version__, (ROOT / "CHANGELOG.md").read_text(encoding="utf-8"))
            print(f"{options.tag} can be released.")
            return 0
        if not options.releases:
            raise SetupError("Give the address of the page of releases: --releases ADDRESS.")
        changelog = options.changelog.read_text(encoding="utf-8")
        today = datetime.datetime.now(datetime.UTC).date()
        release = describe(
            options.folder, options.texts, releases=options.releases, version=__version__, changelog=changelog,
            date=today,
        )  # fmt: skip
        for file in release.files:
            print(f"{file.n_bytes:12,}  {file.sha256}  {file.name}")
    except SetupError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
