//! Tables of `sensor,vehicles`, with an optional column `observed` in per cent.

use std::collections::HashSet;

use super::lines::Lines;
use super::record::Record;
use super::{Flag, Station, Traffic};
use crate::error::Result;

const HEADERS: [&str; 2] = ["sensor,vehicles", "sensor,vehicles,observed"];
const NAME: usize = 0;
const VEHICLES: usize = 1;
const OBSERVED: usize = 2;

pub(super) fn is_header(line: &str) -> bool {
    HEADERS.contains(&line.trim().to_ascii_lowercase().as_str())
}

pub(super) fn read(header: &str, lines: &mut Lines<'_>) -> Result<Traffic> {
    let columns = header.split(',').count();
    let (mut stations, mut names) = (Vec::new(), HashSet::new());
    while let Some(text) = lines.next()? {
        let fields = fields(text);
        let record = Record::new(lines.number, fields);
        record.check_length(columns)?;
        let station = station(&record)?;
        if !names.insert(station.name.clone()) {
            return Err(record.error(NAME, format!("{} stands twice", station.name)));
        }
        stations.push(station);
    }
    Ok(Traffic { origin: "a table of sensors and vehicles".to_owned(), stations, silent: 0 })
}

fn station(record: &Record<String>) -> Result<Station> {
    let name = record.required(NAME, "the station's name")?.to_owned();
    let vehicles: u64 = record.number(VEHICLES, "a whole number of vehicles")?;
    if vehicles > super::MOST_VEHICLES {
        return Err(record.error(VEHICLES, format!("{vehicles} vehicles at one station are too many")));
    }
    let flag = observed_flag(record.percentage(OBSERVED)?);
    Ok(Station { name, vehicles, flags: flag.into_iter().collect(), place: None })
}

/// The flag of a count of which this percentage was observed, if that is known.
pub(super) fn observed_flag(observed: Option<f64>) -> Option<Flag> {
    match observed? {
        0.0 => Some(Flag::Imputed),
        share if share < 100.0 => Some(Flag::PartlyObserved),
        _ => None,
    }
}

/// The fields between commas; a quoted field may contain commas.
fn fields(text: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    for symbol in text.chars() {
        match symbol {
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            symbol => fields.last_mut().expect("there is always a field").push(symbol),
        }
    }
    fields
}
