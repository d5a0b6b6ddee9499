"""What the speed tests found, in sentences. No Qt."""

from collections.abc import Sequence

import msgspec

from qwendesk.bench.records import BenchRecord
from qwendesk.bench.table import BenchRow, find_row
from qwendesk.core.everyday_units import TOKENS_PER_PAGE, pages_text, rate_text, reading_text
from qwendesk.core.number_format import show_decimal
from qwendesk.core.translation import tr, tr_n
from qwendesk.core.units import show_duration, show_elapsed, show_expected, show_rate, show_reported
from qwendesk.engines.measurements import PAYS_OFF
from qwendesk.hub.catalog_schema import SpeedReport

# Pages of the document whose time is told.
_PDF_PAGES = 10
# Reports and estimates of chats up to this many tokens hold for short ones.
_SHORT_TOKENS = 8192
# A speed below this share of the lowest that is expected is called slow.
_SLOW = 0.8


class SpeedLine(msgspec.Struct, frozen=True):
    """One finding: an icon, a sentence, and the figure it is from."""

    icon: str
    sentence: str
    figure: str = ""


class Verdict(msgspec.Struct, frozen=True):
    """Whether a speed is what is to be expected of this PC, and of whom that is known."""

    is_slow: bool
    title: str
    sentence: str


def draft_gain(rows: Sequence[BenchRow]) -> float | None:
    """Return how many times as fast token drafts make an answer in a new chat; None if that wasn't measured."""
    names = [row.test for row in rows if row.test.startswith("text") and not row.depth]
    plain, drafted = (find_row(rows, names[0], 0, with_drafts=on) if names else None for on in (False, True))
    return drafted.median / plain.median if plain is not None and drafted is not None and plain.median else None


def answer_tok_s(rows: Sequence[BenchRow], depth: int = 0, asked: str = "auto") -> float:
    """Return the speed of answers after `depth` tokens, with drafts where chats use them; 0.0 if it wasn't measured.

    `asked` is the load option `speculative` of chats. With "auto", they draft only with the model's own head, and only
    if it pays off.
    """
    texts = [row for row in rows if row.depth == depth and row.test.startswith("text")]
    drafted = [row for row in texts if row.drafts != "off"]
    has_gained = (draft_gain(rows) or 0.0) >= PAYS_OFF
    if drafted and (drafted[-1].drafts == asked or (asked == "auto" and drafted[-1].drafts == "mtp" and has_gained)):
        return drafted[-1].median
    plain = [row for row in rows if row.depth == depth and row.drafts == "off"]
    for start in ("text", "tg"):
        found = [row for row in plain if row.test.startswith(start) and "+" not in row.test]
        if found:
            return found[-1].median
    return 0.0


def headline(tok_s: float) -> str:
    """Return "Answers 34 words a second (45 tok/s): 8 times as fast as you read."."""
    return tr("Answers {0}: {1}.", rate_text(tok_s), reading_text(tok_s))


def speed_lines(rows: Sequence[BenchRow], asked: str = "auto") -> tuple[SpeedLine, ...]:
    """Return what is known beside the speed of an answer in a new chat. `asked` is as for `answer_tok_s`."""
    lines: list[SpeedLine] = []
    prompts = [row for row in rows if row.test.startswith("pp") and "+" not in row.test and not row.depth]
    if prompts:
        page_s = TOKENS_PER_PAGE / prompts[-1].median
        lines.append(
            SpeedLine(
                "book",
                tr(
                    "A page of text is read in {0}, a PDF of {1} pages in {2}.",
                    show_elapsed(page_s), _PDF_PAGES, show_elapsed(_PDF_PAGES * page_s),
                ),
                tr("{0} tok/s", show_rate(prompts[-1].median)),
            )
        )  # fmt: skip
    for row in rows:
        if row.test == "turn 2":
            sentence = tr("In a chat of {0} the next answer begins after {1}.", pages_text(row.depth), _time(row))
            lines.append(SpeedLine("clock", sentence))
        elif row.test == "new picture":
            lines.append(SpeedLine("picture", tr("A picture is understood in {0}.", _time(row))))
    deepest = max((row.depth for row in rows if row.unit == "tok/s"), default=0)
    if deepest and (tok_s := answer_tok_s(rows, deepest, asked)):
        sentence = tr("In a chat of {0} it still answers {1}.", pages_text(deepest), rate_text(tok_s))
        lines.append(SpeedLine("chat", sentence))
    if sentence := draft_sentence(rows, asked):
        lines.append(SpeedLine("speed", sentence))
    return tuple(lines)


