#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""policies.py VIDMM [--model wddm1] [--percent 5,10,25,50] [--policies NAMES] [--limit SECONDS] TRACE...

Replays each recording with each eviction policy and prints a table (Markdown): MiB that were paged into video memory again,
by bytes alone (`vidmm replay --by-bytes`) and in the replay, separated by a slash. The memory is S + P % of (L - S). S is what
the largest submission needs, L the peak of live buffers. A cell in which no policy pages more than 16 MiB again is left out.
A replay that takes longer than the limit is a dash. One replay runs at a time. The last line is the geometric mean over
the rows in which `reference` pages at least 256 MiB by bytes alone, as a ratio to that. The exit code is 1 if a replay
found broken rules."""
import math
import sys

import replays

POLICIES = 'lru,predicted,reference'
LEAST_MIB, LEAST_OF_MEAN_MIB = 16, 256


def bytes_of(args, path, memory):
    report = replays.replay(args, path, '--vram', memory, '--content', 'none', '--gpu-time', 'none')
    return report and report['vram_bytes']


def paged_again(args, path, memory, policy):
    """(MiB by bytes alone, MiB in the replay, exit code); None if it did not finish."""
    content = ['--content', 'none'] if args.model == 'wddm1' else []
    report = replays.replay(args, path, '--model', args.model, '--vram', str(memory), '--policy', policy, '--by-bytes', *content)
    return report and (report['paged_in']['again_by_bytes'] / 2**20, report['paged_in']['again'] / 2**20, report['exit_code'])


def mean(ratios):
    return '%.2f' % math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else '-'


def main():
    parser = replays.parser_of(__doc__)
    parser.add_argument('--model', default='wddm1')
    parser.add_argument('--percent', default='5,10,25,50')
    parser.add_argument('--policies', default=POLICIES)
    args = parser.parse_args()
    policies, wrong = args.policies.split(','), 0
    ratios = {policy: ([], []) for policy in policies}
    replays.show(['recording', 'memory'] + policies)
    replays.show(['---'] * (2 + len(policies)))
    for path in args.traces:
        least, most = (bytes_of(args, path, memory) for memory in ('100%largest', '100%'))
        for percent in args.percent.split(',') if least and most else []:
            memory = least + int(float(percent) * max(0, most - least) / 100 / 4096) * 4096
            results = {policy: paged_again(args, path, memory, policy) for policy in policies}
            wrong += sum(bool(result) and result[2] != 0 for result in results.values())
            if max((max(result[:2]) for result in results.values() if result), default=0) < LEAST_MIB:
                continue
            replays.show([replays.name_of(path), '%s %%, %.0f MiB' % (percent, memory / 2**20)] +
                         ['%.0f / %.0f' % results[policy][:2] if results[policy] else '-' for policy in policies])
            reference = results.get('reference')
            if reference and reference[0] >= LEAST_OF_MEAN_MIB and None not in results.values():
                for policy in policies:
                    for kind in range(2):
                        ratios[policy][kind].append(max(results[policy][kind], 1) / reference[0])
    replays.show(['geometric mean of %d' % len(ratios[policies[0]][0]), ''] + ['%s / %s' % tuple(map(mean, ratios[policy])) for policy in policies])
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
