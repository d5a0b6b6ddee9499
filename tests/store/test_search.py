"""Words lead to the chats and messages that have them."""

import sqlite3

import pytest

from qwendesk.core.chats import ChatSummary, SearchHit
from qwendesk.core.conversation import ChatNode
from qwendesk.core.messages import DocumentPart, Message, TextPart, text_message
from qwendesk.store.chats import ChatStore
from qwendesk.store.database import Database
from qwendesk.store.search import _DOCUMENTS, _MESSAGES, ChatSearch
from tests.store.chat_nodes import node


@pytest.fixture
def search(database: Database, store: ChatStore) -> ChatSearch:
    store.save_node("sky", node("q1", text="Why is the sky blue?"))
    thought = "Rayleigh scattering, surely"
    answer = text_message("assistant", "Air scatters short waves. Café.", reasoning=thought)
    store.save_node("sky", ChatNode(id="a1", parent_id="q1", message=answer, created_s=5.0))
    store.save_node("cpp", node("q2", text="What does a C++ template cost? 100% of_it"))
    store.save_node("zh", node("q3", text="请把这份租约翻译成英文")).result()
    return ChatSearch(database)


def where(hits: tuple[SearchHit, ...]) -> list[str]:
    return [hit.node_id or f"title of {hit.chat_id}" for hit in hits]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("scatters", ["a1"]),
        ("scat", ["a1"]),
        ("SHORT air", ["a1"]),
        ("cafe", ["a1"]),
        ("sky", ["title of sky", "q1"]),
        ('"the sky"', ["title of sky", "q1"]),
        ('"sky the"', []),
        ("sky waves", []),
        ("c++", ["title of cpp", "q2"]),
        ("Rayleigh", []),
        ("租约", ["title of zh", "q3"]),
        ("100%", ["title of cpp", "q2"]),
        ("", []),
        ('" ( ) * - ^ : NEAR AND', []),
        ("\0 sky", ["title of sky", "q1"]),
        ("text:sky", []),
        ("x" * 5000, []),
    ],
)
def test_query_finds_titles_and_messages(search: ChatSearch, query: str, found: list[str]) -> None:
    assert where(search.find(query)) == found


def test_reasoning_is_searched_on_request(search: ChatSearch) -> None:
    (hit,) = search.find("rayleigh", reasoning=True)

    assert (hit.node_id, hit.in_reasoning, hit.is_answer, hit.created_s) == ("a1", True, True, 5.0)
    assert hit.snippet == (("Rayleigh", True), (" scattering, surely", False))


@pytest.mark.parametrize(("query", "marked"), [("waves", "waves"), ("翻译", "翻译")])
def test_snippet_marks_the_match(search: ChatSearch, query: str, marked: str) -> None:
    hit = search.find(query)[-1]

    assert [text for text, found in hit.snippet if found] == [marked]
    assert len(hit.snippet) > 1


def test_changed_text_is_found_by_its_new_words_only(search: ChatSearch, store: ChatStore) -> None:
    store.save_node("sky", node("a1", "q1", text="Water vapour."))
    store.save_summary(ChatSummary(id="sky", title="Colours")).result()

    assert where(search.find("vapour")) == ["a1"]
    assert where(search.find("scatters")) == []
    assert where(search.find("colours")) == ["title of sky"]
    assert where(search.find("sky")) == ["q1"]


def test_deleted_chats_are_not_found(search: ChatSearch, store: ChatStore) -> None:
    store.delete_node("sky", "a1").result()
    store.set_deleted(["cpp"], 1.0).result()

    assert where(search.find("scatters")) == []
    assert where(search.find("template")) == []


def test_answer_is_found_when_complete_or_cut_off_by_a_crash(search: ChatSearch, store: ChatStore) -> None:
    store.save_node("sky", node("a2", "q1", text="growing words"), growing=True).result()
    assert where(search.find("growing")) == []

    store.finish_index().result()

    assert where(search.find("growing")) == ["a2"]


