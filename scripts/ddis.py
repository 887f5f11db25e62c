#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Which DDIs are built, read off the tables in the source, so that the README cannot promise more.

    ddis.py           print the list
    ddis.py write     put it between the markers of README.md
    ddis.py check     fail if README.md says something else
"""

import glob
import os
import re
import sys

ROOT = os.environ.get('VIDMM_SOURCE_ROOT') or os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SECTION = re.compile(r'(<!-- ddis -->\n).*?(<!-- /ddis -->)', re.S)


def source(pattern):
    text = ''
    for path in sorted(glob.glob(os.path.join(ROOT, pattern))):
        with open(path, encoding='utf-8') as lines:
            text += lines.read()
    return text


def found(pattern, text):
    return sorted(set(re.findall(pattern, text)))


def lists():
    """(what, names built, names that answer "not supported")."""
    door, port = source('src/doors/umd/*.c'), source('src/port/*.c')
    built = found(r'\btable(?:->|\.)(pfn\w+Cb) =\s+(?!unbuilt_|\s)', door)
    unbuilt = found(r'(?m)^NOT_BUILT\((pfn\w+Cb)', door)
    yield 'Callbacks for user-mode drivers', built, [name for name in unbuilt if name not in built]
    yield 'Miniport functions that are called', found(r'\bddi\.(DxgkDdi\w+)\(', port), []
    refused = found(r'(?m)^\t+(?:return )?not_built\([^,]*, "(DxgkCb\w+)"', port)
    answered = found(r'(?m)^\t\.(DxgkCb\w+) = ', port)
    yield 'Callbacks for miniports', [name for name in answered if name not in refused], refused


def section():
    lines = []
    for what, built, refused in lists():
        names = ', '.join(f'`{name}`' for name in built)
        more = f' Another {len(refused)} are present and answer "not supported".' if refused else ''
        lines.append(f'- **{what}: {len(built)}.** {names}.{more}')
    return '\n'.join(lines) + '\n'


def main(arguments):
    verb = arguments[0] if arguments else 'print'
    readme = os.path.join(ROOT, 'README.md')
    if verb == 'print':
        print(section(), end='')
        return 0
    with open(readme, encoding='utf-8') as text:
        old = text.read()
    new = SECTION.sub(lambda match: match[1] + section() + match[2], old)
    if verb == 'write':
        with open(readme, 'w', encoding='utf-8') as text:
            text.write(new)
    elif new != old or not SECTION.search(old):
        print('README.md: its list of DDIs is not that of the source; run scripts/ddis.py write')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
