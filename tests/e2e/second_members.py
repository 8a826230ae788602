"""second_members.py - who is a member, for second.py: "MEMBERS" of docs/protocol.md, as a node that
is probed, is told, tells and defends itself, but leaves it to others to accuse."""
import socket
import struct
import time

from second_round import mix

UPDATES, PROBE, ANSWER, ASK, TABLE = range(1, 6)
ALIVE, SUSPECT, DEAD, LEFT = range(4)
HEARD, MORE, SAME = 1, 2, 4
PROBE_WAIT, ROOM = 0.2, 1172  # seconds; bytes of updates in a frame


class Record:
    """What is known of a member: the fields of an update."""

    def __init__(self, node, boot, incarnation=0, status=ALIVE, accuser=0, key=b"", at=(None, None, None)):
        self.node, self.boot, self.incarnation, self.status, self.accuser = node, boot, incarnation, status, accuser
        self.key, self.at = key, list(at)

    @staticmethod
    def decode(body, at):
        node, boot, incarnation, presence, zero = struct.unpack_from("<QQIBB", body, at)
        record, at = Record(node, boot, incarnation, presence & 3), at + 22
        if record.status in (SUSPECT, DEAD):
            record.accuser, at = struct.unpack_from("<Q", body, at)[0], at + 8
        if presence & 4:
            record.key, at = body[at:at + 32], at + 32
        for i in range(3):
            if presence & 8 << i:
                record.at[i], at = struct.unpack_from("<16sH", body, at), at + 18
        if not node or not boot or presence > 63 or zero or at > len(body):
            raise ValueError("an update out of bounds")
        return record, at

    def encode(self):
        presence = self.status | (4 if self.key else 0) | sum(8 << i for i, a in enumerate(self.at) if a)
        accuser = struct.pack("<Q", self.accuser) if self.status in (SUSPECT, DEAD) else b""
        return struct.pack("<QQIBB", self.node, self.boot, self.incarnation, presence, 0) + accuser + self.key + \
            b"".join(struct.pack("<16sH", *a) for a in self.at if a)

    def addresses(self):
        return [(socket.inet_ntoa(a[0][12:]), a[1]) for a in self.at if a and a[0][:12] == bytes(10) + b"\xff\xff"]


def later(a, b):
    return 0 < (a - b & 0xffffffff) < 1 << 31


class Members:
    def __init__(self, node):
        self.node = node
        self.self = Record(node.id, node.boot, key=node.public)
        self.table = {node.id: self.self}
        self.former, self.relays, self.asked = {}, [], 0
        self.sequence = self.ask_at = self.after = 0

    def digest(self):
        return sum(mix(r.node ^ mix(r.boot)) >> 32 for r in self.table.values() if r.status <= SUSPECT) & 0xffffffff

    def send(self, peer, kind, flags=0, sequence=0, subject=0, digest=0, records=()):
        self.node.send(peer, 13, struct.pack("<BBBBIQI", kind, flags, len(records), 0, sequence, subject, digest) +
                       b"".join(r.encode() for r in records))

    def met(self, peer, address):
        """What it says itself in a session counts over all that was heard."""
        seen = (bytes(10) + b"\xff\xff" + socket.inet_aton(address[0]), address[1])
        known = self.table.get(peer.id)
        if not known or known.boot != peer.boot:
            self.table[peer.id] = Record(peer.id, peer.boot, key=peer.public)
        self.table[peer.id].at[0] = seen

    # -- news

    def defend(self, news):
        same = news.boot == self.self.boot
        if later(self.self.incarnation, news.incarnation) and same or (news.status == ALIVE) == same:
            return
        self.self.incarnation = (news.incarnation if later(news.incarnation, self.self.incarnation)
                                 else self.self.incarnation) + 1 & 0xffffffff
        print(f"defended incarnation {self.self.incarnation}", flush=True)
        for peer in self.node.peers.values():
            self.send(peer, UPDATES, records=[self.self])

    def learn(self, news):
        known = self.table.get(news.node)
        if news.node == self.node.id:
            return self.defend(news)
        if not known or known.boot != news.boot:
            lives = self.former.setdefault(news.node, {})
            if news.status > SUSPECT or (news.boot in lives and not later(news.incarnation, lives[news.boot])):
                return None
            if known:
                lives[known.boot] = known.incarnation
            self.table[news.node] = known = news
        else:
            newer = later(news.incarnation, known.incarnation)
            known.key = known.key or news.key
            known.at = [a if a and (newer or not b) else b for a, b in zip(news.at, known.at)]
            if not newer and (news.incarnation != known.incarnation or news.status <= known.status):
                return None
            known.incarnation, known.status, known.accuser = news.incarnation, news.status, news.accuser
        print(f"member {news.node} status {news.status}", flush=True)
        if known.status <= SUSPECT and known.node not in self.node.peers and known.addresses():
            self.node.begin(known.addresses()[0], known.key or None)
        return None

    # -- frames and timers

    def on_members(self, peer, body):
        kind, flags, n, _, sequence, subject, digest = struct.unpack_from("<BBBBIQI", body)
        at, records = 20, []
        for _ in range(n):
            record, at = Record.decode(body, at)
            records.append(record)
        if at != len(body) or not UPDATES <= kind <= TABLE:
            raise ValueError("MEMBERS out of bounds")
        for record in records:
            self.learn(record)
        if kind == PROBE:
            asked = self.node.peers.get(subject)
            self.relays.append((time.monotonic() + (PROBE_WAIT if asked else 0), time.monotonic(), peer, sequence, subject))
            if asked:
                self.node.ping(asked, True)
        elif kind == ASK:
            same = subject == 0 and digest == self.digest()
            rest, room, out = sorted(r.node for r in self.table.values() if r.node > subject), ROOM, []
            for r in [] if same else (self.table[node] for node in rest):
                room -= len(r.encode())
                if room < 0:
                    break
                out.append(r)
            self.send(peer, TABLE, SAME if same else MORE if len(out) < len(rest) else 0, sequence, records=out)
        elif kind == TABLE and sequence == self.sequence:
            self.after = records[-1].node if flags & MORE and records else 0
            self.ask_at = time.monotonic() + (0 if self.after else 5)
            if flags & SAME:
                print("the same table", flush=True)

    def tick(self):
        now, peers = time.monotonic(), [p for p in self.node.peers.values() if p.pair]
        for relay in list(self.relays):
            until, since, peer, sequence, subject = relay
            heard = subject in self.node.peers and self.node.peers[subject].heard >= since
            if heard or now >= until:
                self.relays.remove(relay)
                self.send(peer, ANSWER, HEARD if heard else 0, sequence, subject)
        if peers and now >= self.ask_at:
            self.sequence, self.ask_at = self.sequence + 1, now + 1
            self.asked += 1
            self.send(peers[self.asked % len(peers)], ASK, 0, self.sequence, self.after, self.digest())
