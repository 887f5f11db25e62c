#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_conform.py VIDMM FILE.so...: `vidmm conform` on driver files and command adapters. TAP."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from planted import FAULT
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
FILE = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:]}
TINY = ('--driver', FILE['tinykmd'], '--commands', FILE['tinykmd_commands'])
SOFTGPU = ('--driver', FILE['softgpu_driver'], '--commands', FILE['softgpu_commands'])
WDDM1, WDDM2 = (SOFTGPU + ('--set', 'Model=' + model) for model in ('wddm1', 'wddm2'))
NO_APERTURE = WDDM1 + ('--set', 'ApertureSize=0', '--set', 'DmaBufferSegmentSet=0', '--set', 'PagingBufferSegment=0')
NAMES = ['start', 'capabilities', 'segments', 'paging', 'moves', 'aperture', 'cpu_access', 'split', 'lost_interrupt',
         'preemption', 'timeout', 'power', 'removal', 'unload']
KEYS = set('schema_version vidmm_version driver commands backend situations ok broke not_exercised exit_code'.split())
SITUATION_KEYS = set('name summary outcome detail blocks_compared blocks_wrong findings'.split())


def conform(*args, code=0, err=''):
    done = subprocess.run([VIDMM, 'conform', *args], capture_output=True, text=True)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    assert err in done.stderr, done.stderr
    return done


def report(*args, code=0):
    """The situations by name."""
    result = json.loads(conform(*args, '--json', code=code).stdout)
    assert set(result) == KEYS and result['exit_code'] == code, result
    situations = result['situations']
    assert [one['name'] for one in situations] == NAMES, situations
    assert all(set(one) == SITUATION_KEYS for one in situations), situations
    outcomes = [one['outcome'] for one in situations]
    assert [outcomes.count(state) for state in ('ok', 'broke', 'not exercised')] == \
        [result['ok'], result['broke'], result['not_exercised']], result
    return {one['name']: one for one in situations}


def outcomes(situations, state):
    return {name for name, one in situations.items() if one['outcome'] == state}


@test
def tinykmd_passes_what_it_has():
    for back_end in ('sim', 'linux'):
        found = report(*TINY, '--backend', back_end)
        assert outcomes(found, 'not exercised') == {'aperture', 'split', 'preemption', 'removal'}, found
        assert found['paging']['blocks_compared'] > 1000 and found['paging']['blocks_wrong'] == 0, found['paging']


@test
def softgpu_passes_with_both_models():
    found = report(*WDDM1)
    assert outcomes(found, 'ok') >= {'moves', 'aperture', 'lost_interrupt', 'timeout', 'removal'}, found
    found = report(*WDDM2)
    assert outcomes(found, 'ok') >= {'paging', 'cpu_access', 'lost_interrupt', 'timeout', 'power', 'removal'}, found


@test
def pag_27_a_reset_reports_lost_content_without_an_mdl():
    # The transfers of size 0 reach the driver before it restarts: content was in its segment.
    found = report(*TINY)['timeout']
    assert found['outcome'] == 'ok' and '1 resets and 1 restarts' in found['detail'], found


@test
def q_406_a_lost_completion_is_found_by_asking_for_the_fence():
    for driver in TINY, WDDM1, WDDM2:
        found = report(*driver)['lost_interrupt']
        assert found['outcome'] == 'ok' and found['detail'][0] in '123', (driver, found)
        assert 'queries of the fence' in found['detail'], found


@test
def q_406_a_driver_that_cannot_be_asked_for_its_fence_is_reset():
    if 'gpummu2' not in FILE:
        return 'not built without a compiler for drivers'
    found = report('--driver', FILE['gpummu2'], '--commands', FILE['gpummu2_commands'])
    assert outcomes(found, 'ok') >= {'paging', 'cpu_access', 'lost_interrupt', 'timeout', 'power'}, found
    assert found['lost_interrupt']['detail'].startswith('0 queries of the fence'), found['lost_interrupt']
    assert ' 1 resets and 1 restarts' in found['lost_interrupt']['detail'], found['lost_interrupt']
    return None


