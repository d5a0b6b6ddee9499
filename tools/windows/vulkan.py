"""What the Vulkan engine needs for Windows beside the compiler: headers, an import library, the compiler of shaders."""

from tools.windows.folders import ENGINE, inside

_FOLDER = f"{inside(ENGINE)}/vulkan"
_LIBRARY = "libvulkan-1.a"
FLAGS = (
    f"-DVulkan_INCLUDE_DIR={_FOLDER}/include",
    f"-DVulkan_LIBRARY={_FOLDER}/{_LIBRARY}",
    "-DVulkan_GLSLC_EXECUTABLE=/usr/bin/glslc",
    "-DSPIRV-Headers_DIR=/usr/share/cmake/SPIRV-Headers",
)
"""For CMake, which looks for Windows' own files in a folder that has none of Vulkan."""

PREPARE = f"""
rm -rf {_FOLDER}
mkdir -p {_FOLDER}/include
cp -rp /usr/include/vulkan /usr/include/vk_video /usr/include/spirv {_FOLDER}/include/
exported=$(nm --dynamic --defined-only /usr/lib/x86_64-linux-gnu/libvulkan.so.1 | grep -o ' vk[A-Za-z0-9]*')
printf '%s\\n' 'LIBRARY vulkan-1.dll' EXPORTS $exported > {_FOLDER}/vulkan-1.def
x86_64-w64-mingw32ucrt-dlltool --input-def {_FOLDER}/vulkan-1.def --output-lib {_FOLDER}/{_LIBRARY}
""".strip()
"""Bash lines. The headers are copied, because beside them lie Linux' own, which a compiler for Windows must not see.

The import library names what vulkan-1.dll has. The loader for Linux is made from the same source, so its list is read.
"""
