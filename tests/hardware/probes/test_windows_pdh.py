import pytest

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.probes.base import EMPTY_RESULT, ProbeRequest
from qwendesk.hardware.probes.windows_pdh import WindowsPdhProbe, instance_of, readings
from tests.hardware.dlls import INVALID, NO_DATA, FakePdh

BIG, SMALL = "luid_0x00000000_0x0000D3F2_phys_0", "luid_0x00000000_0x0000C1A0_phys_0"
LUID = "0x00000000_0x0000d3f2"
FROM_DOCUMENTATION = {  # names of instances as Microsoft documents them; the numbers are made up
    "process_dedicated": [(f"pid_4711_{BIG}", 22 * GIB), (f"pid_900_{BIG}", 2 * GIB), (f"pid_900_{SMALL}", 64 * MIB)],
    "process_shared": [(f"pid_4711_{BIG}", 1300 * MIB), (f"pid_900_{BIG}", 80 * MIB)],
    "adapter_dedicated": [(BIG, 23 * GIB), (SMALL, 128 * MIB)],
    "adapter_shared": [(BIG, 1400 * MIB), (SMALL, 0)],
}


def test_instance_names_are_parsed():
    assert instance_of(f"pid_4711_{BIG}") == (4711, LUID)
    assert instance_of("luid_0x00000001_0x0000D3F2_phys_1_part_0") == (None, "0x00000001_0x0000d3f2")
    assert instance_of("_Total") is None


def test_a_hybrid_laptop_is_two_adapters_with_their_processes():
    big, small = readings(FROM_DOCUMENTATION)
    assert (big.luid, big.used_bytes, big.shared_used_bytes) == (LUID, 23 * GIB, 1400 * MIB)
    assert big.process(4711).dedicated_bytes == 22 * GIB
    assert big.process(4711).shared_bytes == 1300 * MIB
    assert small.process(900).dedicated_bytes == 64 * MIB
    assert small.process(4711) is None


def test_a_process_never_has_more_than_its_adapter():
    rows = FROM_DOCUMENTATION | {"process_dedicated": [(f"pid_4711_{BIG}", 40 * GIB)]}
    assert readings(rows)[0].process(4711).dedicated_bytes == 23 * GIB


def test_linked_adapters_of_one_luid_are_added_up():
    second = BIG.replace("phys_0", "phys_1")
    rows = {"adapter_dedicated": [(BIG, 10 * GIB), (second, 9 * GIB)]}
    assert readings(rows)[0].used_bytes == 19 * GIB


def test_gpu_load_matches_the_task_manager():
    rows = {
        "busy": [
            (f"pid_4711_{BIG}_eng_0_engtype_3D", 60),
            (f"pid_900_{BIG}_eng_0_engtype_3D", 30),
            (f"pid_4711_{BIG}_eng_3_engtype_Copy", 20),
            (f"pid_900_{SMALL}_eng_0_engtype_3D", 55),
            (f"pid_901_{SMALL}_eng_0_engtype_3D", 55),
            ("_Total", 99),
        ]
    }
    big, small = readings(rows)
    assert (big.luid, big.busy_percent) == (LUID, 90.0)
    assert small.busy_percent == 100.0, "counters of several processes may add up to a little more"
    assert readings(FROM_DOCUMENTATION)[0].busy_percent is None


def test_the_query_stays_open_and_is_closed_once():
    library = FakePdh(FROM_DOCUMENTATION)
    probe = WindowsPdhProbe(library)
    for now_s in (0.0, 1.0, 2.0):
        found = probe.read(ProbeRequest(4711, now_s))
        assert found.gpus[0].process(4711).shared_bytes == 1300 * MIB
    assert (library.opened, library.collected) == (1, 3)
    probe.close()
    assert library.open_queries == 0


def test_missing_first_sample_is_not_an_error():
    library = FakePdh(FROM_DOCUMENTATION)
    library.collect_status = NO_DATA
    probe = WindowsPdhProbe(library)
    assert probe.read(ProbeRequest(None, 0)).gpus == ()
    library.collect_status = 0
    assert len(probe.read(ProbeRequest(None, 1)).gpus) == 2
    probe.close()


def test_counter_without_data_does_not_affect_others():
    probe = WindowsPdhProbe(FakePdh(FROM_DOCUMENTATION | {"process_shared": NO_DATA}))
    (big, _) = probe.read(ProbeRequest(4711, 0)).gpus
    assert big.process(4711).dedicated_bytes == 22 * GIB
    assert big.process(4711).shared_bytes is None
    probe.close()


def test_failed_query_is_opened_again_later():
    library = FakePdh(FROM_DOCUMENTATION)
    probe = WindowsPdhProbe(library)
    probe.read(ProbeRequest(None, 0))
    library.collect_status = INVALID
    assert probe.read(ProbeRequest(None, 1)).gpus == ()
    library.collect_status = 0
    assert probe.read(ProbeRequest(None, 2)).gpus == ()
    assert len(probe.read(ProbeRequest(None, 99)).gpus) == 2
    probe.close()
    assert library.open_queries == 0


def test_a_process_that_starts_meanwhile_is_read_too():
    library = FakePdh(dict(FROM_DOCUMENTATION))
    library.growing["process_dedicated"] = (f"pid_5000_{BIG}", GIB)
    probe = WindowsPdhProbe(library)
    (big, _) = probe.read(ProbeRequest(None, 0)).gpus
    assert big.process(5000).dedicated_bytes == GIB
    probe.close()


def test_missing_counters_are_named_with_what_to_do():
    library = FakePdh({})
    probe = WindowsPdhProbe(library)
    assert "lodctr /R" in probe.read(ProbeRequest(None, 0)).notes[0]
    assert library.open_queries == 0


@pytest.mark.parametrize("missing", ["PdhAddEnglishCounterW", "PdhGetFormattedCounterArrayW"])
def test_a_library_without_a_function_is_not_used(monkeypatch, missing):
    monkeypatch.delattr(FakePdh, missing)
    library = FakePdh(FROM_DOCUMENTATION)
    assert WindowsPdhProbe(library).read(ProbeRequest(None, 0)) == EMPTY_RESULT
    assert library.opened == 0
