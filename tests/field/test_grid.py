"""Each cell of the grid has a case or a reason why the fault can't occur there."""

from tests.field.grid import Way, all_cases, all_kinds


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
