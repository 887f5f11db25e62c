# SPDX-License-Identifier: MIT
"""Finds statements that the macros for __try cannot execute as the compiler on Windows does.

__try is a loop here, so `break` and `continue` that would leave it reach that loop instead, and
nothing can run a __finally block when `return` or `goto` leaves the block before it. Such a source
is refused, with the line.
"""

import re

TOKEN = re.compile(r'''
    //[^\n]* | /\*.*?\*/ | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' |
    \n[ \t]*\#(?:[^\n\\]|\\.|\\\n)* | [A-Za-z_]\w* | [{}();] | \n | .
''', re.VERBOSE | re.DOTALL)
CATCHES = {'for': ('break', 'continue'), 'while': ('break', 'continue'), 'do': ('break', 'continue'),
           'switch': ('break',)}


BRANCH = re.compile(r'\n[ \t]*\#[ \t]*(if|ifdef|ifndef|elif|else|endif)\b')


def tokens(text):
    """(line, token). Of the branches of an #if the first one counts: its braces have partners."""
    line, hidden = 1, []
    for match in TOKEN.finditer(text):
        token = match.group()
        branch = BRANCH.match(token)
        if branch:
            word = branch.group(1)
            if word.startswith('if'):
                hidden.append(False)
            elif hidden and word == 'endif':
                hidden.pop()
            elif hidden:
                hidden[-1] = True
        elif (token[0].isalpha() or token[0] in '_{}();') and not any(hidden):
            yield line, token
        line += token.count('\n')


class Block:
    def __init__(self, kind, line, depth):
        self.kind, self.line, self.depth = kind, line, depth
        self.bare = False  # a loop or switch without braces
        self.jumps = []  # (line, word) of return and goto, for a __finally that may follow


def skip_parentheses(stream, index):
    """The index behind the parentheses that begin at INDEX, or INDEX."""
    depth = 0
    while index < len(stream):
        depth += {'(': 1, ')': -1}.get(stream[index][1], 0)
        if depth == 0:
            return index + 1 if stream[index][1] == ')' else index
        index += 1
    return index


class Checker:
    def __init__(self, text):
        self.stream = list(tokens(text))
        self.blocks = []  # open __try, __except, __finally blocks, loops and switches
        self.depth = 0
        self.closed = None  # the __try block that ended just before
        self.faults = []

    def fault(self, line, text):
        self.faults.append((line, text))

    def leaves_try(self, word):
        """The block of an exception statement that WORD would leave, or None."""
        for block in reversed(self.blocks):
            if word in CATCHES.get(block.kind, ()):
                return None
            if block.kind.startswith('__'):
                return block
        return None

    def word(self, line, token):
        if token in ('break', 'continue'):
            block = self.leaves_try(token)
            if block:
                self.fault(line, '%s leaves the %s block of line %d: use goto, or __leave'
                           % (token, block.kind, block.line))
        elif token in ('return', 'goto'):
            for block in self.blocks:
                block.jumps.append((line, token))
        elif token == '__leave':
            block = next((b for b in reversed(self.blocks) if b.kind.startswith('__')), None)
            if block and block.kind != '__try':
                self.fault(line, '__leave in the %s block of line %d does not leave a __try block'
                           % (block.kind, block.line))
        elif token == '__finally' and self.closed:
            for jump_line, jump in self.closed.jumps:
                self.fault(jump_line, '%s leaves the __try block of line %d without its __finally '
                           'block: use __leave' % (jump, self.closed.line))

    def close(self, following):
        self.depth -= 1
        self.closed = None
        if following == 'else' and self.blocks and self.blocks[-1].kind in CATCHES and self.blocks[-1].bare:
            return  # a loop without braces goes on in the other branch
        while self.blocks and self.blocks[-1].depth > self.depth:
            block = self.blocks.pop()
            if block.kind == '__try' and block.depth == self.depth + 1:
                self.closed = block

    def run(self):
        index = 0
        while index < len(self.stream):
            line, token = self.stream[index]
            index += 1
            if token == '{':
                self.depth += 1
            elif token == '}':
                self.close(self.stream[index][1] if index < len(self.stream) else '')
            elif token == ';':
                # The end of a loop without braces.
                while self.blocks and self.blocks[-1].depth > self.depth:
                    self.blocks.pop()
            elif token in CATCHES or token in ('__try', '__except', '__finally'):
                self.word(line, token)
                if token not in ('do', '__try', '__finally'):
                    index = skip_parentheses(self.stream, index)
                if token == 'while' and index < len(self.stream) and self.stream[index][1] == ';':
                    continue  # the end of do ... while
                self.blocks.append(Block(token, line, self.depth + 1))
                self.blocks[-1].bare = index < len(self.stream) and self.stream[index][1] != '{'
            else:
                self.word(line, token)
        return self.faults


def faults(text):
    """(line, message) of each statement that cannot be executed as on Windows."""
    return Checker(text).run() if '__try' in text else []
