"""Log probabilities as OpenAI's two APIs write them."""

from typing import Any

from qwendesk.engine.protocol import AnswerToken, Delta, TokenLogprob
from qwendesk.server.chat_completions import ChatWriter, chat_body
from qwendesk.server.completions import CompletionsWriter, completions_body
from tests.server.answers import end, head, objects, streamed, whole

EURO = "\N{EURO SIGN}".encode()
TOKENS = (
    AnswerToken(b"Hi", -0.5, (TokenLogprob(b"Hi", -0.5), TokenLogprob(b"Ho", float("-inf")))),
    AnswerToken(EURO[:2], -1.0),
    AnswerToken(EURO[2:], -0.1),
)
ITEMS = (
    Delta(id=1, kind="answer", text="Hi", tokens=1, logprobs=TOKENS[:1]),
    Delta(id=1, kind="answer", text="\N{EURO SIGN}", tokens=3, logprobs=TOKENS[1:]),
    end("eos"),
)


def test_chat_completions_have_them_with_the_bytes_of_each_token() -> None:
    of = head(n_logprobs=2)
    content = chat_body(of, whole(of, ITEMS))["choices"][0]["logprobs"]["content"]
    assert [each["token"] for each in content] == ["Hi", "\ufffd", "\ufffd"]
    assert bytes(each for token in content for each in token["bytes"]).decode() == "Hi\N{EURO SIGN}"
    assert [each["logprob"] for each in content[0]["top_logprobs"]] == [-0.5, -9999.0]


def test_a_stream_has_those_of_the_whole_answer() -> None:
    of = head(n_logprobs=2)
    parts = [choice["logprobs"] for each in objects(streamed(ChatWriter(of), of, ITEMS)) for choice in each["choices"]]
    joined = [token for part in parts if part for token in part["content"]]
    assert joined == chat_body(of, whole(of, ITEMS))["choices"][0]["logprobs"]["content"]


def test_completions_have_them_as_lists() -> None:
    of = head(n_logprobs=2)
    found = completions_body(of, whole(of, ITEMS))["choices"][0]["logprobs"]
    assert found["token_logprobs"] == [-0.5, -1.0, -0.1]
    assert found["top_logprobs"][0] == {"Hi": -0.5, "Ho": -9999.0}
    parts: list[Any] = [
        each["choices"][0]["logprobs"] for each in objects(streamed(CompletionsWriter(of), of, ITEMS))[:2]
    ]
    assert [offset for part in parts for offset in part["text_offset"]] == [0, 2, 3]


def test_there_are_none_unless_they_were_asked_for() -> None:
    assert chat_body(head(), whole(head(), ITEMS))["choices"][0]["logprobs"] is None
    assert completions_body(head(), whole(head(), ITEMS))["choices"][0]["logprobs"] is None
