#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""all_traces.py VIDMM [--sizes 100%,50%,25%] [--verify stamps] [--aperture SIZE|none] [--model wddm1|wddm2] [--budget SECONDS] [--tap]
              [TRACE...]

Replays recordings with less and less video memory and verifies every content; prints a table. Without TRACE: those of
examples/ ($VIDMM_EXAMPLES), then those of $VIDMM_TRACES, smallest first, and the ones named session* once more together.
With a budget no new replay begins after that many seconds."""
import argparse
import glob
import json
import os
import subprocess
import sys
import time

COLUMNS = ('recording', 'memory', 'result', 'paged in', 'paged out', 'evictions', 'renames', 'avoided', 'waits',
           'ranges', 'without', 'splits', 'time')
FORMAT = '%-28s %10s  %-8s %10s %10s %9s %8s %8s %7s %7s %7s %6s %8s'


def size(count):
    for unit in ('B', 'KiB', 'MiB'):
        if count < 1024:
            return '%.4g %s' % (count, unit)
        count /= 1024
    return '%.4g GiB' % count


def traces_in(variable):
    return sorted(glob.glob(os.path.join(os.environ.get(variable, ''), '*.trace.zst')), key=os.path.getsize)


def jobs(args):
    """(name, paths) of each replay."""
    if args.traces:
        return [(os.path.basename(path), [path]) for path in args.traces]
    shipped, more = traces_in('VIDMM_EXAMPLES'), traces_in('VIDMM_TRACES')
    seen = {os.path.basename(path) for path in shipped}
    print('# %d recordings in examples/, %s' % (
        len(shipped), '%d more in $VIDMM_TRACES' % len(more) if more else 'no others at $VIDMM_TRACES'))
    listed = [(os.path.basename(path).replace('.trace.zst', ''), [path])
              for path in shipped + [path for path in more if os.path.basename(path) not in seen]]
    together = [path for path in more if os.path.basename(path).startswith('session')]
    if len(together) > 1:
        listed.append(('%d together' % len(together), together))
    return listed


def replay(args, paths, memory):
    done = subprocess.run([args.vidmm, 'replay', '--json', '--vram', memory, '--aperture', args.aperture, '--model', args.model,
                           '--verify', args.verify, *paths],
                          capture_output=True, text=True)
    try:
        return json.loads(done.stdout), done.stderr
    except ValueError:
        return None, done.stderr or 'exit code %d' % done.returncode


def row(name, memory, report):
    if not report:
        return FORMAT % (name, memory, 'FAILED', *[''] * (len(COLUMNS) - 3))
    return FORMAT % (name, memory, report['status'], size(report['bytes_paged_in']), size(report['bytes_paged_out']),
                     report['evictions'], report['renames'], report['waits_avoided'], report['lock_waits'],
                     report['ranges_acquired'], report['range_fallbacks'], report['splits'],
                     '%.2f s' % (report['wall_ns'] / 1e9))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('vidmm')
    parser.add_argument('traces', nargs='*')
    parser.add_argument('--sizes', default='100%,50%,25%')
    parser.add_argument('--verify', default='stamps')
    parser.add_argument('--aperture', default='1G')
    parser.add_argument('--model', default='wddm1')
    parser.add_argument('--budget', type=float)
    parser.add_argument('--tap', action='store_true')
    args = parser.parse_args()
    note = '# ' if args.tap else ''
    end = time.monotonic() + args.budget if args.budget else None
    done = failed = 0
    left = []
    print(note + FORMAT % COLUMNS)
    for name, paths in jobs(args):
        for memory in args.sizes.split(','):
            if end and time.monotonic() > end:
                left.append('%s %s' % (name, memory))
                continue
            report, messages = replay(args, paths, memory)
            good = bool(report) and report['exit_code'] == 0 and report['verify_errors'] == 0
            done += 1
            failed += not good
            print(note + row(name, memory, report), flush=True)
            for line in messages.splitlines()[:20]:
                print('# ' + line)
            if args.tap:
                print('%s %d - %s at %s' % ('ok' if good else 'not ok', done, name, memory))
    if left:
        print('# left out for want of time: ' + ', '.join(left))
    if args.tap:
        print('1..%d' % done)
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
