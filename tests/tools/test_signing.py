"""What is signed for Windows and for Macs, in which order, and with what: nothing here signs anything."""

import plistlib
import sys
from pathlib import Path

import pytest

from qwendesk import __version__
from tests.tools.dlls import make_dll
from tools.bundle import macos, sign
from tools.bundle.__main__ import chosen_engines
from tools.bundle.engines import METAL
from tools.bundle.installer import find_compiler
from tools.setup.project import SetupError

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="the made-up signtool is a script with a first line")
SIGNS = """#!{python}
# Notes its arguments, and writes where a signature would be into each file.
import struct, sys
open({log!r}, "a").write(" ".join(sys.argv[1:]) + "\\n")
for name in sys.argv[sys.argv.index("/p") + 2:]:
    with open(name, "r+b") as file:
        file.seek(64 + 24 + 112 + 8 * 4)
        file.write(struct.pack("<II", 0x400, 8))
"""


def signtool(folder: Path, log: Path) -> Path:
    tool = folder / "signtool.exe"
    tool.write_text(SIGNS.format(python=sys.executable, log=str(log)))
    tool.chmod(0o755)
    return tool


@POSIX
def test_every_program_and_library_is_signed_once_and_nothing_else(tmp_path: Path) -> None:
    bundle = tmp_path / "QwenDesk"
    (bundle / "_internal" / "engines").mkdir(parents=True)
    for name in ("QwenDesk.exe", "_internal/python313.dll", "_internal/_ssl.pyd", "_internal/engines/ggml.dll"):
        make_dll(bundle / name, ["kernel32.dll"])
    (bundle / "_internal" / "notes.dll").write_text("no library")
    (bundle / "_internal" / "base.zip").write_bytes(b"PK")
    files = sign.unsigned([bundle])
    assert {file.name for file in files} == {"QwenDesk.exe", "python313.dll", "_ssl.pyd", "ggml.dll"}

    sign.sign(files[:1], b"pfx", "secret", signtool(tmp_path, tmp_path / "log"))
    sign.sign(sign.unsigned([bundle]), b"pfx", "secret", signtool(tmp_path, tmp_path / "log"))

    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.startswith("sign /fd SHA256 /td SHA256 /tr http")
    assert (first.count(str(bundle)), second.count(str(bundle))) == (1, 3)
    assert sign.unsigned([bundle]) == []


@POSIX
def test_a_file_that_stays_without_signature_stops_the_release(tmp_path: Path) -> None:
    tool = tmp_path / "signtool.exe"
    tool.write_text("#!/bin/sh\nexit 0\n")
    tool.chmod(0o755)
    library = make_dll(tmp_path / "a.dll", ["kernel32.dll"])
    with pytest.raises(SetupError, match=r"Still without a signature: a\.dll"):
        sign.sign([library], b"pfx", "secret", tool)


def test_without_a_certificate_it_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("CERTIFICATE", raising=False)
    make_dll(tmp_path / "a.dll", ["kernel32.dll"])
    assert sign.main([str(tmp_path)]) == 0
    assert "Not signed, because there is no certificate: 1 programs" in capsys.readouterr().out


def test_newest_signtool_and_inno_setup_are_found(tmp_path: Path) -> None:
    environment = {"ProgramFiles(x86)": str(tmp_path)}
    for find in (sign.find_signtool, find_compiler):
        with pytest.raises(SetupError):
            find(environment)
    for release in ("10.0.19041.0", "10.0.22621.0"):
        tool = tmp_path / "Windows Kits" / "10" / "bin" / release / "x64" / "signtool.exe"
        tool.parent.mkdir(parents=True)
        tool.touch()
    compiler = tmp_path / "Inno Setup 6" / "ISCC.exe"
    compiler.parent.mkdir()
    compiler.touch()
    assert "22621" in str(sign.find_signtool(environment))
    assert find_compiler(environment) == compiler


@pytest.fixture
def app(tmp_path: Path) -> Path:
    app = tmp_path / "QwenDesk.app"
    for name in (
        "MacOS/QwenDesk",
        "MacOS/QwenDeskEngine",
        "Frameworks/engines/metal/libllama.dylib",
        "Resources/a.txt",
    ):
        file = app / "Contents" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    return app


def test_mac_signs_libraries_first_and_the_app_last(app: Path) -> None:
    commands = macos.sign_commands(app, "Developer ID Application: Somebody")
    assert [Path(command[-1]).name for command in commands] == [
        "libllama.dylib", "QwenDesk", "QwenDeskEngine", "QwenDesk.app",
    ]  # fmt: skip
    assert all("--timestamp" in command for command in commands)
    assert all("runtime" in command for command in commands[1:])
    assert not any("--timestamp" in command for command in macos.sign_commands(app, "-"))
    assert plistlib.loads(macos.ENTITLEMENTS.read_bytes())


def test_mac_is_notarised_only_with_an_account() -> None:
    image = Path("QwenDesk.dmg")
    account = {"APPLE_ID": "a@example.invalid", "TEAM_ID": "T", "APP_PASSWORD": "p"}
    assert macos.notarise_commands(image, {**account, "TEAM_ID": ""}) == []
    submit, staple = macos.notarise_commands(image, account)
    assert submit[:4] == ["xcrun", "notarytool", "submit", "QwenDesk.dmg"]
    assert "--wait" in submit
    assert staple == ["xcrun", "stapler", "staple", "QwenDesk.dmg"]


def test_info_plist_names_the_version_and_opens_models() -> None:
    written = plistlib.loads(plistlib.dumps(macos.info_plist(__version__)))
    assert written["CFBundleShortVersionString"] == __version__
    (opened,) = written["CFBundleDocumentTypes"]
    assert (opened["CFBundleTypeExtensions"], opened["LSHandlerRank"]) == (["gguf"], "Alternate")


def test_bundle_for_a_mac_has_the_metal_engine_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    assert chosen_engines("auto", "0.3.36") == (METAL,)
