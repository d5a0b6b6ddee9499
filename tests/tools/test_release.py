"""What a release says of itself: sums, latest.json as the app reads it, and the winget manifest."""

import datetime
import hashlib
import re
from pathlib import Path

import pytest

from qwendesk.help.app_updates import Release, is_newer, latest_json, latest_page, read_release
from tools.release import PACKAGE, check_tag, describe, main, notes_of, winget_manifests
from tools.setup.project import ROOT, SetupError

PAGE = "https://example.invalid/owner/qwendesk/releases"
CHANGELOG = "# Changelog\n\n## 0.2.0 (2026-12-31)\n\n- Faster.\n- <b>Bold</b>.\n\n## 0.1.0 (unreleased)\n\n- First.\n"
DATE = datetime.date(2026, 12, 31)
SETUP = "QwenDesk-0.2.0-windows-x64-setup.exe"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / SETUP).write_bytes(b"an installer")
    (folder / "qwendesk_0.2.0_amd64.deb").write_bytes(b"a package")
    return folder


def described(folder: Path) -> Release:
    texts = folder.with_name("texts")
    return describe(folder, texts, releases=PAGE, version="0.2.0", changelog=CHANGELOG, date=DATE)


def test_notes_are_the_section_of_the_version() -> None:
    assert notes_of("0.2.0", CHANGELOG) == "- Faster.\n- <b>Bold</b>."
    with pytest.raises(SetupError, match="no section"):
        notes_of("0.3.0", CHANGELOG)
    with pytest.raises(SetupError, match="Write the date"):
        notes_of("0.1.0", CHANGELOG)


def test_tag_version_changelog_and_address_must_be_there() -> None:
    check_tag("v0.2.0", "0.2.0", CHANGELOG, releases=PAGE)
    for tag, version, releases, said in (
        ("v0.2.1", "0.2.0", PAGE, "The tag is"),
        ("v0.1.0", "0.1.0", PAGE, "Write the date"),
        ("v0.2.0", "0.2.0", "", "no address yet"),
    ):
        with pytest.raises(SetupError, match=said):
            check_tag(tag, version, CHANGELOG, releases=releases)


def test_latest_json_is_what_the_app_reads(folder: Path) -> None:
    described(folder)

    release = read_release((folder / "latest.json").read_bytes())

    assert (release.version, release.date, release.notes) == ("0.2.0", DATE, "- Faster.\n- <b>Bold</b>.")
    assert is_newer(release.version, "0.1.0")
    assert [(file.name, file.n_bytes) for file in release.files] == [(SETUP, 12), ("qwendesk_0.2.0_amd64.deb", 9)]
    sums = dict(reversed(line.split("  ")) for line in (folder / "SHA256SUMS").read_text("utf-8").splitlines())
    assert sums == {file.name: file.sha256 for file in release.files}
    assert sums[SETUP] == hashlib.sha256(b"an installer").hexdigest()


def test_winget_manifests_name_the_installer_of_this_release(folder: Path) -> None:
    yaml = pytest.importorskip("yaml")
    described(folder)
    written = folder.with_name("texts").glob("*.yaml")
    read = {path.name: yaml.safe_load(path.read_text("utf-8")) for path in written}

    assert set(read) == {f"{PACKAGE}.yaml", f"{PACKAGE}.installer.yaml", f"{PACKAGE}.locale.en-US.yaml"}
    assert {each["PackageVersion"] for each in read.values()} == {"0.2.0"}
    (installer,) = read[f"{PACKAGE}.installer.yaml"]["Installers"]
    assert installer["InstallerUrl"] == f"{PAGE}/download/v0.2.0/{SETUP}"
    assert installer["InstallerSha256"] == hashlib.sha256(b"an installer").hexdigest().upper()
    assert read[f"{PACKAGE}.locale.en-US.yaml"]["ReleaseNotes"] == "- Faster.\n- <b>Bold</b>."


def test_winget_knows_the_app_by_the_installers_id(folder: Path) -> None:
    release = described(folder)
    script = (ROOT / "packaging" / "windows" / "qwendesk.iss").read_text(encoding="utf-8")
    (app_id,) = re.findall(r"^AppId=\{(\{.+\})$", script, re.MULTILINE)

    manifest = winget_manifests(release, release.files[0], PAGE)[f"{PACKAGE}.installer.yaml"]

    assert manifest["ProductCode"] == f"{app_id}_is1"


def test_the_addresses_are_below_the_page_of_releases() -> None:
    assert latest_json(PAGE) == f"{PAGE}/latest/download/latest.json"
    assert latest_page(PAGE) == f"{PAGE}/latest"


def test_missing_files_and_addresses_are_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["describe", str(folder), str(folder.parent)]) == 1
    assert "--releases ADDRESS" in capsys.readouterr().err
    assert main(["check", "--tag", "v0.0.0"]) == 1
    assert "The tag is v0.0.0" in capsys.readouterr().err
