"""Find loops in reasoning and answers while they are generated: the same tokens or sentences over and over.

Two rules look at one part of the output, the reasoning or the answer, and only after its first `FIRST_TOKEN` tokens.

The period rule compares tokens. A block of up to `MAX_PERIOD` tokens is a loop if it is repeated without a change
often enough and over enough tokens, because ordinary text repeats too: rules of tables, rows of numbers, refrains. How
much is enough depends on the block and the part (`_Limits`). Blocks without letters never count. Prose counts after
about three copies, in answers after nearly four. Blocks with few different letters ("null, null") or with many signs,
periods below four tokens, and all text in code fences need much longer runs.

The sentence rule compares text, so that the order may change and other sentences may stand between. It counts how often
each sentence was seen before. It looks at the last words of the part: most must be in sentences seen before, and some
in long ones seen three times before. So a third draft of a letter is no loop, but a fourth one is. What the part has
not had yet is progress: models try case after case in the same words. A new number starts the count again, and a new
word counts like a long sentence that was not seen before.
"""

import re
from collections import deque
from math import ceil
from typing import Literal

import msgspec

from qwendesk.core.generation_options import GenerationOptions

Part = Literal["reasoning", "answer"]

# A part of the output is never reported before it has this many tokens.
FIRST_TOKEN = 512

# The longest period of the first rule, in tokens. The second rule finds longer ones.
MAX_PERIOD = 128

# How many tokens all copies must have in a code fence or of what is not prose: rows of data are legally equal.
_LONG_RUN = 4 * MAX_PERIOD
# A period is looked for where the last few tokens stood before.
_TAIL = 8
# So many different letters make a block prose. "undefined" has six, "Wait, no." six, most sentences have ten.
_PROSE_LETTERS = 8
# Shorter periods are never prose, whatever their letters.
_MIN_PERIOD = 4

# Sentences of fewer words ("Wait.", "So it fails.") come back in every text and are no sign of a loop alone.
_LONG_SENTENCE = 6
_SEEN_OFTEN = 3
# So many of the last words must be in long sentences that were seen `_SEEN_OFTEN` times before.
_OFTEN_WORDS = 20
# The share of the last words that must be in sentences seen before.
_AGAIN_SHARE = 0.75
# How many more words a word counts for that the part has not had yet. Measured: 5 takes word puzzles for loops.
_NEW_WORD = 10
# Text without punctuation is cut after this many tokens, which bounds the memory and the time.
_MAX_PIECES = 64
_EXCERPT = 200

_SENTENCE_END = re.compile(r"(?<=[.!?;,])\s+|\n+|(?<=[。！？；，])")
# A word; in Chinese and Japanese, which have no spaces, a character.
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]|[^\W\u3040-\u30ff\u3400-\u9fff]+")
_FENCE = re.compile(r"(`{3,}|~{3,})[^`]*")


class Repetition(msgspec.Struct, frozen=True):
    """What was found: its rule, how many tokens lie between two copies, and a text that came back.

    `excerpt` has at most 200 characters on one line. A `period` of "sentences" is that of the last sentence alone.
    """

    kind: Literal["period", "sentences"]
    period: int
    excerpt: str


class _Limits(msgspec.Struct, frozen=True):
    """The limits of a loop in one part of an answer. `copies` may be a fraction: the last copy need not be complete."""

    copies: float
    run: int
    """Minimum number of tokens of all copies together, so that short periods need more of them."""
    letter_share: float
    """The share of letters among the characters of a block, without white space, that makes it prose."""
    recent_words: int
    """Words that the sentence rule looks back."""


_LIMITS: dict[Part, _Limits] = {
    "reasoning": _Limits(copies=3, run=40, letter_share=0.4, recent_words=128),
    # Songs end with a refrain three times, and forms repeat their blanks.
    "answer": _Limits(copies=3.75, run=64, letter_share=0.5, recent_words=192),
}


