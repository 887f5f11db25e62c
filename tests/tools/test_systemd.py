#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_systemd.py VIDMM UNIT...: systemd accepts the units of `vidmm serve`, with this program in them. TAP."""
import os
import shutil
import subprocess
import sys
import tempfile

VIDMM, UNITS = os.path.abspath(sys.argv[1]), sys.argv[2:]


def place(folder):
    """The units as they would be installed beside the program of the build folder; a template as an instance of it."""
    for unit in UNITS:
        with open(unit, encoding='utf-8') as source:
            lines = [f'ExecStart={VIDMM} {line.partition(" ")[2]}' if line.startswith('ExecStart=') else line
                     for line in source]
        with open(os.path.join(folder, os.path.basename(unit)), 'w', encoding='utf-8') as out:
            out.writelines(lines)
    return [os.path.join(folder, os.path.basename(unit).replace('@.', '@test.')) for unit in UNITS]


def verify(unit):
    environment = {**os.environ, 'XDG_RUNTIME_DIR': os.path.dirname(unit)}
    run = subprocess.run(['systemd-analyze', 'verify', '--user', '--man=no', unit], capture_output=True, text=True,
                         check=False, env=environment)
    own = [line for line in (run.stdout + run.stderr).splitlines() if 'vidmm' in line]
    return run.returncode == 0 and not own, '\n'.join(own) or run.stderr


def cases(folder):
    names = sorted(os.path.basename(unit) for unit in UNITS)
    wanted = ['vidmm.service', 'vidmm.socket', 'vidmm@.service', 'vidmm@.socket']
    yield 'a service and a socket, and their templates', names == wanted, ' '.join(names)
    for path in place(folder):
        name = os.path.basename(path)
        if shutil.which('systemd-analyze'):
            yield f'systemd accepts {name}', *verify(path)
        else:
            yield f'systemd accepts {name} # SKIP systemd-analyze is not installed', True, ''


def main():
    with tempfile.TemporaryDirectory() as folder:
        results = list(cases(folder))
    print(f'1..{len(results)}')
    for number, (name, good, text) in enumerate(results, 1):
        for line in text.splitlines() if not good else []:
            print(f'# {line}')
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main())
