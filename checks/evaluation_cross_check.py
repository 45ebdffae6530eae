"""Compares three baselines of `uptack evaluate` with the independent package pure-ldp.

Usage: python evaluation_cross_check.py path/to/uptack

A small road network is evaluated with uptack, and the same owners report through pure-ldp's own clients and servers for
generalized randomized response (there: direct encoding), optimized unary encoding and optimized local hashing. For every station the mean
estimate must be the truth, and the root mean squared error over all stations the one uptack measured and predicts.

With 60 runs a mean is off by more than 4.5 of its estimated standard errors once in 30 000, and the ratio of the
errors is known to about 1/sqrt(2RS) for R runs of S stations: 2.9 % here; 12 % is about four of these. A wrong variance
formula (twice the variance: a ratio of 1.41) is caught.
"""

import json
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import xxhash
from pure_ldp.frequency_oracles.direct_encoding import DEClient, DEServer
from pure_ldp.frequency_oracles.local_hashing import LHClient, LHServer, lh_client, lh_server
from pure_ldp.frequency_oracles.unary_encoding import UEClient, UEServer

VEHICLES = [600, 300, 200, 150, 100, 80, 40, 20, 10, 0]
EPSILON = 1.0
RUNS = 60
TOLERANCE = 0.12


class HashOfText:
    """What pure-ldp expects of xxhash, which has come to refuse text and seeds of more than 32 bits."""

    @staticmethod
    def xxh32(text, seed):
        return xxhash.xxh32(text.encode(), seed=seed & 0xFFFFFFFF)


lh_client.xxhash = lh_server.xxhash = HashOfText


def evaluated(uptack):
    """The rows of `uptack evaluate` at equal release guarantee, by label."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder, "network.csv")
        rows = "".join(f"s{index},{count}\n" for index, count in enumerate(VEHICLES))
        data.write_text("sensor,vehicles\n" + rows)
        command = [uptack, "evaluate", "--data", data, "--factors", "1", "--trials", "400", "--json"]
        document = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return {row["label"]: row for row in document["rows"] if row["comparison"] == "release"}


def estimates(client, make_server):
    """One row per run: pure-ldp's estimates for all stations."""
    truths = [station for station, count in enumerate(VEHICLES, start=1) for _ in range(count)]
    results = []
    for _ in range(RUNS):
        server = make_server()
        for truth in truths:
            server.aggregate(client.privatise(truth))
        results.append([server.estimate(station, suppress_warnings=True) for station in range(1, len(VEHICLES) + 1)])
    return np.array(results, dtype=float)


def check(label, row, results):
    errors = results - np.array(VEHICLES)
    rmse = math.sqrt((errors**2).mean())
    standard_errors = errors.std(axis=0, ddof=1) / math.sqrt(RUNS)
    bias = np.abs(errors.mean(axis=0) / standard_errors).max()
    ratios = rmse / row["predicted"], rmse / row["rmse"]
    print(f"{label}: pure-ldp {rmse:.2f}, uptack {row['rmse']:.2f}, theory {row['predicted']:.2f}, bias {bias:.1f} s.e.")
    return bias < 4.5 and all(abs(ratio - 1) < TOLERANCE for ratio in ratios)


def main():
    random.seed(1)
    np.random.seed(1)
    rows, size = evaluated(sys.argv[1]), len(VEHICLES)
    generalized = estimates(DEClient(EPSILON, size), lambda: DEServer(EPSILON, size))
    unary = estimates(UEClient(EPSILON, size, use_oue=True), lambda: UEServer(EPSILON, size, use_oue=True))
    hashing = estimates(LHClient(EPSILON, size, use_olh=True), lambda: LHServer(EPSILON, size, use_olh=True))
    passed = [
        check("generalized randomized response", rows["generalized randomized response"], generalized),
        check("optimized unary encoding", rows["optimized unary encoding"], unary),
        check("optimized local hashing", rows["optimized local hashing"], hashing),
    ]
    # The check can fail: the same reports against the error of another protocol.
    if check("control (must differ)", rows["randomized response"], generalized):
        sys.exit("the control was not caught")
    if not all(passed):
        sys.exit("pure-ldp and uptack disagree")


if __name__ == "__main__":
    main()
