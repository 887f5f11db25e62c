#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_coverage.py: what scripts/coverage.py makes of the documents of gcov and of the rows of left.tsv. TAP."""
import contextlib
import io
import os
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(ROOT, 'scripts'))
sys.path.append(os.path.join(ROOT, 'tests/support'))
import coverage
from tap_tests import main, test

SOURCE = '''int first(int a)
{
	vmm_assert(a > 0 &&
		   a < 9);
	if (a == 3)
		return 0;
	return a;
}
int second(void)
{
	return 1;
}
'''


def line(number, count, *branches, function='first'):
    return {'line_number': number, 'count': count, 'function_name': function, 'branches': [{'count': one} for one in branches]}


def document(*lines, file='../../src/doors/umd/a.c'):
    return {'current_working_directory': os.path.join(ROOT, 'build/coverage'), 'files': [{'file': file, 'lines': lines}]}


FIRST = (line(3, 4, 4, 0), line(4, 4, 4, 0), line(5, 4, 0, 4), line(6, 0), line(7, 4), line(11, 0, function='second'))


def tree(folder):
    os.makedirs(os.path.join(folder, 'src/doors/umd'))
    with open(os.path.join(folder, 'src/doors/umd/a.c'), 'w', encoding='utf-8') as file:
        file.write(SOURCE)
    return folder


def rows(folder, text):
    path = os.path.join(folder, 'left.tsv')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return coverage.read_rows(path)


def counts_of(documents):
    build = os.path.join(ROOT, 'build/coverage')
    files = coverage.collections.defaultdict(lambda: coverage.collections.defaultdict(coverage.Line))
    for one in documents:
        coverage.add_document(files, one, os.path.dirname(os.path.dirname(build)))
    return files


@test
def counts_of_all_programs_are_added():
    again = document(line(5, 1, 1, 0), line(6, 1))
    files = counts_of([document(*FIRST), again, document(line(1, 1), file='../../tests/x.c')])
    assert list(files) == ['src/doors/umd/a.c'], files
    assert files['src/doors/umd/a.c'][5].count == 5 and not files['src/doors/umd/a.c'][5].missed_branches()


@test
def lines_and_branches_are_summed_by_module(folder):
    counts, missed = coverage.judge(counts_of([document(*FIRST)]), [], tree(folder))
    assert list(counts) == ['src/doors/umd'] and coverage.module_of('src/memory/sets/b.c') == 'src/memory', counts
    assert counts['src/doors/umd'].cells() == (6, '66.7', '66.7', 6, '50.0', '50.0'), counts['src/doors/umd'].cells()
    assert missed == [('src/doors/umd/a.c', 6, 'return 0;'), ('src/doors/umd/a.c', 11, 'return 1;')], missed


@test
def a_row_explains_a_statement_or_a_function(folder):
    tree(folder)
    table = rows(folder, '# comment\n\nsrc/*\tvmm_assert\\(\tbugs\nsrc/doors/*\tsecond()\tnever called\nsrc/*\tthird()\tgone\n')
    counts, missed = coverage.judge(counts_of([document(*FIRST)]), table, folder)
    assert missed == [('src/doors/umd/a.c', 6, 'return 0;')], missed
    # The second line of the assertion is the same statement.
    assert [(row.lines, row.branches) for row in table] == [(0, 2), (1, 0), (0, 0)], [vars(row) for row in table]
    assert counts['src/doors/umd'].cells() == (6, '66.7', '80.0', 6, '50.0', '75.0'), counts['src/doors/umd'].cells()


@test
def a_row_needs_three_fields(folder):
    try:
        rows(folder, 'src/*\tsecond()\n')
    except SystemExit as error:
        assert 'left.tsv:1: expected file, part and reason' in str(error), error
    else:
        assert False


@test
def a_stale_row_is_an_error(folder):
    build = os.path.join(folder, 'build')
    os.makedirs(os.path.join(build, 'src'))
    open(os.path.join(build, 'src/a.gcno'), 'wb').close()
    left = os.path.join(folder, 'left.tsv')
    read = coverage.read_build
    base = next(name for name in sorted(os.listdir(os.path.join(ROOT, 'src/base'))) if name.endswith('.c'))
    coverage.read_build = lambda build: counts_of([document(line(1, 0), line(2, 1), file='../../src/base/' + base)])
    try:
        for text, code in (('src/base/*\t.*\tfirst line\n', 0), ('src/base/*\tno_such()\tgone\n', 1)):
            with open(left, 'w', encoding='utf-8') as file:
                file.write(text)
            out, sys.argv = io.StringIO(), ['coverage.py', build, '--left', left]
            with contextlib.redirect_stdout(out):
                assert coverage.main() == code, out.getvalue()
            assert ('explains nothing' in out.getvalue()) == bool(code), out.getvalue()
    finally:
        coverage.read_build = read
    try:
        coverage.read_build(folder)
    except SystemExit as error:
        assert 'no files of notes' in str(error), error


if __name__ == '__main__':
    sys.exit(main())
