#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares two builds of the benchmarks, which run in turns: the ratio of each case's times.

    against.py [--pairs=N] [--only=TEXT] [--rounds=N] [--round-us=N] [--json] NEW OLD

NEW: vidmm-bench. OLD: another vidmm-bench, a folder of a release build, or a commit, which is built in build/against. A row
has the ratio new / old of the times: the median of the pairs of runs, the smallest and the largest. A case is marked if its
median is above 1.03 and no pair says that it became faster: it has become slower. Exit code 1 if there is such a case.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SLOWER = 1.03


def build_commit(name):
    """The benchmarks of a commit, built from its files alone."""
    found = subprocess.run(['git', '-C', ROOT, 'rev-parse', '--verify', '--quiet', name + '^{commit}'], stdout=subprocess.PIPE,
                           text=True, check=False)
    commit = found.stdout.strip()
    if found.returncode:
        sys.exit(f'against: {name} is neither a program, nor a folder of a build, nor a commit')
    source = os.path.join(ROOT, 'build', 'against', commit)
    if not os.path.isfile(os.path.join(source, 'x')):
        os.makedirs(source, exist_ok=True)
        archive = subprocess.run(['git', '-C', ROOT, 'archive', commit], stdout=subprocess.PIPE, check=True).stdout
        subprocess.run(['tar', '-x', '-C', source], input=archive, check=True)
    subprocess.run(['./x', 'build', 'release', 'bench/vidmm-bench'], cwd=source, stdout=sys.stderr, check=True)
    return os.path.join(source, 'build/release/bench/vidmm-bench')


def program_of(name):
    for path in (name, os.path.join(name, 'vidmm-bench'), os.path.join(name, 'bench/vidmm-bench')):
        if os.path.isfile(path):
            return os.path.abspath(path)
    return build_commit(name)


def times(program, options):
    """Time of an operation of each case, without a unit; cases that were skipped have none."""
    done = subprocess.run([program, '--json', *options], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        sys.exit(f'against: {program} ends with exit code {done.returncode}')
    cases = [case for case in json.loads(done.stdout)['cases'] if 'median' in case]
    return {case['name']: 1 / case['median'] if case['unit'] == 'GB/s' else case['median'] for case in cases}


def measure(new, old, pairs, options):
    """The ratios of each case that both programs have."""
    ratios = {}
    for pair in range(pairs):
        # Each is first in half of the pairs, so that what slowly changes in the machine falls on both.
        found = {program: times(program, options) for program in ((new, old), (old, new))[pair % 2]}
        for name in found[new].keys() & found[old].keys():
            ratios.setdefault(name, []).append(found[new][name] / found[old][name])
        print(f'against: pair {pair + 1} of {pairs}', file=sys.stderr)
    return ratios


def rows_of(ratios):
    for name, values in sorted(ratios.items()):
        median = statistics.median(values)
        yield {'name': name, 'ratio': round(median, 4), 'least': round(min(values), 4), 'most': round(max(values), 4),
               'slower': median > SLOWER and min(values) >= 1}


def main():
    parser = argparse.ArgumentParser(prog='bench --against', description=__doc__.splitlines()[0])
    parser.add_argument('--pairs', type=int, default=5, metavar='N', help='runs of each program (default: %(default)s)')
    parser.add_argument('--only', metavar='TEXT', help='cases whose names contain TEXT, and their peers')
    parser.add_argument('--rounds', default='9', metavar='N', help='rounds of a run (default: %(default)s)')
    parser.add_argument('--round-us', default='4000', metavar='N', help='time of a round (default: %(default)s)')
    parser.add_argument('--json', action='store_true')
    parser.add_argument('new', metavar='NEW')
    parser.add_argument('old', metavar='OLD')
    wanted = parser.parse_args()
    options = ['--rounds', wanted.rounds, '--round-us', wanted.round_us, *(['--only', wanted.only] if wanted.only else [])]
    if wanted.pairs < 1:
        parser.error('--pairs: at least 1')
    new, old = os.path.abspath(wanted.new), program_of(wanted.old)
    if os.path.realpath(new) == os.path.realpath(old):
        parser.error('both are the same program')
    rows = list(rows_of(measure(new, old, wanted.pairs, options)))
    if wanted.json:
        print(json.dumps({'schema': 'vidmm-bench-against', 'version': 1, 'pairs': wanted.pairs, 'cases': rows}, indent=2))
    else:
        print(f'{"case":36} {"new / old":>9} {"least":>8} {"most":>8}')
        for row in rows:
            print(f'{row["name"]:36} {row["ratio"]:9.3f} {row["least"]:8.3f} {row["most"]:8.3f}'
                  f'{"  slower" if row["slower"] else ""}')
    return 0 if rows and not any(row['slower'] for row in rows) else 1


if __name__ == '__main__':
    sys.exit(main())
