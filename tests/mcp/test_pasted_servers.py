"""Texts that people copy from instructions of servers, whole and damaged."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from qwendesk.core.errors import BadOption
from qwendesk.mcp.pasted_servers import read_pasted_servers

CLAUDE = """
{
  "mcpServers": {
    "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/data"]},
    "weather": {"command": "uvx", "args": ["weather"], "env": {"KEY": "abc", "LIMIT": 3}, "cwd": "/data"}
  }
}
"""
CURSOR = '{"mcpServers": {"api": {"url": "https://example.org/mcp", "headers": {"Authorization": "Bearer x"}}}}'
VS_CODE = """
{
  // asked for when it starts
  "inputs": [{"type": "promptString", "id": "key", "password": true}],
  "servers": {
    "github": {"type": "http", "url": "https://example.org/mcp", "headers": {"Authorization": "Bearer ${input:key}"}},
    "git": {"type": "stdio", "command": "uvx", "args": ["mcp-server-git",],},
  },
}
"""


def test_claude_desktop() -> None:
    files, weather = read_pasted_servers(CLAUDE)
    assert (files.config.name, files.config.command) == ("files", "npx")
    assert files.config.arguments == ("-y", "@modelcontextprotocol/server-filesystem", "/data")
    assert (weather.config.environment, weather.config.folder) == (("KEY", "LIMIT"), "/data")
    assert weather.secrets == {"KEY": "abc", "LIMIT": "3"}
    assert files.config.id != weather.config.id


def test_cursor_and_lm_studio() -> None:
    (api,) = read_pasted_servers(CURSOR)
    assert (api.config.address, api.config.headers) == ("https://example.org/mcp", ("Authorization",))
    assert api.secrets == {"Authorization": "Bearer x"}


def test_vs_code_with_comments_and_what_it_would_ask_for() -> None:
    github, git = read_pasted_servers(VS_CODE)
    assert (github.config.headers, github.secrets) == (("Authorization",), {})
    assert git.config.arguments == ("mcp-server-git",)


@pytest.mark.parametrize(
    ("text", "name", "command"),
    [
        ('"mcpServers": {"a": {"command": "b"}},', "a", "b"),
        ('"a": {"command": "b"}', "a", "b"),
        ('{"mcp": {"servers": {"a": {"command": "b"}}}}', "a", "b"),
        ('{"command": "npx", "args": ["-y", "@scope/thing"]}', "thing", "npx"),
        ('\ufeff{"a": {"command": " b "}}', "a", "b"),
    ],
)
def test_pieces_of_files(text: str, name: str, command: str) -> None:
    (server,) = read_pasted_servers(text)
    assert (server.config.name, server.config.command) == (name, command)


def test_comment_signs_within_texts_stay() -> None:
    (server,) = read_pasted_servers('{"a": {"command": "b", "args": ["http://c//d", "/*", ",]"]}}')
    assert server.config.arguments == ("http://c//d", "/*", ",]")


def test_server_that_was_switched_off_stays_off() -> None:
    (server,) = read_pasted_servers('{"a": {"command": "b", "disabled": true}}')
    assert not server.config.is_on


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "Paste the JSON"),
        ("npx -y thing", "isn't valid JSON"),
        ('{"mcpServers": {"a": {"command": "b"}', "line 1"),
        ('{\n"mcpServers": {\n"a": {"command" "b"}}}', "line 3, column 17"),
        ("[]", "no servers"),
        ('{"mcpServers": {}}', "no servers"),
        ('{"theme": "dark"}', "no servers"),
        ('{"a": {"args": []}}', "needs either a program"),
        ('{"mcpServers": {"a": {}}}', "needs either a program"),
        ('{"mcpServers": {"a": "npx"}}', "an object in braces"),
        ('{"a": {"command": ["npx"]}}', "command should be a text"),
        ('{"a": {"command": "npx -y thing"}}', "the program is npx; -y thing belongs to its arguments"),
        ('{"a": {"command": "npx", "args": "-y thing"}}', "args should be a list"),
        ('{"a": {"command": "npx", "env": ["A=1"]}}', "env should be an object"),
        ('{"a": {"command": "npx", "args": ["${workspaceFolder}"]}}', "${workspaceFolder}"),
        ('{"a": {"command": "npx\\u0000"}}', "no program can be started with"),
        ('{"a": {"url": "example.org"}}', "not an address"),
        ('{"a": {"url": "https://[::1"}}', "not an address"),
        ('{"a": {"url": "https://e.org/mcp", "headers": {"A b": "1"}}}', "no header can have"),
        ('{"a": {"url": "https://e.org/mcp", "headers": {"A": "1\\r\\nB: 2"}}}', "no header can have"),
        ('{"a": {"type": "sse", "url": "https://e.org/sse"}}', "SSE"),
        ('{"a": {"command": "b"}, "A": {"command": "c"}}', 'a server "A" already'),
        ('{"Files": {"command": "b"}}', 'a server "Files" already'),
        ('{"": {"command": "b"}}', "Enter a name"),
        ("[" * 100_000, "nested too deeply"),
        ('"' + '\\"' * 99_000, "valid JSON"),  # would take minutes if each of them was tried as the first
        ("/* " * 66_000, "valid JSON"),
    ],
)
def test_each_mistake_has_a_sentence(text: str, words: str) -> None:
    with pytest.raises(BadOption) as error:
        read_pasted_servers(text, taken=["files"])
    assert words in error.value.sentence


@given(st.text() | st.recursive(st.none() | st.text() | st.integers(), st.lists).map(repr))
def test_any_text_gives_servers_or_a_sentence(text: str) -> None:
    try:
        assert read_pasted_servers(text)
    except BadOption:
        return
