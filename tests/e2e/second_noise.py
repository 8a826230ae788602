"""second_noise.py - the curve, the cipher, the hashes and Noise, for second.py.

Noise revision 34 as far as docs/protocol.md uses it; libsodium and libxxhash through ctypes."""
import ctypes
import ctypes.util
import hashlib
import hmac
import secrets
import struct
import sys
import time

IK, XX = 1, 2


def now_us():
    return time.monotonic_ns() // 1000


# ---- the curve, the cipher and the hashes ------------------------------------------------

def library(name):
    path = ctypes.util.find_library(name)
    if not path:
        sys.exit(f"lib{name} is not installed")
    return ctypes.CDLL(path)


sodium, xxhash = library("sodium"), library("xxhash")
xxhash.XXH3_64bits.restype = ctypes.c_uint64
xxhash.XXH3_64bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


class Half(ctypes.Structure):
    _fields_ = [("low", ctypes.c_uint64), ("high", ctypes.c_uint64)]


xxhash.XXH3_128bits.restype = Half
xxhash.XXH3_128bits.argtypes = [ctypes.c_char_p, ctypes.c_size_t]


def xxh3_128(data):
    """Low half first."""
    digest = xxhash.XXH3_128bits(data, len(data))
    return struct.pack("<QQ", digest.low, digest.high)


def xxh3(data):
    return xxhash.XXH3_64bits(data, len(data))


def blake2b(size, data, key=b""):
    return hashlib.blake2b(data, digest_size=size, key=key).digest()


def dh(secret, public):
    out = ctypes.create_string_buffer(32)
    if sodium.crypto_scalarmult(out, secret, public):
        raise ValueError("a point of low order")
    return out.raw


def public_of(secret):
    return dh(secret, b"\x09" + bytes(31))


def signed(public, signature, text):
    """ed25519 (RFC 8032)."""
    return sodium.crypto_sign_verify_detached(signature, text, ctypes.c_ulonglong(len(text)), public) == 0


def seal(key, counter, ad, text):
    out = ctypes.create_string_buffer(len(text) + 16)
    sodium.crypto_aead_chacha20poly1305_ietf_encrypt(
        out, None, text, ctypes.c_ulonglong(len(text)), ad, ctypes.c_ulonglong(len(ad)), None,
        struct.pack("<IQ", 0, counter), key)
    return out.raw


def unseal(key, counter, ad, data):
    out = ctypes.create_string_buffer(max(len(data) - 16, 1))
    if sodium.crypto_aead_chacha20poly1305_ietf_decrypt(
            out, None, None, data, ctypes.c_ulonglong(len(data)), ad, ctypes.c_ulonglong(len(ad)),
            struct.pack("<IQ", 0, counter), key):
        raise ValueError("wrong tag")
    return out.raw[:len(data) - 16]


# ---- Noise, revision 34 ------------------------------------------------------------------

class Noise:
    """One handshake: write() and read() take the pattern's messages in turn."""
    TOKENS = {IK: ("IKpsk2", ("e es s ss", "e ee se psk")), XX: ("XXpsk3", ("e", "e ee s es", "s se psk"))}

    def __init__(self, pattern, initiator, prologue, psk, secret, remote=b""):
        name, messages = self.TOKENS[pattern]
        self.pattern = name[:2]
        self.messages = [m.split() for m in messages]
        self.initiator, self.psk, self.s, self.rs = initiator, psk, secret, remote
        self.h = self.ck = f"Noise_{name}_25519_ChaChaPoly_BLAKE2b".encode().ljust(64, b"\0")
        self.mix_hash(prologue)
        if pattern == IK:
            self.mix_hash(remote if initiator else public_of(secret))

    def mix_hash(self, data):
        self.h = blake2b(64, self.h + data)

    def hkdf(self, material, outputs):
        temp, out = hmac.digest(self.ck, material, "blake2b"), [b""]
        for i in range(outputs):
            out.append(hmac.digest(temp, out[-1] + bytes([i + 1]), "blake2b"))
        return out[1:]

    def mix_key(self, material):
        self.ck, k = self.hkdf(material, 2)
        self.k, self.n = k[:32], 0

    def encrypt(self, text):
        out = seal(self.k, self.n, self.h, text)
        self.n += 1
        self.mix_hash(out)
        return out

    def decrypt(self, data):
        out = unseal(self.k, self.n, self.h, data)
        self.n += 1
        self.mix_hash(data)
        return out

    def common(self, token):
        if token == "psk":
            self.ck, mixed, k = self.hkdf(self.psk, 3)
            self.mix_hash(mixed)
            self.k, self.n = k[:32], 0
        else:
            mine, theirs = token if self.initiator else token[::-1]
            self.mix_key(dh(getattr(self, mine), getattr(self, "r" + theirs)))

    def write(self, payload):
        out = b""
        for token in self.messages.pop(0):
            if token == "e":
                self.e = secrets.token_bytes(32)
                public = public_of(self.e)
                self.mix_hash(public)
                self.mix_key(public)  # as in all patterns with a pre-shared key
                out += public
            elif token == "s":
                out += self.encrypt(public_of(self.s))
            else:
                self.common(token)
        return out + self.encrypt(payload)

    def read(self, data):
        for token in self.messages.pop(0):
            if token == "e":
                self.re, data = data[:32], data[32:]
                self.mix_hash(self.re)
                self.mix_key(self.re)
            elif token == "s":
                self.rs, data = self.decrypt(data[:48]), data[48:]
            else:
                self.common(token)
        return self.decrypt(data)

    def split(self):
        """The keys to send and to receive with."""
        first, second = (k[:32] for k in self.hkdf(b"", 2))
        return (first, second) if self.initiator else (second, first)


class Handshake:
    """A handshake under way; when it has ended, one pair of keys."""

    def __init__(self, noise, index, address):
        self.noise, self.index, self.address = noise, index, address
        self.peer_index = self.peer_boot = 0
        self.send_key = self.receive_key = None
        self.hello = self.answer = b""
        self.born = self.next = time.monotonic()
        self.gap, self.sealed_came = 0.1, False

    def ended(self):
        self.made = time.monotonic()
        self.send_key, self.receive_key = self.noise.split()
