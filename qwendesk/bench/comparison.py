"""A comparison: one prompt, the columns that answer it, and what each answered. Values and pure functions."""

from typing import Literal

import msgspec

from qwendesk.bench.text_differences import Differences
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.model_titles import model_title
from qwendesk.core.options import LoadOptions
from qwendesk.core.settings import apply_assignments, parse, table
from qwendesk.core.stats import AnswerStats, StopReason
from qwendesk.core.translation import tr

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
    """How much of the prompt is processed, from 0 to 1."""
    reasoning: str = ""
    text: str = ""
    stats: AnswerStats = AnswerStats()
    stop_reason: StopReason | None = None
    failure: str = ""
    """Why there is no answer, or only a part of it, in a sentence."""
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
    """Whether the chat's engine answers all columns. Otherwise its model is unloaded until the comparison has ended."""
    failure: str = ""
    """Why the comparison didn't start, or ended early, in a sentence."""


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
            tr("Thinking") if settings.thinking is not False else tr("No thinking"),
            tr("Seed {0}", column.seed) if column.seed != RANDOM_SEED else "",
            joined_changes(column),
        )
        if text
    )
