#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_rules.py VIDMM: `vidmm rules` prints rules, families and all rules. TAP."""
import subprocess
import sys


def run(*args):
    return subprocess.run([sys.argv[1], 'rules', *args], capture_output=True, text=True, check=False)


def heads(done):
    """The ids that begin a line."""
    return [line.split()[0] for line in done.stdout.splitlines() if line[:1].isupper()]


def cases():
    one = run('lock-07')
    yield 'one rule in full', one.returncode == 0 and heads(one) == ['LOCK-07'] and '  provenance  ' in one.stdout
    family = run('LOCK')
    yield 'a family, a line each', family.returncode == 0 and len(heads(family)) > 10 \
        and all(head.startswith('LOCK-') for head in heads(family))
    yield 'all rules', set(heads(family)) < set(heads(run()))
    yield 'several', heads(run('SFL-14', 'Q-47')) == ['SFL-14', 'Q-47']
    yield 'the rules of kernel services', {'NT-01', 'NT-05', 'NT-24'} < set(heads(run('NT')))
    wrong = run('LOCK-07', 'LOCK-7000')
    yield 'an unknown rule beside a known one', wrong.returncode == 2 and heads(wrong) == ['LOCK-07'] \
        and '"LOCK-7000"' in wrong.stderr
    long = [line for line in run().stdout.splitlines() if len(line) > 200]
    yield 'no text is cut in a pipe', long and not any(line.endswith(' ...') for line in long)
    asked = run('--help')
    yield 'help', asked.returncode == 0 and asked.stdout.startswith('usage: ') and not asked.stderr
    usage = run('--what')
    yield 'wrong usage', usage.returncode == 2 and not usage.stdout and 'usage: ' in usage.stderr


def main():
    results = list(cases())
    print(f'1..{len(results)}')
    for number, (name, good) in enumerate(results, 1):
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good in results) else 1


if __name__ == '__main__':
    sys.exit(main())
