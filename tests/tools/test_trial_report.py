"""Reports of trials become tables, and other files are refused."""

from pathlib import Path

import msgspec

from qwendesk.bench.pc_report import FreedMemory, PcTrialReport, SpillSign, to_json
from tests.bench.pc import TrialPc
from tools.trial_report import clean, main, read_reports, tables


async def trial() -> PcTrialReport:
    return await TrialPc().report()


def saved(path: Path, report: PcTrialReport) -> Path:
    path.write_bytes(to_json(report))
    return path


def section(text: str, title: str) -> list[str]:
    """The rows of one table, without its header."""
    body = text.split(f"### {title}\n", 1)[1].split("\n###", 1)[0]
    return [line for line in body.splitlines() if line.startswith("| PC ") and not line.startswith("| PC |")]


async def test_two_pcs_stand_below_each_other_in_every_table():
    one = await trial()
    two = msgspec.structs.replace(one, date="2026-11-24", problems=("look for models: not finished after 60 s.",))

    text = tables([one, two])

    assert [row.split(" | ")[0] for row in section(text, "PCs")] == ["| PC 1", "| PC 2"]
    for title, per_pc in (("Answers", 2), ("Speed", 12), ("Plan and allocation", 3), ("Meter", 2)):
        rows = section(text, title)
        assert len(rows) == 2 * per_pc, title
        assert rows[0].startswith("| PC 1 | vulkan | demo, ")
    assert section(text, "Not measured") == ["| PC 2 | look for models: not finished after 60 s. |"]


async def test_figures_are_those_of_the_report():
    report = await trial()
    gpu, cpu = report.engines[:2]
    model = msgspec.structs.replace(
        gpu.models[0],
        spill=(SpillSign(device="Vulkan0", state="spilling", excess_bytes=3 * 1024**2),),
        freed=(FreedMemory(device="Vulkan0", free_before_bytes=9 * 1024**2, free_after_bytes=8 * 1024**2),),
    )
    report = msgspec.structs.replace(report, engines=(msgspec.structs.replace(gpu, models=(model,)), cpu))

    text = tables([report])

    assert "| 5 of 5 | 5 of 5 | right, " in section(text, "Answers")[0]
    assert "| 5 of 5 | reference | right, " in section(text, "Answers")[1]
    assert section(text, "Spill and unload")[0].endswith("| Vulkan0 | spilling, 3.0 MiB | 9.0 | 8.0 | yes |")
    assert "| Fake Card 1.2 | 1024.0 | 35.0 | 2048.0 | - |" in section(text, "Meter")[0]


async def test_files_are_read_once_and_others_refused_with_a_sentence(tmp_path, capsys):
    good = saved(tmp_path / "good.json", await trial())
    same = tmp_path / "same.json"
    same.write_bytes(good.read_bytes())
    foreign = tmp_path / "foreign.json"
    foreign.write_text('{"hello": 1}')
    gone = tmp_path / "gone.json"

    status = main([str(path) for path in (good, same, foreign, gone, tmp_path)])

    shown = capsys.readouterr()
    assert status == 1
    assert len(section(shown.out, "PCs")) == 1
    first, second, third = shown.err.splitlines()
    assert first == f"{foreign} is refused. It is not a report of `qwendesk trial`."
    assert second.startswith(f"{gone} can't be read: ")
    assert third == f"{tmp_path} can't be read: it is a folder."


def test_huge_file_is_refused(tmp_path):
    file = tmp_path / "huge.json"
    with file.open("wb") as huge:
        huge.truncate(5 * 1024**2)

    reports, (refusal,) = read_reports([file])

    assert reports == []
    assert "the limit is 4.0 MB" in refusal


def test_strangers_text_cannot_add_markup():
    assert clean("a|b\n# <img src=x> [link](http://x)") == "a\\|b # &lt;img src=x> \\[link](http://x)"
    assert len(clean("x" * 1000)) == 160
