@echo off
rem Opens QwenDesk on Windows. The first time it makes the environment and downloads a ready engine.
rem ENGINE = auto, cpu, cuda, vulkan or hip, e.g.  set ENGINE=vulkan
setlocal
cd /d "%~dp0"
if not defined ENGINE set "ENGINE=auto"
if not exist "tools\setup\find_python.cmd" goto not_extracted
call tools\setup\find_python.cmd
if errorlevel 1 goto failed
call %PYTHON% -m tools.setup --for run --engine "%ENGINE%" --prebuilt || goto failed
".venv\Scripts\python.exe" -m qwendesk %* && exit /b 0
rem A command tells its caller how it ended. The window has no other place for what went wrong.
if not "%~1"=="" exit /b %errorlevel%
goto failed

:not_extracted
echo The other files of QwenDesk are missing here. If you opened a ZIP file, extract all of it first:
echo right-click the ZIP file, choose "Extract All...", and start run.cmd in the new folder.
goto failed

:failed
rem A window that was opened by a double-click would close before anybody has read why.
if not defined CI pause
exit /b 1
