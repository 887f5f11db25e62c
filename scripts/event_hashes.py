#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares the event hashes of recordings between builds of vidmm: a refactoring changes none.

    event_hashes.py [--vram=50%] [--option=--seed=1]... VIDMM[,VIDMM...] RECORDING...

Plays each recording with each program, on the simulator, and prints a row: the recording and a hash for each program.
Fails if a row has two hashes or a replay fails. `vidmm replay --events=FILE` shows which event differs.
"""
import argparse
import json
import os
import subprocess
import sys


def event_hash(vidmm, options, recording):
    done = subprocess.run([vidmm, 'replay', '--quiet', '--json', *options, recording], stdout=subprocess.PIPE, text=True,
                          check=False)
    return json.loads(done.stdout)['event_hash'] if done.returncode == 0 else f'exit code {done.returncode}'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--vram', default='50%', metavar='SIZE', help='video memory (default: %(default)s)')
    parser.add_argument('--option', action='append', default=[], help='further option of vidmm replay')
    parser.add_argument('programs', metavar='VIDMM[,VIDMM...]')
    parser.add_argument('recordings', nargs='+', metavar='RECORDING')
    wanted = parser.parse_args()
    options, right = ['--vram', wanted.vram, *wanted.option], True
    for recording in wanted.recordings:
        hashes = [event_hash(vidmm, options, recording) for vidmm in wanted.programs.split(',')]
        same = len(set(hashes)) == 1 and hashes[0].startswith('0x')
        name = os.path.basename(recording).split('.trace')[0]
        print(f'{name:24}', *hashes, '' if same else '<--', flush=True)
        right &= same
    return 0 if right else 1


if __name__ == '__main__':
    sys.exit(main())
