#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Tests the harness: valid JSON, ordered statistics, one line for each selected case, builds in turns. Prints TAP.

    check_bench.py VIDMM-BENCH
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile

TABLE = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'table.py')
AGAINST = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'against.py')


def run(program, *arguments):
    return subprocess.run([program, *arguments], capture_output=True, text=True, check=False)


def compare(program, other, *arguments):
    return run(sys.executable, AGAINST, '--pairs', '2', '--rounds', '1', '--round-us', '50', *arguments, program, other)


def against(program):
    """Two programs that are one: the ratios depend on the machine, what is compared does not."""
    with tempfile.TemporaryDirectory() as folder:
        other = shutil.copy(program, os.path.join(folder, 'vidmm-bench'))
        text = compare(program, folder, '--only', 'floor.getpid')
        report = json.loads(compare(program, other, '--only', 'floor.getpid', '--json').stdout)
    [case] = report['cases']
    return [
        ('against: a row of the case', text.returncode in (0, 1) and 'floor.getpid ' in text.stdout),
        ('against: the median is between the ends', 0 < case['least'] <= case['ratio'] <= case['most']),
        ('against: a program is not compared with itself', compare(program, program).returncode == 2),
        ('against: what is no build is refused', compare(program, '/nothing').returncode == 1),
    ]


def tables(program):
    """The document of two runs of one case, with its goal and without a reason: a case that cannot reach its goal is missed."""
    with tempfile.TemporaryDirectory() as folder:
        output = os.path.join(folder, 'performance.md')
        done = run(sys.executable, TABLE, '--runs', '2', '--rounds', '1', '--round-us', '50', '--only', 'range.pair_10k_full',
                   '--output', output, program)
        with open(output, encoding='utf-8') as file:
            lines = file.read().splitlines()
    row = next((line for line in lines if line.startswith('| `range.pair_10k_full` |')), '')
    missed = 'None.' not in lines
    return [
        ('table: a row of the case, with its peer and goal', '`range.malloc_10k` | 3.10 |' in row),
        ('table: both runs were judged', row.endswith((' 0 of 2 |', ' 1 of 2 |', ' 2 of 2 |'))),
        ('table: a missed goal is listed, and is the exit code',
         done.returncode == missed == (not row.endswith(' 2 of 2 |'))),
        ('table: no runs is a usage error', run(sys.executable, TABLE, '--runs', '0', program).returncode == 2),
    ]


def main(program):
    floors = ['floor.getpid', 'floor.malloc_free', 'floor.xadd']
    listed = run(program, '--list').stdout.split()
    report = run(program, '--json', '--rounds', '3', '--only', 'floor.getpid')
    cases = json.loads(report.stdout)['cases']
    table = run(program, '--rounds', '3', '--only', 'floor.xadd').stdout
    # One short round of each case. Their fixtures must satisfy the asserts of the library.
    short = run(program, '--rounds', '1', '--round-us', '1')
    results = [
        ('the list is sorted, without repetition, and has the floors',
         listed == sorted(set(listed)) and set(floors) <= set(listed)),
        ('JSON has the selected case and no other',
         [case['name'] for case in cases] == ['floor.getpid']),
        ('fastest <= median <= slowest, and time passes',
         all(0 < case['fastest'] <= case['median'] <= case['slowest'] for case in cases)),
        ('the table names the case', 'floor.xadd' in table and 'floor.getpid' not in table),
        ('every case runs', short.returncode == 0),
        ('an unknown option is a usage error', run(program, '--nonsense').returncode == 2),
        ('no rounds is a usage error', run(program, '--rounds', '0').returncode == 2),
    ]
    results += against(program)
    results += tables(program)
    print(f'1..{len(results)}')
    for number, (name, good) in enumerate(results, 1):
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good in results) else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
