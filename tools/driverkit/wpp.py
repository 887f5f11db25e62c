# SPDX-License-Identifier: MIT
"""WPP tracing: the macros of a source's .tmh file.

On Windows a preprocessor writes NAME.tmh for each source from the configuration in comments
(`begin_wpp config` to `end_wpp`). Here the file defines each trace macro as a call of
WddmTraceMessage, which prints the message as debug output. A macro without a message whose name
contains ASSERT reports a failed assertion as ASSERT does.
"""

import re

BLOCK = re.compile(r'begin_wpp\s+config(.*?)end_wpp', re.DOTALL)
FUNCTION = re.compile(r'^[\s/*]*FUNC\s+(\w+)\s*(?:\{([^}]*)\})?\s*\(([^)]*)\)\s*;', re.MULTILINE)
CONTROLS = re.compile(r'WPP_DEFINE_BIT\s*\(\s*(\w+)\s*\)')
LEVELS = {'CRITICAL': 1, 'FATAL': 1, 'ERROR': 2, 'WARNING': 3, 'INFORMATION': 4, 'VERBOSE': 5}


def level_of(settings):
    found = re.search(r'LEVEL\s*=\s*TRACE_LEVEL_(\w+)', settings or '')
    return LEVELS.get(found.group(1), 4) if found else 4


def macro(name, settings, parameters):
    """The definition of one trace macro."""
    names = [parameter.strip() for parameter in parameters.split(',') if parameter.strip()]
    message = names.index('MSG') if 'MSG' in names else -1
    before = names[:message] if message >= 0 else [n for n in names if n != '...']
    if message < 0 and 'ASSERT' in name.upper() and before:
        return ('#define %s(%s) \\\n\t((%s) ? (void)0 : WddmAssertFailed(#%s, __FILE__, __LINE__))'
                % (name, ', '.join(before), before[-1], before[-1]))
    if message < 0:
        arguments = ', '.join(before)
        return '#define %s(%s) \\\n\tWddmTraceMessage(%d, __func__, "%s")' % (
            name, arguments, level_of(settings), name)
    level = 'LEVEL' if 'LEVEL' in before else str(level_of(settings))
    return '#define %s(%s) \\\n\tWddmTraceMessage(%s, __func__, __VA_ARGS__)' % (
        name, ', '.join(before + ['...']), level)


def macros(texts):
    """The text of a .tmh file for a driver with these sources and headers."""
    lines = ['#include <wpp_trace.h>']
    seen = set()
    bits = []
    for text in texts:
        bits += [bit for bit in CONTROLS.findall(text) if bit not in bits]
        for block in BLOCK.findall(text):
            for name, settings, parameters in FUNCTION.findall(block):
                if name not in seen:
                    seen.add(name)
                    lines += ['#undef ' + name, macro(name, settings, parameters)]
    for number, bit in enumerate(bits):
        lines += ['#undef WPP_BIT_' + bit, '#define WPP_BIT_%s %d' % (bit, number + 1)]
    return '\n'.join(lines) + '\n'
