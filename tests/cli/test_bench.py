"""`qwendesk bench` with the real engine and the demo model."""

import asyncio
import hashlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from qwendesk.cli import main as cli
from qwendesk.cli.bench import request_of
from qwendesk.core.paths import demo_model

QUICK = ("-r", "1", "-n", "4")


def request(*arguments: str):
    return request_of(cli.make_parser().parse_args(["bench", *arguments]))


def test_table_of_the_demo_model(capsys) -> None:
    assert cli.main(["bench", "-p", "16", "-d", "0,64", *QUICK]) == 0

    lines = capsys.readouterr().out.splitlines()
    assert [cell.strip() for cell in lines[0].split("|")][-2:] == ["t/s", ""]
    assert [line.split("|")[-3].strip() for line in lines[2:]] == ["pp16", "tg4", "pp16 @ d64", "tg4 @ d64"]


def test_every_combination_is_measured_and_its_options_are_in_the_output(capsys) -> None:
    assert cli.main(["bench", "-p", "0", "-ub", "64,128", "-ctk", "f16,q8_0", "-o", "json", *QUICK]) == 0

    rows = json.loads(capsys.readouterr().out)
    assert [(row["n_ubatch"], row["type_k"]) for row in rows] == [
        (64, "f16"), (64, "q8_0"), (128, "f16"), (128, "q8_0"),
    ]  # fmt: skip


def test_model_that_is_missing(capsys, tmp_path: Path) -> None:
    assert cli.main(["bench", str(tmp_path / "none.gguf"), *QUICK]) == 3

    assert "none.gguf" in capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [("-p", "many"), ("-n", "-4"), ("-r", "0"), ("-pg", "512"), ("-ctk", "q9"), ("--set", "n_ctx"), ("-b", "0")],
)
def test_bad_arguments_are_refused_with_a_sentence(arguments, capsys) -> None:
    assert cli.main(["bench", *arguments]) == 2

    assert "qwendesk bench: " in capsys.readouterr().err


def test_whole_run_by_default_and_only_what_is_asked_for_otherwise() -> None:
    whole, asked = request(), request("-p", "512")

    assert whole.plan.with_drafts
    assert whole.plan.with_follow_ups
    assert whole.plan.depths[:2] == (0, 2048)
    assert (asked.plan.depths, asked.plan.with_drafts, asked.plan.with_follow_ups) == ((0,), False, False)
    assert request("-p", "512", "--drafts").plan.with_drafts


def test_context_is_made_for_the_depths_unless_it_is_set() -> None:
    assert request("-d", "8192").loads[0].n_ctx == 8704
    assert request("-d", "8192", "--set", "n_ctx=16384").loads[0].n_ctx == 16384
    assert request("-p", "16").loads[0].n_ctx == 0


def test_lists_of_llama_bench_are_understood() -> None:
    loads = request("-ts", "3/1,1/1", "-fa", "1,0", "-nkvo", "1", "-dev", "CUDA0/CUDA1").loads

    assert [load.tensor_split for load in loads] == [(3.0, 1.0), (3.0, 1.0), (1.0, 1.0), (1.0, 1.0)]
    assert [load.flash_attn for load in loads] == ["on", "off", "on", "off"]
    assert {load.offload_kqv for load in loads} == {False}
    assert {load.devices for load in loads} == {("CUDA0", "CUDA1")}


@pytest.mark.skipif(sys.platform == "win32", reason="sends a POSIX signal")
def test_ctrl_c_keeps_what_was_measured() -> None:
    async def run() -> tuple[int | None, str]:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "qwendesk", "bench", "-p", "16", "-n", "100000", "-r", "1", "-d", "0",
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        assert process.stdout is not None
        lines = [await process.stdout.readline() for _ in range(3)]
        os.kill(process.pid, signal.SIGINT)
        await process.stdout.read()
        return await process.wait(), lines[2].decode()

    status, row = asyncio.run(run())

    assert status == 130
    assert "pp16" in row


def test_perplexity_and_divergence_of_a_text(capsys, tmp_path: Path) -> None:
    text, base = tmp_path / "text.txt", tmp_path / "base"
    text.write_text("The driver moves data to slow system RAM and the speed drops a lot. " * 30, encoding="utf-8")
    quick = ("--perplexity", str(text), "-c", "64", "--chunks", "2", "-o", "json")

    assert cli.main(["bench", *quick, "--save-kld-base", str(base)]) == 0
    (saved,) = json.loads(capsys.readouterr().out)
    assert cli.main(["bench", *quick, "--kld-base", str(base), "-ctk", "f16,q8_0"]) == 0
    same, coarse = json.loads(capsys.readouterr().out)

    assert saved["n_tokens"] == 2 * 31
    assert (same["ppl"], same["kld_mean"]) == (saved["ppl"], 0.0)
    assert (coarse["type_k"], coarse["kld_mean"] > 0) == ("q8_0", True)


def test_a_base_that_is_none_is_refused_with_a_sentence(capsys, tmp_path: Path) -> None:
    text, base = tmp_path / "text.txt", tmp_path / "base"
    text.write_text("Some words. " * 100, encoding="utf-8")
    base.write_bytes(b"no base")

    assert cli.main(["bench", "--perplexity", str(text), "-c", "64", "--kld-base", str(base)]) == 4

    assert "isn't a base" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [("--kld-base", "x"), ("--perplexity", "x", "-c", "4")])
def test_options_of_scoring_are_checked(arguments, capsys) -> None:
    assert cli.main(["bench", *arguments]) == 2

    assert "qwendesk bench: " in capsys.readouterr().err


def test_one_row_to_share_has_the_file_its_hash_memory_and_speeds(capsys) -> None:
    assert cli.main(["bench", "-p", "16", "-d", "0,64", "-o", "row", *QUICK]) == 0

    (row,) = capsys.readouterr().out.splitlines()
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells[0].startswith("QwenDesk ")
    assert hashlib.sha256(demo_model().read_bytes()).hexdigest() in cells[2]
    assert cells[3].startswith("`-ngl ")
    assert re.fullmatch(r"planned \d+ MiB, used \d+ MiB", cells[4])
    assert re.fullmatch(r"pp16: \d+\.\d\d, \d+\.\d\d @ d64", cells[5])
    assert re.fullmatch(r"tg4: \d+\.\d\d, \d+\.\d\d @ d64", cells[6])
