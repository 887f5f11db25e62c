#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists the implemented DDIs, as the tables in the source have them, for docs/ddis.md.

    ddis.py           print the list
    ddis.py write     write the list between the markers of docs/ddis.md
    ddis.py check     fail if docs/ddis.md differs from the source
"""

import glob
import os
import re
import sys

ROOT = (os.environ.get('VIDMM_SOURCE_ROOT')
        or os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
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
    """(title, implemented names, names that return "not supported")."""
    doors, wire, port = source('src/doors/calls.tsv'), source('src/wire/operations.tsv'), source('src/port/*.c')
    yield ('Callbacks for user-mode drivers', found(r'(?m)^(?:\tumd|hand)\t(pfn\w+Cb)\t', doors),
           found(r'(?m)^unbuilt\t\d+\t(pfn\w+Cb)\t', wire))
    yield 'Miniport functions that are called', found(r'\bddi\.(DxgkDdi\w+)\(', port), []
    refused = found(r'(?m)^\t+(?:return )?not_built\([^,]*, "(DxgkCb\w+)"', port)
    answered = found(r'(?m)^\t\.(DxgkCb\w+) = ', port)
    yield 'Callbacks for miniports', [name for name in answered if name not in refused], refused


def bullets(names):
    return ''.join(f'- `{name}`\n' for name in names)


def section():
    parts = []
    for what, built, refused in lists():
        part = f'## {what}: {len(built)}\n\n{bullets(built)}'
        if refused:
            part += f'\nAnother {len(refused)} are present and answer "not supported":\n\n{bullets(refused)}'
        parts.append(part)
    return '\n'.join(parts)


def main(arguments):
    verb = arguments[0] if arguments else 'print'
    page = os.path.join(ROOT, 'docs/ddis.md')
    if verb == 'print':
        print(section(), end='')
        return 0
    with open(page, encoding='utf-8') as text:
        old = text.read()
    new = SECTION.sub(lambda match: match[1] + section() + match[2], old)
    if verb == 'write':
        with open(page, 'w', encoding='utf-8') as text:
            text.write(new)
    elif new != old or not SECTION.search(old):
        print('docs/ddis.md: the list of DDIs differs from the source; run scripts/ddis.py write')
        return 1
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
