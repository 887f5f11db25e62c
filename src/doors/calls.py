#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the doors' functions that calls.tsv describes. Errors in the table are reported with their line.

calls.py DOOR CALLS.TSV OPERATIONS.TSV OUT.C OUT.H: DOOR is kmt or umd

OUT.C contains the functions, and for umd the table of device callbacks; OUT.H the prototypes of the
steps and callbacks that are written by hand. calls.tsv explains its lines. The name, type and
direction of an argument, and the type, count and limit of each array in it, come from operations.tsv
(src/wire).
"""

import os
import re
import sys

COLUMNS = 100
LOCAL_BYTES = 256 # of a copy on the stack; a longer one is allocated
COPIES = ('copy', 'copy?', 'array', 'array?')
KEYS = ('quick', 'return?', 'request', 'local', *COPIES, 'set', 'do', 'do!', 'do?', 'end', 'out', 'out!', 'out?', 'event')
NULL = ('first', 'late', 'zero', 'always', 'before')
DOORS = ('kmt', 'umd')
PLAIN = re.compile(r'\w+')


class TableError(Exception):
    pass


class Call:
    """One block of calls.tsv: its functions by door, and its lines as (number, key, door or None, items, comment)."""

    def __init__(self, door_event, comment):
        self.event, self.comment, self.functions, self.lines = door_event, comment, {}, []

    def of(self, door, *keys):
        return [line for line in self.lines if line[1] in keys and line[2] in (None, door)]


class Union:
    """A union block: members of a request that depend on the first of its members, the type."""

    def __init__(self, name, structure, of, items, comment):
        self.name, self.structure, self.of, self.items, self.comment = name, structure, of, items, comment
        self.cases = []

    def write(self):
        found = [(member, re.sub(r'\$(\w)', r'info->\1', value)) for member, value in items_of(self.items)]
        lines = comment_lines(0, self.comment) + [f'static struct {self.structure} {self.name}(const {self.of} *info)', '{',
                                                  f'\tstruct {self.structure} request = {{']
        lines += [f'\t\t.{member} = {value},' for member, value in found] + ['\t};', '', f'\tswitch (request.{found[0][0]}) {{']
        for value, items in self.cases:
            lines.append(f'\tcase {value}:')
            for member, expression in items_of(items):
                lines += statement(2, f'request.{member} = {expression};'.replace('$', 'info->'))
            lines.append('\t\tbreak;')
        return lines + ['\tdefault:', '\t\tbreak;', '\t}', '\treturn request;', '}']


def width(line):
    return len(line.expandtabs(8))


def pieces(text):
    """Splits a text behind each comma and before each ? and : of its outermost parentheses."""
    found, depth, start, quoted = [], 0, 0, False
    for at, char in enumerate(text):
        quoted ^= char == '"' and text[at - 1] != '\\'
        if quoted:
            continue
        depth += (char in '({') - (char in ')}')
        if depth == 0 and (text.startswith(', ', at) or re.match(r' (?:\?|:|&&|\|\|) ', text[at:])):
            cut = at + 2 if char == ',' else at + 1
            found.append(text[start:cut])
            start = cut
    return found + [text[start:]]


def fill(parts, lead, first):
    """Lines of at most COLUMNS columns; `first` begins the first one and `lead` the others."""
    lines = [first]
    for part in parts:
        if lines[-1].strip() and width((lines[-1] + part).rstrip()) > COLUMNS:
            lines.append(lead)
        lines[-1] += part
    return [line.rstrip() for line in lines]


def statement(indent, text):
    """One statement as lines. A call is broken behind its commas, anything else at its operators."""
    tabs = '\t' * indent
    if width(tabs + text) <= COLUMNS:
        return [tabs + text]
    begin, call, arguments, last = re.fullmatch(r'((?:return |[^="(]*? = |[\w *]+ )?)((?:\w+\()?)(.*?)(\)?;?)', text, re.S).groups()
    assigned = begin if begin.endswith(' = ') else ''
    if call and len(pieces(arguments)) > 1:
        column, parts = width(tabs + begin + call), pieces(arguments + last)
        if all(column + len(part.rstrip()) <= COLUMNS for part in parts):
            lines = fill(parts, '\t' * (column // 8) + ' ' * (column % 8), tabs + begin + call)
            if not assigned or width(tabs + '\t' + call + arguments + last) > COLUMNS:
                return lines
            return [tabs + begin.rstrip(), tabs + '\t' + call + arguments + last]
        return [tabs + begin + call, *fill(parts, tabs + '\t', tabs + '\t')]
    return fill([begin] + pieces(call + arguments + last), tabs + '\t', tabs)


def comment_lines(indent, text):
    if not text:
        return []
    tabs = '\t' * indent
    if width(f'{tabs}/* {text} */') <= COLUMNS:
        return [f'{tabs}/* {text} */']
    words, lines = text.split(), [f'{tabs} *']
    for word in words:
        if width(f'{lines[-1]} {word}') > COLUMNS:
            lines.append(f'{tabs} *')
        lines[-1] += ' ' + word
    return [f'{tabs}/*', *lines, f'{tabs} */']


def items_of(items):
    """(member, expression) of each item MEMBER = EXPRESSION."""
    for item in items:
        member, equal, expression = item.partition(' = ')
        if not equal:
            raise TableError(f'"{item}": expected MEMBER = EXPRESSION')
        yield member, expression


def read_operations(path):
    """function or callback -> (argument type, direction, {member: (type, count, limit)}); and the unbuilt callbacks."""
    known, unbuilt, members = {}, [], None
    with open(path, encoding='utf-8') as lines:
        for fields in (line.rstrip('\n').split('\t') for line in lines if not line.startswith('#')):
            if fields[0] in ('operation', 'callback'):
                members = {}
                known[fields[2]] = (fields[3], fields[4], members)
            elif fields[0] == 'unbuilt':
                unbuilt.append((fields[2], fields[3]))
            elif fields[0] in ('record', 'runtime'):
                members = {}
            elif fields[0] == '' and len(fields) > 1 and fields[2].startswith('array:'):
                members.setdefault(fields[1], (fields[2][6:], fields[3], fields[4].rstrip('!')))
    return known, unbuilt


def read_line(call, number, fields, comment, known, seen):
    """Adds a line of a block to the call."""
    key, items = fields[0], fields[1:]
    if key in DOORS:
        if len(items) not in (2, 3) or key in call.functions:
            raise TableError(f'{key}: expected one line with a function, how it enters, and at most one more column')
        name, enter, more = (items + [''])[:3]
        if name not in known or name.startswith('pfn') != (key == 'umd'):
            raise TableError(f'{name} is not a function of operations.tsv for {key}')
        if name in seen:
            raise TableError(f'{name} has two blocks')
        if key == 'umd' and more and more not in NULL:
            raise TableError(f'{name}: unknown column "{more}": expected one of {", ".join(NULL)}')
        seen.add(name)
        call.functions[key] = (name, enter, more, number, comment)
        return
    door, dot, rest = key.partition('.')
    door, key = (door, rest) if dot else (None, key)
    if key not in KEYS or door not in (None, *DOORS) or not items:
        raise TableError(f'unknown or empty line: {fields[0]}')
    if key == 'event' and len(items) != 3 and items != ['failed']:
        raise TableError('event: expected the object, a count and flags, or failed')
    if key == 'quick' and (len(items) != 1 or any(line[1:3] == (key, door) for line in call.lines)):
        raise TableError('quick: expected one line for each door, with one expression')
    if key == 'return?' and len(items) != 2:
        raise TableError('return?: expected a condition and what is returned')
    call.lines.append((number, key, door, items, comment))


def read_calls(path, known):
    """The calls of calls.tsv, callback -> function of those that are written by hand, and the unions."""
    calls, by_hand, seen, comment = [], {}, set(), []
    with open(path, encoding='utf-8') as lines:
        for number, line in enumerate(lines, 1):
            line = line.rstrip('\n')
            fields = line.split('\t')
            try:
                if line.lstrip('\t').startswith('# '):
                    comment.append(line.strip()[2:])
                    continue
                text, comment = ' '.join(comment), []
                if not line or line.startswith('#'):
                    continue
                if fields[0] == 'union' and len(fields) > 4:
                    calls.append(Union(*fields[1:4], fields[4:], text))
                elif fields[0] == '' and calls and isinstance(calls[-1], Union) and len(fields) > 2:
                    list(items_of(fields[2:]))
                    calls[-1].cases.append((fields[1], fields[2:]))
                elif fields[0] == 'call' and len(fields) == 2:
                    calls.append(Call(fields[1], text))
                elif fields[0] == 'hand' and len(fields) == 3:
                    if fields[1] not in known or fields[1] in seen:
                        raise TableError(f'{fields[1]} is not a callback of operations.tsv, or has two lines')
                    seen.add(fields[1])
                    by_hand[fields[1]] = fields[2]
                elif fields[0] == '' and calls and len(fields) > 1 and isinstance(calls[-1], Call):
                    read_line(calls[-1], number, fields[1:], text, known, seen)
                else:
                    raise TableError('unknown line, or wrong number of columns')
            except TableError as bad:
                sys.exit(f'{path}:{number}: {bad}')
    return [call for call in calls if isinstance(call, Call)], by_hand, [call for call in calls if isinstance(call, Union)]


def header(begin, name, parameters):
    """The first lines of a function."""
    one = f'{begin} {name}({parameters})'
    if width(one) <= COLUMNS:
        return [one]
    return [begin, f'{name}({parameters})'] if width(f'{name}({parameters})') <= COLUMNS else [f'{begin} {name}(', f'\t{parameters})']


class Writer:
    """Writes the function of one door for one call."""

    def __init__(self, door, call, known):
        self.door, self.call = door, call
        self.name, self.enter, self.more, self.number, self.comment = call.functions[door]
        self.type, self.direction, self.arrays = known[self.name]
        self.kind, _, self.handle = self.enter.partition(' ')
        self.inline = '_inline' if '~' in self.kind else ''
        self.cleaning = 'true' if '!' in self.kind else 'false'
        self.kind = self.kind.rstrip('~!')
        self.null = self.more or 'first'
        self.event_door = f'VIDMM_DOOR_{call.event}'
        self.requests = call.of(door, 'request')
        self.structure = self.requests[0][3][0].split(' = ')[0] if self.requests else None
        self.copies = [member.split('.')[-1] for line in call.of(door, *COPIES) for member, _ in items_of(line[3])]
        self.steps, self.prototypes = [], {}

    def expression(self, text):
        """$A.B: a member of the argument; @a: one of the request; number() and handle() convert a HANDLE that is a number."""
        kmt = self.door == 'kmt'
        text = re.sub(r'\bnumber\(([^()]*)\)', r'\1' if kmt else r'vmm_umd_number(\1)', text)
        text = re.sub(r'\bhandle\(([^()]*)\)', r'\1' if kmt else r'(HANDLE)(uintptr_t)\1', text)
        text = re.sub(r'\$(\w)', r'args.\1', text)
        if re.search(r'@\w', text) and not self.structure:
            raise TableError(f'"{text}": there is no request')
        return re.sub(r'@(\w)', r'request.\1', text)

    def subject(self):
        if self.kind == 'context':
            return 'context'
        return 'call.process' if self.kind in ('process', 'adapter') else 'call.device'

    def step(self, text):
        """The expression of a do line. A name alone is called with what the call has; vmm_kmt_ and vmm_umd_ are written by hand."""
        if not PLAIN.fullmatch(text):
            return self.expression(text)
        text = self.expression(text)
        if not text.startswith(f'vmm_{self.door}_'):
            return f'{text}({self.subject()}{", &request" if self.structure else ""})'
        given = [('&call', 'struct vmm_door_call *call')]
        if self.kind == 'context':
            given.append(('context', 'struct vmm_context *context'))
        if self.kind == 'adapter':
            given.append(('adapter', 'struct vmm_adapter *adapter'))
        given.append(('&args', f'const {self.type} *args'))
        if self.structure:
            given.append(('&request', f'struct {self.structure} *request'))
        self.prototypes[text] = ', '.join(declared for _, declared in given)
        return f'{text}({", ".join(value for value, _ in given)})'

    def head(self, in_full=False):
        constant = 'const ' if self.direction != 'inout' else ''
        if self.door == 'kmt':
            begin = 'VMM_NOINLINE static NTSTATUS' if in_full else 'KMT_API NTSTATUS APIENTRY'
            return header(begin, self.name + '_in_full' * in_full, f'{constant}{self.type} *pData')
        begin = 'VMM_NOINLINE static HRESULT' if in_full else 'static HRESULT APIENTRY'
        return header(begin, self.symbol() + '_in_full' * in_full, f'HANDLE device, {constant}{self.type} *data')

    def symbol(self):
        return self.name if self.door == 'kmt' else re.sub(r'([a-z0-9])([A-Z])', r'\1_\2', self.name[3:-2]).lower()

    def leave(self, status, event):
        if event == ['failed']:
            return f'return vmm_kmt_leave_query(&call, {status});'
        door = 'door' if self.door == 'kmt' and self.inline else self.door
        return f'return vmm_{door}_leave{self.inline}(&call, {status}, {", ".join(event)});'

    def declarations(self):
        lines = ['\tstruct vmm_door_call call;']
        if self.kind == 'context':
            lines.append('\tstruct vmm_context *context = NULL;')
        if self.kind == 'adapter':
            lines.append('\tstruct vmm_adapter *adapter;')
        for member in self.copies:
            lines += [f'\tvoid *{member} = NULL;', f'\tuint64_t local_{member}[{LOCAL_BYTES // 8}];']
        return lines

    def quick(self):
        """Of a call with a quick line: its function, which calls the one that makes the call step by step."""
        umd = self.door == 'umd'
        lines = []
        for line in self.call.of(self.door, 'quick'):
            lines += ['', *self.head(), '{', *statement(1, f'if (vmm_likely({line[3][0]}))'),
                      f'\t\treturn {"S_OK" if umd else "STATUS_SUCCESS"};',
                      *statement(1, f'return {self.symbol()}_in_full({"device, data" if umd else "pData"});'), '}']
        return lines

    def given(self):
        """What follows the copy of the argument: calls that end at once, variables, the request."""
        lines = []
        for line in self.call.of(self.door, 'return?'):
            condition, value = line[3]
            lines += comment_lines(1, line[4]) + [f'\tif ({self.expression(condition)})']
            lines += statement(2, f'return {self.expression(value)};')
        for line in self.call.of(self.door, 'local'):
            for item in line[3]:
                lines += statement(1, f'{self.expression(item)};')
        return lines + self.request()

    def entering(self):
        """The expression that enters."""
        door, handle = self.event_door, self.expression(self.handle)
        if self.enter.startswith('= '):
            return self.expression(self.enter[2:])
        if self.door == 'umd':
            if self.kind == 'device':
                return f'vmm_umd_enter{self.inline}(&call, device, {door}, {self.cleaning})'
            if self.kind == 'context':
                handle = handle if self.null == 'before' else 'handle'
                return f'vmm_umd_enter_context(&call, device, {handle}, {door}, &context)'
            raise TableError(f'{self.name}: unknown "{self.enter}": expected device or context MEMBER')
        if self.kind == 'process':
            return f'vmm_kmt_begin(&call, {door})'
        if self.kind in ('adapter', 'context'):
            return f'vmm_kmt_enter_{self.kind}(&call, {handle}, {door}, &{self.kind})'
        if self.kind == 'device':
            return f'vmm_kmt_enter_device{self.inline}(&call, {handle}, {door}, {self.cleaning})'
        found = {'queue': 'vmm_paging_queue_device', 'hw_context': 'vmm_hw_device_of_context',
                 'hw_queue': 'vmm_hw_device_of_queue'}
        if self.kind not in found:
            raise TableError(f'{self.name}: unknown "{self.enter}"')
        return f'vmm_kmt_enter_object(&call, {handle}, {door}, {found[self.kind]}, {self.cleaning})'

    def request(self):
        if not self.structure:
            return []
        lines, items = [], []
        for number, line in enumerate(self.requests):
            first, rest = line[3][0], line[3][1:]
            if number == 0 and ' = ' in first:
                return statement(1, f'struct {self.structure} request = {self.expression(first.split(" = ", 1)[1])};')
            if number and first != '+':
                raise TableError('a further request line begins with +')
            items += items_of(rest)
        lines.append(f'\tstruct {self.structure} request = {{')
        if not items:
            return [f'\tstruct {self.structure} request = {{0}};']
        for member, expression in items:
            lines += statement(2, f'.{member} = {self.expression(expression)},')
        return lines + ['\t};']

    def begin(self):
        """From the NULL check to the request; whether the status is known to be a success then."""
        umd, enter, door = self.door == 'umd', self.entering(), self.event_door
        copy = f'\t{self.type} args = *{"data" if umd else "pData"};'
        if not umd:
            other = self.more if self.more and self.more.startswith('STATUS_') else None
            rules = f' ({self.more})' if self.more and not other else ''
            name = f'"{self.name}{rules}"'
            refusal = (f'vmm_kmt_refuse_as({door}, {other}, {name}, "the argument pointer is NULL")' if other else
                       f'vmm_kmt_no_argument({door}, {name})')
            return ['\tif (!pData)', *statement(2, f'return {refusal};'),
                    copy, *self.given(), *statement(1, f'NTSTATUS status = {enter};')], False
        refusal = f'vmm_umd_no_argument(&call, %s, "{self.name}")'
        lines = statement(1, f'NTSTATUS status = {enter};')
        if self.kind == 'context' and self.null != 'before':
            handle = self.handle.replace('$', 'data->')
            return [f'\tHANDLE handle = data ? {handle} : NULL;', *lines, '', '\tif (!call.device || !data)',
                    *statement(2, self.leave(refusal % 'status', '000')), copy, *self.given()], False
        if self.null == 'before':
            return ['\tif (!data)', *statement(2, self.leave(refusal % f'vmm_umd_enter(&call, device, {self.event_door}, false)', '000')), copy, *self.given(), *lines], False
        if self.null == 'always':
            return [*lines, '', '\tif (!data)', *statement(2, self.leave(refusal % 'status', '000')), copy, *self.given()], False
        wrong = ['\tif (NT_SUCCESS(status) && !data)', *statement(2, f'status = {refusal % "status"};')]
        if self.null == 'first':
            return [*lines, '', *wrong, '\tif (!NT_SUCCESS(status))', f'\t\t{self.leave("status", "000")}', copy, *self.given()], True
        zero = statement(1, f'const {self.type} args = data ? *data : ({self.type}){{0}};')
        return [*lines, *zero, '', *(wrong if self.null == 'late' else []), *self.given()], False

    def copied(self, key, name, array):
        """The call that copies an array of the argument."""
        array, _, elements = array.rstrip(']').partition('[')
        if array not in self.arrays:
            raise TableError(f'{array} is not an array of {self.name} in operations.tsv')
        of, count, limit = self.arrays[array]
        if not elements and (not PLAIN.fullmatch(count) or count.isdigit()):
            raise TableError(f'{array}: its count in operations.tsv is not a member')
        count = self.expression(elements) if elements else f'args.{count}'
        function = 'vmm_door_copy_given' if key.endswith('?') else 'vmm_door_copy_in'
        copy = f'{function}(args.{array}, {count}, {limit}, sizeof({of}), local_{name}, sizeof(local_{name}), &{name})'
        return f'vmm_door_copied(&call, {copy}, "{self.name}: {array}", {count})'

    def work(self, known_success):
        """The copies and steps, in the order of the table."""
        lines = []
        for number, key, _, items, comment in self.call.of(self.door, *COPIES, 'set', 'do', 'do!', 'do?'):
            try:
                if key == 'set':
                    lines += [f'\trequest.{member} = {self.expression(value)};' for member, value in items_of(items)]
                    continue
                if key in COPIES:
                    found = [(self.copied(key, member.split('.')[-1], array), member) for member, array in items_of(items)]
                else:
                    found = [(self.step(item), None) for item in (items[1:] if key == 'do?' else items)]
            except TableError as bad:
                raise TableError(f'line {number}: {bad}') from bad
            lines += comment_lines(1, comment)
            for text, member in found:
                guard = items[0] if key == 'do?' else None if known_success or key == 'do!' else 'NT_SUCCESS(status)'
                lines += [f'\tif ({self.expression(guard)})'] if guard else []
                lines += statement(2 if guard else 1, f'status = {text};')
                if member and key.startswith('copy'):
                    lines.append(f'\trequest.{member} = {member.split(".")[-1]};')
                known_success = False
        return lines

    def end(self):
        lines = []
        for member in self.copies:
            lines.append(f'\tvmm_door_copy_done({member}, local_{member});')
        for line in self.call.of(self.door, 'end'):
            lines += comment_lines(1, line[4])
            for item in line[3]:
                guard = re.fullmatch(r'(if \(\w+(?:\.\w+)*\)) (.*)', item)
                lines += [f'\t{guard[1]}'] if guard else []
                lines += statement(2 if guard else 1, self.expression(guard[2] if guard else item) + ';')
        if self.kind == 'adapter':
            lines.append('\tvmm_adapter_put(adapter);')
        return lines

    def output(self, data, item):
        """The statement of an item M = E, or of one without =, in which % is the argument."""
        if ' = ' not in item:
            return item.replace('%', data) + ';'
        [(member, value)] = items_of([item])
        return f'{data}->{member} = {self.expression(value)};'

    def outputs(self):
        data = 'data' if self.door == 'umd' else 'pData'
        if self.direction == 'const-inout':
            data = f'(({self.type} *)(uintptr_t){data})'
        groups = []
        for _, key, _, items, comment in self.call.of(self.door, 'out', 'out!', 'out?'):
            condition = {'out': 'NT_SUCCESS(status)', 'out!': None}.get(key, items[0])
            if self.direction == 'in':
                raise TableError(f'{self.name}: the argument is written, but operations.tsv has it as "in"')
            written = [self.output(data, item) for item in (items[1:] if key == 'out?' else items)]
            if not groups or groups[-1][0] != condition or comment:
                groups.append((condition, comment, []))
            groups[-1][2].extend(written)
        lines = []
        for condition, comment, written in groups:
            lines += comment_lines(1, comment)
            body = [statement(2 if condition else 1, one) for one in written]
            braces = condition and len(body) > 1
            if condition:
                lines.append(f'\tif ({self.expression(condition)})' + (' {' if braces else ''))
            lines += [line for part in body for line in part] + (['\t}'] if braces else [])
        return lines

    def write(self):
        events = self.call.of(self.door, 'event')
        if len(events) != 1:
            raise TableError(f'{self.name}: expected one event line')
        begun, known_success = self.begin()
        quick = self.quick()
        lines = comment_lines(0, self.call.comment or self.comment) + self.head(bool(quick)) + ['{'] + self.declarations()
        lines += ([''] if self.door == 'kmt' or self.null == 'before' else []) + begun
        lines += self.work(known_success) + self.end() + self.outputs()
        lines += statement(1, self.leave('status', [self.expression(item) for item in events[0][3]])) + ['}']
        return lines + quick


def umd_table(calls, by_hand, unbuilt):
    """The callbacks that are not built, and the table of all callbacks."""
    lines = ['/* ---- callbacks that are not built ---- */', '']
    for name, of in unbuilt:
        lines += header('static HRESULT APIENTRY', f'unbuilt_{name}', f'HANDLE device, {of}{"" if of.endswith("*") else " "}value')
        lines += ['{', '\t(void)value;', f'\treturn vmm_umd_not_built(device, "{name}");', '}', '']
    lines += ['const D3DDDI_DEVICECALLBACKS *vmm_umd_callbacks(void)', '{', '\tstatic const D3DDDI_DEVICECALLBACKS table = {']
    entries = [(call.functions['umd'][0], Writer('umd', call, KNOWN).symbol()) for call in calls if 'umd' in call.functions]
    entries += list(by_hand.items()) + [(name, f'unbuilt_{name}') for name, _ in unbuilt]
    for name, symbol in entries:
        lines += statement(2, f'.{name} = {symbol},')
    return lines + ['\t};', '', '\treturn &table;', '}']


KNOWN = {}


def prototypes(door, found, by_hand):
    lines = [f'#ifndef VMM_DOORS_{door.upper()}_CALLS_H', f'#define VMM_DOORS_{door.upper()}_CALLS_H', '',
             f'#include "doors/{door}/{door}_private.h"', '']
    for name, parameters in sorted(found.items()):
        lines += statement(0, f'NTSTATUS {name}({parameters});')
    for name, symbol in by_hand.items() if door == 'umd' else ():
        type_name, direction, _ = KNOWN[name]
        lines += statement(0, f'HRESULT APIENTRY {symbol}(HANDLE device, {"const " if direction != "inout" else ""}{type_name} *data);')
    return lines + ['', '#endif']


def main():
    door, table, operations, source, header = sys.argv[1:]
    known, unbuilt = read_operations(operations)
    KNOWN.update(known)
    calls, by_hand, unions = read_calls(table, known)
    lines, steps = [line for union in unions for line in union.write() + ['']], {}
    for call in calls:
        if door not in call.functions:
            continue
        writer = Writer(door, call, known)
        try:
            lines += writer.write() + ['']
            for name, parameters in writer.prototypes.items():
                if steps.setdefault(name, parameters) != parameters:
                    raise TableError(f'{name} is called with {parameters}, and elsewhere with {steps[name]}')
        except TableError as bad:
            sys.exit(f'{table}:{writer.number}: {bad}')
    if door == 'umd':
        missing = [name for name in known if name.startswith('pfn') and name not in by_hand
                   and not any(call.functions.get('umd', ('',))[0] == name for call in calls)]
        if missing:
            sys.exit(f'{table}: no line for {", ".join(missing)}')
        lines += umd_table(calls, by_hand, unbuilt)
    made = f'Made by src/doors/{os.path.basename(__file__)} from src/doors/calls.tsv and src/wire/operations.tsv.'
    with open(header, 'w', encoding='utf-8') as out:
        out.write(f'/* SPDX-License-Identifier: MIT */\n/* {made} */\n' + '\n'.join(prototypes(door, steps, by_hand)) + '\n')
    with open(source, 'w', encoding='utf-8') as out:
        out.write(f'/* SPDX-License-Identifier: MIT */\n/* {made} */\n#include "{door}_calls.h"\n\n#include <string.h>\n\n'
                  + '\n'.join(lines).rstrip() + '\n')


if __name__ == '__main__':
    main()
