"""Fifty clients at one real server, whose engine is killed and whose clients leave at random: `make soak`.

QWENDESK_SOAK_S sets how many seconds it takes (600). `pytest -s` shows the counts at the end.
"""

import os
import statistics

import aiohttp
import pytest

from bench.served import served
from qwendesk.core import paths
from tests.server.soak import Load

N_CLIENTS, N_KEYS = 50, 10
SOAK_S = float(os.environ.get("QWENDESK_SOAK_S", "600"))
_MIB = 1024**2
_GROWTH_BYTES = 24 * _MIB
"""How much larger the server's process may be in the last third than in the middle one."""


@pytest.mark.soak
async def test_no_answer_is_lost_or_mixed_and_memory_stays_flat() -> None:
    with served(paths.demo_model(), "--waiting", "40", n_keys=N_KEYS, load=("n_ctx=4096", "n_threads=1")) as server:
        load = Load(server, seed=20)
        await load.run(N_CLIENTS, SOAK_S)
        async with aiohttp.ClientSession() as session:
            assert await load.ask(session, server.keys[0], "the end") == "answered"
    third = len(load.memory) // 3
    middle, last = (statistics.median(part) for part in (load.memory[third : 2 * third], load.memory[2 * third :]))
    report = [f"{name}: {count}" for name, count in sorted(load.counts.items())]
    print("", *report, *(f"{what} {n / _MIB:.0f} MiB" for what, n in (("middle", middle), ("last", last))), sep="\n")
    assert load.counts["answered"] > 10 * load.counts["engines killed"] > 0
    assert last - middle < _GROWTH_BYTES
