//! Values computed by an independent program.

use std::collections::BTreeMap;

use serde::Deserialize;
use uptack::answer_name;
use uptack::estimate::Estimator;

use crate::family::channel;

#[derive(Deserialize)]
struct File {
    vectors: Vec<Vector>,
}

#[derive(Deserialize)]
struct Vector {
    mechanism: String,
    owners: u64,
    yes: f64,
    cells: Vec<(String, f64, f64)>,
    combined_sd: f64,
    bin_sd: BTreeMap<String, Option<f64>>,
}

fn vectors() -> Vec<Vector> {
    let file: File = serde_json::from_str(include_str!("../vectors/static.json")).unwrap();
    assert_eq!(file.vectors.len(), 9);
    file.vectors
}

#[test]
fn cells_and_laws() {
    for vector in vectors() {
        let channel = channel(&vector.mechanism);
        assert_eq!(channel.cells().len(), vector.cells.len(), "{}", vector.mechanism);
        for (cell, (name, yes, no)) in channel.cells().iter().zip(&vector.cells) {
            assert_eq!(&cell.name(), name);
            assert!((cell.yes().to_f64() - yes).abs() < 1e-15, "{} {name}", vector.mechanism);
            assert!((cell.no().to_f64() - no).abs() < 1e-15, "{} {name}", vector.mechanism);
        }
    }
}

#[test]
fn standard_deviations() {
    let same = |ours: f64, theirs: f64| (ours / theirs - 1.0).abs() < 1e-9;
    for vector in vectors() {
        let channel = channel(&vector.mechanism);
        let estimator = Estimator::new(&channel).unwrap();
        let combined = estimator.sd(vector.owners, vector.yes).unwrap();
        assert!(same(combined, vector.combined_sd), "{}: {combined}", vector.mechanism);
        let sds = estimator.bin_sds(vector.owners, vector.yes).unwrap();
        assert_eq!(sds.len(), vector.bin_sd.len());
        for (bin, sd) in channel.bins().iter().zip(sds) {
            let name = format!("{}{}", answer_name(bin.answer), bin.output);
            match (sd, vector.bin_sd[&name]) {
                (Some(ours), Some(theirs)) => assert!(same(ours, theirs), "{} {name}: {ours}", vector.mechanism),
                (ours, theirs) => assert_eq!(ours, theirs, "{} {name}", vector.mechanism),
            }
        }
    }
}
