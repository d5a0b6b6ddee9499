@echo off
rem Everything CI runs, on Windows. Arguments go to pytest.
setlocal
cd /d "%~dp0"
if not defined ENGINE set "ENGINE=auto"
set "PYTHON=py -3"
where py >nul 2>nul || set "PYTHON=python"
%PYTHON% -m tools.setup --for test --engine "%ENGINE%" --prebuilt || exit /b 1
".venv\Scripts\python.exe" -m tools.check %*
