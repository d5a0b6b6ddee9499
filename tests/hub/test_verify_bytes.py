"""Broken files are found and called by their names; sound ones are left in peace."""

from pathlib import Path

import pytest

from qwendesk.core import paths
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.evidence import Upstream
from qwendesk.hub.file_hashes import hash_file
from qwendesk.hub.findings import verdict
from qwendesk.hub.verify import verify
from tests.gguf_files import mmproj_values, raw_header, tensor, write_cut, write_model
from tests.hub.verified import (
    NEW,
    OTHER,
    REPO,
    asked,
    catalog,
    codes,
    current,
    current_set,
    findings,
    full,
    gather,
    lay_record,
    mmproj,
    qwen,
    split,
)  # fmt: skip
from tests.links import skip_without_links

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 899283648\n"
PAGE = b"\n<!DOCTYPE html>\n<html><body>404</body></html>"


@pytest.mark.parametrize("path", [paths.demo_model(), paths.demo_mmproj()], ids=["model", "mmproj"])
def test_demo_files_have_no_findings(path: Path) -> None:
    assert verify(full(path), load_catalog()) == ()


def test_sound_file_and_sound_set_have_no_findings(tmp_path: Path) -> None:
    assert codes(full(qwen(tmp_path / "one" / "Qwen3.5-35B-A3B-Q4_K_M.gguf"))) == set()
    assert codes(full(split(tmp_path / "set")[0])) == set()


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (POINTER, "lfs-pointer"),
        (PAGE, "html-instead-of-model"),
        (b"<?xml version='1.0'?><Error><Code>AccessDenied</Code></Error>", "html-instead-of-model"),
        (b'{"error":"Invalid username or password."}', "not-gguf"),
        (b"Entry not found", "not-gguf"),
        (bytes(5000), "not-gguf"),
        (b"PK\x03\x04" + bytes(100), "not-gguf"),
        (b"", "truncated"),
        (b"GG", "truncated"),
        (raw_header(n_values=2**63), "not-gguf"),
    ],
)
def test_files_that_are_not_models_get_the_code_of_what_they_are(tmp_path: Path, content: bytes, code: str) -> None:
    path = tmp_path / "Qwen3.5-35B-A3B-Q4_K_M.gguf"
    path.write_bytes(content)

    found = findings(path)

    assert set(found) == {code}
    assert found[code].severity == "bad"


def test_a_file_cut_anywhere_is_truncated(tmp_path: Path) -> None:
    whole = qwen(tmp_path / "whole.gguf").read_bytes()
    for length in range(0, len(whole), 97):
        assert codes(write_cut(tmp_path / "cut.gguf", whole, length)) == {"truncated"}, length


def test_the_fix_is_the_same_file_from_its_repository(tmp_path: Path) -> None:
    path = tmp_path / REPO / "Qwen3.5-35B-A3B-Q4_K_M.gguf"
    qwen(path)
    write_cut(path, path.read_bytes(), 1000)

    fix = findings(path, catalog(files=[current(path.name)]))["truncated"].fix

    assert fix is not None
    assert (fix.kind, fix.repo, fix.path) == ("download_again", REPO, path.name)
    assert "18.6 GB" in fix.label


