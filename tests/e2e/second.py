#!/usr/bin/env python3
"""second.py - a second implementation of docs/protocol.md, as far as a few nodes need it.

Written from that page and the standards it names: what this program cannot learn there is
missing there.  Sealed sessions in both roles and both patterns, PING, NOTICE; second_noise.py has the
handshakes' arithmetic, second_members.py MEMBERS, second_set.py and second_round.py rounds,
second_state.py STATE.  Each event is one line on stdout."""
import argparse
import math
import os
import random
import secrets
import select
import socket
import struct
import sys
import time

from second_members import Members
from second_noise import IK, XX, Handshake, Noise, blake2b, now_us, public_of, seal, signed, unseal
from second_set import Said, Set
from second_state import State

HELLO, HELLO_ACK, SCHEMA, SCHEMA_ACK, PING, DATA, SUMMARY, GROUP_REQ, GROUP, CLOSE, HELLO_DONE, COOKIE, MEMBERS = range(1, 14)
NOTICE, STATE = 14, 15
ELEMENTS, WIRE, CHACHA = 288, 1, 2
SILENT = 2.5  # seconds


def say(*words):
    print(*words, flush=True)


# ---- sessions ----------------------------------------------------------------------------

class Peer:
    """A session with another node: it outlives its pairs of keys."""

    def __init__(self, public, identity=0):
        self.public, self.id = public, identity or node_id(public)
        self.counter = self.highest = self.echo = self.echo_at = self.boot = self.stamp = 0
        self.seen = set()
        self.pair = None  # that is sent with
        self.heard = time.monotonic()
        self.next_ping, self.rtt_said, self.agrees = 0, False, None
        self.sets = {}


def node_id(public):
    return struct.unpack("<Q", blake2b(32, public)[:8])[0]


