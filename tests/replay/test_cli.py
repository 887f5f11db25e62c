#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_cli.py VIDMM: the program from outside. Exit codes, what goes where, JSON, options. TAP."""
import json
import os
import pty
import re
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = sys.argv[1]
DATA = os.path.join(os.path.dirname(os.path.abspath(__file__)), 'data')
EVERY = os.path.join(DATA, 'every-op.trace')
TILED = os.path.join(DATA, 'tiled.trace')
IMPORTER = os.path.join(DATA, 'importer.trace')
KEYS = set('''schema_version vidmm_version traces model driver commands policy backend seed switch_per_1024 gpu_time verify vram_bytes vram_percent
    vram_percent_of aperture_bytes events submissions references relocations renders extra_renders patches splits bytes_paged_in paged_in evicted thrash
    bytes_paged_out bytes_filled bytes_discarded bytes_moved evictions offers reclaims discarded bytes_written renames waits_avoided
    driver_trimmed driver_over_budget ranges_acquired ranges_reclaimed range_fallbacks lock_waits lock_wait_ns peak_live_bytes peak_resident_bytes peak_system_bytes blocks_checked verify_errors finding_count
    virtual_ns wall_ns refusal latency process_latency pace link_bytes_per_us link_latency_ns link_passes cpu_costs_ns content frames process_frames waits process_waits paging_engine segments lost findings event_hash status exit_code'''.split())


def run(*args, env=None, text=None):
    full = dict(os.environ, **(env or {}))
    return subprocess.run([VIDMM, *args], capture_output=True, text=True, env=full, input=text)


def replay(*args, **more):
    return run('replay', *args, **more)


def expect(done, code, out='', err=''):
    assert done.returncode == code, (done.returncode, done.stdout, done.stderr)
    assert out in done.stdout, done.stdout
    assert err in done.stderr, done.stderr
    return done


@test
def exit_code_0_for_a_clean_replay():
    done = expect(replay(EVERY, '--verify', 'stamps'), 0, out='correct')
    assert done.stderr == '', done.stderr


@test
def the_driver_of_wddm2_replays_too():
    done = expect(replay(EVERY, '--model', 'wddm2', '--vram', '4M', '--verify', 'full'), 0, out='WDDM 2.x')
    assert 'trimmed by driver' in done.stdout and done.stderr == '', done
    assert 'trimmed by driver' not in expect(replay(EVERY), 0, out='WDDM 1.x').stdout
    result = json.loads(expect(replay(EVERY, '--model', 'wddm2', '--vram', '4M', '--json'), 0).stdout)
    assert result['model'] == 'wddm2' and result['patches'] == 0 and result['driver_over_budget'] == 0, result
    for wrong in (['--aperture', 'none'], ['--ranges', '3'], ['--connect']):
        expect(replay(EVERY, '--model', 'wddm2', *wrong), 2)
    expect(replay(EVERY, '--model', 'wddm3'), 2, err='wddm1 or wddm2')


@test
def a_policy_orders_evictions_and_is_named_in_json():
    hashes = {}
    for name in ('lru', 'clock', 'mru', 'predicted', 'reference'):
        arguments = (EVERY, '--policy', name, '--vram', '1M', '--verify', 'full', '--json')
        result = json.loads(expect(replay(*arguments), 0).stdout)
        assert result['policy'] == name and result['verify_errors'] == 0, result
        hashes[name] = result['event_hash']
        assert json.loads(replay(*arguments).stdout)['event_hash'] == hashes[name]
    default = json.loads(expect(replay(EVERY, '--vram', '1M', '--verify', 'full', '--json'), 0).stdout)
    assert hashes[default['policy']] == default['event_hash'], (hashes, default)
    assert len(set(hashes.values())) > 1, hashes


@test
def a_wrong_policy_is_refused_with_the_names():
    for wrong in ('', 'newest', 'LRU'):
        done = expect(replay(EVERY, '--policy', wrong), 2, err='lru, clock, mru, predicted or reference')
        assert not done.stdout, done
    expect(replay(EVERY, '--policy', 'reference', '--backend', 'linux'), 2, err='--backend sim')
    expect(replay(EVERY, '--policy', 'lru', '--connect'), 2)
    expect(replay('-', '--policy', 'reference', '--vram', '4M'), 2, err='must be a file')


@test
def q_300_the_eviction_policy_is_a_setting_of_an_adapter():
    for right in ('lru', 'clock', 'mru', 'predicted', '0', '3'):
        expect(run('caps', '--quiet', '--set', 'VidmmEvictionPolicy=' + right), 0)
    expect(run('caps', '--set', 'VidmmEvictionPolicy=newest'), 2, err='lru, clock, mru or predicted')
    expect(run('caps', '--set', 'VidmmEvictionPolicy=reference'), 2, err='lru, clock, mru or predicted')
    done = expect(run('caps', '--set', 'VidmmEvictionPolicy=4'), 1)
    assert 'Q-300' in done.stdout and '3 predicted' in done.stdout, done
    expect(run('serve', '--set', 'VidmmEvictionPolicy=newest', '--driver', 'softgpu'), 2, err='lru, clock, mru or predicted')
    with tempfile.NamedTemporaryFile('w', suffix='.json') as f:
        f.write('{"adapters": [{"bars": ["16M"], "settings": {"VidmmEvictionPolicy": "newest"}}]}')
        f.flush()
        expect(run('serve', '--config', f.name), 3, err='lru, clock, mru or predicted')


