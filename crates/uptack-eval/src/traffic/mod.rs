//! Vehicles by station, read from the files of loop detectors or generated.

mod clearinghouse;
mod generated;
mod lines;
mod metadata;
mod plain;
mod record;

pub use generated::generate;
pub use metadata::{Place, read_places};

use std::collections::HashMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
use serde::Serialize;

use crate::error::{Error, Result};
use lines::Lines;

/// The most vehicles at a station; far fewer cross any road in a window.
const MOST_VEHICLES: u64 = 1_000_000_000;

/// One station and its vehicles in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// Its name in the file.
    pub name: String,
    /// Vehicles that crossed it in the window.
    pub vehicles: u64,
    /// Why to doubt their number.
    pub flags: Vec<Flag>,
    /// Where it is.
    pub place: Option<Place>,
}

impl Station {
    /// Whether its detector is in doubt.
    pub(crate) fn is_suspect(&self) -> bool {
        self.flags.iter().any(|flag| flag.is_suspect())
    }
}

/// Why a station's count may not be what happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Flag {
    /// Nothing was observed: the count is the publisher's own estimate.
    Imputed,
    /// Part of the count was observed, and scaled up.
    PartlyObserved,
    /// Nothing was observed at any station in this window.
    Outage,
    /// The detector never rests: its count in the emptiest window of the day is not far below its median.
    NeverQuiet,
    /// Far more vehicles than at any other station.
    Outlier,
}

/// As in JSON.
impl fmt::Display for Flag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Flag {
    /// Whether the detector itself is in doubt, not just how the count was completed.
    pub fn is_suspect(self) -> bool {
        matches!(self, Self::NeverQuiet | Self::Outlier)
    }
}

/// The vehicles of one window at all stations.
#[derive(Clone, Debug, PartialEq)]
pub struct Traffic {
    /// Where it comes from, in words.
    pub origin: String,
    /// The stations, in the order of the file.
    pub stations: Vec<Station>,
    /// The number of stations in the file that reported no count in the window, which is not a count of zero.
    pub silent: u64,
}

impl Traffic {
    /// Reads a file of loop detectors, plain or gzipped: Caltrans' *station 5-minute* files, or `sensor,vehicles`.
    ///
    /// `window` chooses one window of a whole day, in minutes after midnight; by default the one whose total is nearest to
    /// 50 000 vehicles, the paper's population.
    pub fn read(file: impl Read, window: Option<u32>) -> Result<Self> {
        let mut lines = Lines::new(decompressed(file)?);
        let first = lines.next()?.ok_or_else(|| Error::new("the file is empty"))?.to_owned();
        let mut traffic = if plain::is_header(&first) {
            plain::read(&first, &mut lines)?
        } else if clearinghouse::is_row(&first) {
            clearinghouse::read(&first, &mut lines, window)?
        } else {
            return Err(unknown_format());
        };
        if traffic.stations.is_empty() {
            return Err(Error::new("no station reports a count"));
        }
        flag_outlier(&mut traffic.stations);
        Ok(traffic)
    }

    /// The vehicles of every station.
    pub fn vehicles(&self) -> Vec<u64> {
        self.stations.iter().map(|station| station.vehicles).collect()
    }

    /// All vehicles: the population.
    pub fn total(&self) -> u64 {
        self.vehicles().iter().sum()
    }

    /// The vehicles of the median station (of the lower one of two).
    pub fn median(&self) -> u64 {
        let mut vehicles = self.vehicles();
        vehicles.sort_unstable();
        vehicles[(vehicles.len() - 1) / 2]
    }

    /// Gives the stations their places, and returns how many were found.
    pub fn place(&mut self, places: &HashMap<String, Place>) -> usize {
        let mut found = 0;
        for station in &mut self.stations {
            station.place = places.get(&station.name).copied();
            found += usize::from(station.place.is_some());
        }
        found
    }
}

fn unknown_format() -> Error {
    Error::line(1, "neither `sensor,vehicles` nor a row that starts with a time")
        .with_hint("give a CSV with the header sensor,vehicles or Caltrans' station 5-minute file as it is published")
}

