# SPDX-License-Identifier: MIT
"""The dependency table, and whether the tree keeps to it."""

import os
import re

import cscan

LIBC = {
    'assert.h', 'ctype.h', 'errno.h', 'float.h', 'inttypes.h', 'limits.h', 'math.h', 'setjmp.h', 'stdalign.h',
    'stdarg.h', 'stdatomic.h', 'stdbool.h', 'stddef.h', 'stdint.h', 'stdio.h', 'stdlib.h', 'stdnoreturn.h',
    'string.h', 'wchar.h', 'cpuid.h', 'immintrin.h', 'emmintrin.h', 'x86intrin.h',
}
OS_HEADER = re.compile(
    r'^(?:(?:sys|linux|asm|bits|net|netinet|arpa)/.*|(?:pthread|unistd|time|fcntl|sched|semaphore|poll|signal|dlfcn'
    r'|strings|threads|ucontext|spawn|dirent|glob|getopt|termios|syslog|pwd|mqueue|aio|locale|malloc)\.h)$')
INCLUDE_PATH = ['include', 'include/wddm', 'src', 'tests']
MODULE_DEPENDENCY = re.compile(r'\b(?:vmm_)?(\w+?)_dep\b')


class Layer:
    def __init__(self, name, path, uses, reaches_os, external, responsibility):
        self.name, self.path, self.responsibility = name, path, responsibility
        self.uses = [] if uses == '-' else uses.split()
        self.reaches_os = reaches_os == 'yes'
        self.external = [] if external == '-' else external.split()

    def may_use(self, name):
        return name == self.name or name in self.uses or '*' in self.uses


def read(path):
    with open(path, encoding='utf-8') as lines:
        rows = [line.rstrip('\n').split('\t') for line in lines if line.strip() and not line.startswith('#')]
    return [Layer(*row) for row in rows[1:]]


def owner(layers, path):
    """The layer whose folder holds `path`, or that is this one file; the deepest."""
    holders = [layer for layer in layers if path == layer.path or path.startswith(layer.path + '/')]
    return max(holders, key=lambda layer: len(layer.path), default=None)


def cycles(layers):
    """What keeps the arrows from pointing down: unknown names and cycles."""
    names = {layer.name: layer for layer in layers}
    problems = [f'{layer.name} uses {used}, which is no module'
                for layer in layers for used in layer.uses if used != '*' and used not in names]
    done = set()

    def visit(name, path):
        if name in path:
            problems.append('cycle: ' + ' -> '.join(path[path.index(name):] + [name]))
        elif name not in done and name in names:
            for used in names[name].uses:
                visit(used, path + [name])
            done.add(name)

    for layer in layers:
        visit(layer.name, [])
    return problems


def upward(layers):
    """The table is written bottom up: a row may name only rows above it."""
    place = {layer.name: number for number, layer in enumerate(layers)}
    return [f'{layer.name} uses {used}, which stands below it in the table'
            for layer in layers for used in layer.uses if place.get(used, -1) >= place[layer.name]]


def resolve(root, path, quoted, name):
    """The file of this tree that an include names, relative to the root, or None."""
    folders = ([os.path.dirname(path)] if quoted else []) + INCLUDE_PATH
    for folder in folders:
        candidate = os.path.normpath(os.path.join(folder, name))
        if os.path.isfile(os.path.join(root, candidate)):
            return candidate
    return None


def check_includes(root, layers, files):
    """files: path -> text. Each include that the table does not allow."""
    problems = []
    for path, text in files.items():
        layer = owner(layers, path)
        if layer is None:
            problems.append(f'{path}: stands in no module of the table')
            continue
        for line, quoted, name in cscan.includes(text):
            where = f'{path}:{line}: {layer.name} may not include {name}'
            target = resolve(root, path, quoted, name)
            if target:
                used = owner(layers, target)
                if used is None or not layer.may_use(used.name):
                    problems.append(f'{where} ({used.name if used else "no module"})')
            elif OS_HEADER.match(name):
                if not layer.reaches_os:
                    problems.append(f'{where} (reaches the operating system)')
            elif name not in LIBC and name not in layer.external and '*' not in layer.external:
                problems.append(f'{where} (neither C11 nor in its external column)')
    return problems


def check_build(layers, builds):
    """builds: path of a module's meson.build -> text. Link dependencies keep to the table too."""
    names = {layer.name for layer in layers}
    problems = []
    for path, text in builds.items():
        layer = owner(layers, path)
        # A miniport is linked with the kernel services that its headers declare.
        linked = {'nt'} if layer and layer.name == 'softgpu' else set()
        # A folder of tiers names what its tiers need, once for all of them.
        tiers = [tier for tier in layers if layer and tier.path.startswith(layer.path + '/')]
        for used in sorted(set(MODULE_DEPENDENCY.findall(re.sub(r'#.*', '', text)))):
            allowed = used in linked or any(tier.may_use(used) for tier in [layer, *tiers] if tier)
            if layer and used in names and not allowed:
                problems.append(f'{path}: {layer.name} may not depend on {used}')
    return problems
