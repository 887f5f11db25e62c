#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""bytes.py [--check]: writes the seeds of the targets whose inputs are bytes (corpus/answers, calls, device, kmt, softgpu); --check: only says
whether they are what is written here."""
import os
import random
import struct
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def drawn(calls, length=48):
    """What a program draws, by the number of its first call: that call with each detail, then drawn bytes."""
    for first in range(calls):
        source = random.Random(first)
        yield f'call-{first:02}', bytes(x for detail in range(6) for x in [first, detail, *source.randbytes(length // 6)])


def command(op, body=b'', flags=0):
    return struct.pack('<HHI', op, flags, 8 + len(body)) + body


def operand(allocation, offset=0):
    return struct.pack('<IIQQ', allocation, 0, offset, 0)


def buffers():
    """Command buffers of softgpu (include/vidmm/softgpu.h); the client lists allocations 0 to 3 and may write to 0 and 1."""
    fill = command(2, operand(0) + struct.pack('<QII', 4096, 0x11, 0))
    copy = command(3, operand(0) + operand(1, 4096) + struct.pack('<Q', 4096))
    yield 'fill-and-copy', fill + copy
    yield 'references', command(0) + command(1, operand(2)) + command(1, operand(1, 8), 1)
    yield 'beyond-the-end', command(2, operand(1, 16380) + struct.pack('<QII', 4096, 0x22, 0))
    yield 'writes-what-it-may-not', command(2, operand(3) + struct.pack('<QII', 64, 0x33, 0))
    yield 'signal-and-wait', command(8, operand(0, 64) + struct.pack('<Q', 5)) + command(7, operand(0, 64) + struct.pack('<Q', 5))
    yield 'waits-for-ever', command(7, operand(0, 128) + struct.pack('<Q', 9))
    yield 'hang', fill + command(10)
    yield 'stall', command(9, struct.pack('<Q', 1000000)) + copy
    yield 'interrupts', command(11) + command(12)
    yield 'answer', command(13, struct.pack('<iI', -1073741811, 0))
    yield 'traffic', command(14, operand(2) + struct.pack('<QQ', 4096, 1000))
    yield 'stamps', (command(6, operand(1)) + command(4, operand(0) + struct.pack('<IIIIII', 1, 0, 1, 0, 4, 64) + bytes(8), 1))
    yield 'sizes', struct.pack('<HHI', 2, 0, 4) + struct.pack('<HHI', 2, 0, 0) + struct.pack('<HHI', 3, 0, 0xFFFFFFF8)


def devices():
    """Steps of fuzz_device_guided.c: how many members of the description change, then operations with their arguments."""
    register = bytes([0, 1, 0, 0, 16]) + struct.pack('>I', 4)
    port = bytes([1, 2, 0, 0, 4]) + struct.pack('>I', 3)
    yield 'registers', bytes([0]) + register + bytes([0, 1, 0, 0, 16, 0, 0, 0, 1]) + bytes([0, 1, 0xFF, 0xFF, 2, 0, 0, 0, 1])
    yield 'ports', bytes([0]) + port + bytes([1, 2, 0, 0, 31, 0, 0, 0, 2])
    yield 'configuration', bytes([0]) + bytes([2, 0, 0x3D, 8]) + bytes([3, 0, 0x43, 7]) + bytes([2, 0x0F, 0xFE, 8])
    yield 'interrupts', bytes([0]) + bytes([4, 0, 11, 0, 9]) * 3 + bytes([5, 0, 4, 9])
    yield 'messages', bytes([1, 0, 4, 8]) + bytes([4, 3, 4, 7, 4, 8, 11, 0, 9])
    yield 'dma', bytes([0]) + bytes([7, 0, 0x10, 0, 64]) + bytes([6, 0, 0, 8, 64]) + bytes([6, 1, 0x10, 0, 4])
    yield 'timers', bytes([0]) + bytes([8, 3, 0, 50, 8, 1, 0, 20, 9, 3, 8, 17, 0, 1, 11, 1, 0])
    yield 'ports-in-a-large-bar', bytes([2, 3, 2, 12, 2, 0, 3]) + port
    yield 'odd-sizes', bytes([1, 2, 3, 0, 0, 0, 0, 0, 1, 0, 1]) + register
    yield 'capabilities-in-a-loop', bytes([2, 0, 6, 0x40, 0x41, 0x40, 0, 6, 0x40, 0x41, 0x40])


SEEDS = {
    'answers': lambda: drawn(17),
    'calls': lambda: drawn(11),
    'kmt': lambda: drawn(22),
    'device': devices,
    'softgpu': buffers,
}


def main():
    wrong = 0
    for target, seeds in SEEDS.items():
        folder = os.path.join(HERE, target)
        os.makedirs(folder, exist_ok=True)
        for name, data in seeds():
            path = os.path.join(folder, name)
            if '--check' not in sys.argv:
                with open(path, 'wb') as file:
                    file.write(data)
            elif not os.path.exists(path) or open(path, 'rb').read() != data:
                print(f'{path}: not what bytes.py writes')
                wrong = 1
    return wrong


if __name__ == '__main__':
    sys.exit(main())
