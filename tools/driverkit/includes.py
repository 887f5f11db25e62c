# SPDX-License-Identifier: MIT
"""Includes that name a file in the way of Windows: another case, or backslashes.

The scan follows the #include lines of a driver's sources. For each spelling that no file has, but
that names a file when case and kind of slash are ignored, the folder of forwarding headers gets a
file with exactly that spelling, backslashes included. gcc finds it there. clang takes a backslash
for a slash, so it gets a file system overlay in which each such path is the file that is meant.
"""

import json
import os
import re

OVERLAY = 'overlay.yaml'
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(["<])([^">\n]+)[">]', re.MULTILINE)


class Conflict(Exception):
    """One spelling names two different files."""


def read_text(path):
    """A source's text; drivers' sources may be UTF-16 or have single bytes of old code pages."""
    with open(path, 'rb') as file:
        data = file.read()
    if data[:2] in (b'\xff\xfe', b'\xfe\xff'):
        return data.decode('utf-16')
    return data.decode('utf-8', 'surrogateescape')


class Folders:
    """Finds files in folders without regard to case."""

    def __init__(self):
        self.listings = {}

    def names(self, folder):
        if folder not in self.listings:
            try:
                entries = os.listdir(folder)
            except OSError:
                entries = []
            self.listings[folder] = {entry.lower(): entry for entry in sorted(entries)}
        return self.listings[folder]

    def find(self, folder, name):
        """The file that NAME means in FOLDER, or None."""
        path = folder
        for part in name.replace('\\', '/').split('/'):
            if part in ('', '.'):
                continue
            if part == '..':
                path = os.path.join(path, part)
                continue
            exact = self.names(path).get(part.lower())
            if exact is None:
                return None
            # A name in the right case is taken as it is, if another one differs by case only.
            path = os.path.join(path, part if os.path.exists(os.path.join(path, part)) else exact)
        return os.path.normpath(path) if os.path.isfile(path) else None


class Scan:
    """The files that the sources include, and the spellings that need a forwarding header."""

    def __init__(self, has_overlay, include_folders):
        self.has_overlay = has_overlay  # of the compiler: each path may be another file
        self.folders = Folders()
        self.include_folders = include_folders
        self.files = []  # every file that was read, in order
        self.texts = {}
        self.forwards = {}  # spelling -> file
        self.aliases = {}  # path that no file has -> the file that is meant
        self.missing = {}  # spelling -> the first file that includes it

    def add(self, source):
        pending = [os.path.abspath(source)]
        while pending:
            path = pending.pop()
            if path in self.texts:
                continue
            self.texts[path] = read_text(path)
            self.files.append(path)
            for kind, name in INCLUDE.findall(self.texts[path]):
                found = self.resolve(path, kind, name)
                if found:
                    pending.append(found)

    def resolve(self, path, kind, name):
        own = [os.path.dirname(path)] if kind == '"' else []
        for folder in own + self.include_folders:
            if os.path.isfile(os.path.join(folder, name)):
                return os.path.abspath(os.path.join(folder, name))
        for folder in own + self.include_folders:
            found = self.folders.find(folder, name)
            if not found:
                continue
            self.aliases[os.path.normpath(os.path.join(folder, name.replace('\\', '/')))] = found
            if self.forwards.setdefault(name, found) != found and not self.has_overlay:
                raise Conflict('#include of %s means %s and %s' % (name, self.forwards[name], found))
            return os.path.abspath(found)
        self.missing.setdefault(name, path)
        return None


def all_aliases(scan):
    """The aliases, and those of files that an aliased file includes beside itself."""
    aliases, pending = dict(scan.aliases), list(scan.aliases.items())
    while pending:
        path, target = pending.pop()
        for kind, name in INCLUDE.findall(scan.texts[os.path.abspath(target)]):
            found = scan.resolve(os.path.abspath(target), kind, name) if kind == '"' else None
            beside = os.path.normpath(os.path.join(os.path.dirname(path), name.replace('\\', '/')))
            if found and beside not in aliases and not os.path.exists(beside):
                aliases[beside] = found
                pending.append((beside, found))
    return aliases


def write_overlay(scan, folder):
    roots = {}
    for path, target in all_aliases(scan).items():
        entry = {'type': 'file', 'name': os.path.basename(path), 'external-contents': os.path.abspath(target)}
        roots.setdefault(os.path.dirname(path), []).append(entry)
    tree = {'version': 0, 'case-sensitive': True, 'use-external-names': True,
            'roots': [{'type': 'directory', 'name': name, 'contents': contents} for name, contents in roots.items()]}
    with open(os.path.join(folder, OVERLAY), 'w', encoding='utf-8') as file:
        json.dump(tree, file)


def write_forwards(scan, folder):
    write_overlay(scan, folder)
    for name, target in scan.forwards.items():
        # A backslash is a character of the name here; a slash makes a folder.
        path = os.path.join(folder, name)
        if os.path.isabs(name) or os.path.normpath(path) == os.path.normpath(folder) or not (
                os.path.normpath(path) + os.sep).startswith(os.path.normpath(folder) + os.sep):
            continue  # would be outside the folder; with gcc the include fails
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8', errors='surrogateescape') as file:
            file.write('#include "%s"\n' % target)
