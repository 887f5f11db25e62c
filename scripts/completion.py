#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the completions of vidmm for bash, zsh and fish, from what the program itself answers.

    completion.py VIDMM BASH ZSH FISH

Verbs and their arguments come from `vidmm --help`, options from `vidmm VERB --help`, which popt prints from its table.
Words for an option's value are those words of its help text that the program accepts there. Rule ids are asked of
`vidmm rules` at the time of completion.
"""
import os
import re
import subprocess
import sys
import tempfile

VERB = re.compile(r'^  (-?-?[a-z][a-z-]*)(?: (\S.*?))?(?:  +|$)(.*)$')
OPTION = re.compile(r'^  (?:-(\w), |    )--([a-z][a-z-]*)(?:[= ](\S+))?(?: {2,}(.*))?$')
# Kinds of values that may be words. Others are numbers, sizes, files and other text.
WORDS = {'DRIVER', 'HOW', 'LIST', 'MODEL', 'NAME', 'WHEN', 'WHICH'}
FILES = {'DRIVER', 'FILE', 'PATH'}
FOLDERS = {'DIR', 'FOLDER'}
# A word of a help text that may be a value: behind punctuation, `or`, `of` or `default`.
WORD = re.compile(r'(?:[:,;] |\(|\b(?:or|of|default) )(?=([a-z][\w+-]*)(?![\w./]))')
PROBE = 'no-such-word'
LIMIT_S = 60


class Option:
    """An option of a verb: its names, the kind of its value ('' if it has none), help text and accepted words."""

    def __init__(self, short, name, kind, text):
        self.short, self.name, self.kind, self.text, self.words = short or '', name, kind or '', text or '', []

    @property
    def files(self):
        return self.kind in FILES or './FILE' in self.text

    @property
    def folders(self):
        return self.kind in FOLDERS or self.text.startswith('folder ')


class Verb:
    """A verb: the kind of its arguments ('' if it has none), its help text and its options."""

    def __init__(self, name, arguments, text, options):
        self.name, self.text, self.options = name, text, options
        self.rules = arguments.startswith('[ID]')
        self.command = 'PROGRAM' in arguments
        self.files = bool(arguments) and not self.rules and not self.command


def ask(vidmm, *arguments):
    run = subprocess.run([vidmm, *arguments], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                         timeout=LIMIT_S)
    return run.stdout, run.stderr


def read_options(text):
    """The options in a text that popt prints. Long help texts have further lines, which begin with many blanks."""
    options = []
    for line in text.splitlines():
        match = OPTION.match(line)
        if match:
            options.append(Option(*match.groups()))
        elif options and line.startswith(' ' * 8):
            options[-1].text = f'{options[-1].text} {line.strip()}'.strip()
    return options or [Option('h', 'help', '', 'this help text')]


def others(verb, nowhere):
    """Arguments with which a verb reads its options and then ends at once, for lack of a file."""
    return {
        'replay': [nowhere],
        'what-if': [nowhere, '--vram=100%', '--policy=lru'],
        'serve': [f'--socket={nowhere}', f'--log={nowhere}'],
    }.get(verb, [])


def find_words(vidmm, verb, option):
    """The words of the option's help text that the program accepts; none if it refuses no word by name."""
    with tempfile.TemporaryDirectory() as folder:
        rest = others(verb, os.path.join(folder, 'none', 'none'))

        def refused(word):
            return f'--{option.name} "{word}" is not valid' in ask(vidmm, verb, *rest, f'--{option.name}={word}')[1]

        if not refused(PROBE):
            return []
        return [word for word in dict.fromkeys(WORD.findall(option.text)) if not refused(word)]


def read_program(vidmm):
    """All verbs with their options and words; the options of the program itself are the second result."""
    verbs, own = [], []
    for line in ask(vidmm, '--help')[0].splitlines():
        match = VERB.match(line)
        if not match:
            continue
        name, arguments, text = match[1], match[2] or '', match[3]
        if name.startswith('-'):
            own.append(Option('', name[2:], '', text))
            continue
        verbs.append(Verb(name, arguments, text, read_options(ask(vidmm, name, '--help')[0])))
        for option in verbs[-1].options:
            if option.kind in WORDS:
                option.words = find_words(vidmm, name, option)
            if option.kind == 'DRIVER':
                option.words = ['softgpu']
    return verbs, own


# ---- bash ----

