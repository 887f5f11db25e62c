#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes C from operations.tsv. Errors in the table are reported with their line.

table.py OPERATIONS.TSV OUT.H OUT.C LOCAL.H: the tables, and local names of the D3DKMT functions
table.py OPERATIONS.TSV PREFIX NAMES.H:     macros that give each D3DKMT function the prefix
"""

import re
import sys

RECORD_KINDS = {'descriptor': 'DESCRIPTOR', 'code': 'CODE', 'descriptor-out': 'DESCRIPTOR_OUT', 'address': 'ADDRESS',
                'memory': 'MEMORY', 'token': 'TOKEN', 'presence': 'PRESENCE', 'unread': 'UNREAD'}

# The first word of a line, and the first number of that kind.
FIRST = {'operation': 1, 'callback': 1001, 'unbuilt': 1501, 'runtime': 2001}
COLUMNS = {'operation': (5, 6), 'unbuilt': (4,)}


class TableError(Exception):
    pass


def identifier(name):
    return re.sub(r'\W', '_', name)


def member(type_name, fields, records):
    """One initializer of a struct vmm_wire_member."""
    path, kind, count, limit, direction, when = fields
    what, _, of = kind.partition(':')
    at = '0' if path == '-' else f'offsetof({type_name}, {path})'
    parts = [f'.at = {at}']
    if what in ('array', 'record'):
        if (what == 'record') != (of in records):
            raise TableError(f'{of} is {"not " if what == "record" else ""}a record of this table')
        parts += [f'.kind = VMM_WIRE_ARRAY, .unit = sizeof({of}), .limit = {int(limit.rstrip("!"))}u']
        if limit.endswith('!'):
            parts.append('.non_null = true')
        name, _, least = count.partition('|')
        if name.isdigit():
            parts.append(f'.least = {int(name)}')
        else:
            parts.append(f'.counted = true, .count_at = offsetof({type_name}, {name}), '
                         f'.count_bytes = sizeof((({type_name} *)0)->{name}), .least = {int(least or 0)}')
        if direction not in ('in', 'inout'):
            raise TableError(f'{path}: wrong direction "{direction}": expected in or inout')
        parts.append(f'.returned = {"true" if direction == "inout" else "false"}')
        if what == 'record':
            parts.append(f'.record = &record_{identifier(of)}')
    elif what == 'into':
        parts.append(f'.kind = VMM_WIRE_INTO, .into = "{of}"')
    elif kind in RECORD_KINDS:
        parts.append(f'.kind = VMM_WIRE_{RECORD_KINDS[kind]}')
    else:
        raise TableError(f'unknown kind {kind}')
    if what not in ('array', 'record') and (count, limit, direction) != ('-', '-', '-'):
        raise TableError(f'{path}: kind {kind} takes no count, limit or direction')
    for condition in when.split('+') if when != '-' else []:
        bits = re.fullmatch(r'([\w.]+)&(0x[0-9A-Fa-f]+)=(\w+)', condition)
        values = re.fullmatch(r'values>=([12]):(\w+)', condition)
        given = re.fullmatch(r'(null|set):(\w+)', condition)
        if given:
            parts.append(f'.given_at = offsetof({type_name}, {given[2]}), '
                         f'.given = {"VMM_WIRE_IF_SET" if given[1] == "set" else "VMM_WIRE_IF_NULL"}')
        elif bits:
            parts.append(f'.when_at = offsetof({type_name}, {bits[1]}), .when_mask = {bits[2]}u, .when_value = {bits[3]}u')
        elif values:
            parts.append(f'.when_values = {values[1]}, .when_objects = offsetof({type_name}, {values[2]})')
        else:
            raise TableError(f'unknown condition {condition}')
    return f'\t{{.name = "{path}", {", ".join(parts)}}},'


def read(path):
    """Returns [(line number, columns, [(line number, columns of a member)])], one for each record and call."""
    things = []
    with open(path, encoding='utf-8') as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip('\n')
            if not line or line.startswith('#'):
                continue
            fields = line.split('\t')
            try:
                if fields[0] == '':
                    if len(fields) != 7:
                        raise TableError('a member line needs six columns')
                    things[-1][2].append((number, fields[1:]))
                elif fields[0] == 'record' and len(fields) == 2:
                    things.append((number, fields, []))
                elif fields[0] in FIRST and len(fields) in COLUMNS.get(fields[0], (5,)):
                    things.append((number, fields, []))
                else:
                    raise TableError(f'unknown line, or wrong number of columns: {fields[0]}')
            except TableError as bad:
                sys.exit(f'{path}:{number}: {bad}')
    return things


def describe(path, things):
    """Returns the lines of the C source, and the calls by the first word of their lines."""
    records, calls, lines, sections = set(), {kind: [] for kind in FIRST}, [], {}
    for number, fields, members in things:
        type_name = fields[1] if fields[0] == 'record' else fields[3]
        name = identifier(fields[1] if fields[0] == 'record' else fields[2])
        initializers = []
        for at, columns in members:
            try:
                initializers.append(member(type_name, columns, records))
            except (TableError, ValueError) as bad:
                sys.exit(f'{path}:{at}: {bad}')
        if initializers:
            lines += [f'static const struct vmm_wire_member members_{name}[] = {{', *initializers, '};']
        size = '0' if fields[0] == 'unbuilt' else f'sizeof({type_name})'
        lines += [f'static const struct vmm_wire_record record_{name} = {{',
                  f'\t.bytes = {size}, .members = {f"members_{name}" if initializers else "NULL"}, '
                  f'.count = {len(initializers)},', '};']
        if fields[0] == 'record':
            records.add(type_name)
            continue
        of_kind = calls[fields[0]]
        if int(fields[1]) != FIRST[fields[0]] + len(of_kind):
            sys.exit(f'{path}:{number}: number {fields[1]}: expected {FIRST[fields[0]] + len(of_kind)}; '
                     'numbers are consecutive and never reused')
        if fields[0] == 'unbuilt':
            of_kind.append((int(fields[1]), fields[2], type_name, True, name, False, ''))
            continue
        if fields[4] not in ('in', 'inout', 'const-inout'):
            sys.exit(f'{path}:{number}: wrong direction "{fields[4]}": expected in, inout or const-inout')
        section = re.fullmatch(r'section:(\w+)&(0x[0-9A-Fa-f]+)', fields[5]) if fields[5:] else None
        if fields[5:] not in ([], ['carried']) and not section:
            sys.exit(f'{path}:{number}: wrong last column "{fields[5]}": expected carried or section:MEMBER&MASK')
        if section:
            sections[fields[2]] = f', .section_at = offsetof({type_name}, {section[1]}), .section_mask = {section[2]}u'
        constant = 'const ' if fields[4] != 'inout' and fields[0] != 'runtime' else ''
        of_kind.append((int(fields[1]), fields[2], type_name, fields[4] != 'in', name, fields[5:] == ['carried'], constant))
    lines.append('const struct vmm_wire_operation vmm_wire_operations[] = {')
    for number, function, _, back, name, *_ in sum(calls.values(), []):
        lines.append(f'\t{{.number = {number}, .name = "{function}", .returned = {"true" if back else "false"}, '
                     f'.argument = &record_{name}{sections.get(function, "")}}},')
    lines.append('};')
    lines.append('const struct vmm_wire_numbers vmm_wire_numbers[] = {')
    for kind, first in FIRST.items():
        lines.append(f'\t{{{first}, {len(calls[kind])}}},')
    lines += ['};', f'const uint32_t vmm_wire_operation_count = {sum(map(len, calls.values()))};']
    return lines, calls


def rename(calls, prefix, path):
    """Writes macros that rename the D3DKMT functions, so that an includer does not use the exported ones."""
    with open(path, 'w', encoding='utf-8') as out:
        out.write('/* SPDX-License-Identifier: MIT */\n/* Made from operations.tsv. */\n')
        for _, function, *_ in calls['operation']:
            out.write(f'#define {function} {prefix}{function}\n')


def main():
    path, *outs = sys.argv[1:]
    lines, calls = describe(path, read(path))
    if len(outs) == 2:
        rename(calls, *outs)
        return
    header, source, local = outs
    rename(calls, 'vmm_local_', local)
    with open(header, 'w', encoding='utf-8') as out:
        out.write('/* SPDX-License-Identifier: MIT */\n'
                  '/* Made from operations.tsv. X(number, function, argument type); of an unbuilt callback with its *. */\n')
        for name, kind, wanted in (('VMM_WIRE_OPERATIONS', 'operation', False), ('VMM_WIRE_CARRIED', 'operation', True),
                                   ('VMM_WIRE_CALLBACKS', 'callback', False), ('VMM_WIRE_UNBUILT', 'unbuilt', False),
                                   ('VMM_WIRE_RUNTIME', 'runtime', False)):
            out.write(f'#define {name}(X)')
            for number, function, argument, _, _, carried, constant in calls[kind]:
                if carried == wanted:
                    out.write(f' \\\n\tX({number}, {function}, {constant}{argument})')
            out.write('\n')
        out.write('enum {\n')
        for number, function, *_ in sum(calls.values(), []):
            out.write(f'\tVMM_WIRE_{function} = {number},\n')
        out.write('};\n')
    with open(source, 'w', encoding='utf-8') as out:
        out.write('/* SPDX-License-Identifier: MIT */\n/* Made from operations.tsv. */\n#include "wire/wire_private.h"\n\n')
        out.write('\n'.join(lines) + '\n')


main()
