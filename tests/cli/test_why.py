"""`qwendesk why` with the real engine and the demo model."""

import json

import pytest

from qwendesk.cli import main as cli

QUICK = ("-n", "24")


def test_json_has_the_parts_of_a_token_and_a_sentence(capsys) -> None:
    assert cli.main(["why", *QUICK, "--json"]) == 0

    found = json.loads(capsys.readouterr().out)
    assert found["tokens"] == 24
    assert found["parts_ms"].keys() == {
        "weights_on_gpu", "weights_in_ram", "kv_cache_in_ram", "waits", "sampling", "own_work",
    }  # fmt: skip
    parts = found["parts_ms"]
    engine = found["timing"]["engine_s"] * 1000 / 23
    assert parts["sampling"] + parts["own_work"] + engine == pytest.approx(found["token_ms"], abs=0.01)
    assert parts["weights_in_ram"] > 0 < found["limit_ms"]
    assert found["ram_gb_s"] > 0
    assert found["weights_in_ram_bytes"] > 1_000_000
    assert found["sentence"]


def test_text_ends_with_the_sentence(capsys) -> None:
    assert cli.main(["why", *QUICK]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("Weights in RAM")
    assert lines[-2] == ""
    assert lines[-1].endswith(".")


@pytest.mark.parametrize("arguments", [("-n", "16"), ("--set", "n_ctx"), ("--set", "n_threads=many")])
def test_bad_arguments_are_refused(arguments: tuple[str, ...], capsys) -> None:
    assert cli.main(["why", *arguments]) == 2

    assert "qwendesk why: " in capsys.readouterr().err


def test_a_model_that_is_missing(capsys, tmp_path) -> None:
    assert cli.main(["why", str(tmp_path / "none.gguf")]) == 3

    assert "none.gguf" in capsys.readouterr().err
