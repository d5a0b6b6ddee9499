; Inno Setup 6: the installer for Windows, per user, without administrator rights.
; Built by the release workflow: iscc /DVersion=1.2.3 packaging\windows\qwendesk.iss

#ifndef Version
  #error Give the version: /DVersion=1.2.3
#endif
; Better is smaller and slower: the trial of an update makes its older version with /DCompression=zip/1.
#ifndef Compression
  #define Compression "lzma2"
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
; Windows tells what a processor can do (IsProcessorFeaturePresent) since this release, 2004.
MinVersion=10.0.19041
LicenseFile=..\..\LICENSE
OutputDir=..\..\dist
OutputBaseFilename=QwenDesk-{#Version}-windows-x64-setup
SetupIconFile=..\qwendesk.ico
UninstallDisplayIcon={app}\QwenDesk.exe
Compression={#Compression}
SolidCompression=yes
WizardStyle=modern
ChangesAssociations=yes
; A person is asked to close a running app first (below); a silent update closes it.
CloseApplications=force

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
{ The app makes this mutex at its start: qwendesk/app/window/single_instance.py. Returns False if the user cancels. }
function IsClosed: Boolean;
begin
  Result := True;
  while Result and CheckForMutexes('QwenDeskRunning') do
    Result := SuppressibleMsgBox('QwenDesk is running. Close it, then choose OK.',
      mbError, MB_OKCANCEL, IDCANCEL) = IDOK;
end;

function InitializeSetup: Boolean;
begin
  Result := True;
  if not WizardSilent then
    Result := IsClosed;
end;

function InitializeUninstall: Boolean;
begin
  if UninstallSilent then
    Result := not CheckForMutexes('QwenDeskRunning')
  else
    Result := IsClosed;
end;

{ What a person keeps is asked about one by one, and kept unless they say otherwise. }
function MayDelete(Folder, Question: String): Boolean;
begin
  Result := False;
  if DirExists(Folder) then
    Result := SuppressibleMsgBox(Question + #13#10 + Folder, mbConfirmation, MB_YESNO or MB_DEFBUTTON2, IDNO) = IDYES;
end;

procedure DeleteAllButModels(Folder: String);
var
  Entry: TFindRec;
  IsFolder: Boolean;
begin
  if not FindFirst(Folder + '\*', Entry) then
    Exit;
  try
    repeat
      IsFolder := (Entry.Attributes and FILE_ATTRIBUTE_DIRECTORY) <> 0;
      if (Entry.Name <> '.') and (Entry.Name <> '..') and (CompareText(Entry.Name, 'models') <> 0) then
        DelTree(Folder + '\' + Entry.Name, IsFolder, True, True);
    until not FindNext(Entry);
  finally
    FindClose(Entry);
  end;
  RemoveDir(Folder);
end;

procedure CurUninstallStepChanged(Step: TUninstallStep);
var
  Data: String;
begin
  if (Step <> usPostUninstall) or UninstallSilent then
    Exit;
  Data := ExpandConstant('{localappdata}\QwenDesk');
  if MayDelete(Data + '\models', 'Delete the models that QwenDesk downloaded too?') then
    DelTree(Data + '\models', True, True, True);
  if MayDelete(Data, 'Delete your chats and settings too?') then
    DeleteAllButModels(Data);
end;
