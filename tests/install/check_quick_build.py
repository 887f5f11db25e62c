#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""check_quick_build.py SCRIPT: scripts/quick_build.py builds a program whose files have static names in common. TAP."""
import os
import subprocess
import sys
import tempfile

SCRIPT = os.path.abspath(sys.argv[1])
FILES = {
    'meson.build': "project('p', 'c')\nlib = static_library('l', 'a.c', 'b.c', 'c.c', c_args: '-DX=1')\n"
                   "executable('main', 'main.c', link_with: lib)\n",
    'a.c': 'int a(void);\nstatic int count(void)\n{\n\treturn 1;\n}\nint a(void)\n{\n\treturn count();\n}\n',
    'b.c': 'int b(void);\nstatic int count(void)\n{\n\treturn 20;\n}\nint b(void)\n{\n\treturn count();\n}\n',
    # Not found by the name: the group does not compile, and is divided.
    'c.c': 'int c(void);\nint c(void)\n{\n\tint (*count)(void) = 0;\n\treturn count ? 0 : 300;\n}\nint a(int);\n',
    'main.c': '#include <stdio.h>\nint a(void), b(void), c(void);\nint main(void)\n{\n'
              '\tprintf("%d\\n", a() + b() + c());\n\treturn 0;\n}\n',
}


def run(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False)


def cases(folder):
    for name, text in FILES.items():
        with open(os.path.join(folder, name), 'w', encoding='utf-8') as file:
            file.write(text)
    build = os.path.join(folder, 'build')
    done = run('meson', 'setup', build, folder)
    yield 'the project is configured', done.returncode == 0, done.stdout + done.stderr
    done = run(sys.executable, SCRIPT, build, 'main', 'program')
    yield 'files are compiled in groups', '4 files in 3 runs' in done.stdout, done.stdout + done.stderr
    done = run(os.path.join(build, 'program'))
    yield 'the program has the functions of all files', done.stdout == '321\n', done.stdout + done.stderr


def main():
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for result in cases(folder):
            results.append(result)
            if not result[1]:
                break
    print(f'1..{len(results)}')
    for number, (name, good, text) in enumerate(results, 1):
        for line in text.splitlines() if not good else []:
            print(f'# {line}')
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main())
