#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is the whole suite run, also in another address space and through a host? lists.py ROOT PROGRAM...: those that are. Prints TAP.
A test that is left out there has that name."""

import glob
import os
import re
import sys

LISTS = ['tests/support/apart.c', 'tests/support/through.c']


def sources(root):
    """program -> its source, as the folders name them."""
    found = {}
    for path in glob.glob(os.path.join(root, 'tests/conformance/*/test_*.c')):
        family = os.path.basename(os.path.dirname(path))
        stem = os.path.basename(path)[len('test_'):-len('.c')]
        found[stem if family not in ('kmt', 'memory') else f'{family}_{stem}'] = path
    return found


def different(path):
    """What the table of a support file leaves out."""
    with open(path, encoding='utf-8') as text:
        table = re.search(r'different\[\] = \{(.*?)\n\};', text.read(), re.S)
    return re.findall(r'^\t"(\w+)",?$', table[1], re.M) if table else []


def main():
    root, *programs = sys.argv[1:]
    known = sources(root)
    tests = set()
    for path in known.values():
        with open(path, encoding='utf-8') as text:
            tests |= set(re.findall(r'^static void (\w+)\(void \*\*', text.read(), re.M))
    checks = [
        ('every source is a program', [p for n, p in sorted(known.items()) if n not in programs]),
        ('every program is a source', [n for n in programs if n not in known]),
        ('tests that are left out exist', [f'{path}: {name}' for path in LISTS for name in different(os.path.join(root, path))
                                           if not any(name in test for test in tests)]),
    ]
    print(f'1..{len(checks)}')
    for number, (what, wrong) in enumerate(checks, 1):
        for name in wrong:
            print(f'# {name}')
        print(f'{"not ok" if wrong else "ok"} {number} - {what}')
    sys.exit(any(wrong for _, wrong in checks))


main()
