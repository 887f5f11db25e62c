#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_whatif_state.py VIDMM: files of finished replays: runs that go on, parts of a sweep, and `vidmm merge`. TAP."""
import fcntl
import json
import os
import shutil
import signal
import subprocess
import sys

from whatif_cases import EVERY, GLMARK, TILED, TOO_LARGE, VIDMM, read, run, whatif, write_changed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

FORMS = 'csv', 'json', 'html', 'svg'
SWEEP = (EVERY, TILED, '--vram', '1M,3M,500%', '--policy', 'lru,reference', '--model', 'wddm1,wddm2', '--jobs', '1')
ROWS = 2 * 3 * 2 * 2
# 1M is 100 % of TILED; the first uses of EVERY need replays of their own.
REPLAYS = ROWS + 2


def outputs(folder, *command, code=0):
    """The table and all files that a command writes, and its messages."""
    names = {form: os.path.join(folder, 'out.' + form) for form in FORMS}
    done = run(*command, *(part for form, name in names.items() for part in ('--' + form, name)))
    assert done.returncode == code, (command, done)
    return [done.stdout] + [read(name) for name in names.values()], done.stderr


def lines_of(path):
    return [json.loads(line) for line in read(path).splitlines()]


def cells_of(path):
    return [line for line in lines_of(path) if 'cell' in line]


def rewrite(path, lines):
    with open(path, 'w', encoding='utf-8') as file:
        file.writelines(json.dumps(line) + '\n' for line in lines)


def taken(path, count=REPLAYS):
    return f'vidmm what-if: {count} of {REPLAYS} replays are in {path}\n'


def shards(folder, count, *sweep, code=0):
    paths = [os.path.join(folder, f'{part}-{count}') for part in range(1, count + 1)]
    for part, path in enumerate(paths, 1):
        done = run('what-if', *sweep, '--state', path, '--shard', f'{part}/{count}')
        assert done.returncode <= code and done.stdout.startswith(f'shard {part}/{count}: '), done
    return paths


@test
def a_later_run_takes_finished_replays(folder):
    path = os.path.join(folder, 'state')
    expected = outputs(folder, 'what-if', *SWEEP)
    assert outputs(folder, 'what-if', *SWEEP, '--state', path) == expected
    first = read(path)
    assert len(cells_of(path)) == REPLAYS
    assert outputs(folder, 'what-if', *SWEEP, '--state', path) == (expected[0], taken(path))
    assert read(path) == first
    # The figures are those of the file.
    lines = lines_of(path)
    for line in lines:
        if 'cell' in line:
            line['figures']['longest_stall_ns'] = 123456789
    rewrite(path, lines)
    assert whatif(*SWEEP, '--state', path, err=taken(path)).stdout.count(' 123 ms ') == ROWS


@test
def another_sweep_takes_what_is_the_same(folder):
    path = os.path.join(folder, 'state')
    whatif(EVERY, '--vram', '1M', '--policy', 'lru', '--state', path)
    count = len(cells_of(path))
    more = (EVERY, '--vram', '1M,2M', '--policy', 'lru,mru')
    done = whatif(*more, '--state', path, err=f'2 of 4 replays are in {path}')
    assert count == 2 and done.stdout == whatif(*more).stdout and len(cells_of(path)) == 4
    # `merge` has the last sweep.
    assert run('merge', path).stdout == done.stdout


