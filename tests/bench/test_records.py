"""Runs are kept for each PC and model, without folders and names of the user."""

import datetime
from pathlib import Path

import msgspec

from qwendesk.bench.records import BenchRecords, make_record
from qwendesk.core.devices import DeviceInfo
from qwendesk.core.options import DecidedOptions
from tests.bench.samples import record, row
from tests.fakes.engine import DEMO_REPORT

CPU = DeviceInfo(name="CPU", description="AMD Ryzen 7", kind="cpu", backend="CPU")
CARD = DeviceInfo(name="CUDA0", description="NVIDIA GeForce RTX 3090", kind="gpu", backend="CUDA")


def test_runs_come_back_latest_first(tmp_path: Path) -> None:
    records = BenchRecords(tmp_path / "bench.json")
    here = [record(at=f"2026-11-26T15:3{minute}") for minute in range(3)]
    for each in (*here, record(pc="GTX 1080 · 16 GB RAM"), record(file="other.gguf")):
        records.add(each)

    found = BenchRecords(tmp_path / "bench.json").latest()

    assert [each.file for each in found[:1]] == ["other.gguf"]
    assert found[2:] == tuple(reversed(here))


def test_the_oldest_runs_of_a_model_are_dropped(tmp_path: Path) -> None:
    records = BenchRecords(tmp_path / "bench.json")
    for minute in range(8):
        records.add(record(at=f"2026-11-26T15:3{minute}"))
    records.add(record(file="other.gguf"))

    other, *kept = records.latest()

    assert [each.at[-1] for each in kept] == ["7", "6", "5", "4", "3"]
    assert other.file == "other.gguf"


def test_a_damaged_file_is_put_aside_and_a_new_one_begins(tmp_path: Path) -> None:
    (tmp_path / "bench.json").write_text('{"records": [', encoding="utf-8")
    records = BenchRecords(tmp_path / "bench.json")

    assert records.latest() == ()
    records.add(record(file="any.gguf"))

    assert len(records.latest()) == 1
    assert len(list(tmp_path.iterdir())) == 2


def test_a_record_names_no_folder(tmp_path: Path) -> None:
    options = DecidedOptions(
        model=str(tmp_path / "one.gguf"), mmproj=str(tmp_path / "mmproj.gguf"), lora=(f"{tmp_path / 'x.gguf'}=0.5",),
        chat_template_file=str(tmp_path / "t.jinja"), draft_model=str(tmp_path / "head.gguf"), n_ctx=0,
    )  # fmt: skip
    report = msgspec.structs.replace(DEMO_REPORT, options=options, n_ctx=4096)

    made = make_record(report, (CPU, CARD), "0.3.36", (row("pp512"),), now=datetime.datetime(2026, 11, 26, 15, 30, 12))

    assert tmp_path.name not in msgspec.json.encode(made).decode()
    assert made.at == "2026-11-26T15:30"
    assert made.pc.startswith("RTX 3090 · ")
    assert (made.backend, made.options.n_ctx) == ("CUDA", 4096)


def test_without_layers_on_the_gpu_the_backend_is_the_cpu() -> None:
    report = msgspec.structs.replace(DEMO_REPORT, options=DecidedOptions(model="one.gguf", n_gpu_layers=0))

    assert make_record(report, (CPU, CARD), "0.3.36", ()).backend == "CPU"
