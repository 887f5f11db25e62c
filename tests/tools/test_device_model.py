#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_device_model.py VIDMM CLIENT FILE.so...: a miniport with registers and interrupts on its device model, in each verb. TAP."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM, CLIENT = (os.path.abspath(path) for path in sys.argv[1:3])
FILE = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[3:]}
ROOT = os.environ['VIDMM_SOURCE_ROOT']
EVERY = os.path.join(ROOT, 'tests/replay/data/every-op.trace')
TILED = os.path.join(ROOT, 'tests/replay/data/tiled.trace')
HARDWARE = ('--device', FILE['copier'], '--driver', FILE['copier_kmd'])
COPIER = (*HARDWARE, '--commands', FILE['copier_commands'])
BACK_ENDS = ('sim', 'linux')


def vidmm(*args, code=0, err='', **how):
    done = subprocess.run([VIDMM, *args], capture_output=True, text=True, **how)
    assert done.returncode == code, (args, done.returncode, done.stdout, done.stderr)
    assert err in done.stderr, (args, done.stderr)
    return done


@test
def q_421_recordings_run_on_the_engine_of_a_device_model():
    for back_end in BACK_ENDS:
        result = json.loads(vidmm('replay', *COPIER, '--verify', 'full', '--vram', '2M', '--backend', back_end, '--json', EVERY, EVERY, TILED).stdout)
        assert result['verify_errors'] == 0 and result['findings'] == [] and result['commands'] == 'copier', result
        assert result['blocks_checked'] > 300 and result['evictions'] > 0, result
        # The memory of the model, and the least of it that --vram permits.
        assert [segment['size_bytes'] for segment in result['segments']] == [2 << 20], result


@test
def the_driver_conforms_on_its_device_model():
    for back_end in BACK_ENDS:
        result = json.loads(vidmm('conform', *COPIER, '--backend', back_end, '--json').stdout)
        outcomes = {row['name']: row['outcome'] for row in result['situations']}
        assert result['broke'] == 0 and result['ok'] >= 10, result
        for name in 'start', 'segments', 'paging', 'moves', 'cpu_access', 'lost_interrupt', 'timeout', 'power', 'unload':
            assert outcomes[name] == 'ok', (name, result)


@test
def without_its_device_model_the_driver_does_not_start():
    vidmm('replay', '--driver', FILE['copier_kmd'], '--commands', FILE['copier_commands'], EVERY, code=1, err='the adapter was refused')
    result = json.loads(vidmm('conform', '--driver', FILE['copier_kmd'], '--json', code=1).stdout)
    assert all(row['outcome'] != 'ok' for row in result['situations']), result


@test
def q_421_a_program_runs_beside_a_host_with_a_device_model(folder):
    page = os.path.join(folder, 'page')
    done = vidmm('run', '--serve', *HARDWARE, '--report', page, '--', CLIENT, 'exit', code=7, env={**os.environ, 'TMPDIR': folder})
    assert done.stdout == 'enumerated: 0x00000000\n', done.stdout
    with open(page, encoding='utf-8') as file:
        text = file.read()
    assert 'copier_kmd.so' in text, text
    vidmm('run', *HARDWARE, '--', CLIENT, 'exit', code=2, err='--device needs --serve')


@test
def q_421_mistakes_are_named():
    for verb, more in (('replay', (EVERY,)), ('conform', ())):
        vidmm(verb, *COPIER, '--bar', '1M', *more, code=2, err='--bar and --device are given')
        vidmm(verb, *COPIER[2:], '--device', '', *more, code=2, err='--device has no value')
        vidmm(verb, *COPIER[2:], '--device', FILE['copier_kmd'], *more, code=3, err='the function vidmm_device_model is not exported')
        vidmm(verb, *COPIER[2:], '--device', './missing.so', *more, code=3, err='Q-421')
    vidmm('replay', *HARDWARE, EVERY, code=2, err='--device needs --commands')
    vidmm('replay', *HARDWARE[:2], EVERY, code=2, err='need --driver')


if __name__ == '__main__':
    sys.exit(main())