@test
def a_torn_last_line_counts_as_not_there(folder):
    path = os.path.join(folder, 'state')
    expected = whatif(*SWEEP, '--state', path).stdout
    whole = read(path)
    last = whole.rindex('\n', 0, -1) + 1
    header = whole.index('\n') + 1
    for cut in (0, 1, header // 2, header - 1, header, header + 5, last - 1, last, last + 1, (last + len(whole)) // 2, len(whole) - 1):
        with open(path, 'w', encoding='utf-8') as file:
            file.write(whole[:cut])
        done = run('what-if', *SWEEP, '--state', path)
        assert done.returncode == 0 and done.stdout == expected, (cut, done)
        assert read(path) == whole, cut
    # `merge` says what is missing.
    with open(path, 'w', encoding='utf-8') as file:
        file.write(whole[:-1])
    done = run('merge', path)
    assert done.returncode == 3 and done.stderr.count('missing') == 1, done


@test
def a_run_that_was_killed_goes_on(folder):
    path = os.path.join(folder, 'state')
    sweep = (GLMARK, '--vram', '32M,64M', '--policy', 'lru,predicted', '--jobs', '2')
    with subprocess.Popen([VIDMM, 'what-if', *sweep, '--state', path], stdout=subprocess.DEVNULL) as running:
        while running.poll() is None and (not os.path.exists(path) or read(path).count('\n') < 3):
            os.sched_yield()
        running.send_signal(signal.SIGKILL)
    # Where this test was slow the run may have ended before it was killed.
    assert running.returncode in (-signal.SIGKILL, 0), running.returncode
    finished = read(path).count('\n') - 2
    assert 1 <= finished <= 5, finished
    done = whatif(*sweep, '--state', path, err=f'{finished} of 5 replays are in {path}')
    assert done.stdout == whatif(*sweep).stdout and len(cells_of(path)) == 5


@test
def another_file_is_refused_and_kept(folder):
    path = os.path.join(folder, 'state')
    sweep = (EVERY, '--vram', '1M', '--policy', 'lru')
    whatif(*sweep, '--state', path)
    header, request, cell, *_ = lines_of(path)
    bad = {**cell, 'exit_code': 1}
    no_figure = {**cell, 'figures': {**cell['figures'], 'frames': '1'}}
    negative = {**cell, 'figures': {**cell['figures'], 'frames': -1}}
    more = {**cell, 'seed': 1}
    for number, lines in ((1, [{**header, 'format': 'other'}]), (1, [{**header, 'format_version': 2}, request]),
                          (1, [{**header, 'vidmm_version': '0.0.1'}, request]), (1, [cell]), (2, [header, bad]), (2, [header, negative]), (3, [header, request, no_figure]),
                          (4, [header, request, cell, more]), (2, [header, {'note': 1}]), (2, [header, [1]])):
        rewrite(path, lines)
        text = read(path)
        for command in ('what-if', *sweep, '--state', path), ('merge', path):
            done = run(*command)
            assert done.returncode == 3 and f'{path}:{number}: ' in done.stderr and not done.stdout, (lines, done)
            assert read(path) == text
    for content, number in ((b'no JSON\n', 1), (b'text without an end of line', 1), (b'\0\n', 1), (json.dumps(header).encode() + b'\n{"cell"\n', 2)):
        with open(path, 'wb') as file:
            file.write(content)
        done = whatif(*sweep, '--state', path, code=3, err=f'{path}:{number}: ')
        with open(path, 'rb') as file:
            assert not done.stdout and file.read() == content
    shutil.copy(GLMARK, path)
    whatif(*sweep, '--state', path, code=3, err=f'{path}:1: this is no file of `vidmm what-if --state`')


@test
def a_file_that_cannot_be_written_is_an_error(folder):
    sweep = (EVERY, '--vram', '1M,2M', '--policy', 'lru')
    for path, text in (('/dev/full', 'not a regular file'), (folder, 'Is a directory'), (folder + '/none/file', 'No such file'), ('', 'No such file')):
        done = whatif(*sweep, '--state', path, code=4, err=f'vidmm what-if: {path}: {text}')
        assert not done.stdout


@test
def a_full_disk_is_an_error_at_the_end(folder):
    path = os.path.join(folder, 'state')
    sweep = (EVERY, '--vram', '1M,2M', '--policy', 'lru', '--jobs', '1')
    expected = whatif(*sweep, '--state', path).stdout
    header, request, *cells = lines_of(path)
    # A page that has room for one cell and a part of the second.
    rewrite(path, [header, {'sweep': ''}, request])
    room = len(json.dumps(cells[0], separators=(',', ':'))) + 100
    rewrite(path, [header, {'sweep': ' ' * (4096 - os.path.getsize(path) - room)}, request])
    small = os.path.join(folder, 'small')
    os.mkdir(small)
    # As root of a namespace of its own: a file system of one page.
    script = 'mount -t tmpfs -o size=4k none "$1" && cp "$2" "$1" && small=$1 && shift 2 && { "$@"; echo "exit code $?"; cat "$small/state" >&2; }'
    done = subprocess.run(['unshare', '-Urm', 'sh', '-c', script, 'sh', small, path, VIDMM, 'what-if', *sweep, '--state', os.path.join(small, 'state')],
                          capture_output=True, text=True, check=False)
    if 'exit code' not in done.stdout:
        return 'no file system can be mounted here'
    assert done.stdout == expected + 'exit code 4\n', done
    assert 'small/state: No space left on device: not all finished replays are in this file\n' in done.stderr, done
    with open(path, 'w', encoding='utf-8') as file:
        file.write(done.stderr[done.stderr.index('{"format'):])
    assert os.path.getsize(path) == 4096
    assert whatif(*sweep, '--state', path, err='1 of 2 replays').stdout == expected and len(cells_of(path)) == 2
    return None


@test
def one_process_at_a_time_writes_to_a_file(folder):
    path = os.path.join(folder, 'state')
    with open(path, 'w', encoding='utf-8') as file:
        fcntl.lockf(file, fcntl.LOCK_EX)
        whatif(EVERY, '--vram', '1M', '--policy', 'lru', '--state', path, code=4, err='another process writes to this file')
    whatif(EVERY, '--vram', '1M', '--policy', 'lru', '--state', path)


@test
def a_recording_with_other_content_is_replayed(folder):
    path, recording = (os.path.join(folder, name) for name in ('state', 'a.trace'))
    sweep = (recording, '--vram', '1M', '--policy', 'lru')
    shutil.copy(EVERY, recording)
    whatif(*sweep, '--state', path)
    # As long, and with the same times of the file.
    write_changed(recording, ('8:2+128', '8:9+128'))
    os.utime(recording, (0, 0))
    whatif(*sweep, '--state', path, code=3, err='bad input')
    write_changed(recording)
    whatif(*sweep, '--state', path, err='2 of 2 replays')
    # A name that JSON cannot have.
    name = os.fsencode(folder) + b'/\xff.trace'
    shutil.copy(EVERY, name)
    done = run('what-if', name, '--vram', '1M', '--policy', 'lru', '--state', path)
    assert done.returncode == 4 and 'not UTF-8' in done.stderr and not done.stdout, done


@test
def what_the_machine_made_fail_is_replayed(folder):
    path, large = (os.path.join(folder, name) for name in ('state', 'large.trace'))
    sweep = (write_changed(large, *TOO_LARGE), '--vram', '1M,3G', '--policy', 'lru')
    done = whatif(*sweep, '--state', path, code=1, err='1.00 MiB, lru, pcie3x16, wddm1: findings')
    again = whatif(*sweep, '--state', path, code=1, err=f'3 of 3 replays are in {path}\n' + done.stderr)
    assert again.stdout == done.stdout
    lines = lines_of(path)
    for line in lines:
        if line.get('exit_code') == 1:
            line.update(status='signal 9', exit_code=4, message=None)
    rewrite(path, lines)
    crashed = run('merge', path)
    assert crashed.returncode == 4 and 'failed: signal 9' in crashed.stdout, crashed
    assert whatif(*sweep, '--state', path, code=1, err=f'2 of 3 replays are in {path}').stdout == done.stdout
    # The later line, which is no failure of the machine, counts.
    merged = run('merge', path)
    assert (merged.returncode, merged.stdout) == (1, done.stdout) and len(cells_of(path)) == 4


@test
def merged_shards_are_the_result_of_one_run(folder):
    bad = write_changed(os.path.join(folder, 'bad.trace'), ('1500 c 3 65536', '1500 c 3 65537'))
    late = write_changed(os.path.join(folder, 'late.trace'), ('8:2+128', '8:9+128'))
    sweep = (bad, *SWEEP, late)
    expected, messages = outputs(folder, 'what-if', *sweep, code=3)
    for count in 1, 3, 50:
        paths = shards(folder, count, *sweep, code=3)
        merged, errors = outputs(folder, 'merge', *reversed(paths), code=3)
        assert merged == expected, count
        assert errors == messages.replace('vidmm what-if: ', 'vidmm merge: ') and 'bad.trace:15' in errors, errors


@test
def shards_divide_the_replays_evenly(folder):
    paths = shards(folder, 5, *SWEEP)
    keys = [json.dumps(line['cell'], sort_keys=True) for path in paths for line in cells_of(path)]
    assert len(keys) == len(set(keys)) == REPLAYS
    assert {len(cells_of(path)) for path in paths} == {REPLAYS // 5, REPLAYS // 5 + 1}
    # A shard that is run again has nothing to do.
    before = read(paths[0])
    done = whatif(*SWEEP, '--state', paths[0], '--shard', '1/5', err=f'{len(cells_of(paths[0]))} of {REPLAYS} replays')
    assert done.stdout.startswith('shard 1/5: ') and read(paths[0]) == before


@test
def missing_replays_are_listed(folder):
    paths = shards(folder, 3, *SWEEP)
    there = len(cells_of(paths[0])) + len(cells_of(paths[2]))
    done = run('merge', paths[0], paths[2])
    assert done.returncode == 3 and done.stderr.count(': missing\n') == REPLAYS - there > 0, done
    assert 'failed: missing' in done.stdout
    report = json.loads(run('merge', paths[0], '--json', '-').stdout)
    missing = [cell for cell in report['cells'] if cell['status'] == 'missing']
    assert missing and all(cell['frames'] is None and cell['exit_code'] == 3 for cell in missing) and report['exit_code'] == 3
    assert run('merge', *paths).returncode == 0


@test
def replays_in_two_files_must_agree(folder):
    paths = shards(folder, 2, *SWEEP)
    assert run('merge', *paths, paths[0]).stdout == run('merge', *paths).stdout == whatif(*SWEEP).stdout
    lines = lines_of(paths[0])
    lines[2]['figures']['frames'] += 1
    other = os.path.join(folder, 'other')
    rewrite(other, lines)
    done = run('merge', *paths, other)
    assert done.returncode == 3 and not done.stdout, done
    assert f'{other}:3: this replay has another outcome in {paths[0]}:3' in done.stderr, done


@test
def merge_refuses_what_is_no_sweep(folder):
    paths = shards(folder, 2, *SWEEP)
    other = os.path.join(folder, 'other')
    whatif(EVERY, '--vram', '1M', '--policy', 'lru', '--state', other)
    done = run('merge', paths[0], other)
    assert done.returncode == 3 and f'{other}:2: not the same sweep as in {paths[0]}:2' in done.stderr and not done.stdout, done
    header, request, *rest = lines_of(other)
    for sweep, text in ((None, 'no sweep'), ({**request['sweep'], 'policy': 'newest'}, 'policy "newest" is not valid'),
                        ({**request['sweep'], 'recordings': []}, 'no recordings'), ({**request['sweep'], 'jobs': 1}, 'jobs'),
                        ({**request['sweep'], 'recordings': [{'path': 'a'}]}, 'content'), ({'vram': '1M'}, 'policy')):
        rewrite(other, [header] + ([{'sweep': sweep}] if sweep else []) + rest)
        done = run('merge', other)
        assert done.returncode == 3 and text in done.stderr and not done.stdout, (text, done)
    done = run('merge', folder + '/none')
    assert done.returncode == 4 and 'No such file' in done.stderr, done
    for args in ((), (paths[0], '--bogus'), (paths[0], '--csv', '-', '--svg', '-')):
        done = run('merge', *args)
        assert done.returncode == 2 and 'try: vidmm merge --help' in done.stderr and not done.stdout, done
    assert '--html' in run('merge', '--help').stdout
    for form in FORMS:
        done = run('merge', *paths, '--' + form, '/dev/full')
        assert done.returncode == 4 and 'vidmm merge: /dev/full: No space left' in done.stderr, done


@test
def wrong_shards_are_refused(folder):
    path = os.path.join(folder, 'state')
    good = (EVERY, '--vram', '1M', '--policy', 'lru')
    for text in '0/3', '4/3', '1', '1/', '/3', '', '1/3/2', '+1/3', '01/3', '1/0x3', '1/10000', '1/3 ', '-1/3', '1/0':
        done = run('what-if', *good, '--state', path, '--shard', text)
        assert done.returncode == 2 and f'--shard "{text}" is not valid' in done.stderr and not done.stdout, (text, done)
    for more in ('--shard', '1/2'), ('--shard', '1/2', '--state', path, '--csv', '-'), ('--shard', '1/2', '--state', path, '--html', path + '.html'):
        done = run('what-if', *good, *more)
        assert done.returncode == 2 and '--shard' in done.stderr and not done.stdout, (more, done)
    assert not os.path.exists(path)
    with open('/dev/full', 'w', encoding='utf-8') as full:
        done = subprocess.run([VIDMM, 'what-if', *good, '--shard', '1/1', '--state', path], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 4 and 'standard output' in done.stderr, done


@test
def gnu_parallel_runs_the_shards(folder):
    if not shutil.which('parallel') or 'GNU parallel' not in run_text('parallel', '--version'):
        return 'GNU parallel is not installed'
    run_text('parallel', '--will-cite', '--jobs', '2', VIDMM, 'what-if', *SWEEP, '--shard', '{}/3', '--state', os.path.join(folder, 'part{}'), ':::',
             '1', '2', '3')
    merged = run('merge', *(os.path.join(folder, f'part{part}') for part in (1, 2, 3)))
    assert merged.returncode == 0 and merged.stdout == whatif(*SWEEP).stdout, merged
    return None


def run_text(*command):
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


if __name__ == '__main__':
    sys.exit(main())
