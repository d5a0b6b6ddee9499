"""The structures and numbers of the Windows probes, compared with those of Windows' headers.

Printed by a C program (sizeof, offsetof) that x86_64-w64-mingw32ucrt-gcc 14.2 compiled and Wine 10.0 ran, from pdh.h,
pdhmsg.h and winnt.h of mingw-w64 12.0 and, since it lacks that header, d3dkmthk.h of github.com/microsoft/libdxg at
045831e, Microsoft's own. Each field is given as (offset, size) in bytes.
"""

import ctypes

import pytest

from qwendesk.decoding import main
from qwendesk.hardware.probes import windows_d3dkmt, windows_pdh

LAYOUTS = {
    windows_pdh.CounterValue: (16, [(0, 4), (8, 8)]),
    windows_pdh.CounterItem: (24, [(0, 8), (8, 16)]),
    windows_d3dkmt.Luid: (8, [(0, 4), (4, 4)]),
    windows_d3dkmt.AdapterInfo: (20, [(0, 4), (4, 8), (12, 4), (16, 4)]),
    windows_d3dkmt.EnumAdapters2: (16, [(0, 4), (8, 8)]),
    windows_d3dkmt.QueryAdapterInfo: (24, [(0, 4), (4, 4), (8, 8), (16, 4)]),
    windows_d3dkmt.SegmentSize: (24, [(0, 8), (8, 8), (16, 8)]),
    windows_d3dkmt.Address: (12, [(0, 4), (4, 4), (8, 4)]),
    windows_d3dkmt.CloseAdapter: (4, [(0, 4)]),
    windows_d3dkmt.VideoMemoryInfo: (
        56,
        [(0, 8), (8, 4), (12, 4), (16, 8), (24, 8), (32, 8), (40, 8), (48, 4)],
    ),
    main._BasicLimits: (
        64,
        [(0, 8), (8, 8), (16, 4), (24, 8), (32, 8), (40, 4), (48, 8), (56, 4), (60, 4)],
    ),
    main._ExtendedLimits: (144, [(0, 64), (64, 48), (112, 8), (120, 8), (128, 8), (136, 8)]),
}
REGISTRY = (2080, [(0, 520), (520, 520), (1040, 520), (1560, 520)])


def layout(structure):
    fields = [getattr(structure, name) for name, *_ in structure._fields_]
    return ctypes.sizeof(structure), [(field.offset, field.size) for field in fields]


@pytest.mark.parametrize("structure", LAYOUTS, ids=lambda structure: structure.__name__)
def test_structures_are_laid_out_as_in_the_headers(structure):
    assert layout(structure) == LAYOUTS[structure]


def test_texts_of_an_adapter_are_laid_out_as_in_the_header():
    wide = ctypes.sizeof(ctypes.c_wchar) // 2  # a letter has 2 bytes on Windows, 4 elsewhere
    size, fields = REGISTRY
    assert layout(windows_d3dkmt.Registry) == (size * wide, [(start * wide, length * wide) for start, length in fields])


def test_numbers_are_those_of_the_headers():
    found = windows_d3dkmt
    # KMTQAITYPE_GETSEGMENTSIZE, _ADAPTERADDRESS, _ADAPTERREGISTRYINFO, _ADAPTERTYPE
    assert (found._SEGMENT_SIZE, found._ADDRESS, found._REGISTRY, found._TYPE) == (3, 6, 8, 15)
    # D3DKMT_ADAPTERTYPE: RenderSupported, SoftwareDevice, HybridIntegrated
    assert (found._RENDER, found._SOFTWARE, found._HYBRID_INTEGRATED) == (0x1, 0x4, 0x20)
    assert windows_pdh._FORMAT_LARGE == 0x400
    # PDH_MORE_DATA, PDH_NO_DATA; PDH_CSTATUS_VALID_DATA, PDH_CSTATUS_NEW_DATA
    assert (windows_pdh._MORE_DATA, windows_pdh._NO_DATA) == (0x800007D2, 0x800007D5)
    assert windows_pdh._VALID == (0, 1)
    # JobObjectExtendedLimitInformation, JOB_OBJECT_LIMIT_PROCESS_MEMORY
    assert (main._EXTENDED_LIMIT_INFORMATION, main._LIMIT_PROCESS_MEMORY) == (9, 0x100)
