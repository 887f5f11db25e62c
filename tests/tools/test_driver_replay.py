#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_driver_replay.py VIDMM FILE.so...: `vidmm replay --driver --commands`, on driver files and command adapters. TAP."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
FILE = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:]}
ROOT = os.environ['VIDMM_SOURCE_ROOT']
EVERY = os.path.join(ROOT, 'tests/replay/data/every-op.trace')
TILED = os.path.join(ROOT, 'tests/replay/data/tiled.trace')
IMPORTER = os.path.join(ROOT, 'tests/replay/data/importer.trace')
GLMARK = os.path.join(ROOT, 'examples/glmark2-1080p-skl.trace.zst')
TINY = ('--driver', FILE['tinykmd'])
WDDM1 = ('--driver', FILE['softgpu_driver'], '--set', 'Model=wddm1')
WDDM2 = ('--driver', FILE['softgpu_driver'], '--set', 'Model=wddm2')
DRIVERS = {
    'tinykmd': TINY + ('--commands', FILE['tinykmd_commands']),
    'wddm1': WDDM1 + ('--commands', FILE['softgpu_commands']),
    'wddm2': WDDM2 + ('--commands', FILE['softgpu_commands']),
    'wddm2_lists': WDDM2 + ('--commands', FILE['list_commands']),
    'wddm1_hidden': WDDM1 + ('--set', 'VramCpuVisible=0', '--commands', FILE['hidden_commands']),
    'wddm2_hidden': WDDM2 + ('--commands', FILE['hidden_commands']),
}


def replay(*args, code=0, err=''):
    done = subprocess.run([VIDMM, 'replay', *args], capture_output=True, text=True)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    assert err in done.stderr, (args, done.stderr)
    return done


def result_of(*args, code=0, err=''):
    return json.loads(replay(*args, '--json', code=code, err=err).stdout)


def verified(driver, *args):
    result = result_of(*DRIVERS[driver], '--verify', 'full', *args)
    assert result['verify_errors'] == 0 and result['blocks_checked'] > 0, (driver, result)
    assert result['findings'] == [] and result['gpu_time'] == 'none', (driver, result)
    return result


# ---- contents ----

@test
def each_event_works_on_each_driver():
    for driver in DRIVERS:
        for back_end in ('sim', 'linux'):
            one = verified(driver, '--vram', '1M', '--backend', back_end, EVERY)
            assert one['submissions'] == 5 and one['references'] == 12, one
            verified(driver, '--vram', '1M', '--backend', back_end, TILED)
            verified(driver, '--vram', '2M', '--backend', back_end, EVERY, IMPORTER)


@test
def without_verification_each_reference_is_still_made():
    for driver in DRIVERS:
        result = result_of(*DRIVERS[driver], '--vram', '1M', EVERY)
        assert result['references'] == 12 and result['blocks_checked'] == 0, result


@test
def the_summary_and_json_name_driver_and_adapter():
    text = replay(*DRIVERS['wddm2'], '--vram', '2M', EVERY).stdout
    assert 'command adapter' in text and 'WDDM 2.x' in text, text
    result = result_of(*DRIVERS['tinykmd'], '--vram', '2M', EVERY)
    assert result['driver'] == FILE['tinykmd'] and result['commands'] == 'tinykmd' and result['model'] == 'wddm1', result
    result = result_of('--vram', '2M', EVERY)
    assert result['driver'] == 'softgpu' and result['commands'] is None, result


@test
def a_recording_at_a_third_of_its_memory_loses_nothing():
    # With lists, allocations have physical addresses, and what is in the aperture segment stays there.
    for driver, evictions in (('wddm1', 1000), ('wddm2', 1000), ('wddm2_lists', 400)):
        result = result_of(*DRIVERS[driver], '--verify', 'stamps', '--vram', '33%', GLMARK)
        assert result['verify_errors'] == 0 and result['evictions'] > evictions, result
        assert result['segments'][0]['size_bytes'] == result['vram_bytes'], result
        assert result['blocks_checked'] > 10000, result


@test
def a_segment_within_segment_move_is_a_part_of_paging():
    # tinykmd has no aperture: the largest buffer must fit into its segment.
    result = result_of(*DRIVERS['tinykmd'], '--verify', 'stamps', '--vram', '50%', GLMARK)
    assert result['verify_errors'] == 0 and result['bytes_moved'] > 0, result


@test
def a_run_on_sim_is_reproducible():
    first, second = (result_of(*DRIVERS['wddm1'], '--vram', '1M', '--seed', '7', EVERY) for _ in range(2))
    assert first['event_hash'] == second['event_hash'], (first, second)


@test
def lost_transfers_are_found():
    dropping = ('--driver', FILE['dropping_driver'], '--set', 'Model=wddm1', '--commands', FILE['softgpu_commands'])
    result = result_of(*dropping, '--verify', 'stamps', '--vram', '33%', GLMARK, code=1, err='verify: the ')
    assert result['verify_errors'] > 0, result


# ---- drivers that know softgpu's commands ----

@test
def a_driver_without_an_adapter_gets_the_commands_of_softgpu():
    own = result_of('--vram', '1M', '--verify', 'full', EVERY)
    file = result_of('--driver', FILE['softgpu_driver'], '--set', 'Model=wddm1', '--vram', '1M', '--verify', 'full', EVERY)
    assert own['event_hash'] == file['event_hash'] and file['driver'] == FILE['softgpu_driver'], (own, file)


