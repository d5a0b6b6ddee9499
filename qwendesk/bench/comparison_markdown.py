"""A comparison as Markdown, to save or to share."""

from pathlib import PurePath

from qwendesk.bench.comparison import (
    Column,
    ColumnResult,
    ComparisonState,
    PromptComparison,
    column_letter,
    joined_changes,
    preset_text,
)
from qwendesk.bench.text_differences import Differences
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_count
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_elapsed, show_rate


def comparison_markdown(state: ComparisonState) -> str:
    """Return prompt, settings, figures and answers of a comparison; "" if there was none."""
    comparison = state.comparison
    if comparison is None:
        return ""
    parts = [f"# {tr('Comparison')}", _quoted(comparison.prompt)]
    if comparison.files:
        parts.append(tr("Files: {0}", ", ".join(PurePath(file).name for file in comparison.files)))
    parts.append(_table(comparison, state.results))
    for index, result in enumerate(state.results):
        parts.append(f"## {column_letter(index)}")
        if result.differences is not None:
            parts.append(difference_text(result.differences))
        if result.failure:
            parts.append(f"**{result.failure}**")
        if result.reasoning.strip():
            parts += [f"### {tr('Thinking')}", _quoted(result.reasoning.strip())]
        parts.append(result.text.strip())
    return "\n\n".join(part for part in parts if part) + "\n"


def difference_text(found: Differences) -> str:
    """Return how much an answer differs from the first one, in a sentence."""
    if found.are_none:
        return tr("Same as A")
    parts = [
        tr_n("{0} word differs", "{0} words differ", found.n_added) if found.n_added else "",
        tr_n("{0} word of A is missing", "{0} words of A are missing", found.n_missing)
        if found.n_missing > found.n_added
        else "",
    ]
    return ", ".join(part for part in parts if part)


def figures(result: ColumnResult) -> tuple[str, ...]:
    """Return tokens, time to the first token, speed and whole time; none before the answer has ended."""
    stats = result.stats
    if not result.n_tokens:
        return ()
    return (
        tr_n("{0} token", "{0} tokens", result.n_tokens),
        tr("first after {0}", show_elapsed(stats.ttft_s)),
        tr("{0} tok/s", show_rate(stats.decode_tok_s)) if stats.decode_tok_s else "",
        tr("{0} in all", show_elapsed(result.total_s)),
    )


def _table(comparison: PromptComparison, results: tuple[ColumnResult, ...]) -> str:
    columns = [_cells(column, result) for column, result in zip(comparison.columns, results, strict=True)]
    names = (
        tr("Model"), tr("Preset"), tr("Thinking"), tr("Seed"), tr("Options"), tr("Tokens"), tr("First token"),
        tr("tok/s"), tr("Time"), tr("Ended by"),
    )  # fmt: skip
    lines = [["", *(column_letter(index) for index in range(len(columns)))], ["---"] * (len(columns) + 1)]
    lines += [[name, *(cells[row] for cells in columns)] for row, name in enumerate(names)]
    return "\n".join(f"| {' | '.join(_escaped(cell) for cell in line)} |" for line in lines)


def _cells(column: Column, result: ColumnResult) -> tuple[str, ...]:
    """Return the settings and the figures of a column in the order of the table."""
    settings, stats = column.settings, result.stats
    chosen = (
        model_title(column.model),
        preset_text(settings),
        tr("off") if settings.thinking is False else tr("on"),
        str(column.seed),
        joined_changes(column),
    )
    measured = (
        show_count(result.n_tokens),
        show_elapsed(stats.ttft_s),
        show_rate(stats.decode_tok_s) if stats.decode_tok_s else "",
        show_elapsed(result.total_s),
    )
    return (*chosen, *(measured if result.n_tokens else ("",) * len(measured)), result.stop_reason or result.phase)


def _escaped(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in text.splitlines())
