"""Speeds that users paste: what becomes a report, on which PC it counts, and what is refused."""

import json
from pathlib import Path

import pytest

from qwendesk.bench.share import row_text
from qwendesk.core.options import DecidedOptions
from qwendesk.core.translation import unbroken
from qwendesk.core.units import GIB
from qwendesk.hub.catalog import load_catalog
from qwendesk.hub.catalog_schema import SpeedReport
from qwendesk.hub.catalog_updates import CatalogStore
from qwendesk.models.fit import Pc
from qwendesk.models.pasted_report import add_reports, read_reports, save_reports
from qwendesk.models.pasted_table import LONGEST, BadPaste, cards_in
from qwendesk.models.purpose_texts import with_texts
from qwendesk.models.purposes import Choice
from qwendesk.models.view.speed_texts import expected_text, speed_cell, speed_sources
from tests.bench.samples import record, row
from tests.models import pasted
from tests.models.test_speed_reports import RTX_3090, TWO_3090, offer_on

CATALOG = load_catalog()
SHA256 = next(
    file.sha256
    for repository in CATALOG.repositories
    for file in repository.files
    if file.quant == "UD-Q4_K_XL" and file.sha256 and repository.model == "Qwen3.6-35B-A3B"
)


def reports_in(text: str, measured_on: str = "") -> tuple[SpeedReport, ...]:
    return read_reports(text, CATALOG, measured_on).reports


def test_a_table_with_its_heading_gives_a_report_for_each_length_of_chat() -> None:
    start, long = reports_in(pasted.FRAMEWORK, "Radeon 8060S")

    assert (start.model, start.quant, start.backend) == ("Qwen3.6-35B-A3B", "UD-Q4_K_XL", "vulkan")
    known = CATALOG.find_file("unsloth/Qwen3.6-35B-A3B-GGUF", "Qwen3.6-35B-A3B-UD-Q4_K_XL.gguf")
    assert known is not None
    assert start.n_bytes == known.file.n_bytes, "the table counts the tensors alone"
    assert (start.gpus, start.placement, start.on_cpu) == (("Radeon 8060S",), "vram", None)
    assert [(each.tok_s, each.depth) for each in (start, long)] == [(60.78, 0), (57.06, 8192)]
    assert start.is_pasted
    assert start.source == "llama-bench, build e85e15cf6 (11188)"
    assert not start.remark, "the heading names the version"


def test_the_terminal_names_the_card_its_memory_and_the_file() -> None:
    start, long = reports_in(pasted.TERMINAL)

    assert (start.gpus, start.gpu_gb, start.backend) == (("RTX 3090",), 23.6, "cuda")
    assert (start.model, start.quant) == ("Qwen3.6-35B-A3B", "UD-Q4_K_M")
    assert [(each.tok_s, each.depth) for each in (start, long)] == [(121.62, 0), (98.2, 32768)]


def test_a_table_broken_by_a_narrow_terminal_is_the_same_table() -> None:
    def seen(text: str) -> list[tuple[object, ...]]:
        return [(each.gpus, each.quant, each.n_bytes, each.tok_s, each.depth, each.source) for each in reports_in(text)]

    for width in range(40, 127):
        assert seen(pasted.wrapped(pasted.TERMINAL, width)) == seen(pasted.TERMINAL), width


def test_experts_on_the_cpu_are_another_placement_and_need_the_size_of_the_card() -> None:
    with pytest.raises(BadPaste, match="RTX 3060 12 GB"):
        reports_in(pasted.EXPERTS)

    (report,) = reports_in(pasted.EXPERTS.replace("GeForce RTX 3060 (", "GeForce RTX 3060 12 GB ("))
    assert (report.placement, report.on_cpu, report.cache_type) == ("experts", 24, "q8_0")
    assert (report.gpus, report.gpu_gb) == (("RTX 3060",), 12)
    assert report.tok_s == 38.4
    assert report.remark == "may be of another version: Qwen3.5-35B-A3B, Qwen3.6-35B-A3B", "no file is named"


def test_of_several_cards_those_that_were_used_count() -> None:
    both, first = reports_in(pasted.SPLIT_CARDS)

    assert both.gpus == ("RTX 5070 Ti", "RTX 5060 Ti")
    assert (first.gpus, first.tok_s) == (("RTX 5070 Ti",), 46.2), "split mode none: the first card"
    assert (first.model, first.quant) == ("Qwen3.5-27B", "IQ4_XS")


