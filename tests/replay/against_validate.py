#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""against_validate.py VIDMM [ROUNDS [SEED]]: mutates the hand-written recording and compares what `vidmm replay
--parse-only` and the recordings' own validator say. They must agree on each mutant, except for the differences that
docs/replay.md lists (spellings of numbers that only Python takes, and value sets that only the text gives).
TAP; skipped if the validator is not installed."""
import os
import random
import re
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
# Where the reader is stricter on purpose: rules of the format's text, and limits of the reader.
STRICTER = re.compile(
    r'expected a time in ns|too large|event .: expected|(more|longer|larger) than|always exists|format version|#t0|#wtrack'
    r'|header line|unexpected # line|\[w\]\[f\]|is not step|ring number|fence token|submission number \d+ is out of order|no #end|after #end'
    r'|relocation source|unexpected text')
NUMBER = re.compile(rb'-?\d+')


def mutate(rng, text):
    """Changes mostly one token, so that the reader gets far into most mutants."""
    lines = text.split(b'\n')
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        at = rng.randrange(len(lines))
        tokens = lines[at].split(b' ')
        which = rng.randrange(len(tokens))
        kind = rng.randrange(8)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, lines[rng.randrange(len(lines))])
        elif kind == 2:
            lines[at], lines[at - 1] = lines[at - 1], lines[at]
        elif kind == 3:
            del tokens[which]
            lines[at] = b' '.join(tokens)
        elif kind == 4:
            tokens[which] = tokens[rng.randrange(len(tokens))]
            lines[at] = b' '.join(tokens)
        elif kind == 5:
            number = NUMBER.search(tokens[which])
            value = rng.choice((0, 1, 2, 3, 4, 5, 4095, 4096, 8192, 65536, 65532, 1048576, -1, 7, 88))
            if number:
                tokens[which] = tokens[which][:number.start()] + b'%d' % value + tokens[which][number.end():]
            lines[at] = b' '.join(tokens)
        elif kind == 6:
            tokens.insert(which, rng.choice((b'w', b'@0', b'0:0', b'!1', b'?2', b'p', b'', b'4')))
            lines[at] = b' '.join(tokens)
        else:
            line = bytearray(lines[at])
            if line:
                line[rng.randrange(len(line))] = rng.choice(b'0123456789 cidmuwrsqbfytakKvx:+-@?!#')
            lines[at] = bytes(line)
        if not lines:
            return b''
    events = sum(1 for line in lines if line and not line.startswith(b'#'))
    if rng.random() < 0.8:  # otherwise nearly every mutant fails for its count alone
        lines = [b'#end %d' % events if line.startswith(b'#end') else line for line in lines]
    return b'\n'.join(lines)


def main():
    vidmm = sys.argv[1]
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 150
    seed = int(sys.argv[3]) if len(sys.argv) > 3 else 1
    validate = os.path.join(os.environ.get('VIDMM_TRACES', ''), 'validate')
    print('1..1')
    if not os.access(validate, os.X_OK):
        print('ok 1 - same verdict as the validator # SKIP no validator at ' + validate)
        return 0
    base = open(os.path.join(HERE, 'data', 'every-op.trace'), 'rb').read()
    rng = random.Random(seed)
    accepted = stricter = 0
    problems = []
    with tempfile.TemporaryDirectory() as folder:
        paths = []
        for i in range(rounds):
            paths.append(os.path.join(folder, '%d.trace' % i))
            with open(paths[-1], 'wb') as f:
                f.write(mutate(rng, base))
        theirs = subprocess.run([validate] + paths, capture_output=True, text=True).stdout
        good = set(re.findall(r'^(\d+)\.trace: ok$', theirs, re.M))
        for i, path in enumerate(paths):
            ours = subprocess.run([vidmm, 'replay', '--parse-only', path], capture_output=True, text=True)
            if ours.returncode not in (0, 3):
                problems.append('mutant %d: exit code %d: %s' % (i, ours.returncode, ours.stderr))
            elif (ours.returncode == 0) == (str(i) in good):
                accepted += ours.returncode == 0
            elif ours.returncode == 3 and STRICTER.search(ours.stderr):
                stricter += 1
            else:
                problems.append('mutant %d: validator %s, vidmm %d: %s' % (
                    i, 'ok' if str(i) in good else 'BAD', ours.returncode, ours.stderr.strip()))
    print('# %d mutants, both accept %d, vidmm alone refuses %d' % (rounds, accepted, stricter))
    for problem in problems[:20]:
        print('# ' + problem)
    print('%s 1 - same verdict as the validator (seed %d)' % ('not ok' if problems else 'ok', seed))
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main())
