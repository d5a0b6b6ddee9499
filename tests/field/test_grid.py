"""Each cell of the grid has a case or a reason why the fault can't occur there."""

from tests.field.grid import Way, all_cases, all_kinds, count_cases

LEAST = 5
"""Cases of a kind: fewer show that one input has been mended, and not the kind."""
FEWER = {
    "A fault of our own code counts as damage of the chats file, which is then replaced",
    "JSON of others is nested without end, or has numbers that no program can have",
    "While one large request is read, no other is answered",
    "An option is no number, and every question ends with the advice to restart",
    "The number that means off elsewhere is refused",
    "A byte order mark, a slash too many or a look whether there is a server is refused",
    "The schema of an answer is refused because it stands where another server wants it",
    "A body in a form that HTTP allows is refused, or a damaged one is called a failure of the server",
    "Damage of a small file of the app switches off what the user had forbidden, and nothing is said",
    "Drafts change what an answer says",
    "An engine that lists its cards and then can't answer is used",
    "What isn't the engine that was asked for becomes an engine",
    "A frozen engine isn't noticed",
    "Old cards and Intel's are promised the share of their bandwidth that new ones reach",
    "The CPU is promised the same speed with any RAM",
    "The KV cache of layers with a window is planned as if they kept the whole chat",
    "A price is drawn as a formula",
    "An answer that is begun with a thought starts again, or answers within it",
    "A chat with odd roles, or in an odd order, is refused",
    "How many tokens were reused tells one key what another asked",
    "A bad file takes away the model that worked",
    "One model has several names",
    "Two model files of one name are one model",
    "A name of no model on this PC is answered by another model, silently",
    "Numbers and names of a server are stored and shown whatever they are",
    "A model without a chat template answers garbage",
    "Control tokens come out as text",
}
"""Kinds from before this was counted. None is added; a kind that gets its fifth case leaves."""


def test_every_kind_has_a_case_or_a_reason_for_each_way() -> None:
    covered = {(each.kind, way) for each in all_cases() for way in each.ways}

    empty = [f"{kind.name}: {way.value}" for kind in all_kinds() for way in Way
             if (kind, way) not in covered and len(kind.cannot.get(way, "")) < len("has none")]  # fmt: skip

    assert not empty, "\n".join(empty)


def test_no_way_is_said_to_be_impossible_that_has_a_case() -> None:
    contradictions = [
        f"{each.test}: {way.value}" for each in all_cases() for way in each.ways if way in each.kind.cannot
    ]

    assert not contradictions, "\n".join(contradictions)


def test_every_case_names_where_it_was_reported() -> None:
    assert [each.test for each in all_cases() if not each.report.strip() or not each.ways] == []


def test_every_kind_has_five_cases() -> None:
    assert {kind.name for kind, count in count_cases().items() if count < LEAST} == FEWER