@test
def without_an_aperture_buffers_are_split():
    found = report(*NO_APERTURE)
    assert found['split']['outcome'] == 'ok' and 'splits' in found['split']['detail'], found['split']
    assert found['aperture']['outcome'] == 'not exercised', found['aperture']


@test
def an_aware_driver_is_asked_to_preempt():
    found = report(*WDDM1, '--set', 'PreemptionAware=1')
    assert found['preemption']['outcome'] == 'ok', found['preemption']


@test
def lost_transfers_break_situations():
    found = report('--driver', FILE['dropping_driver'], '--set', 'Model=wddm1', '--commands', FILE['softgpu_commands'], code=1)
    assert {'paging', 'cpu_access'} <= outcomes(found, 'broke'), found
    assert found['paging']['blocks_wrong'] > 0 and 'expected' in found['paging']['detail'], found['paging']
    assert found['start']['outcome'] == 'ok', found['start']


@test
def q_407_a_crash_breaks_a_situation_and_the_next_one_runs():
    found = report('--driver', FILE['scripted_driver'], '--bar', '16M', '--set', 'Break=12', code=1)
    for name in ('start', 'capabilities', 'power', 'removal'):
        assert found[name]['outcome'] == 'broke' and 'Q-407' in found[name]['detail'], found[name]
        # A sanitizer ends the process itself.
        assert 'signal' in found[name]['detail'] or 'exit code ' in found[name]['detail'], found[name]
    assert 'last call that returned: #' in found['start']['detail'] and 'ddi/' in found['start']['detail'], found['start']


@test
def nt_09_a_bug_check_breaks_a_situation_with_its_code():
    found = planted(FAULT['BUG_CHECK_RENDER'], 1)
    assert {'start', 'capabilities'} <= outcomes(found, 'ok'), found
    detail = found['paging']['detail']
    assert 'Q-407' in detail and 'NT-09: KeBugCheckEx at IRQL 0: 0xbadc0de (0x1, 0x2, 0x3, 0x4)' in detail, detail


@test
def q_440_a_driver_that_loops_breaks_a_situation_when_the_limit_is_over():
    with open(VIDMM, 'rb') as program:
        if b'__tsan_init' in program.read():
            return 'a thread that hangs races with the report, and ThreadSanitizer says so'
    start_device, loop = 2, 1
    for limit in (6, 60, 600):  # on a loaded machine the driver comes that far within a longer one
        found = report('--driver', FILE['scripted_driver'], '--bar', '16M', '--set', f'StickAt={start_device}', '--set', f'StickHow={loop}',
                       '--limit', str(limit), code=1)
        situations = [found[name] for name in ('start', 'capabilities', 'power', 'removal')]
        assert all(situation['outcome'] == 'broke' for situation in situations), situations
        expected = f'Q-440: hang: after {limit} s the driver has not returned from DxgkDdiStartDevice: it runs in '
        if all(s['detail'].startswith(expected) and 'last call that returned: #' in s['detail'] for s in situations):
            return None
    raise AssertionError(situations)


@test
def q_407_an_outcome_that_is_not_valid_breaks_the_situation():
    start_device, spoil = 2, 6
    found = report('--driver', FILE['scripted_driver'], '--bar', '16M', '--set', f'StickAt={start_device}', '--set', f'StickHow={spoil}', code=1)
    for name in ('start', 'capabilities', 'power', 'removal'):
        assert found[name]['outcome'] == 'broke' and 'the outcome is lost' in found[name]['detail'], found[name]


@test
def a_refused_start_breaks_with_its_rule():
    found = report('--driver', FILE['scripted_driver'], '--bar', '16M', '--set', 'Break=1', code=1)
    assert found['start']['outcome'] == 'broke' and found['start']['findings'], found['start']
    assert found['start']['findings'][0]['rule'].startswith('SEG-'), found['start']


@test
def a_refused_start_is_reported_once():
    found = report('--driver', FILE['scripted_driver'], '--bar', '16M', '--set', 'Break=1', code=1)
    assert outcomes(found, 'broke') == {'start'} and not outcomes(found, 'ok'), found
    for name in ('capabilities', 'power', 'removal'):
        assert 'the adapter does not start' in found[name]['detail'] and not found[name]['findings'], found[name]


