#include "codec/codec.h"
#include <stddef.h>

static const struct codec *const codecs[] = {&codec_f32};

const struct codec *codec_by_id(uint8_t id)
{
    for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
        if (codecs[i]->id == id)
            return codecs[i];
    return NULL;
}
