"""second_round.py - groups, and one round of a set, for second.py: "Rounds" of docs/protocol.md."""
import struct
import time

from second_noise import now_us, xxh3

RUN, WINDOW, ELEMENTS, ALL = 8, 4, 288, (1 << 64) - 1
ATTACHED, ESTABLISHED, CLOSED, DIFFERS, PARKED = 1, 2, 4, 8, 16
SCATTER, GATHER, REPAIR, SCATTER_REPAIR = 1, 2, 3, 4
YOURS_IN, LAST = 1, 2                    # flags of DATA
OVER, FINAL, NOW_CLOSED, SCATTER_HOLES, WITNESS = 1, 2, 4, 8, 16  # of SUMMARY
BUDGET, DEADLINE, GRACE, SETTLE = 0.5, 2, 0.001, 0.02  # seconds
DATA_HEAD, SUMMARY_HEAD = struct.Struct("<IIIIBBBBIfQI"), struct.Struct("<IIIIQIIIIIIHBBH2x")


def mix(x):
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9 & ALL
    x = (x ^ x >> 27) * 0x94d049bb133111eb & ALL
    return x ^ x >> 31


def serial(low, near):
    """The number with these low 32 bits that is nearest to another one."""
    return max(near + ((low - near + 0x80000000) & 0xffffffff) - 0x80000000, 0)


class Group:
    """Who averages with whom: (node id, boot id, contributes), ascending."""

    def __init__(self, members):
        self.members = sorted(members)
        self.bytes = b"".join(struct.pack("<QQB", *m) for m in self.members)
        self.hash = xxh3(self.bytes) & 0xffffffff
        self.ids = [m[0] for m in self.members]

    def owner(self, number, run):
        """The rank of the owner of a run."""
        key = mix(number * 0x9e3779b97f4a7c15 + run & ALL)
        return max((i for i, m in enumerate(self.members) if m[2]),
                   key=lambda i: (mix(key ^ mix(self.ids[i])), -self.ids[i]))

    def contributors(self):
        return sum(m[2] for m in self.members)


class Lane:
    """What is known of one other member in a round."""

    def __init__(self):
        self.came = set()  # fragments of its contribution
        self.over_at = None
        self.final_at, self.commits = None, 0  # as it told
        self.sent = {}     # fragments of ours: counter with which the commit went
        self.sent_at = self.ask_at = 0
        self.gap, self.group = 0.001, 0


