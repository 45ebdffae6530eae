//! The privacy algebra as its users meet it: files that compile, files that do not, and the guide.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use uptack::algebra::{Program, to_text};
use uptack::{Mechanism, SeededCoins, Tally};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files of a folder with their texts, in order of name.
fn files(folder: PathBuf, extension: Option<&str>) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| extension.is_none_or(|wanted| path.extension().is_some_and(|found| found == wanted)));
    paths.sort();
    paths.into_iter().map(|path| (path.clone(), fs::read(path).unwrap())).collect()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Every example and the mechanism of the paper's family that it is, in the same numbers.
const EXAMPLES: [(&str, &str); 8] = [
    ("plausible-deniability.alg", "blended(b1=0.05,b2=0.25,b3=0.25,f1=0.05,f2=0.4,ry=0.0001,rn=0.0001)"),
    ("cancelling.alg", "cancelling(b1=0.3,b2=0.3,b3=0.3,s=0.1)"),
    ("first-attempt.alg", "paired(b=0.5,sy=0.2,sn=0.05)"),
    ("third-output.alg", "custom(11=0.2:0.4, 12=0.4:0, 22=0.35:0.55, 33=0.05:0.05)"),
    ("sampling.alg", "sampling(sy=0.05,sn=0.02)"),
    ("noisy-sampling.alg", "noisy-sampling(sy=0.05,sn=0.01)"),
    ("deniable-sampling.alg", "deniable-sampling(sy=0.5,sn=0.2,p1=0.5,p2=0.3)"),
    ("tuned.alg", "tuned(sy1=0.05,sy2=0.02,p1=0.9,p2=0.8,sn=0.01,p3=0.3)"),
];

#[test]
fn every_example_is_the_mechanism_it_says() {
    let shipped = files(root().join("examples"), Some("alg"));
    assert_eq!(shipped.len(), EXAMPLES.len(), "an example is missing from the list, or a file from the folder");
    for (name, family) in EXAMPLES {
        let program = Program::parse(&fs::read_to_string(root().join("examples").join(name)).unwrap()).unwrap();
        let family: Mechanism = family.parse().unwrap();
        // Cells, their order, the outputs of each answer and every integer.
        assert_eq!(program.channel(), &family.channel(), "{name}");
        assert_eq!(program.mechanism().channel(), family.channel(), "{name}");
    }
}

/// The snapshots: each `bad/NAME.alg` gives exactly the message and hint of `bad/NAME.txt`.
#[test]
fn malformed_files_give_distinct_placed_errors() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/algebra/bad");
    let bad = files(folder, Some("alg"));
    assert!(bad.len() >= 20, "{} malformed files", bad.len());
    let mut seen = HashSet::new();
    for (path, bytes) in bad {
        let error = Program::parse(text(&bytes)).expect_err(&path.display().to_string());
        let shown = format!("{error}\nhint: {}\n", error.hint().expect("every error says what to do"));
        let expected = fs::read_to_string(path.with_extension("txt")).unwrap_or_default();
        assert_eq!(shown, expected, "{}", path.display());
        let message = error.to_string();
        assert!(message.starts_with("line ") && message.ends_with('^'), "{message}");
        let words = message.lines().next().unwrap().split_once(": ").unwrap().1.to_owned();
        assert!(seen.insert(words.clone()), "two files give: {words}");
    }
}

/// What the fuzz target checks, on its seeds, the examples and the malformed files.
#[test]
fn the_fuzz_corpus_holds() {
    let bad = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/algebra/bad");
    let seeds = files(root().join("fuzz/corpus/algebra"), None);
    assert!(seeds.len() >= 8, "the corpus is missing");
    for (_, bytes) in
        seeds.into_iter().chain(files(root().join("examples"), Some("alg"))).chain(files(bad, Some("alg")))
    {
        check(&bytes);
        // And every beginning of it, and it without each of its lines.
        for cut in 0..bytes.len() {
            check(&bytes[..cut]);
        }
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for left_out in 0..lines.len() {
            check(&[lines[..left_out].concat(), lines[left_out + 1..].concat()].concat());
        }
    }
}

/// Whatever compiles is a channel that prints, compiles again and solves; nothing panics.
fn check(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(program) = Program::parse(text) else { return };
    let printed = to_text(program.channel());
    let again = Program::parse(&printed).unwrap_or_else(|error| panic!("{error}\n{printed}"));
    assert_eq!(again.channel(), program.channel(), "{printed}");
    assert_eq!(program.mechanism().channel().cells(), program.channel().cells());
    let _ = program.solve();
}

/// The fenced blocks of the guide: ```alg compiles, ```alg-error does not.
#[test]
fn the_guide_s_examples_compile() {
    let guide = fs::read_to_string(root().join("docs/algebra.md")).unwrap();
    let mut counts = [0, 0];
    for block in guide.split("\n```").skip(1).step_by(2) {
        let (language, body) = block.split_once('\n').unwrap();
        match language {
            "alg" => {
                counts[0] += 1;
                Program::parse(body).unwrap_or_else(|error| panic!("{error}\n{body}"));
            }
            "alg-error" => {
                counts[1] += 1;
                assert!(Program::parse(body).is_err(), "{body}");
            }
            _ => {}
        }
    }
    assert!(counts[0] >= 4 && counts[1] >= 1, "{counts:?}");
}

/// The variance that a solution states is the one that simulated crowds show.
///
/// 2000 crowds: the sample variance of a normal has relative standard deviation √(2/1999) = 3.2 %; the bound of 13 %
/// is four of these (α ≈ 6e-5 a mechanism), and a variance wrong by a quarter is seen.
#[test]
fn the_stated_variance_is_that_of_simulated_crowds() {
    for (name, _) in EXAMPLES {
        let program = Program::parse(&fs::read_to_string(root().join("examples").join(name)).unwrap()).unwrap();
        let solution = program.solve().unwrap();
        let channel = program.channel();
        let (owners, yes, crowds) = (400u64, 150u64, 2000u64);
        let sampler = uptack::Sampler::new(channel);
        let mut coins = SeededCoins::new(7);
        let mut estimates = Vec::new();
        for _ in 0..crowds {
            let mut counts = vec![0u64; channel.cells().len()];
            for owner in 0..owners {
                let truth = if owner < yes { uptack::Truth::Yes } else { uptack::Truth::No };
                counts[sampler.draw_seeded(truth, &mut coins)] += 1;
            }
            let tally = Tally::from_cells(channel, &counts).unwrap();
            let counted =
                solution.bins.iter().map(|(bin, weight)| *weight as f64 * tally.count(bin.answer, bin.output) as f64);
            estimates.push(solution.estimate(counted.sum(), owners));
        }
        let mean = estimates.iter().sum::<f64>() / crowds as f64;
        let variance = estimates.iter().map(|e| (e - mean).powi(2)).sum::<f64>() / (crowds - 1) as f64;
        let sd = solution.sd(owners, yes).unwrap();
        assert!((mean - yes as f64).abs() < 4.0 * sd / (crowds as f64).sqrt(), "{name}: mean {mean}");
        assert!((variance / sd.powi(2) - 1.0).abs() < 0.13, "{name}: {variance} against {}", sd.powi(2));
    }
}
