#!/usr/bin/env python3
"""second_trainer.py - a trainer on the control socket of sleetd, from docs/control.md: it publishes the
state of a set of one tensor of random values, or fetches the newest, and says the XXH3-128 of its bytes.

  second_trainer.py SOCKET publish|fetch SET TENSOR COUNT [VERSION]"""
import mmap
import random
import signal
import socket
import sys

from second_noise import xxh3_128


class Control:
    def __init__(self, path):
        self.socket, self.text, self.fds = socket.socket(socket.AF_UNIX), b"", []
        self.socket.connect(path)
        self.line()

    def line(self):
        while b"\n" not in self.text:
            data, fds, _, _ = socket.recv_fds(self.socket, 4096, 4)
            if not data:
                sys.exit("the daemon hung up")
            self.text, self.fds = self.text + data, self.fds + list(fds)
        line, self.text = self.text.split(b"\n", 1)
        return line.decode().split()

    def call(self, *words):
        self.socket.sendall((" ".join(map(str, words)) + "\n").encode())
        while (reply := self.line())[0][0] == "1":
            pass
        if reply[0][0] != "2":
            sys.exit(" ".join(reply))
        return reply

    def event(self, code):
        while (line := self.line())[0] != code:
            pass
        return line


def main():
    path, what, name, tensor, count, *version = sys.argv[1:]
    size = 4 * int(count)
    control = Control(path)
    control.call("set", name, "model")
    control.call("tensor", tensor, "f32", count)
    handle = control.call("register")[1]
    whole = int(control.call("attach", handle)[2])
    memory = mmap.mmap(control.fds[-1], whole)
    half_bytes = (size + 63) // 64 * 64
    half_bytes = (half_bytes + 4095) // 4096 * 4096
    if what == "publish":
        half = int(control.call("reserve", handle)[1])
        data = bytes(size // 3) + random.Random(1).randbytes(size - size // 3)  # some of it can be compressed
        memory[half * half_bytes:half * half_bytes + size] = data
        control.call("publish", handle, version[0], 0)
        print("published", version[0], xxh3_128(data).hex(), flush=True)
        signal.pause()  # served until this ends, and after
    else:
        control.call("fetch", handle, 1, 10 ** 10, 0)
        _, _, _, _, error, got, half, *_ = control.event("152")
        data = memory[int(half) * half_bytes:int(half) * half_bytes + size] if error == "0" else b""
        print("fetched", got, xxh3_128(data).hex(), "error", error, flush=True)


main()
