"""Positions of the sections in a long column."""

from hypothesis import given
from hypothesis import strategies as st

from qwendesk.chat.view.answer.stack_geometry import StackGeometry


@given(st.lists(st.integers(0, 400), max_size=30), st.lists(st.tuples(st.integers(0, 29), st.integers(0, 400))))
def test_tops_equal_the_sum_of_the_heights_above(heights: list[int], changes: list[tuple[int, int]]) -> None:
    geometry = StackGeometry(gap=5)
    for height in heights:
        geometry.append(height)
    for index, height in changes:
        if index < len(heights):
            assert geometry.set_height(index, height) == height - heights[index]
            heights[index] = height
            assert geometry.top(index) == sum(heights[:index]) + 5 * index
    assert [geometry.top(i) for i in range(len(heights))] == [sum(heights[:i]) + 5 * i for i in range(len(heights))]
    assert geometry.total == (sum(heights) + 5 * (len(heights) - 1) if heights else 0)


def test_sections_between_two_heights_are_found() -> None:
    geometry = StackGeometry(gap=10)
    for _ in range(5):
        geometry.append(100)
    assert list(geometry.indexes_between(0, 50)) == [0]
    assert list(geometry.indexes_between(105, 108)) == []
    assert list(geometry.indexes_between(105, 110)) == [1]
    assert list(geometry.indexes_between(-50, 1000)) == [0, 1, 2, 3, 4]
    assert list(geometry.indexes_between(600, 700)) == []
    assert geometry.index_at(105) == 0
    assert StackGeometry().index_at(3) == -1


def test_truncated_sections_are_removed() -> None:
    geometry = StackGeometry()
    for height in (10, 20, 30):
        geometry.append(height)
    assert geometry.total == 60
    geometry.truncate(1)
    geometry.append(5)
    assert (geometry.total, geometry.top(1)) == (15, 10)
