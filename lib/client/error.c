/* error.c - error sentences and details. */
#include "client/client.h"

static _Thread_local char open_detail[512];

const char *sleet_strerror(int error)
{
    return control_error_text(error);
}

const char *sleet_detail(const sleet *ctx)
{
    return ctx ? ctx->detail : open_detail;
}

int client_fail(sleet *ctx, int error, const char *format, ...)
{
    char *out = ctx ? ctx->detail : open_detail;
    va_list args;
    va_start(args, format);
    vsnprintf(out, sizeof open_detail, format, args);
    va_end(args);
    return error;
}
