#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every record has the layout that a Windows compiler gives the same text.

Compiles the headers with clang for x86-64 Linux and for x86-64 Windows, as C11 and as C++17, and compares
size, alignment and field offsets record by record. Driver source is compiled with -fshort-wchar, so both sides
have a 16-bit wchar_t. Prints TAP; skips with a reason when there is no clang.
"""

import re
import sys

from declared import HEADERS
from kernel import VERSIONS
from tap import WDDM, Tap, compiler_for, run

TARGETS = ('x86_64-linux-gnu', 'x86_64-pc-windows-msvc')
LANGUAGES = {'c': 'c11', 'c++': 'c++17'}
CHECKED = ('1.0', '1.3', '2.0', '3.0')
RECORD = re.compile(r'^Type: (.*?)$.*?^  Size:(\d+)$.*?^  Alignment:(\d+)$.*?^  FieldOffsets: \[(.*?)\]>',
                    re.M | re.S)
FLOOR_RECORDS = 1280

# A BOOLEAN bit-field before a UINT one: Linux clients measured 4 bytes, Windows compilers give 8. Display
# modes are not ours, so the text follows the measured table.
KNOWN = ('struct _D3DKMT_SETDISPLAYMODE', 'struct _D3DKMT_SETDISPLAYMODE_FLAGS')


def layouts(clang, language, target, version, source=HEADERS):
    """({record: (size, alignment, offsets)}, errors); bits. Records of the compiler's own headers are left out."""
    command = [clang, '-x', language, f'-std={LANGUAGES[language]}', '-target', target, '-ffreestanding',
               '-fshort-wchar', '-I' + WDDM, f'-DDXGKDDI_INTERFACE_VERSION={VERSIONS[version]:#x}', '-fsyntax-only',
               '-Xclang', '-fdump-record-layouts-complete', '-Xclang', '-fdump-record-layouts-simple', '-']
    status, output, errors = run(command, source)
    if status:
        return {}, errors
    return {name: (int(size), int(alignment), offsets) for name, size, alignment, offsets
            in RECORD.findall(output) if '__' not in name.split('(')[0] and '/clang/' not in name}, errors


def differences(left, right):
    """One line per record that differs or that only one side has."""
    found = [f'{name}: only for {TARGETS[name not in left]}' for name in sorted(set(left) ^ set(right))]
    return found + [f'{name}: {left[name]} against {right[name]}' for name in sorted(set(left) & set(right))
                    if left[name] != right[name]]


def sees_a_difference(clang):
    """`long` has 64 bits on one side only."""
    records = [layouts(clang, 'c', target, '3.0', 'struct probe { long a; int b; };\n')[0] for target in TARGETS]
    return len(differences(*records)) == 1


def main():
    tap = Tap()
    for language in LANGUAGES:
        clang = compiler_for('clang', language)
        for version in CHECKED:
            name = f'{language} records of version {version} are laid out as on Windows'
            if not clang:
                tap.skip(name, 'clang is not installed')
                continue
            (linux, left_errors), (windows, right_errors) = (layouts(clang, language, target, version)
                                                             for target in TARGETS)
            found = [line for line in differences(linux, windows) if not line.startswith(tuple(k + ':' for k in KNOWN))]
            tap.ok(not found and len(linux) >= FLOOR_RECORDS, name,
                   [f'{len(linux)} records', *found[:40], *(left_errors + right_errors).splitlines()[:10]])
    clang = compiler_for('clang', 'c')
    if clang:
        tap.ok(sees_a_difference(clang), 'a record that differs is noticed')
    else:
        tap.skip('a record that differs is noticed', 'clang is not installed')
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
