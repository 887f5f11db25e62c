#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The sizes, offsets, bits and values of data/kernel.tsv hold in every interface version they name.

    kernel.py COMPILER [ARG...]

One C program per interface version, because structures grow with it. Prints TAP.
"""

import sys

from tap import Tap, build_and_run, rows

VERSIONS = {
    '1.0': 0x1052, '1.1': 0x2005, '1.2': 0x300E, '1.3': 0x4002, '2.0': 0x5023, '2.1': 0x6003, '2.2': 0x700A,
    '2.3': 0x8001, '2.4': 0x9006, '2.5': 0xA00B, '2.6': 0xB004, '2.7': 0xC004, '2.8': 0xD001, '2.9': 0xE003,
    '3.0': 0xF003, '3.1': 0x10004, '3.2': 0x11000,
}
ORDER = list(VERSIONS)

PROLOGUE = r'''/* Generated; see kernel.py. */
#define DXGKDDI_INTERFACE_VERSION 0x%X
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <d3dkmthk.h>
#include <d3dumddi.h>
#include <dispmprt.h>

static unsigned checks, mismatches;

static void same(const char *what, int64_t have, int64_t want)
{
	checks++;
	if (have == want)
		return;
	mismatches++;
	printf("# %%s: %%" PRId64 " (0x%%" PRIX64 "), the table says %%" PRId64 " (0x%%" PRIX64 ")\n", what, have,
	       (uint64_t)have, want, (uint64_t)want);
}

static uint32_t word(const void *object, size_t byte)
{
	uint32_t value;

	memcpy(&value, (const char *)object + byte, sizeof(value));
	return value;
}

#define SIZE(type, value) same("sizeof " #type, (int64_t)sizeof(type), value)
#define OFFSET(type, path, value) same(#type "." #path, (int64_t)offsetof(type, path), value)
#define VALUE(name, value) same(#name, (int64_t)(uint32_t)(name), value)
#define MASK(type, path, byte, value) \
	do { \
		static type object; \
		memset(&object, 0, sizeof(object)); \
		object.path = ~object.path; \
		same(#type "." #path " mask", (int64_t)word(&object, byte), value); \
	} while (0)
'''


def applies(versions, version):
    """Whether a row for `versions` (all, >=1.2, <2.0, =1.3, 1.1-1.3) counts in `version`."""
    at = ORDER.index(version)
    if versions == 'all':
        return True
    if versions.startswith('>='):
        return at >= ORDER.index(versions[2:])
    if versions.startswith('<'):
        return at < ORDER.index(versions[1:])
    if versions.startswith('='):
        return versions[1:] == version
    first, last = versions.split('-')
    return ORDER.index(first) <= at <= ORDER.index(last)


def statement(name, member, what, value):
    what, _, byte = what.partition('@')
    number = f'INT64_C({int(value, 0)})'
    if what == 'size':
        return f'\tSIZE({name}, {number});'
    if what == 'offset':
        return f'\tOFFSET({name}, {member}, {number});'
    if what == 'value':
        return f'\tVALUE({name}, {number});'
    base = f'offsetof({name}, {member.rpartition(".")[0]})' if '.' in member else byte or '0'
    return f'\tMASK({name}, {member}, {base}, {number});'


def program(version, table):
    lines = [statement(name, member, what, value) for name, versions, member, what, value in table
             if applies(versions, version)]
    return (PROLOGUE % VERSIONS[version] + '\nint main(void)\n{\n' + '\n'.join(lines)
            + '\n\tprintf("checks %u, mismatches %u\\n", checks, mismatches);\n\treturn mismatches ? 1 : 0;\n}\n')


def main(compiler):
    tap, table = Tap(), list(rows('kernel.tsv'))
    for version in VERSIONS:
        status, output = build_and_run(compiler, program(version, table))
        tap.ok(status == 0, f'interface version {version}', output.splitlines()[:40])
    wrong = [row if row[3] == 'value' else [*row[:4], str(int(row[4], 0) + 8)] for row in table]
    count = sum(row[3] != 'value' and applies(row[1], '2.0') for row in wrong)
    status, output = build_and_run(compiler, program('2.0', wrong))
    tap.ok(status == 1 and f'mismatches {count}\n' in output, f'{count} wrong figures are noticed')
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
