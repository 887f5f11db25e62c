#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_sim.py VIDMM FILE.so... FILE.sim...: `vidmm sim` finds mistakes of drivers, and only these. TAP.

FILE.so: softgpu with a mistake. FILE.sim: scripts that find nothing, each once the shortest one that did.
"""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test
from vidmm_program import vidmm

DRIVER = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:] if path.endswith('.so')}
SCRIPTS = [path for path in sys.argv[2:] if path.endswith('.sim')]
SETTINGS = 'seed 1\nprocesses 2\nmodel 1\nvram 262144\naperture 524288\ndma-buffer 16384\npaging-buffer 16384\n' \
    'first-fence 1\nengine-reset 1\npreempts 0\nswitches 0\n'
HEADER = '# vidmm sim script 1\n'


def sim(*args, code=0):
    return vidmm('sim', *args, code=code)


def table(text):
    """The columns done, refused and skipped of each operation."""
    rows = re.findall(r'^([a-z-]+) +(\d+) +(\d+) +(\d+)(?:  fault)?$', text, re.M)
    return {name: tuple(map(int, numbers)) for name, *numbers in rows}


def hashes(text):
    return re.findall(r'^seed (\d+): event hash ([0-9a-f]{16})$', text, re.M)


def script(folder, text, name='script'):
    path = os.path.join(folder, name)
    with open(path, 'w', encoding='utf-8') as file:
        file.write(text)
    return path


@test
def q_465_softgpu_breaks_no_rule():
    found = sim('--seeds', '4', '--steps', '1500').stdout
    rows = table(found)
    assert len(hashes(found)) == 4, found
    assert sum(map(sum, rows.values())) == 4 * 1500, rows
    assert all(rows[name][0] > 20 for name in ('create', 'read', 'write', 'fill', 'copy', 'offer', 'illegal', 'list')), rows
    assert int(re.search(r'(\d+) bytes compared', found)[1]) > 1 << 20, found


@test
def a_seed_is_one_run():
    """The same events, whatever the number of seeds, and others with another seed."""
    both = hashes(sim('--seed', '5', '--seeds', '2', '--steps', '800').stdout)
    assert hashes(sim('--seed', '6', '--steps', '800').stdout) == both[1:], both
    assert both[0][1] != both[1][1], both


@test
def faults_and_weights_are_chosen():
    rows = table(sim('--seed', '2', '--steps', '600', '--faults', 'none').stdout)
    assert not any(rows['hang']) and not any(rows['power']) and not any(rows['no-memory']), rows
    rows = table(sim('--seed', '2', '--steps', '600', '--faults', 'hang,memory', '--weights', 'hang=100').stdout)
    assert rows['hang'][0] > 5 and not any(rows['power']), rows
    rows = table(sim('--seed', '2', '--steps', '300', '--faults', 'none', '--weights', 'create=0').stdout)
    assert not any(rows['create']) and not rows['fill'][0], rows


@test
def q_480_refused_requests_cost_only_their_call():
    """Seeds that once ended in a deadlock, and one third of all steps with a request refused."""
    assert table(sim('--seed', '7', '--steps', '3000', '--faults', 'no-memory').stdout)['no-memory'][0] > 10
    for model in ('wddm1', 'wddm2'):
        rows = table(sim('--seed', '49', '--steps', '1500', '--weights', 'no-memory=2500', '--model', model).stdout)
        assert rows['no-memory'][0] > 100 and rows['no-memory'][1] > 0, rows


@test
def q_483_one_refused_request_does_not_cost_the_device():
    [path] = [path for path in SCRIPTS if path.endswith('q_483_refused_eviction.sim')]
    sim('--script', path, '-q')


@test
def q_497_a_step_with_more_packets_than_the_limit_is_reported():
    found = sim('--steps', '2000', '--packets', '2', code=1).stdout
    assert re.search(r'step \d+ \(.*\): Q-497: the step does not end: more than 2 packets are complete$', found, re.M), found
    sim('--steps', '2000', '--packets', '1000')
    for wrong in ('0', 'x', '1000000001'):
        assert '--packets' in sim('--packets', wrong, code=2).stderr


@test
def without_contents_nothing_is_compared():
    assert ' 0 bytes compared' in sim('--steps', '500', '--contents', 'none').stdout
    sim('--steps', '500', '--contents', 'none', '--driver', DRIVER['wrong_softgpu_skip_transfer'], '--model', 'wddm1')


@test
def a_recording_has_the_events(folder):
    path = os.path.join(folder, 'run')
    sim('--steps', '200', '--record', path)
    assert 'process 1 (sim 0)' in vidmm('explain', path).stdout


def minimise(folder, mistake, rule):
    path = os.path.join(folder, 'few.sim')
    found = sim('--seed', '2', '--steps', '5000', '--faults', 'memory', '--model', 'wddm1', '--minimise', '--output', path,
                '--driver', DRIVER['wrong_softgpu_' + mistake], code=1).stdout
    assert re.match(r'seed 2, step \d+ \([a-z-]+( \d+){5}\): ' + rule + ': ', found), found
    steps = int(re.search(r'^(\d+) steps break ' + rule + ', too; found after \\d+ runs$', found, re.M)[1])
    with open(path, encoding='utf-8') as file:
        lines = [line for line in file if line.startswith('step ')]
    assert len(lines) == steps < 20, found
    again = sim('--script', path, '--driver', DRIVER['wrong_softgpu_' + mistake], code=1).stdout
    assert re.search(f': {rule}: ', again), again
    sim('--script', path)
    return lines


@test
def q_468_a_transfer_that_is_skipped_is_found(folder):
    assert any(line.startswith('step create') for line in minimise(folder, 'skip_transfer', 'PAG-16'))


@test
def q_468_a_transfer_to_the_wrong_page_is_found(folder):
    minimise(folder, 'wrong_page', 'PAG-16')


@test
def q_468_a_wrong_fence_is_found(folder):
    minimise(folder, 'wrong_fence', '[A-Z]+-[0-9]+')


@test
def q_468_a_driver_may_keep_something_between_runs(folder):
    """Runs share a process, in which this driver is wrong once. The script fails in a process of its run alone."""
    minimise(folder, 'skip_third', 'PAG-16')


@test
def q_467_any_step_may_be_left_out(folder):
    """Each operation alone, with no object, and with all numbers at their ends."""
    names = list(table(sim('--steps', '1').stdout))
    assert len(names) > 30, names
    for numbers in ('0 0 0 0 0', '1 11 11 4294967295 4294967295'):
        for name in names:
            sim('--script', script(folder, HEADER + SETTINGS + f'step {name} {numbers}\n'), '-q')


@test
def scripts_that_found_something_find_nothing_now():
    assert SCRIPTS
    for path in SCRIPTS:
        sim('--script', path, '-q')


@test
def seg_21_a_paging_buffer_that_has_lost_its_mapping_needs_no_space():
    """After a reset the ring has buffers that are not mapped, and the aperture is full."""
    [path] = [path for path in SCRIPTS if path.endswith('seg_21_no_space_for_a_paging_buffer.sim')]
    sim('--script', path, '-q')


@test
def pnp_08_a_report_from_before_the_removal_is_no_violation():
    """A DPC waits for the state lock while the adapter is removed."""
    sim('--seed', '9026', '--steps', '37852', '--weights', 'no-memory=0', '-q')


@test
def q_465_the_buffers_of_many_processes_leave_space_in_the_aperture():
    """With 512 KiB for eight processes MakeResident found no space for 32 KiB between DMA buffers."""
    sim('--seed', '100047', '--steps', '36148', '--processes', '8', '-q')


@test
def q_466_a_bad_script_is_refused(folder):
    good = HEADER + SETTINGS + 'step create 0 0 0 0 0\n'
    for line, text in (
            (1, good.replace('script 1', 'script 2')),
            (2, good.replace('seed 1', 'sead 1')),
            (3, good.replace('processes 2', 'processes 9')),
            (3, good.replace('processes 2', 'processes')),
            (5, good.replace('vram 262144', 'vram 1')),
            (13, good.replace('create', 'creation')),
            (13, good.replace('create 0 0', 'create 2 0')),
            (13, good.replace('create 0 0', 'create 0 12')),
            (13, good.replace('0 0 0 0 0', '0 0 0 0')),
            (13, good.replace('0 0 0 0 0', '0 0 0 0 0 0')),
            (13, good.replace('0 0 0 0 0', '0 0 0 0 4294967296')),
            (12, good.replace('switches 0\n', '')),
            (13, good[:-1]),
            (12, HEADER + SETTINGS),
            (2, HEADER + '#' * 300 + '\n')):
        found = sim('--script', script(folder, text), code=3)
        assert re.search(f':{line}: .*\\(Q-466\\)', found.stderr), (text, found.stderr)
    sim('--script', os.path.join(folder, 'none'), code=3)
    sim('--script', script(folder, good))


@test
def wrong_usage():
    for args in (('--seed', 'x'), ('--steps', '0'), ('--processes', '9'), ('--model', 'wddm3'), ('--faults', 'rain'),
                 ('--weights', 'create'), ('--weights', 'rain=1'), ('--contents', 'all'), ('--output', 'x'), ('extra',),
                 ('--script', 'x', '--seed', '1'), ('--record', 'x', '--seeds', '2'), ('--seeds', '0')):
        assert 'vidmm sim: ' in sim(*args, code=2).stderr, args
    sim('--driver', '/nowhere.so', code=3)


sys.exit(main())
