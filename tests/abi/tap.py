# SPDX-License-Identifier: MIT
"""TAP output and compiler runs that the checks of this folder share."""

import os
import shutil
import subprocess
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
INCLUDE = os.path.join(ROOT, 'include')
WDDM = os.path.join(INCLUDE, 'wddm')
DATA = os.path.join(HERE, 'data')
PUBLIC = ('d3dukmdt.h', 'd3dkmdt.h', 'd3dkmthk.h', 'd3dumddi.h', 'd3dkmddi.h', 'dispmprt.h')
# Those of kernel source that are no DDI.
KERNEL = ('ntddk.h', 'wdm.h', 'ntifs.h', 'ntintsafe.h', 'ntstrsafe.h')
# Every header that a program may include, by the name that it includes.
INCLUDABLE = (*PUBLIC, *KERNEL, 'dxcore.h', *sorted('vidmm/' + name for name in os.listdir(os.path.join(INCLUDE, 'vidmm'))
                                         if name.endswith('.h')))


class Tap:
    """Numbers the results; the exit status says whether all were ok."""

    def __init__(self):
        self.count, self.failed = 0, 0

    def ok(self, good, name, details=()):
        self.count += 1
        self.failed += not good
        print(f'{"ok" if good else "not ok"} {self.count} - {name}')
        for line in details:
            print('#', line)

    def skip(self, name, reason):
        self.count += 1
        print(f'ok {self.count} - {name} # SKIP {reason}')

    def finish(self):
        print(f'1..{self.count}')
        return 1 if self.failed else 0


def run(command, source=None):
    """(exit status, standard output, standard error)."""
    done = subprocess.run(command, input=source, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def rows(name):
    """The tab-separated rows of a data file, without comments."""
    with open(os.path.join(DATA, name), encoding='utf-8') as file:
        for line in file:
            if not line.startswith('#') and line.strip():
                yield line.rstrip('\n').split('\t')


def build_and_run(compiler, source, flags=()):
    """Compiles a C program, runs it; (exit status, output and errors). A compile error is status 127."""
    with tempfile.TemporaryDirectory() as folder:
        program = os.path.join(folder, 'check')
        command = [*compiler, '-std=c11', '-Wall', '-Wextra', '-Werror', '-x', 'c', '-I' + WDDM, *flags,
                   '-o', program, '-']
        status, _, errors = run(command, source)
        if status:
            return 127, errors
        status, output, errors = run([program])
        return status, output + errors


def compiler_for(name, language):
    """The command of gcc or clang for C or C++, or None when it is not installed."""
    command = {('gcc', 'c'): 'gcc', ('gcc', 'c++'): 'g++', ('clang', 'c'): 'clang',
               ('clang', 'c++'): 'clang++'}[name, language]
    return shutil.which(command)
