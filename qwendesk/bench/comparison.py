"""A comparison: one prompt, the columns that answer it, how their answers differ, and all of it as Markdown."""

import difflib
import re
from pathlib import PurePath
from typing import Literal

import msgspec

from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_titles import model_title
from qwendesk.core.number_format import show_count
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import apply_assignments, parse, table
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.translation import join_list, tr, tr_n
from qwendesk.core.units import show_elapsed, show_rate

# Words and single other characters, each with the white space before it; joined they are the text.
_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])")
_LINES = re.compile(r"[^\n]*\n|[^\n]+")
# Longer texts are compared line by line: the time grows with the square of the length.
_MOST_PIECES = 4_000


class TextRun(msgspec.Struct, frozen=True):
    """A part of a text that is the same as in the other text, or is not."""

    text: str
    differs: bool


class Differences(msgspec.Struct, frozen=True):
    """A text as runs, and how much of it is different."""

    runs: tuple[TextRun, ...] = ()
    """Joined, they are the text without white space at its ends."""
    n_added: int = 0
    """Words of the text that the other one doesn't have at this place."""
    n_missing: int = 0
    """Words of the other text that this one doesn't have at this place."""

    @property
    def are_none(self) -> bool:
        return not any(run.differs for run in self.runs) and not self.n_missing


def differences(base: str, text: str) -> Differences:
    """Return how `text` differs from `base`. The amount of white space between words doesn't count.

    Takes up to a second for texts of a few thousand words that have little in common.
    """
    base, text = base.strip(), text.strip()
    before, after = _WORDS.findall(base), _WORDS.findall(text)
    if max(len(before), len(after)) > _MOST_PIECES:
        before, after = _LINES.findall(base), _LINES.findall(text)
    runs: list[TextRun] = []
    added = missing = 0
    matcher = difflib.SequenceMatcher(None, _without_gaps(before), _without_gaps(after), autojunk=False)
    for kind, low, high, first, last in matcher.get_opcodes():
        piece = "".join(after[first:last])
        if kind != "equal":
            added += len(piece.split())
            missing += len("".join(before[low:high]).split())
        if piece:
            runs.append(TextRun(piece, differs=kind != "equal"))
    return Differences(tuple(runs), added, missing)


def _without_gaps(pieces: list[str]) -> list[str]:
    return [" ".join(piece.split()) for piece in pieces]


FEWEST_COLUMNS, MOST_COLUMNS = 2, 4
RANDOM_SEED = -1
ColumnPhase = Literal["waiting", "loading", "processing", "answering", "done", "failed", "stopped"]
ENDED: tuple[ColumnPhase, ...] = ("done", "failed", "stopped")


class Column(msgspec.Struct, frozen=True, kw_only=True):
    """One way to answer the prompt."""

    model: str
    """Path of the model file."""
    load_changes: dict[str, str] = {}
    """Load options in the form of `--set`; the others are those that the model is loaded with in chats."""
    settings: ChatSettings = ChatSettings()
    """Preset, thinking, and the sampling options that override the preset."""
    seed: int = RANDOM_SEED
    can_think: bool = True
    """False if the model is known to be unable to think, so that nothing is said of it."""


class PromptComparison(msgspec.Struct, frozen=True, kw_only=True):
    """One prompt for all columns."""

    prompt: str
    files: tuple[str, ...] = ()
    """Paths of pictures and documents that are sent with the prompt."""
    columns: tuple[Column, ...]


class ColumnResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a column answered, complete or as far as it has arrived."""

    phase: ColumnPhase = "waiting"
    fraction: float = 0.0
    """Processed share of the prompt, from 0 to 1."""
    reasoning: str = ""
    text: str = ""
    stats: AnswerStats = AnswerStats()
    stop_reason: StopReason | None = None
    failure: str = ""
    """Reason why there is no answer, or only a part of it, in a sentence."""
    differences: Differences | None = None
    """From the answer of the first column; None for that one, and before both have ended."""

    @property
    def n_tokens(self) -> int:
        return self.stats.reasoning_tokens + self.stats.answer_tokens

    @property
    def total_s(self) -> float:
        """Seconds from the question to the end of the answer."""
        return self.stats.ttft_s + self.stats.decode_s


class ModelChoice(msgspec.Struct, frozen=True):
    """A model file that a column may use."""

    path: str
    name: str
    can_think: bool = True
    """False if its vocabulary has no marks for thinking."""


class PresetChoice(msgspec.Struct, frozen=True):
    """A preset of the user's own that a column may use."""

    name: str
    values: dict[str, str]
    """As for `--set`."""


class ComparisonState(msgspec.Struct, frozen=True, kw_only=True):
    """The last comparison, which may be running."""

    comparison: PromptComparison | None = None
    """With the seeds that were drawn for the columns that left it to chance."""
    results: tuple[ColumnResult, ...] = ()
    is_running: bool = False
    uses_loaded_model: bool = False
    """True if the chat's engine answers all columns. Otherwise its model is unloaded until the comparison has ended."""
    failure: str = ""
    """Reason why the comparison didn't start, or ended early, in a sentence."""


def column_letter(index: int) -> str:
    """Return the name of a column: A, B, C, D."""
    return "ABCD"[index]


def check_comparison(comparison: PromptComparison) -> None:
    """Raise BadOption if the prompt is empty, or for the first option that can't be used."""
    if not comparison.prompt.strip():
        raise BadOption(tr("No prompt"), tr("Write a prompt first. Every column gets the same one."))
    for column in comparison.columns:
        apply_assignments(LoadOptions(model=column.model), column.load_changes)
        apply_assignments(GenerationOptions(), {**column.settings.preset_values, **column.settings.overrides})


def split_changes(text: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the load options and the sampling options of a text such as "temperature=0.2; n_ubatch=1024".

    Raises BadOption for an option that doesn't exist or a value that it doesn't accept.
    """
    loading: dict[str, str] = {}
    sampling: dict[str, str] = {}
    for part in (part.strip() for part in text.replace("\n", ";").split(";")):
        if not part:
            continue
        key, separator, value = (each.strip() for each in part.partition("="))
        if not separator or key == "model":
            sentence = tr("“{0}” isn't like {1}. Separate several options with semicolons.", part, "temperature=0.2")
            raise BadOption(tr("Bad option"), sentence)
        chosen, options = (loading, LoadOptions) if key in table(LoadOptions) else (sampling, GenerationOptions)
        if key not in table(options):
            raise BadOption(tr("Unknown option"), tr("There is no option “{0}”. See the guide for all of them.", key))
        parse(table(options)[key], value)
        chosen[key] = value
    return loading, sampling


def joined_changes(column: Column) -> str:
    """Return the text from which `split_changes` makes the column's own options."""
    changes = {**column.load_changes, **column.settings.overrides}
    return "; ".join(f"{key}={value}" for key, value in changes.items())


def preset_text(settings: ChatSettings) -> str:
    """Return the name of the preset, as in the window."""
    styles = {"precise": tr("Precise"), "custom": ""}
    return settings.preset_name or styles.get(settings.preset, tr("General"))


def column_texts(column: Column) -> tuple[str, ...]:
    """Return what makes up a column, for people: file, preset, thinking, seed and its own options."""
    settings = column.settings
    return tuple(
        text
        for text in (
            model_title(column.model),
            preset_text(settings),
            _thinking_text(column),
            tr("Seed {0}", column.seed) if column.seed != RANDOM_SEED else "",
            joined_changes(column),
        )
        if text
    )


def _thinking_text(column: Column) -> str:
    if not column.can_think:
        return ""
    return tr("Thinking") if column.settings.thinking is not False else tr("No thinking")


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
    return join_list(part for part in parts if part)


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
        "" if not column.can_think else tr("off") if settings.thinking is False else tr("on"),
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
