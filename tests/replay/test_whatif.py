#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_whatif.py VIDMM: `vidmm what-if` from outside: its figures, their order, failures, files, options. TAP."""
import csv
import io
import json
import os
import shutil
import sys
import tempfile

from whatif_cases import EVERY, GLMARK, IMPORTER, TILED, TOO_LARGE, cells, run, whatif, write_changed

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test


def replay(recording, vram, policy, link, model):
    done = run('replay', recording, '--vram', vram, '--policy', policy, '--link', link, '--model', model, '--json')
    assert done.returncode == 0, done
    return json.loads(done.stdout)


@test
def figures_are_those_of_the_replays():
    report = cells(EVERY, '--vram', '1M,75%', '--policy', 'lru,mru,reference', '--link', 'pcie1x1,none', '--model', 'wddm1,wddm2')
    assert len(report['cells']) == 2 * 3 * 2 * 2
    for cell in report['cells']:
        parts = cell['policy'], cell['link'], cell['model']
        alone = replay(EVERY, '75%' if cell['vram_percent'] else '1M', *parts)
        first = replay(EVERY, '100%', 'lru', *parts[1:])
        frames = alone['frames']
        again = max(0, alone['bytes_paged_in'] - first['bytes_paged_in'])
        assert cell == {'recording': EVERY, 'policy': parts[0], 'link': parts[1], 'model': parts[2], 'vram_bytes': alone['vram_bytes'],
                        'vram_percent': alone['vram_percent'], 'vram_percent_of': alone['vram_percent_of'],
                        'bytes_paged_in': alone['bytes_paged_in'], 'bytes_paged_in_again': again, 'frames': frames['count'],
                        'late_frames': frames['late'], 'latency_p99_ns': alone['latency']['p99_ns'],
                        'longest_stall_ns': frames['longest_stall_ns'], 'slowdown_permille': alone['waits']['slowdown_permille'],
                        'status': 'clean', 'message': None, 'exit_code': 0}, (cell, alone)
    assert any(cell['bytes_paged_in_again'] > 0 for cell in report['cells'])


@test
def bytes_beyond_first_uses_by_hand():
    # Nothing is used for the first time again: with all of the memory there is nothing beyond, whatever the policy.
    report = cells(EVERY, TILED, '--vram', '2M,1M', '--policy', 'lru')
    assert [cell['bytes_paged_in_again'] for cell in report['cells'] if cell['vram_bytes'] == 2 << 20] == [0, 0]
    # With 1 MiB, buffer 2 of 1 MiB and the others displace each other: buffer 2 and 64 KiB come back.
    every = next(cell for cell in report['cells'] if cell['recording'] == EVERY and cell['vram_bytes'] == 1 << 20)
    assert every['bytes_paged_in_again'] == (1 << 20) + (64 << 10), every


@test
def the_result_does_not_depend_on_the_jobs():
    arguments = (EVERY, TILED, '--vram', '1M..2M:geometric:3,50%', '--policy', 'lru,reference', '--model', 'wddm1,wddm2')
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for jobs in '1', '2', '7':
            files = [os.path.join(folder, name + jobs) for name in ('csv', 'json')]
            done = whatif(*arguments, '--jobs', jobs, '--csv', files[0], '--json', files[1])
            results.append([done.stdout] + [open(name, encoding='utf-8').read() for name in files])
    assert results[0] == results[1] == results[2]
    assert all(len(text) > 1000 for text in results[0])


@test
def cells_are_in_the_order_of_the_command_line():
    report = cells(TILED, EVERY, '--vram', '2M,1M', '--policy', 'mru,lru', '--link', 'none,pcie3x16', '--model', 'wddm2,wddm1')
    order = [(cell['recording'], cell['vram_bytes'], cell['policy'], cell['link'], cell['model']) for cell in report['cells']]
    expected = [(recording, vram << 20, policy, link, model) for recording in (TILED, EVERY) for vram in (2, 1) for policy in ('mru', 'lru')
                for link in ('none', 'pcie3x16') for model in ('wddm2', 'wddm1')]
    assert order == expected, order
    series = [(knee['recording'], knee['policy'], knee['link'], knee['model']) for knee in report['knees']]
    assert series == [key[:1] + key[2:] for key in expected if key[1] == 2 << 20], series


@test
def all_policies_are_those_without_reference():
    def policies(text):
        return [cell['policy'] for cell in cells(EVERY, '--vram', '2M', '--policy', text)['cells']]
    assert policies('all') == ['lru', 'clock', 'mru', 'predicted']
    assert policies('all+reference') == policies('all,reference') == ['lru', 'clock', 'mru', 'predicted', 'reference']
    assert policies('reference,lru') == ['reference', 'lru']


@test
def the_knee_is_the_least_memory_in_time():
    with tempfile.NamedTemporaryFile('r', encoding='utf-8') as out:
        text = whatif(GLMARK, '--vram', '100%,10%,50%', '--policy', 'lru', '--json', out.name).stdout
        report = json.load(out)
    sizes = {cell['vram_percent']: cell for cell in report['cells']}
    late = {percent: cell['late_frames'] / cell['frames'] for percent, cell in sizes.items()}
    assert late[10] > 0.01 > late[50] > late[100], late
    assert [knee['vram_bytes'] for knee in report['knees']] == [sizes[50]['vram_bytes']], report['knees']
    assert 'knee lru, pcie3x16, wddm1: 65.0 MiB (50 %)' in text, text
    assert 'knee lru, pcie3x16, wddm1: none of these sizes' in whatif(GLMARK, '--vram', '10%', '--policy', 'lru').stdout


