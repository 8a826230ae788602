#!/usr/bin/env python3
"""second.py - a second implementation of docs/protocol.md, as far as two nodes need it.

Written from that page and the standards it names alone: what this program cannot learn there is
missing there.  Sealed sessions in both roles and both patterns, PING, SCHEMA, MEMBERS, rounds.
Each event is one line on stdout.  Needs libsodium (the curve and the cipher) and libxxhash."""
import argparse
import ctypes
import ctypes.util
import hashlib
import hmac
import os
import secrets
import select
import socket
import struct
import sys
import time

HELLO, HELLO_ACK, SCHEMA, SCHEMA_ACK, PING, DATA, SUMMARY, GROUP_REQ, GROUP, CLOSE, HELLO_DONE, COOKIE, MEMBERS = range(1, 14)
IK, XX = 1, 2
ELEMENTS, WIRE, CHACHA = 288, 1, 2


def say(*words):
    print(*words, flush=True)


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


# ---- sessions ----------------------------------------------------------------------------

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
        self.send_key, self.receive_key = self.noise.split()


class Peer:
    """A session with another node: it outlives its pairs of keys."""

    def __init__(self, public):
        self.public, self.id = public, node_id(public)
        self.counter = self.highest = self.echo = self.echo_at = self.boot = 0
        self.seen = set()
        self.pair = None  # that is sent with
        self.heard = time.monotonic()
        self.next_ping, self.rtt_said = 0, False
        self.sets = {}


def node_id(public):
    return struct.unpack("<Q", blake2b(32, public)[:8])[0]


