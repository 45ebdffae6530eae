//! `sensor,vehicles` with an optional `observed` in per cent.

use std::collections::HashSet;

use super::lines::{Lines, number, optional};
use super::{Flag, Station, Traffic};
use crate::error::Error;

const HEADERS: [&str; 2] = ["sensor,vehicles", "sensor,vehicles,observed"];

pub(super) fn is_header(line: &str) -> bool {
    HEADERS.contains(&line.trim().to_ascii_lowercase().as_str())
}

pub(super) fn read(header: &str, lines: &mut Lines<'_>) -> Result<Traffic, Error> {
    let columns = header.split(',').count();
    let (mut stations, mut names) = (Vec::new(), HashSet::new());
    while let Some(text) = lines.next()? {
        let fields = fields(text);
        let station = station(lines.number, &fields, columns)?;
        if !names.insert(station.name.clone()) {
            return Err(Error::field(lines.number, 1, format!("{} stands twice", station.name)));
        }
        stations.push(station);
    }
    Ok(Traffic { origin: "a table of sensors and vehicles".to_owned(), stations, silent: 0 })
}

fn station(line: u64, fields: &[String], columns: usize) -> Result<Station, Error> {
    if fields.len() != columns {
        let has = fields.len();
        let fields = if has == 1 { "field" } else { "fields" };
        return Err(Error::line(line, format!("{has} {fields} where {columns} belong")));
    }
    let name = fields[0].trim().to_owned();
    if name.is_empty() {
        return Err(Error::field(line, 1, "empty where the station's name belongs"));
    }
    let vehicles: u64 = number(line, 2, &fields[1], "a whole number of vehicles")?;
    if vehicles > super::MOST_VEHICLES {
        return Err(Error::field(line, 2, format!("{vehicles} vehicles at one station are too many")));
    }
    let observed = fields.get(2).map(|text| percentage(line, 3, text)).transpose()?.flatten();
    Ok(Station { name, vehicles, flags: observed_flags(observed), place: None })
}

/// A share in per cent; empty where nobody knows.
pub(super) fn percentage(line: u64, field: usize, text: &str) -> Result<Option<f64>, Error> {
    let value: Option<f64> = optional(line, field, text, "a percentage")?;
    match value {
        Some(value) if !(0.0..=100.0).contains(&value) => {
            Err(Error::field(line, field, format!("{value} is not between 0 and 100 per cent")))
        }
        value => Ok(value),
    }
}

pub(super) fn observed_flags(observed: Option<f64>) -> Vec<Flag> {
    match observed {
        Some(0.0) => vec![Flag::Imputed],
        Some(share) if share < 100.0 => vec![Flag::PartlyObserved],
        _ => Vec::new(),
    }
}

/// Fields between commas; one in quotation marks may hold commas.
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