def test_a_mac_names_threads_and_no_layers() -> None:
    (report,) = reports_in(pasted.MAC)
    assert (report.gpus, report.backend, report.placement) == (("Apple M4 Pro",), "metal", "vram")
    assert report.quant == "UD-IQ4_XS", "the catalog's file with these bits and this size"


def test_no_layer_on_the_gpu_is_the_cpu_and_needs_the_kind_of_ram() -> None:
    command = "./llama-bench -m Qwen3.6-35B-A3B-UD-IQ4_XS.gguf -ngl 0\n"
    with pytest.raises(BadPaste, match="DDR5-5600"):
        reports_in(command + pasted.MAC)

    (report,) = reports_in(command + pasted.MAC, "DDR5-5600 x2")
    assert (report.gpus, report.ram_kind, report.ram_channels, report.placement) == ((), "DDR5-5600", 2, "cpu")


def test_a_quoted_escaped_bold_row_in_a_german_locale() -> None:
    (report,) = reports_in(pasted.ESCAPED, "RTX 4080")
    assert (report.model, report.quant, report.tok_s, report.depth) == ("Qwen3.5-9B", "Q8_0", 83.17, 16384)


@pytest.mark.parametrize("text", [pasted.JSON, pasted.JSON_LINES, pasted.CSV, f"```json\n{pasted.JSON}\n```"])
def test_the_other_forms_of_llama_bench_have_all_fields(text: str) -> None:
    (report,) = reports_in(text)

    assert (report.model, report.quant, report.gpus) == ("Qwen3.5-9B", "Q8_0", ("RTX 4080",))
    assert (report.tok_s, report.depth, report.date) == (79.25, 4096, "2026-09-24")
    assert report.source == "llama-bench, build 8cf427ff (11163)"


def test_several_tables_have_their_own_cards_and_files() -> None:
    reports = reports_in(f"{pasted.TERMINAL}\n{pasted.MAC}")
    assert [each.gpus[0] for each in reports] == ["RTX 3090"] * 2 + ["Apple M4 Pro"]
    assert [each.source[-7:] for each in reports] == ["(12001)"] * 2 + [" (9010)"]


def test_a_second_run_right_below_a_table_lists_its_cards_anew() -> None:
    second = pasted.EXPERTS.partition("\n")[2].replace("RTX 3060 (", "RTX 3060 12 GB (")
    reports = reports_in(pasted.SPLIT_CARDS + second)
    assert [each.gpus[0] for each in reports] == ["RTX 5070 Ti", "RTX 5070 Ti", "RTX 3060"]


def test_the_same_row_twice_is_one_report() -> None:
    assert reports_in(pasted.TERMINAL + pasted.TERMINAL) == reports_in(pasted.TERMINAL)


ROW = next(line for line in pasted.TERMINAL.splitlines() if "tg128 @" in line)
HOSTILE = {
    "nothing": ("", "no measured speed"),
    "prose": ("It makes 120 tok/s here.", "no measured speed"),
    "a megabyte": ("| a " * 250_000, "too long"),
    "only prompts": (pasted.TERMINAL.replace("tg128", "pp128"), "no measured speed"),
    "nan": (pasted.TERMINAL.replace("98.20", "nan"), '"nan" isn\'t a speed'),
    "infinite": (pasted.TERMINAL.replace("98.20", "1e999"), '"1e999" isn\'t a speed'),
    "nothing per second": (pasted.TERMINAL.replace("98.20", "0.00"), '"0.00" isn\'t a speed'),
    "negative speed": (pasted.TERMINAL.replace("98.20", "-98.20"), '"-98.20" isn\'t a speed'),
    "a speed of another world": (pasted.TERMINAL.replace("98.20", "98200000.00"), "isn't a speed"),
    "negative depth": (pasted.TERMINAL.replace("d32768", "d-32768"), '"-32768" isn\'t a number of tokens'),
    "endless depth": (pasted.TERMINAL.replace("d32768", "d" + "9" * 15), "isn't a number of tokens"),
    "no size": (pasted.TERMINAL.replace("20.60 GiB", "big"), '"big" isn\'t the size'),
    "cut by less -S": (pasted.TERMINAL.replace(ROW, ROW[:60] + "|"), "its head has 8 columns, and a row has"),
    "no head": (ROW, "no measured speed"),
    "json nan": (pasted.JSON.replace("79.25", "NaN"), "JSON can't be read"),
    "json infinite": (pasted.JSON.replace("79.25", "1e999"), ""),
    "json cut": (pasted.JSON[:-20], "JSON can't be read"),
    "deep json": ('"model_type"\n' + "[" * 90_000, "JSON can't be read"),
    "another table": ("| model | test | t/s |\n|---|---|---|\n| Qwen3.8-27B-FP8 | tg128 | 91 |", "isn't llama-bench's"),
    "another model": (pasted.TERMINAL.replace("qwen35moe", "gpt-oss").replace("Qwen3.6-35B-A3B", "x"), "isn't a model"),
    "another backend": (pasted.TERMINAL.replace(" CUDA  ", " SYCL  "), "no engine for SYCL"),
    "an unknown card": (pasted.TERMINAL.replace("RTX 3090", "RTX 9999"), "doesn't know the graphics card"),
    "a file larger than the card": (
        pasted.TERMINAL.replace("RTX 3090", "RTX 3080").replace("24124", "10240"),
        "doesn't fit in NVIDIA GeForce RTX 3080",
    ),
    "tensors placed by hand": (
        pasted.EXPERTS.replace("n_cpu_moe |", "ot |").replace("        24 |", "exps=CPU |"),
        "own placement",
    ),
    "a long word": ("a" * LONGEST, "no measured speed"),
    "a card of an endless number": (pasted.TERMINAL.replace("Device 0", "Device " + "9" * 5000), "name the graphics"),
    "half a row of QwenDesk": ("| QwenDesk 1.0.0, llama-cpp-python 0.3.36 | CUDA: RTX 3090 24 GB", "incomplete"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "reason"), HOSTILE.values(), ids=HOSTILE)
