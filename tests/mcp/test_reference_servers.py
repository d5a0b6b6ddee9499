"""The reference servers of the protocol, if they are installed: each lists its tools and answers a call.

`npm install -g @modelcontextprotocol/server-filesystem @modelcontextprotocol/server-everything
@modelcontextprotocol/server-memory` and `pip install mcp-server-git mcp-server-fetch` install them.
"""

import shutil
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from qwendesk.mcp.server_config import NewServer, ServerConfig, new_id
from qwendesk.mcp.service import McpService
from tests.mcp.servers import added, no_progress, phase, problem, tool_of


class Reference(msgspec.Struct, frozen=True):
    """A server, a call of it, and a part of what it answers. FOLDER stands for a folder with hello.txt."""

    tool: str
    arguments: Mapping[str, Any]
    answer: str
    n_images: int = 0
    started_with: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    prepare: Callable[[Path], object] | None = None


def _repository(folder: Path) -> None:
    subprocess.run(["git", "init", "-q", str(folder)], check=True)


SERVERS = {
    "mcp-server-filesystem": Reference(
        "read_text_file", {"path": "FOLDER/hello.txt"}, "Hello from a file.", started_with=("FOLDER",)
    ),
    "mcp-server-everything": Reference("get-tiny-image", {}, "image", n_images=1),
    "mcp-server-memory": Reference(
        "create_entities",
        {"entities": [{"name": "Ada", "entityType": "person", "observations": ["likes maps"]}]},
        "likes maps",
        variables={"MEMORY_FILE_PATH": "FOLDER/memory.jsonl"},
    ),
    "mcp-server-git": Reference("git_status", {"repo_path": "FOLDER"}, "hello.txt", prepare=_repository),
    "mcp-server-fetch": Reference("fetch", {"url": "http://127.0.0.1:9/"}, "http://127.0.0.1:9/"),
}
"""By the name of the program."""


@pytest.mark.parametrize("program", SERVERS)
async def test_reference_server_lists_its_tools_and_answers(service: McpService, tmp_path: Path, program: str) -> None:
    if shutil.which(program) is None:
        pytest.skip(f"{program} is not installed")
    reference = SERVERS[program]
    tmp_path.joinpath("hello.txt").write_text("Hello from a file.\n", encoding="utf-8")
    if reference.prepare is not None:
        reference.prepare(tmp_path)
    config = ServerConfig(
        new_id(),
        program,
        command=program,
        arguments=_filled(reference.started_with, tmp_path),
        environment=tuple(reference.variables),
    )
    secrets = _filled(dict(reference.variables), tmp_path)

    await added(service, NewServer(config, secrets))

    assert phase(service, config.id) == "running", problem(service)
    answer = await service.call(
        tool_of(service, reference.tool), _filled(dict(reference.arguments), tmp_path), no_progress
    )
    assert reference.answer in answer.text
    assert len(answer.images) == reference.n_images


def _filled(value: Any, folder: Path) -> Any:
    """Return `value` with `folder` in place of FOLDER."""
    match value:
        case str():
            return value.replace("FOLDER", str(folder))
        case dict():
            return {key: _filled(each, folder) for key, each in value.items()}
        case tuple():
            return tuple(_filled(each, folder) for each in value)
    return value
