#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Counts what two operations call: a warm pfnRenderCb until its DMA buffer has retired, and a CPU lock on its fast path. Both
run in the simulator, where each event is stamped and hashed; the lock also on a host of real time, where events without
subscribers are only counted.

    trip.py [--list] [--update]    compare the numbers with their rows in measures.tsv

--list prints each module and each function with its calls; --update writes numbers that are better than their rows. The
program trip/trip.c is built in build/trip, where every function reports its calls. A function's module is the folder of
its source file, with the folders of its tiers.

Only functions of the library count: those whose source is in src or is generated there. The miniport and the inline
functions of include/wddm that it calls are a driver's cost, which another driver does not have.
"""

import collections
import os
import shutil
import subprocess
import sys

import measures
import structure

ROOT = os.path.dirname(os.path.dirname(measures.HERE))
BUILD = os.path.join(ROOT, 'build/trip')
PROGRAM = 'tests/tidy/trip/trip'
# The release configuration is the one that users run: debug asserts such as vmm_assert_held call nothing there. Link-time
# optimization would move functions between files. addr2line needs -g. With DWARF 5 it names a wrong file for some inline
# functions of headers. The compiler cache keeps the folder of another checkout in the debug information, unless the
# paths are relative.
SETUP = ['meson', 'setup', BUILD, ROOT, '--buildtype=release', '-Db_lto=false',
         f'-Dc_args=-finstrument-functions -gdwarf-4 -fdebug-prefix-map={BUILD}=.']
# Holds SETUP once it has succeeded. A folder that was set up with other options is replaced.
STAMP = os.path.join(BUILD, 'trip_setup')


def run(command):
    """Only a failed command prints its output."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def is_set_up():
    try:
        with open(STAMP, encoding='utf-8') as stamp:
            return stamp.read() == '\n'.join(SETUP)
    except FileNotFoundError:
        return False


def build():
    if not is_set_up():
        shutil.rmtree(BUILD, ignore_errors=True)
        run(SETUP)
        with open(STAMP, 'w', encoding='utf-8') as stamp:
            stamp.write('\n'.join(SETUP))
    run(['ninja', '-C', BUILD, PROGRAM])


def record():
    """operation -> the offsets of the functions that it called, in order."""
    output = subprocess.run([os.path.join(BUILD, PROGRAM)], capture_output=True, text=True, check=True).stdout
    return {words[0]: words[1:] for words in map(str.split, output.splitlines())}


def locate(offsets):
    """offset -> (function, source path in the tree; of a generated source its path in the build folder)."""
    unique = sorted(set(offsets))
    text = subprocess.run(['addr2line', '-f', '-e', os.path.join(BUILD, PROGRAM), *unique], capture_output=True,
                          text=True, check=True).stdout.splitlines()
    paths = [os.path.normpath(os.path.join(BUILD, line.split(':')[0])) for line in text[1::2]]
    return {offset: (name, os.path.relpath(path, BUILD if path.startswith(BUILD + os.sep) else ROOT))
            for offset, name, path in zip(unique, text[::2], paths)}


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
    traces = {operation: [places[offset] for offset in offsets if places[offset][1].startswith('src/')]
              for operation, offsets in calls.items()}
    if '--list' in arguments:
        for operation, trace in traces.items():
            for module, number in collections.Counter(module_of(path) for _, path in trace).most_common():
                print(f'{operation}: {number} calls in {module}')
            for (function, path), number in collections.Counter(trace).most_common():
                print(f'{operation}: {number} calls of {function} in {path}')
    numbers = dict(zip(structure.TRIP, [*count(traces['render']), len(traces['lock']), len(traces['lock_real_time'])]))
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
