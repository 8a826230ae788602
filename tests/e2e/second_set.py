"""second_set.py - a set of tensors and its one trainer, for second.py: which rounds, and with whom."""
import struct
import time

from second_noise import xxh3
from second_round import (ATTACHED, CLOSED, DATA_HEAD, ELEMENTS, ESTABLISHED, GATHER, NOW_CLOSED, PARKED, REPAIR, SCATTER,
                          SCATTER_REPAIR, SUMMARY_HEAD, WINDOW, WITNESS, Group, Round, mix, serial)


KIND = bytes((1, 1, 1, 1, 1, 0, 0, 0, 0, 1))  # model, ratio, linear, all-reduce, rps with its usual numbers, spread 1


class Said:
    """What a member says of a set."""

    def __init__(self, flags=0, number=0, lineage=0, parent=0, fork=0, weight=0):
        self.flags, self.round, self.lineage, self.parent, self.fork, self.weight = flags, number, lineage, parent, fork, weight
        self.as_of = number

    def open_round(self):
        return self.round + (1 if self.flags & CLOSED else 0)


class Set:
    """A set with one trainer, which holds a vector of one value."""

    def __init__(self, node, name, tensors, value):
        self.node, self.name, self.tensors, self.value = node, name, tensors, value
        entries = [struct.pack("<BBQ", 1, 1, count) + tensor.encode() for tensor, count in tensors]
        self.ids = [xxh3(e) & 0xffffffff for e in entries]
        self.hash = xxh3(KIND + name.encode() + b"\0" + b"".join(e + b"\0" for e in entries)) & 0xffffffff
        self.fragments = [(t, at, min(ELEMENTS, count - at)) for t, (_, count) in enumerate(tensors)
                          for at in range(0, count, ELEMENTS)]
        self.send = [struct.pack(f"<{n}f", *[value] * n) for _, _, n in self.fragments]
        self.results = {}
        self.rounds, self.known, self.told = {}, {}, False
        self.open, self.round, self.established, self.next_start = None, 0, False, 0
        self.lineage = self.parent = self.fork = self.weight = 0
        self.contributed = False

    def payload(self, fragment):
        return self.send[fragment]

    def take(self, fragment, payload):
        self.results[fragment] = payload

    def ping_entry(self):
        flags = ATTACHED | (ESTABLISHED if self.established else 0) | (0 if self.open else CLOSED)
        model = (self.lineage, self.parent, self.fork, self.weight) if self.established else (0, 0, 0, 0)
        return struct.pack("<IB3xQQQQQ", self.hash, flags, self.round, *model)

    def said(self, peer):
        return peer.sets.get(self.hash, Said()) if peer else Said()

    def same_model(self, peer):
        m = self.said(peer)
        return self.established and bool(m.flags & ESTABLISHED) and m.lineage == self.lineage

    # -- who, and which round

    def members(self):
        """Reachable members with a trainer, and what they say."""
        return [(p, self.said(p)) for p in self.node.peers.values() if self.node.reachable(p) and self.said(p).flags & ATTACHED]

    def heaviest(self):
        there = [m for _, m in self.members() if m.flags & ESTABLISHED and not m.flags & PARKED]
        return min(there, key=lambda m: (-m.weight, m.lineage), default=None)

    def others(self):
        """Open rounds of the others, highest first."""
        return sorted((m.open_round() for _, m in self.members() if m.flags & ESTABLISHED and not m.flags & PARKED and
                       m.lineage == self.model()), reverse=True)

    def model(self):
        """The lineage of the node, or that which it would join; 0: there is none."""
        best = self.heaviest()
        return self.lineage if self.established else best.lineage if best else 0

    def job_round(self):
        return max([self.round] + self.others()[:2][-1:])

    def group(self):
        lineage, members = self.model(), self.members()
        lowest = min([self.node.id] + [p.id for p, _ in members])
        if not lineage and lowest == self.node.id:
            return None
        out = [(self.node.id, self.node.boot, int(self.established))]
        for p, m in members:
            same = m.flags & ESTABLISHED and not m.flags & PARKED and m.lineage == lineage
            out.append((p.id, p.boot, int(bool(same) or (not lineage and p.id == lowest))))
        return Group(out) if any(m[2] for m in out) else None

    def find(self, number):
        """The round, its group pinned where it is new and within the window."""
        job, r = self.job_round(), self.rounds.get(number)
        new = not r or not (r.joined or r.lineage == self.model())
        if new and 0 < number <= job + 1 and number + WINDOW >= job:
            group = self.group()
            if group:
                self.rounds[number] = Round(self, number, group)
        return self.rounds.get(number)

    def start(self):
        members, others = self.members(), self.others()
        if not self.established and not self.heaviest():
            if members and self.node.id < min(p.id for p, _ in members):
                self.lineage, self.established = mix(self.node.id ^ mix(self.node.boot)) | 1, True
        number = max([self.round + 1] + others[:2][-1:])
        if self.established and not others:
            theirs = max((m.open_round() for _, m in members), default=0)
            number = theirs if number < theirs <= number + WINDOW else number
        if not members or (self.established and others and number > others[0] + 1):
            return
        r = self.find(number)
        if r and not r.joined and len(r.group.ids) > 1:
            self.skipped = number - self.round - 1 if self.round else 0
            self.results, self.open, self.round = {}, r, number
            r.join()

    def close(self, r):
        self.open = None
        whole = len(r.got) == len(self.fragments)
        present = sum(bin(r.got[f]).count("1") if f in r.got else 1 for f in range(len(self.fragments)))
        coverage = present / len(self.fragments) / r.group.contributors()
        values = [self.results.get(f, self.send[f]) for f in range(len(self.fragments))]
        first, last = struct.unpack("<f", values[0][:4])[0], struct.unpack("<f", values[-1][-4:])[0]
        print(f"round {r.number}: first {first:g} last {last:g}, coverage {coverage:.3f} of {r.group.contributors()} "
              f"{'member' if self.established else 'joining'}", flush=True)
        self.send = values
        best = self.heaviest()
        if self.established:
            self.weight += (1 + self.skipped) * r.group.contributors()
        elif whole and best:
            self.established, self.lineage, self.parent, self.fork = True, best.lineage, best.parent, best.fork
            self.weight = best.weight + max(r.number - best.as_of, 0) * r.group.contributors()
        if self.established and not self.contributed:  # from now on its own values count
            self.contributed = True
            self.send = [struct.pack(f"<{n}f", *[self.value] * n) for _, _, n in self.fragments]
        self.next_start = time.monotonic() + 0.1
        self.node.announce()

    def tick(self):
        if not self.open and time.monotonic() >= self.next_start:
            self.start()
        for number in list(self.rounds):
            if number + WINDOW < self.job_round() and self.rounds[number] is not self.open:
                del self.rounds[number]
            else:
                self.rounds[number].tick()

    # -- SCHEMA

    def offer(self, peer, first):
        name = self.name.encode()
        entries = [struct.pack("<QIBBB", count, 0, 1, 1, len(t)) + t.encode() for t, count in self.tensors[first:first + 4]]
        self.node.send(peer, 3, struct.pack("<IHHBB", self.hash, len(self.tensors), first, len(entries), len(name)) + KIND + name +
                  b"".join(entries))

    @staticmethod
    def entry(body, at):
        count, _, dtype, codec, length = struct.unpack_from("<QIBBB", body, at)
        return (body[at + 15:at + 15 + length].decode(), count, dtype, codec), at + 15 + length

    def on_schema(self, peer, body):
        theirs, tensors, first, n, length, kind = struct.unpack_from("<IHHBB10s", body)
        at, verdict, index, own = 20 + length, 0, 0, b""
        if body[20:at].decode() == self.name and kind != KIND:
            verdict = 3
            print("kind differs", flush=True)
        elif body[20:at].decode() == self.name:
            mine, verdict = [(*t, 1, 1) for t in self.tensors], 1
            for index in range(first, first + n):
                entry, at = self.entry(body, at)
                if index >= len(mine) or mine[index] != entry:
                    verdict = 2
                    break
            else:
                index = first + n
                verdict = 2 if index == tensors and tensors != len(mine) else 1
            if verdict == 2:
                print(f"schema differs at {index}", flush=True)
                if index < len(mine):
                    name, count, dtype, codec = mine[index]
                    own = struct.pack("<QIBBB", count, 0, dtype, codec, len(name)) + name.encode()
        self.node.send(peer, 4, struct.pack("<IBBH10s", theirs, verdict, bool(own), index, KIND if verdict else bytes(10)) + own)

    def on_schema_ack(self, peer, body):
        mine, verdict, n, index, _ = struct.unpack_from("<IBBH10s", body)
        if mine == self.hash:
            print(f"schema verdict {verdict} at {index}", *(self.entry(body, 18)[0] if n else ()), flush=True)
            if verdict == 1 and index < len(self.tensors):
                self.offer(peer, index)

    # -- frames of rounds

    def note_round(self, peer, low, closed):
        m = peer.sets.setdefault(self.hash, Said())
        number = serial(low, max(m.round, self.round))
        if number > m.round or (number == m.round and closed):
            m.round, m.flags = number, m.flags & ~CLOSED | (CLOSED if closed else 0)

    def meet(self, peer, low, group):
        """The round that a frame names and the sender's rank; None where it has none."""
        r = self.find(serial(low, self.job_round()))
        member = next((m for m in r.group.members if m[:2] == (peer.id, peer.boot)), None) if r else None
        if not member:
            return None, 0
        rank = r.group.members.index(member)
        if group not in (r.group.hash, r.lanes[rank].group):
            self.tell_group(peer, r.group)
        r.lanes[rank].group = group
        return r, rank

    def tell_group(self, peer, group):
        self.node.send(peer, 9, struct.pack("<IIB3x", self.hash, group.hash, len(group.ids)) + group.bytes)

    def on_data(self, peer, body):
        if body[16] in (5, 6):  # parity: what it would bring is asked for
            return
        group, tensor, low, fragment, phase, codec, packed, flags, _, weight, extra, current = DATA_HEAD.unpack_from(body)
        t = self.ids.index(tensor)
        number = next(i for i, f in enumerate(self.fragments) if f[0] == t) + fragment
        if self.fragments[number][:2] != (t, fragment * ELEMENTS) or len(body) != 40 + 4 * self.fragments[number][2] or \
                (codec, packed) != (1, 1) or not 0 < weight < float("inf"):
            raise ValueError("DATA out of bounds")
        self.note_round(peer, current, phase in (GATHER, REPAIR) and flags & 4)
        r, rank = self.meet(peer, low, group)
        if not r:
            return
        if phase in (SCATTER, SCATTER_REPAIR):
            r.contribution(rank, number, flags, weight, body[40:])
        elif group in (r.group.hash, *self.known):
            r.result(rank, number, extra, body[40:])
        else:
            self.node.send(peer, 8, struct.pack("<II", self.hash, group))

    def on_summary(self, peer, body):
        _, group, low, current, counter, _, committed, _, echo, hold, first, bits, flags, of, _ = SUMMARY_HEAD.unpack_from(body)
        at = 56 + (12 if flags & WITNESS else 0)
        if len(body) != at + (bits + 7) // 8 or bits > 8192 or of > 64 or (of and flags & ~NOW_CLOSED):
            raise ValueError("a SUMMARY out of bounds")
        self.note_round(peer, current, flags & NOW_CLOSED)
        r, rank = self.meet(peer, low, group)
        if r and of:
            if bits:
                r.nothing_of(rank, of)
        elif r:
            r.on_summary(rank, group == r.group.hash, counter, committed, first, bits, flags, body[at:])

    def on_group_request(self, peer, body):
        _, wanted = struct.unpack("<II", body)
        for r in self.rounds.values():
            if r.group.hash == wanted:
                return self.tell_group(peer, r.group)

    def on_group(self, peer, body):
        _, told, n = struct.unpack_from("<IIB3x", body)
        if len(body) != 12 + 17 * n or xxh3(body[12:]) & 0xffffffff != told:
            raise ValueError("a GROUP out of bounds")
        self.known[told] = [struct.unpack_from("<QQB", body, 12 + 17 * i) for i in range(n)]
