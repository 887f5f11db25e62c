#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Is the whole suite run, also in another address space and through a host? lists.py ROOT PROGRAM...: those that are. Prints TAP."""

import glob
import os
import sys


def sources(root):
    """program -> its source, as the folders name them."""
    found = {}
    for path in glob.glob(os.path.join(root, 'tests/conformance/*/test_*.c')):
        family = os.path.basename(os.path.dirname(path))
        stem = os.path.basename(path)[len('test_'):-len('.c')]
        found[stem if family not in ('kmt', 'memory') else f'{family}_{stem}'] = path
    return found


def main():
    root, *programs = sys.argv[1:]
    known = sources(root)
    checks = [
        ('every source is a program', [p for n, p in sorted(known.items()) if n not in programs]),
        ('every program is a source', [n for n in programs if n not in known]),
    ]
    print(f'1..{len(checks)}')
    for number, (what, wrong) in enumerate(checks, 1):
        for name in wrong:
            print(f'# {name}')
        print(f'{"not ok" if wrong else "ok"} {number} - {what}')
    sys.exit(any(wrong for _, wrong in checks))


main()
