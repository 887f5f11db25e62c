#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""clang refuses a call of a `_locked` function, and a use of a guarded member, without the lock of its class. Prints TAP.

    lock_classes.py ROOT FOLDER

FOLDER is where the samples are written.
"""

import os
import shutil
import subprocess
import sys

FLAGS = ['-std=c11', '-fsyntax-only', '-Wthread-safety', '-Werror', '-D_GNU_SOURCE', '-Iinclude', '-Iinclude/wddm', '-Isrc']
SAMPLE = '''#include "object/object.h"

static void poke_locked(struct vmm_adapter *adapter) VMM_REQUIRES(vmm_state_lock_class)
{
	vmm_assert_held(&adapter->state_lock);
}

void poke(struct vmm_adapter *adapter);
void poke(struct vmm_adapter *adapter)
{
	%s
}
'''
GUARDED = '''#include "nt/nt_internal.h"

bool peek(struct vmm_nt *nt);
bool peek(struct vmm_nt *nt)
{
	%s
}
'''
# Name, body of the function, and what clang says of it; None: it compiles.
CASES = [
    ('a call between vmm_state_lock and vmm_state_unlock compiles',
     'vmm_state_lock(adapter); poke_locked(adapter); vmm_state_unlock(adapter);', None),
    ('a call without the lock is refused', 'poke_locked(adapter);', 'requires holding'),
    ('a call behind vmm_state_unlock is refused',
     'vmm_state_lock(adapter); vmm_state_unlock(adapter); poke_locked(adapter);', 'requires holding'),
    ('a call with the lock of another class is refused',
     'vmm_submit_lock(adapter); poke_locked(adapter); vmm_submit_unlock(adapter);', 'requires holding'),
    ('a lock that is never released is refused', 'vmm_state_lock(adapter); poke_locked(adapter);', 'still held'),
]
GUARDED_CASES = [
    ('a guarded member read with its lock compiles',
     'nt_dispatcher_lock(nt); bool stop = nt->timers_stop; nt_dispatcher_unlock(nt); return stop;', None),
    ('a guarded member read without its lock is refused', 'return nt->timers_stop;', 'requires holding'),
    ('a guarded member read with the lock of another class is refused',
     'nt_objects_lock(nt); bool stop = nt->timers_stop; nt_objects_unlock(nt); return stop;', 'requires holding'),
]
SAMPLES = [(SAMPLE, *case) for case in CASES] + [(GUARDED, *case) for case in GUARDED_CASES]


def complaint(root, path, text, expected):
    """What is wrong with clang's answer to the sample, as lines."""
    with open(path, 'w', encoding='utf-8') as sample:
        sample.write(text)
    run = subprocess.run(['clang', *FLAGS, path], cwd=root, capture_output=True, text=True, check=False)
    if (run.returncode != 0) == (expected is not None) and (expected or '') in run.stderr:
        return []
    return [f'exit status {run.returncode}, expected {"an error: " + expected if expected else "success"}',
            *run.stderr.splitlines()]


def main(arguments):
    root, folder = arguments
    if not shutil.which('clang'):
        print('1..0 # SKIP clang is not installed, and only clang checks lock classes')
        return 0
    print(f'1..{len(SAMPLES)}')
    failed = 0
    for number, (sample, name, body, expected) in enumerate(SAMPLES, 1):
        problems = complaint(root, os.path.join(folder, f'lock_class_{number}.c'), sample % body, expected)
        failed += bool(problems)
        for problem in problems:
            print(f'# {problem}')
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
    return 1 if failed else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
