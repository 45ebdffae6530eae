//! Replays the fuzzing corpus, and mutations of valid inputs under fixed seeds, on stable Rust.

use rand::{Rng, SeedableRng, rngs::StdRng, seq::SliceRandom};
use std::path::Path;

#[path = "../../../../../fuzz/net/decoders.rs"]
mod decoders;
use decoders::{TARGETS, samples};

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/net/corpus").join(target);
    let mut files: Vec<_> = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

#[test]
fn no_input_of_the_corpus_fails() {
    for (name, target) in TARGETS {
        let inputs = corpus(name);
        assert!(!inputs.is_empty(), "{name} has no corpus");
        inputs.iter().for_each(|input| target(input));
    }
}

/// Each valid input, and thousands of neighbours of it: cut, flipped, doubled, spliced.
#[test]
fn no_neighbour_of_a_valid_input_fails() {
    let samples = samples();
    let mut coins = StdRng::seed_from_u64(20);
    for (name, target) in TARGETS {
        let mut inputs: Vec<Vec<u8>> =
            samples.iter().filter(|(of, _)| *of == name).map(|(_, input)| input.clone()).collect();
        inputs.extend(corpus(name));
        for _ in 0..3_000 {
            let other = inputs.choose(&mut coins).unwrap().clone();
            let mut input = inputs.choose(&mut coins).unwrap().clone();
            for _ in 0..coins.gen_range(1..4) {
                mutate(&mut input, &other, &mut coins);
            }
            target(&input);
        }
    }
}

fn mutate(input: &mut Vec<u8>, other: &[u8], coins: &mut StdRng) {
    if input.is_empty() {
        input.push(coins.r#gen());
    }
    let place = coins.gen_range(0..input.len());
    match coins.gen_range(0..5) {
        0 => input.truncate(place),
        1 => input[place] ^= 1 << coins.gen_range(0..8),
        2 => input[place] = *[0, 1, 127, 255].choose(coins).unwrap(),
        3 => input.insert(place, coins.r#gen()),
        _ => {
            input.truncate(place);
            input.extend(&other[other.len().min(place)..]);
        }
    }
}
