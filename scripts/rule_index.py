#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Lists where each rule is implemented and tested, for docs/rules/index.md.

    rule_index.py           print the list
    rule_index.py write     write docs/rules/index.md
    rule_index.py check     fail if docs/rules/index.md differs from the source

VIDMM_SOURCE_ROOT: the source tree, if it is not the one that contains this script.

In src/doors/calls.tsv, a rule belongs to the functions of the block that names it. Elsewhere it
belongs to the function whose body, or whose comment directly above, contains its id. A comment
above a prototype counts for the definition of that function. An id in another declaration belongs to
the structure, table or macro that is declared, and any other id to the file.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(os.path.join(os.path.dirname(HERE), 'tests', 'tidy'))

import cscan
import rules as tables

ROOT = os.environ.get('VIDMM_SOURCE_ROOT') or os.path.dirname(HERE)
PAGE = 'docs/rules/index.md'
FOLDERS = ['src', 'drivers']
WORDS = 10
HEAD = '''<!-- Written by `./x docs` from docs/rules/*.tsv and the sources. -->

# Where each rule is implemented and tested

One row for each rule, by family: its first words, the functions of `src` and `drivers` whose body or
comment names it, and the tests that are named after it. A name without `()` is a table, structure or
macro. A file without a name has the rule in the comment at its head. Of the choices (C and Q) only
those that the sources name are listed. `vidmm rules ID` prints the whole rule.
'''


class Place:
    """Lines of a file that belong to one declaration."""

    def __init__(self, name, first, last, kind):
        self.name, self.first, self.last, self.kind = name, first, last, kind


def declared_name(head, body):
    """The name of a structure, an enumeration or a variable, or None."""
    if body is not None:
        tag = re.search(r'\b(?:struct|union|enum)\s+(\w+)\s*$', head)
        first = re.match(r'\s*(\w+)', body) if head.strip() == 'enum' else None
        if tag or first:
            return (tag or first)[1]
    variable = re.search(r'(\w+)\s*(?:\[[^\]]*\]\s*)*(?:=.*)?$', head.strip(), re.S)
    return variable[1] if variable else None


def macros(lines):
    at = 0
    while at < len(lines):
        match = re.match(r'\s*#\s*define\s+(\w+)', lines[at])
        first = at
        while match and lines[at].endswith('\\') and at + 1 < len(lines):
            at += 1
        if match:
            yield Place(match[1], first, at, 'macro')
        at += 1


def first_lines(places, code, comments):
    """Moves the begin of each place to the first line of the comment directly above it."""
    for place in places:
        while place.first > 0 and not code[place.first - 1].strip() and comments[place.first - 1].strip():
            place.first -= 1
    return places


def places_of(source):
    """The declarations of a file, in order, with the comments directly above them."""
    text, comments = cscan.split_comments(source)
    code = text.split('\n')
    comments = comments.split('\n') + [''] * len(code)
    plain = cscan.without_directives(text)
    found = list(macros(code))
    for head, offset, body, end in cscan.statements(plain):
        named = cscan.function_name(head, offset)
        name = named[0] if named else declared_name(head, body)
        start = offset + len(head) - len(head.lstrip())
        kind = 'data' if not named else 'function' if body is not None else 'prototype'
        if name:
            found.append(Place(name, plain.count('\n', 0, start), plain.count('\n', 0, end), kind))
    return first_lines(found, code, comments)


def blocks_of(text):
    """The functions of each block of src/doors/calls.tsv; comments in front of a block belong to it."""
    found, first, names = [], None, []
    for at, line in enumerate([*text.split('\n'), '']):
        if line and not line.startswith('hand'):
            first = at if first is None else first
            names += re.findall(r'^(?:\t(?:kmt|umd)|union)\t(\w+)', line)
        else:
            if names:
                found.append(Place('(), '.join(names), first, at - 1, 'function'))
            first, names = None, []
    return found


