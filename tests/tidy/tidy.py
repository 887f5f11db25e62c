#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The house rules, as a test: prints TAP, one line per rule, and the offending lines as diagnostics.

    tidy.py [ROOT]            run all checks on the tree
    tidy.py --table [ROOT]    print the dependency table only
"""

import os
import subprocess
import sys

import checks
import layers as layering
import wire

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDERS = ['include', 'src', 'drivers', 'tools', 'tests', 'bench', 'examples', 'scripts', 'docs', '.ci']
TOP_FILES = ['meson.build', 'meson_options.txt', 'x', 'README.md', 'CHANGELOG.md', 'CONTRIBUTING.md', 'SECURITY.md']
TEXT = ('.c', '.h', '.cpp', '.py', '.sh', '.md', '.tsv', '.map', '.build', '.txt', '.in', '.json', '.scd')
# The checker's own folder holds the forbidden words, as patterns and as bad samples.
OWN = 'tests/tidy/'


def read_tree(root):
    """path -> text of every text file that is ours."""
    files = {}
    paths = [name for name in TOP_FILES if os.path.isfile(os.path.join(root, name))]
    for folder in FOLDERS:
        for where, dirs, names in os.walk(os.path.join(root, folder)):
            dirs[:] = sorted(name for name in dirs if name != '__pycache__')
            paths += [os.path.relpath(os.path.join(where, name), root) for name in sorted(names)]
    for path in paths:
        if path.endswith(TEXT) or '.' not in os.path.basename(path).lstrip('.'):
            try:
                with open(os.path.join(root, path), encoding='utf-8') as source:
                    files[path] = source.read()
            except (UnicodeDecodeError, FileNotFoundError):
                continue
    return files


def read_ratchet(path):
    with open(path, encoding='utf-8') as lines:
        rows = [line.rstrip('\n').split('\t') for line in lines if line.strip() and not line.startswith('#')]
    return {(row[0], row[1]): int(row[2]) for row in rows[1:]}


def missing_rows(root, layers):
    """Folders with sources that the table does not know."""
    known = {layer.path for layer in layers}
    problems = []
    for top in ('src', 'drivers', 'tools'):
        for where, _, names in os.walk(os.path.join(root, top)):
            folder = os.path.relpath(where, root)
            inside = any(folder == path or folder.startswith(path + '/') for path in known)
            if not inside and any(name.endswith(('.c', '.h')) for name in names):
                problems.append(f'{folder}: not in layers.tsv')
    return problems


def script_problems(root, script, *arguments):
    command = [sys.executable, os.path.join(root, 'scripts', script), *arguments]
    run = subprocess.run(command, env={**os.environ, 'VIDMM_SOURCE_ROOT': root},
                         capture_output=True, text=True, check=False)
    return (run.stdout + run.stderr).strip().split('\n') if run.returncode else []


def run_all(root):
    """(name, problems) of every check."""
    layers = layering.read(os.path.join(HERE, 'layers.tsv'))
    ratchet = read_ratchet(os.path.join(HERE, 'ratchet.tsv'))
    files = read_tree(root)
    others = {path: text for path, text in files.items() if not path.startswith(OWN)}
    code = {path: text for path, text in others.items() if checks.is_c(path)}
    present = [layer.path for layer in layers if any(path.startswith(layer.path + '/') for path in files)]
    builds = {path: text for path, text in files.items()
              if path.endswith('/meson.build') and path.startswith(('src/', 'drivers/'))}
    return [
        ('the table has no cycle', layering.cycles(layers)),
        ('the table points down', layering.upward(layers)),
        ('every folder with sources is in the table', missing_rows(root, layers)),
        ('includes keep to the table', layering.check_includes(root, layers, code)),
        ('link dependencies keep to the table', layering.check_build(layers, builds)),
        ('functions and files keep their size', checks.check_sizes(code, ratchet)),
        ('no path of one machine', checks.check_machine_paths(others)),
        ('nothing unfinished', checks.check_words(others)),
        ('every source names its licence', checks.check_spdx(files)),
        ('every module has a README of one page', checks.check_readmes(files, present)),
        ('no test sleeps', checks.check_sleeps(others)),
        ('every allocation property is explained', checks.check_flag_pages(files)),
        ('requests carry all of an argument', wire.check_wire(files)),
        ('DDI spellings stay in their folders', checks.check_ddi_spellings(others)),
        ('rule ids are in the rule tables', script_problems(root, 'rules.py', 'check')),
        ('docs/rules/index.md says where each rule is implemented and tested', script_problems(root, 'rule_index.py', 'check')),
        ('docs/ddis.md lists the DDIs that are built', script_problems(root, 'ddis.py', 'check')),
        ('links between documents hold', script_problems(root, 'links.py', root)),
    ]


def print_table(layers):
    for layer in layers:
        print(f'# {layer.name:16} may use: {" ".join(layer.uses) or "nothing"}')


def main(arguments):
    table_only = '--table' in arguments
    rest = [argument for argument in arguments if argument != '--table']
    root = os.path.abspath(rest[0]) if rest else os.path.dirname(os.path.dirname(HERE))
    print_table(layering.read(os.path.join(HERE, 'layers.tsv')))
    if table_only:
        return 0
    results = run_all(root)
    print(f'1..{len(results)}')
    for number, (name, problems) in enumerate(results, 1):
        for problem in problems:
            print(f'# {problem}')
        print(f'{"not ok" if problems else "ok"} {number} - {name}')
    return 1 if any(problems for _, problems in results) else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