def test_what_is_no_speed_is_refused_with_a_sentence(text: str, reason: str) -> None:
    with pytest.raises(BadPaste) as error:
        reports_in(text)
    assert reason in error.value.sentence
    assert error.value.sentence.endswith(".")


def test_what_a_stranger_wrote_is_short_plain_text() -> None:
    (record,) = (each for each in json.loads(pasted.JSON) if each["n_gen"])
    lure = "<img src='x'>\n" + "A" * 3_000
    record |= {"build_commit": lure, "type_k": lure, "gpu_info": f"{record['gpu_info']} {lure}"}
    (report,) = reports_in(json.dumps([record]))
    for text in (report.source, report.cache_type, *report.gpus):
        assert len(text) <= 60
        assert text.isprintable()
        assert "<" not in text


def test_an_endless_number_is_no_size_of_a_card() -> None:
    assert reports_in(pasted.TERMINAL.replace("24124", "9" * 400))[0].gpu_gb == 0


def test_what_is_left_out_is_said_beside_what_is_added() -> None:
    found = read_reports(f"{pasted.TERMINAL}\n{pasted.SPLIT_CARDS.replace('CUDA,RPC', 'SYCL')}", CATALOG)
    assert len(found.reports) == 2
    assert found.left_out == ("QwenDesk has no engine for SYCL, so this speed says nothing of it.",)


def test_cards_are_named_as_people_name_them() -> None:
    assert [(each.name, each.gib) for each in cards_in("2x RTX 3090 24GB + RTX 3060 (12 GiB)")] == [
        ("RTX 3090", 24), ("RTX 3090", 24), ("RTX 3060", 12),
    ]  # fmt: skip


def test_no_report_of_the_catalog_is_marked_as_the_users() -> None:
    assert not any(each.is_pasted for each in CATALOG.contents.speeds)


@pytest.fixture
def store(tmp_path: Path) -> CatalogStore:
    return CatalogStore(lambda: CATALOG, tmp_path)


ON_3090 = Pc(gpus=(RTX_3090,), ram_bytes=64 * GIB)


def test_a_pasted_speed_counts_on_a_pc_with_that_card_and_is_marked(store: CatalogStore) -> None:
    add_reports(pasted.TERMINAL, store)
    offer = offer_on(store.catalog, ON_3090, "Qwen3.6-35B-A3B")
    quant = next(each for each in offer.quants if each.quant == "UD-Q4_K_M")

    assert quant.expected is not None
    assert (quant.expected.source, quant.expected.start, quant.likely_tok_s) == ("pasted", (121.62, 121.62), 121.62)
    assert speed_cell(quant, None) == unbroken("122 tok/s\npasted by you")
    assert expected_text(offer, quant).startswith(
        "You pasted 122 tok/s at the start, 98 at 32K (RTX 3090, CUDA, UD-Q4_K_M)."
    )
    first, *lines = speed_sources(quant, None)
    assert first == "Speed: from a report of the same cards and engine that you pasted."
    assert "pasted by you: llama-bench, build 1fd5f48a (12001)" in lines[0]
    _, second = with_texts((Choice(purpose="fast", offer=offer, quant=quant),) * 2)
    assert second.reason == "About 122 tok/s (pasted by you)."


