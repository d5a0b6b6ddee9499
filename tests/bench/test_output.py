"""The formats of `qwendesk bench`."""

import csv
import io
import json

import pytest

from qwendesk.bench.output import (
    Output,
    params_text,
    score_cells,
    score_fields,
    size_text,
    speed_cells,
    speed_fields,
)
from qwendesk.core.benchmarks import Divergence, TextScore
from tests.bench.samples import record, row

ROWS = (
    row("pp512", 0, 2400.0, 2410.0, 2430.0, n_prompt=512),
    row("tg128", 2048, 90.0, 92.0, n_gen=128),
    row("text128", 0, 110.0, drafts="mtp", drafted=200, accepted=150),
    row("turn 2", 2000, 0.14, 0.16, unit="s"),
)


def printed(kind, swept=()) -> str:
    text: list[str] = []
    output = Output(kind, text.append)
    for each in ROWS:
        output.add(speed_cells(record(), each, swept), speed_fields(record(), each))
    output.end()
    return "".join(text)


def test_markdown_has_llama_bench_s_columns_in_equal_widths() -> None:
    lines = printed("md", ("n_ubatch",)).splitlines()

    assert [cell.strip() for cell in lines[0].strip("|").split("|")] == [
        "model", "size", "params", "backend", "ngl", "n_ubatch", "drafts", "test", "t/s",
    ]  # fmt: skip
    assert set(lines[1]) <= set("|-: ")
    assert len({len(line) for line in lines[:4]}) == 1
    assert lines[2].endswith(" 2410.00 ± 15.28 |")
    assert "tg128 @ d2048" in lines[3]
    assert "mtp 75%" in lines[4]
    assert "0.15 ± 0.01 s" in lines[5]


def test_csv_can_be_read_and_has_llama_bench_s_fields() -> None:
    read = list(csv.DictReader(io.StringIO(printed("csv"))))

    assert len(read) == len(ROWS)
    assert read[0]["model_filename"] == "Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf"
    assert (read[0]["n_prompt"], read[0]["n_gen"], read[1]["n_depth"]) == ("512", "0", "2048")
    assert float(read[0]["avg_ts"]) == pytest.approx(2413.333333)
    assert float(read[0]["median"]) == 2410
    assert read[3]["unit"] == "s"


def test_json_and_json_lines_have_all_samples() -> None:
    whole = json.loads(printed("json"))
    lines = [json.loads(line) for line in printed("jsonl").splitlines()]

    assert whole == lines
    assert whole[1]["samples"] == [90.0, 92.0]
    assert (whole[2]["drafted"], whole[2]["accepted"]) == (200, 150)
    assert whole[3]["avg_ts"] is None


def test_json_of_nothing_is_an_empty_list() -> None:
    text: list[str] = []

    Output("json", text.append).end()

    assert json.loads("".join(text)) == []


def test_sizes_are_written_as_in_llama_bench() -> None:
    assert size_text(22_011_707_392) == "20.50 GiB"
    assert size_text(3_200_000) == "3.05 MiB"
    assert params_text(35_510_000_000) == "35.51 B"
    assert params_text(2_970_000) == "2.97 M"


def test_a_score_has_its_divergence_only_with_a_base() -> None:
    plain = TextScore(n_chunks=20, n_tokens=5100, perplexity=6.6834, error=0.0412)
    divergence = Divergence(
        mean=0.0036, error=0.0004, median=0.0004, p99=0.079, maximum=1.03, same_top=0.98, base_perplexity=6.67
    )
    compared = TextScore(n_chunks=20, n_tokens=5100, perplexity=6.6834, error=0.0412, divergence=divergence)

    assert score_cells(record(), plain, 512)["PPL"] == "6.6834 ± 0.0412"
    assert "KLD" not in score_cells(record(), plain, 512)
    cells = score_cells(record(), compared, 512, ("type_k",))
    assert (cells["KLD"], cells["same top"], cells["type_k"]) == ("0.003600 ± 0.000400", "98.00%", "f16")
    assert score_fields(record(), plain, 512)["kld_mean"] is None
    assert score_fields(record(), compared, 512)["kld_mean"] == 0.0036
