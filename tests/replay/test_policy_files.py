#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_policy_files.py VIDMM POLICY.so...: eviction policies from shared objects (Q-350 to Q-353), from outside. TAP."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
POLICY = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:]}
HERE = os.path.dirname(os.path.abspath(__file__))
EVERY, TILED = (os.path.join(HERE, 'data', name + '.trace') for name in ('every-op', 'tiled'))
EXAMPLES = [os.path.join(HERE, '..', '..', 'examples', name + '.trace.zst') for name in ('glmark2-1080p-skl', 'glmark2-1080p')]


def run(*args, code=0, err='', **more):
    done = subprocess.run([VIDMM, *args], capture_output=True, text=True, check=False, **more)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    assert err in done.stderr and (err or not done.stderr), done.stderr
    return done


def replay(recording, policy, vram, *args):
    return json.loads(run('replay', recording, '--policy', policy, '--vram', vram, '--json', *args).stdout)


def uses_of(buffers):
    """A recording of one process: buffers of 256 KiB, each used alone by one submission, in this order."""
    names = sorted(set(buffers))
    events = [f'0 c {i} 262144' for i in names] + [f'0 w {i} 0 262144 p' for i in names]
    events += [f'{n}000000 x {n} 0 1 0 0 0 1 0 {buffer}' for n, buffer in enumerate(buffers, 1)]
    header = open(EVERY, encoding='utf-8').read().split('1000 c')[0]
    return header + ''.join(event + '\n' for event in events) + f'#end {len(events)}\n'


def again(folder, buffers, policy):
    """How many buffers are paged in again with memory for four, as a replay counts."""
    path = os.path.join(folder, 'uses.trace')
    with open(path, 'w', encoding='utf-8') as file:
        file.write(uses_of(buffers))
    result = replay(path, policy, '1M', '--verify', 'full')
    assert result['verify_errors'] == 0 and result['finding_count'] == 0, result
    return result['paged_in']['again'] // 262144


@test
def q_350_the_example_keeps_what_is_used_most_often(folder):
    # When 5 comes, 1 to 3 have 3 uses each and 4 has one: lfu evicts 4, lru 1, then 2, 3 and 4 as each comes back.
    buffers = [1, 1, 1, 2, 2, 2, 3, 3, 3, 4, 5, 1, 2, 3]
    assert again(folder, buffers, POLICY['lfu']) == 0
    assert again(folder, buffers, 'lru') == 3
    # 4 and 5 evict each other, whatever comes between.
    assert again(folder, buffers + [4, 1, 5, 2, 4], POLICY['lfu']) == 3
    # 600 submissions without a use of 1 halve its count of 8 twice: with the next use it is 3, so 1 leaves. After 10 it is 9.
    for idle, expected in (600, 1), (10, 0):
        buffers = [1] * 8 + [2] * idle + [1] + [3] * 4 + [4] * 4 + [5, 1]
        assert again(folder, buffers, POLICY['lfu']) == expected, idle


@test
def q_350_the_name_of_the_policy_is_in_the_result():
    result = replay(EVERY, POLICY['lfu'], '1M', '--verify', 'full')
    assert result['policy'] == 'lfu' and result['verify_errors'] == 0, result
    assert replay(EVERY, POLICY['lfu'], '1M', '--verify', 'full')['event_hash'] == result['event_hash']
    judged = replay(EVERY, POLICY['lfu'], '1M', '--against-reference')
    assert judged['policy'] == 'lfu' and judged['evicted']['policy'] is not None, judged
    run('replay', EVERY, '--by-bytes', '--policy', POLICY['lfu'], code=2, err='--by-bytes cannot count the policy')


@test
def q_350_a_relative_path_names_a_file_and_a_word_does_not():
    where, name = os.path.split(POLICY['lfu'])
    run('replay', EVERY, '-q', '--policy', './' + name, cwd=where)
    run('replay', EVERY, '--policy', name, code=2, err='predicted or reference, or ./FILE.so', cwd=where)


@test
def q_350_policies_of_vidmm_written_as_files_evict_the_same():
    hashes = set()
    for recording, sizes, models in ((EVERY, ('1M', '2M', '75%'), ('wddm1', 'wddm2')), (TILED, ('1M', '50%'), ('wddm1',)),
                                     (EXAMPLES[0], ('50%', '25%'), ('wddm1',)), (EXAMPLES[1], ('50%', '25%'), ('wddm1',))):
        for name in ('lru', 'clock', 'mru', 'predicted') if recording in (EVERY, TILED, EXAMPLES[0]) else ('lru',):
            for vram in sizes:
                for model in models:
                    more = ('--model', model, '--content', 'none') if recording in EXAMPLES else ('--model', model)
                    own, theirs = (replay(recording, policy, vram, *more) for policy in (POLICY['own_' + name], name))
                    assert own['policy'] == 'own-' + name and theirs['policy'] == name
                    assert own['event_hash'] == theirs['event_hash'], (recording, name, vram, model)
                    assert own['evicted'] == theirs['evicted'], (own, theirs)
                    hashes.add((recording, vram, model, own['event_hash']))
    for recording, vram, different in (EVERY, '1M', 2), (EXAMPLES[0], '25%', 4):
        assert len([h for h in hashes if h[:3] == (recording, vram, 'wddm1')]) >= different, hashes


