"""How people word a question: frames around its core, greetings before it, typing mistakes in it."""

import random
import re

_ASK_ABOUT = (
    "Can you explain {}?", "Could you explain {}?", "Explain {} to me", "Please explain {}", "Tell me about {}",
    "Can you tell me what {} is?", "I want to know what {} is", "Do you know what {} is?", "What's {}?", "whats {}",
    "What is {} good for?", "What is {} for?", "What is meant by {}?", "Give me an explanation of {}",
    "I do not understand {}", "Describe {}", "Say something about {}", "More about {}", "{} explained", "{} meaning",
)  # fmt: skip
_ASK_FOR = (
    "Can you {}?", "Could you {}?", "Please {}", "Can you please {}?", "I want you to {}", "Would you {}?",
    "I would like you to {}", "{} for me", "{} now", "Now {}",
)  # fmt: skip
_ASK_HOW = (
    "How can I {}?", "How to {}?", "How do you {}?", "Tell me how to {}", "What is the way to {}?", "I want to {}",
    "Is there a way to {}?", "Can you tell me how to {}?", "Where can I {}?", "I need to {}", "How would I {}?",
)  # fmt: skip
_ASK_ALOUD = (
    "Can you tell me: {}", "I would like to know: {}", "One question: {}", "Another question: {}", "Let me ask: {}",
    "My question is: {}", "Tell me, {}", "I wonder: {}",
)  # fmt: skip
_ABOUT = re.compile(r"(?:What is|What are|Explain|What does) (.+?)( mean| do)?\??$")
_HOW = re.compile(r"(?:How do I|How can I|How to) (.+?)\??$")
_FOR = re.compile(r"(?:Write|Show|Make|Give|Tell|Count|List|Create|Send|Name|Draw|Say|Describe|Introduce) ")

_BEFORE = ("Please tell me: ", "Hi, ", "Hey, ", "Hello! ", "Quick question: ", "Ok, ", "So, ", "And ", "Now, ", "um ")
_AFTER = {" please": "?!", ", please": "?!", " Thanks": "", " Please explain": ".!", "?": "?!.", " thx": ""}
"""What is added at the end, and the marks that it takes the place of."""


def reworded(question: str, rng: random.Random) -> str:
    """The same question in another frame, where one fits; else `question`."""
    draw = rng.random()
    about = _ABOUT.match(question)
    if about and draw < 0.55 and len(about[1]) < 40 and "you" not in about[1]:
        return rng.choice(_ASK_ABOUT).format(about[1])
    if _FOR.match(question) and draw < 0.6:
        return rng.choice(_ASK_FOR).format(_lowered(question.rstrip("?.")))
    how = _HOW.match(question)
    if how and draw < 0.6:
        return rng.choice(_ASK_HOW).format(how[1])
    return rng.choice(_ASK_ALOUD).format(_lowered(question)) if draw > 0.8 else question


def as_typed(question: str, rng: random.Random) -> str:
    """`question` as somebody in a hurry, or very polite, types it."""
    if rng.random() < 0.45:
        question = _dressed(question, rng)
    draw = rng.random()
    if draw < 0.18:
        question = question.lower()
    elif draw < 0.20:
        question = question.upper()
    draw = rng.random()
    if draw < 0.25:
        question = question.rstrip("?!. ") or question
    elif draw < 0.30:
        question += rng.choice(["!", "?", " ?", "??", "."])
    return _mistyped(question, rng) if rng.random() < 0.07 and len(question) > 6 else question


def variants(question: str) -> tuple[str, ...]:
    """`question` as it is, in small letters, without its mark at the end, and with other marks."""
    bare = question.rstrip("?!.")
    return tuple(dict.fromkeys([question, question.lower(), bare, bare.lower(), f"{bare}!", f"{bare}."]))


def _dressed(question: str, rng: random.Random) -> str:
    before = rng.choice(("",) * len(_BEFORE) + _BEFORE)
    after = rng.choice(["", *_AFTER] if rng.random() < 0.5 else [""])
    if before and question[1:2].islower():
        question = _lowered(question)
    question = question.rstrip(_AFTER.get(after, ""))
    return before + question + after


def _mistyped(text: str, rng: random.Random) -> str:
    """One letter missing, doubled, or changed with the next."""
    at = rng.randrange(1, len(text) - 1)
    return rng.choice(
        [text[:at] + text[at + 1 :], text[:at] + text[at + 1] + text[at] + text[at + 2 :], text[: at + 1] + text[at:]]
    )


def _lowered(question: str) -> str:
    return question if question.startswith(("I ", "I'")) else question[:1].lower() + question[1:]
