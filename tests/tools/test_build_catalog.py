"""The catalog's builder, on a few facts."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwendesk.core.units import GIB
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.catalog_schema import Contents
from tools.build_catalog import ADDED, main
from tools.catalog_texts import COMMON_PRESETS, PRESETS, PURPOSES

UNSLOTH, BARTOWSKI = "unsloth/Qwen3.5-9B-GGUF", "bartowski/Qwen_Qwen3.5-9B-GGUF"
A, B, C = "a" * 64, "b" * 64, "c" * 64


def file(path: str, kind: str = "model", **more: Any) -> dict[str, Any]:
    return {
        "path": path, "kind": kind, "size_gib_approx": 1.5, "first_seen": "2026-05-27",
        "last_state_seen": "2026-05-27", **more,
    }  # fmt: skip


def facts(repos: dict[str, list[dict[str, Any]]]) -> dict[str, Any]:
    hyper = dict.fromkeys(
        ("block_count", "embedding_length", "head_count", "head_count_kv", "key_length", "value_length",
         "full_attention_interval", "ssm_conv_kernel", "ssm_state_size", "ssm_group_count", "ssm_inner_size",
         "context_length", "vocab_size"), 1,
    )  # fmt: skip
    short = {name: name.removeprefix("Qwen3.5-").removeprefix("Qwen") for name in PURPOSES}
    preset = {"temperature": 1.0, "top_p": 0.95, "top_k": 20}
    path = f"{BARTOWSKI}/Qwen_Qwen3.5-9B-Q4_K_M.gguf"
    return {
        "_about": {"sources": ["somewhere"]},
        "repos": repos,
        "hyperparameters": {name: {"architecture": "qwen35", "unused": 7, **hyper} for name in PURPOSES},
        "release_dates": dict.fromkeys(short.values(), "2026-03-02 (approx)"),
        "sampling": {name: {"thinking_general": preset} for name in (COMMON_PRESETS, *PRESETS.values())},
        "unsloth_pinned_revisions": {"Qwen3.5/3.6 HEAD pins seen": {UNSLOTH: "d" * 40}},
        "prefix_rules": {
            "cutoffs_utc": {
                "unsloth/Qwen3.5-35B-A3B-GGUF": {"mxfp4_fix_after": "2026-02-27T18:00:00Z", "final_after": None}
            }
        },
        "superseded_sha256": [
            {"path": f"{UNSLOTH}/x-UD-Q4_K_M.gguf", "sha256": B, "seen": "2026-03-01", "reason": "removed"}
        ],
        "superseded_other": {"bartowski": [{"path": path, "sha256": C, "seen": "2026-03-09", "replaced_by": A}]},
    }


def build(tmp_path: Path, repos: dict[str, list[dict[str, Any]]]) -> Any:
    source, target = tmp_path / "facts.json", tmp_path / "catalog.json"
    source.write_text(json.dumps(facts(repos)), encoding="utf-8")
    assert main([str(source), "--output", str(target)]) == 0
    return load_catalog(target)


def test_files_shards_and_vision_files_are_listed(tmp_path: Path) -> None:
    parts = [
        file(f"BF16/Qwen3.5-9B-BF16-0000{number}-of-00002.gguf", quant="BF16", shard=number, shards=2)
        for number in (2, 1)
    ]
    pictures = [file(f"mmproj-{quant}.gguf", "mmproj") for quant in ("F32", "BF16", "F16")]
    exact = file("Qwen3.5-9B-Q4_K_M.gguf", quant="Q4_K_M", bytes=123, sha256=A)

    catalog = build(tmp_path, {UNSLOTH: [exact, *parts, *pictures], BARTOWSKI: [file("Q8_0.gguf", quant="Q8_0")]})

    single = catalog.find_file(UNSLOTH, exact["path"])
    assert (single.n_bytes, single.sha256, single.repository.revision) == (123, A, "d" * 40)
    whole = catalog.find_file(UNSLOTH, "BF16/Qwen3.5-9B-BF16-00002-of-00002.gguf")
    assert whole.file.path.endswith("00001-of-00002.gguf")
    assert (whole.file.n_bytes, whole.n_bytes) == (3 * GIB, None)
    for repo in (UNSLOTH, BARTOWSKI):
        assert (catalog.repository(repo).mmproj_repo, catalog.repository(repo).mmproj_path) == (
            UNSLOTH, "mmproj-F16.gguf",
        )  # fmt: skip
    assert catalog.superseded(C).replaced_by == A
    assert catalog.deletion(UNSLOTH, "x-UD-Q4_K_M.gguf").instead == "x-UD-Q4_K_L.gguf"
    assert catalog.model("Qwen3.5-9B").released == "2026-03-02"


def test_deleted_files_are_not_listed(tmp_path: Path) -> None:
    gone = file("old.gguf", quant="Q4_K_M", last_state_seen="2026-07-22", catalog_sizes_over_time=["1 GB", "GONE"])

    catalog = build(tmp_path, {UNSLOTH: [gone, file("mmproj-F16.gguf", "mmproj")]})

    assert catalog.find_file(UNSLOTH, "old.gguf") is None
    assert catalog.deletion(UNSLOTH, "old.gguf").noticed == "2026-07-22"
    added = msgspec.json.decode(ADDED.read_bytes(), type=Contents)
    assert catalog.date == max("2026-07-22", added.date)


def test_what_is_newer_than_the_facts_is_added(tmp_path: Path) -> None:
    catalog = build(tmp_path, {UNSLOTH: [file("mmproj-F16.gguf", "mmproj")]})

    model = catalog.model("Qwen3.8-27B")
    current = catalog.find_file("unsloth/Qwen3.8-27B-GGUF", "Qwen3.8-27B-UD-Q4_K_XL.gguf")
    assert (model.released, model.hyperparameters.block_count) == ("2026-08-14", 64)
    assert current.n_bytes == 17_559_178_144
    assert set(catalog.contents.presets[model.presets]) == {"thinking_general", "instruct_general"}


def test_set_with_a_missing_shard_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="parts are missing"):
        build(tmp_path, {UNSLOTH: [file("a-00002-of-00002.gguf", quant="Q8_0", shard=2, shards=2)]})


def test_each_file_is_one_line(tmp_path: Path) -> None:
    build(tmp_path, {UNSLOTH: [file("a.gguf", quant="Q8_0"), file("mmproj-F16.gguf", "mmproj")]})

    lines = (tmp_path / "catalog.json").read_text(encoding="utf-8").splitlines()
    assert sum('"path":"a.gguf"' in line for line in lines) == 1
