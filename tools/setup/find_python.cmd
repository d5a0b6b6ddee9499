@echo off
rem Sets PYTHON to the command of a Python that the set-up takes. Ends with 1 and a sentence if there is none.
rem For run.cmd and test.cmd, which call it in QwenDesk's folder.
set "PYTHON="
set "REFUSED="

rem Asked for a version that isn't here, a launcher may install it. First comes what is here.
set "MANAGER_MAY_INSTALL=%PYTHON_MANAGER_AUTOMATIC_INSTALL%"
set "LAUNCHER_MAY_INSTALL=%PYLAUNCHER_ALLOW_INSTALL%"
set "PYTHON_MANAGER_AUTOMATIC_INSTALL=false"
set "PYLAUNCHER_ALLOW_INSTALL="
for %%C in ("py -3.14" "py -3.13" "py -3.12" "py -3.11" "python" "py -3" "python3") do if not defined PYTHON call :try %%~C
set "PYTHON_MANAGER_AUTOMATIC_INSTALL=%MANAGER_MAY_INSTALL%"
set "PYLAUNCHER_ALLOW_INSTALL=%LAUNCHER_MAY_INSTALL%"
if defined PYTHON exit /b 0

rem The Python install manager downloads one, unless its settings forbid that. It shows how far it is.
call pymanager help >nul 2>nul
if not %errorlevel% equ 0 goto ask_launcher
echo QwenDesk needs Python 3.11 to 3.15. The Python install manager gets Python 3.13 now.
call pymanager exec -3.13 -m tools.setup --check-python
if %errorlevel% equ 0 set "PYTHON=pymanager exec -3.13"
if defined PYTHON exit /b 0
:ask_launcher
call :try py -3.13
if defined PYTHON exit /b 0

if not defined REFUSED goto no_python
call %REFUSED% -m tools.setup --check-python
goto offer_winget

:no_python
echo QwenDesk needs Python 3.11 to 3.15, and none was found. Install Python 3.13 ("Windows installer (64-bit)")
echo from https://www.python.org/downloads/windows/, then try again.

:offer_winget
if defined CI exit /b 1
call winget --version >nul 2>nul <nul
if not %errorlevel% equ 0 exit /b 1
rem Windows' own `choice` waits for one key. Without a keyboard it ends with 255, which is no.
call choice /c YN /n /m "Or press Y: winget installs it for you alone, and QwenDesk starts. N ends this. "
if not %errorlevel% equ 1 exit /b 1
rem x64 also on an ARM processor, for which no engine is made. The Store's source asks for agreements of its own.
call winget install -e --id Python.Python.3.13 --scope user --architecture x64 --source winget --accept-source-agreements --accept-package-agreements
rem PATH of this window is older than that Python, so it is asked for where its installer puts it.
call :try "%LOCALAPPDATA%\Programs\Python\Python313\python"
if not defined PYTHON call :try py -3.13
if defined PYTHON exit /b 0
echo winget did not install Python 3.13. Install it ("Windows installer (64-bit)")
echo from https://www.python.org/downloads/windows/, then try again.
exit /b 1

:try
rem `call`, because a Python may be a batch file. Without Python, Windows has a python.exe that only names the Store.
call %* -m tools.setup --check-python >nul 2>nul <nul
if %errorlevel% equ 0 set "PYTHON=%*"
if %errorlevel% equ 3 set "REFUSED=%*"
exit /b 0
