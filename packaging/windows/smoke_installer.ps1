# Installs for this user without a word, tries what was installed, removes it, and looks at what is left.
$ErrorActionPreference = "Stop"
$setup = (Get-Item dist\*-setup.exe).FullName
$installed = Join-Path $env:LOCALAPPDATA "Programs\QwenDesk"
$done = Start-Process $setup -ArgumentList "/VERYSILENT", "/SUPPRESSMSGBOXES", "/NORESTART" -PassThru -Wait
if ($done.ExitCode) { throw "The installer ended with $($done.ExitCode)." }
& "$PSScriptRoot\smoke.ps1" -Bundle $installed
$remove = Start-Process (Join-Path $installed "unins000.exe") -ArgumentList "/VERYSILENT", "/SUPPRESSMSGBOXES" -PassThru -Wait
if ($remove.ExitCode) { throw "The uninstaller ended with $($remove.ExitCode)." }
if (Test-Path (Join-Path $installed "QwenDesk.exe")) { throw "The program is still there." }
if (-not (Test-Path (Join-Path $env:LOCALAPPDATA "QwenDesk"))) { throw "The person's data went without a question." }
