# For each line "options epsilon owners": draws that many answers, one per call, and prints the seconds of processor time that took.
import sys
import time
from importlib.metadata import version

from multi_freq_ldpy.pure_frequency_oracles.GRR import GRR_Client

GRR_Client(0, 2, 1.0)  # compiles it
print(version("multi-freq-ldpy"), flush=True)
for line in sys.stdin:
    options, epsilon, owners = line.split()
    options, epsilon, owners = int(options), float(epsilon), int(owners)
    truths = [owner * 7919 % options for owner in range(owners)]
    start = time.process_time()
    for truth in truths:
        GRR_Client(truth, options, epsilon)
    print(time.process_time() - start, flush=True)