class Round:
    def __init__(self, s, number, group):
        node = s.node
        self.s, self.node, self.number, self.group = s, node, number, group
        self.rank = group.ids.index(node.id)
        self.owner = [group.owner(number, run) for run in range((len(s.fragments) + RUN - 1) // RUN)]
        self.shares = [[f for f in range(len(s.fragments)) if self.owner[f // RUN] == i] for i in range(len(group.ids))]
        self.share = self.shares[self.rank]
        self.lanes = {i: Lane() for i in range(len(group.ids)) if i != self.rank}
        self.sums, self.commits, self.got = {}, {}, {}
        self.joined = self.closed = self.final = False
        self.lineage = s.model()
        self.first = None  # when the first contribution came

    def peer(self, rank):
        peer = self.node.peers.get(self.group.ids[rank])
        return peer if peer and peer.boot == self.group.members[rank][1] and self.node.reachable(peer) else None

    # -- as a contributor

    def join(self):
        now = time.monotonic()
        self.joined, self.started = True, now
        self.contributes = self.s.established and self.group.members[self.rank][2]
        for rank, lane in self.lanes.items():
            lane.ask_at = now + 0.003
            todo = self.shares[rank] if self.contributes else []
            for left, fragment in reversed(list(enumerate(reversed(todo)))):
                self.data(rank, fragment, SCATTER, 0 if left else LAST, 1, now_us() & 0xffffffff | left << 32,
                          self.s.payload(fragment))
            self.summary(rank)
        self.check()

    def data(self, rank, fragment, phase, flags, weight, extra, payload):
        tensor, first, _ = self.s.fragments[fragment]
        peer = self.peer(rank)
        if peer:
            head = DATA_HEAD.pack(self.group.hash, self.s.ids[tensor], self.number & 0xffffffff, first // ELEMENTS, phase, 1, 1,
                                  flags, 0, weight, extra, self.s.round & 0xffffffff)
            self.node.send(peer, 6, head + payload)
            return peer.counter
        return 0

    # -- as an owner

    def contribution(self, rank, fragment, flags, weight, payload):
        lane = self.lanes[rank]
        if flags & LAST:
            lane.over_at = lane.over_at or time.monotonic()
        if not self.group.members[rank][2] and not self.s.same_model(self.peer(rank)):
            return
        if self.owner[fragment // RUN] != self.rank or fragment in lane.came or fragment in self.commits or self.final:
            return
        lane.came.add(fragment)
        self.first = self.first or time.monotonic()
        self.add(rank, fragment, weight, payload)
        self.check()

    def add(self, rank, fragment, weight, payload):
        x = struct.unpack(f"<{len(payload) // 4}f", payload)
        old = self.sums.get(fragment, ([0.0] * len(x), 0.0, 0))
        self.sums[fragment] = [a + b * weight for a, b in zip(old[0], x)], old[1] + weight, old[2] | 1 << rank

    def commit(self, fragment):
        if self.joined and not self.closed and self.contributes:
            self.add(self.rank, fragment, 1, self.s.payload(fragment))
        if fragment in self.commits or fragment not in self.sums:
            return
        total, weight, mask = self.sums.pop(fragment)
        payload = struct.pack(f"<{len(total)}f", *(x / weight for x in total))
        self.commits[fragment] = payload, weight, mask
        self.got[fragment] = mask
        if self.joined and not self.closed:
            self.s.take(fragment, payload)
        for rank in self.lanes:
            self.serve(rank, fragment, GATHER)

    def serve(self, rank, fragment, phase):
        payload, weight, mask = self.commits[fragment]
        lane = self.lanes[rank]
        lane.sent[fragment] = self.data(rank, fragment, phase, mask >> rank & 1 and YOURS_IN, weight, mask, payload)
        lane.sent_at = time.monotonic()

    def waits_for(self, rank):
        if rank == self.rank:
            return self.group.members[rank][2] and not self.joined
        peer, state = self.peer(rank), self.s.said(self.peer(rank))
        return bool(self.group.members[rank][2] and peer and state.flags & ATTACHED and not state.flags & PARKED and
                    state.round + 3 >= self.number)

    def check(self):
        """Commit what is ready; close the round when it is."""
        if self.share and not self.final and (self.joined or self.first):
            now = time.monotonic()
            self.first = self.first or now
            need = [i for i in self.lanes if self.waits_for(i)]
            if not self.waits_for(self.rank):
                for fragment in self.share:
                    if fragment not in self.commits and all(fragment in self.lanes[i].came for i in need):
                        self.commit(fragment)
            missing = [i for i in need if len(self.lanes[i].came) < len(self.share)]
            gone = all(self.lanes[i].over_at and now >= self.lanes[i].over_at + GRACE for i in missing)
            if (gone and not self.waits_for(self.rank)) or now >= self.first + BUDGET:
                for fragment in self.share:
                    self.commit(fragment)
                self.final = True
                for rank, lane in self.lanes.items():
                    if len(self.commits) < len(self.share) or lane.group not in (0, self.group.hash):
                        self.summary(rank)
        if not self.share:
            self.final = True
        if self.joined and not self.closed and (time.monotonic() > self.started + DEADLINE or
                                                all(self.done(i) for i in range(len(self.group.ids)))):
            self.closed = True
            self.s.close(self)

    # -- as a member

    def done(self, rank):
        if rank == self.rank:
            return self.final
        lane, got = self.lanes[rank], sum(f in self.got for f in self.shares[rank])
        if any(other.group not in (0, self.group.hash) for other in self.lanes.values()):  # nothing is repaired
            return not self.peer(rank) or time.monotonic() > min(self.started + BUDGET, (lane.final_at or float("inf")) + SETTLE)
        return got == len(self.shares[rank]) or not self.peer(rank) or bool(lane.final_at and got >= lane.commits)

    def result(self, rank, fragment, mask, payload):
        if self.owner[fragment // RUN] == rank and fragment not in self.got and self.joined and not self.closed:
            self.got[fragment] = mask
            self.s.take(fragment, payload)
            self.lanes[rank].gap = 0.001
            self.check()

    def summary(self, rank):
        peer, lane = self.peer(rank), self.lanes[rank]
        if not peer:
            return
        holes = [i for i, f in enumerate(self.shares[rank]) if f not in self.got] if self.joined and not self.closed else []
        first, bits = (holes[0], min(holes[-1] - holes[0] + 1, 8192)) if holes else (0, 0)
        bitmap = sum(1 << i - first for i in holes if i - first < bits).to_bytes((bits + 7) // 8, "little")
        s = self.s
        flags = (OVER if self.joined else 0) | (FINAL if self.final else 0) | (0 if s.open else NOW_CLOSED)
        sent = len(self.shares[rank]) if self.joined and self.contributes else 0
        echo, hold = self.node.echo_of(peer)
        self.node.send(peer, 7, SUMMARY_HEAD.pack(
            s.hash, self.group.hash, self.number & 0xffffffff, s.round & 0xffffffff, peer.highest, sent, len(self.commits), 0,
            echo, hold, first, bits, flags, 0, 0) + bitmap)
        lane.gap = min(lane.gap * 2, 0.05)
        lane.ask_at = time.monotonic() + lane.gap

    def nothing_of(self, rank, of):
        """To who asks this node as a backup: it keeps nothing for others."""
        peer, s = self.peer(rank), self.s
        echo, hold = self.node.echo_of(peer)
        self.node.send(peer, 7, SUMMARY_HEAD.pack(
            s.hash, self.group.hash, self.number & 0xffffffff, s.round & 0xffffffff, peer.highest, 0, 0, 0,
            echo, hold, 0, 0, 0 if s.open else NOW_CLOSED, of, 0))

    def on_summary(self, rank, agrees, counter, committed, first, bits, flags, bitmap):
        lane = self.lanes[rank]
        lane.commits = max(lane.commits, committed)
        if flags & FINAL:
            lane.final_at = lane.final_at or time.monotonic()
        if flags & OVER:
            lane.over_at = lane.over_at or time.monotonic()
        holes = [first + i for i in range(bits) if bitmap[i // 8] >> i % 8 & 1] if agrees else []
        idle = time.monotonic() > lane.sent_at + SETTLE
        answered = False
        for i in holes:
            if flags & SCATTER_HOLES and i < len(self.shares[rank]) and self.joined and not self.closed:
                fragment = self.shares[rank][i]
                self.data(rank, fragment, SCATTER_REPAIR, LAST, 1, now_us() & 0xffffffff, self.s.payload(fragment))
                answered = True
            elif not flags & SCATTER_HOLES and i < len(self.share) and self.share[i] in self.commits:
                if idle or counter > lane.sent.get(self.share[i], 0) + 8:
                    self.serve(rank, self.share[i], REPAIR)
                    answered = True
        if bits and not answered:
            if self.final:
                self.summary(rank)
            else:
                self.node.ping(self.peer(rank))
        self.check()

    def tick(self):
        self.check()
        for rank, lane in self.lanes.items():
            if self.joined and not self.closed and not self.done(rank) and time.monotonic() >= lane.ask_at:
                self.summary(rank)
