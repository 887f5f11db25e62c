#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The tests that the changes since the last commit can affect: names on standard output, the reasons on standard error.

    changed.py BUILD

Changed: what `git diff HEAD` names, and untracked files. A file of src belongs to a module; a header belongs to every
module with a source that includes it, by the dependencies that ninja recorded in BUILD. AFFECTS has the test folders of a
module. A file of tests affects the programs that are built from it. Every other file, and a module without a row, affects
every test. Tests of the suites slow and timing are left out.
"""

import json
import os
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path.append(os.path.join(ROOT, 'tests/tidy'))

import structure

ALL = ('',)
LEFT_OUT = ('vidmm:slow', 'vidmm:timing')
# Folders of tests by prefix. "served" are the conformance tests whose calls are requests to a server.
CORE = ('conformance', 'core', 'random', 'replay', 'fuzz', 'out_of_process')
REMOTE = ('served', 'serve', 'client', 'wire', 'unit/wire', 'out_of_process', 'fuzz', 'tools')
AFFECTS = {
    'range': ('unit/range', 'model/range', *CORE),
    'vaspace': ('model/vaspace', *CORE),
    'policy': ('unit/policy', *CORE),
    'sync': ('unit/sync', 'model/sync', *CORE, *REMOTE),
    'memory': ('model/fast_lock', *CORE),
    'sched': ('unit/sched', *CORE),
    'common': CORE + REMOTE,
    'umd': CORE + REMOTE,
    'kmt': CORE + REMOTE,
    'host': CORE + REMOTE + ('examples',),
    'wire': REMOTE,
    'packet': REMOTE,
    'client': REMOTE,
    'serve': REMOTE,
}
# Other files, by prefix; the first that matches.
FILES = (
    ('tests/tidy/', ()),
    ('tools/', ('replay', 'tools', 'out_of_process')),
    ('docs/rules/', ('tools', 'replay')),
    ('docs/man/', ('tools',)),
    ('docs/tutorials/', ('tools',)),
    ('docs/', ()),
    ('examples/', ('examples', 'install', 'replay', 'core')),
    ('bench/', ()),
    ('packaging/', ()),
    ('scripts/completion.py', ('tools',)),
    ('scripts/rules_man.py', ('tools',)),
    ('scripts/packages.sh', ('install',)),
    ('scripts/site', ('tools',)),
    ('scripts/quick_build.py', ('install',)),
    ('scripts/', ()),
    ('x', ()),
)


def changed_files():
    def lines(*command):
        return subprocess.run(['git', *command], cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    return sorted(set(lines('diff', '--name-only', 'HEAD')) | set(lines('ls-files', '--others', '--exclude-standard')))


def module_of(path):
    parts = path.split('/')
    if parts[0] != 'src' or len(parts) < 3:
        return None
    return parts[2] if parts[1] == 'doors' and len(parts) > 3 else parts[1]


def folder_of(test, build):
    """The folder of a test below tests, of its program or script; "served" for a conformance test that runs so."""
    if test['name'].startswith('served_'):
        return 'served'
    for argument in test['cmd']:
        for base in (os.path.join(build, ''), os.path.join(ROOT, '')):
            path = os.path.normpath(os.path.join(build, argument))
            if path.startswith(base) and os.path.isfile(path):
                folder = os.path.dirname(os.path.relpath(path, base))
                return folder[len('tests/'):] if folder.startswith('tests/') else folder
    return ''


def read_deps(text, build):
    """object -> the files of the tree that it was compiled from, from the output of `ninja -t deps`."""
    deps, name = {}, None
    for line in text.split('\n'):
        if line.startswith('    '):
            path = os.path.relpath(os.path.normpath(os.path.join(build, line.strip())), ROOT)
            deps[name].add(path)
        elif line and ': #deps' in line:
            name = line.split(': #deps')[0]
            deps[name] = set()
    return deps


class Graph:
    def __init__(self, build):
        with open(os.path.join(build, 'build.ninja'), encoding='utf-8') as ninja:
            self.edges = structure.read_edges(ninja.read())
        text = subprocess.run(['ninja', '-C', build, '-t', 'deps'], capture_output=True, text=True, check=True).stdout
        self.deps = read_deps(text, build)

    def sources(self, path):
        """The sources whose objects were compiled with a file."""
        return {file for files in self.deps.values() if path in files for file in files if file.endswith('.c')}

    def programs(self, path):
        """What is linked from objects that were compiled with a file."""
        objects = [name for name, files in self.deps.items() if path in files]
        return {program for name in objects for program in structure.linked_again(self.edges, name)}


def tests_of_folders(tests, folders, build):
    return {test['name'] for test in tests if folder_of(test, build).startswith(tuple(folders))} if folders else set()


def tests_of_programs(tests, programs, build):
    """A test may have the program as its command or as an argument."""
    return {test['name'] for test in tests
            if any(os.path.relpath(os.path.join(build, argument), build) in programs for argument in test['cmd'])}


def effect(path, tests, graph, build):
    """(names of tests, reason) of one changed file."""
    for prefix, folders in FILES:
        if path.startswith(prefix):
            return tests_of_folders(tests, folders, build), f'tests of {prefix}'
    if path.endswith('.md'):
        return set(), 'a document'
    module = module_of(path)
    if module:
        modules = {module}
        if path.endswith('.h'):
            modules |= {module_of(source) for source in graph.sources(path)} - {None}
        unknown = sorted(name for name in modules if name not in AFFECTS)
        if unknown:
            return tests_of_folders(tests, ALL, build), f'every test depends on {unknown[0]}'
        folders = {folder for name in modules for folder in AFFECTS[name]}
        more = tests_of_programs(tests, graph.programs(path), build) if path.endswith('.h') else set()
        return tests_of_folders(tests, folders, build) | more, 'modules ' + ' '.join(sorted(modules))
    if path.startswith('tests/'):
        folder = os.path.dirname(path)[len('tests/'):]
        if path.endswith(('.c', '.h')):
            programs = graph.programs(path)
            if programs:
                return tests_of_programs(tests, programs, build), f'{len(programs)} programs are built from it'
        names = tests_of_folders(tests, [folder] if folder else [], build)
        if names:
            return names, f'tests in {folder}'
    return tests_of_folders(tests, ALL, build), 'a file that every test may depend on'


def main(arguments):
    build = os.path.abspath(arguments[0])
    tests = [test for test in json.loads(subprocess.run(['meson', 'introspect', '--tests', build], capture_output=True,
                                                        text=True, check=True).stdout)
             if not set(test['suite']) & set(LEFT_OUT)]
    graph, chosen = Graph(build), set()
    files = changed_files()
    for path in files:
        names, reason = effect(path, tests, graph, build)
        chosen |= names
        print(f'{path}: {len(names)} tests ({reason})', file=sys.stderr)
    if files:
        chosen |= {test['name'] for test in tests if 'vidmm:tidy' in test['suite']}
    print(f'{len(chosen)} of {len(tests)} tests, with the tidy tests; slow tests are left to ./x test', file=sys.stderr)
    print('\n'.join(sorted(chosen)))
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
