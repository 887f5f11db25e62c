#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""surface.py OPERATIONS USER_MODE OUTPUT: the D3DKMT functions for test_surface.c, as rows of a C table.

OPERATIONS is src/wire/operations.tsv, USER_MODE tests/abi/data/user-mode.tsv. A row is a function of one argument pointer,
the size of its argument, and where the argument has D3DKMT_HANDLEs.
"""
import sys


def rows(path):
    with open(path, encoding='utf-8') as table:
        return [line.rstrip('\n').split('\t') for line in table if line.strip() and not line.startswith('#')]


def main(operations, user_mode, output):
    handles = {}
    for type_name, member, offset, *_, c_type in (row for row in rows(user_mode) if len(row) == 6):
        if c_type == 'D3DKMT_HANDLE' and '[' not in member:
            handles.setdefault(type_name, set()).add(int(offset))
    with open(output, 'w', encoding='utf-8') as out:
        out.write('/* Made by surface.py. */\n')
        for row in rows(operations):
            # "carried" functions take the members one by one.
            if row[0] != 'operation' or 'carried' in row:
                continue
            function, argument = row[2:4]
            offsets = sorted(handles.get(argument, ()))
            out.write(f'FUNCTION({function}, {argument}, {len(offsets)}, {", ".join(map(str, offsets)) or "0"})\n')


if __name__ == '__main__':
    main(*sys.argv[1:])