def test_newest_hits_come_first_up_to_the_limit(search: ChatSearch, store: ChatStore) -> None:
    for number in range(10, 20):
        store.save_node("many", node(f"q{number}", text="again", created_s=number)).result()

    assert where(search.find("again", most=4)) == ["title of many", "q19", "q18", "q17"]


def test_question_is_found_by_the_name_of_its_document(search: ChatSearch, store: ChatStore) -> None:
    document = DocumentPart("quarterly_ledger.csv", "1,2,3\n")
    asked = ChatNode(id="d1", message=Message("user", (document, TextPart("\nSum it up"))))
    alone = ChatNode(id="d2", message=Message("user", (document,)))
    store.save_node("c8", asked).result()
    store.save_node("c9", alone).result()
    assert set(where(search.find("quarterly_ledger"))) >= {"d1", "d2"}
    assert store.load("c8").nodes["d1"].message == asked.message
    summary = store.summary("c9")
    assert summary is not None
    assert summary.title == "quarterly_ledger.csv"


LEASE = "The landlord may not enter. " * 30 + "Concatenated: a cat is allowed, and a Gürteltier too. " + "End. " * 50


def lease(name: str = "q9", text: str = LEASE) -> ChatNode:
    document = DocumentPart("lease.pdf", text)
    return ChatNode(id=name, message=Message("user", (document, TextPart("May I?"))), created_s=9.0)


@pytest.mark.parametrize(("query", "marked"), [("allowed", "allowed"), ("cat", "cat"), ("gurtel", "Gürtel")])
def test_the_text_of_documents_is_searched_with_a_snippet(
    search: ChatSearch, store: ChatStore, query: str, marked: str
) -> None:
    store.save_node("home", lease()).result()
    (hit,) = search.find(query)

    assert (hit.chat_id, hit.node_id, hit.in_document, hit.is_answer) == ("home", "q9", True, False)
    (before, _), (found, is_found), _ = hit.snippet
    assert (found, is_found) == (marked, True)
    assert before.startswith("…")
    assert not before[-1].isalnum(), "in the middle of another word"


def test_a_message_is_found_once_and_newer_ones_come_first(search: ChatSearch, store: ChatStore) -> None:
    store.save_node("home", lease("q7", "About the sky."))
    store.save_node("home", node("q8", text="The sky again"))
    store.save_node("home", lease("q9", "May I? Yes: the sky.")).result()

    assert where(search.find("sky"))[1:] == ["q9", "q8", "q7", "q1"]
    hits = search.find("may")
    assert [(hit.node_id, hit.in_document) for hit in hits if hit.node_id] == [("q9", False), ("q7", False)]


def test_documents_are_removed_with_their_message(search: ChatSearch, store: ChatStore) -> None:
    store.save_node("home", lease())
    store.save_node("home", lease())
    store.save_node("home", lease(text="Nothing 租约 here.")).result()
    assert where(search.find("landlord")) == []
    assert where(search.find("租约")) == ["title of zh", "q9", "q3"]
    store.delete_node("home", "q9").result()
    assert where(search.find("nothing")) == []


@pytest.mark.parametrize("statement", [_MESSAGES, _DOCUMENTS])
def test_a_search_reads_only_what_it_shows(database: Database, statement: str) -> None:
    def plan(connection: sqlite3.Connection) -> str:
        rows = connection.execute(f"EXPLAIN QUERY PLAN {statement}", ("sky", 100))
        return "\n".join(str(row[3]) for row in rows)

    words = database.read(plan)
    assert "VIRTUAL TABLE INDEX" in words
    assert "SEARCH messages USING INTEGER PRIMARY KEY" in words
    assert "SCAN messages" not in words.replace("SCAN messages_fts VIRTUAL", "")
    assert "TEMP B-TREE" not in words