HEADER = '#gemtrace 1\n#program big\n#note -\n#driver -\n#chipset 1 -\n#date -\n#t0 0\n#model base_ns=1000000000 bytes_per_ns=1\n#wtrack 1\n'
MIB = 1 << 20


def recording(folder, *events, name='big.trace'):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(HEADER + ''.join(event + '\n' for event in events) + f'#end {len(events)}\n')
    return path


@test
def q_490_live_buffers_beyond_the_limit_of_memory_are_refused_with_their_line():
    with tempfile.TemporaryDirectory() as folder:
        path = recording(folder, f'0 c 1 {MIB}', '1 d 1', f'2 c 2 {MIB}', f'3 c 3 {MIB}', f'4 w 3 0 {MIB} p')
        for more in ((), ('--vram', '1M'), ('--content', 'none'), ('--json',), ('--model', 'wddm2')):
            done = expect(replay(path, '--memory', '2047K', *more), 3, err=f'{path}:13: Q-490: live buffers take 2.0 MiB')
            assert done.stdout == '' and '(--memory)' in done.stderr, done
        expect(replay(path, '--memory', '2M'), 0)
        # The limit is for all programs together: the second one passes it.
        other = recording(folder, f'5 c 1 {MIB}', name='other.trace')
        expect(replay(path, other, '--memory', '2M'), 3, err=f'{other}:10: Q-490')
        # What is created and never used counts; no memory is taken for it.
        huge = recording(folder, *(f'{i} c {i} {1 << 40}' for i in (1, 2)), name='huge.trace')
        expect(replay(huge, '--vram', '1M'), 3, err=f'{huge}:10: Q-490')
        expect(replay(huge, '--vram', '1M', '--memory', 'none'), 0)


@test
def q_490_instances_and_closed_buffers_beyond_the_limit_of_memory_are_refused():
    with tempfile.TemporaryDirectory() as folder:
        # The GPU needs a second for each submission: a written buffer is renamed, a closed one stays.
        renames, closes = [f'0 c 1 {MIB}'], []
        for i in range(1, 9):
            renames += [f'{i} w 1 0 {MIB} p', f'{i} x {i} 0 0 0 0 64 1 0 1w']
            closes += [f'{i} c {i} {MIB}', f'{i} w {i} 0 {MIB} p', f'{i} x {i} 0 0 0 0 64 1 0 {i}w', f'{i} d {i}']
        for name, events in (('renames', renames), ('closes', closes)):
            path = recording(folder, *events, name=name)
            done = expect(replay(path, '--vram', '8M', '--memory', '5M'), 3, err=': Q-490: live buffers, renamed instances and closed buffers')
            # The event took at most its buffer twice, beside the DMA buffers.
            assert float(re.search(r'take ([\d.]+) MiB', done.stderr)[1]) < 8, done.stderr
            expect(replay(path, '--vram', '8M', '--memory', '32M'), 0)


@test
def q_490_a_wrong_limit_of_memory_is_refused():
    for wrong in ('', '0', '50%', 'all'):
        expect(replay(EVERY, '--memory', wrong), 2, err='expected a size, or none')
    expect(replay(EVERY, '--memory', '1G', '--connect'), 2, err='the host')


def tiled(ranges, trace=TILED):
    result = json.loads(expect(replay(trace, '--vram', '1M', '--ranges', ranges, '--verify', 'full', '--json'), 0).stdout)
    assert result['verify_errors'] == 0 and result['blocks_checked'] > 60, result
    return [result[key] for key in ('ranges_acquired', 'ranges_reclaimed', 'range_fallbacks', 'renames', 'waits_avoided')]


@test
def tiled_buffers_go_through_swizzling_ranges():
    # Two tiled buffers, six accesses. An allocation keeps its range, so each needs one, and the instance of a rename a third.
    # The GPU finds in the tiles what the CPU wrote through the range.
    assert tiled('64') == [3, 0, 0, 2, 2], tiled('64')
    # The only range is reclaimed for each access of the other buffer.
    assert tiled('1') == [6, 5, 0, 2, 2], tiled('1')
    # Without ranges the content is unswizzled into system memory, and swizzled again before the GPU uses it.
    assert tiled('0') == [0, 0, 5, 2, 2], tiled('0')
    # The mapping type in the recording makes no difference.
    with tempfile.NamedTemporaryFile('w', suffix='.trace') as f:
        f.write(open(TILED).read().replace(' gtt', ' wc'))
        f.flush()
        assert tiled('64', f.name) == [3, 0, 0, 2, 2], tiled('64', f.name)


