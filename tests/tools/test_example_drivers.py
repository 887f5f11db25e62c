#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_example_drivers.py VIDMM FILE.so...: what the drivers in examples/drivers do with bad commands and in a reset. TAP."""
import json
import os
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test

VIDMM = os.path.abspath(sys.argv[1])
FILE = {os.path.basename(path)[:-len('.so')]: os.path.abspath(path) for path in sys.argv[2:]}
DATA = os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/replay/data')
BACK_ENDS = ('sim', 'linux')


def replay(driver, commands, *args, traces=('every-op',), code=0):
    """What the replay wrote to stderr."""
    command = [VIDMM, 'replay', '--quiet', '--driver', FILE[driver], '--commands', FILE[commands], '--verify', 'full', *args]
    done = subprocess.run(command + [os.path.join(DATA, name + '.trace') for name in traces], capture_output=True, text=True)
    assert done.returncode == code, (command, done.returncode, done.stdout, done.stderr)
    return done.stderr


def on_each_back_end(driver, commands, text, *args):
    for back_end in BACK_ENDS:
        err = replay(driver, commands, '--backend', back_end, *args, code=1)
        assert text in err, (driver, commands, back_end, err)


@test
def several_programs_keep_their_contents():
    for driver in ('aperture13', 'softvram', 'gpummu2'):
        for back_end in BACK_ENDS:
            replay(driver, driver + '_commands', '--backend', back_end, '--vram', '1M', traces=('tiled',))
            replay(driver, driver + '_commands', '--backend', back_end, '--vram', '2M', traces=('every-op', 'importer'))


@test
def an_aperture_alone_divides_submissions_as_video_memory_does():
    done = subprocess.run([VIDMM, 'replay', '--json', '--driver', FILE['aperture13'], '--commands', FILE['aperture13_commands'],
                           '--set', 'ApertureMegabytes=256', os.path.join(DATA, 'every-op.trace')], capture_output=True, text=True)
    assert done.returncode == 0, (done.returncode, done.stdout, done.stderr)
    result = json.loads(done.stdout)
    assert result['references'] == 12 and result['submissions'] == 5, result
    assert result['extra_renders'] == 0 and result['renders'] < 12, result


@test
def commands_are_checked_when_they_are_rendered():
    for driver in ('aperture13', 'softvram'):
        on_each_back_end(driver, driver + '_wrong_address', 'DxgkDdiRender with 0xc000000d')
        on_each_back_end(driver, driver + '_wrong_opcode', 'DxgkDdiRender with 0xc000001d')


@test
def an_address_without_memory_is_a_page_fault():
    on_each_back_end('gpummu2', 'gpummu2_wrong_address', 'TDR-19: page fault at 0x4000')
    on_each_back_end('gpummu2', 'gpummu2_wrong_opcode', 'TDR-19: page fault at 0x')


@test
def a_packet_that_hangs_is_reset():
    for number in ('1', '4'):
        on_each_back_end('aperture13', 'aperture13_commands', 'TDR-15: the engine of node 0 is reset',
                         '--set', 'HangAtPacket=' + number)
        on_each_back_end('softvram', 'softvram_commands', 'TDR-07: the adapter is reset', '--set', 'HangAtPacket=' + number)


sys.exit(main())
