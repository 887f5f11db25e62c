#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_replay.py VIDMM: recordings played by separate programs against `vidmm serve`. TAP."""
import json
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
import vidmm_program
from tap_tests import main, test

VIDMM = sys.argv[1]
ROOT = os.environ['VIDMM_SOURCE_ROOT']
DATA = os.path.join(ROOT, 'tests/replay/data')
EVERY, TILED, IMPORTER = (os.path.join(DATA, name + '.trace') for name in ('every-op', 'tiled', 'importer'))
EXAMPLE = os.path.join(os.environ['VIDMM_EXAMPLES'], 'glmark2-1080p-skl.trace.zst')


class Host(vidmm_program.Host):
    """A host with one adapter, for replays."""

    def __init__(self, vram='16M', aperture='64M', model='wddm1'):
        super().__init__({'adapters': [{'driver': 'softgpu', 'bars': [vram], 'settings': {'ApertureSize': aperture, 'Model': model}}]})

    def replay(self, *args):
        return run('replay', '--socket', self.socket, '--gpu-time', 'none', *args)

    def requests(self):
        """Of all clients there are."""
        report = json.loads(run('clients', '--json', '--socket', self.socket).stdout)
        return sum(client['requests'] for client in report['clients'])


def run(*args):
    return subprocess.run([VIDMM, *args], capture_output=True, text=True, check=False)


def clean(done):
    assert done.returncode == 0 and done.stderr == '', (done.returncode, done.stdout, done.stderr)
    return json.loads(done.stdout)


@test
def a_recording_is_played_against_a_host_and_every_content_is_right():
    with Host() as host:
        for trace in EVERY, TILED:
            here = clean(run('replay', '--vram', '16M', '--aperture', '64M', '--backend', 'linux', '--gpu-time', 'none', '--verify', 'full',
                             '--json', trace))
            there = clean(host.replay('--verify', 'full', '--json', trace))
            assert there['verify_errors'] == 0 and there['backend'] == 'connection', there
            for key in 'events submissions references relocations renders offers bytes_written blocks_checked lost'.split():
                assert there[key] == here[key], (trace, key, there[key], here[key])
    assert host.process.returncode == 0, host.lines


@test
def a_host_of_wddm_2_is_refused_with_the_option_that_helps():
    with Host(model='wddm2') as host:
        done = host.replay(EVERY)
        assert done.returncode == 4 and '--set Model=wddm1' in done.stderr, (done.returncode, done.stderr)


# Fields without a value: the driver is the host's, findings are in the host's log, sizes are not given in percent, the host models the time and has the events.
UNTOLD = {'driver', 'commands', 'policy', 'finding_count', 'findings', 'vram_percent', 'vram_percent_of', 'link_bytes_per_us', 'link_latency_ns', 'paging_engine',
          'latency', 'frames', 'waits', 'link_passes', 'cpu_costs_ns', 'thrash', 'refusal'}
# Fields that do not depend on timing.
EXACT = 'splits bytes_paged_out bytes_discarded bytes_moved evictions ranges_reclaimed range_fallbacks evicted'.split()


@test
def the_report_has_the_same_fields_as_in_one_process():
    with Host() as host:
        for traces in (EVERY,), (TILED,), (EVERY, IMPORTER):
            here = clean(run('replay', '--vram', '16M', '--aperture', '64M', '--backend', 'linux', '--gpu-time', 'none', '--json', *traces))
            there = [clean(host.replay('--json', *traces)) for _ in range(2)]
            for report in there:
                assert list(report) == list(here), (set(report) ^ set(here))
                assert {key for key, value in report.items() if value is None} == UNTOLD, report
                for key in EXACT + ['vram_bytes', 'aperture_bytes', 'peak_live_bytes']:
                    assert report[key] == here[key], (traces, key, report[key], here[key])
                assert [s['size_bytes'] for s in report['segments']] == [s['size_bytes'] for s in here['segments']], report
                assert (report['ranges_acquired'] > 0) == (here['ranges_acquired'] > 0), (report, here)
                # With renames, what has to come in depends on timing.
                for paged in report, here:
                    assert paged['paged_in']['first'] == paged['bytes_paged_in'] > 0, paged
                # Each player patches its last submissions before it requests the statistics.
                assert here['patches'] <= report['patches'] <= here['patches'] + 8 * len(traces), (here, report)
                assert 0 < report['peak_resident_bytes'] <= 80 << 20 and report['peak_system_bytes'] > 0, report
            # Counts cover this run only.
            assert there[0]['patches'] == there[1]['patches'], there


@test
def a_peak_is_that_of_the_run():
    with Host(vram='96M') as host:
        large = clean(host.replay('--json', EXAMPLE))
        small = clean(host.replay('--json', EVERY))
        again = clean(run('replay', '--vram', '96M', '--aperture', '64M', '--backend', 'linux', '--gpu-time', 'none', '--json', EVERY))
    assert small['peak_resident_bytes'] < large['peak_resident_bytes'] // 2, (small, large)
    assert small['bytes_paged_in'] < large['bytes_paged_in'], (small, large)
    # Peaks of live buffers depend on the program alone.
    assert small['peak_live_bytes'] == again['peak_live_bytes'], (small, again)


