# SPDX-License-Identifier: MIT
"""Measures of the structure that need more than the text of the tree: a build folder, or clang.

Each takes the root of the tree and a build folder (or None) and returns a number, the places to be counted, or None
where it cannot measure: without a build folder, without clang, with object files that nm cannot read.
"""

import functools
import json
import os
import re
import shutil
import subprocess
import sys

sys.path.append(os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), 'scripts'))
import rules

CORE = ('src/memory', 'src/sched', 'src/sync')
OBJECT_FLAGS = ('-std=c11', '-fsyntax-only', '-D_GNU_SOURCE', '-DDXGKDDI_INTERFACE_VERSION=0x11000',
                '-DD3D_UMD_INTERFACE_VERSION=0xF000', '-Iinclude', '-Iinclude/wddm', '-Isrc',
                '-fno-color-diagnostics', '-Xclang', '-ast-dump')

RECORD = re.compile(r'^([|` -]*)RecordDecl 0x\w+ .*\bstruct (\w+) definition$')
FIELD = re.compile(r'^([|` -]*)FieldDecl (0x\w+) .* (?:col|line|\S+\.h):[\d:]+ (?:referenced )?(\w+) \'')
MEMBER = re.compile(r'^[|` -]*MemberExpr 0x\w+ .*(?:->|\.)(\w*) (0x\w+)(?: \w+)*$')
EDGE = re.compile(r'^build (.*?): (\w+)(.*)$')


# ---- references between object files ----

