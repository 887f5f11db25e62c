#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports which lines and branches of src/ the tests of a coverage build executed (`./x test --coverage`).

    coverage.py BUILD [--left FILE] [--list FILE]

It prints a table of the modules and the total, then what tests/coverage/left.tsv explains, then the files with the most
lines that no test executed and no row explains. BUILD/uncovered.txt (--list) has all of these lines. A row of left.tsv that
explains nothing is an error: exit code 1.

A row has a file (a pattern of fnmatch), a part of it, and a reason. The part is the name of a function with "()" behind it, or
a regular expression that is searched in the statement up to the line.
"""

import argparse
import collections
import fnmatch
import json
import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LINES_GOAL, BRANCHES_GOAL = 95.0, 85.0
FILES_SHOWN = 25
BATCH = 24
STATEMENT_LINES = 8
ENDS = re.compile(r'([;{}:]|\*/)\s*(/\*.*\*/)?$|^\s*$|^\s*#|^\s*/?\*')


class Line:
    """The counts of a source line in all programs."""

    def __init__(self):
        self.count, self.branches, self.functions = 0, {}, set()

    def add(self, entry):
        function = entry.get('function_name', '')
        self.count += entry['count']
        self.functions.add(function)
        for index, branch in enumerate(entry.get('branches', ())):
            key = function, index
            self.branches[key] = self.branches.get(key, 0) + branch['count']

    def missed_branches(self):
        return sum(not count for count in self.branches.values())


def read_gcov(build, notes):
    """The documents of gcov for these files of notes."""
    done = subprocess.run(['gcov', '--json-format', '--stdout', '--branch-probabilities', *notes], cwd=build,
                          capture_output=True, text=True, check=True)
    return [json.loads(line) for line in done.stdout.splitlines() if line.startswith('{')]


def read_build(build, root=ROOT, reader=read_gcov):
    """{path under src/: {number: Line}}"""
    notes = sorted(os.path.relpath(os.path.join(folder, name), build)
                   for folder, _, names in os.walk(os.path.join(build, 'src')) for name in names if name.endswith('.gcno'))
    if not notes:
        raise SystemExit(f'coverage.py: {build}/src has no files of notes (*.gcno): build it with ./x test --coverage')
    batches = [notes[i:i + BATCH] for i in range(0, len(notes), BATCH)]
    files = collections.defaultdict(lambda: collections.defaultdict(Line))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        for documents in pool.map(lambda batch: reader(build, batch), batches):
            for document in documents:
                add_document(files, document, root)
    return files


def add_document(files, document, root):
    for source in document['files']:
        path = os.path.normpath(os.path.join(document['current_working_directory'], source['file']))
        path = os.path.relpath(path, root)
        if path.startswith('src/'):
            for entry in source['lines']:
                files[path][entry['line_number']].add(entry)


def module_of(path):
    """src/doors has modules below it."""
    parts = path.split('/')
    return '/'.join(parts[:3] if parts[1] == 'doors' else parts[:2])


def statement(text, number):
    """The source from the beginning of the statement to the line."""
    first = number
    while first > 1 and number - first < STATEMENT_LINES and not ENDS.search(text[first - 2]):
        first -= 1
    return ' '.join(line.strip() for line in text[first - 1:number])


class Row:
    """A row of left.tsv. lines, branches: how many it explains."""

    def __init__(self, number, file, part, reason):
        self.number, self.file, self.part, self.reason = number, file, part, reason
        self.function = part[:-2] if re.fullmatch(r'\w+\(\)', part) else None
        self.pattern = None if self.function else re.compile(part)
        self.lines = self.branches = 0

    def explains(self, path, line, words):
        if not fnmatch.fnmatchcase(path, self.file):
            return False
        return self.function in line.functions if self.function else bool(self.pattern.search(words))


def read_rows(path):
    rows = []
    with open(path, encoding='utf-8') as file:
        for number, text in enumerate(file, 1):
            if text.startswith('#') or not text.strip():
                continue
            fields = text.rstrip('\n').split('\t')
            if len(fields) != 3 or not all(fields):
                raise SystemExit(f'coverage.py: {path}:{number}: expected file, part and reason, divided by tabs')
            rows.append(Row(number, *fields))
    return rows


class Count:
    """Sums of a module. left: what rows explain."""

    def __init__(self):
        self.lines = self.lines_hit = self.lines_left = 0
        self.branches = self.branches_hit = self.branches_left = 0

    def add(self, other):
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def cells(self):
        return (self.lines, percent(self.lines_hit, self.lines), percent(self.lines_hit, self.lines - self.lines_left),
                self.branches, percent(self.branches_hit, self.branches), percent(self.branches_hit, self.branches - self.branches_left))


def percent(part, whole):
    return f'{100 * part / whole:.1f}' if whole else '-'


def judge(files, rows, root=ROOT):
    """({module: Count}, [(path, number, text)] that no test executed and no row explains)"""
    counts, missed = collections.defaultdict(Count), []
    for path in sorted(files):
        with open(os.path.join(root, path), encoding='utf-8') as file:
            text = file.read().splitlines()
        for number, line in sorted(files[path].items()):
            count = counts[module_of(path)]
            count.lines += 1
            count.lines_hit += line.count > 0
            count.branches += len(line.branches)
            count.branches_hit += len(line.branches) - line.missed_branches()
            if line.count and not line.missed_branches():
                continue
            words = statement(text, number)
            row = next((row for row in rows if row.explains(path, line, words)), None)
            if row:
                row.lines += not line.count
                row.branches += line.missed_branches()
                count.lines_left += not line.count
                count.branches_left += line.missed_branches()
            elif not line.count:
                missed.append((path, number, text[number - 1].strip()))
    return counts, missed


def print_table(counts):
    total = Count()
    print(f'{"module":<20}{"lines":>8}{"%":>8}{"(a)":>8}{"branches":>10}{"%":>8}{"(a)":>8}')
    for name in sorted(counts):
        total.add(counts[name])
        print('{:<20}{:>8}{:>8}{:>8}{:>10}{:>8}{:>8}'.format(name, *counts[name].cells()))
    print('{:<20}{:>8}{:>8}{:>8}{:>10}{:>8}{:>8}'.format('total', *total.cells()))
    print(f'(a): without what tests/coverage/left.tsv explains. Goals: {LINES_GOAL:.0f} % of the lines, {BRANCHES_GOAL:.0f} % of the branches.')


def print_left(rows, missed):
    print('\nleft uncovered, with a reason:')
    for row in rows:
        print(f'{row.lines:>6} lines {row.branches:>6} branches  {row.file} {row.part}: {row.reason}')
    worst = collections.Counter(path for path, _, _ in missed).most_common(FILES_SHOWN)
    print(f'\nlines that no test executed and no row explains: {len(missed)}' + (', the most in' if worst else ''))
    for path, number in worst:
        print(f'{number:>6} {path}')


def main():
    parser = argparse.ArgumentParser(description='Reports the coverage of src/ by tests.')
    parser.add_argument('build')
    parser.add_argument('--left', default=os.path.join(ROOT, 'tests/coverage/left.tsv'))
    parser.add_argument('--list')
    args = parser.parse_args()
    rows = read_rows(args.left)
    counts, missed = judge(read_build(args.build), rows)
    print_table(counts)
    print_left(rows, missed)
    path = args.list or os.path.join(args.build, 'uncovered.txt')
    with open(path, 'w', encoding='utf-8') as file:
        file.writelines(f'{name}:{number}: {text}\n' for name, number, text in missed)
    print(f'all of them: {os.path.relpath(path)}')
    stale = [row for row in rows if not row.lines and not row.branches]
    for row in stale:
        print(f'{os.path.relpath(args.left)}:{row.number}: explains nothing: {row.file} {row.part}')
    return 1 if stale else 0


if __name__ == '__main__':
    sys.exit(main())
