#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Checks a model exhaustively, in each of its forms; the broken ones must be found broken. Prints TAP.

    check_spin.py SPIN CC MODEL
"""

import os
import re
import subprocess
import sys
import tempfile

FORMS = {  # defines, and whether errors are what is expected
    'wait_signal': [
        ([], False),
        (['REWIND'], False),
        (['DESTROY'], False),
        (['STORE'], False),
        (['LOOK_FIRST'], True),
        (['COUNT_AFTER'], True),
        (['STORE', 'COUNT_LATE'], True),
    ],
    'queue_steps': [
        ([], False),
        (['ENDS'], False),
        (['LOST'], False),
        (['NEVER'], False),
        (['ENDS', 'NEVER'], False),
        (['LOST', 'ENDS'], False),
        (['LOOKS'], False),
        (['LOOKS', 'ENDS'], False),
        (['LOOKS', 'LOST'], False),
        (['FORGETS_TO_WAKE'], True),
        (['LOOKS_FIRST'], True),
        (['ENDS', 'ENDS_EARLY'], True),
        (['LEAVES_FLAG'], True),
    ],
    'gate': [
        ([], False),
        (['NO_BARRIER'], True),
        (['LOOK_FIRST'], True),
        (['LEAVE_FIRST'], True),
    ],
    'mutex': [
        ([], False),
        (['NO_BARRIER'], True),
        (['COUNT_LATE'], True),
        (['LOOK_FIRST'], True),
    ],
}

# How the verifiers are compiled. Optimization takes seconds for each; only the verifiers of wait_signal run as long.
OPTIMIZATION = {'wait_signal': '-O1'}


def run(command, folder):
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout


def model_name(path):
    return os.path.splitext(os.path.basename(path))[0]


def verify(spin, compiler, model, defines):
    """(errors, states) of one form."""
    with tempfile.TemporaryDirectory() as folder:
        run([spin, *(f'-D{define}' for define in defines), '-a', model], folder)
        run([compiler, OPTIMIZATION.get(model_name(model), '-O0'), '-w', '-DSAFETY', '-DMEMLIM=1024', '-o', 'pan', 'pan.c'], folder)
        text = run([os.path.join(folder, 'pan'), '-m200000', '-w22'], folder)
    if 'max search depth too small' in text or 'Search not completed' in text and 'errors: 0' in text:
        raise RuntimeError(text)
    return int(re.search(r'errors: (\d+)', text)[1]), float(re.search(r'([\d.e+]+) states, stored', text)[1])


def main():
    spin, compiler, model = sys.argv[1], sys.argv[2], os.path.abspath(sys.argv[3])
    forms = FORMS[model_name(model)]
    failed = False
    print(f'1..{len(forms)}')
    for number, (defines, broken) in enumerate(forms, 1):
        errors, states = verify(spin, compiler, model, defines)
        good = (errors > 0) == broken
        failed |= not good
        name = '-'.join(defines).lower() or 'as built'
        print(f'{"ok" if good else "not ok"} {number} - {name}: {errors} errors in {states:.0f} states'
              f'{", as there must be" if broken else ""}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main())
