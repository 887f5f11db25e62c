#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_man.py VIDMM [RULES]: the page of each verb lists its options; all pages are well-formed. TAP.

RULES: vidmm-rules.7, which the build writes. groff, man-db and mandoc check the pages if they are installed.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

VIDMM = sys.argv[1]
PAGES = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'docs', 'man')
CHECKERS = {
    'groff': ('groff', '-man', '-ww', '-z'),
    'man': ('man', '--warnings', '-l'),
    'mandoc': ('mandoc', '-T', 'lint', '-W', 'warning'),
}


def output(*args):
    environment = {**os.environ, 'LC_ALL': 'C.UTF-8', 'MANROFFSEQ': '', 'MANPAGER': 'cat'}
    return subprocess.run(args, capture_output=True, text=True, check=False, env=environment)


def read(name):
    path = os.path.join(PAGES, name)
    if not os.path.exists(path):
        return ''
    with open(path, encoding='utf-8') as page:
        return page.read()


def options_in(text):
    return set(re.findall(r'(?<![\w-])--[a-z][a-z-]+', text))


def options_of(page):
    """The options that a page of a verb describes: those in its section OPTIONS."""
    section = re.search(r'^\.SH OPTIONS\n(.*?)^\.SH ', page.replace('\\-', '-'), re.M | re.S)
    heads = re.findall(r'^\.TP\n(.*)$', section[1], re.M) if section else []
    return options_in('\n'.join(heads))


def verb_cases(verb):
    page = read(f'vidmm-{verb}.1')
    yield f'{verb} has a page', f'vidmm {verb}' in page.replace('\\-', '-'), ''
    described, there = options_of(page), options_of_help(verb) or {'--help'}
    yield f'the page of {verb} describes its options', described == there, described ^ there


def options_of_help(verb):
    """The options at the beginning of a line of the help text."""
    return set(re.findall(r'^  (?:-\w, |    )(--[a-z][a-z-]*)', output(VIDMM, verb, '--help').stdout, re.M))


def check_cases(pages):
    for name, command in CHECKERS.items():
        if not shutil.which(name):
            yield f'{name} has no complaint # SKIP it is not installed', True, ''
            continue
        complaints = [output(*command, page) for page in pages]
        # man prints the page itself on its standard output, mandoc its complaints.
        text = '\n'.join(done.stderr + (done.stdout if name == 'mandoc' else '') for done in complaints)
        yield f'{name} has no complaint', not text.strip() and all(done.returncode == 0 for done in complaints), text


def cases():
    source = read('vidmm.1')
    verbs = re.findall(r'^  ([a-z][a-z-]*) ', output(VIDMM, '--help').stdout, re.M)
    unnamed = [verb for verb in verbs if f'.BR vidmm-{verb} (1)' not in source.replace('\\-', '-')]
    yield 'vidmm(1) names the page of each verb', len(verbs) > 2 and not unnamed, unnamed
    for verb in verbs:
        yield from verb_cases(verb)
    version = re.search(r'\d+\.\d+', output(VIDMM, '--version').stdout).group()
    yield 'the version is the program\'s', f'"vidmm {version}"' in source, version
    pages = sorted(glob.glob(os.path.join(PAGES, '*.[1-9]'))) + sys.argv[2:]
    yield from check_cases(pages)
    if len(sys.argv) > 2:
        with open(sys.argv[2], encoding='utf-8') as page:
            found = re.findall(r'^\.B ([A-Z]+-\w+)$', page.read().replace('\\-', '-'), re.M)
        listed = [line.split()[0] for line in output(VIDMM, 'rules').stdout.splitlines()]
        yield 'vidmm-rules(7) has each rule', sorted(found) == sorted(listed), set(found) ^ set(listed)


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
