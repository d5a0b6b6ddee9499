@echo off
rem Opens QwenDesk on Windows. The first time it makes the environment and downloads a ready engine.
rem ENGINE = auto, cpu, cuda or vulkan, e.g.  set ENGINE=vulkan
setlocal
cd /d "%~dp0"
if not defined ENGINE set "ENGINE=auto"
if not exist "tools\setup\__main__.py" goto not_extracted
set "PYTHON=py -3"
where py >nul 2>nul || set "PYTHON=python"
rem Without Python, Windows has a program of this name that only opens the Microsoft Store.
%PYTHON% -c "pass" >nul 2>nul || goto no_python
%PYTHON% -m tools.setup --for run --engine "%ENGINE%" --prebuilt || goto failed
".venv\Scripts\python.exe" -m qwendesk %* && exit /b 0
rem A command tells its caller how it ended. The window has no other place for what went wrong.
if not "%~1"=="" exit /b %errorlevel%
goto failed

:not_extracted
echo The other files of QwenDesk are missing here. If you opened a ZIP file, extract all of it first:
echo right-click the ZIP file, choose "Extract All...", and start run.cmd in the new folder.
goto failed

:no_python
echo QwenDesk needs Python 3.11 to 3.14, and none was found. Install it from python.org
echo with "Add python.exe to PATH" ticked, then start run.cmd again.
goto failed

:failed
rem A window that was opened by a double-click would close before anybody has read why.
if not defined CI pause
exit /b 1
