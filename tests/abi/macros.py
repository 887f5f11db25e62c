#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No header defines a macro with a lower-case name, like __in: the standard libraries use such names.

    macros.py COMPILER [ARG...]

Reads the definitions that the compiler reports (-dD -E) with the file of each, for every header that a program may
include, as C and as C++, and in the first and the last interface version. Definitions in headers of the system do
not count. Prints TAP.
"""

import os
import re
import sys

from kernel import VERSIONS
from tap import INCLUDABLE, INCLUDE, WDDM, Tap, run

LANGUAGES = {'c': '-std=c11', 'c++': '-std=c++17'}
MARKER = re.compile(r'# \d+ "([^"]*)"')
DEFINITION = re.compile(r'#define (\w+)')
LOWER_CASE = re.compile(r'_*[a-z]')


def defined(output, folder):
    """The names that files below the folder define, from the text of -dD -E."""
    ours, names = False, set()
    for line in output.splitlines():
        marker, definition = MARKER.match(line), DEFINITION.match(line)
        if marker:
            ours = os.path.abspath(marker[1]).startswith(folder + os.sep)
        elif definition and ours:
            names.add(definition[1])
    return names


def lower_case(names):
    return sorted(name for name in names if LOWER_CASE.match(name))


def names_of(compiler, language, version, header):
    """(exit status, names, errors)."""
    source = f'#define DXGKDDI_INTERFACE_VERSION {VERSIONS[version]:#x}\n#include <{header}>\n'
    status, output, errors = run([*compiler, '-x', language, LANGUAGES[language], '-I' + WDDM, '-I' + INCLUDE,
                                  '-dD', '-E', '-'], source)
    return status, defined(output, INCLUDE), errors


def main(compiler):
    tap = Tap()
    for header in INCLUDABLE:
        problems, count = [], 0
        for language in LANGUAGES:
            for version in ('1.0', '3.2'):
                status, names, errors = names_of(compiler, language, version, header)
                problems += errors.splitlines()[:5] if status else lower_case(names)
                count = max(count, len(names))
        tap.ok(count and not problems, f'{header}: {count} macros, none with a lower-case name', sorted(set(problems)))
    text = (f'# 1 "{WDDM}/x.h"\n#define __in\n#define IN\n#define near\n#define _In_\n'
            '# 1 "/usr/include/y.h"\n#define __out\n')
    tap.ok(lower_case(defined(text, INCLUDE)) == ['__in', 'near'], 'a macro with a lower-case name is noticed')
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
