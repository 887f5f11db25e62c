#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Says what test programs of a build do that run for unusually long.

    hangs.py BUILD [SECONDS]    every process of a program in the folder BUILD that is at least SECONDS old (default 0)

For each process: its id, age and command line, then the call stack of each thread (gdb), or without gdb what the
kernel says of each thread.
"""

import os
import shutil
import subprocess
import sys

TICKS = os.sysconf('SC_CLK_TCK')
STACK_S = 120  # for gdb to read the symbols of a sanitizer build on a busy machine


def read(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as file:
            return file.read()
    except OSError:
        return ''


def stat_fields(path):
    """The fields of a stat file from the state on. They follow the name, which may contain spaces."""
    return read(path).rpartition(')')[2].split()


def age_s(pid):
    """Seconds since the process started, or -1 if it has ended."""
    fields = stat_fields(f'/proc/{pid}/stat')
    return float(read('/proc/uptime').split()[0]) - int(fields[19]) / TICKS if len(fields) > 19 else -1


def command(pid):
    return read(f'/proc/{pid}/cmdline').replace('\0', ' ').strip()


def old_processes(build, seconds):
    """Ids of the processes whose program is in the folder and that are that old, oldest first."""
    found, inside = [], os.path.realpath(build) + os.sep
    for pid in filter(str.isdigit, os.listdir('/proc')):
        try:
            program = os.readlink(f'/proc/{pid}/exe')
        except OSError:
            continue
        age = age_s(pid)
        if program.startswith(inside) and age >= seconds:
            found.append((age, pid))
    return [pid for _, pid in sorted(found, reverse=True)]


def threads(pid):
    """What the kernel says of each thread: name, state, function in which it sleeps."""
    folder, lines = f'/proc/{pid}/task', []
    for thread in sorted(os.listdir(folder)) if os.path.isdir(folder) else ():
        own = f'{folder}/{thread}'
        state = (stat_fields(f'{own}/stat') or ['gone'])[0]
        lines.append(f'thread {thread} {read(f"{own}/comm").strip()}: state {state}, in {read(f"{own}/wchan") or "?"}\n')
    return ''.join(lines)


def stacks(pid):
    if not shutil.which('gdb'):
        return ''
    try:
        run = subprocess.run(['gdb', '-nx', '-batch', '-p', pid, '-ex', 'set pagination off', '-ex', 'thread apply all bt 40'],
                             stdin=subprocess.DEVNULL, capture_output=True, text=True, errors='replace', timeout=STACK_S,
                             check=False)
    except subprocess.TimeoutExpired:
        return 'gdb did not answer\n'
    lines = [line for line in run.stdout.split('\n') if line.startswith(('#', 'Thread '))]
    return '\n'.join(lines or run.stderr.split('\n')) + '\n'


def report(build, seconds=0, skip=()):
    """(ids, text) of the old processes that are not to be skipped."""
    pids = [pid for pid in old_processes(build, seconds) if pid not in skip]
    return pids, ''.join(f'== {pid}, {age_s(pid):.0f} s old: {command(pid)}\n{threads(pid)}{stacks(pid)}' for pid in pids)


def main(arguments):
    print(report(arguments[0], float(arguments[1]) if len(arguments) > 1 else 0)[1], end='')


if __name__ == '__main__':
    main(sys.argv[1:])
