"""Names for the model: unique, valid, never those of others."""

import re

from hypothesis import given
from hypothesis import strategies as st

from qwendesk.mcp.server_tools import SEPARATOR, server_prefixes, tool_names
from qwendesk.toolbox.builtin import builtin_tools

TEXTS = st.text(max_size=90)


@given(st.dictionaries(TEXTS, st.lists(TEXTS, max_size=6), max_size=5))
def test_any_servers_have_unique_valid_names_that_no_tool_of_the_app_has(servers: dict[str, list[str]]) -> None:
    prefixes = server_prefixes({name: name for name in servers})
    names = [name for server, tools in servers.items() for name in tool_names(prefixes[server], tools).values()]
    assert len(names) == len(set(names)) == sum(len(set(tools)) for tools in servers.values())
    assert all(re.fullmatch(r"[A-Za-z0-9_-]{1,72}", name) for name in names)
    assert not set(names) & {tool.name for tool in builtin_tools()}


def test_no_tool_of_the_app_has_the_separator() -> None:
    assert not [tool.name for tool in builtin_tools() if SEPARATOR in tool.name]


def test_names_do_not_depend_on_the_order_in_which_tools_are_listed() -> None:
    assert tool_names("a", ["x.y", "x y"]) == tool_names("a", ["x y", "x.y"])


def test_server_with_the_words_of_another_has_a_number() -> None:
    assert server_prefixes({"1": "My files", "2": "my-files!", "3": "MY_FILES"}) == {
        "1": "my_files", "2": "my-files", "3": "my_files_2",
    }  # fmt: skip
