#include "codec/codec.h"
#include <stddef.h>

static const struct codec *const codecs[] = {
    &codec_f32,    &codec_bf16, &codec_f16,  &codec_i8,   &codec_trunc1, &codec_trunc2,
    &codec_trunc3, &codec_rot1, &codec_rot2, &codec_rot3, &codec_rot4,   &codec_topk,
};

const struct codec *codec_by_id(uint8_t id)
{
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
        if (codecs[i]->id == id)
            return codecs[i];
    return NULL;
}
