# SPDX-License-Identifier: MIT
"""What the tests of `vidmm what-if` share: the program (the first argument), and recordings."""
import json
import os
import subprocess
import sys

VIDMM = sys.argv[1]
HERE = os.path.dirname(os.path.abspath(__file__))
EVERY, TILED, IMPORTER = (os.path.join(HERE, 'data', name + '.trace') for name in ('every-op', 'tiled', 'importer'))
GLMARK = os.path.join(HERE, '..', '..', 'examples', 'glmark2-1080p-skl.trace.zst')


def run(*args, **more):
    return subprocess.run([VIDMM, *args], capture_output=True, text=True, check=False, **more)


def whatif(*args, code=0, err='', **more):
    """Runs `vidmm what-if`, whose messages must contain `err`, and be none if that is empty."""
    done = run('what-if', *args, **more)
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert err in done.stderr and (err or not done.stderr), done.stderr
    return done


def cells(*args, **more):
    return json.loads(whatif(*args, '--json', '-', **more).stdout)


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def write_changed(path, *changes):
    """Writes the recording EVERY with texts replaced."""
    text = read(EVERY)
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


# Such a buffer does not fit into less than 3 GiB of video memory and an aperture of 1 GiB.
TOO_LARGE = (('1048576', '1074790400'), ('400000 e 2 88\n', ''), ('#end 45', '#end 44'))
