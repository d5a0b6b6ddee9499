"""`qwendesk verify` as a process of its own, with a Hub on the loopback."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hub.hub_server import FakeHub, running_hub
from tests.hub.verified import mmproj, unsloth
from tests.user_folders import user_variables

REPO, NAME = "unsloth/Qwen3.5-35B-A3B-GGUF", "Qwen3.5-35B-A3B-Q4_K_M.gguf"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running_hub() as hub:
        yield hub


@pytest.fixture
def model(tmp_path: Path) -> Path:
    path = unsloth(tmp_path / REPO / NAME)
    mmproj(path.with_name("mmproj-F16.gguf"))
    return path


def verify(hub: FakeHub, home: Path, *arguments: object) -> tuple[int, list[str], str]:
    """Exit status, codes of the one file, and what was noted."""
    environment = os.environ | user_variables(home) | {"HF_ENDPOINT": hub.endpoint, "HF_TOKEN": "x"}
    done = subprocess.run(
        [sys.executable, "-m", "qwendesk", "verify", "--json", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        env=environment,
    )
    files: list[dict[str, Any]] = json.loads(done.stdout)["files"]
    return done.returncode, [finding["code"] for finding in files[0]["findings"]], done.stderr


def test_current_file_is_good(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, model.read_bytes())

    assert verify(hub, tmp_path / "home", model)[:2] == (0, [])
    assert verify(hub, tmp_path / "home", "--full", model)[:2] == (0, [])


def test_a_replaced_file_is_outdated(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, b"another upload")
    assert verify(hub, tmp_path / "home", "--offline", model)[:2] == (0, [])

    assert verify(hub, tmp_path / "home", model)[:2] == (1, ["outdated-upstream"])


def test_replaced_upload_stays_outdated_offline(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    hub.add(REPO, NAME, model.read_bytes())
    verify(hub, tmp_path / "home", "--full", model)
    hub.add(REPO, NAME, b"another upload")
    assert "outdated-upstream" in verify(hub, tmp_path / "home", "--full", model)[1]

    assert "outdated-upstream" in verify(hub, tmp_path / "home", "--full", "--offline", model)[1]


def test_offline_setting_prevents_requests(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    assert verify(hub, tmp_path / "home", "--offline", model)[0] == 0
    assert hub.seen == []


def test_file_without_a_repository_causes_no_request(hub: FakeHub, tmp_path: Path) -> None:
    loose = unsloth(tmp_path / "loose" / NAME)

    assert verify(hub, tmp_path / "home", loose)[0] == 0
    assert hub.seen == []


def test_unreachable_hub_is_noted_and_the_catalog_is_used(hub: FakeHub, model: Path, tmp_path: Path) -> None:
    hub.endpoint = "http://127.0.0.1:9"

    status, codes, noted = verify(hub, tmp_path / "home", model)

    assert (status, codes) == (0, [])
    assert "Using the catalog of" in noted
