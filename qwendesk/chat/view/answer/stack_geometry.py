"""Positions of items in a long column whose heights are measured or estimated. Pure Python, no Qt."""

from bisect import bisect_right


class StackGeometry:
    """Items stacked vertically with a gap between them, in whole pixels."""

    def __init__(self, gap: int = 0) -> None:
        self.gap = gap
        self._heights: list[int] = []
        self._tops: list[int] = []
        """Tops of the items, valid for the first `_n_computed` ones. The others are computed on demand."""
        self._n_computed = 0

    def __len__(self) -> int:
        return len(self._heights)

    @property
    def total(self) -> int:
        """The height of all items and the gaps between them."""
        return self.bottom(len(self) - 1) if self._heights else 0

    def append(self, height: int) -> None:
        self._heights.append(height)
        self._tops.append(0)

    def truncate(self, count: int) -> None:
        """Keep the first `count` items."""
        del self._heights[count:]
        del self._tops[count:]
        self._n_computed = min(self._n_computed, count)

    def height(self, index: int) -> int:
        return self._heights[index]

    def set_height(self, index: int, height: int) -> int:
        """Set the height of an item and return the change."""
        grown = height - self._heights[index]
        if grown:
            self._heights[index] = height
            self._n_computed = min(self._n_computed, index + 1)
        return grown

    def top(self, index: int) -> int:
        if index >= self._n_computed:
            at = self._n_computed
            place = self._tops[at - 1] + self._heights[at - 1] + self.gap if at else 0
            for each in range(at, index + 1):
                self._tops[each] = place
                place += self._heights[each] + self.gap
            self._n_computed = index + 1
        return self._tops[index]

    def bottom(self, index: int) -> int:
        return self.top(index) + self._heights[index]

    def index_at(self, y: int) -> int:
        """Return the item at `y`, or the one above a gap; -1 in an empty column."""
        if not self._heights:
            return -1
        self.top(len(self) - 1)
        return max(0, bisect_right(self._tops, y) - 1)

    def indexes_between(self, top: int, bottom: int) -> range:
        """Return the items that intersect the range from `top` to `bottom`."""
        if not self._heights or bottom < 0 or top > self.total:
            return range(0)
        first = self.index_at(max(0, top))
        if self.bottom(first) < top:
            first += 1
        return range(first, self.index_at(bottom) + 1)
