"""What counts as the time of a chat template: its own running, and nothing else of what a prompt takes."""

from types import SimpleNamespace

import pytest

from qwendesk.core.errors import BadRequest
from qwendesk.core.generation_options import GenerationOptions
from qwendesk.core.messages import Message, text_message
from qwendesk.engine import protocol as p
from qwendesk.engine.worker.loader import ClientMemory
from qwendesk.engine.worker.prompt import Vocabulary
from qwendesk.engine.worker.request_layout import layout_of, measure
from qwendesk.engine.worker.written_answers import RecentAnswers, Spelling, WrittenAnswers
from tests.engine.worker import templates
from tests.engine.worker.conftest import Demo

MESSAGES = (text_message("user", "A long document. " * 100),)


class Recorder:
    """Events and calls of the tokenizer, in order."""

    def __init__(self, demo: Demo, source: str) -> None:
        self.events: list[object] = []

        def tokenize(text: str) -> list[int]:
            self.events.append("tokenize")
            return demo.vocabulary.tokenize(text)

        vocabulary = Vocabulary(demo.vocabulary.control, demo.vocabulary.user_defined, tokenize)
        memory = ClientMemory(vocabulary, RecentAnswers(), WrittenAnswers())
        self.session = SimpleNamespace(
            template_for=lambda _options: templates.compiled(source),
            memory_of=lambda _client: memory,
            report=SimpleNamespace(can_think=True, pairs_frames=False, template=SimpleNamespace(reasoning_efforts=())),
            model=SimpleNamespace(n_ctx=4096, can_cut_anywhere=False),
            vision=None,
            spelling=Spelling(lambda _token: b"", lambda _token: False, frozenset()),
        )

    def measure(self, messages: tuple[Message, ...] = MESSAGES) -> None:
        measure(self.session, p.Measure(id=1, messages=messages), self._send)

    def generate(self, begun: p.Begun | None = None) -> None:
        request = p.Generate(id=1, messages=MESSAGES, options=GenerationOptions(), begun=begun)
        layout_of(self.session, MESSAGES, request, self._send)

    def _send(self, event: p.Event) -> None:
        self.events.append(type(event))


RUN = [p.Rendering, p.Rendered]


@pytest.mark.parametrize("source", [templates.QWEN_LIKE, templates.UPPER_CASE], ids=["ordinary", "changes texts"])
def test_tokenizing_does_not_count_as_template_time(demo: Demo, source: str) -> None:
    for ask in (Recorder.measure, Recorder.generate):
        recorder = Recorder(demo, source)
        ask(recorder)
        before, *_ = recorder.events
        assert before is p.Rendering
        assert "tokenize" in recorder.events
        runs = [event for event in recorder.events if event != "tokenize"]
        assert runs == RUN * (len(runs) // 2)
        for place, event in enumerate(recorder.events):
            assert event is not p.Rendering or recorder.events[place + 1] is p.Rendered


def test_continuing_an_answer_tokenizes_outside_the_template(demo: Demo) -> None:
    recorder = Recorder(demo, templates.QWEN_LIKE)
    recorder.generate(p.Begun(text="It is"))
    last = max(place for place, event in enumerate(recorder.events) if event is p.Rendering)
    assert last > recorder.events.index("tokenize")
    assert recorder.events[last + 1] is p.Rendered


def test_failed_template_is_reported_as_finished(demo: Demo) -> None:
    recorder = Recorder(demo, "{{- raise_exception('No.') -}}")
    with pytest.raises(BadRequest):
        recorder.measure()
    assert recorder.events[-1] is p.Rendered
