#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_completion.py VIDMM BASH ZSH FISH: the completions have all options, and complete in real shells. TAP."""
import os
import pty
import re
import select
import shutil
import subprocess
import sys
import tempfile

VIDMM, SCRIPTS = os.path.abspath(sys.argv[1]), dict(zip(('bash', 'zsh', 'fish'), map(os.path.abspath, sys.argv[2:])))
ENVIRONMENT = {**os.environ, 'PATH': f'{os.path.dirname(VIDMM)}:{os.environ["PATH"]}', 'TERM': 'dumb'}


def output(*args, **options):
    return subprocess.run(args, capture_output=True, text=True, check=False, **options).stdout


VERBS = re.findall(r'^  ([a-z][a-z-]*) ', output(VIDMM, '--help'), re.M)


def options_of(verb):
    """Each name at the beginning of a line of the help text."""
    return re.findall(r'^  (?:-\w, |    )--([a-z][a-z-]*)', output(VIDMM, verb, '--help'), re.M) or ['help']


# ---- all options ----

def bash_options(text, verb):
    found = re.search(rf"^\t{verb}\) options='(.*)' ;;$", text, re.M)
    return {word[2:] for word in found[1].split()} if found else set()


def zsh_options(text, verb):
    found = re.search(rf'^\t{verb}\)\n(.*?)^\t\t;;$', text, re.M | re.S)
    return set(re.findall(r"^\t\t\t'\*--([a-z-]+)[=\[]", found[1], re.M)) if found else set()


def fish_options(text, verb):
    return set(re.findall(rf'^complete -c vidmm -n "__vidmm_verb {verb}" -l ([a-z-]+) ', text, re.M))


READERS = {'bash': bash_options, 'zsh': zsh_options, 'fish': fish_options}


def missing(shell):
    with open(SCRIPTS[shell], encoding='utf-8') as script:
        text = script.read()
    return [f'{verb} --{name}' for verb in VERBS
            for name in sorted(set(options_of(verb)) ^ READERS[shell](text, verb))]


# ---- the shells: each function returns the completions of a line, with which the shell would continue ----

def in_bash(line, folder):
    words = re.findall(r'=|[^ =]+', line) + ([''] if line.endswith(' ') else [])
    quoted = ' '.join(f"'{word}'" for word in words)
    script = f'. {SCRIPTS["bash"]}; COMP_WORDS=({quoted}); COMP_CWORD={len(words) - 1}; _vidmm; ' \
             'printf "%s\\n" "${COMPREPLY[@]}"'
    return set(output('bash', '--norc', '-c', script, env=ENVIRONMENT, cwd=folder).split())


def in_fish(line, folder):
    script = f'source {SCRIPTS["fish"]}; complete -C "{line}"'
    environment = {**ENVIRONMENT, 'HOME': folder, 'XDG_CONFIG_HOME': folder}
    found = output('fish', '--no-config', '-c', script, env=environment, cwd=folder)
    return {row.split('\t')[0].split('=')[-1] for row in found.splitlines() if row}


ZSHRC = r'''
PS1=READY; unset zle_bracketed_paste; setopt no_beep no_list_ambiguous
fpath=({folder} $fpath); autoload -U compinit; compinit -u -d {folder}/dump
report() {{ zle complete-word; print -r -- "<<$BUFFER>>"; BUFFER= ; zle -R }}
zle -N report; bindkey '\t' report
'''


def read_until(fd, text):
    """What a terminal shows until `text`. An empty result is its end."""
    seen = ''
    while text not in seen:
        select.select([fd], [], [])
        try:
            seen += os.read(fd, 4096).decode(errors='replace')
        except OSError:
            return ''
    return seen


def in_zsh(line, folder):
    """The one completion of a line: the last word of what zsh makes of it."""
    shutil.copy(SCRIPTS['zsh'], os.path.join(folder, '_vidmm'))
    with open(os.path.join(folder, '.zshrc'), 'w', encoding='utf-8') as file:
        file.write(ZSHRC.format(folder=folder))
    child, fd = pty.fork()
    if child == 0:
        os.chdir(folder)
        os.execvpe('zsh', ['zsh', '-d', '-i'], {**ENVIRONMENT, 'ZDOTDIR': folder, 'HOME': folder})
    read_until(fd, 'READY')
    os.write(fd, f'{line}\t'.encode())
    shown = read_until(fd, '>>')
    os.write(fd, b'exit\n')
    read_until(fd, '\0')
    os.close(fd)
    os.waitpid(child, 0)
    found = re.search(r'<<(.*)>>', shown)
    return {re.split('[ =]', found[1].rstrip(' =,'))[-1]} if found else set()


SHELLS = {'bash': in_bash, 'zsh': in_zsh, 'fish': in_fish}


def lone_rule():
    """A rule id, and a beginning that no other rule has."""
    ids = [line.split()[0] for line in output(VIDMM, 'rules').splitlines()]
    return next((rule, rule[:-1]) for rule in ids if sum(other.startswith(rule[:-1]) for other in ids) == 1)


def shell_cases(shell, folder):
    complete, (rule, beginning) = SHELLS[shell], lone_rule()
    for what, line, expected in (
            ('a verb', 'vidmm pict', 'picture'),
            ('an option of a verb', 'vidmm replay --see', '--seed'),
            ('a value', 'vidmm replay --verify sta', 'stamps'),
            ('a value behind =', 'vidmm replay --verify=sta', 'stamps'),
            ('a policy', 'vidmm what-if --policy cl', 'clock'),
            ('a policy where a file may be too', 'vidmm replay --policy mr', 'mru'),
            ('a rule id', f'vidmm rules {beginning}', rule),
            ('a program', 'vidmm run --serve -- sha512su', 'sha512sum'),
            ('a program behind no option', 'vidmm run -- sha512su', 'sha512sum'),
            ('a file of the program', 'vidmm run -- cat recor', 'recording'),
            ('a file', 'vidmm explain recor', 'recording'),
            ('a file for an option', 'vidmm serve --config recor', 'recording')):
        found = complete(line, folder)
        yield f'{shell} completes {what}', found == {expected}, f'{line}: {found}'


def cases():
    yield 'there are verbs', len(VERBS) > 10, VERBS
    for shell in SCRIPTS:
        yield f'the completion for {shell} has the options of --help', not missing(shell), missing(shell)
    for shell in SCRIPTS:
        if not shutil.which(shell):
            yield f'completions in {shell} # SKIP {shell} is not installed', True, ''
            continue
        with tempfile.TemporaryDirectory() as folder:
            with open(os.path.join(folder, 'recording'), 'w', encoding='utf-8'):
                pass
            yield from shell_cases(shell, folder)


def main():
    results = list(cases())
    print(f'1..{len(results)}')
    for number, (name, good, text) in enumerate(results, 1):
        if not good:
            print(f'# {text}')
        print(f'{"ok" if good else "not ok"} {number} - {name}')
    return 0 if all(good for _, good, _ in results) else 1


if __name__ == '__main__':
    sys.exit(main())
