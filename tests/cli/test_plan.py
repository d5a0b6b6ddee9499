"""`qwendesk plan` as people and programs use it: hollow files of real size, and headers on a Hub of our own."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from qwendesk.cli import main as cli
from qwendesk.cli import plan as cli_plan
from qwendesk.cli.terminal import Terminal
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.model_facts import ModelFacts
from qwendesk.core.paths import demo_mmproj, demo_model
from qwendesk.core.plan import MachineMemory
from qwendesk.core.units import GIB
from qwendesk.engine.protocol import Devices
from qwendesk.engines.load_decision import plan_of
from qwendesk.hardware.snapshot import GpuReading
from tests.hub.hub_server import running_hub
from tools.hollow_model import write_hollow

KEYS = ["fits", "devices", "ram_bytes", "options", "expected_tok_s", "measured_tok_s", "why", "source", "next_step"]
DEVICE_KEYS = [
    "name", "description", "layers", "weights_bytes", "kv_bytes", "recurrent_bytes", "compute_bytes", "vision_bytes",
    "total_bytes", "budget_bytes",
]  # fmt: skip


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "qwendesk", "plan", *arguments]
    settings = os.environ | {"PYTHON_KEYRING_BACKEND": "keyring.backends.null.Keyring"} | environment
    return subprocess.run(
        command, capture_output=True, text=True, encoding="utf-8", env=settings, timeout=150, check=False
    )


def planned(*arguments: str, code: int = 0, **environment: str) -> dict[str, Any]:
    done = run(*arguments, "--json", **environment)
    assert done.returncode == code, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_hollow(tmp_path_factory.mktemp("plan") / "Qwen3.5-35B-A3B-Q4_K_M.gguf", "35b")


def test_plan_for_a_gpu_given_by_vram(model: Path) -> None:
    found = planned(str(model), "--vram", "16", "--ram", "32", "--reserve", "1")

    assert list(found) == KEYS
    (card,) = found["devices"]
    assert list(card) == DEVICE_KEYS
    assert card["total_bytes"] <= card["budget_bytes"] == 15 * GIB
    assert card["kv_bytes"] == 65_536 * 10 * 2 * 256 * 2 * 34 // 32
    assert 0 < found["options"]["n_cpu_moe"] < 20
    assert (found["source"], found["options"]["type_k"]) == ("estimate", "q8_0")
    low, high = found["expected_tok_s"]
    assert 0 < low < high
    assert any("expert" in sentence.lower() for sentence in found["why"])


def test_plan_for_made_up_gpus_has_an_entry_for_each(model: Path) -> None:
    found = planned(
        str(model), "--gpu", "RTX 3090:24:20.5", "--gpu", "RTX 3060:12", "--backend", "vulkan", "--ram", "64",
        "--reserve", "1",
    )  # fmt: skip

    first, second = found["devices"]
    assert (first["name"], first["description"], first["budget_bytes"]) == ("Vulkan0", "RTX 3090", 20 * GIB)
    assert (second["name"], second["description"], second["budget_bytes"]) == ("Vulkan1", "RTX 3060", 11 * GIB)
    assert first["layers"] + second["layers"] == 40
    assert sum(found["options"]["tensor_split"]) == 100
    assert found["options"]["n_cpu_moe"] == 0


def test_plan_that_does_not_fit_says_so(model: Path) -> None:
    found = planned(str(model), "--vram", "0", "--ram", "8", code=1)

    assert not found["fits"]
    assert [device["name"] for device in found["devices"]] == ["CPU"]
    assert any("too much" in sentence for sentence in found["why"])
    assert "smaller" in found["next_step"]["sentence"]


def test_a_model_that_does_not_fit_has_a_next_step(model: Path) -> None:
    asked = (str(model), "--gpu", "RTX 3090:24", "--gpu", "RTX 3090:24", "--ram", "8")
    small = run(*asked, "--ctx", "262144", "--set", "type_k=f16", "type_v=f16", "n_gpu_layers=0")
    assert small.returncode == 1, small.stderr
    assert "Next step: This model doesn't fit" in small.stdout
    assert "vllm serve Qwen/Qwen3.5-35B-A3B" in small.stdout
    assert run(*asked).stdout.count("Next step") == 0


def test_plan_for_this_pc_uses_a_dry_run_and_the_mmproj() -> None:
    found = planned(str(demo_model()))

    assert (found["fits"], found["source"]) == (True, "engine")
    assert found["options"]["mmproj"].endswith("mmproj-qwendesk-demo-Q8_0.gguf")
    assert all(found["options"][key] != "auto" for key in ("n_gpu_layers", "n_cpu_moe", "type_k", "n_ubatch"))


def test_a_file_on_the_hub_is_planned_from_its_header_alone(tmp_path: Path) -> None:
    with running_hub() as hub:
        hub.add("someone/Demo-GGUF", "demo.gguf", demo_model().read_bytes())
        hub.add("someone/Demo-GGUF", "mmproj-F16.gguf", demo_mmproj().read_bytes())

        found = planned(
            "hf:someone/Demo-GGUF/demo.gguf", "--vram", "8", "--ram", "16", HF_ENDPOINT=hub.endpoint, HOME=str(tmp_path)
        )
        missing = run("hf:someone/Demo-GGUF/other.gguf", HF_ENDPOINT=hub.endpoint)

    (card,) = found["devices"]
    assert (found["fits"], found["source"]) == (True, "estimate")
    assert card["weights_bytes"] > 0.75 * demo_model().stat().st_size
    assert card["vision_bytes"] > demo_mmproj().stat().st_size // 2
    assert list(tmp_path.rglob("*.gguf")) == []
    assert missing.returncode == 2
    assert "other.gguf" in missing.stderr


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.gguf",), "could not be found"),
        (("MODEL", "--vram", "lots"), "a number of GiB"),
        (("MODEL", "--vram", "-4"), "a valid size in GiB"),
        (("MODEL", "--gpu", "RTX 3090"), "--gpu takes NAME:GIB"),
        (("MODEL", "--gpu", "RTX 3090:many"), "a number of GiB"),
        (("MODEL", "--gpu", "RTX 3090:24", "--vram", "8"), "exclude each other"),
        (("MODEL", "--vram", "8", "--set", "n_cpu_moe"), "KEY=VALUE"),
        (("MODEL", "--vram", "8", "--set", "colour=blue"), "no option “colour”"),
        (("MODEL", "--vram", "8", "--set", "override_tensor=blk(=CPU"), "regular expression"),
        (("hf:someone",), "owner/name"),
    ],
    ids=str,
)
def test_bad_input_is_reported_in_a_sentence(arguments: tuple[str, ...], said: str, model: Path) -> None:
    done = run(*(str(model) if text == "MODEL" else text for text in arguments))

    assert done.returncode == 2
    assert said in done.stderr
    assert "Traceback" not in done.stderr


def test_plain_output_has_sentences(model: Path) -> None:
    done = run(str(model), "--vram", "12", "--ram", "32")

    assert done.returncode == 0
    assert done.stdout.startswith("It fits.")
    assert "tok/s at the start" in done.stdout
    assert "tok/s at the start of a chat" in done.stdout


def test_a_plan_is_written_as_a_command(model: Path) -> None:
    done = run(str(model), "--vram", "16", "--ram", "32", "--command", "llama-server")
    assert done.returncode == 0, done.stderr
    words = done.stdout.split()
    assert words[:3] == ["llama-server", "--model", str(model)]
    assert words[words.index("--cache-type-k") + 1] == "q8_0"
    assert int(words[words.index("--n-cpu-moe") + 1]) > 0


def test_conflicting_options_are_refused(model: Path) -> None:
    done = run(str(model), "--vram", "16", "--set", "type_v=q8_0", "flash_attn=off")
    assert done.returncode == 2
    assert "needs flash attention" in done.stderr


def test_commands_for_other_programs_know_the_original_model_and_the_cards(model: Path) -> None:
    done = run(str(model), "--gpu", "RTX 3090:24", "--gpu", "RTX 3090:24", "--ram", "64", "--command", "vllm")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("vllm serve Qwen/Qwen3.5-35B-A3B-FP8 ")
    assert "--tensor-parallel-size 2" in done.stdout
    assert "doesn't know how the cards are linked" in done.stdout
    done = run(str(model), "--unified", "M4 Max:64", "--backend", "metal", "--command", "mlx")
    assert done.stdout.startswith("mlx_lm.server --model mlx-community/Qwen3.5-35B-A3B-8bit ")


def test_plan_for_this_pc_judges_the_links_of_its_cards(
    model: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = ("RTX 3090", "RTX 3090")
    devices = tuple(DeviceInfo(f"CUDA{n}", name, "gpu", "CUDA", 24 * GIB, 23 * GIB) for n, name in enumerate(names))
    readings = tuple(
        GpuReading(pci=f"0000:0{n}:00.0", name="RTX 3090", total_bytes=24 * GIB, pcie_max_generation=3, pcie_width=4)
        for n in (1, 2)
    )

    async def found(_terminal: Terminal) -> Devices:
        return Devices(id=0, devices=devices, cpu_features=())

    async def estimated(facts: ModelFacts, mmproj: ModelFacts | None, machine: MachineMemory, *rest: Any) -> Any:
        return plan_of(facts, mmproj, machine, rest[0])

    monkeypatch.setattr(cli_plan, "devices_here", found)
    monkeypatch.setattr(cli_plan, "exact_plan", estimated)
    monkeypatch.setattr(cli_plan, "read_gpus", lambda: readings)

    assert cli.main(["plan", str(model), "--ram", "64"]) == 0
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Link of ")]
    assert [line.split(":")[0] for line in lines] == ["Link of RTX 3090 (CUDA0)", "Link of RTX 3090 (CUDA1)"]
    assert all("PCIe 3.0 ×4 carries 3.9 GB/s" in line and "Loading " in line for line in lines)

    assert cli.main(["plan", str(model), "--ram", "64", "--command", "vllm"]) == 0
    assert "--pipeline-parallel-size 2" in capsys.readouterr().out
