#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_mutant_drivers.py VIDMM FILE.so...: a miniport with one wrong line is named by the rule that it breaks, and the
correct miniport by none. The lines and their rules: mutants.h. TAP."""
import json
import os
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test, tests

VIDMM = os.path.abspath(sys.argv[1])
FILE = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:]}
ROOT = os.environ['VIDMM_SOURCE_ROOT']
EVERY = os.path.join(ROOT, 'tests/replay/data/every-op.trace')
LEAST = 60


def mutants():
    """(name, number, verb, rules) of each line."""
    with open(os.path.join(ROOT, 'tests/mutants/mutants.h'), encoding='utf-8') as file:
        body = re.search(r'enum \{\n(\tNOTHING.*?)\n\};', file.read(), re.S).group(1)
    names = re.findall(r'^\t(\w+),(?: +/\* (\w+) ([A-Z0-9 -]+) \*/)?$', body, re.M)
    return [(name, number, verb, set(rules.split())) for number, (name, verb, rules) in enumerate(names)]


def recorded(number, *args):
    """`vidmm check` of the events of a replay."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'run')
        done = run('replay', number, '--record', path, *args)
        assert done.returncode in (0, 1), (done.args, done.returncode, done.stderr)
        return subprocess.run([VIDMM, 'check', '--format', 'json', path], capture_output=True, text=True)


def run(verb, number, *args):
    if verb == 'check':
        return recorded(number, *args)
    driver = ('--driver', FILE['mutant_driver'], '--set', f'Mutant={number}', '--json')
    commands = ('--commands', FILE['tinykmd_commands'])
    more = {'caps': ('--bar', '16M'), 'replay': (*commands, '--vram', '1M', EVERY), 'conform': commands}[verb]
    return subprocess.run([VIDMM, verb, *driver, *args, *more], capture_output=True, text=True)


def findings(verb, done):
    """The findings of the report, of `conform` those of all situations."""
    report = json.loads(done.stdout)
    parts = report['situations'] if verb == 'conform' else report['recordings'] if verb == 'check' else [report]
    return [finding for part in parts for finding in part['findings']]


def check(verb, number, rules, *args):
    done = run(verb, number, *args)
    found = findings(verb, done)
    assert {finding['rule'] for finding in found} == rules, (done.args, done.returncode, found, done.stderr)
    assert (done.returncode != 0) == bool(rules), (done.args, done.returncode, done.stdout, done.stderr)


@test
def the_correct_miniport_breaks_no_rule():
    for verb in ('caps', 'replay', 'conform', 'check'):
        for back_end in ('sim', 'linux'):
            check(verb, 0, set(), '--backend', back_end)


@test
def there_are_at_least_sixty_mutants():
    table = mutants()
    assert table[0][0] == 'NOTHING' and len(table) > LEAST, len(table)
    assert all(verb for _, _, verb, _ in table[1:]), table


def add(name, number, verb, rules):
    def one():
        check(verb, number, rules)
    ids = '_'.join(sorted(rules - {'FATAL'})).lower().replace('-', '_')
    one.__name__ = f'{ids}_{name.lower()}'
    tests.append(one)


for line in mutants()[1:]:
    add(*line)

if __name__ == '__main__':
    sys.exit(main())
