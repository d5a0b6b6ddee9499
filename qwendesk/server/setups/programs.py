"""The programs that QwenDesk can set up: where their configuration is, what goes into it, how they are started.

Each gets its entries beside what it has, so nothing that a user works with changes: the command that starts the
program with QwenDesk says so. The entries were tried with the programs themselves (docs/server.md), but for Zed.
"""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from qwendesk.server.setups.merging import FileKind

MODEL: Final = "qwendesk"
"""The model that programs ask for. It is no model's name, so the loaded one answers."""
_OUTPUT_TOKENS = 32_768
"""Room for an answer that programs keep free, at most a quarter of the context."""


class Target(msgspec.Struct, frozen=True):
    """The server as a program on this PC reaches it."""

    address: str
    """Such as "http://127.0.0.1:8765"."""
    key: str
    n_ctx: int
    """Tokens of context of the model."""

    @property
    def openai(self) -> str:
        return f"{self.address}/v1"

    @property
    def output_tokens(self) -> int:
        return min(_OUTPUT_TOKENS, self.n_ctx // 4)


class Program(msgspec.Struct, frozen=True, kw_only=True):
    id: str
    name: str
    command: str
    """What it is called in a terminal."""
    folder_variable: str = ""
    """An environment variable with the folder of its configuration; "" if it has none."""
    folder: str
    """That folder where the variable isn't set, in the user's home folder."""
    file: str
    """The file in that folder that gets the entries."""
    kind: FileKind
    entries: Callable[[Target], Mapping[str, Any]]
    slot: tuple[str, ...] = ()
    """Keys below which the file may have something that belongs to another server."""
    start: tuple[str, ...] = ()
    """Arguments that start it with QwenDesk; {file} stands for the file. Empty if nothing is needed."""
    ask: tuple[str, ...] = ()
    """Arguments that ask one question and end; {question} stands for the question. Empty if it has no such way."""
    only_shown: bool = False
    """Whether the user has to enter the entries."""

    def path(self, home: Path, environment: Mapping[str, str] = os.environ) -> Path:
        """Return the path of the file for a user with that home folder."""
        given = environment.get(self.folder_variable, "") if self.folder_variable else ""
        return (Path(given) if given else home / self.folder) / self.file

    def start_arguments(self, file: Path) -> tuple[str, ...]:
        return tuple(each.format(file=file) for each in self.start)

    def ask_arguments(self, file: Path, question: str) -> tuple[str, ...]:
        return tuple(each.format(file=file, question=question) for each in self.ask)


def _claude_code(target: Target) -> Mapping[str, Any]:
    return {
        "env": {
            "ANTHROPIC_BASE_URL": target.address,
            "ANTHROPIC_AUTH_TOKEN": target.key,
            "ANTHROPIC_MODEL": MODEL,
            "CLAUDE_CODE_AUTO_COMPACT_WINDOW": str(target.n_ctx),
            "CLAUDE_CODE_MAX_OUTPUT_TOKENS": str(target.output_tokens),
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        }
    }


def _codex(target: Target) -> Mapping[str, Any]:
    return {
        "model": MODEL,
        "model_provider": "qwendesk",
        "model_context_window": target.n_ctx,
        "model_providers": {
            "qwendesk": {
                "name": "QwenDesk",
                "base_url": target.openai,
                "wire_api": "responses",
                "experimental_bearer_token": target.key,
            }
        },
    }


def _opencode(target: Target) -> Mapping[str, Any]:
    limit = {"context": target.n_ctx, "output": target.output_tokens}
    return {
        "$schema": "https://opencode.ai/config.json",
        "provider": {
            "qwendesk": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "QwenDesk",
                "options": {"baseURL": target.openai, "apiKey": target.key},
                "models": {MODEL: {"name": "QwenDesk", "limit": limit}},
            }
        },
    }


def _cline(target: Target) -> Mapping[str, Any]:
    settings = {
        "provider": "openai-compatible",
        "apiKey": target.key,
        "model": MODEL,
        "baseUrl": target.openai,
    }
    provider = {"settings": settings, "updatedAt": "1970-01-01T00:00:00.000Z", "tokenSource": "manual"}
    return {"version": 1, "providers": {"openai-compatible": provider}}


def _continue(target: Target) -> Mapping[str, Any]:
    model = {
        "name": "QwenDesk",
        "provider": "openai",
        "model": MODEL,
        "apiBase": target.openai,
        "apiKey": target.key,
        "roles": ["chat", "edit", "apply"],
        "capabilities": ["tool_use"],
        "defaultCompletionOptions": {"contextLength": target.n_ctx, "maxTokens": target.output_tokens},
    }
    return {"name": "QwenDesk", "version": "0.0.1", "schema": "v1", "models": [model]}


def _zed(target: Target) -> Mapping[str, Any]:
    model = {
        "name": MODEL,
        "display_name": "QwenDesk",
        "max_tokens": target.n_ctx,
        "max_output_tokens": target.output_tokens,
        "capabilities": {"tools": True, "images": False, "parallel_tool_calls": True, "prompt_cache_key": False},
    }
    server = {"api_url": target.openai, "available_models": [model]}
    return {"language_models": {"openai_compatible": {"QwenDesk": server}}}


PROGRAMS: Final = (
    Program(
        id="claude",
        name="Claude Code",
        command="claude",
        folder_variable="CLAUDE_CONFIG_DIR",
        folder=".claude",
        file="qwendesk.json",
        kind="json",
        entries=_claude_code,
        start=("--settings", "{file}"),
        ask=("--settings", "{file}", "-p", "{question}"),
    ),
    Program(
        id="codex",
        name="Codex",
        command="codex",
        folder_variable="CODEX_HOME",
        folder=".codex",
        file="qwendesk.config.toml",
        kind="toml",
        entries=_codex,
        start=("-p", "qwendesk"),
        ask=("exec", "-p", "qwendesk", "--skip-git-repo-check", "{question}"),
    ),
    Program(
        id="opencode",
        name="opencode",
        command="opencode",
        folder=".config/opencode",
        file="opencode.json",
        kind="json",
        entries=_opencode,
        start=("-m", f"qwendesk/{MODEL}"),
        ask=("run", "-m", f"qwendesk/{MODEL}", "{question}"),
    ),
    Program(
        id="cline",
        name="Cline",
        command="cline",
        folder=".cline/data/settings",
        file="providers.json",
        kind="json",
        entries=_cline,
        slot=("providers", "openai-compatible"),
        start=("-P", "openai-compatible", "-m", MODEL),
        ask=("-P", "openai-compatible", "-m", MODEL, "{question}"),
    ),
    Program(
        id="continue",
        name="Continue",
        command="cn",
        folder=".continue",
        file="config.yaml",
        kind="yaml",
        entries=_continue,
        ask=("--config", "{file}", "-p", "{question}"),
    ),
    Program(
        id="zed",
        name="Zed",
        command="zed",
        folder=".config/zed",
        file="settings.json",
        kind="json",
        entries=_zed,
        only_shown=True,
    ),
)
BY_ID: Final[Mapping[str, Program]] = {each.id: each for each in PROGRAMS}