@test
def the_summary_counts_the_results_of_locks():
    text = expect(replay(TILED, '--vram', '1M', '--ranges', '1', '--verify', 'full'), 0).stdout.splitlines()
    for line in ('renames 2', 'waits avoided 2 renamed while the GPU used the previous instance', 'ranges acquired 6 5 of them taken from other allocations',
                 'range fallbacks 0'):
        assert any(shown.split() == line.split() for shown in text), (line, text)
    text = expect(replay(TILED, '--vram', '1M', '--ranges', '0'), 0).stdout.splitlines()
    for line in ('ranges acquired 0', 'range fallbacks 5 unswizzled into system memory instead'):
        assert any(shown.split() == line.split() for shown in text), (line, text)
    # The columns of a comparison contain numbers only.
    text = expect(replay(TILED, '--compare', '1M,2M', '--ranges', '1'), 0).stdout.splitlines()
    for line in ('renames 2 2', 'waits avoided 2 2', 'ranges acquired 6 6', 'range fallbacks 0 0'):
        assert any(shown.split() == line.split() for shown in text), (line, text)


@test
def exit_code_1_for_a_program_that_does_not_fit():
    with tempfile.NamedTemporaryFile('w', suffix='.trace') as f:
        f.write(open(EVERY).read().replace('1048576', '268435456').replace('400000 e 2 88\n', '')
                .replace('#end 45', '#end 44'))
        f.flush()
        expect(replay(f.name, '--vram', '1M', '--aperture', '1M'), 1, err='vidmm: ')


@test
def exit_code_2_for_wrong_usage():
    for args in ((), ('bogus',), ('replay',), ('replay', '--bogus', EVERY), ('replay', '--vram', 'much', EVERY),
                 ('replay', '--vram', '0', EVERY), ('replay', '--verify', 'all', EVERY),
                 ('replay', '--seed', 'x', EVERY), ('replay', '--ranges', 'all', EVERY), ('replay', '--switch', '1025', EVERY),
                 ('replay', '--color', 'red', EVERY), ('replay', '--backend', 'win', EVERY),
                 ('replay', '--link', 'agp', EVERY), ('replay', '--pace', 'fast', EVERY), ('replay', '--paging-engine', 'none', EVERY),
                 ('replay', '--gpu-time', 'none', '--link', 'pcie3x16', EVERY), ('replay', '--gpu-time', 'none', '--pace', 'recorded', EVERY),
                 ('replay', '--compare', '', EVERY), ('replay', '--compare', '50%,,25%', EVERY), ('replay', '--compare', '50,25', EVERY),
                 ('replay', '--vram', '1T', EVERY), ('replay', '--aperture', '2T', EVERY), ('replay', '--compare', '1M,1T', EVERY),
                 ('replay', '--vram', '50', EVERY), ('picture', '--foo'), ('explain', '--foo'), ('explain', EVERY, 'banana'), ('explain', EVERY, ''), ('picture',), ('explain', 'a', '1', '2'), ('replay', '--compare', '1M,', '--vram', '1M', EVERY),
                 ('replay', '--compare', '1M,2M', '--events', '/dev/null', EVERY), ('replay', '-'),
                 ('what-if', '--vram', '50', '--policy', 'lru', EVERY), ('what-if', '--vram', '1T', '--policy', 'lru', EVERY), ('rules', 'NOSUCH-01'), ('rules', '-x')):
        done = expect(run(*args), 2)
        assert done.stderr and not done.stdout, (args, done)


@test
def exit_code_3_names_file_and_line():
    with tempfile.NamedTemporaryFile('w', suffix='.trace') as f:
        f.write(open(EVERY).read().replace('1500 c 3 65536', '1500 c 3 65537'))
        f.flush()
        done = expect(replay(f.name), 3, err='%s:15: buffer size 65537 is not a number of pages' % f.name)
        assert done.stdout == '', done.stdout
        # An error inside a submission is found by the replay, not by the preceding measurement.
        f.seek(0)
        f.truncate()
        f.write(open(EVERY).read().replace('8:2+128', '8:9+128'))
        f.flush()
        expect(replay(f.name), 3, err='%s:24: relocation 8:9+128' % f.name)


@test
def exit_code_4_for_missing_resources():
    expect(replay('/nonexistent.trace'), 4, err='/nonexistent.trace:1: cannot be opened: No such file')
    expect(replay(EVERY, '--events', '/nonexistent/file'), 4, err='/nonexistent/file')
    expect(replay('-q', EVERY, '--events', '/dev/full'), 4, err='/dev/full: No space left on device')
    sweep = ['what-if', EVERY, '--vram', '100%', '--policy', 'lru']
    for verb in (['rules'], ['rules', '--help'], ['--help'], ['replay', EVERY], ['replay', EVERY, '--json'], ['caps'],
                 ['caps', '--json'], ['picture', '-'], sweep, sweep + ['--csv', '-'], sweep + ['--json', '-']):
        with open('/dev/full', 'w') as full:
            done = subprocess.run([VIDMM, *verb], stdout=full, stderr=subprocess.PIPE, text=True)
        assert done.returncode == 4 and done.stderr.startswith('vidmm: standard output'), (verb, done)
        assert len(done.stderr.splitlines()) == 1, (verb, done)


