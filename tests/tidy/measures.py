#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Numbers of the tree that may only get better, with their limits in measures.tsv. Prints TAP, the table as diagnostics.

    measures.py [ROOT [BUILD]]             measure the tree and compare with the limits
    measures.py --update [ROOT [BUILD]]    write the numbers that are better than the limits into measures.tsv

Without the folder of an up-to-date gcc build the measures of structure.py that need one are left out. trip.py takes
those of the calls of an operation.
"""

import os
import re
import sys

import checks
import cscan
import structure

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, 'measures.tsv')
TOPS = ('src', 'include', 'tools', 'drivers', 'docs', 'bench', 'examples', 'tests', 'README.md')

PRONOUN_TOPS = ('src', 'include', 'tools', 'drivers', 'docs', 'README.md')
PRONOUNS = re.compile(r'\b(?:nobody|whoever|somebody|anybody)\b', re.I)
COMMENT_TOPS = ('src', 'include')
COMMENT_WORDS = ('nobody', 'whoever', 'somebody', 'anybody', 'turned away', 'of its own')
TERMS = {
    'hazard pointer': r'hazard[ -]pointers?',
    'fast path': r'fast[ -]paths?',
    'lock-free': r'lock-?free',
    'seqlock': r'seqlocks?',
    'race': r'race[sd]?|racing',
}
LINE_TOPS = ('src', 'include', 'drivers', 'tools', 'bench', 'examples', 'tests')
COLUMNS = 100
ASSERT_FOLDERS = ('src/memory', 'src/sched', 'src/sync')

ASSERT = re.compile(r'\bvmm_assert(?:_debug|_held|_owned)?\s*\(')
ASSERTS_HELD = re.compile(r'\s*vmm_assert_(?:held|owned)\s*\(')
HELD = re.compile(r'\bvmm_os_mutex_held\s*\(')
PAGING_LOCK = re.compile(r'\bvmm_os_mutex_(?:try)?lock\s*\([^;{}]*?\bpaging_lock\b')
PAGING_FILE = 'src/memory/state/paging_lock.c'
PAGING_WRAPPERS = ('vmm_paging_lock', 'vmm_paging_trylock')
REQUIRES = re.compile(r'\bVMM_REQUIRES\s*\(')
WDDM2_TEST = re.compile(r'->wddm2\b(?!\s*=[^=])')
DOORS = 'src/doors'
BARE_REFUSALS = ('refuse', 'deny', 'broke')
REPORT_AND_RETURN = re.compile(r'\bvmm_(?:finding|reason)\s*\([^;{}]*\)\s*;\s*return\s+(?:STATUS|VMM)_\w+\s*;')
BARE_TYPE = re.compile(r'\s*(?:(?:const|volatile|struct|union|enum|unsigned|signed|long|short)\s+)*[A-Za-z_]\w*$')
NO_TYPE = re.compile(r'\s*(?:do|else|return|goto|break|continue|case|default)$')
MEMBER = re.compile(r'\s*\**\s*[A-Za-z_]\w*\s*(?:\[[^\]]*\]\s*)*(?:[,:][^;(]*)?;')
DECLARATION = re.compile(
    r'\s*(?!(?:return|goto|else|do|case|typedef)\b)'
    r'(?:(?:const|static|volatile|register|struct|union|enum|unsigned|signed|_Atomic)\s+)*'
    r'(?:_Atomic\s*\([^)]*\)|[A-Za-z_]\w*)(?:\s+|\s*\*+\s*)(?:const\s+|\*+\s*)*'
    r'[A-Za-z_]\w*\s*(?:\[[^\]]*\]\s*)*(?:[=,][^;]*)?;')


def under(files, tops):
    return {path: text for path, text in files.items() if path in tops or path.startswith(tuple(top + '/' for top in tops))}


def c_files(files, tops):
    return {path: text for path, text in under(files, tops).items() if checks.is_c(path)}


def joined(text):
    """Text whose phrases may be broken by the line ends of a comment, as one line."""
    return re.sub(r'\s*\n[ \t]*(?:(?:\*|//|#)[ \t]+)?', ' ', text)


def code_of(text):
    return cscan.without_directives(cscan.split_comments(text)[0])


def definitions(files):
    """(path, name, body) of each function definition."""
    for path, text in files.items():
        for head, offset, body, _ in cscan.statements(code_of(text)):
            named = cscan.function_name(head, offset) if body is not None else None
            if named:
                yield path, named[0], body


def pronouns(files):
    return sum(len(PRONOUNS.findall(text)) for text in under(files, PRONOUN_TOPS).values())


def in_comments(words):
    pattern = re.compile(rf'\b{words}\b', re.I)
    return lambda files: sum(len(pattern.findall(joined(cscan.split_comments(text)[1])))
                             for text in c_files(files, COMMENT_TOPS).values())


def files_naming(term):
    pattern = re.compile(rf'\b(?:{TERMS[term]})\b', re.I)
    return lambda files: sum(bool(pattern.search(joined(text))) for text in under(files, ('src',)).values())


def long_lines(files):
    return sum(len(line.expandtabs(8)) > COLUMNS for text in c_files(files, LINE_TOPS).values() for line in text.split('\n'))


def split_members(files):
    """A type alone on its line and the name that it declares on the next one, though both have room on one line."""
    count = 0
    for text in c_files(files, COMMENT_TOPS).values():
        lines = [line.rstrip() for line in cscan.split_comments(text)[0].split('\n') if line.strip()]
        count += sum(bool(BARE_TYPE.match(line) and not NO_TYPE.match(line) and MEMBER.match(after))
                     and len(f'{line} {after.strip()}'.expandtabs(8)) <= COLUMNS for line, after in zip(lines, lines[1:]))
    return count


def starts_with_assert(body):
    """Is the first statement behind the declarations a vmm_assert_held, or for a pthread mutex a vmm_assert_owned?"""
    while True:
        declaration = DECLARATION.match(body)
        if not declaration:
            return bool(ASSERTS_HELD.match(body))
        body = body[declaration.end():]


def without_assert(files):
    return [f'{path}: {name}' for path, name, body in definitions(c_files(files, ('src',)))
            if name.endswith('_locked') and not starts_with_assert(body)]


def without_requires(files):
    """A static function's declarations are in its file, another one's in any file of src."""
    defined, annotated = [], set()
    for path, text in c_files(files, ('src',)).items():
        for head, offset, body, _ in cscan.statements(code_of(text)):
            named = cscan.function_name(head, offset)
            if not named or not named[0].endswith('_locked'):
                continue
            key = (path if re.search(r'\bstatic\b', head) else None, named[0])
            if body is not None:
                defined.append((path, key))
            if REQUIRES.search(head):
                annotated.add(key)
    return [f'{path}: {key[1]}' for path, key in defined if key not in annotated and (path, key[1]) not in annotated]


def paging_lock_calls(files):
    sources = c_files(files, ('src', 'include', 'drivers', 'tools'))
    return [f'{path}: {name}' for path, name, body in definitions(sources)
            if not (path == PAGING_FILE and name in PAGING_WRAPPERS) for _ in PAGING_LOCK.findall(body)]


def without_asserts(body):
    kept, at = [], 0
    for match in ASSERT.finditer(body):
        if match.start() < at:
            continue
        kept.append(body[at:match.start()])
        depth, at = 1, match.end()
        while depth and at < len(body):
            depth += (body[at] == '(') - (body[at] == ')')
            at += 1
    return ''.join(kept) + body[at:]


def branches_on_held(files):
    return [f'{path}: {name}' for path, name, body in definitions(c_files(files, ('src', 'drivers')))
            if HELD.search(without_asserts(body))]


def bare_refusals(files):
    """Functions whose names do not say what they refuse."""
    return [f'{path}: {name}' for path, name, _ in definitions(c_files(files, ('src',))) if name in BARE_REFUSALS]


def reports_and_returns(files):
    """vmm_finding or vmm_reason, and then the return of a constant status: vmm_refuse_rule and vmm_refuse_reason do both."""
    return [f'{path}: {name}' for path, name, body in definitions(c_files(files, ('src',))) for _ in REPORT_AND_RETURN.findall(body)]


def asserts_per_1000_lines(folder):
    """Rounded down, so that the number moves only when the density does."""
    def measure(files):
        sources = c_files(files, (folder,))
        lines = sum(text.count('\n') for text in sources.values())
        return sum(len(ASSERT.findall(cscan.split_comments(text)[0])) for text in sources.values()) * 1000 // max(lines, 1)
    return measure


def wddm2_tests(files):
    return [f'{path}: {line.strip()}' for path, text in c_files(files, ('src',)).items()
            for line in code_of(text).split('\n') for _ in WDDM2_TEST.findall(line)]


def lines_of_doors(files):
    return sum(text.count('\n') for path, text in c_files(files, (DOORS,)).items() if path.endswith('.c'))


# Name in the table, and a function that takes path -> text and returns a number, or the places to be counted.
MEASURES = {
    'nobody, whoever, somebody, anybody in all texts': pronouns,
    **{f'"{words}" in comments of src and include': in_comments(words) for words in COMMENT_WORDS},
    **{f'files of src that name: {term}': files_naming(term) for term in TERMS},
    'lines over 100 columns': long_lines,
    'struct members split from their types': split_members,
    '_locked functions that do not begin with vmm_assert_held': without_assert,
    '_locked functions without VMM_REQUIRES': without_requires,
    'calls that take paging_lock outside vmm_paging_lock and vmm_paging_trylock': paging_lock_calls,
    **{f'asserts per 1000 lines of {folder}': asserts_per_1000_lines(folder) for folder in ASSERT_FOLDERS},
    'functions that branch on vmm_os_mutex_held outside asserts': branches_on_held,
    'functions named refuse, deny or broke': bare_refusals,
    'findings and reasons before the return of a constant status': reports_and_returns,
    'tests of ->wddm2 in src': wddm2_tests,
    f'lines of the .c files of {DOORS}': lines_of_doors,
}


class Row:
    """limit: the worst number allowed. goal: `<= N` for a number that is to fall, `>= N` for one that is to rise."""

    def __init__(self, name, limit, goal):
        self.name, self.limit, self.goal = name, int(limit), goal
        self.rises = goal.startswith('>=')

    def better(self, number):
        """By how much a number is better than the limit."""
        return number - self.limit if self.rises else self.limit - number


def read_rows(text):
    lines = [line for line in text.split('\n') if line and not line.startswith('#')]
    return [Row(*line.split('\t')) for line in lines[1:]]


def read_all(root):
    """path -> text of every text file that a measure reads."""
    paths = []
    for top in TOPS:
        if os.path.isfile(os.path.join(root, top)):
            paths.append(top)
        for where, dirs, names in os.walk(os.path.join(root, top)):
            dirs[:] = sorted(name for name in dirs if name != '__pycache__')
            paths += [os.path.relpath(os.path.join(where, name), root) for name in sorted(names)]
    files = {}
    for path in paths:
        try:
            with open(os.path.join(root, path), encoding='utf-8') as source:
                files[path] = source.read()
        except (UnicodeDecodeError, FileNotFoundError):
            continue
    return files


def take(files):
    """name -> (number, places); places is empty for a measure that only counts."""
    numbers = {}
    for name, measure in MEASURES.items():
        found = measure(files)
        numbers[name] = (found, []) if isinstance(found, int) else (len(found), found)
    return numbers


def take_structure(root, build):
    """name -> (number, places) of the measures of structure.py; number is None where it could not be taken."""
    numbers = dict.fromkeys(structure.TRIP, (None, []))
    for name, measure in structure.MEASURES.items():
        found = measure(root, build)
        numbers[name] = (found, []) if found is None or isinstance(found, int) else (len(found), found)
    return numbers


def problems_of(row, number, places):
    if number is None:
        return []
    if row.better(number) < 0:
        return [*places, f'{number} now, the limit is {row.limit}']
    if row.better(number) > 0:
        return [f'{number} now, {"raise" if row.rises else "lower"} its row in measures.tsv from {row.limit} '
                '(tests/tidy/measures.py --update)']
    return []


def compare(rows, numbers):
    """(name, problems) of every measure and of every row without one."""
    limits = {row.name: row for row in rows}
    return ([(name, problems_of(limits[name], *found) if name in limits else ['has no row in measures.tsv'])
             for name, found in numbers.items()]
            + [(name, ['measures.tsv: no such measure']) for name in limits if name not in numbers])


def updated(text, numbers):
    """The table with the limits that the numbers are better than. A limit never gets worse."""
    lines = text.split('\n')
    for row in read_rows(text):
        number = numbers.get(row.name, (None,))[0]
        if number is not None and row.better(number) > 0:
            at = next(at for at, line in enumerate(lines) if line.startswith(row.name + '\t'))
            lines[at] = f'{row.name}\t{number}\t{row.goal}'
    return '\n'.join(lines)


def shown(numbers, name):
    number = numbers.get(name, (None,))[0]
    return '-' if number is None else number


def main(arguments):
    rest = [argument for argument in arguments if argument != '--update']
    root = os.path.abspath(rest[0]) if rest else os.path.dirname(os.path.dirname(HERE))
    numbers = {**take(read_all(root)), **take_structure(root, os.path.abspath(rest[1]) if rest[1:] else None)}
    with open(TABLE, encoding='utf-8') as table:
        text = table.read()
    if '--update' in arguments:
        with open(TABLE, 'w', encoding='utf-8') as table:
            table.write(updated(text, numbers))
        return 0
    rows = read_rows(text)
    print(f'# {"measure":76} {"today":>6} {"limit":>6}  goal')
    for row in rows:
        print(f'# {row.name:76} {shown(numbers, row.name):>6} {row.limit:>6}  {row.goal}')
    results = compare(rows, numbers)
    print(f'1..{len(results)}')
    for number, (name, problems) in enumerate(results, 1):
        for problem in problems:
            print(f'# {problem}')
        skip = '' if numbers.get(name, (0,))[0] is not None else ' # SKIP it needs a build folder, clang, or trip.py'
        print(f'{"not ok" if problems else "ok"} {number} - {name}{skip}')
    return 1 if any(problems for _, problems in results) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
