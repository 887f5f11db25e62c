#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes one small wrong change at a time in a C source, and asks whether a test fails (mutation testing).

    mutate.py [--sample N] [--seed S] [--jobs N] [--list] [FILE.c[:LINE]|FOLDER...]

Without files: the sources of src/memory, src/sched, src/sync and src/serve. --sample draws N of the mutants; the same seed
draws the same ones. --list only prints them. The changes are made in a copy of the work tree, build/mutate, which has a gcc
build that is kept for the next run. The tests that are named after the file run first, then those of its folder, then those
of tests/core and tests/random, then all other tests that scripts/changed.py names for its module. The first test that fails, crashes or exceeds its time
limit kills the mutant. Survivors are listed; the exit code is 1 if there is one.

tests/mutants/equivalent.tsv has the mutants that are the same program: file, line before, line after, reason. They are not
drawn.
"""

import argparse
import concurrent.futures
import fcntl
import json
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from typing import NamedTuple

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = os.path.join(ROOT, 'build/mutate')
FOLDERS = ('src/memory', 'src/sched', 'src/sync', 'src/serve')
EQUIVALENT = 'tests/mutants/equivalent.tsv'
# Test folders that run first. The longest prefix of the source decides.
FIRST = {
    'src/memory': ('conformance/memory', 'conformance/wddm2', 'unit/memory'),
    'src/memory/sets': ('conformance/wddm2', 'conformance/memory'),
    'src/sched': ('conformance/sched', 'conformance/wddm2', 'unit/sched'),
    'src/sync': ('conformance/sync', 'unit/sync', 'conformance/wddm2'),
    'src/serve': ('serve', 'client', 'out_of_process'),
}
SECOND = ('core', 'random')
SLOWEST_FACTOR, SLOWEST_MORE_S = 10, 30  # time limit of a test: the factor of its time without a change, and some seconds
# A mutant may leave a function or a variable without a use; that is no reason not to build.
PRAGMAS = ''.join(f'_Pragma("GCC diagnostic ignored \\"-W{name}\\"") ' for name in (
    'unused-function', 'unused-variable', 'unused-but-set-variable', 'unused-but-set-parameter', 'unused-parameter',
    'maybe-uninitialized', 'type-limits', 'int-in-bool-context', 'parentheses', 'logical-op', 'empty-body'))


class Mutant(NamedTuple):
    file: str
    line: int
    start: int  # offsets in the text
    end: int
    text: str
    kind: str


# ---- the C text ----

TOKENS = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
# Their arguments are checked by no test of behavior: assertions, prefetches, texts of findings.
QUIET = re.compile(r'\b(?:vmm_assert\w*|_Static_assert|assert|vmm_prefetch|vmm_finding\w*|vmm_reason\w*|vmm_refuse\w*|VMM_\w+)\s*\(')


def blank(text):
    return re.sub(r'[^\n]', ' ', text)


def closing(text, at):
    """The offset behind the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(text)):
        depth += (text[i] in '([{') - (text[i] in ')]}')
        if not depth:
            return i + 1
    return len(text)


def mask(text):
    """The same text with comments, literals, directives and quiet arguments as spaces; offsets stay."""
    text = TOKENS.sub(lambda found: blank(found[0]), text)
    pieces, at = [], 0
    for found in QUIET.finditer(text):
        if found.start() < at:
            continue
        end = closing(text, found.end() - 1)
        pieces += [text[at:found.start()], blank(text[found.start():end])]
        at = end
    return ''.join(pieces) + text[at:]


def bodies(masked):
    """(start, end) of each function body: a brace in the first column after a line that does not end an initializer."""
    for found in re.finditer(r'^\{', masked, re.M):
        before = masked[:found.start()].rstrip()
        if before.endswith(')') or re.search(r'\)[\sA-Za-z_]*$', before[-200:]) or before.endswith(';'):
            yield found.start() + 1, closing(masked, found.start()) - 1


# ---- the changes ----

