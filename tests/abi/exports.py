#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exports.py LIBRARY: the library exports what the WSL library does, except the functions that docs/exports.md lists. TAP.

docs/exports.md says why each is missing. Each exported D3DKMT function is called by a conformance test.
"""

import glob
import os
import re
import subprocess
import sys

from tap import DATA, ROOT, Tap


def exported(library):
    output = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split('@')[0] for line in output.splitlines()}


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def main(library):
    tap = Tap()
    ours = exported(library)
    theirs = {line.split('\t')[0] for line in read(os.path.join(DATA, 'wsl-exports.tsv')).splitlines() if line[:1] != '#'}
    page = read(os.path.join(ROOT, 'docs/exports.md'))
    rows = [row for row in page.splitlines() if row.startswith('| `')]
    missing = {name for row in rows for name in re.findall(r'`(D3DKMT\w+)`', row.split('|')[1])}
    counts = {int(number) for number in re.findall(r'(?:exports|These) (\d+) ', page)}
    tap.ok(theirs - ours == missing, 'what is missing is listed with a reason', sorted((theirs - ours) ^ missing))
    tap.ok(counts == {len(theirs), len(missing)}, 'the numbers of the page', sorted(counts))
    tap.ok('DXCoreCreateAdapterFactory' in ours, 'DXCoreCreateAdapterFactory is exported')
    tests = ''.join(map(read, glob.glob(os.path.join(ROOT, 'tests/conformance/**/*.c'), recursive=True)))
    unused = {name for name in ours if name.startswith('D3DKMT') and not re.search(rf"\b{name}\b", tests)}
    tap.ok(not unused, 'each exported D3DKMT function is called by a conformance test', sorted(unused))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
