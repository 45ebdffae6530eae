// From a mechanism's text to its channel, for mechanisms with one answer. Parameters stay exact until each probability is rounded
// once, to a multiple of 2^−64.

import { type Cell, type Channel, WHOLE } from "./card.js";
import { complement, isAtMost, ONE, plainText, plus, type Rational, readRational, times } from "./exact.js";

/** Rounds half to even. */
function rounded({ numerator, denominator }: Rational): bigint {
  const [floor, rest] = [(numerator * WHOLE) / denominator, (numerator * WHOLE) % denominator];
  const isUp = 2n * rest > denominator || (2n * rest === denominator && floor % 2n === 1n);
  return isUp ? floor + 1n : floor;
}

type Law = [one: bigint, zero: bigint, bottom: bigint];

/** The law that takes part with probability `part` and answers `1` with probability `one`, otherwise `0`. */
function takingPart(part: bigint, one: bigint): Law {
  return [one, part > one ? part - one : 0n, WHOLE - part];
}

function cells(outputs: readonly string[], yes: readonly bigint[], no: readonly bigint[]): Cell[] {
  return outputs.map((output, index) => ({ outputs: [output], yes: yes[index]!, no: no[index]! }));
}

const threeOutputs = (yes: Law, no: Law): Cell[] => cells(["1", "0", "⊥"], yes, no);

interface Family {
  readonly keys: readonly string[];
  /** The cells; `undefined` if the parameters are inconsistent. */
  cells(values: readonly Rational[]): Cell[] | undefined;
}

const FAMILIES: { readonly [name: string]: Family } = {
  "randomized-response": {
    keys: ["t"],
    cells([truthful]) {
      const truth = rounded(truthful!);
      return cells(["1", "0"], [truth, WHOLE - truth], [WHOLE - truth, truth]);
    },
  },
  "normal-form": {
    keys: ["f", "r"],
    cells([part, flip]) {
      if (!isAtMost(flip!, part!)) return undefined;
      const whole = rounded(part!);
      const least = rounded(flip!) < whole ? rounded(flip!) : whole;
      const [truth, flipped, bottom] = takingPart(whole, whole - least);
      return threeOutputs([truth, flipped, bottom], [flipped, truth, bottom]);
    },
  },
  sampling: {
    keys: ["sy", "sn"],
    cells: ([yes, no]) => threeOutputs(takingPart(rounded(yes!), rounded(yes!)), takingPart(rounded(no!), 0n)),
  },
  "noisy-sampling": {
    keys: ["sy", "sn"],
    cells: ([yes, no]) => threeOutputs(takingPart(rounded(yes!), rounded(yes!)), takingPart(rounded(no!), rounded(no!))),
  },
  "deniable-sampling": {
    keys: ["sy", "sn", "p1", "p2"],
    cells([yes, no, truthful, forced]) {
      const oneIfYes = complement(times(complement(truthful!), complement(forced!)));
      const oneIfNo = times(complement(truthful!), forced!);
      const law = (part: Rational, one: Rational): Law => takingPart(rounded(part), rounded(times(part, one)));
      return threeOutputs(law(yes!, oneIfYes), law(no!, oneIfNo));
    },
  },
  tuned: {
    keys: ["sy1", "sy2", "p1", "p2", "sn", "p3"],
    cells([sy1, sy2, p1, p2, sn, p3]) {
      const part = plus(sy1!, sy2!);
      if (!isAtMost(part, ONE)) return undefined;
      const one = plus(times(sy1!, p1!), times(sy2!, p2!));
      return threeOutputs(takingPart(rounded(part), rounded(one)), takingPart(rounded(sn!), rounded(times(sn!, p3!))));
    },
  },
};

/** A number between 0 and 1 in canonical form. */
function readShare(text: string): Rational | undefined {
  const value = readRational(text);
  return value && plainText(value) === text && isAtMost(value, ONE) ? value : undefined;
}

/** The channel of a mechanism's canonical text; `undefined` if the mechanism is unknown. */
export function channelOfText(text: string): Channel | undefined {
  const parts = /^([a-z-]+)\(([^()]*)\)(?: \+ laplace\(scale=([^()]*)\))?$/.exec(text);
  const family = parts && Object.hasOwn(FAMILIES, parts[1]!) ? FAMILIES[parts[1]!] : undefined;
  if (!family) return undefined;
  const pairs = parts![2]!.split(",").map((pair) => pair.split("="));
  if (pairs.map(([key]) => key).join() !== family.keys.join()) return undefined;
  const values = pairs.map(([, value]) => readShare(value ?? ""));
  const found = values.includes(undefined) ? undefined : family.cells(values as Rational[]);
  const noise = parts![3] === undefined ? undefined : readRational(parts![3]);
  if (!found || (parts![3] !== undefined && (!noise || plainText(noise) !== parts![3]))) return undefined;
  return { answers: [found.map((cell) => cell.outputs[0]!)], cells: found, noise };
}

/** Whether two channels have the same integers in the same order. */
export function isSameChannel(one: Channel, other: Channel): boolean {
  const text = (channel: Channel): string =>
    JSON.stringify([
      channel.answers,
      channel.cells.map((cell) => [cell.outputs, cell.yes.toString(), cell.no.toString()]),
      channel.noise ? plainText(channel.noise) : null,
    ]);
  return text(one) === text(other);
}
