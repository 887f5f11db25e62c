#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""embed.py OUT.c OUT.h {NAME= FILE...}...: writes text files as C strings, those of one name together. A script must not end
the element <script> of the page that it is put into."""
import os
import sys


def read(paths):
    text = ''
    for path in paths:
        with open(path, encoding='utf-8') as file:
            text += file.read()
        if path.endswith('.js') and '</script' in text.lower():
            sys.exit(f'{path}: contains "</script"')
    return text.encode('utf-8')


def array(name, data):
    lines = [', '.join(str(byte if byte < 128 else byte - 256) for byte in data[i:i + 32]) for i in range(0, len(data), 32)]
    return f'const char {name}[] = {{\n' + ',\n'.join(lines) + ',\n0};\n'


def main():
    source, header, *parts = sys.argv[1:]
    files = {}
    for part in parts:
        if part.endswith('='):
            name = files.setdefault(part[:-1], [])
        else:
            name.append(part)
    texts = [(name, read(paths)) for name, paths in files.items()]
    guard = os.path.basename(header).upper().replace('.', '_')
    with open(header, 'w', encoding='utf-8') as out:
        out.write(f'#ifndef {guard}\n#define {guard}\n')
        out.writelines(f'extern const char {name}[{len(data) + 1}];\n' for name, data in texts)
        out.write('#endif\n')
    with open(source, 'w', encoding='utf-8') as out:
        out.write(f'#include "{os.path.basename(header)}"\n')
        out.writelines(array(name, data) for name, data in texts)


if __name__ == '__main__':
    main()
