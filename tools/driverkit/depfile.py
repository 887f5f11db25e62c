# SPDX-License-Identifier: MIT
"""The dependencies that a compiler writes for make (-MMD, -MD), without files that are already deleted.

The forwarding headers and the .tmh files are in a temporary folder. A rule that names one would make
the object out of date for ever.
"""

import os
import re

# A backslash quotes the next character; gcc writes the backslash of a file's name as it is.
NAME = re.compile(r'(?:\\.|[^\s\\])+')


def path_of(flags, result):
    """Where the compiler writes the dependencies of the object RESULT, or None if it writes none."""
    if not {'-MMD', '-MD'}.intersection(flags):
        return None
    for flag, value in zip(flags, flags[1:] + ['']):
        if flag.startswith('-MF'):
            return flag[len('-MF'):] or value
    return os.path.splitext(result)[0] + '.d'


def without(text, folder):
    """The rules of TEXT without the files in FOLDER."""
    rules = []
    for line in text.replace('\\\n', ' ').splitlines():
        names = [name for name in NAME.findall(line) if not name.startswith(folder + os.sep)]
        if names:
            rules.append(' \\\n  '.join(names))
    return '\n'.join(rules) + '\n'


def clean(path, folder):
    with open(path, encoding='utf-8', errors='surrogateescape') as file:
        text = file.read()
    with open(path, 'w', encoding='utf-8', errors='surrogateescape') as file:
        file.write(without(text, folder))
