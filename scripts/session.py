#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares recordings played in one process with separate processes against one host.

    session.py [--sizes=100,50,25] [--rounds=N] VIDMM RECORDING...

Sizes of video memory are percentages of the peak of the programs' live buffers. For each size, the
recordings are played in one process, then each in a separate process against a `vidmm serve` of the
same size. Contents are verified in both (--verify stamps). Prints a table. Fails if a content was
wrong, a run failed, or nothing was verified.
"""
import argparse
import json
import os
import subprocess
import sys
import tempfile

HOW = ['--gpu-time', 'none', '--verify', 'stamps', '--json']
APERTURE = 4 << 30


def replay(vidmm, args):
    """The JSON report and '', or None and the reason."""
    done = subprocess.run([vidmm, 'replay', *HOW, *args], capture_output=True, text=True, check=False)
    if done.returncode:
        why = done.stderr.strip() or 'contents were wrong'
        return None, 'ended with exit code %d: %s' % (done.returncode, why)
    return json.loads(done.stdout), ''


def through_host(vidmm, vram_bytes, recordings):
    with tempfile.TemporaryDirectory() as folder:
        config, socket = os.path.join(folder, 'config.json'), os.path.join(folder, 'socket')
        adapter = {'driver': 'softgpu', 'bars': [vram_bytes], 'settings': {'ApertureSize': APERTURE, 'Model': 'wddm1'}}
        with open(config, 'w', encoding='utf-8') as file:
            json.dump({'adapters': [adapter]}, file)
        with subprocess.Popen([vidmm, 'serve', '--quiet', '--config', config, '--socket', socket],
                              stderr=subprocess.PIPE, text=True) as host:
            line = host.stderr.readline()
            if 'serves' not in line:
                return None, line.strip()
            report = replay(vidmm, ['--socket', socket, *recordings])
            host.terminate()
            host.communicate()
        return report if host.returncode == 0 else (None, 'the host ended with exit code %d' % host.returncode)


def compare(vidmm, percent, recordings):
    """A row of the table, and whether both runs were verified without errors."""
    local, why = replay(vidmm, ['--vram', '%d%%' % percent, '--aperture', str(APERTURE), *recordings])
    if not local:
        return '%4d %%  in one process: %s' % (percent, why), False
    remote, why = through_host(vidmm, local['vram_bytes'], recordings)
    start = '%4d %%  %9.1f MiB  %12.1f' % (percent, local['vram_bytes'] / 2**20, local['wall_ns'] / 1e9)
    if not remote:
        return '%s  through the host: %s' % (start, why), False
    errors = local['verify_errors'] + remote['verify_errors']
    row = '%s  %12.1f  %5.2f  %8d/%8d  %6d' % (
        start, remote['wall_ns'] / 1e9, local['wall_ns'] / max(remote['wall_ns'], 1),
        remote['blocks_checked'], local['blocks_checked'], errors)
    # The counts may differ: content of a discarded offer or of a tiled buffer without a swizzling
    # range is not checked, and timing decides which buffers that concerns.
    return row, not errors and remote['blocks_checked'] > 0 and local['blocks_checked'] > 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument('--sizes', default='100,50,25')
    parser.add_argument('--rounds', type=int, default=1)
    parser.add_argument('vidmm')
    parser.add_argument('recordings', nargs='+')
    options = parser.parse_args()
    right = True
    print('  size          memory  in process/s    via host/s  ratio    blocks checked  errors',
          flush=True)
    for percent in [int(size) for size in options.sizes.split(',')] * options.rounds:
        row, good = compare(options.vidmm, percent, options.recordings)
        print(row + ('' if good else '  <--'), flush=True)
        right &= good
    return 0 if right else 1


if __name__ == '__main__':
    sys.exit(main())
