#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_mutate.py COMPILER...: the changes that scripts/mutate.py makes in a small C file, and what becomes of them. TAP."""
import os
import subprocess
import sys
import threading

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, 'scripts'))
sys.path.append(os.path.join(ROOT, 'tests/support'))
import mutate
from tap_tests import main, test

COMPILER = sys.argv[1:] or ['cc']
SOURCE = '''/* if (a == b) call(); */
#include "a == b.h"
#define LESS(a, b) ((a) < (b))
static const int table[] = { 1 == 1, 2 < 3 };
int declared(int a, int b);

int total(const int *values, int count)
{
	const char *text = "a == b && c";
	int sum = 0;

	vmm_assert(count >= 0 && values);
	for (int i = 0; i < count; i++)
		sum = sum + values[i];
	if (!text)
		return 0;
	return sum;
}

int unused_by_the_test(int a)
{
	return a == 3;
}
'''
CHANGES = [
    (13, 'compare', 'for (int i = 0; i <= count; i++)'),
    (14, 'arithmetic', 'sum = sum - values[i];'),
    (15, 'negate', 'if (!(!text))'),
    (17, 'return', 'return 0;'),
    (22, 'return', 'return 0;'),
    (22, 'compare', 'return a != 3;'),
]
PROGRAM = '''
#define vmm_assert(condition) ((void)0)
#include "total.c"
#include <stdio.h>
int main(void)
{
	const int values[] = {1, 2, 4, 8};
	printf("1..1\\n%s 1 - total\\n", total(values, 3) == 7 ? "ok" : "not ok");
	return 0;
}
'''


def changes(text):
    return [(mutant.line, mutant.kind, mutate.lines_of(text, mutant)[1]) for mutant in mutate.mutants_of('total.c', text)]


def statement(text):
    """The changes of one statement inside a function."""
    return [(kind, after) for _, kind, after in changes('void f(void)\n{\n\t' + text + '\n}\n')]


def write(folder, name, text):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
        file.write(text)


class SmallBuild(mutate.Build):
    """One test, which is compiled from total.c alone."""

    def __init__(self, folder):
        self.copy = self.folder = folder
        self.seconds, self.output = {}, {}
        self.program = os.path.join(folder, 'program')
        self.tests = {'total': {'cmd': [self.program], 'env': {}, 'workdir': folder}}
        write(folder, 'program.c', PROGRAM)
        write(folder, 'total.c', SOURCE.replace('#include "a == b.h"\n', '\n'))

    def compile(self, names):
        return subprocess.run([*COMPILER, '-w', os.path.join(self.folder, 'program.c'), '-o', self.program],
                              capture_output=True).returncode == 0


def judge_all(folder, mutants=None):
    """The results for the mutants (default: all) of the file."""
    build = SmallBuild(folder)
    judge = mutate.Judge(build, 1)
    judge.measure(['total'])
    before = mutate.read(os.path.join(folder, 'total.c'))
    results = [mutate.judge_one(judge, [['total']], folder, mutant)
               for mutant in mutants or mutate.mutants_of('total.c', before)]
    assert mutate.read(os.path.join(folder, 'total.c')) == before
    return results


@test
def each_change_is_in_a_statement_of_a_function():
    assert changes(SOURCE) == CHANGES, changes(SOURCE)


@test
def the_operators_have_their_changes():
    assert statement('if (a && b)') == [('negate', 'if (!(a && b))'), ('logic', 'if (a || b)')]
    assert statement('x = a->b >= c << 1;') == [('compare', 'x = a->b > c << 1;')]
    assert statement('queue->count -= 1;') == [('assignment', ';')]
    assert statement('queue->count = n - 1;') == [('assignment', ';'), ('arithmetic', 'queue->count = n + 1;')]
    assert statement('(void)put(object, true);') == [('call', ';'), ('flag', '(void)put(object, false);')]
    assert statement('return true;') == [('return', 'return false;')]
    assert statement('return vmm_ok(status) ? x : y;') == [('return', 'return 0;')]


@test
def what_no_test_of_behavior_can_see_stays():
    for text in ('vmm_assert_held(&x->lock);', 'vmm_free(x);', 'vmm_paging_unlock(x);', 'return VMM_OK;', 'int *a = &b;',
                 'vmm_finding(o, "A-01", a + 1, b == c);', '/* x = a + b; */', 'const char *t = "a + b";'):
        assert statement(text) == [], (text, statement(text))