@test
def help_and_version_go_to_stdout():
    expect(run('--help'), 0, out='replay TRACE')
    expect(run('--version'), 0, out='vidmm ')
    done = expect(replay('--help'), 0, out='--verify')
    assert '--parse-only' not in done.stdout
    for verb in 'rules', 'picture':
        expect(run(verb, '--help'), 0, out='usage: vidmm ' + verb)
    expect(run('explain', '--help'), 0, out='Usage: vidmm explain')
    with tempfile.TemporaryDirectory() as folder:
        for option in '--help', '--foo':
            subprocess.run([os.path.abspath(VIDMM), 'picture', option], cwd=folder, capture_output=True)
        assert not os.listdir(folder)


@test
def rules_explain_one_a_family_or_all():
    expect(run('rules', 'lock-07'), 0, out='ReadOnly together with WriteOnly')
    family = expect(run('rules', 'LOCK'), 0, out='LOCK-07')
    assert all(line.startswith('LOCK-') for line in family.stdout.splitlines())
    assert len(run('rules').stdout.splitlines()) > 200


def on_terminal(columns, *args):
    """What the program prints on a terminal. The test keeps the terminal open, because the kernel may drop what was not
    read when the last process closes it."""
    end = b'\0'
    screen, terminal = pty.openpty()
    with subprocess.Popen([VIDMM, *args], stdin=terminal, stdout=terminal, stderr=terminal, env=dict(os.environ, COLUMNS=str(columns))) as process:
        waiter = threading.Thread(target=lambda: (process.wait(), os.write(terminal, end)))
        waiter.start()
        text = b''
        while not text.endswith(end):
            text += os.read(screen, 65536)
        waiter.join()
    os.close(screen)
    os.close(terminal)
    assert process.returncode == 0
    return text[:-1].decode().replace('\r\n', '\n').splitlines()


@test
def rules_are_cut_on_a_terminal_and_whole_elsewhere():
    whole = run('rules').stdout.splitlines()
    for columns in 60, 100:
        shown = on_terminal(columns, 'rules')
        cut = [(short, line) for short, line in zip(shown, whole) if short != line]
        assert len(shown) == len(whole) and cut and max(map(len, shown)) <= columns < max(map(len, whole))
        assert all(short.endswith(' ...') and line.startswith(short[:-4] + ' ') for short, line in cut)
    assert not any(line.endswith('...') for line in whole)


@test
def json_has_its_keys_and_plain_integers():
    done = expect(replay(EVERY, IMPORTER, '--json', '--verify', 'full', '--vram', '2M', '--seed', '5'), 0)
    report = json.loads(done.stdout)
    assert set(report) == KEYS, set(report) ^ KEYS
    assert report['vram_bytes'] == 2 << 20 and report['vram_percent'] is None and report['seed'] == 5
    assert report['submissions'] == 7 and report['references'] == 16 and report['relocations'] == 8
    assert report['exit_code'] == 0 and report['status'] == 'clean' and report['findings'] == []
    assert [t['program'] for t in report['traces']] == ['every-op', 'importer']
    assert all(isinstance(report[k], int) for k in KEYS if k.endswith(('_bytes', '_ns', 's')) and k not in (
        'traces', 'commands', 'segments', 'findings', 'status', 'frames', 'process_frames', 'waits', 'process_waits', 'cpu_costs_ns', 'thrash'))
    assert report['lost']['unmatched_imports'] == 2


@test
def latency_follows_the_link():
    reports = {link: json.loads(replay(EVERY, '--json', '--link', link).stdout) for link in ('none', 'pcie3x16', 'pcie1x1')}
    assert reports['none']['link_bytes_per_us'] is None and reports['pcie3x16']['link_bytes_per_us'] == 13868
    assert json.loads(replay(EVERY, '--json').stdout)['event_hash'] == reports['pcie3x16']['event_hash']
    for report in reports.values():
        assert report['latency']['count'] > 0 and report['process_latency'] == [report['latency']]
        assert 0 < report['latency']['p50_ns'] <= report['latency']['p95_ns'] <= report['latency']['p99_ns'] <= report['latency']['max_ns']
    assert reports['pcie1x1']['latency']['max_ns'] > 2 * reports['none']['latency']['max_ns']
    expect(replay(EVERY), 0, out='latency p99')
    report = json.loads(replay(EVERY, '--json', '--gpu-time', 'none').stdout)
    assert report['latency'] is None and report['process_latency'] == [None] and report['pace'] == 'flat-out'
    assert 'latency' not in replay(EVERY, '--gpu-time', 'none').stdout


CAUSES = 'capacity', 'fragmentation', 'lock', 'trim', 'other'


