"""Where a file came from, by what lies around it."""

from pathlib import Path

import pytest

from qwendesk.hub.file_origin import origin_of
from tests.hub.verified import COMMIT, NEW, lay_record
from tests.links import skip_without_links


@pytest.mark.parametrize(
    ("place", "repo", "path"),
    [
        ("models/unsloth/Qwen3.5-9B-GGUF/a.gguf", "unsloth/Qwen3.5-9B-GGUF", "a.gguf"),
        ("unsloth/Qwen3.5-122B-A10B-GGUF/Q4_K_M/a.gguf", "unsloth/Qwen3.5-122B-A10B-GGUF", "Q4_K_M/a.gguf"),
        ("unsloth_Qwen3.5-9B-GGUF_Qwen3.5-9B-Q4_K_M.gguf", "unsloth/Qwen3.5-9B-GGUF", "Qwen3.5-9B-Q4_K_M.gguf"),
        (
            "bartowski_Qwen_Qwen3.5-2B-GGUF_Qwen_Qwen3.5-2B-Q8_0.gguf",
            "bartowski/Qwen_Qwen3.5-2B-GGUF",
            "Qwen_Qwen3.5-2B-Q8_0.gguf",
        ),
        ("downloads/a.gguf", "", ""),
        ("some_file.gguf", "", ""),
    ],
)
def test_repository_is_known_by_folders_and_flat_names(tmp_path: Path, place: str, repo: str, path: str) -> None:
    found = origin_of(tmp_path / place)

    assert (found.repo, found.path, found.sha256) == (repo, path, "")


def test_download_record_has_commit_and_hash(tmp_path: Path) -> None:
    path = tmp_path / "unsloth" / "Qwen3.5-9B-GGUF" / "a.gguf"
    lay_record(path, f'"{NEW}"')

    found = origin_of(path)

    assert (found.repo, found.path, found.commit, found.sha256) == ("unsloth/Qwen3.5-9B-GGUF", "a.gguf", COMMIT, NEW)


def test_etag_that_is_not_a_sha256_is_ignored(tmp_path: Path) -> None:
    lay_record(tmp_path / "a.gguf", "d" * 40)

    assert origin_of(tmp_path / "a.gguf").sha256 == ""


def test_hub_cache_names_repository_commit_and_hash(tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    folder = tmp_path / "models--unsloth--Qwen3.5-9B-GGUF"
    blob = folder / "blobs" / NEW
    blob.parent.mkdir(parents=True)
    blob.write_bytes(b"x")
    link = folder / "snapshots" / COMMIT / "BF16" / "a.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)

    found = origin_of(link)

    assert (found.repo, found.path, found.commit, found.sha256) == (
        "unsloth/Qwen3.5-9B-GGUF", "BF16/a.gguf", COMMIT, NEW,
    )  # fmt: skip
    assert origin_of(blob).sha256 == NEW
