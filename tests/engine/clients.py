"""Clients of a fake worker, and what is asked of them."""

from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import text_message
from qwendesk.core.options import DecidedOptions
from qwendesk.engine.client import WorkerClient
from qwendesk.engine.protocol import Delta, Generate, LoadReport
from tests.fakes import worker as fake_worker

MESSAGES = (text_message("user", "Hi"),)
OPTIONS = GenerationOptions()
MODEL = DecidedOptions(model="/models/a.gguf")


async def loaded(client: WorkerClient) -> WorkerClient:
    assert isinstance(await client.load(MODEL), LoadReport)
    return client


async def whole(client: WorkerClient) -> list:
    return [item async for item in client.generate(Generate(messages=MESSAGES, options=OPTIONS))]


def answer_text(items: list) -> str:
    return "".join(item.text for item in items if isinstance(item, Delta))


WORDS = "".join(f"w{number} " for number in range(1, fake_worker.WORDS + 1))
