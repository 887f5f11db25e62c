#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every header of ours compiles alone, as C11; the public ones as C++17 too. Prints TAP.

    headers.py ROOT GENERATED COMPILER [ARG...]

GENERATED is the folder of the headers that are made when building.
"""

import os
import shutil
import subprocess
import sys

FLAGS = ['-fsyntax-only', '-D_GNU_SOURCE', '-Wall', '-Wextra', '-Werror', '-Iinclude', '-Iinclude/wddm', '-Isrc', '-Itests']
PUBLIC = os.path.join('include', 'vidmm')


def headers(root):
    for top in (PUBLIC, 'src', 'bench'):
        for where, dirs, names in os.walk(os.path.join(root, top)):
            dirs.sort()
            for name in sorted(names):
                if name.endswith('.h'):
                    yield os.path.relpath(os.path.join(where, name), root)


def compiles(root, generated, compiler, language, header):
    command = compiler + FLAGS + ['-I' + generated] + language + ['-']
    run = subprocess.run(command, cwd=root, input=f'#include "{os.path.join(root, header)}"\n',
                         capture_output=True, text=True, check=False)
    return run.returncode == 0, run.stderr


def main(arguments):
    root, generated, compiler = arguments[0], arguments[1], arguments[2:]
    cpp = {'gcc': 'g++', 'cc': 'g++', 'clang': 'clang++'}.get(os.path.basename(compiler[-1]))
    cases = [(header, compiler, ['-std=c11', '-x', 'c']) for header in headers(root)]
    if cpp and shutil.which(cpp):
        cases += [(header, [cpp], ['-std=c++17', '-x', 'c++']) for header, _, _ in cases if header.startswith(PUBLIC)]
    print(f'1..{len(cases)}')
    failed = 0
    for number, (header, command, language) in enumerate(cases, 1):
        good, text = compiles(root, generated, command, language, header)
        failed += not good
        for line in text.splitlines() if not good else []:
            print(f'# {line}')
        print(f'{"ok" if good else "not ok"} {number} - {header} ({language[0][5:]})')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
