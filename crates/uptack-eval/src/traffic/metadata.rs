//! Caltrans' *station metadata*: a header, tab-separated, with a latitude and a longitude a station.

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
    let header: Vec<String> =
        lines.next()?.unwrap_or("").split('\t').map(|name| name.trim().to_ascii_lowercase()).collect();
    let column = |name: &str| {
        header.iter().position(|column| column == name).ok_or_else(|| {
            Error::line(1, format!("no column {name}"))
                .with_hint("give Caltrans' station metadata, whose header starts with ID, Fwy, Dir")
        })
    };
    let (id, latitude, longitude) = (column("id")?, column("latitude")?, column("longitude")?);
    let mut places = HashMap::new();
    while let Some(text) = lines.next()? {
        let text = text.to_owned();
        let fields: Vec<&str> = text.split('\t').collect();
        let line = lines.number;
        if fields.len() != header.len() {
            return Err(Error::line(line, format!("{} fields where {} belong", fields.len(), header.len())));
        }
        let degrees = |field: usize, most: f64| -> Result<Option<f64>, Error> {
            let value: Option<f64> = optional(line, field + 1, fields[field], "a number of degrees")?;
            match value {
                Some(value) if !(-most..=most).contains(&value) => {
                    Err(Error::field(line, field + 1, format!("{value} degrees are not on Earth")))
                }
                value => Ok(value),
            }
        };
        let place = degrees(latitude, 90.0)?.zip(degrees(longitude, 180.0)?);
        if fields[id].trim().is_empty() {
            return Err(Error::field(line, id + 1, "empty where the station's number belongs"));
        }
        if let Some((latitude, longitude)) = place {
            places.insert(fields[id].trim().to_owned(), Place { latitude, longitude });
        }
    }
    Ok(places)
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
