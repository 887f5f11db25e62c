# SPDX-License-Identifier: MIT
"""Checks on single files: sizes, words, spellings. Each takes path -> text and returns what is wrong."""

import re

import cscan

FUNCTION_LINES = 70
FILE_LINES = 1000
README_LINES = 80

MACHINE_PATH = re.compile(r'(?:^|[^A-Za-z0-9_.])/(?:work|farm|root|home)/')
UNFINISHED = re.compile(r'\b(?:TODO|FIXME|XXX)\b|\bfor now\b')
UNFINISHED_COMMENT = re.compile(r'\bstub(?:s|bed)?\b', re.I)
# A definition, by which a program replaces the function, is no call.
SLEEP = re.compile(r'(?<!\nint )\b(?:(?:u|nano|clock_nano|thrd_)?sleep)\s*\(')
SLEEP_SCRIPT = re.compile(r'\btime\.sleep\s*\(|^\s*sleep\s+[\d.$]', re.M)
DDI = re.compile(r'\b(?:D3DKMT\w*|DxgkDdi\w*|DxgkCb\w*|pfn\w+Cb)\b')
DDI_FOLDERS = ('include/wddm/', 'include/vidmm/', 'src/doors/', 'src/port/', 'src/host/', 'drivers/', 'tests/',
               'tools/', 'bench/', 'examples/', 'docs/', 'src/serve/', 'src/client/', 'src/dxcore/')
FLAG_HEADER = 'include/wddm/kmddi_alloc.h'
FLAG_PAGE = 'docs/rules/allocation-flags.md'
FLAG_STRUCTURES = ('DXGK_ALLOCATIONINFOFLAGS', 'DXGK_ALLOCATIONINFOFLAGS_WDDM2_0', 'DXGK_ALLOCATIONINFOFLAGS2')
SPDX = 'SPDX-License-Identifier: MIT'


def is_c(path):
    return path.endswith(('.c', '.h'))


def sizes(files):
    """(path, item, lines) of all that exceeds a limit."""
    found = []
    for path, text in files.items():
        if not is_c(path):
            continue
        lines = text.count('\n') + (not text.endswith('\n'))
        if lines > FILE_LINES:
            found.append((path, 'file', lines))
        found += [(path, name, length) for name, _, length in cscan.functions(text) if length > FUNCTION_LINES]
    return found


def check_sizes(files, ratchet):
    """ratchet: (path, item) -> lines allowed. A row that allows more than is needed must be tightened."""
    problems, over = [], {(path, item): lines for path, item, lines in sizes(files)}
    for (path, item), lines in over.items():
        limit = ratchet.get((path, item), FILE_LINES if item == 'file' else FUNCTION_LINES)
        if lines > limit:
            problems.append(f'{path}: {item} has {lines} lines, the limit is {limit}')
    for (path, item), limit in ratchet.items():
        lines = over.get((path, item))
        if lines is None:
            problems.append(f'ratchet.tsv: {path} {item} keeps the limit now, remove its row')
        elif lines < limit:
            problems.append(f'ratchet.tsv: {path} {item} shrank to {lines}, lower its row from {limit}')
    return problems


def grep(pattern, path, text, what):
    return [f'{path}:{text.count(chr(10), 0, match.start()) + 1}: {what}: {match[0].strip()}'
            for match in pattern.finditer(text)]


def check_machine_paths(files):
    return [hit for path, text in files.items() if not path.endswith('.tsv')
            for hit in grep(MACHINE_PATH, path, text, 'path of one machine')]


def check_words(files):
    problems = []
    for path, text in files.items():
        problems += grep(UNFINISHED, path, text, 'unfinished')
        if is_c(path):
            problems += grep(UNFINISHED_COMMENT, path, cscan.split_comments(text)[1], 'unfinished')
    return problems


def check_spdx(files):
    """The first line; the second after a #! line."""
    problems = []
    for path, text in files.items():
        if path.endswith(('.c', '.h', '.cpp', '.py', '.sh', 'meson.build', '.map')) or text.startswith('#!'):
            lines = text.split('\n', 2)
            if SPDX not in lines[1 if lines[0].startswith('#!') and len(lines) > 1 else 0]:
                problems.append(f'{path}:1: first line lacks "{SPDX}"')
    return problems


def check_sleeps(files):
    problems = []
    for path, text in files.items():
        if path.startswith('tests/'):
            if is_c(path):
                problems += grep(SLEEP, path, cscan.split_comments(text)[0], 'a test sleeps')
            elif path.endswith(('.py', '.sh')):
                problems += grep(SLEEP_SCRIPT, path, text, 'a test sleeps')
    return problems


def check_ddi_spellings(files):
    problems = []
    for path, text in files.items():
        if is_c(path) and not path.startswith(DDI_FOLDERS):
            problems += grep(DDI, path, cscan.split_comments(text)[0], 'DDI spelling in core code')
    return problems


def check_readmes(files, folders):
    """folders: those of the modules that exist."""
    problems = []
    for folder in folders:
        text = files.get(folder + '/README.md')
        if text is None:
            problems.append(f'{folder}: no README.md')
        elif text.count('\n') > README_LINES:
            problems.append(f'{folder}/README.md: more than a page ({README_LINES} lines)')
    return problems


def flags_of(header, structure):
    """(name, mask) of the bits of a structure that are not reserved, as its comments give the masks."""
    body = re.search(r'typedef struct _%s \{(.*?)\n\} %s;' % (structure, structure), header, re.S)
    members = re.findall(r'UINT (\w+) : 1;\s*/\* (0x[0-9A-F]{8})', body[1]) if body else []
    return [(name, int(mask, 16)) for name, mask in members if 'reserved' not in name.lower()]


def check_flag_pages(files):
    """Every allocation property has a heading with its mask, what is refused and what the miniport is called with."""
    header, page = files.get(FLAG_HEADER, ''), files.get(FLAG_PAGE, '')
    sections = re.split(r'^#+ ', page, flags=re.M)[1:]
    problems = []
    for structure in FLAG_STRUCTURES:
        flags = flags_of(header, structure)
        if not flags:
            problems.append(f'{FLAG_HEADER}: {structure}: no flags found')
        for name, mask in flags:
            found = [section for section in sections if re.search(rf'\b{name} \(0x{mask:X}\b', section.split('\n', 1)[0])]
            if not found:
                problems.append(f'{FLAG_PAGE}: no heading for {name} (0x{mask:X})')
            elif not re.search(r'^\* (Refused|Placed)', found[0], re.M):
                problems.append(f'{FLAG_PAGE}: {name}: does not say what is refused')
            elif not re.search(r'^\* (Calls|Example)', found[0], re.M):
                problems.append(f'{FLAG_PAGE}: {name}: does not say what the miniport is called with')
    return problems
