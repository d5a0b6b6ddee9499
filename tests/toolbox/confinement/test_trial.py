"""Python is offered only where a first script was seen to be confined; else the user reads why."""

import os
import platform
from pathlib import Path

import pytest

from qwendesk.toolbox.confinement import confined_run
from qwendesk.toolbox.confinement.confined_run import Outcome, find_sandbox, try_sandbox
from qwendesk.toolbox.confinement.sandbox import Sandbox


@pytest.fixture(autouse=True)
def ordinary_pc(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(confined_run, "find_bwrap", lambda: "/usr/bin/bwrap")
    monkeypatch.setattr(confined_run, "find_python", lambda: "/usr/bin/python3")
    monkeypatch.setattr(confined_run, "_RESTRICTION", Path("/nowhere"))


async def test_sandbox_of_this_pc_confines(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_run, "find_bwrap", lambda: sandbox.bwrap)
    monkeypatch.setattr(confined_run, "find_python", lambda: sandbox.python)
    assert await find_sandbox() == sandbox


async def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined_run, "find_python", lambda: "")
    assert "package python3" in str(await find_sandbox())
    monkeypatch.setattr(confined_run, "find_bwrap", lambda: "")
    assert "package bubblewrap" in str(await find_sandbox())
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "as root" in str(await find_sandbox())
    monkeypatch.setattr(platform, "machine", lambda: "aarch64")
    assert "this kind of processor" in str(await find_sandbox())


def bwrap_that(tmp_path: Path, does: str) -> Sandbox:
    program = tmp_path / "bwrap"
    program.write_text(f"#!/bin/sh\n{does}\n")
    program.chmod(0o755)
    return Sandbox(str(program), "/usr/bin/python3")


async def test_refusal_of_the_system_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    refusing = bwrap_that(tmp_path, "echo 'bwrap: setting up uid map: Permission denied' >&2; exit 1")
    assert "(bwrap: setting up uid map: Permission denied)" in await try_sandbox(refusing)
    restriction = tmp_path / "restriction"
    restriction.write_text("1\n")
    monkeypatch.setattr(confined_run, "_RESTRICTION", restriction)
    assert (await try_sandbox(refusing)).startswith("AppArmor")
    assert "can't be started" in await try_sandbox(Sandbox("/nowhere/bwrap", "/usr/bin/python3"))


async def test_sandbox_in_which_the_home_can_be_read_is_not_used(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Path, "home", lambda: Path("/var"))
    assert await try_sandbox(sandbox) == ""
    monkeypatch.setattr("qwendesk.toolbox.confinement.sandbox._SETTINGS", ("/var",))
    assert "not confined" in await try_sandbox(sandbox)
    assert "read the home folder" in caplog.text
    caplog.clear()


async def test_sandbox_without_a_filter_of_system_calls_is_not_used(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    allow_all = bytes.fromhex("060000000000ff7f")
    monkeypatch.setattr("qwendesk.toolbox.confinement.confined_run.syscall_filter", lambda: allow_all)
    assert "not confined" in await try_sandbox(sandbox)
    assert "use the network" in caplog.text
    caplog.clear()


async def test_sandbox_without_limits_is_not_used(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("qwendesk.toolbox.confinement.sandbox.LIMITS", {})
    assert "not confined" in await try_sandbox(sandbox)
    assert "start too many processes" in caplog.text
    caplog.clear()


@pytest.mark.parametrize("output", ["", "[]", '["work", "use the network"]', "no JSON", '["work"] ["work"]'])
def test_anything_but_the_expected_is_a_failure(output: str, caplog: pytest.LogCaptureFixture) -> None:
    assert confined_run._judged(Outcome(output, 0, has_started=True))
    assert confined_run._judged(Outcome('["work"]', None, stopped_for="time", has_started=True))
    assert not confined_run._judged(Outcome('["work"]', 0, has_started=True))
    caplog.clear()
