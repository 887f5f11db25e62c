# SPDX-License-Identifier: MIT
"""Runs of the program vidmm, whose path is the first argument of the test."""
import json
import os
import subprocess
import sys
import tempfile


def vidmm(*args, code=0):
    done = subprocess.run([sys.argv[1], *args], capture_output=True, text=True)
    assert done.returncode == code, (args, done.returncode, done.stderr)
    return done


def record(folder, *args, name='run'):
    """Replays with all events in two files. Returns the recording and the lines of the events."""
    path, text = os.path.join(folder, name), os.path.join(folder, name + '.txt')
    vidmm('replay', '-q', '--record', path, '--events', text, *args)
    with open(text, encoding='utf-8') as lines:
        return path, [line.rstrip('\n') for line in lines]


class Host:
    """A running vidmm serve with a configuration; its standard error says when it accepts connections."""

    def __init__(self, configuration):
        self.folder = tempfile.TemporaryDirectory()
        self.socket = os.path.join(self.folder.name, 'socket')
        path = os.path.join(self.folder.name, 'config.json')
        with open(path, 'w', encoding='utf-8') as file:
            json.dump(configuration, file)
        self.process = subprocess.Popen([sys.argv[1], 'serve', '--config', path, '--socket', self.socket], stderr=subprocess.PIPE, text=True)
        self.lines = []
        self.await_line('serves')

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.terminate()
        self.lines += self.process.communicate()[1].splitlines()
        self.folder.cleanup()

    def await_line(self, *words):
        """Of what was not looked at yet; a client that is cut off is what no test waits for."""
        while not self.lines or not all(word in self.lines[-1] for word in words):
            assert not self.lines or 'cut off' not in self.lines[-1], self.lines
            self.lines.append(self.process.stderr.readline())
            assert self.lines[-1], self.lines