def q_320_q_321_expect_sums(report):
    """First uses and the causes add up to the bytes paged in, the causes and the aperture to the evictions."""
    into, out = report['paged_in'], report['evicted']
    assert into['first'] + into['again'] == report['bytes_paged_in'], report
    assert sum(into['again_' + cause] for cause in CAUSES) == into['again'], into
    assert out['video_memory'] + out['aperture'] == report['evictions'], report
    assert sum(out[cause] for cause in CAUSES) == out['video_memory'], out


@test
def q_320_q_321_paging_is_divided_by_cause():
    for args in [EVERY], [TILED, '--ranges', '0'], [EVERY, IMPORTER, '--backend', 'linux'], [EVERY, '--model', 'wddm2']:
        for vram in '64M', '1M':
            report = json.loads(expect(replay(*args, '--vram', vram, '--json'), 0).stdout)
            q_320_q_321_expect_sums(report)
    # Everything fits: each buffer comes in once, if at all.
    report = json.loads(replay(EVERY, '--vram', '64M', '--json').stdout)
    assert report['paged_in']['first'] == report['bytes_paged_in'] > 0 and report['thrash'] == [], report
    # Little fits, and locks without swizzling ranges copy content out.
    report = json.loads(replay(EVERY, '--vram', '1M', '--json').stdout)
    assert report['paged_in']['again'] > 0 and report['evicted']['capacity'] > 0, report
    report = json.loads(replay(TILED, '--vram', '1M', '--ranges', '0', '--json').stdout)
    assert report['paged_in']['again_lock'] > 0, report['paged_in']


def loop(buffers, rounds):
    """A recording of one process that uses the buffers of 256 KiB one after the other."""
    events = [f'0 c {i} 262144' for i in range(1, buffers + 1)] + [f'0 w {i} 0 262144 p' for i in range(1, buffers + 1)]
    events += [f'{n}000000 x {n} 0 1 0 0 0 1 0 {(n - 1) % buffers + 1}' for n in range(1, rounds * buffers + 1)]
    header = open(EVERY).read().split('1000 c')[0]
    return header + ''.join(event + '\n' for event in events) + f'#end {len(events)}\n'


def misses(uses, slots, worst):
    """How often a buffer comes in again if WORST picks the victim among those resident."""
    resident, seen, again = [], set(), 0  # least recently used first
    for at, buffer in enumerate(uses):
        if buffer in resident:
            resident.remove(buffer)
        else:
            again += buffer in seen
            if len(resident) == slots:
                resident.remove(worst(resident, uses[at + 1:]))
        resident.append(buffer)
        seen.add(buffer)
    return again


@test
def a_policy_is_counted_by_bytes_alone():
    uses = [n % 6 for n in range(240)]
    worst = {'lru': lambda resident, later: resident[0], 'mru': lambda resident, later: resident[-1],
             'reference': lambda resident, later: max(resident, key=lambda b: later.index(b) if b in later else len(later))}
    found = {}
    with tempfile.NamedTemporaryFile('w', suffix='.trace') as f:
        f.write(loop(6, 40))
        f.flush()
        for policy in 'lru', 'mru', 'predicted', 'reference':
            report = json.loads(expect(replay(f.name, '--vram', '1M', '--by-bytes', '--json', '--policy', policy), 0).stdout)
            found[policy] = report['paged_in']['again_by_bytes']
        text = replay(f.name, '--vram', '1M', '--by-bytes').stdout
    for policy in worst:
        assert found[policy] == misses(uses, 4, worst[policy]) << 18, (policy, found)
    assert found['reference'] <= found['predicted'] <= found['reference'] * 1.2 < found['lru'], found
    assert 'again by bytes alone' in text, text
    # A buffer that the program gives up costs nothing when it comes in again; one submission may be larger than the memory.
    events = ['0 c 1 1048576', '0 c 2 1048576', '0 x 1 0 1 0 0 0 1 0 1', '1 a 1 0', '2 x 2 0 1 0 0 0 1 0 2', '3 a 1 1', '4 x 3 0 1 0 0 0 1 0 1',
              '5 x 4 0 1 0 0 0 1 0 2', '6 x 5 0 1 0 0 0 2 0 1 2', '7 x 6 0 1 0 0 0 2 0 1 2']
    with tempfile.NamedTemporaryFile('w', suffix='.trace') as f:
        f.write(open(EVERY).read().split('1000 c')[0] + ''.join(event + '\n' for event in events) + f'#end {len(events)}\n')
        f.flush()
        report = json.loads(expect(replay(f.name, '--vram', '1M', '--by-bytes', '--json', '--policy', 'lru'), 0).stdout)
    assert report['paged_in']['again_by_bytes'] == 2 << 20, report['paged_in']  # 2 for submission 4, 1 for submission 5
    assert json.loads(replay(EVERY, '--json').stdout)['paged_in']['again_by_bytes'] is None
    expect(replay(EVERY, '--by-bytes', '--policy', 'clock'), 2, err='by-bytes')
    expect(replay('-', '--by-bytes', '--vram', '4M'), 2, err='must be a file')
    expect(replay(EVERY, '--by-bytes', '--connect'), 2, err='by-bytes')


