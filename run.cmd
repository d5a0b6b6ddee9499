@echo off
rem Opens QwenDesk on Windows. The first time it makes the environment and downloads a ready engine.
rem ENGINE = auto, cpu, cuda or vulkan, e.g.  set ENGINE=vulkan
setlocal
cd /d "%~dp0"
if not defined ENGINE set "ENGINE=auto"
set "PYTHON=py -3"
where py >nul 2>nul || set "PYTHON=python"
%PYTHON% -m tools.setup --for run --engine "%ENGINE%" --prebuilt || exit /b 1
".venv\Scripts\python.exe" -m qwendesk %*
