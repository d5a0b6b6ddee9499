"""Tools with effects that only record that they ran, and harmless ones that tell a given text."""

from collections.abc import Mapping
from typing import Any

import msgspec

from qwendesk.core.tool_context import CallContext
from qwendesk.toolbox.tool import Arguments, Effect, Tool


class Ran(msgspec.Struct, frozen=True):
    """A call that had its effect."""

    name: str
    arguments: Mapping[str, Any]


class RecordingTools:
    """`told` is what the harmless tools answer."""

    def __init__(self, told: str = "Nothing.") -> None:
        self.told = told
        self.ran: list[Ran] = []

    @property
    def all(self) -> tuple[Tool, ...]:
        return (
            self._telling("look_up", "word"),
            self._telling("read_page", "address"),
            self.effect("send_mail", "sends", "to", "text"),
            self.effect("fetch_address", "sends", "address"),
            self.effect("run_command", "runs", "command"),
            self.effect("write_note", "writes", "text", is_trusted=True),
            self.effect("delete_files", "runs", "path"),
        )

    def effect(
        self, name: str, effect: Effect, *parameters: str, is_trusted: bool = False, description: str = ""
    ) -> Tool:
        async def run(arguments: Arguments, _context: CallContext) -> str:
            self.ran.append(Ran(name, dict(arguments)))
            return "It is done."

        described = description or f"Use {name}."
        return Tool(
            name, name, "It acts.", described, _schema(*parameters), effect, run, is_trusted=is_trusted,
            is_described_by_others=bool(description),
        )  # fmt: skip

    def _telling(self, name: str, *parameters: str) -> Tool:
        async def run(_arguments: Arguments, _context: CallContext) -> str:
            return self.told

        return Tool(name, name, "It tells.", f"Use {name}.", _schema(*parameters), "nothing", run)


def _schema(*parameters: str) -> dict[str, Any]:
    properties = {each: {"type": "string"} for each in parameters}
    return {"type": "object", "properties": properties, "required": list(parameters)}
