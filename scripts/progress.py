#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs `meson test` with its output in a file, and shows how far it is.

    progress.py NAME LOG COMMAND...

On a terminal one line has the build's name, tests done and in total, failures, the time since the start and the test that
finished last. Elsewhere it prints a line for each failed test and for each tenth of the tests. It exits with the status
of the command.
"""

import os
import re
import subprocess
import sys
import time

# " 3/301 vidmm:tidy / measures          OK              8.55s   31 subtests passed"
DONE = re.compile(r'^\s*(\d+)/(\d+) (.*?)\s+(OK|FAIL|ERROR|TIMEOUT|SKIP|EXPECTEDFAIL|UNEXPECTEDPASS|INTERRUPT|IGNORED)\s+[\d.]+\s?s')
GOOD = ('OK', 'SKIP', 'EXPECTEDFAIL', 'IGNORED')


class Progress:
    """The text to print after each line of meson's output."""

    def __init__(self, name, terminal, clock=time.monotonic):
        self.name, self.terminal, self.clock = name, terminal, clock
        self.start, self.failed, self.tenths = clock(), 0, 0

    def elapsed(self):
        seconds = int(self.clock() - self.start)
        return f'{seconds // 60}:{seconds % 60:02}'

    def line(self, text):
        match = DONE.match(text)
        if not match:
            return ''
        done, total, bad = int(match[1]), int(match[2]), match[4] not in GOOD
        test = match[3].split(' / ')[-1]
        self.failed += bad
        state = f'{self.name}: {done}/{total} tests, {self.failed} failed, {self.elapsed()}'
        if self.terminal:
            keep = f'{self.name}: {match[4]} {test}\n' if bad else ''
            return f'\r\033[K{keep}{state}  {test}'
        tenths = done * 10 // max(total, 1)
        passed, self.tenths = tenths > self.tenths, max(tenths, self.tenths)
        return (f'{self.name}: {match[4]} {test}\n' if bad else '') + (f'{state}\n' if passed else '')

    def end(self):
        return '\r\033[K' if self.terminal else ''


def main(arguments):
    name, log = arguments[:2]
    progress = Progress(name, sys.stdout.isatty())
    with open(log, 'w', encoding='utf-8') as out, subprocess.Popen(
            arguments[2:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
            env={**os.environ, 'PYTHONUNBUFFERED': '1'}) as run:
        for line in run.stdout:
            out.write(line)
            sys.stdout.write(progress.line(line))
            sys.stdout.flush()
        sys.stdout.write(progress.end())
    return run.returncode


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
