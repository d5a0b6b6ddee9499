"""`qwendesk ask --tools`: what the model may call, who must allow it, and what is printed."""

import io
import json
from collections.abc import Iterator
from pathlib import Path

import keyring
import msgspec
import pytest
from keyring.backends import fail

from qwendesk.cli import ask as cli_ask
from qwendesk.cli import main as cli
from qwendesk.cli.ask_tools import CommandLineTools, read_tools, typed_answer
from qwendesk.cli.terminal import Terminal
from qwendesk.core import paths
from qwendesk.core.app_options import AppOptions
from qwendesk.core.chats import ChatSettings
from qwendesk.core.errors import BadOption
from qwendesk.core.messages import ToolCall
from qwendesk.core.observed import Observed
from qwendesk.core.tool_context import CallContext
from qwendesk.mcp.server_config import McpServerList, NewServer, save_secrets, server_list_file
from qwendesk.mcp.tools import server_switch
from qwendesk.toolbox.builtin import web_tools
from tests.decoding import office_files
from tests.fakes.engine import DEMO_REPORT, FakeEngineClient, ScriptedAnswer, ready
from tests.mcp.servers import friendly
from tests.toolbox.web.made_up_web import answer, running_web

CALCULATE = ToolCall("calculate", '{"expression": "6 * 7"}')


@pytest.fixture
def engine(monkeypatch) -> FakeEngineClient:
    template = msgspec.structs.replace(DEMO_REPORT.template, tools=True, call_dialect="xml")
    fake = FakeEngineClient(msgspec.structs.replace(DEMO_REPORT, template=template))
    monkeypatch.setattr(cli_ask, "preferred_client", lambda: ready(fake))
    return fake


def offered(engine: FakeEngineClient) -> list[str]:
    asked = engine.asked[0]
    return [json.loads(text)["function"]["name"] for text in asked.tools_json]


def test_json_lists_the_calls(engine, capsys):
    engine.answers = [ScriptedAnswer(calls=(CALCULATE,)), ScriptedAnswer(text="42")]
    assert cli.main(["ask", "--tools", "calculator", "--yes", "--json", "6 * 7?"]) == 0
    (turn,) = json.loads(capsys.readouterr().out)["turns"]
    assert turn["answer"] == "42"
    assert turn["tool_calls"] == [
        {"name": "calculate", "arguments": {"expression": "6 * 7"}, "result": "42", "error": ""}
    ]
    assert offered(engine) == ["calculate"]


def test_calls_are_printed_between_the_texts(engine, capsys):
    engine.answers = [ScriptedAnswer(text="Let me see.", calls=(CALCULATE,)), ScriptedAnswer(text="It is 42.")]
    assert cli.main(["ask", "--no-think", "--tools", "calculator", "--yes", "6 * 7?"]) == 0
    assert capsys.readouterr().out == 'Let me see.\n[calculate {"expression": "6 * 7"}: 42]\nIt is 42.\n'


def test_folder_can_be_read(engine, capsys, tmp_path):
    (tmp_path / "notes.txt").write_text("buy milk")
    engine.answers = [
        ScriptedAnswer(calls=(ToolCall("read_file", '{"path": "notes.txt"}'),)),
        ScriptedAnswer(text="Milk."),
    ]
    assert cli.main(["ask", "--tools", f"files:{tmp_path},clock", "--yes", "--json", "What?"]) == 0
    (turn,) = json.loads(capsys.readouterr().out)["turns"]
    assert turn["tool_calls"][0]["result"] == "buy milk"
    assert offered(engine) == ["current_time", "list_files", "search_files", "read_file"]


def test_folder_is_searched_with_places_to_cite(engine, capsys, tmp_path):
    office_files.docx(tmp_path / "plan.docx", "Buy a boat in Hamburg")
    engine.answers = [
        ScriptedAnswer(calls=(ToolCall("search_files", '{"query": "boat"}'),)),
        ScriptedAnswer(text="In Hamburg [1]."),
    ]
    assert cli.main(["ask", "--tools", f"files:{tmp_path}", "--yes", "--json", "Where?"]) == 0
    (turn,) = json.loads(capsys.readouterr().out)["turns"]
    result = turn["tool_calls"][0]["result"]
    assert result == "[1] plan.docx, paragraphs 1-1\n    Buy a boat in Hamburg"


def test_without_yes_nothing_runs_where_nobody_can_type(engine, capsys):
    engine.answers = [ScriptedAnswer(calls=(CALCULATE,)), ScriptedAnswer(text="I can't.")]
    assert cli.main(["ask", "--tools", "calculator", "--json", "6 * 7?"]) == 0
    out, err = capsys.readouterr()
    assert "consent" in json.loads(out)["turns"][0]["tool_calls"][0]["error"]
    assert "--yes" in err


@pytest.mark.parametrize(("typed", "result"), [("y\n", "42"), ("\n", ""), ("no\n", "")])
async def test_typed_answer_decides(typed, result):
    questions = []

    def ask(question: str) -> str:
        questions.append(question)
        return typed

    tools = CommandLineTools(read_tools("calculator", yes=False), Terminal(io.StringIO(), io.StringIO()), ask)
    record = await tools.run(CALCULATE, CallContext("", ChatSettings(tools=("calculate",))))
    assert record.result == result
    assert "calculate" in questions[0]


