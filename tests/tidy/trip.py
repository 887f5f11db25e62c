#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what two operations call: a warm pfnRenderCb until its DMA buffer has retired, and a CPU lock on its fast path.

    trip.py [--list] [--update]    compare the numbers with their rows in measures.tsv

--list prints each module with its calls; --update writes numbers that are better than their rows. The program trip/trip.c
is built in build/trip, where every function reports its calls. A function's module is the folder of its source file,
with the folders of its tiers.
"""

import collections
import os
import subprocess
import sys

import measures
import structure

ROOT = os.path.dirname(os.path.dirname(measures.HERE))
BUILD = os.path.join(ROOT, 'build/trip')
PROGRAM = 'tests/tidy/trip/trip'


def build():
    """Only a failed command prints its output."""
    setup = [] if os.path.exists(os.path.join(BUILD, 'build.ninja')) else [
        ['meson', 'setup', BUILD, ROOT, '-Dc_args=-finstrument-functions']]
    for command in setup + [['ninja', '-C', BUILD, PROGRAM]]:
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            sys.exit(run.stdout + run.stderr)


def record():
    """operation -> the offsets of the functions that it called, in order."""
    output = subprocess.run([os.path.join(BUILD, PROGRAM)], capture_output=True, text=True, check=True).stdout
    return {words[0]: words[1:] for words in map(str.split, output.splitlines())}


def locate(offsets):
    """offset -> (function, source path in the tree)."""
    unique = sorted(set(offsets))
    text = subprocess.run(['addr2line', '-f', '-e', os.path.join(BUILD, PROGRAM), *unique], capture_output=True,
                          text=True, check=True).stdout.splitlines()
    return {offset: (name, os.path.relpath(os.path.join(BUILD, line.split(':')[0]), ROOT))
            for offset, name, line in zip(unique, text[::2], text[1::2])}


def module_of(path):
    return '/'.join(path.split('/')[:3 if path.startswith('src/doors/') else 2])


def count(trace):
    """(calls, functions, switches) of a list of (function, path); a switch is a call in another module than the call before."""
    modules = [module_of(path) for _, path in trace]
    return len(trace), len(set(trace)), sum(one != other for one, other in zip(modules, modules[1:]))


def main(arguments):
    build()
    calls = record()
    places = locate(offset for offsets in calls.values() for offset in offsets)
    traces = {operation: [places[offset] for offset in offsets] for operation, offsets in calls.items()}
    if '--list' in arguments:
        for operation, trace in traces.items():
            for module, number in collections.Counter(module_of(path) for _, path in trace).most_common():
                print(f'{operation}: {number} calls in {module}')
    numbers = dict(zip(structure.TRIP, [*count(traces['render']), len(traces['lock'])]))
    with open(measures.TABLE, encoding='utf-8') as table:
        text = table.read()
    rows = [row for row in measures.read_rows(text) if row.name in numbers]
    for row in rows:
        print(f'{row.name:76} {numbers[row.name]:>6} {row.limit:>6}  {row.goal}')
    if '--update' in arguments:
        with open(measures.TABLE, 'w', encoding='utf-8') as table:
            table.write(measures.updated(text, {name: (number, []) for name, number in numbers.items()}))
    return any(row.better(numbers[row.name]) < 0 for row in rows)


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
