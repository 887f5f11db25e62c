# SPDX-License-Identifier: MIT
"""The tests of a program, in the order of their definition, and their results as TAP."""
tests = []


def test(function):
    tests.append(function)
    return function


def main():
    """Returns the exit code. A test that returns a text was skipped, for the reason that the text says."""
    failed = 0
    print('1..%d' % len(tests))
    for number, function in enumerate(tests, 1):
        try:
            skipped = function()
            print('ok %d - %s%s' % (number, function.__name__, ' # SKIP ' + skipped if skipped else ''), flush=True)
        except AssertionError as error:
            failed += 1
            print('not ok %d - %s' % (number, function.__name__))
            for line in str(error).splitlines():
                print('# ' + line)
    return 1 if failed else 0
