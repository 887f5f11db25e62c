#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the event hashes of runs between builds of vidmm: neither a refactoring nor a compiler changes one.

    event_hashes.py [--vram=50%] [--option=--seed=1]... [--seeds=N] [--steps=N] [--log=FILE] VIDMM[,VIDMM...] [RECORDING...]

Plays each recording with each program, runs N seeds of `vidmm sim`, and prints a row for each: its name and a hash of each
program. Fails if a row has two hashes or a run fails. `vidmm replay --events=FILE` shows which event differs. --log writes
the result as a test log of Meson, which scripts/suite.py adds up.
"""

import argparse
import json
import os
import re
import subprocess
import sys


SEED = re.compile(r'^seed (\d+): event hash ([0-9a-f]{16})$', re.M)


def run(*command):
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=False)


def replay_hash(vidmm, options, recording):
    done = run(vidmm, 'replay', '--quiet', '--json', *options, recording)
    return json.loads(done.stdout)['event_hash'] if done.returncode == 0 else f'exit code {done.returncode}'


def sim_hashes(vidmm, seeds, steps):
    """The hash of each seed; a run that fails has none for the seed that failed and those behind it."""
    done = run(vidmm, 'sim', f'--seeds={seeds}', f'--steps={steps}')
    found = {int(seed): '0x' + number for seed, number in SEED.findall(done.stdout)}
    return [found.get(seed, f'exit code {done.returncode}') for seed in range(1, seeds + 1)]


def compare(wanted):
    """(name, [hash of each program]) of each recording and seed."""
    programs = wanted.programs.split(',')
    options = ['--vram', wanted.vram, *wanted.option]
    for recording in wanted.recordings:
        name = os.path.basename(recording).split('.trace')[0]
        yield name, [replay_hash(vidmm, options, recording) for vidmm in programs]
    seeds = zip(*(sim_hashes(vidmm, wanted.seeds, wanted.steps) for vidmm in programs))
    yield from ((f'seed {seed}', list(hashes)) for seed, hashes in enumerate(seeds, 1))


def same(hashes):
    return len(set(hashes)) == 1 and hashes[0].startswith('0x')


def write_log(path, rows):
    lines = [f'1..{len(rows)}']
    for number, (name, hashes) in enumerate(rows, 1):
        if not same(hashes):
            lines.append(f'# {name}: ' + ' '.join(hashes))
        lines.append(f'{"" if same(hashes) else "not "}ok {number} - {name}: one event hash')
    result = 'OK' if all(same(hashes) for _, hashes in rows) else 'FAIL'
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, 'w', encoding='utf-8') as log:
        log.write(json.dumps({'name': 'event hashes', 'result': result, 'stdout': '\n'.join(lines) + '\n'}) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--vram', default='50%', metavar='SIZE', help='video memory (default: %(default)s)')
    parser.add_argument('--option', action='append', default=[], help='further option of vidmm replay')
    parser.add_argument('--seeds', type=int, default=0, metavar='N', help='seeds of vidmm sim (default: %(default)s)')
    parser.add_argument('--steps', type=int, default=5000, metavar='N', help='steps of a seed (default: %(default)s)')
    parser.add_argument('--log', metavar='FILE', help='write a test log of Meson')
    parser.add_argument('programs', metavar='VIDMM[,VIDMM...]')
    parser.add_argument('recordings', nargs='*', metavar='RECORDING')
    wanted, rows = parser.parse_args(), []
    for name, hashes in compare(wanted):
        print(f'{name:24}', *hashes, '' if same(hashes) else '<--', flush=True)
        rows.append((name, hashes))
    if wanted.log:
        write_log(wanted.log, rows)
    return 0 if rows and all(same(hashes) for _, hashes in rows) else 1


if __name__ == '__main__':
    sys.exit(main())
