"""A worker process without llama.cpp: speaks the protocol, and misbehaves as its argument says.

Started by tests as `python tests/fakes/worker.py MANNER`. Loads anything; answers word by word until cancelled.
"""

import contextlib
import os
import signal
import sys
import threading
import time
from typing import Literal

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.stats import AnswerStats
from qwendesk.engine import protocol as p
from qwendesk.engine.protocol_lines import decode_request, encode_line

WORDS = 20
LONG_TEXT = "long " * 1024**2
"""5 MiB."""


class FakeWorker:
    def __init__(self, manner: str) -> None:
        self.manner = manner
        self.cancelled: set[int] = set()
        self.answer_now: set[int] = set()
        self.served, self.writing = threading.Lock(), threading.Lock()

    def run(self) -> None:
        if self.manner == "deaf":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.manner == "dies at start":
            sys.exit("libcudart.so.12: cannot open shared object file: No such file or directory")
        if self.manner not in ("half a line", "hangs up"):
            threading.Thread(target=self.beat, daemon=True).start()
        for line in sys.stdin.buffer:
            self.take(decode_request(line))
        if self.manner in ("deaf", "hangs up"):
            time.sleep(1000)

    def beat(self) -> None:
        while True:
            self.send(p.Beat(id=0))
            time.sleep(0.01)

    def take(self, request: p.AnyRequest) -> None:
        match request:
            case p.Cancel(target=target):
                if self.manner != "ignores cancel":
                    self.send(p.Acknowledged(id=request.id, target=target, known=True))
                    self.cancelled.add(target)
            case p.AnswerNow(target=target):
                self.send(p.Acknowledged(id=request.id, target=target, known=True))
                self.answer_now.add(target)
            case p.Shutdown():
                if self.manner != "deaf":
                    os._exit(0)
            case _:
                threading.Thread(target=self.serve, args=(request,), daemon=True).start()

    def serve(self, request: p.AnyRequest) -> None:
        with self.served:
            match request:
                case p.Hello():
                    self.welcome(request)
                case p.Load():
                    self.load(request)
                case p.ProbeDevices():
                    cpu = DeviceInfo(name="CPU", description="Fake", kind="cpu", backend="CPU", total_bytes=1)
                    self.send(p.Devices(id=request.id, devices=(cpu,), cpu_features=("SSE3",)))
                case p.Measure(pictures=pictures):
                    costs = tuple(p.PictureCost(each.sha256, 1, 1, 64) for each in pictures)
                    self.send(p.Measured(id=request.id, prompt_tokens=7, pictures=costs, n_ctx=4096))
                case p.Generate():
                    self.generate(request)

    def welcome(self, request: p.Hello) -> None:
        if self.manner == "silent":
            return
        if self.manner == "other version":
            self.send(p.RequestFailed(id=request.id, title="Versions differ", sentence="Install both again."))
            return
        environment = " ".join(key for key in ("CUDA_PATH", "HIP_PATH") if key in os.environ)
        backends = ()
        if self.manner == "has a card":
            backends, environment = ("CUDA", "CPU"), os.environ["GOMP_SPINCOUNT"]
        self.send(
            p.Welcome(
                id=request.id,
                version=p.PROTOCOL_VERSION,
                package_version="0.0",
                system_info=environment,
                backends=backends,
            )
        )

    def load(self, request: p.Load) -> None:
        for percent in range(100):
            self.send(p.LoadProgress(id=request.id, stage="weights", fraction=percent / 100))
            if self.manner == "load stalls":
                time.sleep(1000)
            if self.manner == "loads slowly":
                while request.id not in self.cancelled:
                    time.sleep(0.001)
            if request.id in self.cancelled:
                self.send(p.LoadRefused(id=request.id, stage="cancelled", message="the load was cancelled"))
                return
        if self.manner == "crashes on load":
            print("CUDA error: out of memory", file=sys.stderr, flush=True)
            os.abort()
        if self.manner == "refuses":
            line = "error loading model: unknown model architecture: 'qwen99'"
            self.send(p.LoadRefused(id=request.id, stage="weights", message="no", engine_lines=(line,)))
            return
        self.send(p.LoadProgress(id=request.id, stage="template", fraction=0.97))
        if self.manner == "template hangs on load":
            time.sleep(1000)
        self.send(p.Loaded(id=request.id, report=self.report(request)))

    def report(self, request: p.Load) -> p.LoadReport:
        return p.LoadReport(
            options=request.options, name="Fake", architecture="qwen35", n_params=1, weights_bytes=1, n_ctx=4096,
            n_ctx_train=4096, n_layers=1, n_vocab=1, is_hybrid=True, can_think=True, can_see=True,
            template=p.TemplateAbilities("model", enable_thinking=True, preserve_thinking=False, tools=False),
            allocations=(), load_s=0.0,
        )  # fmt: skip

    def generate(self, request: p.Generate) -> None:
        self.send(p.Rendering(id=request.id))
        if self.manner == "template hangs":
            time.sleep(1000)
        if self.manner == "template grows":
            hoard = [bytearray(os.urandom(1024) * 1024 * 64) for _ in range(4)]
            time.sleep(1000)
            del hoard
        self.send(p.Rendered(id=request.id))
        if self.manner == "decodes pictures":
            time.sleep(1.0)
        self.send(p.PromptProgress(id=request.id, done=1, total=1, reused=0))
        if self.manner == "reads until another request is cancelled":
            while not self.cancelled:
                time.sleep(0.001)
            time.sleep(0.2)
        if self.manner == "decode stalls":
            time.sleep(1000)
        self.misbehave()
        if self.manner == "echoes":
            self.send(p.Delta(id=request.id, kind="answer", text=request.messages[-1].text, tokens=1))
            self.send(p.Finished(id=request.id, stop_reason="eos", stats=AnswerStats()))
            return
        written = 0
        while written < WORDS or self.manner == "endless":
            if request.id in self.cancelled:
                self.send(p.Finished(id=request.id, stop_reason="cancelled", stats=AnswerStats(answer_tokens=written)))
                return
            written += 1
            kind: Literal["reasoning", "answer"] = (
                "reasoning" if self.manner == "endless" and request.id not in self.answer_now else "answer"
            )
            text = LONG_TEXT if self.manner == "long line" else f"w{written} "
            self.send(p.Delta(id=request.id, kind=kind, text=text, tokens=written))
            if self.manner == "ignores cancel":
                time.sleep(1000)
            if self.manner == "endless":
                time.sleep(0.001)
            if self.manner == "long line":
                break
        self.send(p.Finished(id=request.id, stop_reason="eos", stats=AnswerStats(answer_tokens=written)))

    def misbehave(self) -> None:
        match self.manner:
            case "garbage":
                self.write(b"ggml: something a library printed\n\xff\xfe\n")
            case "other language":
                self.write(b'{"type":"telepathy","id":1}\n')
            case "half a line":
                self.write(b'{"type":"delta","id"')
                os._exit(5)
            case "killed":
                print("last words", file=sys.stderr, flush=True)
                os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))
            case "chatters":
                for number in range(2000):
                    print(f"line {number} " + "x" * 5000, file=sys.stderr)
                sys.stderr.write("y" * 1_000_000)
                sys.stderr.flush()
            case "hangs up":
                os.close(1)
                time.sleep(1000)

    def send(self, event: p.Event) -> None:
        self.write(encode_line(event))

    def write(self, data: bytes) -> None:
        with self.writing, contextlib.suppress(BrokenPipeError):
            view = memoryview(data)
            while view:
                view = view[os.write(1, view) :]


if __name__ == "__main__":
    FakeWorker(" ".join(sys.argv[1:])).run()
