"""Clients take turns."""

import asyncio

import pytest

from qwendesk.server.answering import FairQueue
from qwendesk.server.refusals import Refused


class Turns:
    """Requests that run until the test lets them end."""

    def __init__(self, most_waiting: int = 10, most_at_once: int = 1) -> None:
        self.queue, self.served = FairQueue(most_waiting, most_at_once), []
        self._end = asyncio.Event()
        self.tasks: list[asyncio.Task[None]] = []

    async def ask(self, client: str, model: str = "") -> "asyncio.Task[None]":
        task = asyncio.create_task(self._run(client, model))
        self.tasks.append(task)
        await asyncio.sleep(0)
        return task

    async def _run(self, client: str, model: str) -> None:
        async with self.queue.turn(client, model):
            self.served.append(client)
            await self._end.wait()

    async def finish(self) -> list[str]:
        self._end.set()
        await asyncio.gather(*self.tasks, return_exceptions=True)
        return self.served


async def test_a_client_with_many_requests_does_not_keep_others_waiting() -> None:
    turns = Turns()
    for client in ("a", "a", "a", "a", "b", "c"):
        await turns.ask(client)
    assert turns.served == ["a"], "one at a time"
    assert await turns.finish() == ["a", "a", "b", "c", "a", "a"]


async def test_clients_of_one_model_are_answered_at_once_each_with_one_request() -> None:
    turns = Turns(most_at_once=3)
    for client in ("a", "a", "b", "c", "d"):
        await turns.ask(client, "one")
    assert turns.served == ["a", "b", "c"]
    assert await turns.finish() == ["a", "b", "c", "a", "d"]


async def test_a_request_for_another_model_waits_and_nobody_passes_it() -> None:
    turns = Turns(most_at_once=3)
    first = await turns.ask("a", "one")
    await turns.ask("b", "two")
    await turns.ask("c", "one")
    assert turns.served == ["a"]
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    await asyncio.sleep(0)
    assert turns.served == ["a", "b"]
    assert await turns.finish() == ["a", "b", "c"]


async def test_who_runs_and_who_waits_can_leave_at_the_same_moment() -> None:
    turns = Turns()
    running, waiting, last = [await turns.ask(client) for client in ("a", "b", "c")]
    running.cancel()
    waiting.cancel()
    ends = await asyncio.gather(running, waiting, return_exceptions=True)
    assert [type(end) for end in ends] == [asyncio.CancelledError, asyncio.CancelledError]
    assert await turns.finish() == ["a", "c"]
    assert last.exception() is None


async def test_too_many_are_refused() -> None:
    turns = Turns(most_waiting=1)
    await turns.ask("a")
    await turns.ask("b")
    with pytest.raises(Refused) as caught:
        async with turns.queue.turn("c"):
            pass
    assert caught.value.status == 429
    assert await turns.finish() == ["a", "b"]


async def test_a_client_that_leaves_gives_its_place_up() -> None:
    turns = Turns()
    running = await turns.ask("a")
    leaving = await turns.ask("b")
    await turns.ask("c")
    leaving.cancel()
    await asyncio.gather(leaving, return_exceptions=True)
    assert turns.queue.n_waiting == 1
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    assert await turns.finish() == ["a", "c"]


async def test_the_turn_is_passed_on_if_a_client_leaves_in_that_moment() -> None:
    turns = Turns()
    await turns.ask("a")
    leaving = await turns.ask("b")
    await turns.ask("c")
    turns.tasks[0].cancel()
    await asyncio.sleep(0)  # the turn is given to b, which has not run yet
    leaving.cancel()
    assert await turns.finish() == ["a", "c"]
