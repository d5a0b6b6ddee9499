"""Where `make linux-test` runs, the compiler of `make gpu-test`, and the 32-bit copy of a model."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import gguf
import numpy as np
import pytest

from qwendesk.core.paths import demo_model
from tools.f32_model import write_f32
from tools.linux_tests import engine, runs
from tools.linux_tests.place import is_new_debian
from tools.setup.project import ROOT


@pytest.mark.parametrize(
    ("text", "is_new"),
    [
        ('ID=debian\nVERSION_ID="12"\n', False),
        ('PRETTY_NAME="Debian"\nVERSION_ID="13"\nID=debian\n', True),
        ('ID=debian\nVERSION_ID="14"\n', True),
        ('ID=ubuntu\nVERSION_ID="24.04"\n', False),
        ("ID=debian\n", False),
        ("", False),
    ],
)
def test_this_machine_is_used_from_debian_13_on(text: str, is_new: bool) -> None:
    assert is_new_debian(text) is is_new


@pytest.mark.skipif(sys.platform == "win32", reason="a shell script of Linux")
def test_stand_in_for_glslc_knows_no_matrices_and_passes_everything_else_on(tmp_path: Path) -> None:
    real = tmp_path / "glslc"
    real.write_text('#!/bin/sh\necho "real $@"\n')
    script = tmp_path / "stand-in"
    script.write_text(engine.glslc_script())
    for file in (real, script):
        file.chmod(file.stat().st_mode | stat.S_IXUSR)

    def run(shader: str) -> "subprocess.CompletedProcess[str]":
        environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
        return subprocess.run([script, "-o", "-", shader], env=environment, capture_output=True, text=True, check=False)

    for name, extension in (("coopmat", "GL_KHR_cooperative_matrix"), ("coopmat2", "GL_NV_cooperative_matrix2")):
        refused = run(f"/source/feature-tests/{name}.comp")
        assert refused.returncode != 0
        # What the build looks for, as it writes it.
        assert f"extension not supported: {extension}" in refused.stderr
    assert run("/source/feature-tests/integer_dot.comp").stdout == "real -o - /source/feature-tests/integer_dot.comp\n"
    assert run("/source/mul_mm.comp").stdout == "real -o - /source/mul_mm.comp\n"


def test_engine_tests_for_the_device_exist() -> None:
    assert [name for name in runs.ENGINE_TESTS if not (ROOT / name.split("::")[0]).is_file()] == []


def test_copy_has_the_same_weights_as_32_bit_floats_and_the_same_metadata(tmp_path: Path) -> None:
    copy = gguf.GGUFReader(write_f32(demo_model(), tmp_path / "copy.gguf"))
    demo = gguf.GGUFReader(demo_model())
    assert [tensor.name for tensor in copy.tensors] == [tensor.name for tensor in demo.tensors]
    for ours, theirs in zip(copy.tensors, demo.tensors, strict=True):
        assert ours.tensor_type == gguf.GGMLQuantizationType.F32
        assert ours.shape.tolist() == theirs.shape.tolist()
        assert np.array_equal(ours.data, gguf.dequantize(theirs.data, theirs.tensor_type))
    changed = {"general.file_type", "general.quantization_version", "GGUF.kv_count"}
    assert set(copy.fields) - changed == set(demo.fields) - changed
    for name in set(copy.fields) - changed:
        assert copy.fields[name].contents() == demo.fields[name].contents(), name
        assert copy.fields[name].types == demo.fields[name].types, name
