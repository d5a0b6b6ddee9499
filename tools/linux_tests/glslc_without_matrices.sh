#!/bin/sh
# glslc for the build of the Vulkan engine. The build tries each extension with a small shader, and looks for glslc's
# "extension not supported" with its name. Mesa's software driver has no cooperative matrices, so the shaders that use
# them are left out: that saves most of the build's time.
for argument in "$@"; do
    case "$argument" in
        */feature-tests/coopmat*.comp)
            for name in GL_KHR_cooperative_matrix GL_NV_cooperative_matrix2 GL_NV_cooperative_matrix_decode_vector; do
                echo "error: extension not supported: $name" >&2
            done
            exit 1
            ;;
    esac
done
exec glslc "$@"