@test
def the_same_seed_draws_the_same_mutants():
    mutants = mutate.collect(ROOT, ['src/sync/signal.c'])
    assert len(mutants) > 20
    assert mutate.draw(mutants, 9, 5) == mutate.draw(mutants, 9, 5) != mutate.draw(mutants, 9, 6)
    assert mutate.draw(mutants, None, 5) == mutants
    assert [mutant.file for mutant in mutate.draw(mutate.collect(ROOT, ['src/sync']), 5, 1)] == \
        sorted(mutant.file for mutant in mutate.draw(mutate.collect(ROOT, ['src/sync']), 5, 1))
    line = mutants[3].line
    assert {mutant.line for mutant in mutate.collect(ROOT, [f'src/sync/signal.c:{line}'])} == {line}


@test
def a_mutant_that_is_the_same_program_is_not_drawn(folder):
    write(folder, 'total.c', SOURCE)
    os.makedirs(os.path.join(folder, 'tests/mutants'))
    write(folder, mutate.EQUIVALENT, '# a comment\ntotal.c\tif (!text)\tif (!(!text))\tthe reason\n')
    mutants = mutate.collect(folder, ['total.c'])
    expected = [(line, kind) for line, kind, _ in CHANGES if kind != 'negate']
    assert [(mutant.line, mutant.kind) for mutant in mutate.draw(mutants, None, 1)] == expected
    # The rest of the draw stays, and another mutant takes the place.
    without = mutate.mutants_of('total.c', SOURCE)
    for count in range(1, len(expected)):
        same, more = ({mutant for mutant in mutate.draw(without, number, 7) if mutant.kind != 'negate'}
                      for number in (count, count + 1))
        drawn = set(mutate.draw(mutants, count, 7))
        assert len(drawn) == count and drawn in (same, more), (count, drawn)


@test
def every_row_of_the_table_is_a_mutant():
    rows = mutate.equivalent(ROOT)
    for name in sorted({row[0] for row in rows}):
        text = mutate.read(os.path.join(ROOT, name))
        found = {(name, *mutate.lines_of(text, mutant)) for mutant in mutate.mutants_of(name, text)}
        missing = {row for row in rows if row[0] == name} - found
        assert not missing, missing


@test
def tests_that_are_named_after_the_file_are_akin():
    assert mutate.akin('src/sched/resets/engine_reset.c', 'sched_reset')
    assert mutate.akin('src/memory/sets/paging_queue.c', 'wddm2_paging')
    assert not mutate.akin('src/sched/calls/render.c', 'sched_reset')


@test
def a_test_kills_the_mutants_that_it_can_see(folder):
    results = judge_all(folder)
    # The array has a further element, which is not 0. The last two are in a function without a test.
    assert results == ['total', 'total', 'total', 'total', None, None], results
    assert mutate.summary(results) == '6 mutants, 4 killed, 2 survived, 0 did not build'


@test
def what_does_not_compile_did_not_build(folder):
    results = judge_all(folder, [mutate.Mutant('total.c', 1, 0, 0, 'no C at all;', 'call')])
    assert results == ['did not build'], results
    assert mutate.summary(results) == '1 mutants, 0 killed, 0 survived, 1 did not build'


@test
def a_test_that_hangs_kills_the_mutant(folder):
    text = SmallBuild(folder) and mutate.read(os.path.join(folder, 'total.c'))
    start = text.index('i++')
    before = mutate.SLOWEST_MORE_S
    mutate.SLOWEST_MORE_S = 1
    try:
        results = judge_all(folder, [mutate.Mutant('total.c', 13, start, start + 3, 'i += 0', 'call')])
    finally:
        mutate.SLOWEST_MORE_S = before
    assert results == ['total'], results


@test
def a_run_stops_when_another_test_has_failed(folder):
    build, stop = SmallBuild(folder), threading.Event()
    assert build.compile(['total'])
    assert build.run('total', None, stop) is True
    build.tests['total']['cmd'] = ['sleep', '1000']
    stop.set()
    assert build.run('total', None, stop) is None


if __name__ == '__main__':
    sys.exit(main())
