"""second_state.py - published state, for second.py: "STATE" of docs/protocol.md.  It fetches the newest state
of its set that members publish, verifies it, and publishes it itself from then on."""
import ctypes
import struct
import time

from second_noise import library, xxh3_128

QUERY, INFO, WANT, DATA, NONE = range(1, 6)
BLOCK, MANIFEST, BLOB = 1, 2, 3
BLOCK_BYTES, PIECE_BYTES, AT_ONCE = 65536, 1152, 4
INFO_FORM, REFERENCE = struct.Struct("<B3xIQQQ16sQ16sI4x"), struct.Struct("<BBBBIQQ")

zstd = library("zstd")
zstd.ZSTD_decompress.restype = ctypes.c_size_t


def blocks(data):
    return [data[i:i + BLOCK_BYTES] for i in range(0, len(data), BLOCK_BYTES)]


def unzstd(data):
    out = ctypes.create_string_buffer(BLOCK_BYTES)
    n = zstd.ZSTD_decompress(out, ctypes.c_size_t(BLOCK_BYTES), data, ctypes.c_size_t(len(data)))
    if n > BLOCK_BYTES:
        raise ValueError("a block that is not zstd")
    return out.raw[:n]


class Fetch:
    """One object in blocks: the manifest, or the state itself."""

    def __init__(self, what, size, checks):
        self.what, self.sizes = what, [min(BLOCK_BYTES, size - i) for i in range(0, size, BLOCK_BYTES)]
        self.checks = checks  # low half of the digest that is expected, a block
        self.pieces = [{} for _ in self.sizes]
        self.done = [None] * len(self.sizes)
        self.asked = 0

    def missing(self, i):
        # How many there are is known once a piece says how long the block is as it is sent.
        have = self.pieces[i]
        stored = next(iter(have.values()))[1] if have else self.sizes[i]
        return sum(1 << k for k in range((stored + PIECE_BYTES - 1) // PIECE_BYTES) if k not in have)

    def take(self, i, codec, piece, stored, data):
        if self.done[i] is not None:
            return
        self.pieces[i][piece] = codec, stored, data
        if self.missing(i) == 0:
            text = b"".join(self.pieces[i][k][2] for k in sorted(self.pieces[i]))
            self.done[i] = unzstd(text) if codec else text


class State:
    def __init__(self, node):
        self.node = node
        self.version, self.data, self.manifest, self.digest = 0, b"", b"", bytes(16)
        self.target = self.donor = self.fetch = None
        self.asked = 0

    def info(self, peer):
        self.node.send(peer, 15, INFO_FORM.pack(INFO, self.node.set.hash, self.node.id, self.version, len(self.data), self.digest,
                                                0, bytes(16), 0))

    def on_state(self, peer, body):
        if not self.node.set or struct.unpack_from("<I", body, 4)[0] != self.node.set.hash:
            return
        if body[0] == QUERY:
            if len(body) == 16 and body[8:] == bytes(8):
                self.info(peer)
        elif body[0] == INFO:
            _, _, owner, version, size, digest, *_ = INFO_FORM.unpack(body)
            if owner == peer.id and version > max(self.version, self.target[0] if self.target else 0):
                self.target, self.donor = (version, size, digest), peer
                self.fetch = Fetch(MANIFEST, 16 * ((size + BLOCK_BYTES - 1) // BLOCK_BYTES), None)
        elif body[0] == WANT:
            self.serve(peer, body)
        elif body[0] == DATA and self.fetch:
            _, what, codec, piece, _, version, _ = REFERENCE.unpack_from(body)
            index, stored = struct.unpack_from("<II", body, 24)
            if (what, version) == (self.fetch.what, self.target[0]) and len(body) - 32 == min(PIECE_BYTES, stored - piece * PIECE_BYTES):
                self.fetch.take(index, codec, piece, stored, body[32:])
                self.advance()
        elif body[0] == NONE:
            self.target = self.fetch = None

    def advance(self):
        if None in self.fetch.done:
            return
        text = b"".join(self.fetch.done)
        if self.fetch.what == MANIFEST:
            if xxh3_128(text) != self.target[2]:
                raise ValueError("a wrong manifest")
            self.manifest = text
            self.fetch = Fetch(BLOCK, self.target[1], [text[i:i + 8] for i in range(0, len(text), 16)])
            return
        if b"".join(map(xxh3_128, self.fetch.done)) != self.manifest:
            raise ValueError("a wrong block")
        self.version, _, self.digest = self.target
        self.data, self.target, self.fetch = text, None, None
        print("state", self.version, xxh3_128(text[:4 * sum(c for _, c in self.node.set.tensors)]).hex(), flush=True)
        for peer in self.node.peers.values():
            self.info(peer)

    def want(self):
        fetch, entries = self.fetch, []
        for i in [i for i, text in enumerate(fetch.done) if text is None][:AT_ONCE]:
            check = fetch.checks[i] if fetch.checks else self.target[2][:8]
            entries.append(struct.pack("<I8sQ", i, check, fetch.missing(i)))
        self.node.send(self.donor, 15, REFERENCE.pack(WANT, fetch.what, len(entries), 0, self.node.set.hash, self.target[0], 0) +
                       b"".join(entries))

    def serve(self, peer, body):
        _, what, n, _, _, version, _ = REFERENCE.unpack_from(body)
        parts = blocks(self.data if what == BLOCK else self.manifest)
        for k in range(n):
            index, check, pieces = struct.unpack_from("<I8sQ", body, 24 + 20 * k)
            held = version == self.version and what != BLOB and index < len(parts)
            right = held and check == (xxh3_128(parts[index]) if what == BLOCK else self.digest)[:8]
            if not right:
                reference = REFERENCE.pack(NONE, what, 2 if held else 1, 0, self.node.set.hash, version, 0)
                self.node.send(peer, 15, reference + struct.pack("<I4x", index))
                continue
            for at in range(0, len(parts[index]), PIECE_BYTES):
                if pieces >> at // PIECE_BYTES & 1:
                    reference = REFERENCE.pack(DATA, what, 0, at // PIECE_BYTES, self.node.set.hash, version, 0)
                    self.node.send(peer, 15, reference + struct.pack("<II", index, len(parts[index])) +
                                   parts[index][at:at + PIECE_BYTES])

    def tick(self):
        now = time.monotonic()
        if not self.node.set or now < self.asked:
            return
        self.asked = now + (0.1 if self.fetch else 0.5)
        if self.fetch:
            self.want()
        elif not self.version:
            for peer in self.node.peers.values():
                self.node.send(peer, 15, struct.pack("<B3xIQ", QUERY, self.node.set.hash, 0))
