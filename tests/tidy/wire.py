# SPDX-License-Identifier: MIT
"""The table of src/wire against the code: no exported function, no callback that is built and no pointer of an argument is missing in
it."""

import re

TABLE = 'src/wire/operations.tsv'
EXPORT = re.compile(r'^KMT_API NTSTATUS APIENTRY\s+(D3DKMT\w+)\(', re.M)
# Of the doors' table: functions that are made from it, and callbacks that are written by hand.
DOORS = 'src/doors/calls.tsv'
MADE = re.compile(r'^\t(?:kmt|umd)\t(\w+)\t|^hand\t(\w+)\t', re.M)
STRUCTURE = re.compile(r'^typedef (?:struct|union) \w+ \{\n(.*?)^\} (\w+);', re.M | re.S)
POINTER = re.compile(r'^\t(?:D3DKMT_PTR\([^,]*, (\w+)\)|(?:HANDLE|PVOID|PFN\w+) (\w+)|[\w ]+\*+ ?(\w+));', re.M)
UNION = re.compile(r'^\tunion \{\n(.*?)^\t\};', re.M | re.S)
MEMBER = re.compile(r'^\t(\w+) (\w+);', re.M)


def structures(files):
    found = {}
    for path, text in files.items():
        if path.startswith('include/wddm/'):
            found.update((name, re.sub(r'/\*.*?\*/', '', body, flags=re.S)) for body, name in STRUCTURE.findall(text))
    return found


def pointers(name, known):
    """Paths of the pointers and HANDLEs of a structure; a union without a name is one place, its names in one entry."""
    body = known.get(name, '')
    for union in UNION.findall(body):
        names = {next(filter(None, groups)) for groups in POINTER.findall(re.sub(r'^\t', '', union, flags=re.M))}
        if names:
            yield names
    body = UNION.sub('', body)
    for groups in POINTER.findall(body):
        yield {next(filter(None, groups))}
    for kind, member in MEMBER.findall(body):
        if kind != 'HANDLE':
            for names in pointers(kind, known):
                yield {f'{member}.{inner}' for inner in names}


def read_table(text):
    """type or function -> (argument type, its members)"""
    things, members = {}, set()
    for line in text.splitlines():
        fields = line.split('\t')
        if fields[0] in ('record', 'operation', 'callback', 'runtime'):
            members = set()
            things[fields[1] if fields[0] == 'record' else fields[2]] = (fields[1] if fields[0] == 'record' else fields[3],
                                                                         members)
        elif fields[0] == '' and len(fields) > 1:
            members.add(fields[1])
    return things


def check_wire(files):
    table, known, problems = read_table(files.get(TABLE, '')), structures(files), []
    made = {first or second for first, second in MADE.findall(files.get(DOORS, ''))}
    exported = {name for path, text in files.items() if path.startswith('src/doors/kmt/') for name in EXPORT.findall(text)}
    problems += [f'{DOORS}: {name} is also written by hand' for name in sorted(exported & made)]
    exported |= {name for name in made if name.startswith('D3DKMT')}
    built = {name for name in made if name.startswith('pfn')}
    listed = {name for name in table if name.startswith('D3DKMT') and re.search('[a-z]', name)}
    callbacks = {name for name in table if name.startswith('pfn')}
    problems += [f'{TABLE}: {name} is built and not in the table' for name in sorted(built - callbacks)]
    problems += [f'{TABLE}: {name} is not built' for name in sorted(callbacks - built)]
    problems += [f'{TABLE}: {name} is exported and not in the table' for name in sorted(exported - set(table))]
    problems += [f'{TABLE}: {name} is not exported' for name in sorted(listed - exported)]
    for name, (argument, members) in table.items():
        for names in pointers(argument, known):
            if not names & members:
                problems.append(f'{TABLE}: {name}: nothing is said of {" or ".join(sorted(names))}')
    return problems

