#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""policies.py VIDMM [--model wddm1,wddm2] [--sizes 50%,25%] [--policies NAMES] [--limit SECONDS] TRACE...

Replays each recording with each eviction policy and prints a table (Markdown): MiB that were paged into video memory beyond
first uses. First uses are what the same recording pages in with 100 % of the memory. A cell in which no policy pages more
than 16 MiB again is left out. A replay that takes longer than the limit is a dash. One replay runs at a time. The
last line is the geometric mean over the rows with at least 256 MiB of `reference`, as a ratio to it. The exit code is 1 if a
replay found broken rules."""
import math
import sys

import replays

POLICIES = 'lru,clock,mru,predicted,reference'
LEAST_MIB, LEAST_OF_MEAN_MIB = 16, 256


def paged_in(args, path, memory, model, policy):
    """(MiB paged in, exit code) of one replay; None if it did not finish."""
    report = replays.replay(args, path, '--model', model, '--vram', memory, '--policy', policy, '--verify', 'none')
    return report and (report['bytes_paged_in'] / 2**20, report['exit_code'])


def mean(ratios):
    return '%.2f' % math.exp(sum(map(math.log, ratios)) / len(ratios)) if ratios else '-'


def main():
    parser = replays.parser_of(__doc__)
    parser.add_argument('--model', default='wddm1')
    parser.add_argument('--sizes', default='50%,25%')
    parser.add_argument('--policies', default=POLICIES)
    args = parser.parse_args()
    policies, wrong = args.policies.split(','), 0
    ratios = {policy: [] for policy in policies}
    replays.show(['recording', 'model', 'memory'] + policies)
    replays.show(['---'] * (3 + len(policies)))
    for path in args.traces:
        for model in args.model.split(','):
            first = paged_in(args, path, '100%', model, 'lru')
            for memory in args.sizes.split(',') if first else []:
                results = {policy: paged_in(args, path, memory, model, policy) for policy in policies}
                wrong += sum(bool(result) and result[1] != 0 for result in results.values())
                again = {policy: result and max(0, result[0] - first[0]) for policy, result in results.items()}
                known = [mib for mib in again.values() if mib is not None]
                if known and max(known) < LEAST_MIB:
                    continue
                replays.show([replays.name_of(path), model, memory] + ['-' if again[policy] is None else '%.0f' % again[policy] for policy in policies])
                reference = again.get('reference')
                if reference and reference >= LEAST_OF_MEAN_MIB and None not in again.values():
                    for policy in policies:
                        ratios[policy].append(max(again[policy], 1) / reference)
    replays.show(['geometric mean of %d' % len(next(iter(ratios.values()))), '', ''] + [mean(ratios[policy]) for policy in policies])
    return 1 if wrong else 0


if __name__ == '__main__':
    sys.exit(main())