SWAPS = {'==': '!=', '!=': '==', '<': '<=', '<=': '<', '>': '>=', '>=': '>', '&&': '||', '||': '&&'}
# With spaces on both sides, as clang-format writes binary operators. Casts and pointers have none.
BINARY = re.compile(r'(?<=[ \n\t])(==|!=|<=|>=|<|>|&&|\|\|)(?=[ \n])')
ARITHMETIC = re.compile(r'(?<=[\w)\]]) ([+-]) (?=[\w(*])')
IF = re.compile(r'\bif \(')
CALL = re.compile(r'^(\t+)((?:\(void\)!?)?\w[\w>.\-\[\]]*\([^;{}]*\);)', re.M)
ASSIGNMENT = re.compile(r'^(\t+)((?:\*|\w+(?:\[[^]]*\])?(?:->|\.))[\w>.\-\[\]]* [|&^+-]?= [^;{}]*;)', re.M)
RETURN = re.compile(r'\breturn ([^;{}]+);')
FLAG = re.compile(r'(?<=[=,(] )(true|false)(?=[;,)])|(?<=\()(true|false)(?=[,)])|(?<=, )(true|false)(?=\))')
# Only the sanitizer builds see a leak; without an unlock every test hangs until its time limit.
KEPT_CALLS = re.compile(r'(?:\(void\)!?)?(?:if|for|while|switch|return|sizeof|\w*(?:free|unlock|leave_critical))\b')
OPPOSITE = {'true': 'false', 'false': 'true', '+': '-', '-': '+'}


def returned(value):
    """What a return statement returns instead, or None."""
    value = value.strip()
    if value in OPPOSITE:
        return OPPOSITE[value]
    if value in ('0', 'NULL', 'VMM_OK', 'STATUS_SUCCESS') or value.startswith('{') or value.startswith('('):
        return None
    return '0'


def changes_of_body(masked, text):
    """(start, end, new text, kind) of one function body."""
    for found in IF.finditer(masked):
        end = closing(masked, found.end() - 1)
        yield found.end(), end - 1, f'!({text[found.end():end - 1]})', 'negate'
    for found in BINARY.finditer(masked):
        yield found.start(1), found.end(1), SWAPS[found[1]], 'compare' if len(found[1].strip('=!<>')) == 0 else 'logic'
    for found in ARITHMETIC.finditer(masked):
        yield found.start(1), found.end(1), OPPOSITE[found[1]], 'arithmetic'
    for found in CALL.finditer(masked):
        if not KEPT_CALLS.match(found[2]):
            yield found.start(2), found.end(2), ';', 'call'
    for found in ASSIGNMENT.finditer(masked):
        yield found.start(2), found.end(2), ';', 'assignment'
    for found in RETURN.finditer(masked):
        value = returned(found[1])
        if value:
            yield found.start(1), found.end(1), value, 'return'
    for found in FLAG.finditer(masked):
        if not masked[:found.start()].endswith('return '):
            yield found.start(), found.end(), OPPOSITE[found[0]], 'flag'


def mutants_of(file, text):
    masked, found = mask(text), []
    for start, end in bodies(masked):
        for first, last, new, kind in changes_of_body(masked[start:end], text[start:end]):
            line = text.count('\n', 0, start + first) + 1
            found.append(Mutant(file, line, start + first, start + last, new, kind))
    return sorted(found, key=lambda mutant: (mutant.start, mutant.end, mutant.text))


def changed_text(text, mutant):
    return text[:mutant.start] + mutant.text + text[mutant.end:]


def lines_of(text, mutant):
    """(before, after): the changed lines, each in one line with single spaces."""
    start = text.rfind('\n', 0, mutant.start) + 1
    end = text.find('\n', mutant.end)
    before, after = text[start:end], text[start:mutant.start] + mutant.text + text[mutant.end:end]
    return ' '.join(before.split()), ' '.join(after.split())


def read(path):
    with open(path, encoding='utf-8') as file:
        return file.read()


def equivalent(root):
    path = os.path.join(root, EQUIVALENT)
    rows = [line.split('\t') for line in read(path).split('\n') if line and line[0] != '#'] if os.path.exists(path) else []
    return {tuple(row[:3]) for row in rows}


def collect(root, wanted):
    """The mutants of the files: FILE, FILE:LINE or a folder. Those that are the same program are None."""
    same, found = equivalent(root), []
    for item in wanted:
        name, _, line = item.partition(':')
        for file in sorted(c_files(root, [name])) if os.path.isdir(os.path.join(root, name)) else [name]:
            text = read(os.path.join(root, file))
            found += [None if (file, *lines_of(text, mutant)) in same else mutant
                      for mutant in mutants_of(file, text) if not line or mutant.line == int(line)]
    return found


def draw(mutants, count, seed):
    """A new row of equivalent.tsv takes one mutant out of a draw and changes no other. The result is in the order of files."""
    order = list(range(len(mutants)))
    if count is not None:
        random.Random(seed).shuffle(order)
    chosen = [number for number in order if mutants[number]][:count]
    return [mutants[number] for number in sorted(chosen)]


# ---- the copy and its build ----

def sources(root):
    done = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard'], cwd=root, capture_output=True, text=True, check=True)
    return [path for path in done.stdout.splitlines() if os.path.isfile(os.path.join(root, path))]