def test_it_counts_on_no_other_pc_and_for_no_larger_file(store: CatalogStore) -> None:
    add_reports(pasted.TERMINAL, store)
    for pc, name in ((Pc(gpus=TWO_3090, ram_bytes=64 * GIB), "UD-Q4_K_M"), (ON_3090, "UD-Q5_K_S")):
        offer = offer_on(store.catalog, pc, "Qwen3.6-35B-A3B")
        quant = next(each for each in offer.quants if each.quant == name)
        assert not any(report.is_pasted for report in quant.reports)


def test_beside_reports_of_others_both_are_said_and_the_pasted_one_comes_first(store: CatalogStore) -> None:
    row_of_it = pasted.TERMINAL.replace("Qwen3.6", "Qwen3.5").replace("20.60 GiB", "18.80 GiB")
    add_reports(row_of_it.replace("121.62", "99.00"), store)
    offer = offer_on(store.catalog, ON_3090)
    quant = next(each for each in offer.quants if {each.is_pasted for each in each.reports} == {True, False})

    assert quant.expected is not None
    assert quant.expected.source == "pasted"
    sources = {each.source for each in quant.expected.speeds}
    assert sources == {"pasted", "reported"}
    assert expected_text(offer, quant).startswith("You pasted 99 tok/s at the start")
    assert "Others report" in expected_text(offer, quant)


def test_pasted_speeds_are_kept_and_can_be_removed(store: CatalogStore, tmp_path: Path) -> None:
    add_reports(pasted.TERMINAL, store)
    again = CatalogStore(lambda: CATALOG, tmp_path)
    start, long = again.read_reports()

    save_reports((long,), again)

    assert start not in again.catalog.contents.speeds
    assert again.catalog.contents.speeds[-1] == long
    with pytest.raises(BadPaste, match="added before"):
        add_reports(
            "\n".join(line for line in pasted.TERMINAL.splitlines() if "| tg128 |" not in line.replace("  ", "")), again
        )


def test_the_row_of_a_run_is_one_line_and_gives_the_same_speeds_back() -> None:
    options = DecidedOptions(model="Qwen3.6-35B-A3B-UD-Q4_K_XL.gguf", n_ctx=131_072, n_gpu_layers=99)
    measured = record(
        row("pp512", 0, 2410.11), row("pp512", 8192, 2100.3), row("tg128", 0, 118.2), row("tg128", 8192, 104.13),
        row("text128", 0, 140.0, drafts="mtp"),
        file=options.model, options=options, cards=("RTX 3090 24 GB",),
        planned_bytes=23_459 << 20, used_bytes=23_500 << 20,
    )  # fmt: skip
    text = row_text(measured, SHA256)

    assert text.count("\n") == 1
    assert text.startswith("| QwenDesk ")
    for part in (
        "CUDA: RTX 3090 24 GB, 64 GB RAM", SHA256, "-ngl 99", "-ctk f16", "planned 23459 MiB, used 23500 MiB",
        "pp512: 2410.11, 2100.30 @ d8192", "tg128: 118.20, 104.13 @ d8192", "llama-cpp-python 0.3.36", "2026-11-26",
    ):  # fmt: skip
        assert part in text
    for pasted_text in (text, f"> {text}", f"My PC:\n\n{text}\nNice!"):
        start, long = reports_in(pasted_text)
        assert (start.model, start.quant, start.gpus, start.gpu_gb) == (
            "Qwen3.6-35B-A3B", "UD-Q4_K_XL", ("RTX 3090",), 24,
        )  # fmt: skip
        assert [(each.tok_s, each.depth) for each in (start, long)] == [(118.2, 0), (104.13, 8192)]
        assert (start.date, start.backend, start.placement) == ("2026-11-26", "cuda", "vram")


def test_the_row_of_a_renamed_file_is_known_by_its_hash() -> None:
    measured = record(row("tg128", 0, 118.2), file="my model.gguf", cards=("RTX 3090 24 GB",))
    (report,) = reports_in(row_text(measured, SHA256))
    assert (report.model, report.remark) == ("Qwen3.6-35B-A3B", "")
    with pytest.raises(BadPaste, match="isn't a model of the catalog"):
        reports_in(row_text(measured))
