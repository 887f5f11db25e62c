# SPDX-License-Identifier: MIT
"""Replays of recordings, for scripts that print tables of them (Markdown)."""
import argparse
import json
import os
import subprocess


def parser_of(description):
    """A parser with the arguments that all of these scripts have."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('vidmm')
    parser.add_argument('traces', nargs='+')
    parser.add_argument('--limit', type=float, default=300)
    return parser


def replay(args, path, *options):
    """The report of one replay, None if it did not finish within the limit."""
    try:
        done = subprocess.run([args.vidmm, 'replay', '--json', *options, path], capture_output=True, text=True, timeout=args.limit)
        return json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        return None


def name_of(path):
    return os.path.basename(path).replace('.trace.zst', '')


def show(cells):
    print('| ' + ' | '.join(cells) + ' |', flush=True)
