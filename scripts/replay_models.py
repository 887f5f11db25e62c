#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""replay_models.py VIDMM [--sizes 100%,50%,25%] [--policy predicted] [--verify stamps] [--limit SECONDS] TRACE...

Replays each recording with the driver of WDDM 1.x and that of WDDM 2.x, and prints one table (Markdown) of the bytes that
were paged in and out of video memory. A replay that takes longer than the limit is a dash. The exit code is 1 if a
replay found wrong contents or broken rules."""
import sys

import replays

MODELS = ('wddm1', 'wddm2')
HEAD = ('recording', 'memory', '1.x in', '1.x out', '2.x in', '2.x out', '2.x trimmed', '2.x over budget')


def size(count):
    return '%.0f MiB' % (count / 2**20) if count < 10 * 2**30 else '%.1f GiB' % (count / 2**30)


def row(name, memory, reports):
    cells = [name, memory]
    for model in MODELS:
        report = reports[model]
        cells += [size(report['bytes_paged_in']), size(report['bytes_paged_out'])] if report else ['-', '-']
    second = reports['wddm2']
    cells += [str(second['driver_trimmed']), str(second['driver_over_budget'])] if second else ['-', '-']
    return cells


def main():
    parser = replays.parser_of(__doc__)
    parser.add_argument('--sizes', default='100%,50%,25%')
    parser.add_argument('--policy', default='predicted')
    parser.add_argument('--verify', default='stamps')
    args = parser.parse_args()
    wrong = 0
    replays.show(HEAD)
    replays.show(['---'] * len(HEAD))
    for path in args.traces:
        for memory in args.sizes.split(','):
            options = ('--vram', memory, '--policy', args.policy, '--verify', args.verify)
            reports = {model: replays.replay(args, path, '--model', model, *options) for model in MODELS}
            wrong += sum(bool(report) and report['exit_code'] != 0 for report in reports.values())
            replays.show(row(replays.name_of(path), memory, reports))
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
