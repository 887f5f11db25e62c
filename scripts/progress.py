#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs `meson test` with its output in a file, and shows how far it is.

    progress.py NAME BUILD LOG COMMAND...

On a terminal one line has the build's name, tests done and in total, failures, the time since the start and the test that
finished last. Elsewhere it prints a line for each failed test and for each tenth of the tests. It exits with the status
of the command.

It also prints the call stacks of test programs that have run for LONG_S seconds, once for each process. That fails no test:
it says where a hanging program hangs before a limit of time ends the run.
"""

import os
import re
import subprocess
import sys
import threading
import time

import hangs

LONG_S = 1200

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


def watch(build, done, interval_s=60, long_s=LONG_S):
    """Prints what long-running test programs do, until the event `done` is set."""
    shown = set()
    while not done.wait(interval_s):
        pids, text = hangs.report(build, long_s, shown)
        shown.update(pids)
        sys.stdout.write(text)
        sys.stdout.flush()


def main(arguments):
    name, build, log = arguments[:3]
    done = threading.Event()
    progress = Progress(name, sys.stdout.isatty())
    with open(log, 'w', encoding='utf-8') as out, subprocess.Popen(
            arguments[3:], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors='replace',
            env={**os.environ, 'PYTHONUNBUFFERED': '1'}) as run:
        threading.Thread(target=watch, args=(build, done), daemon=True).start()
        for line in run.stdout:
            out.write(line)
            out.flush()
            sys.stdout.write(progress.line(line))
            sys.stdout.flush()
        done.set()
        sys.stdout.write(progress.end())
    return run.returncode


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
