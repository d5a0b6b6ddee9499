"""`models get`, `info` and `search` against a Hub of our own."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from qwendesk.settings.service import settings_file
from tests.gguf_files import header_of, mmproj_values, model_values
from tests.hub.hub_server import FakeHub, running_hub

REPO = "someone/Made-Up-4B-GGUF"
MODEL, MMPROJ = header_of(model_values()), header_of(mmproj_values(64))


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with running_hub() as hub:
        hub.add(REPO, "Q4/a-00001-of-00002.gguf", MODEL)
        hub.add(REPO, "Q4/a-00002-of-00002.gguf", MODEL + b"2")
        hub.add(REPO, "whole-4B.gguf", MODEL)
        hub.add(REPO, "mmproj-BF16.gguf", MMPROJ)
        hub.add(REPO, "mmproj-F16.gguf", MMPROJ)
        yield hub


def models(hub: FakeHub, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qwendesk", "models", *arguments]
    environment = os.environ | {"HF_ENDPOINT": hub.endpoint, "PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"}
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=environment, timeout=120, check=False
    )


def test_get_downloads_all_shards_and_the_mmproj(hub, tmp_path):
    done = models(hub, "get", f"{REPO}/Q4/a-00001-of-00002.gguf", "--to", str(tmp_path), "--json")
    assert done.returncode == 0, done.stderr
    paths = [file["path"] for file in json.loads(done.stdout)["files"]]
    names = ["Q4/a-00001-of-00002.gguf", "Q4/a-00002-of-00002.gguf", "mmproj-F16.gguf"]
    assert paths == [str(tmp_path / REPO / name) for name in names]
    assert (tmp_path / REPO / "mmproj-F16.gguf").read_bytes() == MMPROJ


def test_get_names_a_licence_that_restricts_before_the_download(hub, tmp_path):
    repo = "someone/Qwen3.8-Flash-Next-GGUF"
    hub.add(repo, "Qwen3.8-Flash-Next-UD-IQ1_S.gguf", b"GGUF")
    done = models(hub, "get", f"{repo}/Qwen3.8-Flash-Next-UD-IQ1_S.gguf", "--to", str(tmp_path), "--json")
    assert json.loads(done.stdout)["licence"] == "Qwen Community License 1.0"
    licence, download = done.stderr.index("needs a separate licence"), done.stderr.index("downloaded")
    assert licence < download


def test_get_without_mmproj_and_of_a_missing_file(hub, tmp_path):
    done = models(hub, "get", f"{REPO}/whole-4B.gguf", "--to", str(tmp_path), "--no-mmproj")
    assert done.stdout.split() == [str(tmp_path / REPO / "whole-4B.gguf")]
    missing = models(hub, "get", f"{REPO}/other.gguf", "--to", str(tmp_path))
    assert missing.returncode == 1
    assert "whole-4B.gguf" in missing.stderr


def test_info_reads_a_header_without_the_file(hub):
    done = models(hub, "info", f"{REPO}/whole-4B.gguf", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["header"]["architecture"] == "qwen35moe"
    assert "mmproj-BF16.gguf" in models(hub, "info", REPO).stdout


def test_info_says_whether_mtp_is_inside(hub):
    mtp = model_values(qwen35moe__block_count=41, qwen35moe__nextn_predict_layers=1)
    hub.add(REPO, "mtp-inside-4B.gguf", header_of(mtp))
    with_mtp = models(hub, "info", f"{REPO}/mtp-inside-4B.gguf").stdout
    assert "40 layers" in with_mtp
    assert "MTP inside" in with_mtp
    assert "MTP" not in models(hub, "info", f"{REPO}/whole-4B.gguf").stdout


def test_search_marks_uncensored_models(hub):
    hub.add("who/Made-Up-abliterated-GGUF", "a.gguf", MODEL)
    done = models(hub, "search", "made-up")
    assert REPO in done.stdout
    assert "abliterated)" in done.stdout


def test_commands_without_a_connection_say_what_to_do(hub, tmp_path):
    hub.endpoint = "http://127.0.0.1:9"
    for command in (("search", "model"), ("info", REPO), ("get", f"{REPO}/whole-4B.gguf", "--to", str(tmp_path))):
        done = models(hub, *command)
        assert done.returncode != 0
        assert "No connection to 127.0.0.1:9. Check your internet connection." in done.stderr
        assert "`qwendesk models list` shows" in done.stderr


@pytest.fixture
def settings() -> Iterator[Path]:
    """The window's settings file, gone afterwards."""
    file = settings_file()
    file.parent.mkdir(parents=True, exist_ok=True)
    yield file
    file.unlink()


def test_offline_setting_of_the_window_applies(hub, settings, tmp_path):
    settings.write_text('{"offline": true}')
    for command in (("search", "model"), ("info", REPO), ("get", f"{REPO}/whole-4B.gguf", "--to", str(tmp_path))):
        done = models(hub, *command)
        assert done.returncode != 0
        assert "set to offline" in done.stderr
    assert hub.seen == []


def test_hub_address_of_the_window_applies(hub, settings):
    with running_hub() as mirror:
        mirror.add("mirrored/Repo-GGUF", "a.gguf", MODEL)
        settings.write_text(json.dumps({"hub_endpoint": mirror.endpoint}))
        assert "mirrored/Repo-GGUF" in models(hub, "search", "repo").stdout