/// The content of a file that may be gzipped.
fn decompressed<'a>(file: impl Read + 'a) -> Result<Box<dyn BufRead + 'a>> {
    let mut file = BufReader::with_capacity(BUFFER, file);
    let start = file.fill_buf().map_err(|error| Error::new(error.to_string()))?;
    if start.starts_with(&GZIP_MAGIC) {
        return Ok(Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(file))));
    }
    Ok(Box::new(file))
}

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const BUFFER: usize = 1 << 16;

/// Flags a single station that is far larger than all others.
fn flag_outlier(stations: &mut [Station]) {
    let vehicles = stations.iter().map(|station| station.vehicles).collect();
    let Some(outlier) = outlier(vehicles) else { return };
    let lone = stations.iter_mut().filter(|station| station.vehicles == outlier);
    lone.for_each(|station| station.flags.push(Flag::Outlier));
}

/// The largest of at least 100 numbers if it is over 1.5 times the next one and over three times the 99th percentile.
fn outlier(mut vehicles: Vec<u64>) -> Option<u64> {
    vehicles.sort_unstable();
    let [.., next, largest] = vehicles[..] else { return None };
    let high = vehicles[(vehicles.len() - 1) * 99 / 100];
    (vehicles.len() >= 100 && 2 * largest > 3 * next && largest > 3 * high).then_some(largest)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn read(text: &str) -> Result<Traffic> {
        Traffic::read(text.as_bytes(), None)
    }

    #[test]
    fn a_plain_file_reads_plain_or_gzipped_with_any_line_end() {
        let text = "sensor,vehicles\r\nA,3\r\n\"B, north\",0\r\n";
        let traffic = read(text).unwrap();
        assert_eq!((traffic.total(), traffic.stations.len(), traffic.median()), (3, 2, 0));
        assert_eq!(traffic.stations[1].name, "B, north");
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text.as_bytes()).unwrap();
        assert_eq!(Traffic::read(&encoder.finish().unwrap()[..], None).unwrap(), traffic);
    }

    #[test]
    fn bad_plain_files_are_refused_with_line_and_field() {
        for (text, part) in [
            ("", "empty"),
            ("hello\nworld\n", "line 1: neither"),
            ("sensor,vehicles\n", "no station"),
            ("sensor,vehicles\nA,-3\n", "line 2, field 2: `-3`"),
            ("sensor,vehicles\nA,3\nB,2.5\n", "line 3, field 2: `2.5`"),
            ("sensor,vehicles\nA,\n", "line 2, field 2: empty"),
            ("sensor,vehicles\n,3\n", "line 2, field 1: empty"),
            ("sensor,vehicles\nA\n", "line 2: 1 field"),
            ("sensor,vehicles\nA,1,2\n", "line 2: 3 fields"),
            ("sensor,vehicles\nA,1\nA,2\n", "line 3, field 1: A stands twice"),
            ("sensor,vehicles\nA,99999999999999999999\n", "line 2, field 2"),
            ("sensor,vehicles,observed\nA,1,101\n", "line 2, field 3"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        assert!(Traffic::read(&b"sensor,vehicles\n\xff\xfe,1\n"[..], None).unwrap_err().to_string().contains("line 2"));
        assert!(Traffic::read(&b"\x1f\x8bnot gzip"[..], None).is_err());
    }

    #[test]
    fn a_lone_giant_is_flagged_and_a_broad_tail_is_not() {
        let with = |largest: u64| {
            let rows: String = (0..200).map(|index| format!("{index},{}\n", index % 50)).collect();
            read(&format!("sensor,vehicles\n{rows}giant,{largest}\n")).unwrap().stations[200].flags.clone()
        };
        assert_eq!(with(500), [Flag::Outlier]);
        assert_eq!(with(60), []);
    }

    #[test]
    fn observed_shares_become_flags() {
        let traffic = read("sensor,vehicles,observed\nA,1,0\nB,1,25\nC,1,100\nD,1,\n").unwrap();
        let flags: Vec<_> = traffic.stations.iter().map(|station| station.flags.clone()).collect();
        assert_eq!(flags, [vec![Flag::Imputed], vec![Flag::PartlyObserved], vec![], vec![]]);
    }
}
