#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""include/wddm/dxcore.h is what the table data/dxcore.tsv says, and so are the headers of directx-headers if they are installed.

    dxcore.py COMPILER [ARG...]

Our header is compiled as C, that of directx-headers as C++. Its order of functions is checked by a client that calls them
(tests/tools/dxcore_client.cpp). Prints TAP.
"""

import os
import subprocess
import sys
import tempfile
import uuid

from tap import Tap, build_and_run, compiler_for, rows, run

FLOOR = 150
GUID_BYTES = 'static int differs(const void *guid, const char *bytes) { return memcmp(guid, bytes, 16) != 0; }\n'
HEAD = '#include <stddef.h>\n#include <stdio.h>\n#include <string.h>\n'
OURS = HEAD + '#include <dxcore.h>\n' + GUID_BYTES
THEIRS = HEAD + '#include <wsl/winadapter.h>\n#include <directx/dxcore.h>\n#include <dxguids/dxguids.h>\n' + GUID_BYTES


def escaped(text):
    return ''.join(f'\\x{byte:02x}' for byte in uuid.UUID(text).bytes_le)


def statement(condition, name):
    return f'\tif ({condition}) {{ puts("# {name}"); bad++; }}\n'


def ours(kind, name, value):
    """The condition that holds in C if our header differs from the row."""
    first, _, second = name.partition('.')
    newest = {'IDXCoreAdapter': 'IDXCoreAdapter1', 'IDXCoreAdapterFactory': 'IDXCoreAdapterFactory1'}.get(first, first)
    return {
        'size': lambda: f'sizeof({name}) != {value}',
        'offset': lambda: f'offsetof({first}, {second}) != {value}',
        'value': lambda: f'(unsigned){first}_{second} != {value}',
        'function': lambda: f'offsetof({newest}Vtbl, {second}) != {value} * sizeof(void *)',
        'guid': lambda: f'differs(&(GUID){name.split()[0]}, "{escaped(value)}")',
    }[kind]()


def theirs(kind, name, value):
    """The same in C++ for the public header; None: the row cannot be checked."""
    first, _, second = name.partition('.')
    if kind == 'size':
        return f'sizeof({name}) != {value}'
    if kind == 'offset':
        return f'offsetof({first}, {second}) != {value}'
    if kind == 'value':
        return f'(unsigned){first}::{second} != {value}'
    if kind == 'guid' and name.split()[1].startswith('DXCORE_'):
        return f'differs(&{name.split()[1]}, "{escaped(value)}")'
    if kind == 'guid':
        return f'differs(&__uuidof({name.split()[1][len("IID_"):]}), "{escaped(value)}")'
    return None


def program(head, condition_of, table, main):
    tests = ''.join(statement(condition, name) for kind, name, value, *_ in table
                    if (condition := condition_of(kind, name, value)))
    return f'{head}{main}\n{{\n\tint bad = 0;\n{tests}\treturn bad != 0;\n}}\n'


def directx_headers():
    """The compiler's flags; None without directx-headers or a C++ compiler."""
    done = subprocess.run(['pkg-config', '--cflags', '--libs', 'DirectX-Headers'], capture_output=True, text=True, check=False)
    return done.stdout.split() if done.returncode == 0 and compiler_for('gcc', 'c++') else None


def build_and_run_cpp(source, flags):
    with tempfile.TemporaryDirectory() as folder:
        program_path = os.path.join(folder, 'check')
        command = [compiler_for('gcc', 'c++'), '-std=c++17', '-x', 'c++', '-', '-x', 'none', *flags, '-o', program_path]
        status, _, errors = run(command, source)
        if status:
            return 127, errors
        status, output, errors = run([program_path])
        return status, output + errors


def main(compiler):
    tap, table, flags = Tap(), list(rows('dxcore.tsv')), directx_headers()
    tap.ok(len(table) >= FLOOR, f'the table has {len(table)} rows')
    status, output = build_and_run(compiler, program(OURS, ours, table, 'int main(void)'))
    tap.ok(status == 0, f'our header agrees with {len(table)} rows', output.splitlines()[:20])
    wrong = [(kind, name, '99' if kind != 'guid' else str(uuid.UUID(int=1))) for kind, name, *_ in table]
    status, output = build_and_run(compiler, program(OURS, ours, wrong, 'int main(void)'))
    noticed = status == 1 and output.count('#') == len(table)
    tap.ok(noticed, 'each row that is wrong is noticed', [] if noticed else output.splitlines()[:5])
    old = [row for row in table if row[-1] != 'new']
    if flags is None:
        tap.skip('the header of directx-headers agrees', 'g++ or directx-headers is not installed')
    else:
        status, output = build_and_run_cpp(program(THEIRS, theirs, old, 'int main()'), flags)
        tap.ok(status == 0, f'the header of directx-headers agrees with {len(old)} rows, less the positions of functions',
               output.splitlines()[:20])
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
