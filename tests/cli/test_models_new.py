"""`qwendesk models new` against a made-up Hub with a made-up Qwen4-27B."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.hub_server import FakeHub, running_hub
from tests.hub.test_hub_hostile import answer
from tests.models.new_hub import BASE, NAME, REPO, add_qwen4

UNKNOWN = "unsloth/Qwen4-80B-A3B-GGUF"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running_hub() as hub:
        add_qwen4(hub)
        add_qwen4(hub, UNKNOWN, architecture="qwen4")
        yield hub


@pytest.fixture
def home(tmp_path: Path) -> dict[str, str]:
    """Environment variables of a home of its own, so that later tests know of no new models."""
    names = ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME", "LOCALAPPDATA", "APPDATA")
    return dict.fromkeys(names, str(tmp_path))


def new(hub: FakeHub, home: dict[str, str], *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qwendesk", "models", "new", "--gpu", "RTX 3090:24", "--ram", "64", *arguments]
    keyring = {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        encoding="utf-8",
        env=os.environ | home | keyring | {"HF_ENDPOINT": hub.endpoint},
        timeout=120,
        check=False,
    )


def test_each_new_model_is_told_with_its_fit_and_how_to_get_it(hub, home):
    done = new(hub, home)
    assert done.returncode == 0, done.stderr
    fits, other = done.stdout.strip().split("\n\n")
    assert fits.startswith(f"{NAME}  (72 layers")
    assert "  Fits in VRAM with vision: " in fits
    assert f"  {hub.endpoint}/{BASE}" in fits
    assert fits.endswith(f"  qwendesk models get {REPO}/{NAME}-Q4_K_M.gguf")
    assert "Can't be loaded here" in other
    assert "newer engine" in other
    assert "models get" not in other


def test_rate_limit_prints_what_is_known_as_json(hub, home):
    assert new(hub, home, "--json").returncode == 0
    hub.instead["/api/models"] = answer(b"", 429)
    done = new(hub, home, "--json")
    assert done.returncode == 1
    said = json.loads(done.stdout)
    assert {model["repo"]: model["fit"] for model in said["models"]} == {REPO: "vram", UNKNOWN: None}
    assert "limits how often" in said["problem"]


def test_nothing_new_is_said(hub, home):
    hub.repos.clear()
    assert new(hub, home).stdout == "No new models.\n"


def test_without_an_answer_nothing_is_said_to_be_new_or_not(hub, home):
    hub.instead["/api/models"] = answer(b"", 429)
    done = new(hub, home)
    assert (done.returncode, done.stdout) == (1, "")
    assert "limits how often" in done.stderr


def test_a_file_name_that_a_shell_would_run_is_quoted(hub, home):
    hub.repos[REPO] = {path.replace(f"{NAME}-Q4", f"{NAME} $(ls)-Q4"): data for path, data in hub.repos[REPO].items()}
    assert f"  qwendesk models get '{REPO}/{NAME} $(ls)-Q4_K_M.gguf'" in new(hub, home).stdout.splitlines()
