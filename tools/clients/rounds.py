"""One round with a program: it is started as `qwendesk start` does it, and asked for the word in a file."""

import json
import os
import secrets
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from qwendesk.server.setups.programs import BY_ID, Target
from qwendesk.server.setups.service import ProgramTrial, TrialResult
from tools.clients import python_clients
from tools.clients.install import (
    FOLDER,
    bin_folder,
    install_from_npm,
    install_from_pypi,
    python_of_clients,
)

DEMO_QUESTION: Final = "Why is the sky blue?"
_LONGEST_S = 300
_QUIET: Final[Mapping[str, str]] = {
    "CONTINUE_TELEMETRY_ENABLED": "0",
    "DISABLE_AUTOUPDATER": "1",
    "DO_NOT_TRACK": "1",
    "LITELLM_LOCAL_MODEL_COST_MAP": "True",
    "OPENCODE_DISABLE_AUTOUPDATE": "1",
}
"""What keeps the programs from asking elsewhere, which takes them long where there is no network."""


class Client(msgspec.Struct, frozen=True):
    title: str
    package: str
    api: str
    program: str = ""
    """Its id among the programs that QwenDesk sets up; "" for a library of Python."""
    way: str = ""
    """For a library, which of tools/clients/python_clients.py."""
    extra: tuple[str, ...] = ()
    """Arguments that let it read a file without asking."""
    small: tuple[str, ...] = ()
    """Arguments that make its request small enough for the demo model; where empty, it is small enough."""


CLIENTS: Final = (
    Client(
        "Claude Code", "@anthropic-ai/claude-code", "Messages", "claude", extra=("--allowedTools", "Read"),
        small=("--tools", "Read", "--system-prompt", "Answer in one sentence."),
    ),
    Client("Codex", "@openai/codex", "Responses", "codex"),
    Client("opencode", "opencode-ai", "Chat completions", "opencode"),
    Client("Cline", "cline", "Chat completions", "cline"),
    Client("Continue", "@continuedev/cli", "Chat completions", "continue", extra=("--allow", "Read")),
    Client("openai (Python)", "openai", "Chat completions", way="openai"),
    Client("openai (Python)", "openai", "Responses", way="responses"),
    Client("anthropic (Python)", "anthropic", "Messages", way="anthropic"),
    Client("litellm (Python)", "litellm", "Chat completions", way="litellm"),
)  # fmt: skip


class Round(msgspec.Struct, frozen=True):
    works: bool
    said: str
    characters: int = 0
    """The largest request: texts and tools, without JSON around them."""
    n_tools: int = 0
    called: str = ""
    """The tool that was called."""
    own_fault: str = ""
    """What the program's own tool said when it failed; "" if it didn't."""


def install(client: Client) -> str:
    """Return the version. Raise NotInstalled."""
    if client.program:
        return install_from_npm(client.package)
    return install_from_pypi("openai", "anthropic", "litellm")[client.package]


def tool_round(client: Client, target: Target, node: Path | None, record: Path) -> Round:
    """Have the program read a file with a word that nobody knows, and check that it says the word."""
    folder = FOLDER / "work"
    folder.mkdir(parents=True, exist_ok=True)
    word, note = secrets.token_hex(6), folder / "note.txt"
    note.write_text(f"The word is {word}.\n", encoding="utf-8")
    record.unlink(missing_ok=True)
    question = f"Read the file {note} and tell me the word in it."
    result = (
        _ask(client, target, node, question, folder, client.extra) if client.program else _call(client, target, note)
    )
    lines = [json.loads(line) for line in record.read_text().splitlines()] if record.exists() else []
    return judged(result, word, lines)


def judged(result: TrialResult, word: str, lines: Sequence[Mapping[str, Any]]) -> Round:
    """Return how a round went, by what the program said and the `lines` that the scripted engine recorded.

    A call that came back as it was sent, with a result without the word, went both ways through the server: then the
    program's own tool has failed.
    """
    called = next((call for line in lines for call in line["called"]), None)
    results = [line["result"] for line in lines if line["result"] and called in line["sent_back"]]
    works = result.works and word in result.text and called is not None
    return Round(
        works,
        result.text,
        max((line["characters"] for line in lines), default=0),
        max((len(line["tools"]) for line in lines), default=0),
        "" if called is None else called[0],
        "" if works or any(word in each for each in results) else "".join(results[:1]),
    )


def demo_round(client: Client, target: Target, node: Path | None) -> Round:
    """Have the demo model answer through the program."""
    folder = FOLDER / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    result = _ask(client, target, node, DEMO_QUESTION, folder, client.small)
    return Round(result.works, result.text)


def _ask(
    client: Client, target: Target, node: Path | None, question: str, folder: Path, extra: tuple[str, ...]
) -> TrialResult:
    program, home = BY_ID[client.program], FOLDER / "home" / client.program
    home.mkdir(parents=True, exist_ok=True)
    environment = _environment(client, node, home)
    return ProgramTrial(program, target, environment).run(question, folder, *extra)


def _call(client: Client, target: Target, note: Path) -> TrialResult:
    command = [str(python_of_clients()), python_clients.__file__, client.way, target.address, target.key, str(note)]
    environment = _environment(client, None, FOLDER / "home" / "python")
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=_LONGEST_S, check=False)
    except subprocess.TimeoutExpired:
        return TrialResult(works=False, text="no answer in time")
    return TrialResult(works=done.returncode == 0, text=(done.stdout or done.stderr)[-600:].strip())


def _environment(client: Client, node: Path | None, home: Path) -> dict[str, str]:
    """Return an environment in which the program finds nothing of this user."""
    places = [str(node)] if node is not None else []
    path = os.pathsep.join([str(bin_folder(client.package)), *places, os.environ["PATH"]])
    kept = {name: os.environ[name] for name in ("LANG", "TERM", "SYSTEMROOT", "TEMP") if name in os.environ}
    return {**kept, **_QUIET, "PATH": path, "HOME": str(home), "USERPROFILE": str(home)}
