"""What the worker reads from its standard input, good and bad."""

import io

import pytest

from qwendesk.engine import protocol as p
from qwendesk.engine.protocol_lines import LINE_LIMIT_BYTES, encode_line
from qwendesk.engine.worker.service import read_requests
from tests.engine.worker.process import WorkerProcess, demo_options, greedy, user, worker_process

PROBE = encode_line(p.ProbeDevices(id=2))
NOT_UTF8 = b'{"type":"measure","id":7,"messages":[{"role":"user","parts":[{"type":"text","text":"\xff"}]}]}\n'


def test_good_lines_are_requests() -> None:
    lines = encode_line(p.Hello(id=1)) + PROBE
    assert list(read_requests(io.BytesIO(lines))) == [p.Hello(id=1), p.ProbeDevices(id=2)]


def test_a_load_with_undecided_options_is_refused() -> None:
    line = encode_line(p.Load(id=3, options=demo_options())).replace(b'"n_gpu_layers":0', b'"n_gpu_layers":"auto"')
    assert b"auto" in line
    (refused,) = read_requests(io.BytesIO(line))
    assert isinstance(refused, p.RequestFailed)
    assert refused.id == 3


@pytest.mark.parametrize(
    "line",
    [
        NOT_UTF8,
        b'{"type":"telepathy","id":7}\n',
        b'{"type":"probe","id":7,"more":' + b"[" * 200_000 + b"\n",
        b'{"type":"generate","id":7,"messages":["' + b"x" * LINE_LIMIT_BYTES + b'"]}\n',
    ],
    ids=["not UTF-8", "unknown type", "nested", "too long"],
)
def test_a_bad_line_is_answered_under_its_own_id_and_the_next_one_is_read(line: bytes) -> None:
    failure, request = read_requests(io.BytesIO(line + PROBE))
    assert isinstance(failure, p.RequestFailed)
    assert failure.id == 7
    assert failure.sentence.startswith("The engine can't read this request: ")
    assert request == p.ProbeDevices(id=2)


def test_a_line_without_an_id_is_answered_too() -> None:
    failure, request = read_requests(io.BytesIO(b"\xff\xfe\n" + PROBE))
    assert isinstance(failure, p.RequestFailed)
    assert failure.id == 0
    assert request == p.ProbeDevices(id=2)


def test_too_long_line_at_the_end_is_answered() -> None:
    (failure,) = read_requests(io.BytesIO(b"x" * (LINE_LIMIT_BYTES + 1)))
    assert isinstance(failure, p.RequestFailed)


def test_every_request_begins_with_its_id() -> None:
    """Which is how the worker finds the id in a line that it cannot decode."""
    for request in (p.Hello(id=7), p.Measure(id=7), p.Generate(id=7, messages=(), options=greedy())):
        broken = encode_line(request)[:-2] + b"\xff\n"
        (failure,) = read_requests(io.BytesIO(broken))
        assert failure.id == 7


def test_worker_continues_after_invalid_bytes_and_exits_with_its_input() -> None:
    with worker_process() as worker:
        assert worker.process.stdin is not None
        worker.process.stdin.write(NOT_UTF8)
        worker.send(p.ProbeDevices)
        failure, devices = worker.until(p.RequestFailed)[-1], worker.until(p.Devices)[-1]
        assert failure.id == 7
        assert isinstance(devices, p.Devices)
        worker.process.stdin.close()
        assert worker.process.wait() == 0


def send_together(worker: WorkerProcess, *requests: p.Request) -> None:
    assert worker.process.stdin is not None
    worker.process.stdin.write(b"".join(map(encode_line, requests)))
    worker.process.stdin.flush()


def test_queued_measure_that_is_cancelled_is_not_run() -> None:
    """The load takes the worker's main thread until both have been read."""
    with worker_process() as worker:
        send_together(
            worker,
            p.Load(id=101, options=demo_options()),
            p.Measure(id=102, messages=(user("Hello"),)),
            p.Cancel(id=103, target=102),
        )
        events = worker.until(p.Loaded)
        assert any(isinstance(event, p.RequestFailed) and event.id == 102 for event in events)
        worker.send(p.ProbeDevices)
        assert not any(isinstance(event, p.Measured) for event in worker.until(p.Devices))


def test_queued_answer_that_is_cancelled_ends_as_cancelled() -> None:
    with worker_process() as worker:
        send_together(
            worker,
            p.Load(id=101, options=demo_options()),
            p.Generate(id=102, messages=(user("Hello"),), options=greedy()),
            p.Cancel(id=103, target=102),
        )
        (finished,) = [event for event in worker.until(p.Loaded) if isinstance(event, p.Finished)]
        assert (finished.id, finished.stop_reason) == (102, "cancelled")


def test_measures_are_served_during_a_long_prefill() -> None:
    with worker_process() as worker:
        worker.load(demo_options(n_ctx=4096, n_batch=32, n_ubatch=32))
        send_together(
            worker,
            p.Generate(id=101, messages=(user("long " * 2_000),), options=greedy(max_tokens=1)),
            p.Measure(id=102, messages=(user("Hello"),)),
        )
        events = worker.until(p.Finished)
        counted = next(place for place, event in enumerate(events) if isinstance(event, p.Measured))
        read = [event for event in events[counted:] if isinstance(event, p.PromptProgress)]
        assert read, "not only after the prompt"
