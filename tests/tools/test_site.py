#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_site.py VIDMM: the documentation site is complete, and the tutorials' commands exist. TAP.

The site is built by mkdocs. Without mkdocs only the tutorials are checked.
"""
import functools
import glob
import html.parser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import urllib.parse

ROOT = os.environ['VIDMM_SOURCE_ROOT']
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
sys.path.append(os.path.join(ROOT, 'scripts'))
import links
import rules
from tap_tests import main, test

VIDMM = sys.argv[1]
SITE = tempfile.TemporaryDirectory(prefix='vidmm-site-')
LOADED = {'script': 'src', 'img': 'src', 'link': 'href', 'iframe': 'src', 'source': 'src'}


class Page(html.parser.HTMLParser):
    def __init__(self, path):
        super().__init__()
        self.anchors, self.links, self.loaded = set(), [], []
        with open(path, encoding='utf-8') as text:
            self.feed(text.read())

    def handle_starttag(self, tag, attrs):
        values = dict(attrs)
        self.anchors.update(values[name] for name in ('id', 'name') if values.get(name))
        if tag == 'a' and values.get('href'):
            self.links.append(values['href'])
        if values.get(LOADED.get(tag)):
            self.loaded.append(values[LOADED[tag]])


@functools.lru_cache(None)
def site():
    """Builds the site once. Returns its folder and the output of mkdocs."""
    done = subprocess.run([sys.executable, os.path.join(ROOT, 'scripts', 'site.py'), SITE.name],
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return os.path.join(SITE.name, 'site'), done.stdout + done.stderr


@functools.lru_cache(None)
def pages():
    """path below the site -> Page"""
    folder = site()[0]
    return {os.path.relpath(path, folder): Page(path)
            for path in glob.glob(os.path.join(folder, '**', '*.html'), recursive=True) if not path.endswith('404.html')}


def site_test(function):
    """A test that needs the site."""
    @functools.wraps(function)
    def call():
        return function() if shutil.which('mkdocs') else 'mkdocs is not installed'
    return test(call)


def rule_ids():
    problems = []
    found = rules.read_tables(rules.tables_of(ROOT), problems)
    assert not problems and len(found) > 700, problems
    return found


@site_test
def mkdocs_has_no_warning():
    assert site()[1] == '', site()[1]


@site_test
def each_rule_has_an_anchor_and_is_in_the_search_index():
    with open(os.path.join(site()[0], 'search', 'search_index.json'), encoding='utf-8') as text:
        index = json.load(text)
    found = {entry['location']: entry for entry in index['docs']}
    for rule in rule_ids().values():
        page = f'docs/rules/{rule.family}.html'
        assert rule.id in pages()[page].anchors, rule.id
        entry = found[f'{page}#{rule.id}']
        assert entry['title'] == rule.id and rule.text.split()[0].strip('`') in entry['text'], entry
    with open(os.path.join(site()[0], 'search', 'search_index.js'), encoding='utf-8') as script:
        code = script.read()
    assert json.loads(code[code.index('{'):code.rindex(';')]) == index


@site_test
def each_link_has_a_target():
    count = 0
    for path, page in pages().items():
        for target in page.links + page.loaded:
            parts = urllib.parse.urlsplit(target)
            if parts.scheme or parts.netloc or target == '#':
                continue
            name = os.path.normpath(os.path.join(os.path.dirname(path), urllib.parse.unquote(parts.path))) \
                if parts.path else path
            assert os.path.isfile(os.path.join(site()[0], name)), (path, target)
            anchor = urllib.parse.unquote(parts.fragment)
            assert not anchor or anchor in pages()[name].anchors, (path, target)
            count += 1
    assert count > 5000, count


@site_test
def pages_load_nothing_from_the_network():
    for path, page in pages().items():
        for link in page.loaded:
            assert not re.match(r'[a-z]+:|//', link), (path, link)
    for style in glob.glob(os.path.join(site()[0], '**', '*.css'), recursive=True):
        with open(style, encoding='utf-8') as text:
            for link in re.findall(r'(?:url\(|@import\s+)["\']?([^"\')\s]+)', text.read()):
                assert not re.match(r'https?:|//', link), (style, link)


@site_test
def each_document_has_a_page():
    for document in links.documents(ROOT):
        path = os.path.relpath(document, ROOT)
        if path != 'docs/rules/index.md':
            page = re.sub(r'(^|/)README\.md$', r'\1index.html', path).replace('.md', '.html')
            assert page in pages(), path


# ---- tutorials ----

def commands(text):
    """The command lines of indented blocks: after a $, with the lines that a backslash continues."""
    for match in re.finditer(r'^ {4}\$ ((?:[^\n]*\\\n)*[^\n]*)', text, re.M):
        yield match[1].replace('\\\n', ' ')


def vidmm_calls(command):
    """The words of each call of vidmm in a command line, without what comes after --."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    calls = [[]]
    for word in lexer:
        if re.fullmatch(r'[();<>|&]+', word):
            calls.append([])
        else:
            calls[-1].append(word)
    for words in calls:
        if words and os.path.basename(words[0]) == 'vidmm':
            yield words[1:words.index('--')] if '--' in words else words[1:]


@functools.lru_cache(None)
def help_of(verb):
    done = subprocess.run([VIDMM, verb, '--help'], capture_output=True, text=True)
    assert done.returncode == 0 and verb in done.stdout, (verb, done.stderr)
    return set(re.findall(r'(?<![\w-])(--[a-z][a-z-]*|-[a-z])\b', done.stdout))


@test
def the_commands_of_the_tutorials_exist():
    tutorials = sorted(glob.glob(os.path.join(ROOT, 'docs', 'tutorials', '*.md')))
    assert len(tutorials) == 4, tutorials
    for path in tutorials:
        with open(path, encoding='utf-8') as text:
            calls = [call for command in commands(text.read()) for call in vidmm_calls(command)]
        for verb, *words in calls:
            for word in words:
                option = re.match(r'--?[a-z][a-z-]*', word)
                assert not option or option[0] in help_of(verb), (path, verb, word)
            help_of(verb)
        assert calls or path.endswith('embedding.md'), path


if __name__ == '__main__':
    sys.exit(main())
