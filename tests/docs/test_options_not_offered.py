"""The guide's list of what QwenDesk doesn't have of llama.cpp, against what its search says of those flags."""

import re
from pathlib import Path

import pytest

from qwendesk.core.flags import find_flag, flag_note
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide"
PARTLY = "--chat-template-kwargs"


def listed(page: Path, title: str) -> list[str]:
    section = page.read_text(encoding="utf-8").split(f"## {title}\n")[1].split("\n## ")[0]
    return re.findall(r"`(--[\w-]+)`", section)


@pytest.mark.parametrize(
    ("path", "title"), [("options.md", "What isn't offered"), ("de/options.md", "Was es nicht gibt")]
)
def test_listed_flags_set_nothing_and_the_search_says_why(path: str, title: str) -> None:
    flags = [flag for flag in listed(GUIDE / path, title) if flag != PARTLY]
    assert {"--rpc", "--prio", "--mtp", "--n-cpu-ffn", "--video"} <= set(flags)
    for name in flags:
        found = find_flag(name, "llama.cpp")
        assert found is not None, name
        assert not found.key, f"{name} is an option"
        assert flag_note(name), name


def test_options_that_the_page_says_are_there_are_there() -> None:
    assert {"grammar", "thinking_close"} <= table(GenerationOptions).keys()
    assert {"lazy_mode", "override_tensor"} <= table(LoadOptions).keys()
