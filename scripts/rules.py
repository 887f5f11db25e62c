#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reads the rule tables: coverage, consistency, and their C and Markdown forms.

    rules.py coverage [FAMILY...]   list what implements, reports and tests each rule (./x rules)
    rules.py check                  fail on a malformed row, a repeated id, or an undefined id
    rules.py c OUTDIR TSV...        write rules_table.c and rules_table.h
    rules.py md FILE                write the tables as one Markdown document

VIDMM_SOURCE_ROOT: the source tree, if it is not the one that contains this script.

A rule is implemented if its id is in a .c file of src, drivers or tools. It is reported if the id
is in a string literal there (a message to the user). It is tested if a test function has its name
(lock_07_readonly_with_writeonly_is_invalid) or a string literal of a test contains the id.
"""

import glob
import os
import re
import sys

COLUMNS = ['id', 'text', 'error', 'versions', 'provenance', 'source']
PROVENANCE = {
    'documented', 'documented, part inferred', 'observed', 'observed, part inferred', 'inferred',
    'our choice',
}
CODE_FOLDERS = ['src', 'drivers', 'tools', 'include']
CHOICE_FAMILIES = {'C', 'Q'}
CHOICES = 'choices.tsv'
ID = re.compile(r'\b([A-Z]{1,4})-(\d{2,3}[a-z]?)\b')
STRING = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
# Of C with cmocka, and of Python (tests/support/tap_tests.py).
TEST_FUNCTION = re.compile(r'^(?:(?:static )?void|def) ((?:[a-z]{1,4}_\d{2,3}[a-z]?_)+\w+)\((?:void \*\*|folder|\))', re.M)
TEST_NAME_PART = re.compile(r'([a-z]{1,4})_(\d{2,3}[a-z]?)_')


class Rule:
    """One row of a table, and where the tree contains its id."""

    def __init__(self, row, table):
        self.id, self.text, self.error, self.versions, self.provenance, self.source = row
        self.table = table
        self.code, self.messages, self.tests = set(), set(), []

    @property
    def family(self):
        return self.id.split('-')[0]

    @property
    def state(self):
        if self.tests:
            return 'tested' if self.code else 'tested, id not in code'
        return 'implemented, no test' if self.code else 'missing'


def read_tables(paths, problems):
    """All rules by id, in table order. Errors of rows are appended to `problems`."""
    rules = {}
    for path in paths:
        with open(path, encoding='utf-8') as lines:
            rows = [line.rstrip('\n') for line in lines if not line.startswith('#')]
        name = os.path.basename(path)
        if not rows or rows[0].split('\t') != COLUMNS:
            problems.append(f'{name}: the first row must name the columns {" ".join(COLUMNS)}')
            continue
        for row in rows[1:]:
            cells = row.split('\t')
            if len(cells) != len(COLUMNS) or not all(cell.strip() for cell in cells):
                problems.append(
                    f'{name}: {cells[0] or "?"}: expected {len(COLUMNS)} cells, none empty')
            elif not ID.fullmatch(cells[0]):
                problems.append(f'{name}: {cells[0]}: not a rule id')
            elif cells[4] not in PROVENANCE:
                problems.append(f'{name}: {cells[0]}: unknown provenance {cells[4]!r}')
            elif cells[0] in rules:
                problems.append(f'{name}: {cells[0]}: defined twice')
            else:
                rules[cells[0]] = Rule(cells, name)
    return rules


def tables_of(root):
    return sorted(glob.glob(os.path.join(root, 'docs', 'rules', '*.tsv')))


# Functions of src/doors are made from it. The last column of its kmt lines is part of a message.
DOORS_TABLE = 'calls.tsv'
DOORS_MESSAGE = re.compile(r'^\tkmt\t[^\t\n]*\t[^\t\n]*\t(.+)$', re.M)


def sources_below(root, folders):
    for folder in folders:
        for where, dirs, names in os.walk(os.path.join(root, folder)):
            dirs.sort()
            for name in sorted(names):
                if name.endswith(('.c', '.h', '.py', '.sh')) or name == DOORS_TABLE:
                    path = os.path.join(where, name)
                    with open(path, encoding='utf-8', errors='replace') as source:
                        yield os.path.relpath(path, root), source.read()


def scan(root, rules, problems):
    """Fills in code, messages and tests of every rule."""
    families = {rule.family for rule in rules.values()} - CHOICE_FAMILIES

    def known(match, path):
        rule = rules.get(match[0])
        if rule is None and match[1] in families:
            problems.append(f'{path}: {match[0]} is not in a rule table')
        return rule

    for path, text in sources_below(root, CODE_FOLDERS):
        for match in ID.finditer(text):
            rule = known(match, path)
            # A header only declares; the implementation is in a source file.
            if rule and path.endswith(('.c', DOORS_TABLE)):
                rule.code.add(path)
        quoted = [*STRING.finditer(text), *(DOORS_MESSAGE.finditer(text) if path.endswith(DOORS_TABLE) else ())]
        for literal in quoted:
            for match in ID.finditer(literal[1]):
                if match[0] in rules:
                    rules[match[0]].messages.add(path)
    for path, text in sources_below(root, ['tests']):
        if path.startswith(os.path.join('tests', 'tidy')):
            continue
        for function in TEST_FUNCTION.finditer(text):
            prefix = re.match(r'(?:[a-z]{1,4}_\d{2,3}[a-z]?_)+', function[1])[0]
            for family, number in TEST_NAME_PART.findall(prefix):
                match = ID.fullmatch(f'{family.upper()}-{number}')
                rule = known(match, path)
                if rule:
                    rule.tests.append(function[1])
        for literal in STRING.finditer(text):
            for match in ID.finditer(literal[1]):
                rule = known(match, path)
                if rule:
                    rule.tests.append(f'{path}: "{match[0]}"')


def print_coverage(rules, families):
    counted = [rule for rule in rules.values()
               if rule.table != CHOICES and (not families or rule.family in families)]
    print(f'{"rule":9} {"provenance":26} {"message":8} {"state":22} test')
    for rule in counted:
        # A function with the rule's name is preferred to a string that contains it.
        tests = min(rule.tests, key=lambda test: '"' in test, default='-')
        more = f' (+{len(rule.tests) - 1})' if len(rule.tests) > 1 else ''
        message = 'yes' if rule.messages else '-'
        print(f'{rule.id:9} {rule.provenance:26} {message:8} {rule.state:22} {tests}{more}')
    print()
    print(f'{"family":9} {"rules":>6} {"tested":>7} {"no test":>8} {"missing":>8}')
    totals = [0, 0, 0, 0]
    for family in dict.fromkeys(rule.family for rule in counted):
        states = [rule.state for rule in counted if rule.family == family]
        row = [
            len(states),
            sum(state.startswith('tested') for state in states),
            states.count('implemented, no test'),
            states.count('missing'),
        ]
        totals = [total + cell for total, cell in zip(totals, row)]
        print(f'{family:9} {row[0]:6} {row[1]:7} {row[2]:8} {row[3]:8}')
    print(f'{"all":9} {totals[0]:6} {totals[1]:7} {totals[2]:8} {totals[3]:8}')


def c_string(text):
    """A C string literal. The tables are UTF-8, as are the terminals that they are printed on."""
    return '"' + text.replace('\\', '\\\\').replace('"', '\\"').replace('?', '\\?') + '"'


def write_c(outdir, rules):
    fields = COLUMNS
    with open(os.path.join(outdir, 'rules_table.h'), 'w', encoding='utf-8') as header:
        header.write('/* SPDX-License-Identifier: MIT */\n/* Written by scripts/rules.py from docs/rules. */\n'
                     '#ifndef VIDMM_RULES_TABLE_H\n#define VIDMM_RULES_TABLE_H\n\n#include <stddef.h>\n\n'
                     'struct vidmm_rule {\n')
        for field in fields:
            header.write(f'\tconst char *{field};\n')
        header.write('};\n\n/* Sorted by id. */\nextern const struct vidmm_rule vidmm_rules[];\n'
                     'extern const size_t vidmm_rules_count;\n\n#endif\n')
    with open(os.path.join(outdir, 'rules_table.c'), 'w', encoding='utf-8') as source:
        source.write('/* SPDX-License-Identifier: MIT */\n/* Written by scripts/rules.py from docs/rules. */\n'
                     '#include "rules_table.h"\n\nconst struct vidmm_rule vidmm_rules[] = {\n')
        for rule in sorted(rules.values(), key=lambda rule: rule.id):
            source.write('\t{\n')
            for field in fields:
                source.write(f'\t\t.{field} = {c_string(getattr(rule, field))},\n')
            source.write('\t},\n')
        source.write('};\n\nconst size_t vidmm_rules_count = sizeof(vidmm_rules) / sizeof(vidmm_rules[0]);\n')


def markdown(rules):
    lines = ['<!-- Written by `./x docs` from docs/rules/*.tsv. -->', '', '# Every rule, by family', '']
    for family in dict.fromkeys(rule.family for rule in rules.values()):
        members = [rule for rule in rules.values() if rule.family == family]
        lines += [f'## {family} ({members[0].table})', '',
                  '| id | rule | if violated | WDDM | provenance |', '| --- | --- | --- | --- | --- |']
        for rule in members:
            cells = [rule.id, rule.text, rule.error, rule.versions, rule.provenance]
            lines.append('| ' + ' | '.join(re.sub(r'([|<>*_])', r'\\\1', cell) for cell in cells) + ' |')
        lines.append('')
    return '\n'.join(lines)


def main(arguments):
    if not arguments or arguments[0] not in ('coverage', 'check', 'c', 'md'):
        sys.stderr.write(__doc__)
        return 2
    verb, rest = arguments[0], arguments[1:]
    root = (os.environ.get('VIDMM_SOURCE_ROOT')
            or os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    problems = []
    rules = read_tables(rest[1:] if verb == 'c' else tables_of(root), problems)
    if not rules:
        problems.append('no rule table found')
    if verb in ('coverage', 'check'):
        scan(root, rules, problems)
    if verb == 'coverage':
        print_coverage(rules, rest)
    elif verb == 'c' and not problems:
        write_c(rest[0], rules)
    elif verb == 'md' and not problems:
        with open(rest[0], 'w', encoding='utf-8') as out:
            out.write(markdown(rules))
    for problem in problems:
        sys.stderr.write(f'rules: {problem}\n')
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
