"""Real programs use QwenDesk's server: `python -m tools.clients [--write] [NAME ...]`, or `make clients`.

    --write   put the table into docs/server.md
    NAME      only programs whose package has this in its name

Each program is installed from npm or PyPI into .work/clients, set up as the window does it, and asked for the word in
a file, which it has to read with its own tool. The engine is scripted: it answers the program's full request with a
call of that tool, and then with what the tool returned. The programs in a terminal also get an answer of the demo
model. What can't be installed is skipped by name. Exit 1 if a program failed, unless its own tool did: Codex, for
one, runs commands in a sandbox that not every PC has. Needs a network and about 2 GB.
"""

import argparse
import sys
from pathlib import Path

import msgspec

from tools.clients.install import FOLDER, NotInstalled, node_folder
from tools.clients.rounds import CLIENTS, Client, Round, demo_round, install, tool_round
from tools.clients.scripted_engine import RECORD_VARIABLE
from tools.clients.server import DEMO, SCRIPTED, running_server
from tools.setup.project import ROOT

_DOCS = ROOT / "docs" / "server.md"
_BEGIN, _END = "<!-- table of make clients -->\n", "<!-- end of the table -->\n"


class Row(msgspec.Struct):
    client: Client
    version: str = ""
    skipped: str = ""
    tool: Round | None = None
    demo: Round | None = None

    @property
    def failed(self) -> bool:
        return any(each is not None and not each.works and not each.own_fault for each in (self.tool, self.demo))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.clients", description=__doc__.splitlines()[0])
    parser.add_argument("--write", action="store_true", help="put the table into docs/server.md")
    parser.add_argument("names", nargs="*", metavar="NAME", help="only packages with this in their name")
    chosen = parser.parse_args()
    if chosen.write and chosen.names:
        parser.error("--write needs all programs: leave out the names.")
    rows = [
        Row(client) for client in CLIENTS if not chosen.names or any(name in client.package for name in chosen.names)
    ]
    node = _install_all(rows)
    usable = [row for row in rows if not row.skipped]
    record = FOLDER / "record.jsonl"
    with running_server(SCRIPTED, FOLDER / "home" / "scripted", {RECORD_VARIABLE: str(record)}) as target:
        for row in usable:
            row.tool = tool_round(row.client, target, node, record)
            _say(row.client, "tool", row.tool)
    with running_server(DEMO, FOLDER / "home" / "demo", {}) as target:
        for row in usable:
            if row.client.program:
                row.demo = demo_round(row.client, target, node)
                _say(row.client, "demo", row.demo)
    table = _table(rows)
    print(f"\n{table}")
    if chosen.write:
        _write(_DOCS, table)
    return int(any(row.failed for row in rows))


def _install_all(rows: list[Row]) -> Path | None:
    """Install what can be, and say what can't. Return the folder of Node.js, None for the one of the PATH."""
    node: Path | None = None
    no_node = ""
    try:
        node = node_folder()
    except NotInstalled as error:
        no_node = str(error)
    for row in rows:
        try:
            if row.client.program and no_node:
                raise NotInstalled(no_node)
            row.version = install(row.client)
        except NotInstalled as error:
            row.skipped = str(error)
            print(f"skipped {row.client.package}: {error}", flush=True)
    return node


def _say(client: Client, what: str, done: Round) -> None:
    verdict = "works" if done.works else f"FAILED: {done.said}"
    if done.own_fault:
        verdict = f"the program's own tool failed, not the server: {done.own_fault}"
    print(f"{client.package} ({client.api}), {what}: {verdict}", flush=True)


def _table(rows: list[Row]) -> str:
    lines = [
        "| program | release | API | its request | called | tool round trip | demo model |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        tool = row.tool
        request = _size(tool) if tool is not None and tool.n_tools else "–"
        called = f"`{tool.called}`" if tool is not None and tool.called else "–"
        cells = (row.client.title, row.version or "–", row.client.api, request, called, _verdict(row, tool))
        lines.append(f"| {' | '.join((*cells, _verdict(row, row.demo)))} |")
    return "\n".join(lines) + "\n"


def _size(done: Round) -> str:
    size = f"{done.characters / 1000:.0f} KB" if done.characters >= 1000 else "under 1 KB"
    return f"{size}, {done.n_tools} tool{'' if done.n_tools == 1 else 's'}"


def _verdict(row: Row, done: Round | None) -> str:
    if row.skipped:
        return "not installed"
    if done is None:
        return "–"
    return "works" if done.works else "its own tool fails" if done.own_fault else "fails"


def _write(file: Path, table: str) -> None:
    """Replace the table in a page. Raise ValueError if it has no place for one."""
    text = file.read_text(encoding="utf-8")
    before, after = text.index(_BEGIN) + len(_BEGIN), text.index(_END)
    file.write_text(f"{text[:before]}{table}{text[after:]}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
