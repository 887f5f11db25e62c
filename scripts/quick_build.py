#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds one program of a configured build folder with few runs of the compiler. For `./x demo`.

    quick_build.py BUILD TARGET PROGRAM

Most of the time of a build without optimization goes to reading the same headers for each file. Files with the same
arguments are compiled several at a time here, as one file that includes them. Two files that define the same name for
themselves (static, tag, enumerator, macro) are never in the same group. The commands are those of ninja.
"""
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys

FILES_MAX = 16
# What a source file defines for itself: beginnings of lines, since definitions are not indented. Enumerators are.
STATIC = re.compile(r'^static\b[^;={(]*?\b(\w+)\s*(?:\[|=|;|\()', re.M)
TAG = re.compile(r'^(?:static |const |typedef )*(?:struct|union|enum) (\w+)\s*\{', re.M)
ENUMERATORS = re.compile(r'\benum(?: \w+)?\s*\{([^}]*)\}')
TYPE = re.compile(r'^typedef\b[^;{]*?\b(\w+);', re.M)
MACRO = re.compile(r'^\s*#\s*define (\w+)', re.M)
WORD = re.compile(r'[A-Za-z_]\w*')


class Source:
    """A file and the names that keep others out of its group."""

    def __init__(self, path):
        self.path = path
        with open(path, encoding='utf-8') as file:
            text = re.sub(r'/\*.*?\*/', ' ', file.read(), flags=re.S)
        self.words = set(WORD.findall(text))
        self.macros = set(MACRO.findall(text))
        # The attributes of a function may stand before its name.
        plain = re.sub(r'__attribute__\(\([^;{]*?\)\)\)?\s*', '', text)
        self.names = set(STATIC.findall(plain)) | set(TAG.findall(text)) | set(TYPE.findall(text))
        for body in ENUMERATORS.findall(text):
            self.names |= {part.split('=')[0].strip() for part in body.split(',')}
        self.names.discard('')

    def fits(self, others):
        return all(not self.names & other.names and not self.macros & other.words and not other.macros & self.words
                   for other in others)


def commands_of(build, target):
    run = subprocess.run(['ninja', '-C', build, '-t', 'commands', target], capture_output=True, text=True, check=True)
    return [shlex.split(line) for line in run.stdout.splitlines() if ' && ' not in line]


def without(arguments, *options):
    """Arguments without options that have a value."""
    kept, skip = [], False
    for argument in arguments:
        if not skip and argument not in options:
            kept.append(argument)
        skip = not skip and argument in options
    return kept


def group(sources):
    groups = []
    for source in sources:
        home = next((one for one in groups if len(one) < FILES_MAX and source.fits(one)), None)
        if home is None:
            groups.append([source])
        else:
            home.append(source)
    return groups


def compile_group(build, number, arguments, sources):
    """Returns the objects of the sources: one if they compile as a group."""
    name = f'quick/{number}'
    with open(os.path.join(build, f'{name}.c'), 'w', encoding='utf-8') as file:
        file.writelines(f'#include "{source.path}"\n' for source in sources)
    run = subprocess.run([*arguments, '-w', '-c', f'{name}.c', '-o', f'{name}.o'], cwd=build, capture_output=True,
                         check=False)
    if run.returncode == 0:
        return [f'{name}.o']
    if len(sources) == 1:
        raise RuntimeError(run.stderr.decode(errors='replace'))
    half = len(sources) // 2
    return compile_group(build, f'{number}a', arguments, sources[:half]) + \
        compile_group(build, f'{number}b', arguments, sources[half:])


def sources_by_arguments(build, commands):
    """Compiler arguments -> the files that are compiled with them."""
    found = {}
    for command in commands:
        if '-c' not in command or not command[-1].endswith('.c'):
            continue
        arguments = tuple(argument for argument in without(command, '-MQ', '-MF', '-o', '-c')
                          if argument != '-MD' and not re.fullmatch(r'-I\S+\.p', argument))
        found.setdefault(arguments, []).append(os.path.normpath(os.path.join(os.path.abspath(build), command[-1])))
    return found


def generate(build):
    """Writes the sources and headers that scripts generate."""
    run = subprocess.run(['ninja', '-C', build, '-t', 'targets', 'rule', 'CUSTOM_COMMAND'], capture_output=True,
                         text=True, check=True)
    paths = [path for path in run.stdout.split() if path.endswith(('.h', '.c'))]
    if paths:
        subprocess.run(['ninja', '-C', build, *paths], check=True, stdout=subprocess.DEVNULL)


def main(build, target, program):
    commands = commands_of(build, target)
    by_arguments = sources_by_arguments(build, commands)
    generate(build)
    os.makedirs(os.path.join(build, 'quick'), exist_ok=True)
    jobs = [(arguments, members) for arguments, paths in by_arguments.items()
            for members in group([Source(path) for path in paths])]
    print(f'x: {sum(len(members) for _, members in jobs)} files in {len(jobs)} runs of the compiler', flush=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        futures = [pool.submit(compile_group, build, number, *job) for number, job in enumerate(jobs)]
        objects = [path for future in futures for path in future.result()]
    link = next(command for command in reversed(commands) if '-o' in command and command[command.index('-o') + 1] == target)
    compiler, rest = link[:link.index('-o')], link[link.index('-o') + 2:]
    libraries = [part for part in rest if not part.endswith(('.a', '.o'))]
    subprocess.run([*compiler, '-o', program, *objects, *libraries], cwd=build, check=True)
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
