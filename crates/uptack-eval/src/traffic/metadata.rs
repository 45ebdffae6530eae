//! Caltrans' *station metadata*: a header, tab-separated, with a latitude and a longitude for each station.

use std::collections::HashMap;
use std::io::Read;

use super::lines::{Lines, optional};
use crate::error::Error;

/// Where a station is, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Place {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// Reads the places of stations; one without coordinates has none.
pub fn read_places(file: impl Read) -> Result<HashMap<String, Place>, Error> {
    let mut lines = Lines::new(super::decompressed(file)?);
    let columns = Columns::of(lines.next()?.unwrap_or(""))?;
    let mut places = HashMap::new();
    while let Some(text) = lines.next()? {
        let text = text.to_owned();
        if let (station, Some(place)) = columns.read(lines.number, &text)? {
            places.insert(station.to_owned(), place);
        }
    }
    Ok(places)
}

/// Where a row has what is read of it.
struct Columns {
    count: usize,
    id: usize,
    latitude: usize,
    longitude: usize,
}

impl Columns {
    fn of(header: &str) -> Result<Self, Error> {
        let names: Vec<String> = header.split('\t').map(|name| name.trim().to_ascii_lowercase()).collect();
        let column = |name: &str| {
            names.iter().position(|column| column == name).ok_or_else(|| {
                Error::line(1, format!("no column {name}"))
                    .with_hint("give Caltrans' station metadata, whose header starts with ID, Fwy, Dir")
            })
        };
        let (id, latitude, longitude) = (column("id")?, column("latitude")?, column("longitude")?);
        Ok(Self { count: names.len(), id, latitude, longitude })
    }

    /// The station's number and its place, if it has both coordinates.
    fn read<'t>(&self, line: u64, text: &'t str) -> Result<(&'t str, Option<Place>), Error> {
        let fields: Vec<&str> = text.split('\t').collect();
        if fields.len() != self.count {
            return Err(Error::line(line, format!("{} fields where {} belong", fields.len(), self.count)));
        }
        let latitude = degrees(line, self.latitude, fields[self.latitude], 90.0)?;
        let longitude = degrees(line, self.longitude, fields[self.longitude], 180.0)?;
        let place = latitude.zip(longitude);
        let station = fields[self.id].trim();
        if station.is_empty() {
            return Err(Error::field(line, self.id + 1, "empty where the station's number belongs"));
        }
        Ok((station, place.map(|(latitude, longitude)| Place { latitude, longitude })))
    }
}

fn degrees(line: u64, field: usize, text: &str, most: f64) -> Result<Option<f64>, Error> {
    let value: Option<f64> = optional(line, field + 1, text, "a number of degrees")?;
    match value {
        Some(value) if !(-most..=most).contains(&value) => {
            Err(Error::field(line, field + 1, format!("{value} degrees are not on Earth")))
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
