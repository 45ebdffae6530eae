# For each line "p n blocks": draws blocks of n comparisons and prints the seconds of processor time that took.
import sys
import time

import numpy

generator = numpy.random.default_rng()
print(numpy.__version__, flush=True)
for line in sys.stdin:
    p, n, blocks = line.split()
    p, n, blocks = float(p), int(n), int(blocks)
    start = time.process_time()
    for _ in range(blocks):
        answers = generator.random(n) < p
    print(time.process_time() - start, flush=True)
