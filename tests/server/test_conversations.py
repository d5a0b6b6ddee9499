"""How conversations are known again, and reasoning is put back where a client has left it out."""

from qwendesk.core.messages import Message, ToolCall, text_message
from qwendesk.server.conversations import ReasoningMemory, conversation_key, prefix_hashes
from qwendesk.server.question import ClientMessage

CALL = ToolCall("read", '{"path": "a", "n": 1}')
REWRITTEN = ToolCall("read", '{"n":1,"path":"a"}')


def user(text: str) -> ClientMessage:
    return ClientMessage(text_message("user", text))


def answer(
    text: str = "", reasoning: str = "", calls: tuple[ToolCall, ...] = (), ids: tuple[str, ...] = ()
) -> ClientMessage:
    parts = text_message("assistant", text).parts if text else ()
    return ClientMessage(Message("assistant", parts, reasoning=reasoning, tool_calls=calls), call_ids=ids)


def result(text: str, call_id: str) -> ClientMessage:
    return ClientMessage(text_message("tool", text), answers=call_id)


def remembered(*before: ClientMessage, said: ClientMessage, client: str = "key", memory: ReasoningMemory | None = None):
    memory = memory or ReasoningMemory()
    memory.remember(prefix_hashes(client, (), before)[-1], said)
    return memory


def completed(memory: ReasoningMemory, *sent: ClientMessage, client: str = "key") -> tuple[Message, ...]:
    return memory.completed(prefix_hashes(client, (), sent), sent)


def test_reasoning_that_a_client_dropped_is_put_back() -> None:
    memory = remembered(user("Hi"), said=answer("", "Hm.", (CALL,), ("x",)))
    got = completed(memory, user("Hi"), answer("", "", (REWRITTEN,), ("x",)), result("text", "x"))
    assert got[1].reasoning == "Hm."
    assert got[1].tool_calls == (CALL,), "in the words of the model, so that they are in memory already"


def test_reasoning_that_a_client_sends_stays() -> None:
    memory = remembered(user("Hi"), said=answer("Hello", "Hm."))
    assert completed(memory, user("Hi"), answer("Hello", "Other."))[1].reasoning == "Other."


def test_nothing_crosses_to_another_client_conversation_or_call() -> None:
    memory = remembered(user("Hi"), said=answer("", "Secret.", (CALL,), ("x",)))
    asked = answer("", "", (CALL,), ("x",))
    assert completed(memory, user("Hi"), asked, client="other key")[1].reasoning == ""
    assert completed(memory, user("Hi!"), asked)[1].reasoning == ""
    assert completed(memory, user("Hi"), answer("", "", (CALL,), ("y",)))[1].reasoning == ""
    assert completed(memory, user("Hi"), answer("", "", (ToolCall("read", "{}"),), ("x",)))[1].reasoning == ""
    assert completed(memory, user("Hi"), asked)[1].reasoning == "Secret."


def test_a_long_conversation_gets_all_of_its_reasoning_back() -> None:
    memory, sent = ReasoningMemory(), [user("Start")]
    for turn in range(5):
        remembered(*sent, said=answer(f"step {turn}", f"thought {turn}", (CALL,), (f"id{turn}",)), memory=memory)
        sent += [answer(f"step {turn}", "", (CALL,), (f"id{turn}",)), result(str(turn), f"id{turn}")]
    got = completed(memory, *sent)
    assert [message.reasoning for message in got if message.role == "assistant"] == [f"thought {n}" for n in range(5)]


def test_the_oldest_is_forgotten_when_there_is_no_room() -> None:
    memory = ReasoningMemory(most_characters=1000)
    for number in range(30):
        remembered(user(f"{number}"), said=answer("a", "x" * 100), memory=memory)
        assert memory.n_characters <= 1000
    assert completed(memory, user("29"), answer("a"))[1].reasoning
    assert not completed(memory, user("0"), answer("a"))[1].reasoning


def test_requests_of_one_conversation_have_one_key() -> None:
    def key(*sent: ClientMessage, client: str = "key", tools: tuple[str, ...] = ()) -> str:
        return conversation_key(prefix_hashes(client, tools, sent), sent)

    system = ClientMessage(text_message("system", "Be brief."))
    first = key(system, user("Hi"))
    assert key(system, user("Hi"), answer("Hello"), user("More")) == first
    others = (
        key(system, user("Ho")), key(user("Hi")), key(system, user("Hi"), client="b"),
        key(system, user("Hi"), tools=("{}",)),
    )  # fmt: skip
    assert first not in others
    assert len(set(others)) == len(others)
    assert key(system)
