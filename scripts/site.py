#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds the documentation site with mkdocs.

    site.py [OUTDIR]        stage OUTDIR/pages and OUTDIR/mkdocs.yml, and build OUTDIR/site
                            (default: build/docs)

VIDMM_SOURCE_ROOT: the source tree, if it is not the one that contains this script.

The pages are the Markdown documents of the tree, in the same folders, so that links between them stay
as they are. A link to another file leads to a copy of that file with the suffix .txt, which any browser
shows. docs/rules/index.md and the tables of rules are replaced by a page for each family.

mkdocs imports this file as a hook (on_config, on_post_build).
"""

import json
import os
import posixpath
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.append(HERE)

import links
import rule_index
import rules as tables

ROOT = os.environ.get('VIDMM_SOURCE_ROOT') or os.path.dirname(HERE)
RULES = 'docs/rules'
FAMILIES = f'{RULES}/families.md'
# A fenced block, or an indented one: after an empty line, and not a nested list.
CODE = re.compile(r'(^(```|~~~).*?^\2[^\n]*$|(?<=\n\n)(?! {4}[-*] )(?:(?: {4}|\t)[^\n]*(?:\n|\Z))+)', re.M | re.S)
# Text in which the ids of rules do not become links: code, links, headings and comments.
UNLINKED = r'`[^`]*`|\[[^\]]*\]\([^)]*\)|^#[^\n]*$|<!--.*?-->'
LIST_START = re.compile(r'[-*] ')
# Files of this folder that precede those of mkdocs; Debian's package has no js/theme_extra.js.
OWN_FILES = {'site_search.js': 'search/main.js', 'site_theme.js': 'js/theme_extra.js', 'site.css': 'site.css'}
PROGRAM = ['run', 'serve', 'caps', 'conform', 'sim', 'replay', 'what-if', 'explain', 'report', 'check', 'export', 'top']
FORMATS = ['trace-format', 'record-format']
DESIGN = ['architecture', 'locking', 'adr/README']
TUTORIALS = ['miniport', 'client', 'memory-pressure', 'embedding']


# ---- links and Markdown ----

def github_anchor(heading, separator='-'):
    """The anchor that GitHub derives from a heading. A rule id stays as it is."""
    if tables.ID.fullmatch(heading.strip()):
        return heading.strip()
    return re.sub(r'[^\w\- ]', '', heading.strip().lower()).replace(' ', separator)


class Stage:
    """Writes pages below a folder and remembers which other files they link to."""

    def __init__(self, root, folder):
        self.root, self.folder = root, folder
        self.problems = []
        self.rules = tables.read_tables(tables.tables_of(root), self.problems)
        self.pages = {os.path.relpath(path, root) for path in links.documents(root)}
        self.pages -= {f'{RULES}/index.md'}

    def write(self, path, text):
        path = os.path.join(self.folder, path)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, 'w', encoding='utf-8') as out:
            out.write(text)

    def copy_as_text(self, path):
        name = path + '.txt'
        with open(os.path.join(self.root, path), encoding='utf-8', errors='replace') as source:
            self.write(name, source.read())
        return name

    def target(self, path):
        """The page or file of the site for a file or folder of the tree, and its anchor; None if there is none."""
        if path == f'{RULES}/index.md':
            return FAMILIES, ''
        if path.startswith(RULES) and path.endswith('.tsv'):
            return FAMILIES, github_anchor(posixpath.basename(path))
        if os.path.isdir(os.path.join(self.root, path)):
            path = posixpath.join(path, 'README.md')
            return (path, '') if path in self.pages else None
        if path in self.pages:
            return path, ''
        return (self.copy_as_text(path), '') if os.path.isfile(os.path.join(self.root, path)) else None

    def rewrite_link(self, page, match):
        text, link = match[1], match[2]
        if re.match(r'[a-z]+:', link) or link.startswith('#') or tables.ID.fullmatch(text):
            return match[0]
        name, _, anchor = link.partition('#')
        found = self.target(posixpath.normpath(posixpath.join(posixpath.dirname(page), name)))
        if found is None:
            return text
        path, own_anchor = found
        anchor = own_anchor if path == FAMILIES else anchor
        return f'[{text}]({self.relative(page, path)}{"#" + anchor if anchor else ""})'

    @staticmethod
    def relative(page, path):
        return posixpath.relpath(path, posixpath.dirname(page) or '.')

    def prose(self, page, text):
        """What Python-Markdown needs of text that GitHub already shows as it should."""
        lines = []
        for line in text.split('\n'):
            # A list may follow a paragraph without an empty line; nested lists are indented by 4.
            previous = lines[-1] if lines else ''
            if LIST_START.match(line) and previous.strip() and not re.match(r'[-*] | ', previous):
                lines.append('')
            line = re.sub(r'^  ([-*] )', r'    \1', line)
            lines.append(re.sub(r'\\$', '  ', line))
        text = self.link_rules(page, '\n'.join(lines))
        return re.sub(r'\[([^\]]*)\]\(([^)\s]+)\)', lambda match: self.rewrite_link(page, match), text)

    def link_rules(self, page, text):
        def link(match):
            if match[0] not in self.rules:
                return match[0]
            return f'[{match[0]}]({self.relative(page, f"{RULES}/{match[2]}.md")}#{match[0]})'
        return re.sub(f'({UNLINKED})|{tables.ID.pattern}', link, text, flags=re.M | re.S)

    def page(self, path):
        with open(os.path.join(self.root, path), encoding='utf-8') as source:
            text = source.read()
        parts, at = [], 0
        for code in CODE.finditer(text):
            parts += [self.prose(path, text[at:code.start()]), code[0]]
            at = code.end()
        self.write(path, ''.join([*parts, self.prose(path, text[at:])]))


# ---- rules ----

def family_titles(root):
    """family -> what its rules are about, from the table in docs/rules/README.md."""
    with open(os.path.join(root, RULES, 'README.md'), encoding='utf-8') as text:
        rows = re.findall(r'^\| \[\w[\w-]*\.tsv\]\([^)]*\) \| ([^|;]*)', text.read(), re.M)
    titles = {}
    for row in rows:
        for family in re.split(r',\s+(?=[A-Z]{1,4} )', row.strip()):
            name, _, title = family.partition(' ')
            titles[name] = title
    return titles


def linked(text, known, own):
    """Escapes text, and makes links of the ids of rules."""
    def link(match):
        if match[0] not in known or match[0] == own:
            return match[0]
        return f'[{match[0]}]({match[1]}.md#{match[0]})'
    return tables.ID.sub(link, re.sub(r'([|<>*_\[\]])', r'\\\1', text))


def rule_section(rule, known, places):
    facts = [('if broken', linked(rule.error, known, rule.id)), ('WDDM', linked(rule.versions, known, rule.id)),
             ('provenance', rule.provenance), ('source', linked(rule.source, known, rule.id)),
             ('implemented in', ', '.join(f'`{place}`' for place in rule_index.shown(places)) or '-'),
             ('tests', ', '.join(f'`{test}`' for test in rule_index.shown_tests(rule)) or '-')]
    rows = '\n'.join(f'- *{name}*: {value}' for name, value in facts)
    return f'## {rule.id}\n\n{linked(rule.text, known, rule.id)}\n\n{rows}\n'


def stage_rules(stage):
    """Writes a page for each family, and the list of families. Returns the names of the pages."""
    rules = stage.rules
    tables.scan(stage.root, rules, stage.problems)
    places = rule_index.implementations(stage.root)
    titles = family_titles(stage.root)
    overview = ['# The families of rules\n\nEach family has a page, with the text, the provenance, the functions and '
                'the tests of each rule. The search finds a rule by its id. [The rules](README.md) explains the '
                'tables; `vidmm rules ID` prints a rule.\n']
    names, table = [], None
    families = {rule.family for rule in rules.values()}
    order = [family for family in titles if family in families]
    for family in order + sorted(families.difference(order)):
        members = sorted((rule for rule in rules.values() if rule.family == family), key=lambda rule: rule.id)
        title = titles.get(family, family)
        if members[0].table != table:
            table = members[0].table
            overview.append(f'\n## {table}\n\n| family | about | rules |\n| --- | --- | --- |\n')
        overview.append(f'| [{family}]({family}.md) | {title} | {len(members)} |\n')
        count = f'{len(members)} rules' if len(members) > 1 else 'One rule'
        stage.write(f'{RULES}/{family}.md',
                    f'# {family}: {title}\n\n{count} of `{RULES}/{members[0].table}`. [All families](families.md)\n\n'
                    + '\n'.join(rule_section(rule, rules, places.get(rule.id, [])) for rule in members))
        names.append(f'{RULES}/{family}.md')
    stage.write(FAMILIES, ''.join(overview))
    return names


# ---- configuration ----

def navigation(pages, families):
    """The sections of the navigation. A page that no section names is in Reference or Modules."""
    def docs(folder, names):
        return [f'{folder}/{name}.md' for name in names]
    sections = [
        ('Tutorials', docs('docs/tutorials', TUTORIALS)),
        ('The program', [*docs('docs', PROGRAM), 'tools/vidmm/README.md']),
        ('Formats', docs('docs', FORMATS)),
        ('Reference', []),
        ('Design', [*docs('docs', DESIGN), *sorted(page for page in pages if page.startswith('docs/adr/0'))]),
        ('Rules', [f'{RULES}/README.md', FAMILIES,
                   *sorted(page for page in pages if page.startswith(RULES) and page != f'{RULES}/README.md')]),
        ('Families of rules', families),
        ('Modules', []),
        ('Project', ['examples/README.md', *sorted(page for page in pages if page.startswith(('tests/', 'bench/'))),
                     'CONTRIBUTING.md', 'SECURITY.md', 'CHANGELOG.md']),
    ]
    named = {'README.md', *(page for _, section in sections for page in section)}
    for page in sorted(pages - named):
        index = 3 if page.startswith('docs/') else 7
        sections[index][1].append(page)
    nav = [{'Start': 'README.md'}]
    for title, section in sections:
        nav.append({title: section})
    return nav


def configuration(out, nav):
    return {
        'site_name': 'vidmm',
        'site_description': 'The video memory manager and GPU scheduler of WDDM as a user-mode C library on Linux',
        'docs_dir': os.path.join(out, 'pages'),
        'site_dir': os.path.join(out, 'site'),
        'use_directory_urls': False,
        'theme': {'name': 'readthedocs', 'highlightjs': False, 'navigation_depth': 3,
                  'sticky_navigation': False},
        'extra_css': ['site.css'],
        'hooks': [os.path.abspath(__file__)],
        'plugins': ['search'],
        'nav': nav,
    }


def stage_all(root, out):
    pages = os.path.join(out, 'pages')
    shutil.rmtree(pages, ignore_errors=True)
    stage = Stage(root, pages)
    for path in sorted(stage.pages):
        stage.page(path)
    families = stage_rules(stage)
    for source, path in OWN_FILES.items():
        os.makedirs(os.path.dirname(os.path.join(pages, path)), exist_ok=True)
        shutil.copyfile(os.path.join(HERE, source), os.path.join(pages, path))
    # JSON is YAML.
    with open(os.path.join(out, 'mkdocs.yml'), 'w', encoding='utf-8') as config:
        json.dump(configuration(out, navigation(stage.pages, families)), config, indent=1)
        config.write('\n')


# ---- hooks of mkdocs ----

def on_config(config):
    config['mdx_configs'].setdefault('toc', {})['slugify'] = github_anchor
    return config


def on_post_build(config):
    site = config['site_dir']
    # A page that was opened from disk may load scripts, but neither JSON nor a worker.
    with open(os.path.join(site, 'search', 'search_index.json'), encoding='utf-8') as index:
        text = index.read()
    with open(os.path.join(site, 'search', 'search_index.js'), 'w', encoding='utf-8') as script:
        script.write(f'var vidmm_search_index = {text};\n')
    # Debian's package has jQuery under another name than its pages load.
    with open(os.path.join(site, 'index.html'), encoding='utf-8') as page:
        wanted = re.search(r'js/jquery-[\d.]+\.min\.js', page.read())
    folder = os.path.join(site, 'js')
    present = sorted(name for name in os.listdir(folder) if re.fullmatch(r'jquery-[\d.]+\.min\.js', name))
    if wanted and present and not os.path.exists(os.path.join(site, wanted[0])):
        shutil.copyfile(os.path.join(folder, present[0]), os.path.join(site, wanted[0]))


def main(arguments):
    if len(arguments) > 1 or arguments[:1] in (['-h'], ['--help']):
        sys.stderr.write(__doc__)
        return 2
    out = os.path.abspath(arguments[0] if arguments else os.path.join(ROOT, 'build', 'docs'))
    stage_all(ROOT, out)
    command = ['mkdocs', 'build', '--strict', '--clean', '--quiet', '--config-file', os.path.join(out, 'mkdocs.yml')]
    try:
        return subprocess.run(command, check=False).returncode
    except FileNotFoundError:
        sys.stderr.write('site: mkdocs is not installed (Debian package mkdocs)\n')
        return 1


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
