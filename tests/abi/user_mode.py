#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every type, member and constant of ours that the tables of the user-mode interface list is as listed.

    user_mode.py [--source] COMPILER [ARG...]

Writes a C program from data/user-mode.tsv and data/constants.tsv, builds it and runs it; --source only
prints the program. Prints TAP. What the headers do not define is left out and counted; the floors below may
only rise, so that coverage cannot be lost unseen.
"""

import re
import sys

from declared import HEADERS, Declared
from tap import Tap, build_and_run, rows

FLOOR_TYPES, FLOOR_CONSTANTS = 505, 1053

# Not constants: the table holds the addresses of two string literals.
NOT_CONSTANT = ('D3DKMT_SUBKEY_DX9', 'D3DKMT_SUBKEY_OPENGL')

# Measured with an enumeration that mixes -1 and 0x80000000 and so takes 8 bytes on Linux; ours keeps the
# 4 bytes that drivers are compiled with, and kernel.tsv has the sizes that follow.
ENUM_OF_8_BYTES = ('D3DKMDT_VIDEO_PRESENT_TARGET',)

SIZES = {
    'BOOLEAN': 1, 'BYTE': 1, 'UCHAR': 1, 'uint8_t': 1, 'UINT8': 1, 'USHORT': 2, 'UINT16': 2, 'uint16_t': 2,
    'UINT': 4, 'ULONG': 4, 'LONG': 4, 'INT': 4, 'int': 4, 'BOOL': 4, 'DWORD': 4, 'UINT32': 4, 'uint32_t': 4,
    'int32_t': 4, 'float': 4, 'FLOAT': 4, 'D3DKMT_HANDLE': 4, 'UINT64': 8, 'ULONGLONG': 8, 'ULONG64': 8,
    'LONGLONG': 8, 'LONG64': 8, 'INT64': 8, 'int64_t': 8, 'SIZE_T': 8, 'ULONG_PTR': 8, 'HANDLE': 8, 'PVOID': 8,
    'D3DGPU_VIRTUAL_ADDRESS': 8, 'D3DGPU_SIZE_T': 8, 'D3DKMT_SIZE_T': 8, 'WCHAR': 4,
}
ARRAY = re.compile(r'\[(\d+)\]')

PROLOGUE = r'''/* Generated; see user_mode.py. */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
%s
static unsigned types, members, constants, mismatches;

static void wrong(const char *what, int64_t have, int64_t want)
{
	mismatches++;
	printf("# %%s: %%" PRId64 ", the table says %%" PRId64 "\n", what, have, want);
}

static void same(const char *what, int64_t have, int64_t want)
{
	if (have != want)
		wrong(what, have, want);
}

/* Enumerators above INT_MAX are negative here: 32-bit values are compared as 32 bits. */
static void same_constant(const char *what, int64_t have, int64_t want)
{
	constants++;
	if (have != want && (want < INT32_MIN || want > UINT32_MAX || (uint32_t)have != (uint32_t)want))
		wrong(what, have, want);
}

/* The object is zero but for one field, which is all ones. */
static void same_bits(const char *what, const void *object, size_t size, unsigned first, unsigned width)
{
	const unsigned char *bytes = object;
	unsigned count = 0;
	int64_t lowest = -1;

	for (size_t bit = 0; bit < size * 8; bit++) {
		if (!(bytes[bit / 8] >> (bit %% 8) & 1))
			continue;
		if (lowest < 0)
			lowest = (int64_t)bit;
		count++;
	}
	members++;
	if (lowest != (int64_t)first)
		wrong(what, lowest, first);
	if (count != width)
		wrong(what, count, width);
}

#define MEMBER(type, path, offset) \
	(members++, same(#type "." #path, (int64_t)offsetof(type, path), offset))
#define WIDTH(type, path, size) \
	same("sizeof " #type "." #path, (int64_t)sizeof(((type *)0)->path), size)
#define BITS(type, path, first, width) \
	do { \
		static type object; \
		memset(&object, 0, sizeof(object)); \
		object.path = ~object.path; \
		same_bits(#type "." #path, &object, sizeof(object), first, width); \
	} while (0)
#define TYPE(type, size, align) \
	(types++, same("sizeof " #type, (int64_t)sizeof(type), size), \
	 same("alignof " #type, (int64_t)_Alignof(type), align))
#define CONSTANT(name, value) same_constant(#name, (int64_t)(name), value)
'''


class Table:
    """The rows of user-mode.tsv by type, in their order."""

    def __init__(self):
        self.members, self.size, self.align = {}, {}, {}
        for name, member, offset, bit, width, kind in rows('user-mode.tsv'):
            if member == 'sizeof':
                self.members[name], self.size[name] = [], int(offset)
            elif member == 'alignof':
                self.align[name] = int(offset)
            elif kind:  # unnamed bit-fields have none
                self.members[name].append((member, int(offset), bit, width, kind))

    def width(self, kind):
        """Bytes of a member's C type, None when the tables do not say."""
        count = 1
        for length in ARRAY.findall(kind):
            count *= int(length)
        kind = ARRAY.sub('', kind).strip()
        if not count:
            return None
        if kind.endswith('*'):
            return 8 * count
        tag = re.sub(r'^(?:struct|union) _?', '', kind)
        size = SIZES.get(kind, self.size.get(tag))
        return size * count if size else None


