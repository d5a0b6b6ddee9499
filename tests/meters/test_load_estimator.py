"""What remedies would free, as the planner estimates it, on the demo model's real files."""

from pathlib import Path
from types import SimpleNamespace

import msgspec

from qwendesk.core import paths
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import LoadOptions
from qwendesk.core.units import GIB
from qwendesk.engine.answer_meter import AnswerMeter
from qwendesk.engine.state import EngineState
from qwendesk.engines.load_decision import facts_for
from qwendesk.meters.spill_remedies import find_remedies, load_estimator
from tests.draft_head_model import write_demo_with_head

CARD = DeviceInfo("CUDA0", "NVIDIA GeForce RTX 3090", "gpu", "CUDA", 24 * GIB, 23 * GIB)
DEMO = LoadOptions(
    model=str(paths.demo_model()), mmproj=str(paths.demo_mmproj()), n_ctx=32_768, n_gpu_layers="all", n_cpu_moe=0,
    type_k="f16", type_v="f16", vision="gpu", n_ubatch=512,
)  # fmt: skip


def estimate_load(options: LoadOptions):
    return load_estimator(SimpleNamespace(read_files=facts_for, state=EngineState(devices=(CARD,))), AnswerMeter())(
        options
    )


def test_each_remedy_frees_video_memory():
    now = estimate_load(DEMO)
    for changes in ({"n_cpu_moe": 4}, {"vision": "cpu"}):
        after = estimate_load(msgspec.structs.replace(DEMO, **changes))
        assert after.gpus["CUDA0"] < now.gpus["CUDA0"], changes
    low, high = now.expected_tok_s
    assert 0 < low <= high


def test_drafts_off_frees_what_their_head_and_snapshots_take(tmp_path: Path):
    model = write_demo_with_head(tmp_path / "demo-mtp.gguf")
    drafting = msgspec.structs.replace(DEMO, model=str(model), speculative="mtp")
    found = find_remedies(drafting, {"CUDA0": 1}, None, 8, estimate_load)
    assert found[0].id == "drafts"
    lookup = msgspec.structs.replace(DEMO, speculative="lookup")
    assert find_remedies(lookup, {"CUDA0": 1}, None, 8, estimate_load)[0].id == "drafts"


def test_remedies_for_a_small_spill():
    found = find_remedies(DEMO, {"CUDA0": 100_000}, None, 8, estimate_load)
    # A q8_0 cache is unpacked for one layer at a time, and that takes the tiny demo more than it saves.
    assert {remedy.id for remedy in found} == {"experts", "vision"}


def test_missing_files_and_moved_tensors_have_no_estimate():
    assert estimate_load(msgspec.structs.replace(DEMO, model="/nowhere/model.gguf")) is None
    assert estimate_load(msgspec.structs.replace(DEMO, override_tensor=("(=CPU",))) is None
