"""Comparisons as Markdown, and the changes that a user types."""

import pytest

from qwendesk.bench.comparison import (
    Column,
    ColumnResult,
    ComparisonState,
    PromptComparison,
    column_texts,
    comparison_markdown,
    differences,
    joined_changes,
    split_changes,
)
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption
from qwendesk.core.stats import AnswerStats

STATS = AnswerStats(prompt_tokens=20, answer_tokens=41, ttft_s=0.5, decode_s=2.0)
COLUMNS = (
    Column(model="/models/a-Q4_K_M.gguf", seed=7, settings=ChatSettings(thinking=False)),
    Column(model="/models/b|c.gguf", seed=8, settings=ChatSettings(overrides={"temperature": "0.2"})),
)


def test_prompt_settings_figures_and_answers_are_written() -> None:
    results = (
        ColumnResult(phase="done", text="It is blue.", stats=STATS, stop_reason="eos"),
        ColumnResult(
            phase="done",
            text="It is grey.",
            reasoning="Hm.\nGrey?",
            stats=STATS,
            stop_reason="max_tokens",
            differences=differences("It is blue.", "It is grey."),
        ),
    )
    comparison = PromptComparison(prompt="Which colour?\nSay it.", files=("/pictures/sky.png",), columns=COLUMNS)

    text = comparison_markdown(ComparisonState(comparison=comparison, results=results))

    assert "> Which colour?\n> Say it." in text
    assert "sky.png" in text
    assert "/pictures" not in text
    assert "| Model | a-Q4_K_M | b\\|c |" in text
    assert "| Options |  | temperature=0.2 |" in text
    assert "| tok/s | 20 | 20 |" in text
    assert "| Ended by | eos | max_tokens |" in text
    assert "1 word differs" in text
    assert "> Hm.\n> Grey?" in text
    assert text.index("## A") < text.index("It is blue.") < text.index("## B") < text.index("It is grey.")


def test_equal_answers_and_failures_are_named() -> None:
    results = (
        ColumnResult(phase="done", text="Yes.", stats=STATS, stop_reason="eos"),
        ColumnResult(
            phase="failed", text="Yes.", failure="The engine stopped.", differences=differences("Yes.", "Yes.")
        ),
    )

    text = comparison_markdown(
        ComparisonState(comparison=PromptComparison(prompt="Well?", columns=COLUMNS), results=results)
    )

    assert "Same as A" in text
    assert "**The engine stopped.**" in text


def test_nothing_was_compared() -> None:
    assert comparison_markdown(ComparisonState()) == ""


def test_typed_changes_are_sorted_into_load_and_sampling_options() -> None:
    loading, sampling = split_changes(" temperature = 0.2;n_ubatch=1024\n stop=a, b;")

    assert loading == {"n_ubatch": "1024"}
    assert sampling == {"temperature": "0.2", "stop": "a, b"}
    column = Column(model="m.gguf", load_changes=loading, settings=ChatSettings(overrides=sampling))
    assert split_changes(joined_changes(column)) == (loading, sampling)


@pytest.mark.parametrize("text", ["temperature", "tempo=3", "n_ubatch=many", "model=other.gguf", "=1"])
def test_what_is_no_change_is_refused(text: str) -> None:
    with pytest.raises(BadOption):
        split_changes(text)


def test_a_column_is_described() -> None:
    assert column_texts(COLUMNS[1]) == ("b|c", "General", "Thinking", "Seed 8", "temperature=0.2")
