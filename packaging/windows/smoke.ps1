# The bundle as a stranger would try it, on Windows: from an awkward path, without Python on PATH.
param([string] $Bundle = "dist\QwenDesk")
$ErrorActionPreference = "Stop"
$place = Join-Path $env:RUNNER_TEMP "Qwen Désk 試し"
$work = New-Item -ItemType Directory -Force ".work"
if ($Bundle -eq "dist\QwenDesk") {
    Copy-Item -Recurse -Force $Bundle $place
} else {
    $place = $Bundle
}
$env:PATH = "$env:SystemRoot\System32;$env:SystemRoot"
foreach ($name in "PYTHONHOME", "PYTHONPATH", "VIRTUAL_ENV") { Remove-Item "Env:$name" -ErrorAction SilentlyContinue }
$picture = Join-Path $work.FullName "window.png"
$log = Join-Path $work.FullName "tour.txt"
$program = Join-Path $place "QwenDesk.exe"
$tour = Start-Process -FilePath $program -ArgumentList "--demo-tour", "--screenshot", "`"$picture`"" `
    -RedirectStandardOutput $log -PassThru
if (-not $tour.WaitForExit(300000)) { $tour.Kill(); throw "The demo tour did not end within 5 minutes." }
Get-Content $log -Encoding utf8
if ($tour.ExitCode) { throw "The demo tour ended with $($tour.ExitCode)." }
if (-not (Test-Path $picture)) { throw "There is no screenshot." }
$said = (Get-Content $log -Raw -Encoding utf8).ToLower()
foreach ($word in "system ram", "red") { if (-not $said.Contains($word)) { throw "No answer has the word '$word'." } }
& (Join-Path $place "QwenDeskCommand.exe") doctor
if ($LASTEXITCODE) { throw "The doctor ended with $LASTEXITCODE." }
# The program without a console has nowhere to print, and must not show a window about that.
$silent = Start-Process -FilePath $program -ArgumentList "doctor" -PassThru
if (-not $silent.WaitForExit(300000)) { $silent.Kill(); throw "The doctor without a console did not end." }
$left = Get-Process QwenDesk, QwenDeskCommand, QwenDeskEngine -ErrorAction SilentlyContinue
if ($left) { throw "Still running: $($left.Name -join ', ')" }
