#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""exports.py LIBRARY: the library exports what the WSL library does, except the functions that docs/exports.md lists. TAP.

docs/exports.md says why each is missing. Every kernel service that the headers declare is exported: a miniport that is
a shared object calls them, some through macros like PAGED_CODE. Each exported D3DKMT function is called by a conformance test.
"""

import glob
import os
import re
import subprocess
import sys

from tap import DATA, KERNEL, ROOT, WDDM, Tap, run

SERVICE = r'(Dbg|Ex|Io|Kd|Ke|Kf|Mm|Ob|Ps|Rtl|Wddm|Yield|Zw|vDbg)[A-Z]'


def exported(library):
    output = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True, text=True, check=True).stdout
    return {line.split()[-1].split('@')[0] for line in output.splitlines()}


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def services():
    """Every function with external linkage that the kernel headers declare."""
    command = ['cc', '-std=c11', '-x', 'c', '-fshort-wchar', '-I' + WDDM, '-P', '-E', '-']
    status, text, errors = run(command, ''.join(f'#include <{name}>\n' for name in KERNEL))
    if status:
        raise RuntimeError(errors)
    text = re.sub(r'__attribute__\(\((\w|\([^()]*\)|[ ,])*\)\)', '', text)
    depth, outside = 0, ''
    for character in text:  # what is in braces is no declaration of a function
        depth += character == '{'
        outside += character if not depth else ' ' if character != '}' else ';'
        depth -= character == '}'
    pieces = [piece.strip() for piece in outside.split(';')]
    heads = [re.search(r'(\w+)\s*\(', piece) for piece in pieces if not re.match(r'typedef|static|extern \w+ \*', piece)]
    return {head[1] for head in heads if head and re.match(SERVICE, head[1])}


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
    wanted = services()
    tap.ok({'WddmAssertFailed', 'WddmPagedCode', 'YieldProcessor', 'ZwOpenKey'} <= wanted and len(wanted) > 70,
           f'{len(wanted)} services are declared')
    tap.ok(wanted <= ours, 'each service that the kernel headers declare is exported', sorted(wanted - ours))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1]))
