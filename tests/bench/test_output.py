"""The formats of `qwendesk bench`."""

import csv
import io
import json

import pytest

from qwendesk.bench.output import make_output, params_text, size_text
from tests.bench.samples import record, row

ROWS = (
    row("pp512", 0, 2400.0, 2410.0, 2430.0, n_prompt=512),
    row("tg128", 2048, 90.0, 92.0, n_gen=128),
    row("text128", 0, 110.0, drafts="mtp", drafted=200, accepted=150),
    row("turn 2", 2000, 0.14, 0.16, unit="s"),
)


def printed(kind, swept=()) -> str:
    text: list[str] = []
    output = make_output(kind, text.append, swept)
    for each in ROWS:
        output.add(record(), each)
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

    make_output("json", text.append).end()

    assert json.loads("".join(text)) == []


def test_sizes_are_written_as_in_llama_bench() -> None:
    assert size_text(22_011_707_392) == "20.50 GiB"
    assert size_text(3_200_000) == "3.05 MiB"
    assert params_text(35_510_000_000) == "35.51 B"
    assert params_text(2_970_000) == "2.97 M"
