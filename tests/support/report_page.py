# SPDX-License-Identifier: MIT
"""What a page of `vidmm report` has in it: its elements, and its columns as numbers (tools/vidmm/column.h)."""
import base64
import html.parser
import json
import zlib


class Scripts(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.text, self.current = {}, None

    def handle_starttag(self, tag, attrs):
        self.current = dict(attrs).get('id') if tag == 'script' else None
        if self.current:
            self.text[self.current] = ''

    def handle_endtag(self, tag):
        self.current = None

    def handle_data(self, data):
        if self.current:
            self.text[self.current] += data


def numbers(text):
    values, value, shift = [], 0, 0
    for byte in zlib.decompress(base64.b64decode(text)):
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            values.append(value)
            value, shift = 0, 0
    assert shift == 0
    return values


def signed(value):
    return -(value + 1) // 2 if value % 2 else value // 2


def sums(differences):
    total, values = 0, []
    for difference in differences:
        total += difference
        values.append(total)
    return values


class Run:
    """The figures of a run as an attribute `figures`, its columns by name."""
    def __init__(self, page, number):
        parser = Scripts()
        parser.feed(page)
        self.figures = json.loads(parser.text[f'run{number}'])
        self.column = {name: numbers(parser.text[f'run{number}-{name}']) for name in self.figures['rows']}
        for name, rows in self.figures['rows'].items():
            assert len(self.column[name]) == rows, (name, rows)

    def sums(self, name):
        return sums(self.column[name])

    def signed_sums(self, name):
        return sums(signed(value) for value in self.column[name])
