"""Stand-ins for pdh.dll and gdi32.dll: they fill the same structures through the same pointers."""

import ctypes
from typing import Any

from qwendesk.hardware.probes.windows_d3dkmt import Address, Registry, SegmentSize
from qwendesk.hardware.probes.windows_pdh import COUNTERS, CounterItem

MORE_DATA, NO_DATA, INVALID = 0x800007D2, 0x800007D5, 0xC0000BC6
MAX_ADAPTERS = 34
"""What Windows and Wine answer to the question how many there can be."""
PATH_TO_NAME = {path: name for name, path in COUNTERS.items()}


class FakePdh:
    """`values` are (instance, bytes) rows by the counter's name; a status instead of rows is returned."""

    def __init__(self, values: dict[str, list[tuple[str, int]] | int] | None = None) -> None:
        self.values = values or {}
        self.growing: dict[str, tuple[str, int]] = {}
        """A row that a counter gets after it was asked for its size, by the counter's name."""
        self.collect_status = 0
        self.open_queries = 0
        self.opened = 0
        self.collected = 0
        self._names: list[str] = []
        self._keep: list[Any] = []

    def PdhOpenQueryW(self, _source: Any, _user: Any, query: Any) -> int:  # noqa: N802
        query._obj.value = 77
        self.open_queries += 1
        self.opened += 1
        return 0

    def PdhAddEnglishCounterW(self, _query: Any, path: str, _user: Any, counter: Any) -> int:  # noqa: N802
        name = PATH_TO_NAME[path]
        if name not in self.values:
            return -0x3FFFF448  # PDH_CSTATUS_NO_OBJECT, as a signed int of ctypes
        self._names.append(name)
        counter._obj.value = len(self._names)
        return 0

    def PdhCollectQueryData(self, _query: Any) -> int:  # noqa: N802
        self.collected += 1
        return ctypes.c_int32(self.collect_status).value

    def PdhCloseQuery(self, _query: Any) -> int:  # noqa: N802
        self.open_queries -= 1
        return 0

    def PdhGetFormattedCounterArrayW(  # noqa: N802
        self, counter: Any, _format: int, size: Any, count: Any, buffer: Any
    ) -> int:
        name = self._names[counter.value - 1]
        rows = self.values[name]
        if isinstance(rows, int):
            return ctypes.c_int32(rows).value
        needed = ctypes.sizeof(CounterItem) * len(rows)
        if buffer is None:
            size._obj.value = needed
            if name in self.growing:
                self.values[name] = [*rows, self.growing.pop(name)]
            return ctypes.c_int32(MORE_DATA).value
        if size._obj.value < needed:
            size._obj.value = 1  # "you should not rely on the returned size to reallocate the buffer"
            return ctypes.c_int32(MORE_DATA).value
        items = ctypes.cast(buffer, ctypes.POINTER(CounterItem))
        for index, (instance, value) in enumerate(rows):
            text = ctypes.c_wchar_p(instance)
            self._keep.append(text)
            items[index].name = text
            items[index].value.status = 0
            items[index].value.large = value
        count._obj.value = len(rows)
        return 0


class FakeGdi:
    """Adapters as dictionaries: high, low, flags, bus, name, dedicated, shared, budget; a missing one is refused."""

    def __init__(self, *adapters: dict[str, Any], status: int = 0) -> None:
        self.adapters = list(adapters)
        self.status = status
        self.open: set[int] = set()
        self.listed = 0

    def D3DKMTEnumAdapters2(self, request: Any) -> int:  # noqa: N802
        if not request._obj.adapters:
            request._obj.count = MAX_ADAPTERS
            return 0
        self.listed += 1
        for index, adapter in enumerate(self.adapters):
            info = request._obj.adapters[index]
            info.handle = 0x40000000 + index
            info.luid.low, info.luid.high = adapter["low"], adapter.get("high", 0)
            self.open.add(info.handle)
        request._obj.count = len(self.adapters)
        return self.status

    def D3DKMTQueryAdapterInfo(self, request: Any) -> int:  # noqa: N802
        asked = request._obj
        adapter = self.adapters[asked.handle - 0x40000000]
        data = asked.data
        if asked.type == 15 and "flags" in adapter:
            ctypes.cast(data, ctypes.POINTER(ctypes.c_uint32))[0] = adapter["flags"]
        elif asked.type == 6 and "bus" in adapter:
            ctypes.cast(data, ctypes.POINTER(Address))[0] = Address(*adapter["bus"])
        elif asked.type == 8 and "name" in adapter:
            ctypes.cast(data, ctypes.POINTER(Registry))[0].adapter = adapter["name"]
        elif asked.type == 3 and "dedicated" in adapter:
            size = SegmentSize(adapter["dedicated"], 0, adapter.get("shared", 0))
            ctypes.cast(data, ctypes.POINTER(SegmentSize))[0] = size
        else:
            return -0x3FFFFFF3  # STATUS_INVALID_PARAMETER
        return 0

    def D3DKMTQueryVideoMemoryInfo(self, request: Any) -> int:  # noqa: N802
        budget = self.adapters[request._obj.handle - 0x40000000].get("budget")
        request._obj.budget = budget or 0
        return 0 if budget else 1

    def D3DKMTCloseAdapter(self, request: Any) -> int:  # noqa: N802
        self.open.discard(request._obj.handle)
        return 0


class FakeKernel:
    """`denied` processes cannot be opened."""

    def __init__(self, *denied: int) -> None:
        self.denied = denied
        self.open: set[int] = set()

    def OpenProcess(self, _access: int, _inherit: int, pid: int) -> int | None:  # noqa: N802
        if pid in self.denied:
            return None
        self.open.add(pid)
        return pid

    def CloseHandle(self, handle: int) -> int:  # noqa: N802
        self.open.discard(handle)
        return 1