BASH = r'''# SPDX-License-Identifier: MIT
# shellcheck shell=bash
# bash completion of vidmm. Written by scripts/completion.py from the help texts of the program.
_vidmm() {
	local word=${COMP_WORDS[COMP_CWORD]} before='' at=$((COMP_CWORD - 1)) verb=${COMP_WORDS[1]:-}
	local options='' kind=none words='' head=''
	COMPREPLY=()
	if [ "$COMP_CWORD" -eq 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W '@VERBS@' -- "$word")
		return
	fi
	# Bash makes a word of the sign in --option=value.
	if [ "$word" = = ]; then
		word=
	elif [ "${COMP_WORDS[at]}" = = ]; then
		at=$((at - 1))
	fi
	before=${COMP_WORDS[at]}
	case "$verb" in
@OPTIONS@	esac
	case "$verb $before" in
@VALUES@	'run --') kind=commands ;;
	esac
	if [[ $verb == run && $before != -- && " ${COMP_WORDS[*]:2:COMP_CWORD-2} " == *' -- '* ]]; then
		kind=files
	elif [[ $kind == none && $word == -* ]]; then
		kind=words words=$options
	elif [[ $kind == none ]]; then
		case "$verb" in
@ARGUMENTS@		esac
	fi
	[[ $kind != rules ]] || words=$("${COMP_WORDS[0]}" rules 2>/dev/null | cut -d ' ' -f 1)
	[[ $kind != list* || $word != *,* ]] || head=${word%,*},
	case "$kind" in
	commands) mapfile -t COMPREPLY < <(compgen -c -- "$word") ;;
	folders) mapfile -t COMPREPLY < <(compgen -d -- "$word") ;;
	words* | rules | list*) mapfile -t COMPREPLY < <(compgen -P "$head" -W "$words" -- "${word#"$head"}") ;;
	esac
	case "$kind" in
	files | *-files) mapfile -t -O "${#COMPREPLY[@]}" COMPREPLY < <(compgen -f -- "$word") ;;
	esac
	case "$kind" in
	files | *-files | folders) compopt -o filenames 2>/dev/null ;;
	esac
}
complete -F _vidmm vidmm
'''


def bash_kind(option):
    """What completes the value of an option, as `kind` and `words` of the script."""
    if option.folders:
        return 'kind=folders'
    words = f' words={shell_quote(" ".join(option.words))}' if option.words else ''
    kind = ('list' if option.kind == 'LIST' else 'words') if option.words else ''
    if option.files:
        kind += '-files' if kind else 'files'
    return f'kind={kind or "any"}{words}'


def shell_quote(text):
    return "'" + text.replace("'", "'\\''") + "'"


def names(option):
    return [f'--{option.name}'] + ([f'-{option.short}'] if option.short else [])


def bash(verbs, own):
    options, values, arguments = '', '', ''
    for verb in verbs:
        all_names = [f'--{option.name}' for option in verb.options]
        options += f'\t{verb.name}) options={shell_quote(" ".join(all_names))} ;;\n'
        for option in verb.options:
            if option.kind:
                pattern = ' | '.join(f"'{verb.name} {name}'" for name in names(option))
                values += f'\t{pattern}) {bash_kind(option)} ;;\n'
        kind = 'rules' if verb.rules else 'commands' if verb.command else 'files' if verb.files else ''
        if kind:
            arguments += f'\t\t{verb.name}) kind={kind} ;;\n'
    starts = [verb.name for verb in verbs] + [f'--{option.name}' for option in own]
    return (BASH.replace('@VERBS@', ' '.join(starts)).replace('@OPTIONS@', options)
            .replace('@VALUES@', values).replace('@ARGUMENTS@', arguments))


# ---- zsh ----

ZSH = r'''#compdef vidmm
# SPDX-License-Identifier: MIT
# zsh completion of vidmm. Written by scripts/completion.py from the help texts of the program.
_vidmm_rule_ids() {
	local -a ids
	ids=(${(f)"$($vidmm_program rules 2>/dev/null | sed -E 's/^([^ ]+) +(.{0,60}).*/\1:\2/')"})
	_describe -t rules rule ids
}

_vidmm() {
	local vidmm_program=$words[1]
	if (( CURRENT == 2 )); then
		local -a verbs
		verbs=(
@VERBS@		)
		_describe -t verbs verb verbs
		return
	fi
	local verb=$words[2]
	shift words
	(( CURRENT-- ))
	case $verb in
@OPTIONS@	esac
}

_vidmm "$@"
'''

