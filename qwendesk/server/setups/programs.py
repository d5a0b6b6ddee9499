"""The programs that QwenDesk starts with its server: their settings, and how each is given them.

Nothing of a program is changed: its settings are in its environment, in its arguments, or in a file that is deleted
when it ends, and count for that start alone. They were tried with the programs themselves (docs/server.md), but for
Zed. The key is never an argument, because other users see those.
"""

import contextlib
import json
import shutil
import string
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec

from qwendesk.core.errors import QwenDeskError
from qwendesk.core.translation import tr

# Tokens of context that programs are told of while no model is loaded.
USUAL_CONTEXT: Final = 32_768
# Room for an answer that programs keep free, at most a quarter of the context.
_OUTPUT_TOKENS = 32_768


class Target(msgspec.Struct, frozen=True):
    """The server as a program on this PC reaches it."""

    address: str
    """Such as "http://127.0.0.1:8765"."""
    key: str
    n_ctx: int
    """Tokens of context of the model."""


class Program(msgspec.Struct, frozen=True, kw_only=True):
    """A program. Its texts have the placeholders $address, $openai, $key, $n_ctx, $n_output and $settings.

    They ask for the model "qwendesk", which is no model's name, so the loaded one answers.
    """

    id: str
    name: str
    command: str
    """Name of the program in a terminal."""
    install: str = ""
    """Command that installs it."""
    settings: str = ""
    """Content of a settings file with the server."""
    place: str
    """The program's own settings file, in the user's home folder."""
    arguments: tuple[str, ...] = ()
    """Arguments of a start; $file is a file with the settings. Empty, as is `environment`, if it can't be started."""
    environment: tuple[tuple[str, str], ...] = ()
    """Variables of a start."""
    ask: tuple[str, ...] = ()
    """Arguments that ask $question and end, in place of `arguments`. Empty if it has no such way."""

    @property
    def can_start(self) -> bool:
        return bool(self.arguments or self.environment)

    def settings_for(self, target: Target) -> str:
        """Return the settings, which hold the key."""
        values = _values(target)
        return _filled(self.settings, {name: json.dumps(value)[1:-1] for name, value in values.items()})


class Launch(msgspec.Struct, frozen=True):
    """A program's command line and environment."""

    command: list[str]
    environment: dict[str, str]


@contextlib.contextmanager
def launch_of(
    program: Program, target: Target, environment: Mapping[str, str], further: Sequence[str], question: str = ""
) -> Iterator[Launch]:
    """Yield how to start a program with the server, or to ask it `question`; its file is deleted in the end.

    Raise QwenDeskError if it isn't installed. Blocks.
    """
    command = shutil.which(program.command, path=environment.get("PATH"))
    if command is None:
        sentence = tr(
            "{0} isn't installed on this PC, or isn't on the PATH. Install it with: {1}", program.name, program.install
        )
        raise QwenDeskError(tr("Program not found"), sentence)
    with tempfile.TemporaryDirectory(prefix="qwendesk-", ignore_cleanup_errors=True) as folder:  # for this user only
        file, settings = Path(folder, Path(program.place).name), program.settings_for(target)
        if settings:
            file.write_text(settings, encoding="utf-8")
        values = {**_values(target), "settings": settings, "file": str(file), "question": question}
        arguments = program.ask if question else program.arguments
        variables = {name: _filled(text, values) for name, text in program.environment}
        yield Launch(
            [command, *(_filled(each, values) for each in arguments), *further],
            {**_without_our_libraries(environment), **variables},
        )


