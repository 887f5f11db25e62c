# SPDX-License-Identifier: MIT
"""A small C scanner: code without comments and literals, includes, and the extent of each function.

It works on characters and braces, not on a grammar, so it needs no compiler and no include path. Line
numbers survive every step because blanked text keeps its newlines.
"""

import re

TOKEN = re.compile(
    r'//(?:[^\\\n]|\\.|\\\n)*'            # line comment, may be continued
    r'|/\*.*?\*/'
    r'|"(?:[^"\\\n]|\\.|\\\n)*"'
    r"|'(?:[^'\\\n]|\\.|\\\n)*'",
    re.S)
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"\n]+)[>"]', re.M)
DIRECTIVE = re.compile(r'^[ \t]*#[ \t]*(\w*)')
# The last parenthesis of a function's declaration; attribute macros without arguments may follow.
DECLARATOR_END = re.compile(r'\)(?:\s+[A-Z][A-Z0-9_]*)*\s*$')
ATTRIBUTE = re.compile(r'__attribute__\s*\(\(.*?\)\)', re.S)


def blank(text):
    """The same number of lines, nothing else."""
    return '\n' * text.count('\n')


def split_comments(source):
    """(code, comments): each with the other blanked; literals in code become empty ones."""
    code, comments, at = [], [], 0
    for match in TOKEN.finditer(source):
        code.append(source[at:match.start()])
        comments.append(blank(source[at:match.start()]))
        token = match[0]
        if token[0] == '/':
            code.append(' ' + blank(token))
            comments.append(token)
        else:
            code.append(token[0] * 2 + blank(token))
            comments.append(blank(token))
        at = match.end()
    code.append(source[at:])
    return ''.join(code), ''.join(comments)


def includes(source):
    """(line, quoted?, name) of each include; those inside comments do not count."""
    code = TOKEN.sub(lambda m: blank(m[0]) if m[0][0] == '/' else m[0], source)
    return [(code.count('\n', 0, match.start()) + 1, match[1] == '"', match[2])
            for match in INCLUDE.finditer(code)]


def without_directives(code):
    """Preprocessor lines blanked; of #if/#else only the first branch stays, so that braces balance."""
    kept, depth, dead_from, continued = [], 0, None, False
    for line in code.split('\n'):
        directive = None if continued else DIRECTIVE.match(line)
        if directive or continued:
            if directive and directive[1] in ('if', 'ifdef', 'ifndef'):
                depth += 1
            elif directive and directive[1] in ('else', 'elif') and dead_from is None:
                dead_from = depth
            elif directive and directive[1] == 'endif':
                if dead_from == depth:
                    dead_from = None
                depth -= 1
            kept.append('')
            continued = line.endswith('\\')
        else:
            kept.append('' if dead_from is not None else line)
    return '\n'.join(kept)


def statements(code):
    """(head, offset, body, end) of each statement at file level, of code without comments and directives.

    head: the text before its semicolon or first brace, from `offset` on. body: the text between the braces, or
    None. end: the offset of the semicolon or of the last brace.
    """
    depth, start, opened, transparent = 0, 0, None, 0
    for match in re.finditer(r'[{};]', code):
        at, token = match.start(), match[0]
        if token == '{':
            if depth == 0:
                if re.search(r'\bextern\s+""\s*$', code[start:at]):
                    transparent += 1
                    start = at + 1
                    continue
                opened = at
            depth += 1
        elif token == '}':
            if depth == 0:
                transparent -= 1
                start = at + 1
                continue
            depth -= 1
            if depth == 0:
                yield code[start:opened], start, code[opened + 1:at], at
                start = at + 1
        elif depth == 0:
            yield code[start:at], start, None, at
            start = at + 1


def functions(source):
    """(name, first line, lines) of each function definition, from the line of its name to its last brace."""
    code = without_directives(split_comments(source)[0])
    found = []
    for head, offset, body, end in statements(code):
        named = function_name(head, offset) if body is not None else None
        if named:
            first = code.count('\n', 0, named[1]) + 1
            found.append((named[0], first, code.count('\n', 0, end) + 2 - first))
    return found


def function_name(head, offset):
    """(name, position) if the text before a brace or a semicolon at file level declares a function, else None."""
    head = ATTRIBUTE.sub(lambda m: ' ' * len(m[0]), head)
    depth = 0
    for character in head:
        depth += (character == '(') - (character == ')')
        if character == '=' and depth == 0:
            return None
    if not DECLARATOR_END.search(head):
        return None
    skipped = macro_lines(head)
    head, offset = head[skipped:], offset + skipped
    # Of `int (*name(void))(void)` the name is what stands before the first parenthesis that holds no pointer.
    for match in re.finditer(r'\b([A-Za-z_]\w*)\s*\((?!\s*\*)', head):
        return match[1], offset + match.start(1)
    return None


def macro_lines(head):
    """How far `head` consists of calls of macros that need no semicolon and have more text behind them."""
    at = 0
    while True:
        match = re.match(r'\s*[A-Z][A-Z0-9_]*\s*\(', head[at:])
        if not match:
            return at
        end, depth = at + match.end(), 1
        while end < len(head) and depth:
            depth += (head[end] == '(') - (head[end] == ')')
            end += 1
        if not head[end:].strip():
            return at
        at = end
