#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""scripts/session.py [--seconds=N] [--sizes=100,50,25] [--rounds=N] VIDMM RECORDING...: recordings as programs of their own against one host.

For each amount of video memory, in percent of what the programs have alive at most: the recordings in one process, then each in a process
of its own against a `vidmm serve` with as much. Contents are checked (--verify stamps) in both; a run may take that many seconds (default
600). Prints a table; fails if a content was wrong, a run did not end well, or nothing was checked.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HOW = ['--gpu-time', 'none', '--verify', 'stamps', '--json']
APERTURE = 4 << 30


def replay(vidmm, seconds, args):
    """The report, or why there is none."""
    try:
        done = subprocess.run([vidmm, 'replay', *HOW, *args], capture_output=True, text=True, check=False, timeout=seconds)
    except subprocess.TimeoutExpired:
        return None, 'has not ended after %d s' % seconds
    if done.returncode:
        return None, 'ended with %d: %s' % (done.returncode, done.stderr.strip() or 'contents were wrong')
    return json.loads(done.stdout), ''


def through_host(vidmm, seconds, vram_bytes, recordings):
    with tempfile.TemporaryDirectory() as folder:
        config, socket = os.path.join(folder, 'config.json'), os.path.join(folder, 'socket')
        with open(config, 'w', encoding='utf-8') as file:
            json.dump({'adapters': [{'driver': 'softgpu', 'bars': [vram_bytes], 'settings': {'ApertureSize': APERTURE}}]}, file)
        with subprocess.Popen([vidmm, 'serve', '--quiet', '--config', config, '--socket', socket], stderr=subprocess.PIPE, text=True) as host:
            line = host.stderr.readline()
            if 'serves' not in line:
                return None, line.strip()
            report = replay(vidmm, seconds, ['--socket', socket, *recordings])
            host.terminate()
            try:
                host.communicate(timeout=seconds)
            except subprocess.TimeoutExpired:
                host.kill()
                return None, 'the host did not end when told to'
        return report if host.returncode == 0 else (None, 'the host ended with %d' % host.returncode)


def compare(vidmm, seconds, percent, recordings):
    """One row, and whether it is as it should be."""
    here, why = replay(vidmm, seconds, ['--vram', '%d%%' % percent, '--aperture', str(APERTURE), *recordings])
    if not here:
        return '%4d %%  in one process: %s' % (percent, why), False
    there, why = through_host(vidmm, seconds, here['vram_bytes'], recordings)
    start = '%4d %%  %9.1f MiB  %12.1f' % (percent, here['vram_bytes'] / 2**20, here['wall_ns'] / 1e9)
    if not there:
        return '%s  through the host: %s' % (start, why), False
    errors = here['verify_errors'] + there['verify_errors']
    row = '%s  %12.1f  %5.2f  %8d/%8d  %6d' % (start, there['wall_ns'] / 1e9, here['wall_ns'] / max(there['wall_ns'], 1), there['blocks_checked'],
                                              here['blocks_checked'], errors)
    # Not all the same: what was offered and taken, or is seen through no swizzling range, is not checked, and which that is depends on when.
    return row, not errors and there['blocks_checked'] > 0 and here['blocks_checked'] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--seconds', type=int, default=600)
    parser.add_argument('--sizes', default='100,50,25')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('vidmm')
    parser.add_argument('recordings', nargs='+')
    options = parser.parse_args()
    right = True
    print('  size          memory  in process/s    via host/s  ratio    blocks checked  errors', flush=True)
    for percent in [int(size) for size in options.sizes.split(',')] * options.rounds:
        row, good = compare(options.vidmm, options.seconds, percent, options.recordings)
        print(row + ('' if good else '  <--'), flush=True)
        right &= good
    return 0 if right else 1


if __name__ == '__main__':
    sys.exit(main())