def _values(target: Target) -> dict[str, str]:
    return {
        "address": target.address,
        "openai": f"{target.address}/v1",
        "key": target.key,
        "n_ctx": str(target.n_ctx),
        "n_output": str(min(_OUTPUT_TOKENS, target.n_ctx // 4)),
    }


def _filled(text: str, values: Mapping[str, str]) -> str:
    return string.Template(text).substitute(values)


def _without_our_libraries(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the environment as it was before PyInstaller put the bundle's libraries into it."""
    before = environment.get("LD_LIBRARY_PATH_ORIG")
    found = {name: value for name, value in environment.items() if name != "LD_LIBRARY_PATH_ORIG"}
    return found if before is None else {**found, "LD_LIBRARY_PATH": before}


_CLAUDE = """{
  "env": {
    "ANTHROPIC_BASE_URL": "$address",
    "ANTHROPIC_AUTH_TOKEN": "$key",
    "ANTHROPIC_MODEL": "qwendesk",
    "CLAUDE_CODE_AUTO_COMPACT_WINDOW": "$n_ctx",
    "CLAUDE_CODE_MAX_OUTPUT_TOKENS": "$n_output",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"
  }
}
"""
# The values have no quotes, which the command processor of Windows would take for its own: Codex reads what isn't TOML
# as text.
_CODEX = tuple(
    word
    for setting in (
        "model=qwendesk",
        "model_provider=qwendesk",
        "model_context_window=$n_ctx",
        "model_providers.qwendesk.name=QwenDesk",
        "model_providers.qwendesk.base_url=$openai",
        "model_providers.qwendesk.wire_api=responses",
        "model_providers.qwendesk.env_key=QWENDESK_KEY",
    )
    for word in ("-c", setting)
)
_OPENCODE = """{
  "$$schema": "https://opencode.ai/config.json",
  "provider": {
    "qwendesk": {
      "npm": "@ai-sdk/openai-compatible",
      "name": "QwenDesk",
      "options": {"baseURL": "$openai", "apiKey": "$key"},
      "models": {"qwendesk": {"name": "QwenDesk", "limit": {"context": $n_ctx, "output": $n_output}}}
    }
  }
}
"""
_CLINE = """{
  "version": 1,
  "providers": {
    "openai-compatible": {
      "settings": {"provider": "openai-compatible", "apiKey": "$key", "model": "qwendesk", "baseUrl": "$openai"},
      "updatedAt": "1970-01-01T00:00:00.000Z",
      "tokenSource": "manual"
    }
  }
}
"""
_CONTINUE = """name: QwenDesk
version: 0.0.1
schema: v1
models:
  - name: QwenDesk
    provider: openai
    model: qwendesk
    apiBase: "$openai"
    apiKey: "$key"
    roles: [chat, edit, apply]
    capabilities: [tool_use]
    defaultCompletionOptions:
      contextLength: $n_ctx
      maxTokens: $n_output
"""
_ZED = """{
  "language_models": {
    "openai_compatible": {
      "QwenDesk": {
        "api_url": "$openai",
        "available_models": [
          {
            "name": "qwendesk",
            "display_name": "QwenDesk",
            "max_tokens": $n_ctx,
            "max_output_tokens": $n_output,
            "capabilities": {"tools": true, "images": false, "parallel_tool_calls": true, "prompt_cache_key": false}
          }
        ]
      }
    }
  }
}
"""
PROGRAMS: Final = (
    Program(
        id="claude",
        name="Claude Code",
        command="claude",
        install="npm install -g @anthropic-ai/claude-code",
        settings=_CLAUDE,
        place=".claude/settings.json",
        # Variables of the shell would give way to those of the user's own settings.
        arguments=("--settings", "$file"),
        ask=("--settings", "$file", "-p", "$question"),
    ),
    Program(
        id="codex",
        name="Codex",
        command="codex",
        install="npm install -g @openai/codex",
        place=".codex/config.toml",
        arguments=_CODEX,
        environment=(("QWENDESK_KEY", "$key"),),
        ask=("exec", *_CODEX, "--skip-git-repo-check", "$question"),
    ),
    Program(
        id="opencode",
        name="opencode",
        command="opencode",
        install="npm install -g opencode-ai",
        settings=_OPENCODE,
        place=".config/opencode/opencode.json",
        arguments=("-m", "qwendesk/qwendesk"),
        environment=(("OPENCODE_CONFIG_CONTENT", "$settings"),),
        ask=("run", "-m", "qwendesk/qwendesk", "$question"),
    ),
    Program(
        id="cline",
        name="Cline",
        command="cline",
        install="npm install -g cline",
        settings=_CLINE,
        place=".cline/data/settings/providers.json",
        arguments=("-P", "openai-compatible", "-m", "qwendesk"),
        # Without a hub, a process of Cline that stays, and would keep the address of its first start.
        environment=(("CLINE_PROVIDER_SETTINGS_PATH", "$file"), ("CLINE_SESSION_BACKEND_MODE", "local")),
        ask=("-P", "openai-compatible", "-m", "qwendesk", "$question"),
    ),
    Program(
        id="continue",
        name="Continue",
        command="cn",
        install="npm install -g @continuedev/cli",
        settings=_CONTINUE,
        place=".continue/config.yaml",
        arguments=("--config", "$file"),
        ask=("--config", "$file", "-p", "$question"),
    ),
    Program(id="zed", name="Zed", command="zed", settings=_ZED, place=".config/zed/settings.json"),
)
BY_ID: Final[Mapping[str, Program]] = {each.id: each for each in PROGRAMS}
