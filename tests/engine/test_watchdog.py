"""When a worker is killed: for its template, and for its silence."""

import asyncio
import sys

import psutil
import pytest

from qwendesk.core.failures import EngineExit
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Generate
from qwendesk.engine.state import WorkerSilent
from qwendesk.engine.watchdog import SilenceLimits, TemplateWatchdogLimits, exceeded_limit
from tests.engine.clients import MESSAGES, OPTIONS, WORDS, answer_text, loaded, whole


def test_template_within_its_limits_continues():
    assert exceeded_limit(TemplateWatchdogLimits(), elapsed_s=10.0, growth_bytes=GIB) is None


def test_time_and_memory_limits_have_different_sentences():
    assert "10 s" in exceeded_limit(TemplateWatchdogLimits(), elapsed_s=10.1, growth_bytes=0)
    assert "1.0 GB" in exceeded_limit(TemplateWatchdogLimits(), elapsed_s=0.0, growth_bytes=GIB + 1)


def test_the_sentence_says_what_to_do():
    assert "chat_template_file" in exceeded_limit(TemplateWatchdogLimits(), elapsed_s=11, growth_bytes=0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows can't stop a process by a signal")
async def test_frozen_worker_is_noticed_by_its_silence_and_killed_if_it_stays_silent(make):
    client = await loaded(make(silence=SilenceLimits(look_s=0.1, silent=10, frozen=1000)))
    silent: asyncio.Queue[bool] = asyncio.Queue()
    client.subscribe(lambda event: silent.put_nowait(event.silent) if isinstance(event, WorkerSilent) else None)
    process = psutil.Process(client.worker_pid)
    process.suspend()
    assert await silent.get()
    process.resume()
    assert not await silent.get()
    assert answer_text(await whole(client)) == WORDS


@pytest.mark.skipif(sys.platform == "win32", reason="Windows can't stop a process by a signal")
async def test_worker_that_stays_frozen_is_killed_and_who_waits_for_it_is_told(make):
    client = await loaded(make("decode stalls", silence=SilenceLimits(look_s=0.1, silent=10, frozen=12)))
    stream = aiter(client.generate(Generate(messages=MESSAGES, options=OPTIONS)))
    await anext(stream)
    psutil.Process(client.worker_pid).suspend()
    engine_exit = await anext(stream)
    assert isinstance(engine_exit, EngineExit)
    assert "wasn't responding" in engine_exit.sentence
