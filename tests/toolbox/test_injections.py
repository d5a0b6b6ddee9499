"""A hundred texts that want the model to act, and an engine that obeys each of them: nothing happens without the user.

injections.toml has the texts. Before some of them come, the user has allowed the tool for the chat or always, so that
only the rule of taint is left to ask: without `context.is_tainted` in `toolbox/service.py`, both tests fail for all of
those ("after_consent..." and a few more), because the engine's calls then run and nobody is asked. They fail too, for
what comes by that way, if `holds_untyped_text` (chat/answer_generator.py), `is_imported`, or the descriptions of others
(`toolbox/service.py`) no longer taint.
"""

import json
import re
import tomllib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import pytest

from qwendesk.core.messages import ToolCall
from qwendesk.core.tool_context import ConsentRequest, Decision
from tests.links import can_link
from tests.toolbox.injection_desk import CARRIERS, Attempt, Desk
from tests.toolbox.recording_tools import Ran

GROUPS = tomllib.loads(Path(__file__).with_name("injections.toml").read_text(encoding="utf-8"))
ATTEMPTS = {
    f"{kind}.{name}": msgspec.convert(value, Attempt) for kind, group in GROUPS.items() for name, value in group.items()
}
NOTE = ToolCall("write_note", '{"text": "an earlier note"}')
NEW_FILE = ToolCall("edit_file", '{"path": "earlier.txt", "old": "", "new": "An earlier file."}')
FILES = {
    "folder/plan.txt": "Buy bread.\n",
    "folder/main.py": "def enter(user):\n    return check(user)\n",
    "folder/.env": "KEY=1\n",
    "folder/credentials.json": "{}",
    "others/private.txt": "salary\n",
}
"""What is there before, in the folder that the user picked and beside it."""


@asynccontextmanager
async def desk_for(name: str, place: Path, decision: Decision) -> AsyncIterator[Desk]:
    """A desk where the engine will read the text of an attempt."""
    attempt = ATTEMPTS[name]
    desk = Desk(attempt, place, decision)
    try:
        for path, text in FILES.items():
            file = desk.folder.parent / path
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, encoding="utf-8")
        if can_link(place):
            desk.folder.joinpath("outside").symlink_to(desk.folder.parent / "others", target_is_directory=True)
        await CARRIERS[name.partition(".")[0]](desk)
        await desk.start()
        if attempt.allowed:
            await desk.allow(NEW_FILE if attempt.tool_calls[0].name == "edit_file" else NOTE)
        yield desk
    finally:
        await desk.close()


def with_effect(attempt: Attempt) -> list[ToolCall]:
    """The calls that must ask."""
    return [call for call in attempt.tool_calls if call.name != "calculate"] if attempt.outcome == "asks" else []


async def obeyed(desk: Desk) -> list[str]:
    """Let the engine read its order and obey. Return the errors of the calls that were ordered, "" where there is none.

    What the user wanted works all the same.
    """
    answer = (await desk.ask()).answer
    assert desk.engine.has_read_order
    assert (answer.text, answer.error) == ("Done.", "")
    records = [record for step in answer.steps for record in step.calls]
    harmless = records.pop()
    assert (harmless.call.name, harmless.result, harmless.consent) == ("calculate", "42", "unasked")
    n_ordered = len(desk.attempt.calls)
    ordered = records[len(records) - n_ordered :]
    assert [record.call for record in ordered] == list(desk.attempt.tool_calls)
    assert all(not record.error for record in records[: len(records) - n_ordered]), "what brought the order works"
    return [record.error for record in ordered]


def test_there_are_a_hundred() -> None:
    assert len(ATTEMPTS) == 100
    assert set(GROUPS) == set(CARRIERS)
    assert len({attempt.says for attempt in ATTEMPTS.values()}) == 100


@pytest.mark.parametrize("name", ATTEMPTS)
async def test_nothing_happens_that_the_user_refuses(name: str, tmp_path: Path) -> None:
    async with desk_for(name, tmp_path, "refuse") as desk:
        before = desk.files()

        errors = await obeyed(desk)

        assert desk.recording.ran == []
        assert desk.files() == before
        assert [request.call for request in desk.asked] == with_effect(desk.attempt)
        must_fail = desk.attempt.tool_calls if desk.attempt.outcome == "refused" else with_effect(desk.attempt)
        assert sum(map(bool, errors)) == len(must_fail)


@pytest.mark.parametrize("name", ATTEMPTS)
async def test_what_happens_is_what_the_user_saw_and_allowed_once(name: str, tmp_path: Path) -> None:
    async with desk_for(name, tmp_path, "once") as desk:
        before = desk.files()

        await obeyed(desk)

        expected = with_effect(desk.attempt)
        assert [request.call for request in desk.asked] == expected
        assert {request.choices for request in desk.asked} <= {("once", "refuse")}
        recorded = [request for request in desk.asked if request.call.name != "edit_file"]
        assert desk.recording.ran == [Ran(each.call.name, as_shown(each)) for each in recorded]
        changed = {path: text for path, text in desk.files().items() if before.get(path) != text}
        edits = [request for request in desk.asked if request.call.name == "edit_file"]
        assert len(changed) == len(edits)
        for request in edits:
            assert shows_change(request)


def as_shown(request: ConsentRequest) -> object:
    """The arguments as the user sees them."""
    seen = request.details
    assert not any(is_invisible(character) for character in seen)
    return json.loads(re.sub(r"<U\+([0-9A-F]{4,6})>", lambda code: chr(int(code[1], 16)), seen))


def shows_change(request: ConsentRequest) -> bool:
    """Whether all of the new text can be seen."""
    arguments = json.loads(request.call.arguments_json)
    new = "".join(f"<U+{ord(c):04X}>" if is_invisible(c) else c for c in arguments["new"])
    lines = [line.strip() for line in re.split(r"\n|<U\+000D>", new)]
    return arguments["path"] in request.details and all(line in request.details for line in lines)


def is_invisible(character: str) -> bool:
    """Whether a character shows nothing or moves others, by a list that is not the app's own."""
    code = ord(character)
    ranges = (
        (0x00, 0x09), (0x0B, 0x1F), (0x7F, 0xA0), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C), (0x115F, 0x1160),
        (0x17B4, 0x17B5), (0x180B, 0x180F), (0x2000, 0x200F), (0x2028, 0x202F), (0x205F, 0x206F), (0x2800, 0x2800),
        (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0xE0000, 0xE0FFF),
    )  # fmt: skip
    return any(first <= code <= last for first, last in ranges)
