"""RequestLog: the requests that run and the latest that ended, for whoever shows them."""

import asyncio
import itertools
import time
from collections.abc import Callable, Sequence
from typing import Literal

import msgspec

from qwendesk.core.observed import Observed
from qwendesk.engine.contract import AnswerItem
from qwendesk.engine.protocol import CallDelta, Delta, Finished, PromptProgress

Phase = Literal["waiting", "reading", "writing", "done", "stopped", "refused"]
_MOST_SHOWN = 50
# How names in requests begin, in lower case, and whose they are.
_PROGRAMS = (
    ("claude", "Claude Code"),
    ("codex", "Codex"),
    ("opencode", "opencode"),
    ("cline", "Cline"),
    ("continue", "Continue"),
    ("zed", "Zed"),
    ("litellm", "LiteLLM"),
    ("openai", "OpenAI SDK"),
    ("asyncopenai", "OpenAI SDK"),
    ("anthropic", "Anthropic SDK"),
    ("asyncanthropic", "Anthropic SDK"),
)
# A speed is only shown of a longer time.
_SHORTEST_S = 0.5


class ServedRequest(msgspec.Struct, frozen=True):
    id: int
    program: str
    """Name that the client gives itself."""
    key_name: str
    path: str
    began_s: float
    """Seconds since 1970."""
    phase: Phase = "waiting"
    prompt_tokens: int = 0
    reused_tokens: int = 0
    reasoning_tokens: int = 0
    answer_tokens: int = 0
    writing_since_s: float = 0.0
    """Time of its first token, on a clock that only runs forwards; 0 before it."""
    tok_s: float = 0.0
    """Decode speed: so far, and the engine's own figure at the end."""
    problem: str = ""
    """Reason why it was refused, or failed."""
    ignored: str = ""
    """The fields that had no effect, as the client is told."""

    @property
    def written_tokens(self) -> int:
        return self.reasoning_tokens + self.answer_tokens

    @property
    def is_running(self) -> bool:
        return self.phase in ("waiting", "reading", "writing")


def program_title(program: str) -> str:
    """Return how a program is called that gives itself this name; the name itself if it isn't known."""
    known = program.lower()
    return next((title for start, title in _PROGRAMS if known.startswith(start)), program)


def n_waiting_clients(requests: Sequence[ServedRequest]) -> int:
    """Return how many programs wait now while the engine serves another request."""
    is_taken = any(each.phase in ("reading", "writing") for each in requests)
    return len({(each.program, each.key_name) for each in requests if each.phase == "waiting"}) if is_taken else 0


class RequestLog:
    """Owns the list, the latest request first. Only counts and names are kept, no texts."""

    def __init__(self, clock: Callable[[], float] | None = None) -> None:
        """`clock` measures speeds, and must not jump: None is time.monotonic."""
        self.observed = Observed[tuple[ServedRequest, ...]](())
        self._clock = clock or time.monotonic
        self._ids = itertools.count(1)
        self._tasks: dict[int, asyncio.Task[object]] = {}

    def begin(self, program: str, key_name: str, path: str) -> int:
        """Add a request that the current task serves, and return its id."""
        request = ServedRequest(next(self._ids), program, key_name, path, time.time())
        task = asyncio.current_task()
        if task is not None:
            self._tasks[request.id] = task
        self._add(request)
        return request.id

    def note_refusal(self, program: str, path: str, problem: str) -> None:
        """Add a request that was refused before it was read. The same again only counts as now."""
        last = self.observed.value[0] if self.observed.value else None
        refused = ServedRequest(next(self._ids), program, "", path, time.time(), phase="refused", problem=problem)
        is_same = last is not None and (last.program, last.path, last.problem) == (program, path, problem)
        self._add(refused, replaces=last.id if last is not None and is_same else 0)

    def note_ignored(self, request_id: int, fields: str) -> None:
        if fields:
            self._change(request_id, ignored=fields)

    def note(self, request_id: int, item: AnswerItem) -> None:
        """Take an item of the request's answer."""
        match item:
            case PromptProgress(total=total, reused=reused):
                self._change(request_id, phase="reading", prompt_tokens=total, reused_tokens=reused)
            case Delta(kind="reasoning", tokens=tokens):
                self._note_written(request_id, reasoning_tokens=tokens)
            case Delta(tokens=tokens) | CallDelta(tokens=tokens):
                self._note_written(request_id, answer_tokens=tokens)
            case Finished(stats=stats):
                self._change(
                    request_id,
                    prompt_tokens=stats.prompt_tokens,
                    reused_tokens=stats.reused_tokens,
                    reasoning_tokens=stats.reasoning_tokens,
                    answer_tokens=stats.answer_tokens,
                    tok_s=stats.decode_tok_s,
                )

    def end(self, request_id: int, phase: Literal["done", "stopped", "refused"], problem: str = "") -> None:
        self._tasks.pop(request_id, None)
        self._change(request_id, phase=phase, problem=problem)

    def stop(self, request_id: int) -> None:
        """Stop a request that runs. Its client sees that the connection is closed."""
        task = self._tasks.get(request_id)
        if task is not None:
            task.cancel()

    def clear_ended(self) -> None:
        """Forget the requests that have ended."""
        self.observed.set(tuple(each for each in self.observed.value if each.is_running))

    def stop_all(self) -> None:
        for request_id in tuple(self._tasks):
            self.stop(request_id)

    def _add(self, request: ServedRequest, replaces: int = 0) -> None:
        """Add a request in front. Of too many, the oldest that have ended are forgotten."""
        kept = [request, *(each for each in self.observed.value if each.id != replaces)]
        too_many = max(0, len(kept) - _MOST_SHOWN)
        ended = [each.id for each in kept if not each.is_running]
        forgotten = set(ended[len(ended) - min(too_many, len(ended)) :])
        self.observed.set(tuple(each for each in kept if each.id not in forgotten))

    def _note_written(self, request_id: int, **tokens: int) -> None:
        """Take how many tokens of one kind are written so far, and with them the speed."""
        self._change(request_id, phase="writing", **tokens)
        request = next((each for each in self.observed.value if each.id == request_id), None)
        now = self._clock()
        if request is None:
            return  # it is no longer on the list
        if not request.writing_since_s:
            self._change(request_id, writing_since_s=now)
        elif now - request.writing_since_s >= _SHORTEST_S:
            self._change(request_id, tok_s=request.written_tokens / (now - request.writing_since_s))

    def _change(self, request_id: int, **changes: object) -> None:
        self.observed.set(
            tuple(
                msgspec.structs.replace(each, **changes) if each.id == request_id else each
                for each in self.observed.value
            )
        )