def check_type(table, name):
    """The statements that check one type. Names that end in __ are tags: what a handle points to."""
    type_ = 'struct ' + name if name.endswith('__') else name
    lines = [f'\tTYPE({type_}, {table.size[name]}, {table.align[name]});']
    for member, offset, bit, width, kind in table.members[name]:
        if width:
            lines.append(f'\tBITS({type_}, {member}, {offset * 8 + int(bit)}, {width});')
            continue
        lines.append(f'\tMEMBER({type_}, {member}, {offset});')
        size = table.width(kind)
        if size:
            lines.append(f'\tWIDTH({type_}, {member}, {size});')
    return lines


def literal(value):
    return 'INT64_MIN' if value == -2 ** 63 else f'INT64_C({value})'


def program(declared, table, constants):
    """(C source, types checked, constants checked)."""
    parts, calls = [PROLOGUE % HEADERS], []
    types = [name for name in table.members if name in declared.types and name not in ENUM_OF_8_BYTES]
    for name in types:
        parts.append(f'static void check_{name}(void)\n{{\n' + '\n'.join(check_type(table, name)) + '\n}\n')
        calls.append(f'\tcheck_{name}();')
    known = [(name, value) for name, value in constants if name in declared.constants]
    body = '\n'.join(f'\tCONSTANT({name}, {literal(value)});' for name, value in known)
    parts.append(f'static void check_constants(void)\n{{\n{body}\n}}\n')
    parts.append('int main(void)\n{\n' + '\n'.join(calls) + '\n\tcheck_constants();\n'
                 f'\tprintf("types checked %u of {len(table.members)}, members %u, constants %u of '
                 f'{len(constants)}, mismatches %u\\n",\n'
                 '\t       types, members, constants, mismatches);\n\treturn mismatches ? 1 : 0;\n}\n')
    return '\n'.join(parts), types, known


def main(arguments):
    only_source = arguments[:1] == ['--source']
    compiler = arguments[1:] if only_source else arguments
    declared, table = Declared(compiler), Table()
    constants = [(name, int(value)) for _, _, name, value in rows('constants.tsv')]
    source, types, known = program(declared, table, constants)
    if only_source:
        print(source)
        return 0
    tap = Tap()
    status, output = build_and_run(compiler, source, ['-Wno-overflow'])
    tap.ok(status == 0, 'layouts and values are those of the tables', output.splitlines()[:60])
    tap.ok(len(types) >= FLOOR_TYPES, f'at least {FLOOR_TYPES} types are checked',
           ['not defined: ' + ' '.join(sorted(set(table.members) - set(types)))])
    tap.ok(len(known) >= FLOOR_CONSTANTS, f'at least {FLOOR_CONSTANTS} constants are checked',
           ['not defined: ' + ' '.join(sorted({name for name, _ in constants} - {name for name, _ in known}
                                              - set(NOT_CONSTANT)))])
    tap.ok(*sees_a_wrong_table(compiler))
    return tap.finish()


def sees_a_wrong_table(compiler):
    """One type shifted by a byte and a bit, one constant off by one: each is a mismatch."""
    table = Table()
    name = 'D3DDDI_PATCHLOCATIONLIST'
    table.members = {name: [(member, offset + (not width), bit, width and str(int(width) + 1), kind)
                            for member, offset, bit, width, kind in table.members[name]]}
    declared = Declared(compiler)
    source, _, _ = program(declared, table, [('D3DDDI_OFFER_PRIORITY_HIGH', 4)])
    status, output = build_and_run(compiler, source, ['-Wno-overflow'])
    expected = len(table.members[name]) + 1
    good = status == 1 and f'mismatches {expected}\n' in output
    return good, f'{expected} wrong figures are noticed', [] if good else output.splitlines()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
