/* A stand-in for mscms.dll, Windows' colour management. Qt 6.12 reads each screen's profile with these functions, and
   Wine 10 ends the program at the last one. Here no screen has a profile. */
#include <windows.h>

#define EXPORT __declspec(dllexport)

EXPORT void *WINAPI OpenColorProfileW(void *profile, DWORD access, DWORD sharing, DWORD creation) { return 0; }
EXPORT BOOL WINAPI CloseColorProfile(void *profile) { return TRUE; }
EXPORT BOOL WINAPI GetColorProfileFromHandle(void *profile, BYTE *content, DWORD *n_bytes) { return FALSE; }
EXPORT void *WINAPI WcsCreateIccProfile(void *profile, DWORD options) { return 0; }
