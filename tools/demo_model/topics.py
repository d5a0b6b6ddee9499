"""What the demo model knows: the files of topics/ as values."""

import re
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec

TOPICS = Path(__file__).parent / "topics"


class Topic(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One thing it can say, and the questions that lead there."""

    thought: str
    answer: str
    questions: tuple[str, ...]
    common: tuple[str, ...] = ()
    """Those of `questions` with which people begin: trained more often, and every one of them must be right."""
    new: tuple[str, ...] = ()
    """Wordings that it is never trained on: they measure it."""
    near: tuple[str, ...] = ()
    """Questions in this topic's words that no topic answers: it must say that it does not know."""
    near_new: tuple[str, ...] = ()
    """More of those, never trained on."""


class Unknown(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Questions that no topic answers, of any kind."""

    trained: tuple[str, ...]
    new: tuple[str, ...]


class Knowledge(msgspec.Struct, frozen=True):
    topics: Mapping[str, Topic]
    unknown: Unknown

    def never_trained(self) -> frozenset[str]:
        """The wordings that only measure, as `plain` writes them."""
        wordings = [*self.unknown.new]
        for topic in self.topics.values():
            wordings += [*topic.new, *topic.near_new]
        return frozenset(plain(wording) for wording in wordings)

    def near(self) -> tuple[str, ...]:
        return tuple(question for topic in self.topics.values() for question in topic.near)


def read_knowledge(folder: Path = TOPICS) -> Knowledge:
    """Raises OSError, tomllib.TOMLDecodeError, msgspec.ValidationError, or ValueError for a name given twice."""
    topics: dict[str, Topic] = {}
    unknown: Unknown | None = None
    for path in sorted(folder.glob("*.toml")):
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        if path.stem == "unknown":
            unknown = msgspec.convert(values, Unknown)
            continue
        for name, value in values.items():
            if name in topics:
                raise ValueError(f"{path.name}: the topic {name} is in another file too.")
            topics[name] = msgspec.convert(value, Topic)
    if unknown is None:
        raise ValueError(f"There is no unknown.toml in {folder.name}.")
    return Knowledge(topics, unknown)


def plain(question: str) -> str:
    """`question` without what people leave out or change: case, punctuation, spaces."""
    return re.sub(r"[^\w+]+", " ", question.lower()).strip() or question


def doubled(questions: Iterable[str]) -> list[str]:
    """Those that occur more than once, as `plain` writes them."""
    return [text for text, count in Counter(map(plain, questions)).items() if count > 1]