class LoopDetector:
    """Looks for a loop in one part of the output, which is fed token by token."""

    def __init__(self, part: Part) -> None:
        self._n_tokens = 0
        self._fences = _CodeFences()
        self._periods = _PeriodFinder(_LIMITS[part])
        self._sentences = _SentenceCounter(_LIMITS[part])

    def feed(self, token: int, text: str) -> Repetition | None:
        """Return the loop that `token` is in, or None. `text` is what the token adds: "" within a character.

        Once a loop is found, it is returned for as long as it lasts. The caller ends the part or ignores the detector.
        """
        self._n_tokens += 1
        self._fences.feed(text)
        self._periods.feed(token, text)
        ended = self._sentences.feed(text, self._n_tokens, is_code=self._fences.in_code)
        if self._n_tokens < FIRST_TOKEN:
            return None
        found = self._periods.find(is_code=self._fences.in_code)
        return found or (self._sentences.find() if ended else None)


class _CodeFences:
    """Follows the lines of Markdown to know what is inside a code fence."""

    def __init__(self) -> None:
        self._fence = ""
        self._line = ""

    @property
    def in_code(self) -> bool:
        return bool(self._fence)

    def feed(self, text: str) -> None:
        if "\n" in text:
            *lines, rest = text.split("\n")
            for line in lines:
                self._end_line((self._line + line).strip())
                self._line = ""
            text = rest
        if len(self._line) < _EXCERPT:  # no line of a fence is longer
            self._line += text

    def _end_line(self, line: str) -> None:
        found = _FENCE.fullmatch(line) if line.startswith(("```", "~~~")) else None
        if found is None:
            return
        if not self._fence:
            self._fence = found[1]
        elif line.startswith(self._fence) and line == found[1]:
            self._fence = ""


class _PeriodFinder:
    """Finds a block of tokens that is repeated without a change.

    The last tokens are the characters of a string, because Python searches and compares strings fast.
    """

    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self._recent = ""
        self._texts: deque[str] = deque(maxlen=MAX_PERIOD)

    def feed(self, token: int, text: str) -> None:
        self._recent = self._recent[1 - _LONG_RUN :] + chr(token)
        self._texts.append(text)

    def find(self, *, is_code: bool) -> Repetition | None:
        """Return the loop that the last tokens are in, or None."""
        recent, limits = self._recent, self._limits
        length, tail = len(recent), recent[-_TAIL:]
        first = max(0, length - _TAIL - MAX_PERIOD)
        start = recent.rfind(tail, first, length - 1)
        while start >= 0:
            period = length - _TAIL - start
            if self._has_run(period, max(ceil(limits.copies * period), limits.run)):
                # A longer period would be a multiple of this one and have the same letters.
                return self._judge(period, is_code=is_code)
            start = recent.rfind(tail, first, start + _TAIL - 1)
        return None

    def _has_run(self, period: int, n_tokens: int) -> bool:
        """Return whether each of the last `n_tokens` tokens but the first `period` is equal to the one before it."""
        recent = self._recent
        return n_tokens <= len(recent) and recent[-n_tokens:-period] == recent[period - n_tokens :]

    def _judge(self, period: int, *, is_code: bool) -> Repetition | None:
        text = "".join(list(self._texts)[-period:])
        n_letters = sum(map(str.isalpha, text))
        if not n_letters:
            return None
        is_prose = (
            period >= _MIN_PERIOD
            and len(set(filter(str.isalpha, text.casefold()))) >= _PROSE_LETTERS
            and n_letters >= self._limits.letter_share * len("".join(text.split()))
        )
        is_enough = (is_prose and not is_code) or self._has_run(period, _LONG_RUN)
        return Repetition("period", period, _excerpt(text)) if is_enough else None


class _Sentence(msgspec.Struct, frozen=True):
    """A sentence or a part of one, and how often and where it was seen before."""

    text: str
    n_words: int
    """Number of words that it counts for."""
    n_seen: int
    period: int
    """Tokens since it was seen last; 0 if never."""

    @property
    def is_frequent(self) -> bool:
        return self.n_seen >= _SEEN_OFTEN and self.n_words >= _LONG_SENTENCE


