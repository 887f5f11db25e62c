#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""rules_man.py PAGE TSV...: writes vidmm-rules(7), the manual page of all rules, from the rule tables."""
import os
import re
import sys

sys.path.append(os.path.dirname(os.path.abspath(__file__)))
import rules

DATE = '2026-11-28'
HEAD = r'''.\" SPDX-License-Identifier: MIT
.\" Written by scripts/rules_man.py from docs/rules.
.TH VIDMM\-RULES 7 @DATE@ vidmm "Miscellanea"
.SH NAME
vidmm\-rules \- rules of the WDDM interface that vidmm emulates
.SH DESCRIPTION
Each behavior that vidmm emulates, or will emulate, is a rule with a permanent id. Findings, reasons and documents cite it.
.BR vidmm\-rules (1)
prints single rules.
.PP
The lines below a rule say what a caller gets that breaks it, in which versions of WDDM it applies
.RB ( 1.x :
before 2.0), and its provenance:
.TP
.B documented
A public page states it.
.TP
.B observed
Public tests assert it against a running Windows.
.TP
.B inferred
No page states it. It is a choice, consistent with what is stated.
.TP
.B our choice
Public pages contradict one another (family C), or no page answers (family Q).
'''
FOOT = r'''.SH SEE ALSO
.BR vidmm (1),
.BR vidmm\-rules (1),
.BR vidmm (3)
'''


def roff(text):
    """A text as a line of roff. What is not ASCII is written by its number."""
    text = text.replace('\\', '\\e').replace('-', '\\-').replace("'", '\\(aq')
    text = re.sub(r'[^\x00-\x7f]', lambda match: f'\\[u{ord(match[0]):04X}]', text)
    return '\\&' + text if text.startswith('.') else text


def page(table):
    lines = [HEAD.replace('@DATE@', DATE)]
    for family in dict.fromkeys(rule.family for rule in table.values()):
        lines.append(f'.SH {family}\n')
        for rule in (rule for rule in table.values() if rule.family == family):
            broken = '' if rule.error == '-' else f'If broken: {roff(rule.error)}.\n'
            lines.append(f'.TP\n.B {roff(rule.id)}\n{roff(rule.text)}\n.br\n{broken}'
                         f'WDDM {roff(rule.versions)}, {roff(rule.provenance)}.\n')
    return ''.join(lines) + FOOT


def main(path, *tables):
    problems = []
    table = rules.read_tables(tables, problems)
    for problem in problems:
        sys.stderr.write(f'rules: {problem}\n')
    with open(path, 'w', encoding='utf-8') as out:
        out.write(page(table))
    return 1 if problems else 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
