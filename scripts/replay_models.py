#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""replay_models.py VIDMM [--sizes 100%,50%,25%] [--verify stamps] [--limit SECONDS] TRACE...

Replays each recording with the driver of WDDM 1.x and that of WDDM 2.x, and prints one table (Markdown) of the bytes that
were paged in and out of video memory. A replay that takes longer than the limit is a dash. The exit code is 1 if a
replay found wrong contents or broken rules."""
import argparse
import json
import os
import subprocess
import sys

MODELS = ('wddm1', 'wddm2')
HEAD = ('recording', 'memory', '1.x in', '1.x out', '2.x in', '2.x out', '2.x trimmed', '2.x over budget')


def size(count):
    return '%.0f MiB' % (count / 2**20) if count < 10 * 2**30 else '%.1f GiB' % (count / 2**30)


def replay(args, path, memory, model):
    """The report of one replay, None if it did not finish."""
    try:
        done = subprocess.run([args.vidmm, 'replay', '--json', '--model', model, '--vram', memory, '--verify', args.verify, path],
                              capture_output=True, text=True, timeout=args.limit)
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return None


def row(name, memory, reports):
    cells = [name, memory]
    for model in MODELS:
        report = reports[model]
        cells += [size(report['bytes_paged_in']), size(report['bytes_paged_out'])] if report else ['-', '-']
    second = reports['wddm2']
    cells += [str(second['driver_trimmed']), str(second['driver_over_budget'])] if second else ['-', '-']
    return '| ' + ' | '.join(cells) + ' |'


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('vidmm')
    parser.add_argument('traces', nargs='+')
    parser.add_argument('--sizes', default='100%,50%,25%')
    parser.add_argument('--verify', default='stamps')
    parser.add_argument('--limit', type=float, default=300)
    args = parser.parse_args()
    wrong = 0
    print('| ' + ' | '.join(HEAD) + ' |')
    print('|' + ' --- |' * len(HEAD))
    for path in args.traces:
        for memory in args.sizes.split(','):
            reports = {model: replay(args, path, memory, model) for model in MODELS}
            wrong += sum(bool(report) and report['exit_code'] != 0 for report in reports.values())
            print(row(os.path.basename(path).replace('.trace.zst', ''), memory, reports), flush=True)
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
