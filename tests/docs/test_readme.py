"""README.md stays short for people who have never heard of QwenDesk, and the set-up's times are the same everywhere."""

import re
from pathlib import Path

import pytest

from qwendesk import RELEASES
from qwendesk.help.guide import heading_anchor
from tools.setup.backends import Backend
from tools.setup.duration import EngineSource, first_setup_text

ROOT = Path(__file__).resolve().parents[2]
README = ROOT / "README.md"
FROM_SOURCE = ROOT / "docs" / "from-source.md"
PAGES = [README, FROM_SOURCE, ROOT / "docs" / "release.md"]
MOST_CHARACTERS = 9_000


def announced_minutes(backend: Backend, source: EngineSource, cores: int) -> int:
    """Return the minutes that the set-up says it takes."""
    text = first_setup_text(backend, source, cores, fetches_cuda=backend == "cuda")
    found = re.search(r"takes about (\d+) minutes", text)
    assert found is not None
    return int(found[1])


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8")) < MOST_CHARACTERS


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_section_of_the_project(page: Path) -> None:
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text(encoding="utf-8")):
        if "://" in target:
            continue
        file, _, section = target.partition("#")
        there = page.parent / file if file else page
        assert there.exists(), target
        if section:
            titles = re.findall(r"^#+ (.+)$", there.read_text(encoding="utf-8"), re.MULTILINE)
            assert section in {heading_anchor(title) for title in titles}, target


def test_readme_says_the_minutes_that_the_setup_announces() -> None:
    ready, quick, slow = (
        announced_minutes("vulkan", "prebuilt", 4),
        announced_minutes("cpu", "build", 8),
        announced_minutes("cpu", "build", 2),
    )
    text = README.read_text(encoding="utf-8")
    assert f"| {ready} minutes |" in text
    assert text.count(f"| {quick} to {slow} minutes |") == 2
    assert f"{quick} minutes on 8 cores, {slow} on two" in text


def test_table_of_minutes_is_what_the_setup_announces() -> None:
    cores = (2, 4, 8, 16)
    rows = {
        "`cpu`, `metal`": [announced_minutes("cpu", "build", n) for n in cores],
        "`vulkan`": [announced_minutes("vulkan", "build", n) for n in cores],
        "`cuda`, without a toolkit": [announced_minutes("cuda", "build", n) for n in cores],
        "a ready engine (Windows)": [announced_minutes("vulkan", "prebuilt", n) for n in cores],
    }
    text = FROM_SOURCE.read_text(encoding="utf-8")
    for name, minutes in rows.items():
        assert f"| {name} | {' | '.join(f'{each} min' for each in minutes)} |" in text


def test_readme_and_privacy_page_name_the_releases_once_there_are_any() -> None:
    readme = README.read_text(encoding="utf-8")
    privacy = (ROOT / "docs" / "guide" / "privacy.md").read_text(encoding="utf-8")
    if RELEASES:
        assert RELEASES in readme
        assert "newer version of QwenDesk" in privacy
    else:
        assert "There is no download yet" in readme
