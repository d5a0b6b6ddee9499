"""A model that writes calls as a test says, read by the worker's own grammar, writer and parser."""

import json
import re
from types import SimpleNamespace
from typing import Any, cast

from qwendesk.core.errors import BadRequest
from qwendesk.core.messages import ToolCall
from qwendesk.engine.protocol import Called, Event, Generate, RequestFailed
from qwendesk.engine.worker.call_grammar import CallDialect, call_grammar
from qwendesk.engine.worker.call_parser import written_name
from qwendesk.engine.worker.model import LoadedModel
from qwendesk.engine.worker.sampling import TokenGrammar
from qwendesk.engine.worker.tools import CallableTool, read_tools
from tests.engine.worker.conftest import Demo
from tests.engine.worker.parsed_answers import writer_for
from tests.fakes.answer_stream import FakeAnswerStream, ScriptedAnswer
from tests.fakes.engine import FakeEngineClient
from tests.server.http_desk import TOOL_REPORT


class CallingClient(FakeEngineClient):
    """Takes each of `written`, the text of a call between its outer tags, as an answer to a request with tools.

    The tools are those of the request, and each token must be one that their grammar allows.
    """

    def __init__(self, demo: Demo, *written: str, dialect: CallDialect = "xml") -> None:
        super().__init__(TOOL_REPORT)
        self._demo, self._dialect, self.written = demo, dialect, list(written)
        self.last_calls: tuple[ToolCall, ...] = ()

    def generate(self, request: Generate) -> FakeAnswerStream:
        if request.tools_json and self.written:
            self.answers.insert(0, self._answer(request.tools_json, self.written.pop(0)))
        return super().generate(request)

    def _answer(self, tools_json: Any, written: str) -> ScriptedAnswer:
        try:
            tools = read_tools(tools_json)
        except BadRequest as error:
            return ScriptedAnswer(fail=RequestFailed(id=0, title=error.title, sentence=error.sentence))
        assert (allowed := self._allowed(tools, written)) == written, f"the grammar stops after {allowed!r}"
        events: list[Event] = []
        writer = writer_for(self._demo, events, tools=tools)
        for token in (self._demo.vocabulary.user_defined["<tool_call>"], *self._tokens(written)):
            writer.write(token)
        self.last_calls = tuple(each.call for each in events if isinstance(each, Called) and each.call is not None)
        return ScriptedAnswer(calls=self.last_calls)

    def _allowed(self, tools: dict[str, CallableTool], written: str) -> str:
        """Return what of the call the grammar allows."""
        tokens = self._tokens(written)
        model = cast("LoadedModel", SimpleNamespace(vocab=self._demo.vocab))
        grammar = TokenGrammar(model, call_grammar(tools, self._dialect, tokens[-1]))
        n_allowed = 0
        while n_allowed < len(tokens) and grammar.allows(tokens[n_allowed]):
            grammar.accept(tokens[n_allowed])
            n_allowed += 1
        grammar.close()
        if n_allowed == len(tokens):
            return written
        return self._demo.detokenize(tokens[:n_allowed]) if n_allowed < len(tokens) - 1 else f"{written} (no end)"

    def _tokens(self, written: str) -> list[int]:
        """Return the tokens of a call and its end. A tag in a text is none: the engine lets a model spell it only."""
        fragments = re.split("(?<=<)", written)
        tokens = [token for each in fragments for token in self._demo.tokenize(each, parse_special=False)]
        return [*tokens, self._demo.vocabulary.user_defined["</tool_call>"]]


def xml(name: str, *parameters: str) -> str:
    return f"\n<function={name}>\n{''.join(parameters)}</function>\n"


def parameter(name: str, value: str) -> str:
    return f"<parameter={name}>\n{value}\n</parameter>\n"


def call_of(name: str, arguments: dict[str, Any], dialect: CallDialect) -> str:
    """A call as the model writes it."""
    if dialect == "json":
        return f"\n{json.dumps({'name': name, 'arguments': arguments}, ensure_ascii=False)}\n"
    shown = (value if isinstance(value, str) else json.dumps(value) for value in arguments.values())
    return xml(name, *map(parameter, map(written_name, arguments), shown))


def request(path: str, schema: Any, **more: Any) -> dict[str, Any]:
    """A request with one tool, in the words of the API at `path`."""
    question = {"role": "user", "content": "Go on"}
    if path.endswith("messages"):
        return {"messages": [question], "max_tokens": 99, "tools": [{"name": "use", "input_schema": schema}], **more}
    function = {"name": "use", "parameters": schema}
    if path.endswith("responses"):
        return {"input": "Go on", "tools": [{"type": "function", **function}], **more}
    return {"messages": [question], "tools": [{"type": "function", "function": function}], **more}


def arguments_in(path: str, body: Any) -> Any:
    """The arguments of the call in an answer."""
    if path.endswith("messages"):
        return next(block["input"] for block in body["content"] if block["type"] == "tool_use")
    if path.endswith("responses"):
        return json.loads(next(item["arguments"] for item in body["output"] if item["type"] == "function_call"))
    return json.loads(body["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"])