# _arguments does not see that `--` ends the options if it comes first.
ZSH_PROGRAM = r'''		local end=$words[(i)--]
		if (( end < CURRENT )); then
			shift end words
			(( CURRENT -= end ))
			_normal
			return
		fi
'''


def zsh_action(option):
    if option.folders:
        return '_files -/'
    if option.words and option.kind == 'LIST':
        return f'_values -s , {option.kind} {" ".join(option.words)}'
    if option.words and option.files:
        return f'_alternative "words\\:word\\:({" ".join(option.words)})" "files\\:file\\:_files"'
    if option.words:
        return f'({" ".join(option.words)})'
    return '_files' if option.files else ' '


def zsh_text(text):
    return text.replace('\\', '\\\\').replace('[', '(').replace(']', ')').replace(':', '\\:').replace("'", "'\\''")


def zsh_option(option):
    value = f':{option.kind.lower()}:{zsh_action(option)}' if option.kind else ''
    value = value.replace("'", "'\\''")
    lines = [f"\t\t\t'*--{option.name}{'=' if value else ''}[{zsh_text(option.text)}]{value}' \\\n"]
    if option.short:
        lines.append(f"\t\t\t'*-{option.short}{'+' if value else ''}[{zsh_text(option.text)}]{value}' \\\n")
    return ''.join(lines)


def zsh(verbs, own):
    starts = [(verb.name, verb.text) for verb in verbs] + [(f'--{option.name}', option.text) for option in own]
    lines = ''.join(f"\t\t\t'{name}:{zsh_text(text)}'\n" for name, text in starts)
    cases = ''
    for verb in verbs:
        rest = ('*:rule:_vidmm_rule_ids' if verb.rules else '*::program:_normal' if verb.command else
                '*:file:_files' if verb.files else '')
        options = ''.join(zsh_option(option) for option in verb.options)
        start = f'\t{verb.name})\n{ZSH_PROGRAM if verb.command else ""}'
        cases += f"{start}\t\t_arguments -s \\\n{options}\t\t\t{shell_quote(rest) if rest else ''}\n\t\t;;\n"
    return ZSH.replace('@VERBS@', lines).replace('@OPTIONS@', cases)


# ---- fish ----

FISH = r'''# SPDX-License-Identifier: MIT
# fish completion of vidmm. Written by scripts/completion.py from the help texts of the program.
function __vidmm_first
    test (count (commandline -opc)) -eq 1
end

# Whether the first word after the program is this verb.
function __vidmm_verb
    set -l words (commandline -opc)
    test (count $words) -ge 2; and test "$words[2]" = $argv[1]
end

function __vidmm_rule_ids
    set -l words (commandline -opc)
    $words[1] rules 2>/dev/null | string replace -r '^(\S+) +(.{0,60}).*' '$1\t$2'
end

complete -c vidmm -f
'''


def fish_text(text):
    return "'" + text.replace('\\', '\\\\').replace("'", "\\'") + "'"


def fish_option(verb, option):
    line = f'complete -c vidmm -n "__vidmm_verb {verb.name}" -l {option.name}'
    line += f' -s {option.short}' if option.short else ''
    if option.kind:
        line += ' -r' if option.files or option.folders else ' -x'
        line += ' -F' if option.files else ''
        words = ' '.join(option.words)
        if option.kind == 'LIST' and words:
            words = f"(__fish_append , {words})"
        elif option.folders:
            words = '(__fish_complete_directories)'
        line += f' -a {fish_text(words)}' if words else ''
    return f'{line} -d {fish_text(option.text)}\n'


def fish(verbs, own):
    text = FISH
    for verb in verbs:
        text += f'complete -c vidmm -n __vidmm_first -a {verb.name} -d {fish_text(verb.text)}\n'
    for option in own:
        text += f'complete -c vidmm -n __vidmm_first -l {option.name} -d {fish_text(option.text)}\n'
    for verb in verbs:
        text += ''.join(fish_option(verb, option) for option in verb.options)
        here = f'complete -c vidmm -n "__vidmm_verb {verb.name}"'
        if verb.rules:
            text += f"{here} -a '(__vidmm_rule_ids)'\n"
        elif verb.command:
            text += f"{here} -a '(__fish_complete_subcommand --fcs-skip=2)'\n"
        elif verb.files:
            text += f'{here} -F\n'
    return text


def main(vidmm, *paths):
    verbs, own = read_program(os.path.abspath(vidmm))
    for path, write in zip(paths, (bash, zsh, fish)):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(write(verbs, own))
    return 0


if __name__ == '__main__':
    sys.exit(main(*sys.argv[1:]))
