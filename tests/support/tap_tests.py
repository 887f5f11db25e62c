# SPDX-License-Identifier: MIT
"""The tests of a Python program, in the order of their definition, and their results as TAP."""
import inspect
import tempfile
import traceback

tests = []


def test(function):
    tests.append(function)
    return function


def call(function):
    """A test with a parameter gets the path of an empty folder. A text that it returns says why it was skipped."""
    if not inspect.signature(function).parameters:
        return function()
    with tempfile.TemporaryDirectory() as folder:
        return function(folder)


def main():
    """Runs all tests. An exception of any kind fails a test, and the next one runs. Returns the exit code."""
    failed = 0
    print('1..%d' % len(tests))
    for number, function in enumerate(tests, 1):
        try:
            skipped = call(function)
            print('ok %d - %s%s' % (number, function.__name__, ' # SKIP ' + skipped if skipped else ''), flush=True)
        except Exception:
            failed += 1
            print('not ok %d - %s' % (number, function.__name__))
            print(''.join('# %s\n' % line for line in traceback.format_exc().splitlines()), end='', flush=True)
    return 1 if failed else 0
