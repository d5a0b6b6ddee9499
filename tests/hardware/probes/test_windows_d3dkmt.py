import pytest

from qwendesk.core.units import GIB, MIB
from qwendesk.hardware.engine_gpus import gpus_for_models
from qwendesk.hardware.probes.base import EMPTY_RESULT, ProbeRequest
from qwendesk.hardware.probes.windows_d3dkmt import WindowsD3dkmtProbe, vendor_of
from tests.hardware.dlls import FakeGdi, FakeKernel

GEFORCE = {
    "low": 0xD3F2, "flags": 0b010001, "bus": (1, 0, 0), "name": "NVIDIA GeForce RTX 4090 Laptop GPU",
    "dedicated": 16 * GIB, "shared": 16 * GIB, "budget": 15 * GIB,
}  # fmt: skip
IRIS = {
    "low": 0xC1A0, "flags": 0b100011, "bus": (0, 2, 0), "name": "Intel(R) Iris(R) Xe Graphics",
    "dedicated": 128 * MIB, "shared": 16 * GIB,
}  # fmt: skip
BASIC = {"low": 0xB000, "flags": 0b000101, "name": "Microsoft Basic Render Driver", "dedicated": 0}
SCREEN = {"low": 0xA000, "flags": 0b000010, "name": "A screen over USB"}


def test_a_hybrid_laptop_has_its_two_gpus_and_no_software_renderer():
    probe = WindowsD3dkmtProbe(FakeGdi(GEFORCE, IRIS, BASIC, SCREEN), FakeKernel())
    big, small = probe.read(ProbeRequest(4711, 0)).gpus
    assert (big.luid, big.pci, big.vendor) == ("0x00000000_0x0000d3f2", "0000:01:00.0", "nvidia")
    assert (big.total_bytes, big.shared_total_bytes, big.budget_bytes) == (16 * GIB, 16 * GIB, 15 * GIB)
    assert big.unified is False
    assert (small.pci, small.vendor, small.unified, small.budget_bytes) == ("0000:00:02.0", "intel", True, None)
    probe.close()


@pytest.mark.parametrize(
    ("name", "is_integrated"),
    [
        ("AMD Radeon(TM) Graphics", True),
        ("AMD Radeon(TM) 780M Graphics", True),
        ("AMD Radeon 890M", True),
        ("AMD Radeon(TM) RX Vega 11 Graphics", True),
        ("AMD Radeon(TM) 8060S Graphics", True),
        ("AMD Radeon RX 6800M", False),
        ("AMD Radeon RX 7900 XT", False),
        ("Radeon RX Vega", False),
    ],
)
def test_graphics_of_an_amd_processor_with_reserved_ram_are_no_card(name, is_integrated):
    """The firmware of many PCs reserves 2 to 16 GB for them; the user was told to install a driver for a card."""
    reserved = {"low": 1, "flags": 1, "bus": (5, 0, 0), "name": name, "dedicated": 4 * GIB, "shared": 14 * GIB}
    gpus = WindowsD3dkmtProbe(FakeGdi(reserved), FakeKernel()).read(ProbeRequest(None, 0)).gpus

    assert [gpu.unified for gpu in gpus] == [is_integrated]
    assert bool(gpus_for_models(gpus)) == (not is_integrated or "8060S" in name), "a Strix Halo shares fast memory"


def test_unreadable_adapter_has_only_its_luid():
    (gpu,) = WindowsD3dkmtProbe(FakeGdi({"low": 7, "high": -1}), FakeKernel()).read(ProbeRequest(None, 0)).gpus
    assert gpu.luid == "0xffffffff_0x00000007"
    assert (gpu.pci, gpu.name, gpu.total_bytes, gpu.unified) == (None, None, None, None)


def test_a_virtual_adapter_has_no_pci_address():
    virtual = GEFORCE | {"bus": (0xFFFFFFFF, 0xFFFFFFFF, 0xFFFFFFFF)}
    assert WindowsD3dkmtProbe(FakeGdi(virtual), FakeKernel()).read(ProbeRequest(None, 0)).gpus[0].pci is None


def test_inaccessible_engine_process_has_no_budget():
    probe = WindowsD3dkmtProbe(FakeGdi(GEFORCE), FakeKernel(4711))
    assert probe.read(ProbeRequest(4711, 0)).gpus[0].budget_bytes is None


def test_adapters_are_listed_regularly_and_closed():
    library, kernel = FakeGdi(GEFORCE, IRIS), FakeKernel()
    probe = WindowsD3dkmtProbe(library, kernel)
    for now_s in (0, 1, 2):
        probe.read(ProbeRequest(4711, now_s))
    assert library.listed == 1
    library.adapters.pop()  # an external GPU was unplugged
    assert len(probe.read(ProbeRequest(4712, 60)).gpus) == 1
    assert kernel.open == {4712}
    probe.close()
    assert library.open == kernel.open == set()


def test_failed_listing_is_empty():
    assert WindowsD3dkmtProbe(FakeGdi(GEFORCE, status=-1), FakeKernel()).read(ProbeRequest(None, 0)).gpus == ()


@pytest.mark.parametrize("missing", ["D3DKMTEnumAdapters2", "D3DKMTQueryAdapterInfo", "D3DKMTCloseAdapter"])
def test_a_library_without_a_function_is_not_used(monkeypatch, missing):
    monkeypatch.delattr(FakeGdi, missing)
    probe = WindowsD3dkmtProbe(FakeGdi(GEFORCE), FakeKernel())
    assert probe.read(ProbeRequest(4711, 0)) == EMPTY_RESULT
    probe.close()


def test_without_budgets_the_rest_is_read(monkeypatch):
    monkeypatch.delattr(FakeGdi, "D3DKMTQueryVideoMemoryInfo")
    (gpu,) = WindowsD3dkmtProbe(FakeGdi(GEFORCE), FakeKernel()).read(ProbeRequest(4711, 0)).gpus
    assert (gpu.total_bytes, gpu.budget_bytes) == (16 * GIB, None)


def test_vendor_is_recognised_by_name():
    assert vendor_of("AMD Radeon RX 7900 XTX") == "amd"
    assert vendor_of("Intel(R) Arc(TM) A770 Graphics") == "intel"
    assert vendor_of("Something else") is None
