"""What Ollama and LM Studio hold in memory, and their unloading, at made-up servers on this PC."""

import json
from collections.abc import AsyncIterator

import msgspec
import pytest
import pytest_asyncio

from qwendesk.remote import loaded_models
from qwendesk.remote.loaded_models import HeldModel, find_loaded, is_on_this_pc, unload
from qwendesk.remote.servers import RemoteServer
from tests.remote.made_up_server import LM_STUDIO_MISSING, Asked, MadeUpServer, Refusal, Reply, lm_studio

# The example of docs.ollama.com/api/ps, with a second model that is in RAM alone.
PS = {
    "models": [
        {
            "name": "gemma3",
            "model": "gemma3",
            "size": 6591830464,
            "digest": "a2af6cc3eb7fa8be8504abaf9b04e88f17a119ec3f04a3addf55f92841195f5a",
            "details": {"parent_model": "", "format": "gguf", "family": "gemma3", "families": ["gemma3"]},
            "expires_at": "2025-10-17T16:47:07.93355-07:00",
            "size_vram": 5333539264,
            "context_length": 4096,
        },
        {"name": "nomic-embed-text:latest", "model": "nomic-embed-text:latest", "size": 577401856, "size_vram": 0},
    ]
}


def no_key(_address: str) -> str:
    return ""


def ollama_that_holds() -> dict[str, Reply]:
    """Ollama: a request with keep_alive 0 and without a prompt unloads, and nothing is generated."""
    held = {"models": list(PS["models"])}

    def generate(asked: Asked) -> Reply:
        assert asked.body["keep_alive"] == 0
        assert "prompt" not in asked.body
        held["models"] = [each for each in held["models"] if each["model"] != asked.body["model"]]
        return {"model": asked.body["model"], "response": "", "done": True, "done_reason": "unload"}

    return {"/api/ps": lambda _asked: held, "/api/generate": generate}


def lm_studio_that_holds() -> dict[str, Reply]:
    listed = json.loads(json.dumps(lm_studio()["/api/v1/models"]))

    def unload_instance(asked: Asked) -> Reply:
        for model in listed["models"]:
            if model["loaded_instances"] and model["loaded_instances"][0]["id"] == asked.body["instance_id"]:
                model["loaded_instances"] = []
                return {"instance_id": asked.body["instance_id"]}
        return Refusal(404, {"error": {"message": "No such instance", "type": "not_found"}})

    return {"/api/v1/models": lambda _asked: listed, "/api/v1/models/unload": unload_instance}


class AsyncServer(msgspec.Struct):
    made_up: MadeUpServer
    listed: RemoteServer


@pytest_asyncio.fixture
async def ollama(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncServer]:
    monkeypatch.setattr(loaded_models, "USUAL_SERVERS", ())
    made_up = await MadeUpServer(ollama_that_holds()).start()
    yield AsyncServer(made_up, RemoteServer(made_up.address, kind="ollama"))
    await made_up.close()


@pytest_asyncio.fixture
async def studio(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[AsyncServer]:
    monkeypatch.setattr(loaded_models, "USUAL_SERVERS", ())
    made_up = await MadeUpServer(lm_studio_that_holds(), missing=LM_STUDIO_MISSING).start()
    yield AsyncServer(made_up, RemoteServer(made_up.address, kind="lmstudio"))
    await made_up.close()


async def test_what_both_hold_is_found_with_its_size(ollama: AsyncServer, studio: AsyncServer) -> None:
    found = await find_loaded([ollama.listed, studio.listed], no_key)
    assert [model.text for model in found] == [
        "gemma3 in Ollama (5.0 GB)",
        "nomic-embed-text:latest in Ollama (551 MB)",
        "qwen/qwen3.5-9b in LM Studio (6.1 GB)",
    ]
    assert {asked.method for asked in ollama.made_up.asked + studio.made_up.asked} == {"GET"}


async def test_the_usual_ports_are_asked_without_a_list(ollama: AsyncServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loaded_models, "USUAL_SERVERS", (ollama.listed,))
    again = RemoteServer(ollama.listed.address.replace("127.0.0.1", "localhost"), kind="ollama")
    assert [model.name for model in await find_loaded([again], no_key)] == ["gemma3", "nomic-embed-text:latest"]


async def test_ollama_unloads_one_model(ollama: AsyncServer) -> None:
    assert await unload(HeldModel(ollama.listed, "gemma3"), no_key) == ""
    assert [model.name for model in await find_loaded([ollama.listed], no_key)] == ["nomic-embed-text:latest"]


async def test_lm_studio_unloads_an_instance(studio: AsyncServer) -> None:
    (held,) = await find_loaded([studio.listed], no_key)
    assert await unload(held, no_key) == ""
    assert await find_loaded([studio.listed], no_key) == ()


async def test_the_key_of_a_server_is_sent(studio: AsyncServer) -> None:
    studio.made_up.key = "lm-secret"
    assert await find_loaded([studio.listed], no_key) == ()
    keys = {studio.listed.address: "lm-secret"}
    (held,) = await find_loaded([studio.listed], keys.__getitem__)
    assert await unload(held, keys.__getitem__) == ""


async def test_a_version_that_cant_unload_is_named(studio: AsyncServer) -> None:
    (held,) = await find_loaded([studio.listed], no_key)
    del studio.made_up.replies["/api/v1/models/unload"]
    assert await unload(held, no_key) == "LM Studio didn't unload qwen/qwen3.5-9b."


async def test_a_program_that_has_ended_is_named(ollama: AsyncServer) -> None:
    (held, _) = await find_loaded([ollama.listed], no_key)
    await ollama.made_up.close()
    assert (await unload(held, no_key)).startswith("Ollama didn't unload gemma3. ")
    assert await find_loaded([ollama.listed], no_key) == ()


@pytest.mark.parametrize(
    "answer", [[], {}, {"models": 3}, {"models": [3, {}, {"model": 5}, {"model": "a\nb", "size": 1}]}]
)
async def test_malformed_answers_hold_nothing(ollama: AsyncServer, answer: Reply) -> None:
    ollama.made_up.replies["/api/ps"] = answer
    assert await find_loaded([ollama.listed], no_key) == ()


def test_only_servers_on_this_pc_are_asked() -> None:
    """The card of another PC is none of the game's."""
    kinds = {
        "http://127.0.0.1:11434": True,
        "http://localhost:1234": True,
        "http://[::1]:1234": True,
        "http://192.168.1.20:11434": False,
        "https://ollama.example.com": False,
    }
    assert {each: is_on_this_pc(RemoteServer(each, kind="ollama")) for each in kinds} == kinds
    assert not is_on_this_pc(RemoteServer("http://127.0.0.1:8080", kind="llama-server"))
