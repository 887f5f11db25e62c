#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the files of standard input that a build compiles, according to its compile_commands.json.

    compiled.py BUILD
"""

import json
import os
import sys

build = sys.argv[1]
with open(os.path.join(build, 'compile_commands.json'), encoding='utf-8') as commands:
    compiled = {os.path.realpath(os.path.join(build, entry['file']))
                for entry in json.load(commands)}
for line in sys.stdin:
    if os.path.realpath(line.strip()) in compiled:
        print(line.strip())
