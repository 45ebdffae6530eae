//! Caltrans' *station metadata*: a header, tab-separated, with a latitude and a longitude for each station.

use std::collections::HashMap;
use std::io::Read;

use super::lines::Lines;
use super::record::Record;
use crate::error::{Error, Result};

/// Where a station is, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// Reads the places of stations; a station without coordinates is left out.
pub fn read_places(file: impl Read) -> Result<HashMap<String, Place>> {
    let mut lines = Lines::new(super::decompressed(file)?);
    let columns = Columns::of(lines.next()?.unwrap_or(""))?;
    let mut places = HashMap::new();
    while let Some(text) = lines.next()? {
        let text = text.to_owned();
        let record = Record::new(lines.number, text.split('\t').collect());
        if let (station, Some(place)) = columns.read(&record)? {
            places.insert(station.to_owned(), place);
        }
    }
    Ok(places)
}

/// How many columns a row has, and those that are read.
struct Columns {
    count: usize,
    id: usize,
    latitude: usize,
    longitude: usize,
}

impl Columns {
    fn of(header: &str) -> Result<Self> {
        let names: Vec<String> = header.split('\t').map(|name| name.trim().to_ascii_lowercase()).collect();
        let column = |name: &str| names.iter().position(|column| column == name).ok_or_else(|| no_column(name));
        Ok(Self {
            count: names.len(),
            id: column("id")?,
            latitude: column("latitude")?,
            longitude: column("longitude")?,
        })
    }

    /// The station's number and its place, if it has both coordinates.
    fn read<'r>(&self, record: &'r Record<&str>) -> Result<(&'r str, Option<Place>)> {
        record.check_length(self.count)?;
        let latitude = degrees(record, self.latitude, 90.0)?;
        let longitude = degrees(record, self.longitude, 180.0)?;
        let station = record.required(self.id, "the station's number")?;
        let place = latitude.zip(longitude).map(|(latitude, longitude)| Place { latitude, longitude });
        Ok((station, place))
    }
}

fn no_column(name: &str) -> Error {
    Error::line(1, format!("no column {name}"))
        .with_hint("give Caltrans' station metadata, whose header starts with ID, Fwy, Dir")
}

fn degrees(record: &Record<&str>, field: usize, most: f64) -> Result<Option<f64>> {
    let value: Option<f64> = record.optional(field, "a number of degrees")?;
    match value {
        Some(value) if !(-most..=most).contains(&value) => {
            Err(record.error(field, format!("{value} degrees are not on Earth")))
        }
        value => Ok(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "ID\tFwy\tDir\tLatitude\tLongitude\tType\n";

    #[test]
    fn places_are_found_by_the_header() {
        let text = format!("{HEADER}900001\t42\tN\t33.5\t-117.25\tML\r\n900002\t42\tN\t\t\tOR\r\n");
        let places = read_places(text.as_bytes()).unwrap();
        assert_eq!(places.len(), 1);
        assert_eq!(places["900001"], Place { latitude: 33.5, longitude: -117.25 });
    }

    #[test]
    fn bad_metadata_is_refused_with_line_and_field() {
        for (text, part) in [
            ("".to_owned(), "line 1: no column id"),
            ("ID\tFwy\n".to_owned(), "line 1: no column latitude"),
            (format!("{HEADER}1\t42\tN\tnorth\t-117\tML\n"), "line 2, field 4: `north`"),
            (format!("{HEADER}1\t42\tN\t33\t-517\tML\n"), "line 2, field 5: -517"),
            (format!("{HEADER}1\t42\tN\n"), "line 2: 3 fields where 6"),
            (format!("{HEADER}\t42\tN\t33\t-117\tML\n"), "line 2, field 1"),
        ] {
            let error = read_places(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
