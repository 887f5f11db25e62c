#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs the benchmarks several times and writes docs/performance.md: floors of the machine, and each case beside its goal.

    table.py [--runs=N] [--rounds=N] [--round-us=N] [--only=TEXT] [--output FILE] VIDMM-BENCH

A case holds if its goal is met in every run in which it could be judged. Why a case misses its goal is in reasons.tsv; a case
without a row there is listed as work that is left. Exit code 1 if a case misses its goal.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
INTRO = '''# Performance

Written by `./x bench --table`; do not edit. Ratios count, not times. A machine that executes fewer
instructions in a cycle, because another machine uses the same processor, makes the ratios to a
locked instruction or a system call larger. [bench/README.md](../bench/README.md) describes the
cases, and how to compare two builds.
'''


def runs_of(program, count, options):
    """The reports of `count` runs, one after the other."""
    reports = []
    for run in range(count):
        done = subprocess.run([program, '--json', *options], stdout=subprocess.PIPE, text=True, check=False)
        if done.returncode:
            sys.exit(f'table: {program} ends with exit code {done.returncode}')
        reports.append(json.loads(done.stdout))
        print(f'table: run {run + 1} of {count}', file=sys.stderr)
    return reports


def cases_of(reports):
    """name -> the results of that case in all runs."""
    cases = {}
    for report in reports:
        for case in report['cases']:
            cases.setdefault(case['name'], []).append(case)
    return cases


def machine():
    model = 'unknown processor'
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        for line in file:
            if line.startswith('model name'):
                model = line.split(':', 1)[1].strip()
                break
    return f'{model}, {os.cpu_count()} CPUs, Linux {platform.release()}'


def number(value):
    return f'{value:,.0f}' if value >= 1000 else f'{value:.1f}' if value >= 10 else f'{value:.2f}'


def time_of(results):
    return f'{number(statistics.median(case["median"] for case in results))} {results[0]["unit"]}'


def ratio_of(results):
    ratios = [case['ratio'] for case in results if 'ratio' in case]
    if not ratios:
        return ''
    return f'{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})'


def table(header, rows):
    lines = ['| ' + ' | '.join(header) + ' |', '|' + ' --- |' * len(header)]
    return '\n'.join(lines + ['| ' + ' | '.join(row) + ' |' for row in rows]) + '\n'


def reasons():
    """case -> why it misses its goal."""
    with open(os.path.join(HERE, 'reasons.tsv'), encoding='utf-8') as file:
        rows = [line.rstrip('\n').split('\t') for line in file if line.strip() and not line.startswith('#')]
    return dict(rows[1:])


def verdict(results):
    """'5 of 5' runs that met the goal; '' without a goal."""
    judged = [case['holds'] for case in results if 'holds' in case]
    if not judged:
        return ''
    return f'{sum(judged)} of {len(judged)}'


def missed(results):
    return any(not case.get('holds', True) for case in results)


def document(cases, runs):
    present = {name: [case for case in results if 'median' in case] for name, results in cases.items()}
    floors = [(name, time_of(results)) for name, results in sorted(present.items()) if results and name.startswith('floor.')]
    rows, left = [], []
    why = reasons()
    for name, results in sorted(present.items()):
        if not results or name.startswith('floor.'):
            continue
        goal = next((case['ratio_max'] for case in results if 'ratio_max' in case), None)
        rows.append((f'`{name}`', time_of(results), ratio_of(results), f'`{results[0]["peer"]}`' if 'peer' in results[0] else '',
                     f'{goal:.2f}' if goal else '', verdict(results)))
        if missed(results):
            ratio = statistics.median(case['ratio'] for case in results)
            default = f'met in {verdict(results)} runs' if ratio <= goal else 'work that is left'
            left.append((f'`{name}`', f'{ratio:.2f}', f'{goal:.2f}', why.get(name, default)))
    parts = [INTRO, f'Measured on: {machine()}; {runs} runs.\n', '## Floors of the machine\n', table(('floor', 'time'), floors),
             '## Cases\n', 'The ratio is the median of the runs, with the smallest and the largest. The last column says in\n'
             'how many of the runs that could judge it the goal was met.\n',
             table(('case', 'median', 'ratio', 'of', 'goal', 'met'), rows), '## Goals that are missed\n']
    parts.append(table(('case', 'ratio', 'goal', 'why'), left) if left else 'None.\n')
    return '\n'.join(parts), bool(left)


def main():
    parser = argparse.ArgumentParser(prog='bench --table', description=__doc__.splitlines()[0])
    parser.add_argument('--runs', type=int, default=5, metavar='N', help='default: %(default)s')
    parser.add_argument('--rounds', default='9', metavar='N', help='rounds of a run (default: %(default)s)')
    parser.add_argument('--round-us', default='4000', metavar='N', help='time of a round (default: %(default)s)')
    parser.add_argument('--only', metavar='TEXT', help='cases whose names contain TEXT, and their peers')
    parser.add_argument('--output', metavar='FILE', default=os.path.join(os.path.dirname(HERE), 'docs', 'performance.md'),
                        help='default: docs/performance.md')
    parser.add_argument('program', metavar='VIDMM-BENCH')
    wanted = parser.parse_args()
    if wanted.runs < 1:
        parser.error('--runs: at least 1')
    options = ['--rounds', wanted.rounds, '--round-us', wanted.round_us, *(['--only', wanted.only] if wanted.only else [])]
    text, any_missed = document(cases_of(runs_of(wanted.program, wanted.runs, options)), wanted.runs)
    with open(wanted.output, 'w', encoding='utf-8') as file:
        file.write(text)
    print(f'table: wrote {wanted.output}', file=sys.stderr)
    return 1 if any_missed else 0


if __name__ == '__main__':
    sys.exit(main())
