# Included after CMake's own settings for the target system, which would put "lib" before each name.
set(CMAKE_SHARED_LIBRARY_PREFIX "")