@test
def a_recorded_program_finds_its_contents_in_little_video_memory():
    with Host(vram='96M') as host:
        result = clean(host.replay('--verify', 'stamps', '--json', EXAMPLE))
    assert result['verify_errors'] == 0 and result['blocks_checked'] > 5000, result
    assert result['evictions'] > 0 and result['bytes_paged_out'] > 0, result
    # The host counts first uses and causes.
    assert result['paged_in']['first'] > 0 and result['paged_in']['again'] > 0 and result['evicted']['video_memory'] > 0, result
    assert result['paged_in']['first'] + result['paged_in']['again'] == result['bytes_paged_in'], result
    assert result['segments'][0]['peak_resident_bytes'] <= 96 << 20, result
    assert host.process.returncode == 0, host.lines


@test
def programs_share_buffers_in_the_recorded_order():
    with Host() as host:
        result = clean(host.replay('--verify', 'full', '--json', EVERY, IMPORTER))
        alone = clean(host.replay('--verify', 'full', '--json', IMPORTER))
        host.await_line(' connected: ', 'pid')
    here = clean(run('replay', '--verify', 'full', '--json', '--vram', '16M', EVERY, IMPORTER))
    assert result['verify_errors'] == 0 and result['lost'] == here['lost'], (result, here)
    assert alone['lost']['unmatched_imports'] > result['lost']['unmatched_imports'], (alone, result)
    assert len(result['traces']) == 2, result
    # Each recording was played by a separate program.
    came = {line.split('pid ')[1].split(',')[0] for line in host.lines if ' connected: ' in line}
    assert len(came) >= 3, host.lines


@test
def without_a_host_there_is_no_replay():
    done = run('replay', '--socket', '/nowhere/socket', EVERY)
    assert done.returncode == 4 and 'no host answers at /nowhere/socket' in done.stderr, done
    with Host() as host:
        pass
    done = run('replay', '--socket', host.socket, EVERY, IMPORTER)
    assert done.returncode == 4, done


@test
def what_is_the_hosts_business_cannot_be_said():
    for option in '--vram=1M', '--aperture=none', '--backend=sim', '--seed=1', '--compare=50%', '--ranges=1', '--events=-', '--switch=1':
        done = run('replay', '--connect', option, EVERY)
        assert done.returncode == 2 and 'the host' in done.stderr, (option, done)


@test
def a_host_that_dies_ends_the_replay():
    with Host() as host:
        player = subprocess.Popen([VIDMM, 'replay', '--socket', host.socket, '--verify', 'stamps', '--json', EXAMPLE],
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        host.await_line('connected: glmark2')
        while host.requests() < 200:
            pass  # each look is a program and a message
        host.process.kill()
        output, errors = player.communicate()
    assert player.returncode == 1 and 'device removed' in errors, (player.returncode, errors)
    # Statistics that only the host had are null.
    report = json.loads(output)
    assert report['evictions'] is None and report['segments'] is None and report['vram_bytes'] is None, report
    assert report['events'] > 0, report


@test
def a_player_that_is_killed_is_gone_from_the_host():
    with Host() as host:
        player = subprocess.Popen([VIDMM, 'replay', '--socket', host.socket, EXAMPLE], stdout=subprocess.DEVNULL)
        host.await_line('connected: glmark2')
        player.send_signal(signal.SIGKILL)
        player.wait()
        host.await_line('disconnected')
        clients = json.loads(run('clients', '--json', '--socket', host.socket).stdout)
        assert clients['clients'] == [], clients
        assert clean(host.replay('--verify', 'full', '--json', EVERY))['verify_errors'] == 0


@test
def of_several_players_the_killed_one_is_named_and_the_others_go_on():
    with Host() as host:
        crew = subprocess.Popen([VIDMM, 'replay', '--socket', host.socket, '--gpu-time', 'none', '--verify', 'stamps', '--json', EXAMPLE, EVERY],
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        host.await_line('connected: glmark2')
        while host.requests() < 200:
            pass
        player = int(next(line for line in host.lines if 'connected: glmark2' in line).split('pid ')[1].split(',')[0])
        assert player != crew.pid, host.lines
        os.kill(player, signal.SIGKILL)
        output, errors = crew.communicate()
        assert crew.returncode == 1 and 'glmark2' in errors and 'killed by signal 9' in errors, (crew.returncode, errors)
        assert errors.count('vidmm:') == 1 and json.loads(output)['verify_errors'] == 0, (output, errors)
        assert clean(host.replay('--verify', 'full', '--json', EVERY))['verify_errors'] == 0
    assert host.process.returncode == 0, host.lines


if __name__ == '__main__':
    sys.exit(main())
