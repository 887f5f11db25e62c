#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_packages.py PACKAGES.SH: missing packages are installed after a question on a terminal, else at once. TAP.

dpkg-query, apt-get, sudo and id are scripts here: nothing is installed.
"""
import os
import pty
import subprocess
import sys
import tempfile

SCRIPT = os.path.abspath(sys.argv[1])
FAKES = {
    'dpkg-query': 'test "$3" != absent && echo "install ok installed"',
    'apt-get': 'echo "$*" >> "$CALLS"',
    'id': 'echo 0',
}
COMMAND = f'set -euo pipefail; . {SCRIPT}; need_packages present absent; echo DONE >&2'


def prepare(folder):
    for name, text in FAKES.items():
        path = os.path.join(folder, name)
        with open(path, 'w', encoding='utf-8') as file:
            file.write(f'#!/bin/sh\n{text}\n')
        os.chmod(path, 0o755)
    return {**os.environ, 'PATH': f'{folder}:{os.environ["PATH"]}', 'CALLS': os.path.join(folder, 'calls')}


def calls(folder):
    path = os.path.join(folder, 'calls')
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8') as file:
        return file.read()


def on_terminal(answer):
    """What need_packages prints on a terminal whose user gives this answer, and what it calls of apt-get."""
    with tempfile.TemporaryDirectory() as folder:
        environment = prepare(folder)
        child, terminal = pty.fork()
        if child == 0:
            os.execvpe('bash', ['bash', '-c', COMMAND], environment)
        os.write(terminal, answer.encode() + b'\n')
        shown = b''
        while True:
            try:
                part = os.read(terminal, 4096)
            except OSError:
                part = b''
            if not part:
                break
            shown += part
        os.close(terminal)
        os.waitpid(child, 0)
        return shown.decode(), calls(folder)


def without_terminal():
    with tempfile.TemporaryDirectory() as folder:
        run = subprocess.run(['bash', '-c', COMMAND], stdin=subprocess.DEVNULL, env=prepare(folder), capture_output=True,
                             text=True, check=False)
        return run.stdout + run.stderr, calls(folder)


def cases():
    for answer, installs in (('y', True), ('', True), ('n', False)):
        shown, called = on_terminal(answer)
        good = 'absent' in shown and ('DONE' in shown) == installs and (' absent' in called) == installs
        yield f'on a terminal with the answer "{answer}"', good and 'Install them' in shown, shown + called
    shown, called = without_terminal()
    yield 'without a terminal', 'DONE' in shown and ' absent' in called and 'Install them' not in shown, shown + called


def main():
    results = list(cases())
    print(f'1..{len(results)}')
    for number, (name, good, text) in enumerate(results, 1):
        for line in text.splitlines() if not good else []:
            print(f'# {line}')
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main())
