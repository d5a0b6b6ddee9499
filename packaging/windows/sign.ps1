# Signs the given files with the certificate in the variables CERTIFICATE (a PFX file in base64) and PASSWORD.
$ErrorActionPreference = "Stop"
$pfx = Join-Path $env:RUNNER_TEMP "certificate.pfx"
[IO.File]::WriteAllBytes($pfx, [Convert]::FromBase64String($env:CERTIFICATE))
try {
    $kits = "${env:ProgramFiles(x86)}\Windows Kits\10\bin"
    $signtool = Get-ChildItem -Path $kits -Recurse -Filter signtool.exe |
        Where-Object { $_.FullName -like "*\x64\*" } | Sort-Object FullName | Select-Object -Last 1
    & $signtool.FullName sign /fd SHA256 /td SHA256 /tr http://timestamp.digicert.com /f $pfx /p $env:PASSWORD @args
    if ($LASTEXITCODE) { throw "signtool ended with $LASTEXITCODE" }
} finally {
    Remove-Item $pfx
}