@test
def what_the_reference_would_have_kept_is_counted_by_policy():
    with tempfile.NamedTemporaryFile('w', suffix='.trace') as f:
        f.write(loop(6, 8))
        f.flush()
        lru, reference = (json.loads(expect(replay(f.name, '--vram', '1M', '--against-reference', '--json', '--policy', policy), 0).stdout)
                          for policy in ('lru', 'reference'))
        plain = json.loads(replay(f.name, '--vram', '1M', '--json', '--policy', 'lru').stdout)
    # LRU evicts what the loop needs next; at its end some buffers have no next use.
    assert lru['evicted']['policy'] > 20 and lru['paged_in']['again_policy'] > 20 << 18, lru
    assert lru['evicted']['policy'] <= lru['evicted']['capacity'] + lru['evicted']['fragmentation'], lru
    assert lru['paged_in']['again_policy'] <= lru['paged_in']['again'], lru
    assert reference['evicted']['policy'] == 0 and reference['paged_in']['again_policy'] == 0, reference
    assert 0 < reference['paged_in']['again'] < lru['paged_in']['again'], reference
    # It only looks.
    assert plain['event_hash'] == lru['event_hash'] and plain['evicted']['policy'] is plain['paged_in']['again_policy'] is None, plain
    expect(replay(EVERY, '--vram', '1M', '--against-reference'), 0, out='by policy')
    assert 'by policy' not in replay(EVERY, '--vram', '1M').stdout
    for wrong in ['--backend', 'linux'], ['--connect']:
        expect(replay(EVERY, '--against-reference', *wrong), 2, err='against-reference')
    expect(replay('-', '--against-reference', '--vram', '4M'), 2, err='must be a file')


@test
def the_text_names_the_causes_and_no_sum_of_video_memory_and_aperture():
    text = expect(replay(EVERY, '--vram', '1M'), 0).stdout
    lines = [line.split() for line in text.splitlines()]
    assert any(line[:1] == ['again'] and 'capacity' in line for line in lines), text
    assert any(line[:1] == ['evictions'] and 'capacity' in line for line in lines), text
    assert any(line[:2] == ['aperture', 'evictions'] for line in lines), text
    assert any(line[:3] == ['peak', 'video', 'memory'] and line[-2:] == ['1.00', 'MiB'] for line in lines), text
    assert any(line[:2] == ['peak', 'aperture'] for line in lines) and 'peak resident' not in text, text
    # In a comparison, causes are rows if any run has them.
    text = expect(replay(EVERY, '--compare', '64M,1M'), 0).stdout
    lines = [line.split() for line in text.splitlines()]
    assert any(line[0] == 'capacity' and line[1] == '0' for line in lines if line), text
    assert any(line[:3] == ['peak', 'video', 'memory'] for line in lines) and 'other causes' not in text, text


@test
def the_most_paged_buffers_are_listed():
    report = json.loads(expect(replay(EVERY, IMPORTER, '--vram', '1M', '--json', '--thrash', '1000'), 0).stdout)
    paged = [entry['bytes_paged_in'] + entry['bytes_paged_out'] for entry in report['thrash']]
    assert paged and paged == sorted(paged, reverse=True), report['thrash']
    # What is paged out belongs to a buffer; what is paged in may be of one that never left.
    assert sum(entry['bytes_paged_out'] for entry in report['thrash']) == report['bytes_paged_out'], report
    assert sum(entry['bytes_paged_in'] for entry in report['thrash']) <= report['bytes_paged_in'], report
    assert sum(entry['evictions'] for entry in report['thrash']) == report['evicted']['video_memory'], report
    for entry in report['thrash']:
        assert entry['program'] == report['traces'][entry['recording']]['program'], entry
        assert 1 <= entry['buffer'] <= 9 and entry['size_bytes'] > 0, entry
        assert 0 <= entry['first_ns'] <= entry['last_ns'] <= report['virtual_ns'], entry
    for count in 0, 1:
        short = json.loads(replay(EVERY, IMPORTER, '--vram', '1M', '--json', '--thrash', str(count)).stdout)
        assert short['thrash'] == report['thrash'][:count] and short['event_hash'] == report['event_hash'], short
    expect(replay(EVERY, '--vram', '1M'), 0, out='most paged buffers')
    assert 'most paged' not in replay(EVERY, '--vram', '64M').stdout
    assert 'most paged' not in replay(EVERY, '--vram', '1M', '--thrash', '0').stdout
    for wrong in '1001', 'x', '-1':
        expect(replay(EVERY, '--thrash', wrong), 2, err='--thrash')