def draft_sentence(rows: Sequence[BenchRow], asked: str = "auto") -> str:
    """Return what token drafts gain, and whether they are used; "" if they weren't measured."""
    gain = draft_gain(rows)
    if gain is None:
        return ""
    percent = show_decimal(abs(100 * (gain - 1)), 0)
    is_on = asked in ("mtp", "lookup")
    if gain >= PAYS_OFF:
        return tr("Token drafts make answers {0}% faster.", percent)
    if gain > 1 / PAYS_OFF:
        return tr("Token drafts make no difference here.") if is_on else tr("Token drafts gain nothing here: off.")
    if is_on:
        return tr("Token drafts make answers {0}% slower here. Turn them off under Load.", percent)
    return tr("Token drafts would make answers {0}% slower here: off.", percent)


def verdict(
    tok_s: float, reports: Sequence[SpeedReport], cards: Sequence[str], estimate: tuple[float, float] | None
) -> Verdict | None:
    """Return whether a model is as fast as it should be; None if nothing is known to compare with.

    Reports count if they are of the same `cards`, named as in a BenchRecord; otherwise the planner's `estimate`, the
    lowest and highest tokens per second, does.
    """
    own = [
        report.range
        for report in reports
        if report.depth <= _SHORT_TOKENS
        and cards
        and [f"{name} {report.gpu_gb:g} GB" for name in report.gpus] == list(cards)
    ]
    if own:
        expected = min(low for low, _ in own), max(high for _, high in own)
        source = tr("Others report {0} tok/s with this graphics card.", show_reported(expected))
    elif estimate is not None:
        expected = estimate
        source = tr("Estimated for this PC: {0} tok/s.", show_expected(expected))
    else:
        return None
    is_slow = tok_s < _SLOW * expected[0]
    return Verdict(is_slow, tr("Slower than this PC should be.") if is_slow else tr("As fast as it should be."), source)


def doing_text(test: str) -> str:
    """Return in words what a test does, whose name is as in `SpeedProgress`."""
    name, _, depth = test.partition(" @ d")
    if name == "load":
        return tr("Loading the model")
    if "picture" in name:
        return tr("A question about a picture")
    if name.startswith("turn"):
        return tr("A second question in a chat")
    if depth:
        return tr("A chat of {0}", pages_text(int(depth)))
    return tr("A page of text") if name.startswith("pp") else tr("Answers in a new chat")


def expected_run_text(seconds: float | None) -> str:
    """Return how long a run takes, such as "about 3 min"; "" if that isn't known (None)."""
    if seconds is None:
        return ""
    if seconds < 55:
        return tr("about {0}", show_duration(max(10, round(seconds / 10) * 10)))
    return tr("about {0} min", max(1, round(seconds / 60)))


def record_sentence(record: BenchRecord) -> str:
    """Return the result of an earlier run in a line, with the model's name."""
    tok_s = answer_tok_s(record.rows)
    if tok_s:
        return tr("{0}: {1} · {2}", rate_text(tok_s), reading_text(tok_s), record.title)
    return tr_n("{0} test · {1}", "{0} tests · {1}", len(record.rows), record.title)


def _time(row: BenchRow) -> str:
    return show_elapsed(row.median)
