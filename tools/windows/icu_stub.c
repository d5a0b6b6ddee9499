/* A stand-in for icuuc.dll, which Windows has since release 1703 of Windows 10 and Wine does not have before 11.5.
   Qt6Core imports these functions. Here every converter is missing, so Qt uses its own for the encodings it knows. */
#include <stdint.h>

#define EXPORT __declspec(dllexport)

enum { FILE_ACCESS_ERROR = 4, UNSUPPORTED_ERROR = 16 };
typedef int ErrorCode;
typedef int8_t Bool;

static void fail(ErrorCode *error, ErrorCode code)
{
    if (error && *error <= 0)
        *error = code;
}

EXPORT void *ucnv_open(const char *name, ErrorCode *error)
{
    fail(error, FILE_ACCESS_ERROR);
    return 0;
}

EXPORT void ucnv_close(void *converter) {}
EXPORT void ucnv_reset(void *converter) {}
EXPORT int8_t ucnv_getMaxCharSize(const void *converter) { return 1; }
EXPORT int32_t ucnv_countAvailable(void) { return 0; }
EXPORT const char *ucnv_getAvailableName(int32_t index) { return 0; }

EXPORT const char *ucnv_getName(const void *converter, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
    return 0;
}

EXPORT const char *ucnv_getStandardName(const char *name, const char *standard, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
    return 0;
}

EXPORT int32_t ucnv_toUCountPending(const void *converter, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
    return 0;
}

EXPORT int32_t ucnv_fromUCountPending(const void *converter, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
    return 0;
}

EXPORT void ucnv_toUnicode(void *converter, uint16_t **target, const uint16_t *target_end, const char **source,
                           const char *source_end, int32_t *offsets, Bool flush, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}

EXPORT void ucnv_fromUnicode(void *converter, char **target, const char *target_end, const uint16_t **source,
                             const uint16_t *source_end, int32_t *offsets, Bool flush, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}

EXPORT void ucnv_getToUCallBack(const void *converter, void **action, const void **context)
{
    if (action)
        *action = 0;
    if (context)
        *context = 0;
}

EXPORT void ucnv_setToUCallBack(void *converter, void *action, const void *context, void **old_action,
                                const void **old_context, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}

EXPORT void ucnv_setFromUCallBack(void *converter, void *action, const void *context, void **old_action,
                                  const void **old_context, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}

EXPORT void ucnv_cbToUWriteUChars(void *arguments, const uint16_t *source, int32_t length, int32_t offset,
                                  ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}

EXPORT void ucnv_cbFromUWriteUChars(void *arguments, const uint16_t **source, const uint16_t *source_end,
                                    int32_t offset, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}

EXPORT void UCNV_TO_U_CALLBACK_SUBSTITUTE(const void *context, void *arguments, const char *units, int32_t length,
                                          int reason, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}

EXPORT void UCNV_FROM_U_CALLBACK_SUBSTITUTE(const void *context, void *arguments, const uint16_t *units,
                                            int32_t length, int32_t code_point, int reason, ErrorCode *error)
{
    fail(error, UNSUPPORTED_ERROR);
}