@test
def a_driver_that_needs_an_adapter_says_so():
    replay(*TINY, '--vram', '2M', EVERY, code=1, err='--commands')


# ---- options ----

@test
def options_that_do_not_apply_are_refused():
    for args, text in (
            (('--commands', FILE['softgpu_commands']), 'need --driver'),
            (('--set', 'Model=wddm1'), 'need --driver'),
            ((*WDDM1, '--bar', '16M'), '--bar needs --commands'),
            ((*DRIVERS['wddm1'], '--model', 'wddm2'), 'do not apply'),
            ((*DRIVERS['wddm1'], '--aperture', 'none'), 'do not apply'),
            ((*DRIVERS['wddm1'], '--ranges', '3'), 'do not apply'),
            ((*DRIVERS['wddm1'], '--gpu-time', 'model'), 'is a model of softgpu'),
            ((*DRIVERS['wddm1'], '--link', 'pcie3x16'), 'do not apply'),
            ((*DRIVERS['wddm1'], '--bar', '5'), '--bar'),
            ((*DRIVERS['wddm1'], '--set', 'nonsense'), '--set'),
            ((*DRIVERS['wddm1'], '--connect'), 'the host')):
        replay(*args, EVERY, code=2, err=text)
    replay('--driver', '/nonexistent.so', EVERY, code=3, err='No such file')


@test
def bars_and_settings_reach_the_driver():
    result = result_of(*DRIVERS['tinykmd'], '--bar', '1M', '--vram', '64M', EVERY)
    assert result['segments'][0]['size_bytes'] == 1 << 20, result
    result = result_of(*DRIVERS['wddm1'], '--set', 'ApertureSize=8M', '--vram', '64M', EVERY)
    assert [segment['size_bytes'] for segment in result['segments']] == [64 << 20, 8 << 20], result


# ---- adapters that break a rule ----

def bad(name, code, *texts):
    done = replay(*TINY, '--commands', FILE['bad_' + name], '--verify', 'full', '--vram', '2M', EVERY, code=code)
    for text in texts:
        assert text in done.stderr, (name, done.stderr)


@test
def q_400_a_file_that_is_no_adapter_is_refused():
    bad('symbol', 3, 'Q-400', 'vidmm_commands_describe is not exported')
    replay(*TINY, '--commands', '/nonexistent.so', EVERY, code=3, err='Q-400')
    replay(*TINY, '--commands', EVERY, EVERY, code=3, err='Q-400')


@test
def q_401_a_description_that_is_not_valid_is_refused():
    bad('version', 3, 'Q-401', 'of version 7: expected 1')
    bad('size', 3, 'Q-401', 'struct_size 8')
    bad('name', 3, 'Q-401', 'printable')
    bad('function', 3, 'Q-401', 'function fill', 'NULL')
    bad('submission', 3, 'Q-401', 'submission 2')
    bad('node', 3, 'Q-401', 'node 9')
    bad('alignment', 3, 'Q-401', 'alignments 12 and 4')
    bad('context_data', 3, 'Q-401', '4097 bytes of context data')


@test
def q_402_an_adapter_that_leaves_its_arrays_is_found():
    bad('behind', 1, 'Q-402', 'function fill', 'behind the end of the command buffer')
    bad('more', 1, 'Q-402', 'more than the capacity')
    bad('less', 1, 'Q-402')
    bad('behind_patches', 1, 'Q-402', 'behind the end of the patch locations')
    bad('capacity', 1, 'Q-402', 'changed a pointer, an address or a capacity')
    bad('result', 1, 'Q-402', 'no enum vidmm_commands_result')
    bad('address', 1, 'Q-402', 'changed a pointer, an address or a capacity')
    bad('changed_full', 1, 'Q-402', 'did not return VIDMM_COMMANDS_OK')
    bad('private_full', 1, 'Q-402', 'did not return VIDMM_COMMANDS_OK')
    bad('long_private', 1, 'Q-402', 'function allocation')
    bad('behind_private', 1, 'Q-402', 'function allocation')
    bad('other_size', 1, 'Q-402', 'function allocation')


@test
def q_402_a_finding_of_an_adapter_is_in_json():
    result = result_of(*TINY, '--commands', FILE['bad_behind'], EVERY, code=1)
    assert result['findings'][0]['text'].startswith('Q-402'), result['findings']


@test
def q_403_a_wrong_patch_location_is_found():
    bad('patch_outside', 1, 'Q-403', 'outside the commands')
    bad('patch_index', 1, 'Q-403', 'no operand')
    bad('patch_slot', 1, 'Q-403', '24 bits')


@test
def q_404_content_must_be_reachable():
    bad('coarse', 1, 'Q-404', 'neither copy nor fill')
    bad('hidden', 1, 'Q-404', 'cannot lock')


@test
def q_404_a_command_that_never_fits_is_found():
    bad('always_full', 1, 'finding Q-404', 'one command does not fit an empty command buffer of ')
    bad('no_end', 1, 'finding Q-404', 'cannot end a command buffer')
    bad('changes_its_mind', 1, 'finding Q-404', 'refuses a command that it had accepted')


@test
def a_barrier_that_does_not_fit_is_written_to_the_next_buffer():
    result = result_of(*TINY, '--commands', FILE['bad_full_barrier'], '--verify', 'full', '--vram', '2M', EVERY)
    assert result['verify_errors'] == 0 and result['findings'] == [], result


sys.exit(main())