@test
def work_in_the_aperture_is_slower_with_each_pass():
    slow = [json.loads(replay(EVERY, '--json', '--vram', '1M', '--link', 'pcie1x1', '--link-passes', str(n)).stdout) for n in (1, 16)]
    assert [report['link_passes'] for report in slow] == [1, 16]
    assert slow[1]['waits']['slowdown_permille'] > slow[0]['waits']['slowdown_permille'] > 1000, [r['waits'] for r in slow]
    for report in slow:
        assert report['process_waits'] == [report['waits']] and report['process_frames'] == [report['frames']]
        assert report['frames']['ended_by'] == 'pauses' and report['frames']['count'] == 1
    none = json.loads(replay(EVERY, '--json', '--link', 'none').stdout)
    assert none['link_passes'] is None and none['waits']['recorded_gpu_ns'] == slow[0]['waits']['recorded_gpu_ns']
    for wrong in ['--link-passes', '17'], ['--link-passes', 'x'], ['--link', 'none', '--link-passes', '2'], \
            ['--gpu-time', 'none', '--link-passes', '2']:
        expect(replay(EVERY, *wrong), 2, err='--link-passes')


@test
def the_cpu_pays_as_the_model_or_the_options_say():
    report = json.loads(replay(EVERY, '--json').stdout)
    assert report['cpu_costs_ns']['submit'] == 3500 and report['waits']['cpu_cost_ns'] > 5 * 3500, report
    dear = json.loads(replay(EVERY, '--json', '--cpu-costs', 'submit=1000').stdout)
    assert dear['waits']['cpu_cost_ns'] - report['waits']['cpu_cost_ns'] == dear['latency']['count'] * (1000000 - 3500), dear
    for free in ['--link', 'none'], ['--cpu-costs', 'none'], ['--backend', 'linux'], ['--gpu-time', 'none']:
        report = json.loads(replay(EVERY, '--json', *free).stdout)
        assert report['cpu_costs_ns'] is None and (report['waits'] or {'cpu_cost_ns': 0})['cpu_cost_ns'] == 0, report
    for wrong in ['submit'], ['model', '--backend', 'linux'], ['model', '--gpu-time', 'none']:
        expect(replay(EVERY, '--cpu-costs', *wrong), 2, err='--cpu-costs')


@test
def without_content_every_figure_is_the_same():
    for args in [EVERY, '--vram', '1M'], [TILED, '--vram', '1M'], [EVERY, IMPORTER, '--vram', '1M', '--seed', '3', '--switch', '100'], \
            [EVERY, '--aperture', 'none', '--vram', '50%largest']:
        real, none = (json.loads(expect(replay(*args, '--json', '--content', how), 0).stdout) for how in ('real', 'none'))
        assert [real.pop('content'), none.pop('content')] == ['real', 'none']
        assert real.pop('wall_ns') > 0 and none.pop('wall_ns') > 0 and real['bytes_paged_in'] > 0
        assert real == none, {key: (real[key], none[key]) for key in real if real[key] != none[key]}
    for wrong in ['--verify', 'stamps'], ['--events', '-'], ['--model', 'wddm2'], ['--connect']:
        expect(replay(EVERY, '--content', 'none', *wrong), 2, err='--content')
    expect(replay(EVERY, '--content', 'some'), 2, err='--content')


@test
def frames_have_deadlines_at_the_recorded_pace_only():
    assert 'late frames' in replay(EVERY).stdout
    flat = replay(EVERY, '--pace', 'flat-out')
    assert 'late frames' not in flat.stdout and 'frame time p99' in flat.stdout and 'slow-down' in flat.stdout, flat.stdout
    report = json.loads(replay(EVERY, '--pace', 'flat-out', '--json').stdout)
    assert report['frames']['late'] is None and report['frames']['longest_stall_ns'] is None, report['frames']
    report = json.loads(replay(EVERY, '--gpu-time', 'none', '--json').stdout)
    assert report['frames'] is None and report['process_waits'] == [None], report


@test
def without_an_aperture_submissions_are_split():
    done = expect(replay(EVERY, '--aperture', 'none', '--vram', '50%largest', '--json', '--verify', 'stamps'), 0)
    report = json.loads(done.stdout)
    assert report['aperture_bytes'] == 0 and report['vram_percent_of'] == 'largest' and report['vram_percent'] == 50
    assert len(report['segments']) == 1 and report['vram_bytes'] < 2 << 20
    expect(replay(EVERY, '--aperture', 'none'), 0, out='contents')
    expect(replay(EVERY, '--vram', 'largest'), 2)


@test
def json_repeats_but_for_the_clock_of_the_machine():
    reports = []
    for _ in range(2):
        report = json.loads(replay(EVERY, '--json', '--seed', '9', '--switch', '300').stdout)
        report.pop('wall_ns')
        reports.append(report)
    assert reports[0] == reports[1]
    assert reports[0]['event_hash'].startswith('0x') and reports[0]['virtual_ns'] >= 907000


@test
def compare_shows_its_runs_side_by_side():
    done = expect(replay(EVERY, '--compare', '100%,50%,4M'), 0, out='100 %')
    lines = [line.split() for line in done.stdout.splitlines()]
    assert ['submissions', '5', '5', '5'] in lines, done.stdout
    assert ['video', 'memory', '2.00', 'MiB', '1.00', 'MiB', '4.00', 'MiB'] in lines, done.stdout
    report = json.loads(replay(EVERY, '--compare', '100%,1M', '--json').stdout)
    assert [run['vram_percent'] for run in report['runs']] == [100.0, None]
    assert set(report['runs'][0]) == KEYS


