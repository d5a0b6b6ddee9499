@echo off
rem Everything CI runs, on Windows. Arguments go to pytest.
setlocal
cd /d "%~dp0"
if not defined ENGINE set "ENGINE=auto"
call tools\setup\find_python.cmd
if errorlevel 1 exit /b 1
call %PYTHON% -m tools.setup --for test --engine "%ENGINE%" --prebuilt || exit /b 1
".venv\Scripts\python.exe" -m tools.check %*
