# SPDX-License-Identifier: MIT
"""The faults of tests/tools/planted_driver.c, by name."""
import os
import re


def fault_numbers():
    """The enumeration of planted_driver.c."""
    with open(os.path.join(os.environ['VIDMM_SOURCE_ROOT'], 'tests/tools/planted_driver.c'), encoding='utf-8') as file:
        body = re.search(r'enum \{\n(\tNOTHING.*?)\n\};', file.read(), re.S).group(1)
    numbers, number = {}, 0
    for name, value in re.findall(r'^\t(\w+)(?: = (\d+))?,', body, re.M):
        number = int(value) if value else number
        numbers[name] = number
        number += 1
    return numbers


FAULT = fault_numbers()
