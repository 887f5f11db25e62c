#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_man.py VIDMM: the manual page lists the options of the program, and is well-formed (if groff is installed). TAP."""
import os
import re
import shutil
import subprocess
import sys

VIDMM = sys.argv[1]
ROOT = os.environ['VIDMM_SOURCE_ROOT']
PAGE = os.path.join(ROOT, 'docs', 'man', 'vidmm.1')


def output(*args):
    return subprocess.run(args, capture_output=True, text=True, check=False)


def options_in(text):
    return set(re.findall(r'--[a-z][a-z-]+', text))


def cases():
    with open(PAGE, encoding='utf-8') as page:
        source = page.read()
    named = options_in(source.replace('\\-', '-'))
    verbs = re.findall(r'^  ([a-z][a-z-]*) ', output(VIDMM, '--help').stdout, re.M)
    there = set()
    for verb in verbs:
        there |= options_in(output(VIDMM, verb, '--help').stdout)
    yield 'every option is named', there <= named, there - named
    # --version belongs to the program, not to a verb.
    yield 'no other option is named', named <= there | {'--version'}, named - there
    yield 'every verb is named', len(verbs) > 2 and all(f'vidmm {verb}' in source for verb in verbs), verbs
    version = re.search(r'\d+\.\d+', output(VIDMM, '--version').stdout).group()
    yield 'the version is the program\'s', f'"vidmm {version}"' in source, version
    if shutil.which('groff'):
        done = output('groff', '-man', '-ww', '-z', PAGE)
        yield 'groff has no complaint', done.returncode == 0 and not done.stderr, done.stderr
    else:
        yield 'groff has no complaint # SKIP it is not installed', True, ''


def main():
    results = list(cases())
    print(f'1..{len(results)}')
    for number, (name, good, text) in enumerate(results, 1):
        if not good:
            print(f'# {text}')
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main())
