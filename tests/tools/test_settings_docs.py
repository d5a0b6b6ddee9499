"""The page about settings says what the tables say."""

from qwendesk.core.app_options import AppOptions
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import table
from tools.settings_docs import FILE, page


def test_the_page_is_up_to_date() -> None:
    assert FILE.read_text(encoding="utf-8") == page(), "run `python -m tools.settings_docs`"


def test_every_option_is_on_it_with_its_flag() -> None:
    parts = page().split("\n## ")[1:]
    for options, part in zip((AppOptions, LoadOptions, GenerationOptions), parts, strict=True):
        for key, entry in table(options).items():
            (row,) = [line for line in part.splitlines() if line.split(" | ")[1:2] == [f"`{key}`"]]
            assert entry.setting.label in row
            assert entry.setting.flag in row
