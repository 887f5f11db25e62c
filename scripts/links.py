#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Finds links between Markdown documents of this tree whose file or heading does not exist.

    links.py [ROOT]
"""

import os
import re
import sys

LINK = re.compile(r'(?<!!)\[[^\]]*\]\(([^)\s]+)\)')
FENCE = re.compile(r'^(```|~~~).*?^\1', re.M | re.S)
HEADING = re.compile(r'^#+\s+(.*)$', re.M)


def documents(root):
    for where, dirs, names in os.walk(root):
        dirs[:] = sorted(name for name in dirs if not name.startswith(('.', 'build')))
        for name in sorted(names):
            if name.endswith('.md'):
                yield os.path.join(where, name)


def read(path):
    with open(path, encoding='utf-8') as text:
        return FENCE.sub('', text.read())


def anchors(text):
    """The anchors that GitHub derives from the headings."""
    return {re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', '-')
            for heading in HEADING.findall(text)}


def broken(root):
    for path in documents(root):
        for target in LINK.findall(read(path)):
            if re.match(r'[a-z]+:', target):
                continue
            name, _, anchor = target.partition('#')
            file = os.path.normpath(os.path.join(os.path.dirname(path), name)) if name else path
            if not os.path.exists(file):
                yield f'{os.path.relpath(path, root)}: {target}: no such file'
            elif anchor and file.endswith('.md') and anchor not in anchors(read(file)):
                yield f'{os.path.relpath(path, root)}: {target}: no such heading'


def main(arguments):
    here = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    root = os.path.abspath(arguments[0]) if arguments else here
    problems = list(broken(root))
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
