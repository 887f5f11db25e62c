# SPDX-License-Identifier: MIT
"""Runs of the program vidmm, whose path is the first argument of the test."""
import os
import subprocess
import sys


def vidmm(*args, code=0):
    done = subprocess.run([sys.argv[1], *args], capture_output=True, text=True)
    assert done.returncode == code, (args, done.returncode, done.stderr)
    return done


def record(folder, *args, name='run'):
    """Replays with all events in two files. Returns the recording and the lines of the events."""
    path, text = os.path.join(folder, name), os.path.join(folder, name + '.txt')
    vidmm('replay', '-q', '--record', path, '--events', text, *args)
    with open(text, encoding='utf-8') as lines:
        return path, [line.rstrip('\n') for line in lines]
