"""Where the parts of a long column lie."""

from hypothesis import given
from hypothesis import strategies as st

from qwendesk.ui.thread.column import Column


@given(st.lists(st.integers(0, 400), max_size=30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 400))))
def test_places_are_those_of_a_plain_sum(heights: list[int], changes: list[tuple[int, int]]) -> None:
    column = Column(gap=5)
    for height in heights:
        column.append(height)
    for index, height in changes:
        if index < len(heights):
            assert column.set_height(index, height) == height - heights[index]
            heights[index] = height
            assert column.top(index) == sum(heights[:index]) + 5 * index
    assert [column.top(i) for i in range(len(heights))] == [sum(heights[:i]) + 5 * i for i in range(len(heights))]
    assert column.total == (sum(heights) + 5 * (len(heights) - 1) if heights else 0)


def test_what_lies_between_two_heights() -> None:
    column = Column(gap=10)
    for _ in range(5):
        column.append(100)
    assert list(column.between(0, 50)) == [0]
    assert list(column.between(105, 108)) == []
    assert list(column.between(105, 110)) == [1]
    assert list(column.between(-50, 1000)) == [0, 1, 2, 3, 4]
    assert list(column.between(600, 700)) == []
    assert column.at(105) == 0
    assert Column().at(3) == -1


def test_what_is_cut_off_is_gone() -> None:
    column = Column()
    for height in (10, 20, 30):
        column.append(height)
    assert column.total == 60
    column.truncate(1)
    column.append(5)
    assert (column.total, column.top(1)) == (15, 10)
