"""The report of a trial: its file, its page, and that it has no name of the user."""

import re
import shutil
from pathlib import Path

import msgspec
import pytest

from qwendesk.bench.pc_report import (
    BadReport,
    PcTrialReport,
    from_json,
    make_report_folder,
    redacted,
    report_page,
    save_report,
    share_table,
    to_json,
)
from qwendesk.core.errors import QwenDeskError
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_model
from tests.bench.pc import CPU_ENGINE, GPU_ENGINE, TrialPc

EMPTY = PcTrialReport(date="2026-11-23", versions={"qwendesk": "0.1.0"}, ram_total_bytes=None, physical_cores=None)


async def test_file_has_everything_that_the_report_has():
    report = await TrialPc().report()

    assert from_json(to_json(report)) == report


async def test_page_shows_engines_answers_speeds_and_memory():
    page = re.sub(" +", " ", report_page(await TrialPc().report()))

    for words in (
        "## Engine vulkan",
        "## Engine cuda",
        "This PC has no NVIDIA driver.",
        "| What is 2 + 3? | yes | reference |",
        "A red circle on a white background.",
        "| pp512 @ d4096 | 1000.0 |",
        "| CPU | weights |",
        "| loaded | Fake Card | 1024.0 | 0.0 | 2048.0 | - |",
        "The engine process exited: yes",
    ):
        assert words in page


def test_page_of_a_stopped_trial_says_so_and_lists_what_was_not_measured():
    stopped = msgspec.structs.replace(EMPTY, was_stopped=True, problems=("look for models: not finished after 60 s.",))

    page = report_page(stopped)

    assert "The trial was stopped early." in page
    assert "- look for models: not finished after 60 s." in page


def test_users_folders_are_not_in_the_report():
    home = str(Path.home())
    secret = msgspec.structs.replace(EMPTY, problems=(f"load: {home}/models/mine.gguf could not be found.",))

    text = to_json(redacted(secret)).decode()

    assert home not in text
    assert "mine.gguf" in text


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b"\xff\xfe", "not JSON"),
        (b"[" * 100_000, "not JSON"),
        (b"[]", "not a report"),
        (b'{"format": "something"}', "not a report"),
        (b'{"format": "qwendesk-pc-trial", "version": 9}', "version 9"),
        (b'{"format": "qwendesk-pc-trial", "version": 2}', "missing or wrong"),
        (to_json(EMPTY).replace(b'"problems": []', b'"problems": [1]'), "missing or wrong"),
    ],
)
def test_broken_and_foreign_files_are_refused_with_a_sentence(content: bytes, words: str):
    with pytest.raises(BadReport, match=words):
        from_json(content)


def test_reports_do_not_replace_each_other(tmp_path: Path):
    folder = tmp_path / "new"
    make_report_folder(folder)

    first, page = save_report(EMPTY, folder)
    second, _ = save_report(EMPTY, folder)

    assert (first.name, page.name) == ("qwendesk-trial-2026-11-23.json", "qwendesk-trial-2026-11-23.md")
    assert second.name == "qwendesk-trial-2026-11-23-2.json"
    assert from_json(first.read_bytes()) == EMPTY
    assert page.read_text(encoding="utf-8") == report_page(EMPTY)


def test_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path):
    file = tmp_path / "file"
    file.write_text("")

    with pytest.raises(QwenDeskError, match="Choose another folder"):
        make_report_folder(file / "folder")


async def test_a_speed_without_a_value_is_refused():
    content = to_json(await TrialPc(CPU_ENGINE).report())

    with pytest.raises(BadReport, match="missing or wrong"):
        from_json(re.sub(rb'"values": \[[^]]*\]', b'"values": []', content))


async def test_speeds_of_every_engine_can_be_shared_as_one_text():
    text = share_table(await TrialPc().report())

    assert text.count("| tg32 @ d4096 |") == 2
    assert "backend Vulkan" in text
    assert "backend CPU" in text


async def test_own_model_is_compared_with_no_cpu(tmp_path: Path):
    own = tmp_path / "own.gguf"
    shutil.copy(demo_model(), own)
    pc = TrialPc(GPU_ENGINE, CPU_ENGINE)
    pc.models = [LoadOptions(model=str(own))]

    page = report_page(await pc.report()).split("### One of your models")[1]

    (line,) = (
        line for line in page.split("## Engine")[0].splitlines() if line.startswith("| What is in this picture?")
    )
    assert [cell.strip() for cell in line.split("|")][3] == "-"