@pytest.mark.parametrize("content", [POINTER, PAGE, b"GGUF" + bytes(1020)])
def test_an_mmproj_of_1_kb_is_too_small(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "mmproj-F16.gguf"
    path.write_bytes(content)

    assert "too-small-mmproj" in codes(path)
    assert verdict(findings(path).values()) == "bad"


def test_an_mmproj_without_tensors_is_too_small(tmp_path: Path) -> None:
    assert codes(write_model(tmp_path / "mmproj-F16.gguf", mmproj_values(64))) == {"too-small-mmproj"}


def test_small_complete_mmproj_has_no_findings(tmp_path: Path) -> None:
    assert codes(mmproj(tmp_path / "mmproj-F16.gguf")) == set()


@pytest.mark.parametrize(("missing", "asked_for"), [(0, 1), (0, 2), (1, 0), (1, 2), (2, 0), (2, 1)])
def test_a_missing_shard_is_named(tmp_path: Path, missing: int, asked_for: int) -> None:
    parts = split(tmp_path)
    parts[missing].unlink()

    found = findings(parts[asked_for])

    assert set(found) == {"missing-shard"}
    assert parts[missing].name in found["missing-shard"].message


def test_a_shard_under_another_name_cannot_find_the_others(tmp_path: Path) -> None:
    split(tmp_path)[0].rename(tmp_path / "model.gguf")

    assert "missing-shard" in codes(tmp_path / "model.gguf")


def test_a_cut_shard_makes_the_set_truncated(tmp_path: Path) -> None:
    parts = split(tmp_path)
    write_cut(parts[2], parts[2].read_bytes(), 100)

    assert codes(parts[0]) == {"truncated"}


def test_shards_with_wrong_numbers_do_not_belong_together(tmp_path: Path) -> None:
    parts = split(tmp_path)
    parts[1].rename(tmp_path / "x")
    parts[2].rename(parts[1])
    (tmp_path / "x").rename(parts[2])

    assert codes(parts[0]) == {"shard-mismatch"}


def test_shards_of_different_sets_do_not_belong_together(tmp_path: Path) -> None:
    parts, others = split(tmp_path / "a"), split(tmp_path / "b", total=9)
    parts[0].write_bytes(others[0].read_bytes())

    assert codes(parts[0]) == {"shard-mismatch"}


def test_the_same_tensors_in_two_shards_do_not_belong_together(tmp_path: Path) -> None:
    parts = split(tmp_path)
    content = parts[1].read_bytes().replace(b"blk.0.", b"blk.1.")
    parts[1].write_bytes(content)

    assert codes(parts[0]) == {"shard-mismatch"}


def test_shard_1_of_1_is_not_a_set(tmp_path: Path) -> None:
    assert codes(qwen(tmp_path / "Qwen3.5-35B-A3B-Q4_K_M-00001-of-00001.gguf", split__count=1)) == set()


def test_file_longer_than_its_header_says_is_found(tmp_path: Path) -> None:
    path = qwen(tmp_path / "model.gguf")
    path.write_bytes(path.read_bytes() + bytes(10_000))

    found = findings(path)

    assert set(found) == {"size-mismatch", "no-mmproj"}
    assert found["size-mismatch"].severity == "warning"


def test_padding_at_the_end_is_accepted(tmp_path: Path) -> None:
    path = qwen(tmp_path / "model.gguf")
    path.write_bytes(path.read_bytes() + bytes(64))

    assert codes(path) == set()


def test_size_differing_from_the_record_is_bad(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / "Qwen3.5-35B-A3B-Q4_K_M.gguf")
    lay_record(path, NEW)

    found = findings(path, catalog(files=[current(path.name)]))

    assert found["size-mismatch"].severity == "bad"


def test_hash_mismatch_is_bad_only_when_computed(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / "Qwen3.5-35B-A3B-Q4_K_M.gguf")
    lay_record(path, OTHER)

    assert codes(path) == set()
    assert findings(full(path))["hash-mismatch"].severity == "bad"


def test_recorded_hash_has_no_finding(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / "Qwen3.5-35B-A3B-Q4_K_M.gguf")
    lay_record(path, hash_file(path))

    assert codes(full(path)) == set()


def test_current_bytes_win_over_an_old_record(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / "Qwen3.5-35B-A3B-Q4_K_M.gguf")
    lay_record(path, OTHER)
    sha256 = hash_file(path)

    assert codes(full(path), catalog(files=[current(path.name, sha256, path.stat().st_size)])) == set()
    assert codes(asked(full(path), Upstream(n_bytes=path.stat().st_size, sha256=sha256))) == set()


def test_the_right_size_with_wrong_bytes_is_a_warning(tmp_path: Path) -> None:
    path = qwen(tmp_path / REPO / "Qwen3.5-35B-A3B-Q4_K_M.gguf")
    known = catalog(files=[current(path.name, NEW, path.stat().st_size)])

    assert codes(path, known) == set()
    assert findings(full(path), known)["hash-mismatch"].severity == "warning"


def test_a_damaged_blob_of_the_hub_cache_is_found(tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    folder = tmp_path / "models--unsloth--Qwen3.5-35B-A3B-GGUF"
    blob = qwen(folder / "blobs" / NEW)
    link = folder / "snapshots" / ("d" * 40) / "Qwen3.5-35B-A3B-Q4_K_M.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)

    assert codes(full(link)) == {"hash-mismatch"}


def test_file_names_with_other_hashes_are_not_taken_for_damage(tmp_path: Path) -> None:
    skip_without_links(tmp_path)
    blob = qwen(tmp_path / "blobs" / "bb" / NEW)
    link = tmp_path / "models--unsloth--Qwen3.5-35B-A3B-GGUF" / "snapshots" / ("d" * 40) / "Qwen3.5-35B-A3B-Q4_K_M.gguf"
    link.parent.mkdir(parents=True)
    link.symlink_to(blob)

    assert codes(full(link)) == set()


def test_first_shard_proves_nothing_about_the_set(tmp_path: Path) -> None:
    parts = split(tmp_path / REPO)
    hashes = [hash_file(part) for part in parts]
    known = catalog(files=[current_set(parts[0].name, [OTHER, hashes[1], hashes[2]])])

    assert codes(full(parts[0]), known) == set()


def test_an_unknown_tensor_type_is_not_called_damage(tmp_path: Path) -> None:
    path = qwen(tmp_path / "model.gguf", [tensor("w.weight", 64)])
    content = path.read_bytes()
    at = content.index(b"w.weight") + len(b"w.weight") + 4 + 8
    path.write_bytes(content[:at] + (99).to_bytes(4, "little") + content[at + 4 :])

    found = findings(path)

    assert set(found) == {"unsupported-arch"}
    assert found["unsupported-arch"].severity == "warning"


def test_evidence_of_a_set_has_all_its_bytes(tmp_path: Path) -> None:
    parts = split(tmp_path)
    evidence = gather(parts[1])

    assert evidence.path == str(parts[0])
    assert evidence.n_bytes == sum(part.stat().st_size for part in parts)
