"""`qwendesk ask --engine`: a server answers instead of a file."""

import json

import pytest

from qwendesk.cli import main as cli
from tests.remote import made_up_server
from tests.remote.made_up_server import Stream, piece, usage
from tests.remote.server_thread import served

REASONED = Stream(
    [piece({"reasoning_content": "Hm."}), piece({"content": "Four."}), piece({}, "stop"), usage(30, 3, cached=20)]
)


def test_the_only_model_of_a_server_answers(capsys):
    with served(made_up_server.llama_server(REASONED)) as server:
        assert cli.main(["ask", "--engine", f"127.0.0.1:{server.port}/v1", "--set", "top_k=3", "2 + 2?"]) == 0
        body = server.chats[0]
    out, err = capsys.readouterr()
    assert out == "Hm.\n\nFour.\n"
    assert "demo" not in err
    assert (body["model"], body["top_k"]) == ("Qwen3.8-27B", 3)


def test_json_says_what_the_server_reported(capsys):
    with served(made_up_server.llama_server(REASONED)) as server:
        assert cli.main(["ask", "--engine", server.address, "--model", "Qwen3.8-27B", "--json", "2 + 2?"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result["load"]["served_by"]["program"] == "llama-server"
    assert (result["turns"][0]["reused_tokens"], result["turns"][0]["reread_tokens"]) == (20, 10)


def test_one_of_several_models_must_be_named(capsys):
    with served(made_up_server.ollama()) as server:
        assert cli.main(["ask", "--engine", server.address, "hi"]) == 3
    assert "qwen3.5:27b, gemma3:12b" in capsys.readouterr().err


def test_the_key_comes_from_the_environment(monkeypatch, capsys):
    monkeypatch.setenv("QWENDESK_ENGINE_KEY", "secret")
    with served(made_up_server.llama_server(REASONED), key="secret") as server:
        assert cli.main(["ask", "--engine", server.address, "hi"]) == 0
    assert capsys.readouterr().out.endswith("Four.\n")


@pytest.mark.parametrize("address", ["ftp://x", "http://"])
def test_a_bad_address_is_bad_usage(address, capsys):
    assert cli.main(["ask", "--engine", address, "hi"]) == 2
    assert "address of a server" in capsys.readouterr().err
