"""The words of words.toml, and what is made up from them: people, numbers, questions that no topic answers."""

import random
import re
import tomllib
from pathlib import Path

_FILE = Path(__file__).parent / "words.toml"
_LISTS: dict[str, tuple[str, ...]] = {
    name: tuple(value.split() if isinstance(value, str) else value)
    for name, value in tomllib.loads(_FILE.read_text(encoding="utf-8")).items()
}
NAMES = _LISTS["name"]
NEW_NAMES = _LISTS["new_name"]
COMMON = _LISTS["common"]
SYSTEM_PROMPTS = _LISTS["system"]

_STARTS = [*"bcdfghjklmnprstvwz", "br", "cl", "dr", "fr", "gr", "kr", "pl", "st", "th", "tr", "ch", "sh", "ph"]
_ENDS = ["", "", "", "n", "r", "s", "l", "k", "m", "t", "x", "rt", "ck", "nd", "ss", "ll"]


def draw(rng: random.Random, name: str) -> str:
    """One of the list `name`. Raises KeyError when there is none."""
    return rng.choice(_LISTS[name])


def person(rng: random.Random) -> str:
    """A first name, more often one that no list has: a name must be copied, not known by heart. Never a new one."""
    if rng.random() < 0.4:
        return rng.choice(NAMES)
    n_syllables = rng.choice([1, 2, 2, 2, 3])
    syllables = (rng.choice(_STARTS) + rng.choice("aeiouaeioy") + rng.choice(_ENDS) for _ in range(n_syllables))
    name = "".join(syllables).capitalize()
    return person(rng) if name in NEW_NAMES else name


def made_up_question(rng: random.Random) -> str:
    """A question that no topic answers."""

    def fill(slot: re.Match[str]) -> str:
        match slot[1]:
            case "person":
                return " ".join(person(rng) for _ in range(rng.choice([1, 1, 2])))
            case "number":
                return str(rng.randint(10, 999))
            case "few":
                return str(rng.randint(2, 99))
            case "year":
                return str(rng.randint(1500, 2025))
        return draw(rng, slot[1])

    return re.sub(r"{(\w+)}", fill, draw(rng, "patterns"))


def pasted_text(rng: random.Random) -> str:
    """A text as people paste it, with or without a word on what to do with it."""
    text = " ".join(rng.choice(COMMON) for _ in range(rng.randint(8, 60)))
    before = rng.choice(["Read this text:\n", "File notes.txt:\n", "Summarize:\n", "```\n", "Text: ", ""])
    if not before:
        return text
    return before + text + rng.choice(["\n```", "\n\nSummarize it.", "", "\n\nWhat does it say?"])