class _SentenceCounter:
    """Counts the sentences of a part, or what is between commas. Lines end them too."""

    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self._pieces: list[str] = []
        self._seen: dict[str, tuple[int, int]] = {}
        """How often each sentence was seen, and at which token it ended last."""
        self._words: set[str] = set()
        self._recent: deque[_Sentence] = deque()
        self._recent_words = 0

    def feed(self, text: str, n_tokens: int, *, is_code: bool) -> bool:
        """Take the text of token number `n_tokens`; return whether it ended a sentence. Code is left out."""
        if is_code:
            self._pieces.clear()
            return False
        before = self._pieces[-1][-1:] if self._pieces else ""
        if text:
            self._pieces.append(text)
        if len(self._pieces) < _MAX_PIECES and not _SENTENCE_END.search(before + text):
            return False
        *ended, rest = _SENTENCE_END.split("".join(self._pieces))
        if not ended:
            ended, rest = [rest], ""
        self._pieces = [rest] if rest else []
        for sentence in ended:
            self._count(" ".join(sentence.casefold().split()).strip("*_#>-` "), n_tokens)
        return True

    def find(self) -> Repetition | None:
        """Return the loop that the last sentences are in, or None."""
        if self._recent_words < self._limits.recent_words:
            return None
        again = sum(each.n_words for each in self._recent if each.n_seen)
        frequent = [each for each in self._recent if each.is_frequent]
        if again < _AGAIN_SHARE * self._recent_words or sum(each.n_words for each in frequent) < _OFTEN_WORDS:
            return None
        return Repetition("sentences", frequent[-1].period, _excerpt(frequent[-1].text))

    def _count(self, text: str, n_tokens: int) -> None:
        if not any(map(str.isalpha, text)):
            return
        words = _WORD.findall(text)
        new = set(words) - self._words
        self._words |= new
        if any(word[0].isdigit() for word in new):
            self._recent.clear()
            self._recent_words = 0
        n_words = len(words) + _NEW_WORD * len(new)
        n_seen, last = self._seen.get(text, (0, n_tokens))
        self._seen[text] = (n_seen + 1, n_tokens)
        self._recent.append(_Sentence(text, n_words, n_seen, n_tokens - last))
        self._recent_words += n_words
        while self._recent_words - self._recent[0].n_words >= self._limits.recent_words:
            self._recent_words -= self._recent.popleft().n_words


def _excerpt(text: str) -> str:
    return " ".join(text.split())[:_EXCERPT]


class LoopWatch:
    """Has a detector for each part of the output in which loops are broken."""

    def __init__(self, options: GenerationOptions) -> None:
        parts: list[Part] = []
        if options.break_loops:
            # An answer in a prescribed form may have to repeat itself.
            parts = ["reasoning"] if options.json_schema or options.grammar else ["reasoning", "answer"]
        self._detectors = {part: LoopDetector(part) for part in parts}
        self._in_loop: dict[Part, bool] = {}
        self._ever_in_loop: set[Part] = set()

    def feed(self, part: Part, token: int, text: str) -> None:
        """Take the next token of `part`. `text` is what the token adds: "" within a character."""
        detector = self._detectors.get(part)
        if detector is None:
            return
        self._in_loop[part] = detector.feed(token, text) is not None
        if self._in_loop[part]:
            self._ever_in_loop.add(part)

    def is_in_loop(self, part: Part) -> bool:
        """Return whether the last token of `part` is in a loop."""
        return self._in_loop.get(part, False)

    def forget_loops(self) -> None:
        """Judge the parts that were in a loop by their next tokens alone.

        If the user continues such an answer, it would otherwise be stopped again at once.
        """
        for part in self._ever_in_loop:
            self._detectors[part] = LoopDetector(part)
        self._ever_in_loop.clear()
        self._in_loop.clear()