def same_file(one, other):
    if not os.path.exists(other):
        return False
    with open(one, 'rb') as a, open(other, 'rb') as b:
        return a.read() == b.read()


def copy_tree(root, copy):
    """Makes the copy equal; a file that is equal keeps its time, so that ninja does not compile it again."""
    files = sources(root)
    for path in files:
        source, target = os.path.join(root, path), os.path.join(copy, path)
        if not same_file(source, target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            shutil.copyfile(source, target)
            shutil.copymode(source, target)
    listed = set(files)
    for folder, folders, names in os.walk(copy):
        if folder == copy:
            folders[:] = [name for name in folders if name not in ('build', '.git')]
        for name in names:
            path = os.path.join(folder, name)
            if os.path.relpath(path, copy) not in listed:
                os.remove(path)


class Build:
    """The gcc build of the copy, its tests, and how long each takes."""

    def __init__(self, copy):
        self.copy, self.folder = copy, os.path.join(copy, 'build/gcc')
        subprocess.run(['bash', '-c', '. scripts/builds.sh; die() { echo "$*"; exit 1; }; prepare gcc'], cwd=copy, check=True)
        everything = json.loads(self.introspect('--all'))
        files = {target['id']: target['filename'] for target in everything['targets']}
        self.tests = {test['name']: test for test in everything['tests']}
        for test in self.tests.values():
            test['files'] = [os.path.relpath(file, self.folder) for target in test['depends'] for file in files.get(target, [])]
        self.seconds, self.output = {}, {}

    def introspect(self, what):
        return subprocess.run(['meson', 'introspect', what, self.folder], capture_output=True, text=True, check=True).stdout

    def compile(self, names):
        targets = sorted({file for name in names for file in self.tests[name]['files']})
        return subprocess.run(['ninja', '-C', self.folder, *targets], capture_output=True, text=True).returncode == 0

    def run(self, name, limit_s, stop):
        """Returns whether the test passed; None if another one failed meanwhile."""
        test = self.tests[name]
        before = time.monotonic()
        process = subprocess.Popen(test['cmd'], env={**os.environ, **test['env']}, cwd=test['workdir'] or self.folder,
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL,
                                   text=True, errors='replace', start_new_session=True)
        while True:
            try:
                output, _ = process.communicate(timeout=0.5)
                break
            except subprocess.TimeoutExpired:
                if stop.is_set() or (limit_s and time.monotonic() - before > limit_s):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.communicate()
                    return None if stop.is_set() else False
        self.seconds[name] = time.monotonic() - before
        self.output[name] = output
        return process.returncode == 0 and not re.search(r'^not ok', output, re.M)


class Judge:
    def __init__(self, build, jobs):
        self.build, self.jobs, self.usual = build, jobs, {}

    def limit_of(self, name):
        return self.usual[name] * SLOWEST_FACTOR + SLOWEST_MORE_S if name in self.usual else None

    def first_failure(self, names):
        """Runs the tests, `jobs` at a time. Returns the name of the first that fails, or None."""
        stop, failed = threading.Event(), []

        def one(name):
            if not stop.is_set() and self.build.run(name, self.limit_of(name), stop) is False:
                failed.append(name)
                stop.set()
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            results = [pool.submit(one, name) for name in names]
            try:
                for result in results:
                    result.result()
            except KeyboardInterrupt:
                stop.set()
                raise
        return failed[0] if failed else None

    def measure(self, names):
        """The tests must pass without a change. Their times set limits, and the fastest run first."""
        new = sorted(set(names) - set(self.usual))
        if not new:
            return
        if not self.build.compile(new):
            sys.exit('mutate: the unchanged copy does not build')
        failed = self.first_failure(new)
        if failed:
            sys.exit(f'{self.build.output.get(failed, "")}mutate: {failed} fails without a change')
        self.usual.update({name: self.build.seconds[name] for name in new})

    def judge(self, stages):
        """'did not build', the name of the test that failed, or None: the mutant survived."""
        for names in stages:
            if names and not self.build.compile(names):
                return 'did not build'
            failed = self.first_failure(sorted(names, key=self.usual.get))
            if failed:
                return failed
        return None


# ---- which tests ----

class Cover:
    def __init__(self, build):
        sys.path.append(os.path.join(build.copy, 'scripts'))
        import changed
        self.changed, self.build = changed, build
        self.tests = [test for test in build.tests.values() if not set(test['suite']) & set(changed.LEFT_OUT)]
        self.folder = {test['name']: self.folder_of(test) for test in self.tests}

    def folder_of(self, test):
        """As that of changed.py, but the programs may not exist yet."""
        if test['name'].startswith('served_'):
            return 'served'
        for argument in test['cmd']:
            for base in (os.path.join(self.build.folder, 'tests/'), os.path.join(self.build.copy, 'tests/')):
                if argument.startswith(base):
                    return os.path.dirname(argument[len(base):])
        return ''

    def inside(self, folders):
        """The tests of the folders, in that order."""
        return [name for folder in folders for name, own in self.folder.items()
                if own == folder or own.startswith(folder + '/')]

    def stages(self, file):
        """Lists of tests, the nearest first, each test once."""
        first = FIRST[max((prefix for prefix in FIRST if file.startswith(prefix)), key=len, default='src/memory')]
        rest = self.changed.AFFECTS.get(self.changed.module_of(file), ())
        stages = [[name for name in dict.fromkeys(self.inside([*first, *rest])) if akin(file, name)]]
        seen = set(stages[0])
        for folders in [(folder,) for folder in first] + [SECOND, rest]:
            names = [name for name in dict.fromkeys(self.inside(folders)) if name not in seen]
            seen.update(names)
            stages.append(names)
        if not seen:
            sys.exit(f'mutate: no test covers {file}')
        return stages


def akin(file, test):
    """Do the names have a word in common, as sched/resets/preempt.c and sched_preempt?"""
    words = set(os.path.basename(file)[:-len('.c')].split('_'))
    return bool(words & set(test.split('_')[1:]))


# ---- the run ----

def show(mutant, text):
    before, after = lines_of(text, mutant)
    return f'{mutant.file}:{mutant.line}: {mutant.kind}\n    - {before}\n    + {after}'


def judge_one(judge, stages, copy, mutant):
    path = os.path.join(copy, mutant.file)
    text = read(path)
    try:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(PRAGMAS + changed_text(text, mutant))
        return judge.judge(stages)
    finally:
        with open(path, 'w', encoding='utf-8') as file:
            file.write(text)


def summary(results):
    killed = sum(1 for result in results if result not in (None, 'did not build'))
    return (f'{len(results)} mutants, {killed} killed, {results.count(None)} survived, '
            f'{results.count("did not build")} did not build')


def lock(path):
    """Two runs must not change the same copy. The lock ends with the process."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    file = open(path, 'w', encoding='utf-8')
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        sys.exit('mutate: another run uses build/mutate')
    return file


def run(root, mutants, jobs):
    held = lock(COPY + '.lock')
    copy_tree(root, COPY)
    build = Build(COPY)
    judge, cover, results, survivors = Judge(build, jobs), Cover(build), [], []
    print(f'mutate: {len(mutants)} mutants; first the tests run without a change', flush=True)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        for number, mutant in enumerate(mutants, 1):
            stages = cover.stages(mutant.file)
            judge.measure([name for names in stages for name in names])
            before = time.monotonic()
            result = judge_one(judge, stages, COPY, mutant)
            results.append(result)
            seconds = time.monotonic() - before
            print(f'[{number}/{len(mutants)}] {mutant.file}:{mutant.line} {mutant.kind}: '
                  f'{"SURVIVED" if result is None else result} ({seconds:.0f} s)', flush=True)
            if result is None:
                survivors.append(mutant)
                print(show(mutant, read(os.path.join(root, mutant.file))), flush=True)
    except KeyboardInterrupt:
        print('mutate: interrupted')
    if survivors:
        print('survived:')
    for mutant in survivors:
        print(show(mutant, read(os.path.join(root, mutant.file))))
    print(summary(results))
    held.close()
    return 1 if survivors else 0


def c_files(root, folders):
    prefixes = tuple(folder.rstrip('/') + '/' for folder in folders)
    return [path for path in sources(root) if path.startswith(prefixes) and path.endswith('.c')]


def main(arguments):
    parser = argparse.ArgumentParser(prog='mutate', description='make wrong changes, and ask whether a test fails')
    parser.add_argument('files', nargs='*', metavar='FILE[:LINE]',
                        help='sources or folders (default: %s)' % ', '.join(FOLDERS))
    parser.add_argument('--sample', type=int, metavar='N', help='number of mutants drawn (default: all)')
    parser.add_argument('--seed', type=int, default=1, metavar='S', help='random seed of the draw (default 1)')
    parser.add_argument('--jobs', type=int, default=os.cpu_count(), metavar='N', help='tests at a time (default: CPUs)')
    parser.add_argument('--list', action='store_true', help='print the mutants only')
    options = parser.parse_args(arguments)
    mutants = draw(collect(ROOT, options.files or FOLDERS), options.sample, options.seed)
    if not options.list:
        return run(ROOT, mutants, options.jobs)
    for mutant in mutants:
        print(show(mutant, read(os.path.join(ROOT, mutant.file))))
    print(f'{len(mutants)} mutants')
    return 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