def named_ids(root):
    """(id, path, place or None) of each occurrence of an id."""
    for path, text in tables.sources_below(root, FOLDERS):
        if not path.endswith(('.c', '.h', tables.DOORS_TABLE)):
            continue
        places = blocks_of(text) if path.endswith(tables.DOORS_TABLE) else places_of(text)
        for match in tables.ID.finditer(text):
            line = text.count('\n', 0, match.start())
            inside = [place for place in places if place.first <= line <= place.last]
            yield match[0], path, inside[-1] if inside else None


def implementations(root):
    """id -> list of (path, name or None), the definitions before everything else."""
    defined, found = {}, {}
    for path, text in tables.sources_below(root, FOLDERS):
        if path.endswith(('.c', '.h')):
            for place in places_of(text):
                if place.kind == 'function':
                    defined.setdefault(place.name, []).append(path)
    for rule, path, place in named_ids(root):
        order, where = 2, [(path, None)]
        if place and place.kind == 'prototype':
            order, where = 1, [(file, place.name + '()') for file in defined.get(place.name, [path])]
        elif place:
            order, where = 0, [(path, place.name + ('()' if place.kind == 'function' else ''))]
        found.setdefault(rule, []).extend((order, *entry) for entry in where)
    result = {}
    for rule, entries in found.items():
        # A file's head counts only if no declaration of that file names the rule.
        named = {path for order, path, name in entries if name}
        kept = [entry for entry in sorted(entries, key=lambda entry: entry[0])
                if entry[2] or entry[1] not in named and entry[1].endswith('.c')]
        result[rule] = list(dict.fromkeys((path, name) for _, path, name in kept))
    return result


def shown(entries):
    by_path = {}
    for path, name in entries:
        by_path.setdefault(path, []).append(name)
    return [f'{path}: {", ".join(names)}' if names[0] else path for path, names in by_path.items()]


def cell(text):
    return re.sub(r'([|<>*_])', r'\\\1', text)


def literal(names):
    return '<br>'.join(f'`{name}`' for name in names) or '-'


def first_words(text):
    words = text.split()
    return ' '.join(words[:WORDS]) + (' ...' if len(words) > WORDS else '')


def shown_tests(rule):
    """The test functions with the rule's name, or else the files that contain its id."""
    functions = sorted({test for test in rule.tests if '"' not in test})
    return functions or sorted({test.split(':')[0] for test in rule.tests})


def row(rule, entries):
    cells = [rule.id, cell(first_words(rule.text)), literal(shown(entries)), literal(shown_tests(rule))]
    return f'| {" | ".join(cells)} |\n'


def page(root):
    problems = []
    rules = tables.read_tables(tables.tables_of(root), problems)
    tables.scan(root, rules, problems)
    found = implementations(root)
    parts = [HEAD]
    families = sorted({rule.family for rule in rules.values()},
                      key=lambda family: (family in tables.CHOICE_FAMILIES, family))
    for family in families:
        members = [rule for rule in rules.values() if rule.family == family
                   and (family not in tables.CHOICE_FAMILIES or rule.id in found)]
        if not members:
            continue
        parts.append(f'## {family} ([{members[0].table}]({members[0].table}))\n\n'
                     '| id | rule | functions | tests |\n| --- | --- | --- | --- |\n'
                     + ''.join(row(rule, found.get(rule.id, []))
                               for rule in sorted(members, key=lambda rule: rule.id)))
    return '\n'.join(parts)


def main(arguments):
    verb, path = arguments[0] if arguments else 'print', os.path.join(ROOT, PAGE)
    new = page(ROOT)
    if verb == 'print':
        print(new, end='')
    elif verb == 'write':
        with open(path, 'w', encoding='utf-8') as out:
            out.write(new)
    elif verb == 'check':
        old = ''
        if os.path.exists(path):
            with open(path, encoding='utf-8') as text:
                old = text.read()
        if old != new:
            print(f'{PAGE} differs from the source: run ./x docs')
            return 1
    else:
        sys.stderr.write(__doc__)
        return 2
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
