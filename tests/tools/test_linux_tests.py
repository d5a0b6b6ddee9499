"""What `make linux-test` and `make gpu-test` set up, and the 32-bit copy of a model."""

import os
import shlex
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
from tools.linux_tests.command import all_stages
from tools.linux_tests.environment import VULKAN_PACKAGE, pinned_for_linux
from tools.linux_tests.place import Place, is_new_debian
from tools.setup.project import ROOT
from tools.windows.folders import SHARED, TREE, inside
from tools.windows.machine import Machine
from tools.windows.stages import keys

FOLDER, HERE = Place(is_here=False), Place(is_here=True)
MACHINE = Machine("linux", "x86_64", True, True, True, True, "http://mirror.example/debian", 2**40)


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


def test_libraries_are_those_of_the_constraints_without_engine_and_windows() -> None:
    numpy = "numpy==2.4.6; python_version < '3.12'\nnumpy==2.5.5; python_version >= '3.12'\n"
    pins = pinned_for_linux(f"# text\n{numpy}pywin32==312\nllama_cpp_python==0.3.36\nruff==0.17.5\n")
    assert pins[:2] == ["numpy==2.5.5", "ruff==0.17.5"]
    assert not [pin for pin in pins if pin.startswith(("pywin32", "llama"))]


@pytest.mark.parametrize(("place", "path"), [(FOLDER, inside(TREE)), (HERE, str(TREE))])
def test_paths_are_those_of_the_place(place: Place, path: str) -> None:
    assert place.path(TREE) == path
    line = place.command("true", TREE, ["A=b"])
    assert "A=b" in line
    assert f"cd {shlex.quote(path)}\ntrue" in line
    assert ("unshare" in line) is (place is FOLDER)


def test_each_command_compiles_only_what_it_needs() -> None:
    names = {
        command: [stage.name for stage in all_stages(FOLDER, command, MACHINE)] for command in ("test", "gpu", "soak")
    }
    assert names["test"] == ["debian", "linux-source", "linux-libraries", "linux-cpu"]
    assert names["gpu"] == [*names["test"][:-1], "linux-vulkan"]
    assert names["soak"] == [*names["gpu"], "linux-operators"]
    assert "debian" not in [stage.name for stage in all_stages(HERE, "gpu", MACHINE)]


def test_other_place_makes_everything_anew() -> None:
    there, here = (keys(all_stages(place, "gpu", MACHINE)) for place in (FOLDER, HERE))
    assert there["linux-libraries"] != here["linux-libraries"]
    assert there["linux-vulkan"] != here["linux-vulkan"]


def test_only_the_vulkan_engine_is_built_with_vulkan() -> None:
    assert "-DGGML_VULKAN=ON" in engine.build_script(FOLDER, engine.VULKAN)
    assert "-DGGML_VULKAN=ON" not in engine.build_script(FOLDER, engine.CPU)


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


def test_vulkan_worker_sees_the_software_driver_alone_and_keeps_its_shaders() -> None:
    variables = dict(each.split("=", 1) for each in runs.vulkan_environment(FOLDER))
    assert variables["GGML_VK_VISIBLE_DEVICES"] == "0"
    assert variables["VK_DRIVER_FILES"].endswith("lvp_icd.json")
    assert variables["MESA_SHADER_CACHE_DIR"].startswith(inside(SHARED))
    assert variables["PYTHONPATH"] == inside(VULKAN_PACKAGE)


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
