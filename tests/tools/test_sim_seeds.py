#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""test_sim_seeds.py VIDMM [FIRST [SEEDS [STEPS]]]: `vidmm sim` with many seeds finds nothing, and does everything. TAP."""
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'support'))
from tap_tests import main, test
from vidmm_program import vidmm

FIRST, SEEDS, STEPS = (sys.argv[2:] + ['1', '50', '40000'][len(sys.argv) - 2:])[:3]


@test
def q_465_no_seed_breaks_a_rule():
    found = vidmm('sim', '--seed', FIRST, '--seeds', SEEDS, '--steps', STEPS).stdout
    done = {name: int(count) for name, count in re.findall(r'^([a-z-]+) +(\d+) +\d+ +\d+(?:  fault)?$', found, re.M)}
    adapters = {name: int(count) for name, count in re.findall(r'^([a-z-]+) +(\d+) adapters  fault$', found, re.M)}
    faults = re.findall(r'^([a-z-]+) +(\d+) .*  fault$', found, re.M)
    print(f'# simulated {int(SEEDS) * int(STEPS):,} operations with {SEEDS} seeds')
    print('# simulated faults: ' + ', '.join(f'{name} {int(count):,}' for name, count in faults))
    assert len(adapters) == 4 and all(adapters.values()), found
    assert len(done) > 30 and all(done.values()), done
    for what, least in (('evictions', 5000), ('discards', 500), ('resets', 100)):
        assert int(re.search(rf'(\d+) {what}', found)[1]) >= least, found


sys.exit(main())
