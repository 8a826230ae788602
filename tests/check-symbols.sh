#!/bin/bash
# The core library needs nothing but memory, strings, arithmetic, XXH, zstd, ISA-L and those parts of
# libsodium that draw no randomness: no
# socket, clock, file, thread, environment, printf or libc-random symbol.
# What it may need is listed here, so anything new is a fault until it is added.
# (__assert_fail is the C library's own way to abort in a debug build.)
#   check-symbols.sh [LIBRARY]
set -u
library=${1:-./libsleetcore.a}
[ -r "$library" ] || { echo "check-symbols: no $library"; exit 1; }

allowed='
mem(cpy|move|set|cmp|chr)
str(n?len|n?cmp|chr|rchr|n?cpy)
malloc|calloc|realloc|free|qsort|bsearch|abort
(fabs|sqrt|exp|exp2|expm1|log|log2|log1p|pow|floor|ceil|trunc|round|l?lrint|l?lround|rint|fmin|fmax|ldexp|frexp|fma|sin|cos)f?
XXH[0-9]*_[A-Za-z0-9_]+
ZSTD_(compressCCtx|createCCtx|freeCCtx|decompress|isError)
ec_init_tables|ec_encode_data(_update)?|gf_inv|gf_invert_matrix
crypto_aead_(chacha20poly1305_ietf|aes256gcm)_(encrypt|decrypt|beforenm|is_available)[a-z_]*
crypto_generichash_blake2b(_init|_update|_final|_salt_personal)?
crypto_scalarmult_curve25519(_base)?
crypto_sign(_seed_keypair|(_ed25519)?(_verify)?_detached|_ed25519_seed_keypair)
crypto_stream_chacha20_ietf(_xor(_ic)?)?
sodium_(memzero|memcmp|is_zero)
__assert_fail|__(popcount|clz|ctz|parity)[a-z]*2
__stack_chk_fail|__(mem(cpy|move|set)|strn?cpy)_chk|_GLOBAL_OFFSET_TABLE_
__(asan|ubsan|sanitizer|lsan|gcov|llvm)_[A-Za-z0-9_]+
'
pattern=$(echo "$allowed" | sed '/^$/d' | paste -sd'|')

defined=$(nm --defined-only -g "$library" 2>/dev/null | awk 'NF == 3 { print $3 }' | sort -u)
needed=$(nm -u "$library" 2>/dev/null | awk 'NF >= 2 { print $NF }' | sed 's/@.*//' | sort -u)
[ -n "$defined" ] || { echo "check-symbols: nm shows no symbol in $library"; exit 1; }

bad=$(comm -23 <(echo "$needed") <(echo "$defined") | grep -Evx "$pattern" | sed '/^$/d')
for symbol in $bad; do
    echo "check-symbols: needs $symbol: $(nm -A -u "$library" | awk -v s="$symbol" '$NF == s { print $1 }' |
        sed 's/:$//; s/.*://' | sort -u | paste -sd' ')"
done
echo "check-symbols: $(echo "$needed" | grep -c .) needed, $(echo "$bad" | grep -c .) not allowed"
[ -z "$bad" ]
