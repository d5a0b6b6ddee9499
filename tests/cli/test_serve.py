"""`qwendesk serve`: what it prints and asks, and how it ends. Once with the real engine."""

import json
import signal
import stat
import subprocess
import sys
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from bench.served import STATUS_OF_TERMINATED
from qwendesk.cli import main as cli
from qwendesk.core import paths
from qwendesk.server.access import KEY_VARIABLE
from tests.cli.keyboard import Keyboard
from tests.server.setups.programs import write_program

SERVE = [sys.executable, "-m", "qwendesk", "serve", "--port", "0"]


def start(*options: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen([*SERVE, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE)


def ready(process: "subprocess.Popen[bytes]") -> dict[str, Any]:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line, process.communicate()[1]
    found: dict[str, Any] = json.loads(line)
    return found


def ask(address: str, key: str, path: str, body: dict[str, Any]) -> Any:
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    with urllib.request.urlopen(urllib.request.Request(address + path, json.dumps(body).encode(), headers)) as reply:
        return json.load(reply)


def test_the_demo_model_answers_in_three_apis_until_sigterm(tmp_path: Path) -> None:
    key_file = tmp_path / "new" / "server.key"
    with start(
        "--json", "--model", str(paths.demo_model()), "--set", "n_ctx=2048", "--key-file", str(key_file)
    ) as server:
        line = ready(server)
        address, key = line["url"], line["key"]
        assert set(line) == {"url", "key"}
        assert key_file.read_text(encoding="utf-8").strip() == key
        if sys.platform != "win32":
            assert stat.S_IMODE(key_file.stat().st_mode) == 0o600
        asked = {"messages": [{"role": "user", "content": "Who are you?"}], "max_tokens": 64}
        chat = ask(address, key, "/v1/chat/completions", {**asked, "logprobs": True, "reasoning_effort": "none"})
        [choice] = chat["choices"]
        tokens = [token["token"] for token in choice["logprobs"]["content"]]
        assert "".join(tokens).strip() == choice["message"]["content"]
        assert "demo model" in choice["message"]["content"]
        message = ask(address, key, "/v1/messages", asked)
        assert "demo model" in message["content"][0]["text"]
        counted = ask(address, key, "/v1/messages/count_tokens", asked)
        script = "import json, sys; print(json.dumps(json.load(open(sys.argv[2]))['env']))"
        environment = {**write_program(tmp_path / "programs", "claude", script), KEY_VARIABLE: key}
        started = [sys.executable, "-m", "qwendesk", "start", "--port", address.rpartition(":")[2], "claude"]
        given = json.loads(subprocess.run(started, env=environment, capture_output=True, check=True).stdout)
        assert given["ANTHROPIC_BASE_URL"] == address
        assert given["CLAUDE_CODE_AUTO_COMPACT_WINDOW"] == "2048"
        used = message["usage"]
        assert counted["input_tokens"] == used["input_tokens"] + used["cache_read_input_tokens"]
        response = ask(address, key, "/v1/responses", {"input": "Who are you?", "max_output_tokens": 200})
        assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
        server.terminate()
        assert server.wait() == STATUS_OF_TERMINATED


@pytest.mark.skipif(sys.platform == "win32", reason="Windows sends Ctrl+C to the whole console")
def test_it_ends_well_by_ctrl_c_and_says_where_the_key_is(tmp_path: Path) -> None:
    with start("--key-file", str(tmp_path / "key")) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        out = server.stdout.readline()
        server.send_signal(signal.SIGINT)
        out, err = out + server.stdout.read(), server.stderr.read()
    assert server.returncode == 0, err
    assert out.startswith(b"OpenAI      http://127.0.0.1:")
    assert b"Anthropic" in out
    assert str(tmp_path / "key").encode() in err
    key = (tmp_path / "key").read_bytes().strip()
    assert key not in out + err


def test_a_key_from_the_environment_needs_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QWENDESK_SERVER_KEY", "a-key-of-the-environment")
    with start("--json", "--key-file", str(tmp_path / "key")) as server:
        assert ready(server)["key"] == "a-key-of-the-environment"
        server.terminate()
    with start("--key-file", str(tmp_path / "key")) as server:
        assert server.stdout is not None
        assert server.stderr is not None
        server.stdout.readline()
        server.terminate()
        assert b"The key is in QWENDESK_SERVER_KEY." in server.stderr.read()
    assert not (tmp_path / "key").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--port", "70000"], "--port takes"),
        (["--model", "no-such-file.gguf"], "could not be found"),
        (["--set", "n_ctx=1"], "--set needs --model"),
        (["--waiting", "-1"], "--waiting takes"),
        (["--certificate", "x.pem"], "go together"),
        (["--certificate", "x.pem", "--certificate-key", "x.key"], "x.pem"),
        (["--host", "0.0.0.0"], "Other PCs can reach 0.0.0.0"),
        (["--host", "0.0.0.0"], "Add --yes"),
        (["--host", "203.0.113.7", "--yes"], "address of this PC"),
    ],
)
def test_what_cannot_be_served_is_said_in_a_sentence(
    options: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["serve", *options]) in (1, 2)
    out, err = capsys.readouterr()
    assert words in err
    assert not out


def test_a_model_file_that_was_cut_off_is_refused_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(paths.demo_model().read_bytes()[:3000])
    assert cli.main(["serve", "--model", str(broken), "--port", "0"]) == 2
    out, err = capsys.readouterr()
    assert "broken.gguf" in err
    assert not out


def test_a_short_key_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "key").write_text("short\n", encoding="utf-8")
    assert cli.main(["serve", "--key-file", str(tmp_path / "key")]) == 2
    assert "at least" in capsys.readouterr().err


def test_other_pcs_are_let_in_only_after_a_question(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin", Keyboard("n\n"))
    assert cli.main(["serve", "--host", "0.0.0.0", "--port", "0"]) == 1
    out, err = capsys.readouterr()
    assert "Continue? [y/N]" in err
    assert not out


def test_other_pcs_get_tls_and_the_fingerprint_is_shown(tmp_path: Path) -> None:
    with start("--json", "--host", "0.0.0.0", "--yes", "--key-file", str(tmp_path / "key")) as server:
        line = ready(server)
        assert line["url"].startswith("https://")
        assert len(line["fingerprint"].split(":")) == 32
        server.terminate()
    assert server.returncode == STATUS_OF_TERMINATED
