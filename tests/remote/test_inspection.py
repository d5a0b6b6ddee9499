"""What is found out about each kind of server, and about a model on it."""

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.served_model import ServedModel
from qwendesk.engine.protocol import LoadReport
from qwendesk.remote.addresses import address_warning, is_private_address, read_address
from qwendesk.remote.connection import Connection
from qwendesk.remote.inspection import find_kind, list_models
from qwendesk.remote.servers import RemoteServer
from tests.remote import made_up_server
from tests.remote.made_up_server import LM_STUDIO_MISSING, Refusal

KINDS = (
    ("llama-server", made_up_server.llama_server, None, ["Qwen3.8-27B"]),
    ("vllm", made_up_server.vllm, None, ["Qwen/Qwen3.8-27B-FP8"]),
    ("ollama", made_up_server.ollama, None, ["qwen3.5:27b", "gemma3:12b"]),
    ("lmstudio", made_up_server.lm_studio, LM_STUDIO_MISSING, ["qwen/qwen3.5-9b", "mistral-7b"]),
    ("sglang", made_up_server.sglang, None, ["Qwen/Qwen3.5-35B-A3B-FP8"]),
)


@pytest.mark.parametrize(("kind", "replies", "missing", "models"), KINDS, ids=[row[0] for row in KINDS])
async def test_each_kind_of_server_is_recognised_and_its_chat_models_are_listed(remote, kind, replies, missing, models):
    server = await remote.serve(replies(), missing=missing)
    connection = Connection(RemoteServer(server.address))
    assert await find_kind(connection) == kind
    assert [model.name for model in await list_models(connection, kind)] == models
    await connection.close()


async def test_an_unknown_server_that_lists_models_is_used_without_guesses(remote):
    server = await remote.serve({"/v1/models": {"data": [{"id": "some-model"}]}})
    report = await remote.use(server, "some-model")
    assert report.served_by.program == "OpenAI-compatible server"
    assert not report.can_think
    assert report.template.note
    assert report.n_ctx == 0


async def test_llama_server_says_what_its_template_takes(remote):
    server = await remote.serve(made_up_server.llama_server())
    report = await remote.use(server, "Qwen3.8-27B")
    assert (report.n_ctx, report.n_ctx_train, report.can_see) == (8192, 262144, True)
    assert report.can_think
    assert report.template.reasoning_efforts == ("low", "medium", "xhigh")
    assert report.template.default_effort == "xhigh"
    assert report.template.preserves_by_default
    assert report.template.call_dialect
    assert report.served_by.can_answer_now


async def test_vllm_is_asked_by_its_tokens(remote):
    server = await remote.serve(made_up_server.vllm())
    report = await remote.use(server, "Qwen/Qwen3.8-27B-FP8")
    assert report.can_think
    assert report.n_ctx == 32768
    assert not report.served_by.can_answer_now


async def test_ollama_says_what_each_model_can_do(remote):
    server = await remote.serve(made_up_server.ollama())
    thinks = await remote.use(server, "qwen3.5:27b")
    assert (thinks.can_think, thinks.n_ctx, thinks.architecture) == (True, 16384, "qwen35")
    plain = await remote.use(server, "gemma3:12b")
    assert not plain.can_think
    assert "Ollama" in plain.template.note
    assert not plain.template.call_dialect


async def test_lm_studio_says_whether_thinking_can_be_switched(remote):
    server = await remote.serve(made_up_server.lm_studio(), missing=LM_STUDIO_MISSING)
    thinks = await remote.use(server, "qwen/qwen3.5-9b")
    assert (thinks.can_think, thinks.n_ctx, thinks.can_see) == (True, 4096, True)
    plain = await remote.use(server, "mistral-7b")
    assert (plain.can_think, plain.can_see) == (False, False)


async def test_sglang_without_a_tool_parser_has_no_tools(remote):
    server = await remote.serve(made_up_server.sglang())
    report = await remote.use(server, "Qwen/Qwen3.5-35B-A3B-FP8")
    assert report.can_think
    assert not report.template.call_dialect
    assert report.architecture == "qwen35moe"


async def test_a_missing_model_names_those_that_are_there(remote):
    server = await remote.serve(made_up_server.ollama())
    failure = await remote.use(server, "qwen9:1t")
    assert isinstance(failure, LoadFailure)
    assert "qwen9:1t" in failure.sentence
    assert "qwen3.5:27b" in failure.sentence


async def test_the_key_is_sent_and_a_wrong_one_is_said(remote):
    server = await remote.serve(made_up_server.llama_server(), key="secret")
    remote.key = "wrong"
    failure = await remote.use(server, "Qwen3.8-27B")
    assert failure.title == "Key refused"
    remote.key = "secret"
    assert isinstance(await remote.use(server, "Qwen3.8-27B"), LoadReport)


async def test_nothing_there_is_said_with_a_next_step(remote):
    server = await remote.serve({})
    address = server.address
    await server.close()
    failure = await remote.engine.load(LoadOptions(model=ServedModel(address, "any").text))
    assert failure.title == "Not running"
    assert "Start the server" in failure.sentence


@pytest.mark.parametrize("body", [b"<html>It works!</html>", b"\xff\xfe", b"[1, 2]", b"{}", b"null"])
async def test_what_is_not_such_a_server_is_refused_in_words(remote, body):
    server = await remote.serve({}, missing=Refusal(200, body))
    failure = await remote.use(server, "any")
    assert isinstance(failure, LoadFailure)
    assert "The other PC" in failure.sentence


@pytest.mark.parametrize(
    ("typed", "address"),
    [
        ("192.168.1.5:8080", "http://192.168.1.5:8080"),
        (" http://pc:1234/v1/ ", "http://pc:1234"),
        ("localhost:11434/v1/chat/completions", "http://localhost:11434"),
        ("api.example.com", "https://api.example.com"),
        ("https://host/api/openai/v1", "https://host/api/openai"),
        ("[::1]:8000", "http://[::1]:8000"),
    ],
)
def test_addresses_are_read_as_users_write_them(typed, address):
    assert read_address(typed) == address


@pytest.mark.parametrize(
    "typed", ["", "ftp://host", "http://", "http://user:pw@host", "http://host:99999", "a b", "http://h\nx"]
)
def test_what_is_no_address_is_refused(typed):
    with pytest.raises(BadRequest):
        read_address(typed)


def test_a_warning_says_who_could_read_along():
    assert not address_warning("http://127.0.0.1:8080")
    assert not address_warning("https://api.example.com")
    assert "your network" in address_warning("http://192.168.1.5:8080")
    assert "anyone" in address_warning("http://api.example.com")
    assert is_private_address("http://nas.local:11434")
