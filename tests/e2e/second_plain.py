"""second_plain.py - second.py in a job with security = none: identities in the clear, a checksum for a tag."""
import secrets
import struct
from types import SimpleNamespace

from second import CLOSE, ELEMENTS, HELLO, HELLO_ACK, Node, Peer, say
from second_noise import Handshake, xxh3_128


class Plain(Node):
    def __init__(self, options):
        super().__init__(options)
        self.members.self.key = b""

    def index(self, address, initiator):
        """The session with an address, which is there once one of the two has greeted."""
        for hand in self.handshakes.values():
            if hand.address == address:
                return hand
        hand = Handshake(SimpleNamespace(initiator=initiator, h=b"", pattern="plain"), secrets.randbits(31) | 1, address)
        hand.stamp = 0
        self.handshakes[hand.index] = hand
        return hand

    def own_hello(self, hand):
        return struct.pack("<QQIHH64s", self.id, self.boot, hand.index, ELEMENTS, 0, self.job)

    def begin(self, address, public=None):
        hand = self.index(address, True)
        hand.hello = self.own_hello(hand)

    def send_handshake(self, kind, index, body, address):
        data = self.header(kind, index, secrets.randbits(31) | 1) + body
        self.socket.sendto(data + xxh3_128(data), address)

    def send(self, peer, kind, body):
        if peer.pair:
            peer.counter += 1
            data = self.header(kind, peer.pair.peer_index, peer.counter) + body
            self.socket.sendto(data + xxh3_128(data), peer.pair.address)

    def receive(self, data, address):
        version, _, _, index, counter = struct.unpack_from("<BBHIQ", data)
        kind, body, hand = version & 15, data[16:-16], self.handshakes.get(index)
        if version >> 4 != 1 or len(data) < 32 or xxh3_128(data[:-16]) != data[-16:]:
            raise ValueError("wrong tag")
        if kind in (HELLO, HELLO_ACK):
            node, boot, theirs, elements, zero, job = struct.unpack("<QQIHH64s", body)
            if job != self.job or elements != ELEMENTS or zero or not node or not boot or not theirs:
                raise ValueError("a HELLO out of bounds")
            hand = hand if kind == HELLO_ACK else self.index(address, False)
            if hand:
                self.greeted(hand, node, boot, theirs)
                if kind == HELLO:
                    self.send_handshake(HELLO_ACK, theirs, self.own_hello(hand), address)
        elif kind == CLOSE and hand and not hand.send_key:
            say("refused, reason", body[0])
        elif hand and hand.send_key and hand.address == address:
            self.accept(hand, kind, counter, body)

    def greeted(self, hand, node, boot, theirs):
        peer = self.peers.setdefault(node, Peer(b"", node))
        if (peer.boot, hand.peer_index) != (boot, theirs):
            hand.peer_boot, hand.peer_index, hand.send_key, hand.made = boot, theirs, b"none", hand.born
            hand.sealed_came = peer.counter = 0
            self.use_pair(peer, hand)