def largest_cycle(graph):
    """The members of the largest strongly connected component (Tarjan); empty if no component has two members."""
    index, low, stack, on_stack, largest = {}, {}, [], set(), []
    for root in sorted(graph):
        if root in index:
            continue
        walk = [(root, iter(sorted(graph[root])))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on_stack.add(root)
        while walk:
            node, successors = walk[-1]
            after = next(successors, None)
            if after is None:
                walk.pop()
                if walk:
                    low[walk[-1][0]] = min(low[walk[-1][0]], low[node])
                if low[node] == index[node]:
                    at = stack.index(node)
                    component, stack[at:] = stack[at:], []
                    on_stack.difference_update(component)
                    largest = max(largest, component, key=len)
            elif after not in index:
                index[after] = low[after] = len(index)
                stack.append(after)
                on_stack.add(after)
                walk.append((after, iter(sorted(graph[after]))))
            elif after in on_stack:
                low[node] = min(low[node], index[after])
    return sorted(largest) if len(largest) > 1 else []


def references(symbols):
    """The graph of objects, from `object -> (defined symbols, undefined symbols)`."""
    owner = {symbol: name for name, (defined, _) in symbols.items() for symbol in defined}
    return {name: {owner[symbol] for symbol in undefined if owner.get(symbol, name) != name}
            for name, (_, undefined) in symbols.items()}


def parse_nm(text):
    """object -> (defined, undefined) external symbols, from the output of nm -A."""
    symbols = {}
    for line in text.split('\n'):
        path, _, rest = line.partition(':')
        fields = rest.split()
        defined, undefined = symbols.setdefault(path, (set(), set()))
        if len(fields) == 2 and fields[0] in 'Uw':
            undefined.add(fields[1])
        elif len(fields) == 3 and fields[1] in 'TDBRVWC':
            defined.add(fields[2])
    return symbols


@functools.lru_cache(maxsize=None)
def compile_commands(build):
    with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as commands:
        return json.load(commands)


def objects_below(root, build, folder):
    """source path -> object path of every compiled source below a folder of the tree."""
    below, found = os.path.join(os.path.realpath(root), folder) + os.sep, {}
    for command in compile_commands(build):
        source = os.path.realpath(os.path.join(command['directory'], command['file']))
        if source.startswith(below):
            found[os.path.relpath(source, os.path.realpath(root))] = os.path.join(command['directory'], command['output'])
    return found


def cycle_of_files(folder):
    """A module is everything below its folder: moving files into subfolders does not change the number."""
    def measure(root, build):
        if not build or not shutil.which('nm'):
            return None
        paths = sorted(objects_below(root, build, folder).values())
        nm = subprocess.run(['nm', '-A', *paths], capture_output=True, text=True, check=False)
        symbols = parse_nm(nm.stdout)
        if nm.returncode or not all(symbols.get(path, ((), ()))[0] for path in paths):
            return None
        return len(largest_cycle(references({path: symbols[path] for path in paths})))
    return measure


# ---- members of the objects that the object module does not use ----

def members_of(dump, struct):
    """(declared, used): the named members of a struct, and those of them that some expression reads or writes."""
    depth, names, used = None, {}, set()
    for line in dump:
        record = RECORD.match(line)
        if record and record[2] == struct:
            depth = len(record[1])
            continue
        if depth is not None:
            field = FIELD.match(line)
            if field and len(field[1]) > depth and field[3] != 'implicit':
                names[field[2]] = field[3]
            elif len(line) - len(line.lstrip('|` -')) <= depth:
                depth = None
        member = MEMBER.match(line)
        if member and member[2] in names:
            used.add(names[member[2]])
    return set(names.values()), used


@functools.lru_cache(maxsize=None)
def object_dumps(root):
    """ccache, where clang is a link to it, does not repeat what the compiler printed."""
    folder = os.path.join(root, 'src/object')
    return [subprocess.run(['clang', *OBJECT_FLAGS, os.path.join('src/object', name)], cwd=root, capture_output=True,
                           text=True, check=True, env={**os.environ, 'CCACHE_DISABLE': '1'}).stdout.split('\n')
            for name in sorted(os.listdir(folder)) if name.endswith('.c')]


def defines(root, struct):
    """Does some file of src define the struct?"""
    definition = re.compile(rf'^struct {struct} {{$', re.M)
    return any(definition.search(text) for _, text in rules.sources_below(root, ['src']))


def unused_members(struct):
    """Members of a struct that a header of object defines, but object does not use. Empty if another module defines it."""
    def measure(root, _):
        if not shutil.which('clang'):
            return None
        declared, used = set(), set()
        for dump in object_dumps(root):
            more, uses = members_of(dump, struct)
            declared |= more
            used |= uses
        return sorted(declared - used) if declared or defines(root, struct) else None
    return measure


# ---- links that a change of one file needs ----

def read_edges(text):
    """(outputs, rule, inputs) of each edge of a build.ninja. Order-only inputs are left out."""
    edges = []
    for line in text.split('\n'):
        edge = EDGE.match(line.replace('$:', '\0').replace('$ ', '\1'))
        if edge:
            names = [[name.replace('\0', ':').replace('\1', ' ') for name in part.split() if name != '|']
                     for part in (edge[1], edge[3].split(' || ')[0])]
            edges.append((names[0], edge[2], names[1]))
    return edges


def linked_again(edges, changed):
    """What the target "all" links again if a file changes, but no symbol list of a shared library."""
    users, links, ready = {}, set(), [changed]
    for edge in edges:
        for name in edge[2]:
            users.setdefault(name, []).append(edge)
    seen = set(ready)
    while ready:
        for outputs, rule, _ in users.get(ready.pop(), ()):
            if rule == 'SHSYM' or rule == 'phony':
                continue
            if rule.endswith('_LINKER') and not rule.startswith('STATIC'):
                links.add(outputs[0])
            ready += [name for name in outputs if name not in seen]
            seen.update(outputs)
    built = {name for outputs, _, inputs in edges if outputs == ['all'] for name in inputs}
    return sorted(links & built)


def links_of_core_file(root, build):
    """The most links that the change of one source of the core needs; all sources of a library need the same."""
    if not build:
        return None
    with open(os.path.join(build, 'build.ninja'), encoding='utf-8') as ninja:
        edges = read_edges(ninja.read())
    samples = {os.path.dirname(path): os.path.relpath(path, build)
               for folder in CORE for path in objects_below(root, build, folder).values()}
    return max((len(linked_again(edges, path)) for path in samples.values()), default=None)


MEASURES = {
    **{f'files in the largest cycle of references in {folder}': cycle_of_files(folder) for folder in CORE},
    **{f'members of struct {struct} that src/object does not use': unused_members(struct)
       for struct in ('vmm_allocation', 'vmm_instance')},
    'programs and shared libraries linked again after a change of one core file': links_of_core_file,
}
# Taken by trip.py on demand, because they need a build where each function reports its calls.
TRIP_CALLS, TRIP_FUNCTIONS, TRIP_SWITCHES, LOCK_CALLS, LOCK_CALLS_REAL_TIME = TRIP = (
    'calls of a warm pfnRenderCb until its buffer has retired',
    'functions that it calls',
    'of its calls, those in another module than the call before',
    'calls of a CPU lock on its fast path',
    'the same on a host of real time, without subscribers',
)