class _Typing(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_question_controls_no_terminal(monkeypatch, capsys):
    """The arguments could wipe the line and write another one."""
    monkeypatch.setattr("sys.stdin", _Typing("n\n"))
    tools = CommandLineTools(
        read_tools("calculator", yes=False), Terminal(io.StringIO(), io.StringIO()), typed_answer()
    )
    call = ToolCall("calculate", '{"expression": "1 \x1b[2K\x9b2K\u202e"}')
    await tools.run(call, CallContext("", ChatSettings(tools=("calculate",))))
    assert '"1 <U+001B>[2K<U+009B>2K<U+202E>"' in capsys.readouterr().err


@pytest.mark.parametrize(
    ("option", "call"),
    [
        ("web_search", ToolCall("web_search", '{"query": "boats"}')),
        ("read_page", ToolCall("read_page", '{"url": "https://page.example"}')),
    ],
)
def test_yes_is_no_consent_to_send(engine, capsys, option, call):
    engine.answers = [ScriptedAnswer(calls=(call,)), ScriptedAnswer(text="I can't.")]
    assert cli.main(["ask", "--tools", option, "--yes", "--json", "What do boats do?"]) == 0
    out, err = capsys.readouterr()
    (turn,) = json.loads(out)["turns"]
    assert "consent" in turn["tool_calls"][0]["error"]
    assert f"{option} was not run, because it asks each time and nobody can be asked." in err


@pytest.mark.parametrize(("typed", "is_sent"), [("y\n", True), ("\n", False)])
async def test_what_would_be_sent_is_shown_and_asked_about_despite_yes(typed, is_sent):
    questions = []

    def ask(question: str) -> str:
        questions.append(question)
        return typed

    async with running_web() as web:
        web.answers[f"127.0.0.1:{web.port}/search"] = answer(b'{"results": []}', "application/json")
        options = AppOptions(search_service="searxng", searxng_address=f"http://127.0.0.1:{web.port}")
        chosen = read_tools("web_search", yes=True)
        terminal = Terminal(io.StringIO(), io.StringIO())
        tools = CommandLineTools(chosen, terminal, ask, web_tools(Observed(options)))
        search = ToolCall("web_search", '{"query": "boats"}')
        record = await tools.run(search, CallContext("", ChatSettings(tools=chosen.names)))
        assert len(web.requests) == is_sent
    assert questions == [f"Sends a search to SearXNG (127.0.0.1:{web.port}).\nSearch: boats\nRun web_search? [y/N]"]
    assert ("found nothing" if is_sent else "did not allow") in record.error


@pytest.mark.parametrize("text", ["run_python", "python", "remember", "recall_notes", "edit_file"])
def test_tools_that_write_or_run_are_not_there(text):
    with pytest.raises(BadOption):
        read_tools(text, yes=True)


@pytest.fixture
def server(tmp_path, monkeypatch) -> Iterator[NewServer]:
    """An MCP server that the user added in the window."""
    before = keyring.get_keyring()
    keyring.set_keyring(fail.Keyring())
    monkeypatch.setattr(paths, "config_folder", lambda: tmp_path / "config")
    server = friendly("My notes")
    save_secrets(server.config, server.secrets)
    server_list_file().write(McpServerList(servers=(server.config,)))
    yield server
    keyring.set_keyring(before)


@pytest.mark.usefixtures("server")
def test_tools_of_a_server_are_offered_and_need_somebody_who_can_be_asked(engine, capsys):
    call = ToolCall("my_notes__add", '{"a": 1, "b": 2}')
    engine.answers = [ScriptedAnswer(calls=(call,)), ScriptedAnswer(text="No.")]
    assert cli.main(["ask", "--tools", "mcp:MY NOTES,clock", "--yes", "--json", "1 + 2?"]) == 0
    out, err = capsys.readouterr()
    assert "my_notes__add was not run, because it asks each time and nobody can be asked." in err
    assert json.loads(out)["turns"][0]["tool_calls"][0]["error"]
    assert {"current_time", "my_notes__add", "my_notes__resources"} <= set(offered(engine))


async def test_typed_yes_lets_a_server_run_its_tool(server):
    questions = []

    def ask(question: str) -> str:
        questions.append(question)
        return "y"

    terminal = Terminal(io.StringIO(), io.StringIO())
    tools = CommandLineTools(read_tools("mcp:my notes", yes=True), terminal, ask)
    await tools.prepare()
    settings = ChatSettings(tools=(server_switch(server.config.id),))
    record = await tools.run(ToolCall("my_notes__add", '{"a": 1, "b": 2}'), CallContext("chat", settings))
    await tools.close()
    assert record.result == "3"
    assert f"Runs: {server.config.command_line}" in questions[0]


@pytest.mark.usefixtures("server")
def test_servers_that_are_not_there_are_refused_with_those_that_are():
    with pytest.raises(BadOption, match="Your servers: My notes"):
        read_tools("mcp:calendar", yes=False)


def test_a_model_without_calls_is_said(engine, capsys):
    engine.report = DEMO_REPORT
    engine.answers = [ScriptedAnswer(text="Hm.")]
    assert cli.main(["ask", "--tools", "clock", "Time?"]) == 0
    assert "no tool calls" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["fly", "files", "files:", "files:/no/such/folder", "files:\udcff"])
def test_unknown_tools_and_folders_are_refused(text):
    with pytest.raises(BadOption):
        read_tools(text, yes=True)


def test_names_are_taken_once(tmp_path: Path):
    chosen = read_tools(f" clock , clock, files:{tmp_path} ,", yes=True)
    assert chosen.names == ("current_time", "list_files", "search_files", "read_file")
    assert chosen.folders == (str(tmp_path),)
    assert read_tools("", yes=False).names == ()
