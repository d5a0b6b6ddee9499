"""How the bundle for Windows is made on Linux: the pure rules of it."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tools.bundle.engines import CPU_ENGINES, VULKAN
from tools.setup.project import ROOT
from tools.windows import bundle, engine, innosetup, vulkan, wine32
from tools.windows.machine import Machine

needs_bash = pytest.mark.skipif(sys.platform == "win32", reason="the scripts are for Linux")


def test_every_engine_of_the_bundle_is_compiled_for_windows() -> None:
    assert {each.name: each.build for each in (*CPU_ENGINES, VULKAN)} == bundle.COMPILED


def test_engines_do_not_share_a_folder() -> None:
    folders = [engine.libraries(backend) for backend in bundle.COMPILED.values()]
    assert len(set(folders)) == len(folders)
    for backend, folder in zip(bundle.COMPILED.values(), folders, strict=True):
        script = engine.build_script(backend)
        assert f"mkdir {folder.name}\n" in script
        assert (vulkan.PREPARE in script) == (backend == "vulkan-avx2")


def test_the_tests_engine_is_not_compiled_a_second_time() -> None:
    machine = Machine("linux", "x86_64", True, True, True, True, "http://mirror.example/debian", 0)
    names = [stage.name for stage in bundle.stages(machine, print)]
    assert names == ["engine-cpu-sse42", "engine-vulkan", "wine32", "innosetup"]


@needs_bash
def test_the_scripts_are_well_formed() -> None:
    scripts = [engine.build_script("vulkan-avx2"), wine32.download_script("http://mirror.example/debian", ["--a=b"])]
    for script in scripts:
        assert subprocess.run(["bash", "-n"], input=script, text=True, check=False).returncode == 0


def test_wine_for_32_bit_programs_is_looked_for_in_the_installed_suite_first() -> None:
    assert wine32.SUITES[0] == "trixie"
    assert "for suite in trixie sid; do" in wine32.download_script("http://mirror.example/debian", [])


@pytest.mark.skipif(shutil.which("apt-config") is None, reason="no apt here")
def test_signatures_are_always_checked() -> None:
    assert all("Valid-Until=" in each or "Check-Date=" in each for each in wine32.date_checks())
    script = wine32.download_script("http://mirror.example/debian", wine32.date_checks()).lower()
    assert not any(word in script for word in ("unauthenticated", "insecure", "trusted=yes"))


def test_a_package_is_known_by_npms_hash(tmp_path: Path) -> None:
    file = tmp_path / "package.tgz"
    file.write_bytes(b"abc")
    # The SHA-512 of "abc", from FIPS 180-2.
    assert innosetup.integrity(file).startswith("sha512-3a81oZNherrMQXNJriBBMRLm+k6JqX6iCp7u5ktV05ohkpkqJ0/BqDa6PCOj")


def test_the_installers_name_is_what_its_script_says() -> None:
    script = (ROOT / innosetup.SCRIPT).read_text(encoding="utf-8")
    line = next(line for line in script.splitlines() if line.startswith("OutputBaseFilename="))
    said = line.partition("=")[2].replace("{#Version}", "1.2.3")
    assert innosetup.installer_name("1.2.3") == f"{said}.exe"
