"""`qwendesk start`, with made-up programs on the PATH: their settings, and the sentence when one can't start."""

import json
import os
import signal
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from qwendesk.cli import main as cli
from qwendesk.server.access import KEY_VARIABLE
from tests.server.setups.programs import write_program

KEY = 'a-key-of-mine-"quoted"'
SCRIPT = """
import json, os, pathlib, sys
files = [each for each in (*sys.argv[1:], os.environ.get("CLINE_PROVIDER_SETTINGS_PATH", "")) if os.path.isfile(each)]
seen = {"arguments": sys.argv[1:], "environment": dict(os.environ), "files": files,
        "texts": [pathlib.Path(each).read_text() for each in files]}
pathlib.Path(os.environ["SEEN"]).write_text(json.dumps(seen))
sys.exit(7)
"""


class Handler(BaseHTTPRequestHandler):
    status, body = 200, b""

    def do_GET(self) -> None:
        wrong = self.headers["Authorization"] != f"Bearer {KEY}"
        self.send_response(401 if wrong else self.status)
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def port(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Answer GET /v1/models as the server does, and return the port."""
    models = {"data": [{"id": "a"}, {"id": "b", "max_input_tokens": 65_536}]}
    monkeypatch.setattr(Handler, "body", json.dumps(models).encode())
    monkeypatch.setenv(KEY_VARIABLE, KEY)
    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_port
        server.shutdown()
        thread.join()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder for programs, with a space in its name, the only one on the PATH."""
    folder = tmp_path / "my programs"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("SEEN", str(tmp_path / "seen.json"))
    return folder


def started(programs: Path, name: str, command: str, port: int, *further: str) -> dict[str, Any]:
    write_program(programs, command, SCRIPT)
    assert cli.main(["start", "--port", str(port), name, *further]) == 7
    seen: dict[str, Any] = json.loads((programs.parent / "seen.json").read_text())
    assert not any(Path(each).exists() for each in seen["files"])  # nothing stays
    assert not any(KEY in each for each in seen["arguments"])  # other users see arguments
    return seen


def test_claude_code_gets_a_settings_file(programs: Path, port: int) -> None:
    seen = started(programs, "claude", "claude", port, "-p", "Hello there")
    assert seen["arguments"] == ["--settings", seen["files"][0], "-p", "Hello there"]
    settings = json.loads(seen["texts"][0])["env"]
    assert settings["ANTHROPIC_BASE_URL"] == f"http://127.0.0.1:{port}"
    assert settings["ANTHROPIC_AUTH_TOKEN"] == KEY
    assert settings["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "65536"


def test_codex_gets_arguments_and_its_key_in_the_environment(programs: Path, port: int) -> None:
    seen = started(programs, "codex", "codex", port, "--", "--help")
    settings = seen["arguments"][1:-1:2]
    assert f"model_providers.qwendesk.base_url=http://127.0.0.1:{port}/v1" in settings
    assert "model_context_window=65536" in settings
    assert seen["arguments"][-1] == "--help"
    assert seen["environment"]["QWENDESK_KEY"] == KEY
    assert not any('"' in each for each in seen["arguments"])  # cmd.exe would take them for its own


def test_opencode_gets_a_variable(programs: Path, port: int) -> None:
    seen = started(programs, "opencode", "opencode", port)
    provider = json.loads(seen["environment"]["OPENCODE_CONFIG_CONTENT"])["provider"]["qwendesk"]
    assert provider["options"] == {"baseURL": f"http://127.0.0.1:{port}/v1", "apiKey": KEY}
    assert provider["models"]["qwendesk"]["limit"] == {"context": 65_536, "output": 16_384}


def test_cline_gets_a_file_of_providers(programs: Path, port: int) -> None:
    seen = started(programs, "cline", "cline", port)
    settings = json.loads(seen["texts"][0])["providers"]["openai-compatible"]["settings"]
    assert (settings["apiKey"], settings["baseUrl"]) == (KEY, f"http://127.0.0.1:{port}/v1")
    assert seen["environment"]["CLINE_SESSION_BACKEND_MODE"] == "local"  # its hub keeps the first address


def test_continue_gets_a_file_in_yaml(programs: Path, port: int) -> None:
    yaml = pytest.importorskip("yaml")
    seen = started(programs, "continue", "cn", port)
    [model] = yaml.safe_load(seen["texts"][0])["models"]
    assert (model["apiKey"], model["apiBase"]) == (KEY, f"http://127.0.0.1:{port}/v1")
    assert model["defaultCompletionOptions"] == {"contextLength": 65_536, "maxTokens": 16_384}


def test_a_program_that_is_not_installed_is_told_with_the_command_that_installs_it(
    programs: Path, port: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["start", "--port", str(port), "codex"]) == 2
    assert "Install it with: npm install -g @openai/codex" in capsys.readouterr().err


def test_without_a_server_it_says_where_to_switch_it_on(
    programs: Path, port: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    write_program(programs, "claude", SCRIPT)
    assert cli.main(["start", "--port", "1", "claude"]) == 2
    assert "Server page" in capsys.readouterr().err

    monkeypatch.setattr(Handler, "body", b"<html>")
    assert cli.main(["start", "--port", str(port), "claude"]) == 2
    assert "isn't QwenDesk's server" in capsys.readouterr().err

    monkeypatch.setenv(KEY_VARIABLE, "another-key-of-mine")
    assert cli.main(["start", "--port", str(port), "claude"]) == 2
    assert KEY_VARIABLE in capsys.readouterr().err
    assert cli.main(["start", "--port", "99999", "claude"]) == 2
    assert not (programs.parent / "seen.json").exists()


@pytest.mark.skipif(sys.platform == "win32", reason="os.kill sends no Ctrl+C on Windows")
def test_ctrl_c_is_the_programs_own(programs: Path, port: int, tmp_path: Path) -> None:
    script = f"import os, signal\nos.kill({os.getpid()}, signal.SIGINT)\nprint('goes on')\nraise SystemExit(3)"
    write_program(programs, "claude", script)
    before = signal.getsignal(signal.SIGINT)  # ignored where the tests run in the background
    assert cli.main(["start", "--port", str(port), "claude"]) == 3
    assert signal.getsignal(signal.SIGINT) is before
