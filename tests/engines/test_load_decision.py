"""The header and the fit together, on the demo's files: what a load needs is decided before the engine is asked."""

from pathlib import Path

from qwendesk.core.devices import DeviceInfo
from qwendesk.core.failures import LoadFailure
from qwendesk.core.options import LoadOptions
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.engine.protocol import Devices
from qwendesk.engines.load_decision import decide
from tests.draft_head_model import write_demo_head
from tools.hollow_model import write_hollow

CPU = Devices(id=1, devices=(DeviceInfo("CPU", "A processor", "cpu", "CPU"),), cpu_features=())
DEMO = LoadOptions(model=str(demo_model()), mmproj=str(demo_mmproj()))


def kind_of(options: LoadOptions) -> str:
    decided = decide(options, CPU)
    assert isinstance(decided, LoadFailure)
    return decided.kind


def test_every_auto_is_decided_for_the_demo():
    decided = decide(DEMO, CPU)
    assert isinstance(decided, LoadOptions)
    assert "auto" not in (decided.n_gpu_layers, decided.n_cpu_moe, decided.load_mode)
    assert (decided.model, decided.mmproj) == (DEMO.model, DEMO.mmproj)


def test_broken_files_have_different_failures(tmp_path: Path):
    page = tmp_path / "page.gguf"
    page.write_text("<html>404</html>")
    cut = tmp_path / "cut.gguf"
    cut.write_bytes(demo_model().read_bytes()[:20_000])
    assert kind_of(LoadOptions(model=str(page))) == "not_gguf"
    assert kind_of(LoadOptions(model=str(cut))) == "truncated"
    assert kind_of(LoadOptions(model=str(tmp_path / "gone.gguf"))) == "missing_file"
    assert kind_of(LoadOptions(model=DEMO.model, mmproj=DEMO.model)) == "mmproj_mismatch"


def test_a_draft_head_is_not_loaded_as_a_model(tmp_path: Path):
    decided = decide(LoadOptions(model=str(write_demo_head(tmp_path / "mtp.gguf"))), CPU)
    assert isinstance(decided, LoadFailure)
    assert decided.sentence.startswith("mtp.gguf is a draft head (MTP), not a model.")


def test_unused_mmproj_is_not_read():
    decided = decide(LoadOptions(model=DEMO.model, mmproj="/gone.gguf", vision="off"), CPU)
    assert isinstance(decided, LoadOptions)


def test_options_that_do_not_fit_are_refused_with_numbers():
    card = DeviceInfo("CUDA0", "A card", "gpu", "CUDA", 2**24, 2**24)
    here = Devices(id=1, devices=(card, *CPU.devices), cpu_features=())

    refused = decide(LoadOptions(model=DEMO.model, n_gpu_layers="all"), here)

    assert isinstance(refused, LoadFailure)
    assert refused.kind == "out_of_vram"
    assert "A card, which has 16 MB free" in refused.sentence


def test_too_little_ram_is_refused_with_advice(tmp_path: Path):
    model = write_hollow(tmp_path / "big.gguf", "122b", "f16")

    refused = decide(LoadOptions(model=str(model)), CPU)

    assert isinstance(refused, LoadFailure)
    assert refused.kind == "out_of_ram"
    assert "smaller quant" in refused.sentence
