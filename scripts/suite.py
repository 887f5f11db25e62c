#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds up test results of several builds from Meson's logs; the last line is "N passed, N failed".

    suite.py [--broken=BUILD]... BUILD/meson-logs/testlog.json...

Each test of a program with TAP output counts; any other program counts as one test. If a program
dies, times out or runs fewer tests than it announced, each missing test has failed, and at least
one test has failed. A build that did not compile is one failure.
"""

import json
import re
import sys

PLAN = re.compile(r'^1\.\.(\d+)', re.M)
LINE = re.compile(r'^(not )?ok\b(.*)$', re.M)
DIAGNOSTICS = 20
STDERR_FIRST, STDERR_LAST = 40, 8
# What tests print about the recordings that they played or left out for lack of time, and about simulated work.
REMARK = re.compile(r'^# (\d+ recordings? in .*|left out .*|simulated .*)$', re.M)
GOOD = ('OK', 'EXPECTEDFAIL')


def count(entry):
    """(passed, failed, skipped) of one program."""
    plan = PLAN.search(entry.get('stdout') or '')
    result = entry['result']
    if not plan:
        if result == 'SKIP':
            return 0, 0, 1
        return (1, 0, 0) if result in GOOD else (0, 1, 0)
    passed = failed = skipped = 0
    for line in LINE.finditer(entry['stdout']):
        if re.search(r'#\s*skip\b', line[2], re.I):
            skipped += 1
        elif line[1]:
            failed += 1
        else:
            passed += 1
    failed += max(0, int(plan[1]) - passed - failed - skipped)
    if result not in GOOD + ('SKIP',) and failed == 0:
        failed = 1
    if int(plan[1]) == 0:
        skipped += 1
    return passed, failed, skipped


def first_and_last(lines):
    """The first and last lines: a sanitizer reports the error first, an assertion last."""
    if len(lines) <= STDERR_FIRST + STDERR_LAST:
        return lines
    return lines[:STDERR_FIRST] + ['...'] + lines[-STDERR_LAST:]


def account(entry):
    """What to print of a failed program: failed tests with their diagnostics, then stderr."""
    lines, pending, after_failure = [], [], False
    for line in (entry.get('stdout') or '').splitlines():
        if line.startswith('#'):
            # cmocka prints diagnostics after the result, our scripts before it.
            (lines if after_failure else pending).append(line)
        elif re.match(r'(not )?ok\b', line):
            after_failure = line.startswith('not') and not re.search(r'#\s*skip\b', line, re.I)
            if after_failure:
                lines += pending[-DIAGNOSTICS:] + [line]
            pending = []
    return [f'{entry["name"].split(" / ")[-1]}: {entry["result"]}'] + lines + \
        first_and_last((entry.get('stderr') or '').strip().splitlines())


def read_log(path):
    """(passed, failed, skipped, programs, notes); a missing log is one failure."""
    totals, programs, notes = [0, 0, 0], 0, []
    try:
        with open(path, encoding='utf-8') as lines:
            entries = [json.loads(line) for line in lines if line.strip()]
    except (OSError, ValueError):
        entries = []
    for entry in entries:
        counts = count(entry)
        totals = [total + number for total, number in zip(totals, counts)]
        programs += 1
        notes += REMARK.findall(entry.get('stdout') or '')
        if counts[1]:
            notes += account(entry)
    if not entries:
        totals[1] += 1
        notes.append('no test log: the tests did not run')
    return (*totals, programs, notes)


def main(arguments):
    broken = [text.split('=', 1)[1] for text in arguments if text.startswith('--broken=')]
    logs = [text for text in arguments if text and not text.startswith('--broken=')]
    passed = failed = 0
    for log in logs:
        good, bad, skipped, programs, lines = read_log(log)
        build = log.split('/')[-3] if log.count('/') >= 2 else log
        print(f'{build:8} {good:5} passed, {bad} failed, {skipped} skipped in {programs} programs')
        for line in lines:
            print(f'{"":8} {line}')
        passed += good
        failed += bad
    for name in broken:
        print(f'{name:8} does not build')
        failed += 1
    print(f'{passed} passed, {failed} failed')
    return 0 if passed and not failed else 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
