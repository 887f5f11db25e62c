#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_picture.py VIDMM: `vidmm picture` writes a PNG file of the picture that was drawn. TAP."""
import struct
import subprocess
import sys
import zlib

VIDMM = sys.argv[1]
SPRITE_Y = 360 // 2 - 32


def run(*args):
    return subprocess.run([VIDMM, 'picture', *args], capture_output=True, check=False)


def chunks(data):
    at = 8
    while at < len(data):
        size, kind = struct.unpack_from('>I4s', data, at)
        body = data[at + 8:at + 8 + size]
        assert struct.unpack_from('>I', data, at + 8 + size)[0] == zlib.crc32(kind + body), kind
        yield kind, body
        at += size + 12


def decode(data):
    assert data[:8] == b'\x89PNG\r\n\x1a\n'
    parts = dict(chunks(data))
    assert list(parts) == [b'IHDR', b'IDAT', b'IEND'], list(parts)
    width, height, *form = struct.unpack('>IIBBBBB', parts[b'IHDR'])
    assert form == [8, 2, 0, 0, 0], form
    raw = zlib.decompress(parts[b'IDAT'])
    row = width * 3 + 1
    assert len(raw) == row * height and not any(raw[y * row] for y in range(height))
    return width, height, lambda x, y: tuple(raw[y * row + 1 + x * 3:y * row + 4 + x * 3])


def frame(number):
    done = run('-', str(number))
    assert done.returncode == 0 and not done.stderr, done
    return done.stdout


def cases():
    width, height, pixel = decode(frame(1))
    yield 'its size', (width, height) == (640, 360)
    yield 'bars from left to right', [pixel(640 * i // 7 + 70, 0) for i in range(7)] == [
        (192, 192, 192), (192, 192, 0), (0, 192, 192), (0, 192, 0), (192, 0, 192), (192, 0, 0), (0, 0, 192)]
    yield 'the sprite, at twice its size', [pixel(x, y) for x, y in ((0, SPRITE_Y), (63, SPRITE_Y), (63, SPRITE_Y + 63))] \
        == [(255, 0, 0), (255, 255, 0), (255, 255, 255)] and pixel(0, SPRITE_Y - 1) == (192, 192, 192)
    _, _, later = decode(frame(6))
    yield 'it has moved by the sixth frame', later(5 * 24, SPRITE_Y) == (255, 0, 0) and later(0, SPRITE_Y) == (192, 192, 192)
    yield 'the same frame is the same file', frame(6) == frame(6)
    yield 'wrong usage', all(run(*args).returncode == 2 for args in ((), ('-', '0'), ('-', 'x'), ('-', '1', '2')))
    yield 'a file that cannot be written', run('/nowhere/picture.png').returncode == 4


def main():
    results = list(cases())
    print(f'1..{len(results)}')
    for number, (name, good) in enumerate(results, 1):
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good in results) else 1


if __name__ == '__main__':
    sys.exit(main())