@test
def percentages_refer_to_the_peak_of_live_buffers():
    report = json.loads(replay(EVERY, '--json', '--vram', '200%').stdout)
    assert report['peak_live_bytes'] == 16384 + 1048576 + 65536 + 8192 + 32768
    assert report['vram_bytes'] == 3 << 20, report['vram_bytes']


@test
def a_submission_larger_than_the_memory_is_split():
    """SPL-02: both segments together hold half of what each submission uses."""
    events = [f'0 c {i} 262144' for i in range(1, 17)] + [f'0 w {i} 0 262144 p' for i in range(1, 17)]
    events += [f'{n}000000 x {n} 0 1 0 0 0 16 0 ' + ' '.join(f'{i}{"w" * (i % 2)}' for i in range(1, 17))
               for n in (1, 2)]
    header = open(EVERY).read().split('1000 c')[0]
    text = header + ''.join(event + '\n' for event in events) + f'#end {len(events)}\n'
    for backend in 'sim', 'linux':
        done = expect(replay('-', '--vram', '1M', '--aperture', '1M', '--json', '--verify', 'full', '--backend', backend,
                             text=text), 0)
        report = json.loads(done.stdout)
        assert report['splits'] >= 2 and report['findings'] == [], done.stdout


@test
def quiet_prints_nothing_for_a_clean_replay():
    done = expect(replay(EVERY, '-q'), 0)
    assert done.stdout == '' and done.stderr == ''


@test
def color_is_for_terminals_or_on_request():
    assert '\033' not in replay(EVERY).stdout
    assert '\033' in replay(EVERY, '--color', 'always').stdout
    assert '\033' in replay(EVERY, '--color', 'always', env={'NO_COLOR': '1'}).stdout
    assert '\033' not in replay(EVERY, '--color', 'never').stdout


@test
def events_are_lines_of_text():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, 'events')
        expect(replay(EVERY, '--events', path, '-q'), 0)
        first = open(path).read()
        assert len(first.splitlines()) > 100 and first.endswith('\n')
        expect(replay(EVERY, '--events', path, '-q'), 0)
        assert open(path).read() == first


@test
def a_recording_of_events_has_what_the_text_has():
    with tempfile.TemporaryDirectory() as folder:
        text, record = os.path.join(folder, 'text'), os.path.join(folder, 'record')
        expect(replay(EVERY, '--vram', '1M', '--events', text, '--record', record, '-q'), 0)
        explained = expect(run('explain', text), 0).stdout
        assert explained and expect(run('explain', record), 0).stdout == explained
        assert 0 < os.path.getsize(record) * 5 < os.path.getsize(text)
        expect(replay(EVERY, '--compare', '1M,2M', '--record', record), 2, err='--record')
        expect(replay(EVERY, '--record', os.path.join(folder, 'none', 'record'), '-q'), 4, err='No such file')
        expect(replay(EVERY, '--record', '/dev/full', '-q'), 4, err='No space left')
        expect(replay(EVERY, '--record', '', '-q'), 2, err='--record')
        expect(replay(EVERY, '--record', record, '--content', 'none', '-q'), 2, err='--record')
        piped = subprocess.run(['sh', '-c', 'cat "$1" | "$0" explain /dev/stdin', VIDMM, text], capture_output=True, text=True)
        assert piped.returncode == 0 and piped.stdout == explained, piped
        with open(record, 'rb') as file:
            whole = file.read()
        for cut in len(whole) - 1, len(whole) // 2:
            with open(record, 'wb') as file:
                file.write(whole[:cut])
            done = run('explain', record)
            assert done.returncode in (0, 3) and 'middle of a chunk' in done.stderr, done
        with open(text, encoding='utf-8') as file:
            lines = file.read()
        with open(text, 'w', encoding='utf-8') as file:
            file.write(lines + '#99999 1ns p1 do')
        assert expect(run('explain', text), 0, err='ends in the middle of a line').stdout == explained


@test
def the_standard_input_is_a_recording_too():
    text = open(EVERY).read()
    expect(replay('-', '--vram', '2M', '-q', text=text), 0)
    expect(replay('-', '--vram', '2M', '-q', text=text[:-1]), 3, err='-:55: last line cut short')


@test
def linux_threads_and_no_gpu_time_replay_too():
    expect(replay(EVERY, '--backend', 'linux', '--gpu-time', 'none', '--verify', 'full', '-q'), 0)
    expect(replay(EVERY, '--gpu-time', 'none', '--verify', 'full', '-q'), 0)


@test
def parse_only_counts_the_events():
    expect(replay('--parse-only', EVERY), 0, out='45 events, 5 submissions, 12 references, 6 relocations')


if __name__ == '__main__':
    sys.exit(main())
