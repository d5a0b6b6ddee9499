"""Questions that a tool answers: what the demo model calls, what the tool gives back, and what is said then."""

import random
from collections.abc import Callable, Mapping

import msgspec

from tools.demo_model import words
from tools.demo_model.wording import as_typed

TOOLS: Mapping[str, tuple[str, ...]] = {
    "current_time": (),
    "calculate": ("expression",),
    "read_file": ("path",),
    "get_weather": ("city",),
    "list_files": ("path",),
    "search_files": ("query",),
    "edit_file": ("path", "old", "new"),
    "web_search": ("query",),
    "read_page": ("url",),
    "run_python": ("code",),
    "remember": ("note",),
}
"""Parameters by name. The first four are called; the others are only offered beside them."""
CALLED = ("current_time", "calculate", "read_file", "get_weather")

_WHAT_TIME = (
    "What time is it?", "What is the time?", "Tell me the time", "time please", "current time", "What's the time now?",
    "Do you have the time?", "How late is it?",
)  # fmt: skip
_WEATHER_IN = (
    "What is the weather in {}?", "How is the weather in {}?", "weather in {}", "Is it raining in {}?",
    "What's the weather like in {}?", "Tell me the weather in {}",
)  # fmt: skip
_CALCULATE = (
    "What is {}?", "{}", "{} = ?", "Calculate {}", "How much is {}?", "Compute {}", "Please calculate {}", "{}=",
    "Can you calculate {}?", "What is the result of {}?",
)  # fmt: skip
_IN_WORDS = {"+": "plus", "-": "minus", "*": "times"}
_READ = (
    "Read {}", "What does {} say?", "What is in {}?", "Open {}", "Show me {}", "Read the file {}",
    "What is in the file {}?", "Tell me what {} says", "Please read {}",
)  # fmt: skip
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_MONTHS = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November",
    "December",
)  # fmt: skip
_FAILS = 0.06
"""How often a tool gives an error."""


class Call(msgspec.Struct, frozen=True):
    """A tool that the model wants to be used."""

    name: str
    arguments: dict[str, str]


class ToolUse(msgspec.Struct, frozen=True):
    """One question that is answered with a tool."""

    question: str
    thought: str
    """Before the call."""
    call: Call
    result: str
    later_thought: str
    answer: str


def draw_tool_use(rng: random.Random, tool: str | None = None) -> ToolUse:
    """Of `tool`, one of CALLED, or of any."""
    use = _MAKERS[tool or rng.choice(CALLED)](rng)
    if rng.random() >= _FAILS:
        return use
    error = " ".join(rng.choice(words.COMMON) for _ in range(rng.randint(2, 6)))
    thought, answer = "The tool gave an error. I should say so.", "That did not work, the tool gave an error."
    return msgspec.structs.replace(use, result=f"Error: {error}", later_thought=thought, answer=answer)


def _time(rng: random.Random) -> ToolUse:
    time = f"{rng.randint(0, 23):02}:{rng.randint(0, 59):02}"
    weekday, day, month, year = rng.choice(_DAYS), rng.randint(1, 31), rng.randint(1, 12), rng.randint(2025, 2035)
    result = rng.choice(
        [
            time,
            f"{year}-{month:02}-{day:02} {time}",
            f"{weekday}, {day} {_MONTHS[month - 1]} {year}, {time}",
            f"{weekday}, {year}-{month:02}-{day:02}, {time} (UTC+{rng.randint(0, 12):02}:00)",
        ]
    )
    thought = "The user asks for the time. I have a tool for that."
    question = as_typed(rng.choice(_WHAT_TIME), rng)
    return ToolUse(question, thought, Call("current_time", {}), result, f"The time is {time}.", f"It is {time}.")


def _sum(rng: random.Random) -> ToolUse:
    sign = rng.choice("+-*")
    a, b = (rng.randint(0, 10 ** rng.choice([1, 2, 2, 3, 3, 4])) for _ in range(2))
    value = {"+": a + b, "-": a - b, "*": a * b}[sign]
    expression = f"{a} {sign} {b}"
    said = rng.choice([expression, expression, f"{a}{sign}{b}", f"{a} {_IN_WORDS[sign]} {b}"])
    thought = "The user wants a calculation. I have a tool for that."
    call = Call("calculate", {"expression": expression})
    question = rng.choice(_CALCULATE).format(said)
    return ToolUse(question, thought, call, str(value), f"The tool gave {value}.", f"{expression} = {value}")


def _file(rng: random.Random) -> ToolUse:
    path = rng.choice(["", "", "", f"{words.draw(rng, 'word')}/"]) + words.draw(rng, "word")
    path += rng.choice([".txt", ".txt", ".md", ".md", ".py", ".csv"])
    # Few words: copying a longer text is more than this model learns.
    text = " ".join(words.draw(rng, "word") for _ in range(rng.choice([1, 1, 2])))
    thought = "The user asks about a file. I have a tool for that."
    question = rng.choice(_READ).format(path)
    call = Call("read_file", {"path": path})
    return ToolUse(question, thought, call, text, "I have read the file.", f"{path} says: {text}")


def _weather(rng: random.Random) -> ToolUse:
    city = words.draw(rng, "city") if rng.random() < 0.6 else words.person(rng)
    result = f"{words.draw(rng, 'weather')}, {rng.randint(0, 35)} degrees"
    thought = "The user asks for the weather. I have a tool for that."
    question = rng.choice(_WEATHER_IN).format(city)
    call = Call("get_weather", {"city": city})
    return ToolUse(question, thought, call, result, f"The tool says {result}.", f"The weather in {city}: {result}.")


_MAKERS: Mapping[str, Callable[[random.Random], ToolUse]] = {
    "current_time": _time,
    "calculate": _sum,
    "read_file": _file,
    "get_weather": _weather,
}
