#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""serve.py [--check]: writes the scripts of corpus/serve, the seeds of fuzz_serve; --check: only says whether they are what is written here.

A line is a script: its name, then steps. A step is KIND[@CONNECTION][:ARGUMENT...][#SEED], N*STEP says it N times. What a kind does with its
arguments: step() in tests/fuzz/hostile.c."""
import os
import sys

KINDS = {'connect': 0, 'hello': 1, 'words': 2, 'join': 3, 'deep': 4, 'draw': 8, 'bent': 9, 'lying': 10, 'raw': 11, 'close': 12, 'tell': 13, 'scribble': 14,
         'drain': 15, 'adopt': 16, 'virtual': 17, 'adapter': 18}
# What a client does well: hello, a device, one of D3DKMT's.
OPEN = 'hello:15 deep:0'
# The same, with lock words; `words`: how often, how (9: any way), 1: by a thread, meanwhile
WORDS = 'hello:31 deep:0 deep:0 deep:1 deep:1#3 deep:1#6 deep:1#9 deep:1#11 deep:1 deep:3 deep:3#2 deep:3#3 deep:3#4 deep:3#6 deep:3#7'
# `deep`: 0 context 1 allocation 17 shared 3 lock 5 unlock 6 render 8 fence 9 . 25 wait for ever 10 open a descriptor 11 open what is shared
# `virtual`: 0 buffer 1 resident 2 commands 3 submit 4 to a hardware queue 5 evict 6 offer 7 reclaim 8 map 9 reserve 10 free 11 update 12 signal 13 wait 14 destroy
# 15 close the device; the first one opens it. 16 wait in a hardware queue 17 signal there 18 signal in contexts 19 sync file 20 memory 21 statistics
# 22 device state 23 escape 24 property 25 priority 26 caches 27 share a resource 28 open one 29 keyed mutex 30 destroy an object 31 mark the device as error
# 49 present on a hardware queue
# `adapter`: 0 enumerate 1 open 2 query 3 clock 4 display 5 priorities 6 present 7 residency 8 trims 9 wait on the CPU 10 fence 11 mutex 12 keyed mutex
# 13 global handle 14 descriptors 15 WDDM 1.x 16 name
GPU = 'hello:15 virtual virtual:0 virtual:0#1 virtual:0#2 virtual:0#3 virtual:0#4 virtual:1 virtual:1#1 virtual:1#2'
HERE = os.path.dirname(os.path.abspath(__file__))


def count_operations():
    """Those of src/wire/operations.tsv: a D3DKMT function, a callback, a function of the runtime, a callback that is not built."""
    with open(os.path.join(HERE, '../../../src/wire/operations.tsv'), encoding='utf-8') as lines:
        return sum(line.partition('\t')[0] in ('operation', 'callback', 'runtime', 'unbuilt') for line in lines)


OPERATIONS = count_operations()


def every_operation():
    for first in range(0, OPERATIONS, 30):
        calls = ' '.join(f'bent:{i}#{i}' for i in range(first, min(first + 30, OPERATIONS)))
        yield f'operations-from-{first}: {OPEN} deep:0 deep:1 deep:8 {calls}'


SCRIPTS = f'''
adopts-what-changes: {OPEN} deep:0 adopt:0 adopt:1 adopt:3 adopt:4 deep:1 deep:3 deep:6 adopt:1:4 close:0
adopts-what-is-none: {OPEN} adopt:2 adopt:8 adopt:0:1 adopt:0:2 adopt:16 hello@1:15 deep@1:0 adopt@1:32 hello@2:15 deep@2:0 adopt@2:64 drain
closes-inside-a-wait: {OPEN} deep:8 deep:8 deep:25 close:0
closes-views-under-locks: {OPEN} 4*deep:1#1 3*deep:3#2 close:2 deep:3#3 drain
disconnect-and-more: {OPEN} deep:1 tell:1 deep:1 deep:3
hello-twice: {OPEN} deep:1 hello:15 hello@1:15
hello-with-a-userfaultfd: hello:9 deep:0 deep:1 deep:3 deep:0 deep:6 drain
hellos-that-are-none: connect hello:0 connect hello:1 hello@1:1 hello@2:2 hello@3:3 hello@4:4 hello@5:5:200 hello@4:6:5
joins-and-fills-channels: {OPEN} join@1:0:1 join@2:0:1 join@3:0:1 join@4:0:1 join@5:0:1 deep@1:1 deep@2:3 deep@3:6
joins-with-a-wrong-word: {OPEN} join@1:0:0:1 join@2:0:0:0
presents-behind-a-wait: {GPU} virtual:16 virtual:16#1 virtual:16#2 ''' + ' '.join(f'virtual:49#{i}' for i in range(16)) + f'''
raw-packets: raw:7:7:7:7:7:7 raw:64:1:16:0:9:9 hello:15 deep:0 raw:200:3:0:0:1:1
reads-nothing: {OPEN} close:3 4*draw:15#4 4*deep:1
scribbles-over-what-it-renders: {OPEN} deep:0 deep:1 deep:0 deep:3 scribble:0:200 deep:6#1 scribble:1:200#1 deep:6#2 scribble:2:200#2 deep:6#3 scribble:3:200#3 deep:6#4
shares-and-dies: {OPEN} 3*deep:17 hello@1:15 deep@1:0 deep@1:0 4*deep@1:11#5 close:0 deep@1:3 deep@1:3 deep@1:6
table-drawn: {OPEN} deep:1 deep:1 draw:15#6 draw:15#7 draw:15#8 draw:15#9 drain
''' + '\n'.join(every_operation()) + f'''
bent-requests: {OPEN} deep:1 deep:0 ''' + ' '.join(f'bent:{i * 5}:{1 + i % 3}:{i * 7}:0:{255 - i}#{i}' for i in range(24)) + f'''
ten-descriptors: {OPEN} lying:0:0:0:1:9:15
too-many-handles: {OPEN} {"deep:1 " * 60}
twelve-descriptors-for-a-stranger: lying:1:0:1:11
unsealed-payload: {OPEN} lying:16:1:0:17:20 lying:17:1:17:20 lying:24:3:3:20
words-are-anything: {WORDS} words:200:9 deep:3#2 deep:5#11 deep:3#3 deep:6 deep:3#4 drain
words-are-holes: {WORDS} words:1:6 deep:3#2 deep:5#11 drain
words-are-numbers: {WORDS} words:40:2 4*deep:5#11 4*deep:5#17 4*deep:3#3 deep:6#1 words:40:7 deep:5#18 deep:6#2 drain
words-are-openings: {WORDS} words:60:3 deep:3#2 words:60:4 deep:3#3 words:3:5 deep:5#11
words-meanwhile: {WORDS} words:0:0:1 8*deep:3#2 8*deep:5#11 4*deep:3#3 deep:6#1 deep:1#3 4*deep:3#7 8*deep:5#19 deep:6#2 8*deep:5#20 drain
words-meanwhile-and-dies: {WORDS} words:0:0:1 4*deep:3#2 4*deep:5#11 close:0 hello@1:31 deep@1:0 deep@1:1 deep@1:3
words-of-another: {WORDS} words:20:1 hello@1:31 deep@1:0 deep@1:0 deep@1:1 deep@1:3 words:200:9 deep@1:3 deep:5#11
virtual-adapter: {GPU} ''' + ' '.join(f'adapter:{i} adapter:{i}#1' for i in range(17)) + f''' adapter:2#2 adapter:2#3 adapter:2#4 virtual:12 adapter:14#2 adapter:14#3 virtual:9 virtual:9#1 ''' + ' '.join(f'virtual:{kind}#{i}' for kind in (11, 23, 26, 49) for i in range(3, 9)) + ' ' + ' '.join(f'adapter:{kind}#{i}' for kind in (14, 16) for i in range(4, 10)) + f''' virtual:15
virtual-addresses-change: {GPU} virtual:8 virtual:9 virtual:10 virtual:11 virtual:8#1 virtual:9#1 virtual:10#1 virtual:11#1 virtual:3 virtual:8#2 virtual:11#2 virtual:3#1
virtual-commands: {GPU} 6*virtual:2 virtual:3 virtual:2#1 virtual:3#1 virtual:2#2 virtual:3#2 virtual:4 virtual:2#3 virtual:4#1 virtual:3#3 scribble:0:200 virtual:3#4 virtual:4#4 drain
virtual-fences: {GPU} virtual:2 virtual:13 virtual:3 virtual:12 virtual:12#1 virtual:13#1 virtual:3#1 virtual:15 virtual virtual:0 virtual:13 close:0
virtual-objects: {GPU} ''' + ' '.join(f'virtual:{i}' for i in range(16, 31)) + f''' virtual:16#1 virtual:17#1 virtual:17#2 virtual:49 virtual:49#1 virtual:49#2 virtual:4 virtual:3 virtual:31 virtual:3#1 virtual:15
virtual-objects-end: {GPU} virtual:2 virtual:3 virtual:30 virtual:3#1 virtual:30#1 virtual:4 virtual:30#2 virtual:16 virtual:30#3 virtual:1 virtual:8 virtual:30#4 virtual:13 virtual:30#5 virtual:17 close:0
virtual-shared: {GPU} virtual:27 virtual:27#1 virtual:28 virtual:28#1 virtual:28#2 virtual:5 virtual:19 virtual:28#3 hello@1:15 virtual@1 virtual@1:28 virtual@1:28#1 virtual@1:15 virtual:29 virtual:29#1 virtual:29#2 virtual:29#3 close:0
virtual-residency: {GPU} virtual:5 virtual:5#1 virtual:6 virtual:3 virtual:7 virtual:1#3 virtual:6#1 virtual:7#1 virtual:14 virtual:14#1 virtual:1#4 virtual:3#1 virtual:15
virtual-under-other-steps: {GPU} deep:0 deep:1 deep:3 virtual:2 virtual:3 draw:15#3 virtual:3#1 bent:40#1 bent:90#2 bent:94#3 virtual:3#2 close:0 hello@1:15 virtual@1 virtual@1:0
well-behaved: {OPEN} deep:0 deep:1 deep:1 deep:1 deep:3 deep:3 deep:3 deep:6 deep:5 deep:5 deep:8 deep:10 drain tell:1
'''


def step(text):
    count, _, text = text.rpartition('*')
    text, _, seed = text.partition('#')
    text, *arguments = text.split(':')
    kind, _, connection = text.partition('@')
    step = [KINDS[kind], int(connection or 0)] + [int(word) % 256 for word in arguments]
    seed = int(seed or 0)
    assert len(step) <= 8, text
    return int(count or 1) * bytes(step + [0] * (8 - len(step)) + [seed % 256, seed // 256])


def main():
    folder = os.path.join(HERE, 'serve')
    wrong = 0
    for line in filter(None, SCRIPTS.splitlines()):
        name, _, steps = line.partition(':')
        script = b''.join(step(text) for text in steps.split())
        path = os.path.join(folder, name)
        if '--check' not in sys.argv:
            with open(path, 'wb') as file:
                file.write(script)
        elif not os.path.exists(path) or open(path, 'rb').read() != script:
            print(f'{path}: not what serve.py writes')
            wrong = 1
    return wrong


if __name__ == '__main__':
    sys.exit(main())