class Node:
    def __init__(self, options):
        self.options = options
        self.secret, self.job = options.node_key, options.job.encode().ljust(64, b"\0")
        self.public = public_of(self.secret)
        self.id = options.id or node_id(self.public)
        self.use(options.job_key)
        self.boot = secrets.randbits(63) | 1
        self.handshakes = {}  # by our index
        self.peers = {}       # by node id
        self.dialled = {}     # by address: our handshake, until it is a session
        self.set, self.random, self.members = None, random.Random(1), Members(self)
        self.state = State(self)
        self.rekey_at, self.roam_at = time.monotonic() + options.rekey, time.monotonic() + options.roam
        self.bind(options.port)

    def use(self, job_key):
        self.job_key, self.k1 = job_key, blake2b(32, b"sleet handshake", job_key)
        self.job_tag = blake2b(16, self.options.job.encode(), blake2b(32, b"sleet job name", job_key))[:8]

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
        hand.peer_index, ciphers, hand.peer_boot, hand.stamp = struct.unpack("<IB3xQQ", ident)
        if not (hand.peer_index and ciphers & CHACHA and hand.peer_boot):
            raise ValueError("an ident out of bounds")

    def on_hello(self, body, address):
        pattern, zero, elements, index, tag = struct.unpack_from("<BBHI8s", body)
        if self.options.cross and address not in self.dialled:
            self.begin(address)
            self.tick()  # before the answer
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
            peer = self.peers.get(node_id(noise.rs))
            if hand.peer_index != index or peer and peer.boot == hand.peer_boot and hand.stamp <= peer.stamp:
                raise ValueError("a HELLO of before")
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
        self.use_pair(self.peers.setdefault(node_id(hand.noise.rs), Peer(hand.noise.rs)), hand)

    def use_pair(self, peer, hand):
        new, old = hand, peer.pair
        if old and peer.boot == hand.peer_boot and old.noise.initiator != new.noise.initiator and \
                new.made < old.made + 10 and new.noise.h < old.noise.h:
            new = old  # both began at once: both keep the pair of the higher hash
        if peer.boot != hand.peer_boot:
            peer.boot, peer.highest, peer.seen, peer.sets, peer.stamp = hand.peer_boot, 0, set(), {}, 0
            say(f"session {peer.id} {'initiator' if hand.noise.initiator else 'responder'} {hand.noise.pattern}")
        peer.pair, hand.peer, peer.stamp = new, peer, max(peer.stamp, hand.stamp)
        self.members.met(peer, hand.address)
        say(f"keys {peer.id} {'initiator' if hand.noise.initiator else 'responder'}")
        self.ping(peer, True)

    # -- PING, SCHEMA

    def reachable(self, peer):
        return peer.pair is not None and time.monotonic() < peer.heard + SILENT

    def echo_of(self, peer):
        return peer.echo, now_us() - peer.echo_at if peer.echo else 0

    def ping(self, peer, ask=False):
        entries = [self.set.ping_entry()] if self.set else []
        self.send(peer, PING, struct.pack("<IIIIBBH", now_us() & 0xffffffff or 1, *self.echo_of(peer), 0, ask, len(entries), 0) +
                  b"".join(entries))
        if ask:
            peer.next_ping = time.monotonic() + 1

    def announce(self):
        for peer in self.peers.values():
            self.ping(peer)

    def on_ping(self, peer, body):
        stamp, echo, hold, _, flags, n, zero = struct.unpack_from("<IIIIBBH", body)
        if n > 8 or zero or flags > 1:
            raise ValueError("a PING out of bounds")
        if echo and not peer.rtt_said:
            peer.rtt_said = True
            say(f"ping {peer.id} rtt_us {(now_us() - echo - hold) & 0xffffffff}")
        peer.echo, peer.echo_at, peer.sets = stamp, now_us(), {}
        at = 20
        for _ in range(n):
            name, flag, more, zero, *said = struct.unpack_from("<IBBHQQQQQ", body, at)
            said.insert(0, flag)
            at += 48
            if zero or more > 1:
                raise ValueError("a PING out of bounds")
            if said[0] & 128:  # a sketch of its values
                said[0] &= 127
                numbers = struct.unpack_from("<IIQ9fI", body, at)
                if numbers[-1] or not all(map(math.isfinite, numbers[3:12])) or numbers[3] < 0:
                    raise ValueError("a sketch out of bounds")
                at += 56
            if more:  # another strategy, which is not for this node: it averages by rps alone
                since, by, version, to, _, _, before, _, _, zero = struct.unpack_from("<QQIBHHBHHH", body, at)
                if since >> 63 or zero or not (by and version and to and before):
                    raise ValueError("a switch out of bounds")
                at += 32
            peer.sets[name] = Said(*said)
        if len(body) != at:
            raise ValueError("a PING out of bounds")
        if self.set and n and self.set.hash not in peer.sets:
            self.set.offer(peer, 0)
        if flags:
            self.ping(peer)

    def on_schema(self, peer, body):
        if self.set:
            self.set.on_schema(peer, body)
        else:
            self.send(peer, SCHEMA_ACK, body[:4] + bytes(13))

    # -- NOTICE

    def on_notice(self, peer, body):
        """An operator's record is answered, and done; it is not passed on."""
        if body[0] != 1:
            return
        tag = blake2b(32, b"sleet job\0" + self.options.job.encode() + b"\0")[:8]
        good = len(body) == 136 and self.options.operator and body[32:40] == tag and \
            signed(self.options.operator, body[72:], b"sleet notice 1\0\0" + body[8:72])
        self.send(peer, NOTICE, bytes([2 if good else 3]) + body[1:32])
        serial, subject = struct.unpack_from("<QQ", body, 16)
        if good and body[8] == 2 and body[40:72] != self.job_key:
            self.use(body[40:72])
        say("notice", "taken" if good else "refused", body[8], serial, subject)

    # -- datagrams in

    def receive(self, data, address):
        version, _, zero, index, counter = struct.unpack_from("<BBHIQ", data)
        kind = version & 15
        if version >> 4 != WIRE or len(data) < 32 or zero or not counter:
            raise ValueError("a header out of bounds")
        hand = self.handshakes.get(index)
        right = blake2b(16, data[:-16], self.k1) == data[-16:]
        if kind in (HELLO, HELLO_ACK, HELLO_DONE, COOKIE) or (kind == CLOSE and right):
            if not right:
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
        self.accept(hand, kind, counter, unseal(hand.receive_key, counter, data[:16], data[16:]))

    def accept(self, hand, kind, counter, body):
        """What is intact, of a session."""
        peer = getattr(hand, "peer", None)
        if not hand.sealed_came:
            hand.sealed_came = True
            if not peer:
                self.adopt(hand)
                peer = hand.peer
        if counter in peer.seen or counter + 8192 <= peer.highest:
            return
        if peer.agrees != (hand is peer.pair):
            peer.agrees = hand is peer.pair
            say("comes with the pair that is sent with" if peer.agrees else "comes with another pair")
        peer.seen.add(counter)
        peer.highest, peer.heard = max(peer.highest, counter), time.monotonic()
        self.FRAMES.get(kind, lambda *_: None)(self, peer, body)

    def on_close(self, peer, body):
        say(f"closed {peer.id} reason {body[0]}")
        peer.pair = None

    def on_members(self, peer, body):
        self.members.on_members(peer, body)

    def on_state(self, peer, body):
        self.state.on_state(peer, body)

    def of_set(method):
        """A frame that begins with our set's hash, or is of a tensor of it."""
        def take(self, peer, body):
            if self.set:
                getattr(self.set, method)(peer, body)
        return take

    FRAMES = {PING: on_ping, MEMBERS: on_members, STATE: on_state, NOTICE: on_notice,
              SCHEMA: on_schema, SCHEMA_ACK: of_set("on_schema_ack"), CLOSE: on_close, DATA: of_set("on_data"),
              SUMMARY: of_set("on_summary"), GROUP_REQ: of_set("on_group_request"), GROUP: of_set("on_group")}

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
        for index, hand in list(self.handshakes.items()):
            peer = getattr(hand, "peer", None)
            if peer and hand is not peer.pair and now >= hand.made + 30:
                del self.handshakes[index]
        if now >= self.rekey_at:
            self.rekey_at = now + self.options.rekey
            for peer in self.peers.values():
                self.begin(peer.pair.address, peer.public)
        if now >= self.roam_at:
            self.roam_at = now + self.options.roam
            self.bind(0)
            say(f"moved to {self.socket.getsockname()[1]}")
        self.members.tick()
        self.state.tick()
        if self.set:
            self.set.tick()

    def bind(self, port):
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 21)
        self.socket.bind(("127.0.0.1", port))

    def run(self, until):
        while time.monotonic() < until:
            self.tick()
            if select.select([self.socket], [], [], 0.002)[0]:
                data, address = self.socket.recvfrom(2048)
                if self.random.random() < self.options.loss:
                    continue
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
    parse.add_argument("--id", type=int, default=0, help="with security = none; else the keys:")
    parse.add_argument("--job-key", type=key_of, default=bytes(32))
    parse.add_argument("--node-key", type=key_of, default=bytes(32))
    parse.add_argument("--job", default="sleet")
    parse.add_argument("--operator", type=bytes.fromhex, default=b"", help="public key, as hex digits")
    parse.add_argument("--port", type=int, default=0)
    parse.add_argument("--peer", action="append", default=[], help="HOST:PORT to begin with")
    parse.add_argument("--cross", action="store_true", help="greet who greets, before the answer")
    parse.add_argument("--rekey", type=float, default=120, help="seconds after which new keys are made")
    parse.add_argument("--roam", type=float, default=float("inf"), help="seconds after which it moves to another port")
    parse.add_argument("--public", help="the peer's static key, as hex digits: IK in place of XX")
    parse.add_argument("--set", help="NAME:TENSOR:COUNT[,TENSOR:COUNT...]: train with it")
    parse.add_argument("--value", type=float, default=1)
    parse.add_argument("--loss", type=float, default=0, help="share of datagrams dropped on receipt")
    parse.add_argument("--seconds", type=float, default=10)
    options = parse.parse_args()
    if options.id:
        from second_plain import Plain
    node = Plain(options) if options.id else Node(options)
    say(f"second node={node.id} port={node.socket.getsockname()[1]} pid={os.getpid()}")
    if options.set:
        name, tensors = options.set.split(":", 1)
        pairs = [t.split(":") for t in tensors.split(",")]
        node.set = Set(node, name, [(t, int(count)) for t, count in pairs], options.value)
    for address in options.peer:
        host, port = address.rsplit(":", 1)
        node.begin((host, int(port)), bytes.fromhex(options.public) if options.public else None)
    node.run(time.monotonic() + options.seconds)


if __name__ == "__main__":
    main()
