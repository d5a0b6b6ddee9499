"""What the set-up says, or does, when the system lacks something."""

import os
import sys
from pathlib import Path

import pytest

from tools.setup import system_packages
from tools.setup.project import SetupError
from tools.setup.system_packages import Need, missing, needs, provide

THERE = Need("module", "json", "python3")
LIBRARY = Need("library", "libnothing-of-this-name.so.7", "libnothing7")
PROGRAM = Need("program", "no-program-of-this-name", "nothing-tools")


@pytest.fixture
def said() -> list[str]:
    return []


@pytest.fixture
def apt(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """A Debian whose apt-get only writes down what it is asked."""
    calls: list[tuple[str, ...]] = []
    which = system_packages.shutil.which
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(system_packages, "_apt", lambda *arguments: calls.append(arguments))
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: "apt-get" if name == "apt-get" else which(name))
    return calls


def test_installed_packages_are_not_missing() -> None:
    assert missing([THERE, LIBRARY, PROGRAM]) == [LIBRARY, PROGRAM]


def test_user_without_root_gets_the_exact_command(
    said: list[str], apt: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000, raising=False)

    with pytest.raises(SetupError, match=r"sudo apt-get install libnothing7 nothing-tools$"):
        provide([THERE, PROGRAM, LIBRARY], say=said.append)

    assert apt == []


def test_root_on_debian_installs_only_what_is_missing(
    said: list[str], apt: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0, raising=False)

    with pytest.raises(SetupError, match="Still missing after installing libnothing7"):
        provide([THERE, LIBRARY], say=said.append)

    assert apt == [("update",), ("install", "--yes", "--no-install-recommends", "libnothing7")]
    assert said == ["Installing from the system's packages (about a minute): libnothing7"]


def test_other_linux_gets_the_package_names_to_search_for(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(system_packages.shutil, "which", lambda name: None)

    with pytest.raises(SetupError, match=r"libnothing-of-this-name\.so\.7"):
        provide([LIBRARY], say=said.append)


def test_mac_user_is_told_how_to_install_the_compiler(said: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(SetupError, match="xcode-select --install"):
        provide([PROGRAM], say=said.append)


def test_x_server_is_for_tests_and_compiler_for_builds_only() -> None:
    def packages(*purposes: str) -> set[str]:
        return {need.debian_package for need in needs(purposes, "Linux")}

    assert "xvfb" not in packages("run")
    assert "ffmpeg" not in packages("run")
    assert {"xvfb", "ffmpeg", "libegl1"} <= packages("run", "test")
    assert packages("build") == {"g++"}


def test_a_vulkan_engine_needs_its_compiler_and_headers() -> None:
    assert {need.debian_package for need in needs(["vulkan"], "Linux")} == {"glslc", "libvulkan-dev", "spirv-headers"}
    assert [need.name for need in needs(["vulkan"], "Windows")] == ["glslc"]


def test_outdated_headers_are_not_requested_again(
    tmp_path: Path, said: list[str], apt: list[tuple[str, ...]], monkeypatch: pytest.MonkeyPatch
) -> None:
    header = tmp_path / "include" / "vulkan" / "vulkan_core.h"
    header.parent.mkdir(parents=True)
    header.write_text("#define VK_HEADER_VERSION 239\n")
    monkeypatch.setenv("VULKAN_SDK", str(tmp_path))
    need = Need("header", "vulkan/vulkan_core.h", "libvulkan-dev", "VK_EXT_layer_settings")
    with pytest.raises(SetupError, match=r"vulkan_core\.h is too old .* VULKAN_SDK"):
        provide([need], say=said.append)
    assert apt == []
    header.write_text("#define VK_EXT_layer_settings 1\n")
    assert missing([need]) == []
