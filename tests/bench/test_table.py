"""The table of the window, and the text to share."""

from pathlib import Path

import msgspec
import pytest

from qwendesk.bench.share import share_text
from qwendesk.bench.speed_service import published_speeds
from qwendesk.bench.speeds import SpeedPlan, expected_duration_s
from qwendesk.bench.table import reported_at, table_lines
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.catalog_schema import SpeedReport
from tests.bench.samples import record, row

ROWS = (
    row("tg128", 8192, 85.0),
    row("pp512", 0, 2410.0, 2400.0, 2430.0),
    row("tg128", 0, 91.0),
    row("text128", 0, 90.0),
    row("turn 2", 2000, 0.14, unit="s"),
    row("text128", 0, 112.0, drafts="mtp", drafted=100, accepted=80),
)
REPORTS = (
    SpeedReport(model="Qwen3.5-35B-A3B", gpus=("RTX 3090",), quant="Q4", n_bytes=20_190_000_000, tok_s=104, source="A"),
    SpeedReport(
        model="Qwen3.5-35B-A3B", gpus=("RTX 3090",), quant="Q4", n_bytes=20_190_000_000, tok_s=90, most_tok_s=94,
        depth=9000, source="A",
    ),
)  # fmt: skip


def test_lines_are_in_order_with_gain_and_reports() -> None:
    lines = table_lines(ROWS, REPORTS)

    assert [line.test for line in lines] == ["pp512", "tg128", "tg128 @ d8192", "text128", "turn 2 @ d2000"]
    pp512, tg128, deep, text, turn = lines
    assert pp512.plain == "2,410 ± 15.3"
    assert (tg128.reported, deep.reported, text.reported) == ("104", "92", "")
    assert text.with_drafts == "112 ± 0.0 (80 %)"
    assert text.gain == "+24 %"
    assert text.is_gain
    assert turn.plain == "0.14 s ± 0.00"


def test_a_loss_by_drafts_is_no_gain() -> None:
    (line,) = table_lines((row("text128", 0, 100.0), row("text128", 0, 80.0, drafts="lookup")))

    assert line.gain == "-20 %"
    assert not line.is_gain


def test_what_the_user_pasted_is_no_report_of_others() -> None:
    pasted = tuple(msgspec.structs.replace(report, is_pasted=True) for report in REPORTS)
    line = next(each for each in table_lines(ROWS, pasted) if each.test == "tg128")
    assert line.reported == "104 (pasted)"


def test_reports_of_far_other_depths_are_not_compared() -> None:
    assert reported_at(REPORTS, 131_072) is None
    assert reported_at(REPORTS, 8192) == REPORTS[1]
    assert reported_at((), 0) is None


def test_shared_text_has_pc_options_and_table_and_no_folder() -> None:
    text = share_text(record(*ROWS, notes=(f"Left out: {Path.home() / 'models' / 'x.gguf'}",)), REPORTS)

    assert "RTX 3090 · 64 GB RAM" in text
    assert "backend CUDA · ngl 99" in text
    assert "| tg128 |  | 91.0 ± 0.0 | 104 |  |" in text
    assert "Reported: A" in text
    assert str(Path.home()) not in text


def test_published_speeds_are_those_of_this_card_or_else_of_the_card_with_most_reports() -> None:
    facts = ModelFacts(
        path="/m/Qwen3.5-35B-A3B-UD-Q4_K_XL.gguf", file_bytes=20_600_000_000, kind="model", architecture="qwen35moe",
        name="Qwen3.5-35B-A3B",
    )  # fmt: skip
    card = DeviceInfo(name="CUDA0", description="NVIDIA GeForce RTX 3090", kind="gpu", backend="CUDA")
    cpu = DeviceInfo(name="CPU", description="CPU", kind="cpu", backend="CPU")

    here = published_speeds(load_catalog(), facts, facts.path, (card,))
    elsewhere = published_speeds(load_catalog(), facts, facts.path, (cpu,))

    assert here
    assert {report.gpus for report in here} == {("RTX 3090",)}
    assert [report.depth for report in here] == sorted(report.depth for report in here)
    assert len({report.gpus for report in elsewhere}) == 1
    assert not any(report.has_old_engine for report in (*here, *elsewhere))


def test_nothing_is_published_of_an_unknown_model() -> None:
    facts = ModelFacts(path="/m/x.gguf", file_bytes=1000, kind="model", architecture="llama", name="Something")

    assert published_speeds(load_catalog(), facts, facts.path, ()) == ()


@pytest.mark.parametrize("decode_tok_s", [0.0, -1.0])
def test_without_a_known_speed_no_duration_is_promised(decode_tok_s: float) -> None:
    assert expected_duration_s(SpeedPlan(), (), decode_tok_s=decode_tok_s) is None


def test_a_run_takes_longer_with_depth_and_shorter_on_a_fast_pc() -> None:
    fast = (row("pp512", 0, 2000.0), row("tg128", 0, 100.0))
    slow = (row("pp512", 0, 20.0), row("tg128", 0, 1.0))
    short, deep = SpeedPlan(depths=(0,)), SpeedPlan(depths=(0, 32_768))

    assert expected_duration_s(short, fast) < expected_duration_s(deep, fast) < expected_duration_s(deep, slow)
    assert expected_duration_s(deep, fast, n_ctx=4096) == expected_duration_s(short, fast)
    assert expected_duration_s(short, (), decode_tok_s=100.0) is not None
