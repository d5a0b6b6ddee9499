"""`qwendesk recommend`: the JSON that scripts read, the text that people read, and bad input."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from qwendesk.core.units import GIB
from qwendesk.hub.catalog import load_catalog

TWO_3090 = ("--gpu", "RTX 3090:24", "--gpu", "RTX 3090:24", "--ram", "64", "--reserve", "1")
KEYS = [
    "model", "quant", "repository", "file", "fits", "where", "table_on_drive_bytes", "n_ctx", "options",
    "expected_tok_s", "speed_source", "speeds", "speed_engine", "other_engines", "reason", "drawback", "licence",
]  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qwendesk", "recommend", *arguments]
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=os.environ, timeout=150, check=False
    )


def recommended(*arguments: str, code: int = 0) -> dict[str, Any]:
    done = run(*arguments, "--offline", "--json")
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_the_json_has_the_same_keys_for_every_choice() -> None:
    found = recommended(*TWO_3090, "--purpose", "quality")

    assert list(found) == ["pc", "catalog", "choices"]
    assert [gpu["name"] for gpu in found["pc"]["gpus"]] == ["RTX 3090", "RTX 3090"]
    assert (found["pc"]["ram_bytes"], found["pc"]["reserve_bytes"]) == (64 * GIB, GIB)
    assert all(list(choice) == KEYS for choice in found["choices"])
    for choice in found["choices"]:
        low, high = choice["expected_tok_s"]
        assert 0 < low <= high
        assert choice["speed_source"] in ("reported", "estimated")
        assert choice["where"] in ("gpu", "split", "cpu")
        assert choice["licence"]["name"]
        assert choice["fits"] is True
        assert choice["options"]["n_ctx"] == choice["n_ctx"]
        assert load_catalog().find_file(choice["repository"], choice["file"]) is not None


def test_a_table_on_the_drive_and_a_licence_that_restricts_are_named() -> None:
    """Weights are on the GPU and in RAM; only the table stays on the drive."""
    arguments = ("--gpu", "RTX 4090:24", "--ram", "128", "--purpose", "deep")
    first = recommended(*arguments)["choices"][0]
    said = run(*arguments).stdout

    assert (first["model"], first["where"]) == ("Qwen3.8-Flash-Next", "split")
    assert first["table_on_drive_bytes"] == pytest.approx(28.8e9, rel=1e-3)
    assert "needs a separate licence" in first["licence"]["restriction"]
    assert "A table of 26.8 GB stays on the drive" in said
    assert "Licence: Qwen Community License 1.0. " in said
    assert "Licence: Apache 2.0." in said


def test_the_first_choice_comes_with_the_options_to_load_it_with() -> None:
    first = recommended(*TWO_3090, "--purpose", "quality")["choices"][0]

    assert (first["model"], first["quant"], first["where"]) == ("Qwen3.8-Flash-Next", "UD-Q4_K_XL", "split")
    assert len(first["options"]["tensor_split"]) == 2
    assert first["options"]["model"] == first["file"]
    assert first["options"]["mmproj"].startswith("mmproj")


def test_without_pictures_no_vision_file_is_loaded() -> None:
    choices = recommended("--gpu", "RTX 3090:24", "--ram", "64", "--no-pictures")["choices"]
    assert {choice["options"]["mmproj"] for choice in choices} == {""}


def test_memory_that_is_in_use_makes_room_for_less() -> None:
    all_free, in_use = (
        recommended("--gpu", gpu, "--ram", "32", "--purpose", "deep")["choices"][0]
        for gpu in ("RTX 3090:24", "RTX 3090:24:14")
    )
    assert all_free["where"] == "gpu"
    assert (in_use["quant"], in_use["n_ctx"]) != (all_free["quant"], all_free["n_ctx"])


def test_the_text_has_reason_drawback_results_and_sources() -> None:
    done = run("--gpu", "RTX 3090:24", "--ram", "64", "--offline")

    assert done.returncode == 0
    assert "1. Qwen3.6-35B-A3B UD-IQ4_XS" in done.stdout
    assert "2. Qwen3.5-35B-A3B UD-Q4_K_L" in done.stdout
    assert "Others report" in done.stdout
    assert "Why: " in done.stdout
    assert "But: " in done.stdout
    assert "GPQA Diamond 86.0" in done.stdout
    assert "huggingface.co/Qwen/Qwen3.5-35B-A3B, 2026-02-24" in done.stdout
    assert "perplexity 6.589 (+0.6%)" in done.stdout


def test_speeds_say_whose_they_are_and_name_a_faster_program_for_that_model() -> None:
    """Flash-Next is many times as fast in Strata (github.com/Niko1221/Strata, October 2026)."""
    done = run("--gpu", "RTX 3090:24", "--ram", "64", "--offline", "--purpose", "deep")
    assert "1. Qwen3.8-Flash-Next" in done.stdout
    assert "All other speeds of this model here are llama.cpp's." in done.stdout
    assert "Reported with Strata, another program: 53 tok/s on RTX 5070 with 64 GB of RAM, IQ3_S (" in done.stdout
    assert done.stdout.count("llama.cpp's") == 1, "other models have no such program"
    flash, other = recommended("--gpu", "RTX 3090:24", "--ram", "64", "--purpose", "deep")["choices"][:2]
    assert {each["engine"] for each in flash["other_engines"]} == {"Strata"}
    assert all(each["source"] and each["date"] for each in flash["other_engines"])
    assert (flash["speed_engine"], other["other_engines"]) == ("llama.cpp", [])


def test_a_pc_that_fits_nothing_gets_an_empty_list_and_status_1() -> None:
    found = recommended("--vram", "0", "--ram", "0.5", code=1)
    assert found["choices"] == []


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("--purpose", "cheap"), "invalid choice"),
        (("--gpu", "RTX 3090"), "--gpu takes NAME:GIB"),
        (("--gpu", "RTX 3090:much"), "a number of GiB"),
        (("--gpu", "RTX 3090:24", "--unified", "64"), "exclude each other"),
        (("--vram", "8", "--ram", "-3"), "a valid size in GiB"),
    ],
    ids=str,
)
def test_bad_input_is_reported_in_a_sentence(arguments: tuple[str, ...], said: str) -> None:
    done = run(*arguments)

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_why_not_names_both_models_and_each_rule() -> None:
    done = run("--gpu", "RTX 3090:24", "--ram", "64", "--offline", "--why", "3.8-27b")
    lines = done.stdout.splitlines()
    assert done.returncode == 0
    assert lines[3].startswith("Qwen3.6-35B-A3B UD-IQ4_XS: GPQA Diamond 86.0, about 118 tok/s (reported)")
    assert lines[4].startswith("Qwen3.8-27B UD-Q4_K_M: GPQA Diamond 89.2, about 36 tok/s (reported)")
    assert lines[6] == "Why Qwen3.6-35B-A3B comes before Qwen3.8-27B:"
    assert [line[:3] for line in lines[7:]] == ["1. ", "2. "]

    found = recommended("--gpu", "RTX 3090:24", "--ram", "64", "--why", "Qwen3.6-35B-A3B")
    assert found["why_not"] == {"model": "Qwen3.6-35B-A3B", "reasons": []}


@pytest.mark.parametrize("name", ["27B", "", "gpt-oss"])
def test_why_not_takes_one_model_of_the_catalog(name: str) -> None:
    done = run("--vram", "0", "--ram", "16", "--offline", "--why", name)
    assert done.returncode == 2
    assert "Qwen3.8-27B" in done.stderr
