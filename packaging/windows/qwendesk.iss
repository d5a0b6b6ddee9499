; Inno Setup 6: the installer for Windows, per user, without administrator rights.
; Built by the release workflow: iscc /DVersion=1.2.3 packaging\windows\qwendesk.iss

#ifndef Version
  #error Give the version: /DVersion=1.2.3
#endif

[Setup]
AppId={{6E0E3B1C-6A37-4B0B-9E0B-2C3E52F9D7A1}
AppName=QwenDesk
AppVersion={#Version}
AppPublisher=The QwenDesk authors
DefaultDirName={localappdata}\Programs\QwenDesk
DefaultGroupName=QwenDesk
DisableProgramGroupPage=yes
PrivilegesRequired=lowest
ArchitecturesAllowed=x64compatible
ArchitecturesInstallIn64BitMode=x64compatible
MinVersion=10.0.17763
LicenseFile=..\..\LICENSE
OutputDir=..\..\dist
OutputBaseFilename=QwenDesk-{#Version}-windows-x64-setup
SetupIconFile=..\qwendesk.ico
UninstallDisplayIcon={app}\QwenDesk.exe
Compression=lzma2
SolidCompression=yes
WizardStyle=modern
ChangesAssociations=yes
CloseApplications=yes

[Tasks]
Name: desktop; Description: "Put an icon on the desktop"; Flags: unchecked
Name: gguf; Description: "Offer QwenDesk under ""Open with"" for .gguf files"

[Files]
Source: "..\..\dist\QwenDesk\*"; DestDir: "{app}"; Flags: ignoreversion recursesubdirs createallsubdirs

[InstallDelete]
; Files of an earlier version that this one does not have; never anything of the person's.
Type: filesandordirs; Name: "{app}\_internal"
Type: filesandordirs; Name: "{app}\licences"

[Icons]
Name: "{group}\QwenDesk"; Filename: "{app}\QwenDesk.exe"
Name: "{userdesktop}\QwenDesk"; Filename: "{app}\QwenDesk.exe"; Tasks: desktop

[Registry]
; "Open with" only: who opens .gguf files by a double click stays the person's choice.
Root: HKCU; Subkey: "Software\Classes\QwenDesk.gguf"; ValueType: string; ValueData: "GGUF model"; Flags: uninsdeletekey; Tasks: gguf
Root: HKCU; Subkey: "Software\Classes\QwenDesk.gguf\shell\open\command"; ValueType: string; ValueData: """{app}\QwenDesk.exe"" ""%1"""; Flags: uninsdeletekey; Tasks: gguf
Root: HKCU; Subkey: "Software\Classes\.gguf\OpenWithProgids"; ValueType: string; ValueName: "QwenDesk.gguf"; ValueData: ""; Flags: uninsdeletevalue; Tasks: gguf

[Run]
Filename: "{app}\QwenDesk.exe"; Description: "Start QwenDesk"; Flags: nowait postinstall skipifsilent

[Code]
{ What a person keeps is asked about one by one, and kept unless they say otherwise. }
procedure OfferToDelete(Folder, Question: String);
begin
  if DirExists(Folder) then
    if SuppressibleMsgBox(Question + #13#10 + Folder, mbConfirmation, MB_YESNO or MB_DEFBUTTON2, IDNO) = IDYES then
      DelTree(Folder, True, True, True);
end;

procedure CurUninstallStepChanged(Step: TUninstallStep);
var
  Data: String;
begin
  if Step = usPostUninstall then
  begin
    Data := ExpandConstant('{localappdata}\QwenDesk');
    OfferToDelete(Data + '\models', 'Delete the models that QwenDesk downloaded too?');
    OfferToDelete(Data, 'Delete your chats and settings too? What is still in this folder goes with them.');
  end;
end;