class Node:
    def __init__(self, options):
        self.options = options
        self.job_key, self.secret = options.job_key, options.node_key
        self.public = public_of(self.secret)
        self.id = node_id(self.public)
        self.k1 = blake2b(32, b"sleet handshake", self.job_key)
        self.job = options.job.encode().ljust(64, b"\0")
        name_key = blake2b(32, b"sleet job name", self.job_key)
        self.job_tag = blake2b(16, options.job.encode(), name_key)[:8]
        self.boot = secrets.randbits(63) | 1
        self.handshakes = {}  # by our index
        self.peers = {}       # by node id
        self.dialled = {}     # by address: our handshake, until it is a session
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", options.port))

    # -- datagrams out

    def header(self, kind, index, counter):
        return struct.pack("<BBHIQ", WIRE << 4 | kind, 0, 0, index, counter)

    def send_handshake(self, kind, index, body, address):
        data = self.header(kind, index, secrets.randbits(62) | 1) + body
        self.socket.sendto(data + blake2b(16, data, self.k1), address)

    def send(self, peer, kind, body):
        if not peer.pair:
            return
        peer.counter += 1
        head = self.header(kind, peer.pair.peer_index, peer.counter)
        self.socket.sendto(head + seal(peer.pair.send_key, peer.counter, head, body), peer.pair.address)

    def ident(self, index):
        return struct.pack("<IB3xQQ", index, CHACHA, self.boot, time.time_ns())

    # -- handshakes

    def prologue(self, head):
        return b"sleet" + bytes([WIRE]) + head + self.job

    def begin(self, address, public=None):
        """A HELLO to whom is not known (XX), or to who has this key (IK)."""
        pattern, index = (IK if public else XX), secrets.randbits(31) | 1
        head = struct.pack("<BBHI", pattern, 0, ELEMENTS, index) + self.job_tag
        noise = Noise(pattern, True, self.prologue(head), self.job_key, self.secret, public)
        hand = Handshake(noise, index, address)
        message = noise.write(self.ident(index) if pattern == IK else b"")
        hand.hello = head + message.ljust(120, b"\0") + bytes(16)
        self.handshakes[index] = self.dialled[address] = hand

    def read_ident(self, hand, ident):
        hand.peer_index, ciphers, hand.peer_boot, _ = struct.unpack("<IB3xQQ", ident)
        if not (hand.peer_index and ciphers & CHACHA and hand.peer_boot):
            raise ValueError("an ident out of bounds")

    def on_hello(self, body, address):
        pattern, zero, elements, index, tag = struct.unpack_from("<BBHI8s", body)
        if len(body) != 152 or pattern not in (IK, XX) or zero or not index:
            raise ValueError("a HELLO out of bounds")
        reason = 3 if tag != self.job_tag else 4 if elements != ELEMENTS else 0
        if reason:
            return self.send_handshake(CLOSE, index, struct.pack("<BBH", reason, WIRE, ELEMENTS), address)
        for hand in self.handshakes.values():
            if hand.answer and hand.hello == body and time.monotonic() < hand.born + 10:
                return self.send_handshake(HELLO_ACK, index, hand.answer, address)
        noise = Noise(pattern, False, self.prologue(body[:16]), self.job_key, self.secret)
        hand = Handshake(noise, secrets.randbits(31) | 1, address)
        hand.hello, hand.peer_index = body, index
        if pattern == IK:
            self.read_ident(hand, noise.read(body[16:136]))
        else:
            noise.read(body[16:64])
        hand.answer = bytes([pattern, 0, 0, 0]) + noise.write(self.ident(hand.index))
        self.handshakes[hand.index] = hand
        if pattern == IK:
            hand.ended()  # sent with once something sealed has come
        self.send_handshake(HELLO_ACK, index, hand.answer, address)

    def on_hello_ack(self, hand, body, address):
        if hand.send_key or not hand.hello or hand.answer:
            return
        self.read_ident(hand, hand.noise.read(body[4:]))
        if body[0] == XX:
            hand.answer = hand.noise.write(self.ident(hand.index))
        hand.ended()
        hand.address, hand.gap = address, 0.1
        if hand.answer:
            self.send_handshake(HELLO_DONE, hand.peer_index, hand.answer, address)
        hand.hello, hand.next = b"", time.monotonic() + hand.gap
        self.adopt(hand)

    def on_hello_done(self, hand, body):
        if not hand.send_key and hand.answer:
            self.read_ident(hand, hand.noise.read(body))
            hand.ended()

    def on_cookie(self, hand, body):
        if hand.hello:
            hand.hello = hand.hello[:136] + blake2b(16, hand.hello[:136], body)
            self.send_handshake(HELLO, 0, hand.hello, hand.address)

    def adopt(self, hand):
        """The pair of a handshake that has ended is the one to send with from now on."""
        peer = self.peers.setdefault(node_id(hand.noise.rs), Peer(hand.noise.rs))
        if peer.boot != hand.peer_boot:
            peer.boot, peer.highest, peer.seen, peer.sets = hand.peer_boot, 0, set(), {}
            say(f"session {peer.id} {'initiator' if hand.noise.initiator else 'responder'} {hand.noise.pattern}")
        peer.pair = hand
        hand.peer = peer
        self.ping(peer, True)

    # -- PING

    def ping(self, peer, ask=False):
        hold = now_us() - peer.echo_at if peer.echo else 0
        sets = self.told_sets()
        self.send(peer, PING, struct.pack("<IIIIBBH", now_us() & 0xffffffff or 1, peer.echo, hold, 0, ask, len(sets), 0) +
                  b"".join(sets))
        peer.next_ping = time.monotonic() + 1

    def told_sets(self):
        return []

    def on_ping(self, peer, body):
        stamp, echo, hold, overflow, flags, n, zero = struct.unpack_from("<IIIIBBH", body)
        if len(body) != 20 + 48 * n or n > 8 or zero or flags > 1:
            raise ValueError("a PING out of bounds")
        if echo and not peer.rtt_said:
            peer.rtt_said = True
            say(f"ping {peer.id} rtt_us {(now_us() - echo - hold) & 0xffffffff}")
        peer.echo, peer.echo_at = stamp, now_us()
        if flags:
            self.ping(peer)

    # -- datagrams in

    def receive(self, data, address):
        version, _, zero, index, counter = struct.unpack_from("<BBHIQ", data)
        kind = version & 15
        if version >> 4 != WIRE or len(data) < 32 or zero or not counter:
            raise ValueError("a header out of bounds")
        hand = self.handshakes.get(index)
        if kind in (HELLO, HELLO_ACK, HELLO_DONE, COOKIE) or (kind == CLOSE and hand and not hand.send_key):
            if blake2b(16, data[:-16], self.k1) != data[-16:]:
                raise ValueError("a wrong MAC")
            body = data[16:-16]
            if kind == HELLO:
                return self.on_hello(body, address)
            if kind == CLOSE:
                return say("refused, reason", body[0])
            if hand:
                {HELLO_ACK: lambda: self.on_hello_ack(hand, body, address), HELLO_DONE: lambda: self.on_hello_done(hand, body),
                 COOKIE: lambda: self.on_cookie(hand, body)}[kind]()
            return
        if not hand or not hand.send_key:
            return
        body = unseal(hand.receive_key, counter, data[:16], data[16:])
        peer = getattr(hand, "peer", None)
        if not hand.sealed_came:
            hand.sealed_came = True
            if not peer:
                self.adopt(hand)
                peer = hand.peer
        if counter in peer.seen or counter + 8192 <= peer.highest:
            return
        peer.seen.add(counter)
        peer.highest, peer.heard = max(peer.highest, counter), time.monotonic()
        self.FRAMES.get(kind, lambda *_: None)(self, peer, body)

    FRAMES = {PING: on_ping}

    # -- timers

    def tick(self):
        now = time.monotonic()
        for hand in list(self.handshakes.values()):
            if hand.noise.initiator and now >= hand.next and not hand.sealed_came:
                if hand.hello:
                    self.send_handshake(HELLO, 0, hand.hello, hand.address)
                elif hand.answer:
                    self.send_handshake(HELLO_DONE, hand.peer_index, hand.answer, hand.address)
                if hand.send_key:
                    self.ping(hand.peer, True)
                hand.next, hand.gap = now + hand.gap, min(hand.gap * 2, 2)
        for peer in self.peers.values():
            if now >= peer.next_ping:
                self.ping(peer, True)

    def run(self, until):
        while time.monotonic() < until:
            self.tick()
            if select.select([self.socket], [], [], 0.01)[0]:
                data, address = self.socket.recvfrom(2048)
                try:
                    self.receive(data, address)
                except (ValueError, struct.error) as error:
                    say("dropped:", error)


def key_of(path):
    with open(path, encoding="ascii") as file:
        return bytes.fromhex(file.read().split()[1])


def main():
    if sys.argv[1:] == ["--check"]:
        return
    parse = argparse.ArgumentParser()
    parse.add_argument("--job-key", type=key_of, required=True)
    parse.add_argument("--node-key", type=key_of, required=True)
    parse.add_argument("--job", default="sleet")
    parse.add_argument("--port", type=int, default=0)
    parse.add_argument("--peer", help="HOST:PORT to begin with")
    parse.add_argument("--public", help="the peer's static key, as hex digits: IK in place of XX")
    parse.add_argument("--seconds", type=float, default=10)
    options = parse.parse_args()
    node = Node(options)
    say(f"second node={node.id} port={node.socket.getsockname()[1]} pid={os.getpid()}")
    if options.peer:
        host, port = options.peer.rsplit(":", 1)
        node.begin((host, int(port)), bytes.fromhex(options.public) if options.public else None)
    node.run(time.monotonic() + options.seconds)


if __name__ == "__main__":
    main()