@test
def q_351_a_description_that_is_not_valid_is_refused():
    for name, why in (('version', 'of version 7: expected version 1'), ('size', 'struct_size 8: expected'),
                      ('name', 'name is "a,b": expected'), ('taken', '"lru" is one of vidmm\'s'), ('bytes', 'state_bytes 72: expected up to 64'),
                      ('flags', 'flags 0x10: only 0x3'), ('no_description', 'description is NULL')):
        path = POLICY['policy_' + name]
        done = run('replay', EVERY, '--policy', path, code=3, err='Q-351: ')
        assert done.stderr.startswith(f'vidmm: {path}: Q-351: ') and why in done.stderr and not done.stdout, done


@test
def q_352_a_file_without_a_function_names_file_function_and_version():
    for name in 'used', 'value':
        path = POLICY['policy_no_' + name]
        done = run('replay', EVERY, '--policy', path, code=3, err='Q-352')
        assert f'vidmm: {path}: Q-352: the function vidmm_policy_{name} is not exported' in done.stderr, done
        assert 'version 1' in done.stderr and done.stderr.count('\n') == 1, done


@test
def q_352_what_is_no_shared_object_is_refused(folder):
    absent, text = os.path.join(folder, 'absent.so'), os.path.join(folder, 'text.so')
    with open(text, 'w', encoding='utf-8') as file:
        file.write('no object\n')
    for path in absent, text, folder:
        done = run('replay', EVERY, '--policy', path, code=3, err='Q-352')
        assert done.stderr.startswith(f'vidmm: {path}: ') and done.stderr.count('\n') == 1, done
    run('what-if', EVERY, '--vram', '1M', '--policy', 'lru,' + absent, code=3, err='Q-352')
    run('serve', '--policy', absent, code=3, err='Q-352', env=dict(os.environ, XDG_RUNTIME_DIR=folder))


@test
def q_353_nonsense_as_values_breaks_nothing():
    for name in 'garbage', 'falling':
        for recording in EVERY, TILED:
            for model in ('wddm1', 'wddm2') if recording == EVERY else ('wddm1',):
                for vram in '1M', '2M':
                    result = replay(recording, POLICY['policy_' + name], vram, '--model', model, '--verify', 'full')
                    assert result['verify_errors'] == 0 and result['finding_count'] == 0, result
        replay(EXAMPLES[0], POLICY['policy_' + name], '25%', '--content', 'none')


@test
def q_352_what_if_compares_files_with_names(folder):
    listed = ','.join(('lru', POLICY['own_lru'], POLICY['lfu']))
    report = json.loads(run('what-if', EVERY, '--vram', '1M', '--policy', listed, '--json', '-', '--html', os.path.join(folder, 'x')).stdout)
    figures = {cell['policy']: dict(cell, policy=None) for cell in report['cells']}
    assert list(figures) == ['lru', 'own-lru', 'lfu'] and figures['lru'] == figures['own-lru'], report
    with open(os.path.join(folder, 'x'), encoding='utf-8') as file:
        page = file.read()
    assert 'own-lru' in page and 'class="file1"' in page, page
    twice = POLICY['lfu'] + ',' + POLICY['lfu']
    run('what-if', EVERY, '--vram', '1M', '--policy', twice, code=2, err='each once')
    # A file of finished replays has no name for one version of a file.
    state = os.path.join(folder, 'state')
    run('what-if', EVERY, '--vram', '1M', '--policy', listed, '--state', state, code=2, err='Q-352')
    assert not os.path.exists(state)


@test
def q_352_merge_loads_no_file_that_a_file_of_cells_names(folder):
    state = os.path.join(folder, 'state')
    run('what-if', EVERY, '--vram', '1M', '--policy', 'mru', '--state', state)
    with open(state, encoding='utf-8') as file:
        lines = file.read()
    assert '"policy": "mru"' in lines or '"policy":"mru"' in lines, lines
    with open(state, 'w', encoding='utf-8') as file:
        file.write(lines.replace('"mru"', json.dumps(POLICY['lfu'])))
    run('merge', state, code=3, err='a policy is a file')


@test
def q_352_a_server_takes_a_file(folder):
    config = os.path.join(folder, 'config')
    with open(config, 'w', encoding='utf-8') as file:
        json.dump({'adapters': [{'bars': ['4M'], 'settings': {'Model': 'wddm1'}, 'policy': POLICY['lfu']}]}, file)
    for options in ['--policy', POLICY['lfu'], '--set', 'Model=wddm1'], ['--policy', 'mru', '--set', 'Model=wddm1'], ['--config', config]:
        where = os.path.join(folder, 's')
        with subprocess.Popen([VIDMM, 'serve', '--socket', where, *options], stderr=subprocess.PIPE, text=True) as server:
            first = server.stderr.readline()
            assert 'serves' in first, first + server.stderr.read()
            run('replay', EVERY, '--socket', where, '--verify', 'full', '-q')
            server.send_signal(signal.SIGTERM)
            server.communicate()
        assert server.returncode == 0, server.returncode
    both = ['--policy', POLICY['lfu'], '--set', 'VidmmEvictionPolicy=mru']
    run('serve', '--socket', os.path.join(folder, 's'), *both, code=1, err='refused')
    run('serve', '--policy', 'newest', code=2, err='lru, clock, mru or predicted')
    with open(config, 'w', encoding='utf-8') as file:
        json.dump({'adapters': [{'policy': POLICY['policy_no_value']}]}, file)
    run('serve', '--config', config, code=3, err='Q-352')


if __name__ == '__main__':
    sys.exit(main())