def planted(fault, code):
    """tinykmd with a planted fault, with the expensive checks."""
    return report('--driver', FILE['planted_driver'], '--commands', FILE['tinykmd_commands'], '--set', f'Fault={fault}',
                  '--set', 'VidmmVerifyDriver=1', code=code)


@test
def a_finding_of_the_start_is_reported_once():
    for name, rule, text in (('LOCK_ORDER', 'NT-22', 'spin lock'), ('POOL_LEAK', 'NT-06', '1 blocks, 96 bytes never freed')):
        found = planted(FAULT[name], 1)
        assert outcomes(found, 'broke') == {'start'}, found
        start = found['start']
        assert start['detail'] == 'started, stopped and unloaded twice', start
        # Both starts have it, with the same text but for addresses.
        assert {finding['rule'] for finding in start['findings']} == {rule}, start
        assert sum(finding['count'] for finding in start['findings']) == 2 and text in start['findings'][0]['text'], start
        assert found['paging']['outcome'] == 'ok' and not any(one['findings'] for key, one in found.items() if key != 'start'), found


@test
def a_finding_of_the_work_breaks_only_where_there_is_work():
    found = planted(FAULT['ALLOCATION_LEAK'], 1)
    assert {'start', 'capabilities'} <= outcomes(found, 'ok'), found
    for name in ('segments', 'paging', 'unload'):
        assert found[name]['outcome'] == 'broke' and found[name]['findings'][0]['rule'] == 'NT-06', found[name]


@test
def q_440_a_wait_that_no_thread_can_end_is_reported_where_it_is():
    found = planted(FAULT['HANG_START_DEVICE'], 1)
    assert outcomes(found, 'broke') == {'start'} and not outcomes(found, 'ok'), found
    assert [finding['rule'] for finding in found['start']['findings']] == ['Q-440'], found['start']
    found = planted(FAULT['HANG_RENDER'], 1)
    assert outcomes(found, 'ok') == {'start', 'capabilities'}, found
    assert 'deadlock' in found['paging']['detail'], found['paging']
    assert 'waits in DxgkDdiRender, KeWaitForSingleObject' in found['paging']['findings'][0]['text'], found['paging']


@test
def without_an_adapter_only_some_situations_run():
    found = report('--driver', FILE['softgpu_driver'])
    assert outcomes(found, 'ok') == {'start', 'capabilities', 'power', 'removal'}, found
    assert 'command adapter' in found['paging']['detail'], found['paging']


@test
def a_bad_adapter_breaks_with_its_rule():
    found = report('--driver', FILE['tinykmd'], '--commands', FILE['bad_behind'], code=1)
    assert found['paging']['outcome'] == 'broke' and found['paging']['findings'][0]['rule'] == 'Q-402', found['paging']


@test
def q_401_an_adapter_whose_description_is_not_valid_ends_the_run():
    for name in 'version', 'node':
        path = FILE['bad_' + name]
        assert conform('--driver', FILE['tinykmd'], '--commands', path, code=3, err=path + ': Q-401: ').stdout == ''


@test
def q_404_a_command_that_never_fits_is_a_finding():
    found = report('--driver', FILE['tinykmd'], '--commands', FILE['bad_always_full'], code=1)
    assert found['paging']['findings'][0]['rule'] == 'Q-404', found['paging']


@test
def the_text_has_a_line_for_each_situation():
    text = conform(*WDDM1).stdout
    for name in NAMES:
        assert f'\n  {name} ' in text, text
    assert ' 0 broke, ' in text, text
    assert conform('--quiet', *WDDM1).stdout == ''


@test
def wrong_usage_is_refused():
    conform(code=2, err='--driver is missing')
    conform(*TINY, 'rest', code=2, err='unexpected argument')
    conform(*TINY, '--backend', 'dos', code=2, err='--backend')
    conform(*TINY, '--limit', '-1', code=2, err='--limit')
    conform(*TINY, '--color', 'red', code=2, err='--color')
    conform('--driver', '/nonexistent.so', code=3, err='No such file')
    conform('--driver', FILE['tinykmd'], '--commands', FILE['bad_symbol'], code=3, err='Q-400')
    assert '--commands' in conform('--help').stdout


sys.exit(main())