@test
def each_recording_is_replayed_alone():
    arguments = ('--vram', '1M', '--policy', 'lru')
    both = cells(EVERY, IMPORTER, *arguments)
    assert both['cells'] == [cells(path, *arguments)['cells'][0] for path in (EVERY, IMPORTER)]
    assert 'each recording was replayed alone' in whatif(EVERY, IMPORTER, *arguments).stdout
    assert 'alone' not in whatif(EVERY, *arguments).stdout


@test
def a_recording_that_cannot_be_read_fails_alone():
    with tempfile.TemporaryDirectory() as folder:
        bad = write_changed(os.path.join(folder, 'bad.trace'), ('1500 c 3 65536', '1500 c 3 65537'))
        # An error inside a submission is found by the replays, not by the preceding measurement.
        late = write_changed(os.path.join(folder, 'late.trace'), ('8:2+128', '8:9+128'))
        for path, code, status, err in ((bad, 3, 'bad input', bad + ':15'), (late, 3, 'bad input', 'late.trace, 1.00 MiB, lru, pcie3x16, wddm1: bad input'),
                                        (folder + '/none', 4, 'environment', 'No such file')):
            arguments = (path, EVERY, '--vram', '1M,50%', '--policy', 'lru')
            report = cells(*arguments, code=code, err=err)
            assert report['exit_code'] == code
            assert [cell['status'] for cell in report['cells']] == [status, status, 'clean', 'clean'], report
            assert path in report['cells'][0]['message'] and report['cells'][0]['bytes_paged_in'] is None
            assert report['cells'][2]['bytes_paged_in'] > 0 and report['knees'][0]['vram_bytes'] is None
            assert whatif(*arguments, code=code, err=err).stdout.count('failed: ' + status) == 2


@test
def a_program_that_does_not_fit_has_no_figures():
    with tempfile.TemporaryDirectory() as folder:
        path = write_changed(os.path.join(folder, 'large.trace'), *TOO_LARGE)
        report = cells(path, '--vram', '1M,3G', '--policy', 'lru', code=1, err='1.00 MiB, lru, pcie3x16, wddm1: findings')
        assert [cell['status'] for cell in report['cells']] == ['findings', 'clean'], report
        assert report['cells'][0]['late_frames'] is None and report['cells'][0]['message'], report
        assert report['knees'][0]['vram_bytes'] == 3 << 30


@test
def files_have_the_same_values():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'a,"b".trace')
        shutil.copy(EVERY, path)
        arguments = (path, '--vram', '1M,50%,50%largest', '--policy', 'lru,mru')
        text = whatif(*arguments, '--csv', '-').stdout
        report = cells(*arguments)
        rows = list(csv.DictReader(io.StringIO(text)))
        assert len(rows) == len(report['cells']) == 6
        for row, cell in zip(rows, report['cells']):
            percent = row.pop('vram_percent')
            assert (float(percent) if percent else None) == cell['vram_percent']
            for key, value in row.items():
                assert value == ('' if cell[key] is None else str(cell[key])), (key, row, cell)
        with open(os.path.join(folder, 'out'), 'w+', encoding='utf-8') as out:
            assert 'knee' in whatif(*arguments, '--csv', out.name).stdout
            assert out.read() == text
    whatif(EVERY, '--vram', '1M', '--policy', 'lru', '--csv', '/nonexistent/file', code=4, err='/nonexistent/file')
    whatif(EVERY, '--vram', '1M', '--policy', 'lru', '--json', '/dev/full', code=4, err='/dev/full')


@test
def wrong_usage_is_refused():
    good = ('--vram', '1M', '--policy', 'lru')
    for args in ((), (EVERY,), good, ('-', *good), (EVERY, '--vram', '1M'), (EVERY, '--policy', 'lru'), (EVERY, *good, '--bogus'),
                 (EVERY, '--vram', '64M..8G', '--policy', 'lru'), (EVERY, '--vram', '8G..64M:geometric', '--policy', 'lru'),
                 (EVERY, '--vram', '1M', '--policy', 'newest'), (EVERY, '--vram', '1M', '--policy', 'all,lru'),
                 (EVERY, '--vram', '1M', '--policy', ''), (EVERY, *good, '--link', 'agp'), (EVERY, *good, '--link', 'none,none'),
                 (EVERY, *good, '--model', 'wddm3'), (EVERY, *good, '--model', 'wddm1,wddm1'), (EVERY, *good, '--jobs', '0'),
                 (EVERY, *good, '--jobs', '1025'), (EVERY, *good, '--jobs', 'x'), (EVERY, *good, '--csv', '-', '--json', '-'),
                 (EVERY, *good, '--html', '-', '--csv', '-'), (EVERY, *good, '--svg', '-', '--html', '-')):
        done = run('what-if', *args)
        assert done.returncode == 2 and not done.stdout and 'try: vidmm what-if --help' in done.stderr, (args, done)
    assert '--vram' in whatif('--help').stdout


if __name__ == '__main__':
    sys.exit(main())
