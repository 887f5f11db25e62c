# SPDX-License-Identifier: MIT
"""Which names the headers define: types and enumerators from the preprocessed text, macros from the compiler."""

import re

from tap import WDDM, run

COMMENT = re.compile(r'/\*.*?\*/|//[^\n]*', re.S)
CLOSED = re.compile(r'\}\s*(?:__attribute__\s*\(\(.*?\)\)\s*)?(\w+)\s*((?:,\s*\*?\s*\w+\s*)*);')
SIMPLE = re.compile(r'\btypedef\b[^;{}()]*?\b(\w+)\s*;')
TAG = re.compile(r'\bstruct\s+(\w+__)\s*\{')
ENUM = re.compile(r'\benum\b\s*\w*\s*\{([^}]*)\}')
ENUMERATOR = re.compile(r'(?:^|,)\s*(\w+)')
MACRO = re.compile(r'^#define (\w+) (\S.*)$', re.M)
HEADERS = ''.join(f'#include <{name}>\n' for name in ('d3dkmthk.h', 'd3dumddi.h', 'dispmprt.h'))


class Declared:
    """types, constants: sets of names. A typedef of a name that is never completed still counts as a type."""

    def __init__(self, compiler, flags=()):
        command = [*compiler, '-std=c11', '-x', 'c', '-I' + WDDM, *flags, '-E', '-']
        status, text, errors = run([*command[:-2], '-P', *command[-2:]], HEADERS)
        if status:
            raise RuntimeError(errors)
        text = COMMENT.sub(' ', text)
        self.types = set(SIMPLE.findall(text)) | set(TAG.findall(text))
        for name, _ in CLOSED.findall(text):
            self.types.add(name)
        self.constants = {name for body in ENUM.findall(text)
                          for name in ENUMERATOR.findall(body)}
        status, text, errors = run([*command[:-2], '-dM', *command[-2:]], HEADERS)
        if status:
            raise RuntimeError(errors)
        self.constants |= {name for name, _ in MACRO.findall(text)}
