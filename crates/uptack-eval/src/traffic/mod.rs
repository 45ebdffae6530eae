//! Vehicles by station, read from the files of loop detectors or generated; tables of `sensor,vehicles`, and where
//! stations are.

mod clearinghouse;
mod generated;
mod records;

use std::collections::{HashMap, HashSet};
use std::fmt;
use std::io::{BufRead, BufReader, Read};

use flate2::bufread::MultiGzDecoder;
pub use generated::generate;
use records::{LineFields, NumberedLines};
use serde::Serialize;

use crate::error::{Error, Result};

/// The most vehicles at a station; far fewer cross any road in a window.
const MOST_VEHICLES: u64 = 1_000_000_000;

/// One station and its vehicles in the window.
#[derive(Clone, Debug, PartialEq)]
pub struct Station {
    /// Its name in the file.
    pub name: String,
    /// Vehicles that crossed it in the window.
    pub vehicles: u64,
    /// Reasons to doubt this number.
    pub flags: Vec<Flag>,
    /// Where it is.
    pub place: Option<Coordinates>,
}

impl Station {
    /// Whether its detector is doubtful.
    pub(crate) fn is_suspect(&self) -> bool {
        self.flags.iter().any(|flag| flag.is_suspect())
    }
}

/// Why a station's count may be wrong.
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
    /// Whether the detector itself is doubtful, not just the way in which the count was completed.
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
        let mut lines = NumberedLines::new(decompressed(file)?);
        let first = lines.next()?.ok_or_else(|| Error::new("the file is empty"))?.to_owned();
        let mut traffic = if is_plain_header(&first) {
            read_plain(&first, &mut lines)?
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

    /// How many places an owner can be at if the population is `factor` times the traffic: the stations and, if it has grown,
    /// elsewhere.
    pub(crate) fn places(&self, factor: u64) -> u64 {
        self.stations.len() as u64 + u64::from(factor > 1)
    }

    /// Gives the stations their places, and returns how many were found.
    pub fn place(&mut self, places: &HashMap<String, Coordinates>) -> usize {
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

const HEADERS: [&str; 2] = ["sensor,vehicles", "sensor,vehicles,observed"];
const NAME: usize = 0;
const VEHICLES: usize = 1;
const OBSERVED: usize = 2;

fn is_plain_header(line: &str) -> bool {
    HEADERS.contains(&line.trim().to_ascii_lowercase().as_str())
}

fn read_plain(header: &str, lines: &mut NumberedLines<'_>) -> Result<Traffic> {
    let columns = header.split(',').count();
    let (mut stations, mut names) = (Vec::new(), HashSet::new());
    while let Some(text) = lines.next()? {
        let fields = fields(text);
        let record = LineFields::new(lines.number, fields);
        record.check_length(columns)?;
        let station = station(&record)?;
        if !names.insert(station.name.clone()) {
            return Err(record.error(NAME, format!("{} appears twice", station.name)));
        }
        stations.push(station);
    }
    Ok(Traffic { origin: "a table of sensors and vehicles".to_owned(), stations, silent: 0 })
}

fn station(record: &LineFields<String>) -> Result<Station> {
    let name = record.required(NAME, "the station's name")?.to_owned();
    let vehicles: u64 = record.number(VEHICLES, "a whole number of vehicles")?;
    if vehicles > MOST_VEHICLES {
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

/// Where a station is, in degrees.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coordinates {
    /// Degrees north.
    pub latitude: f64,
    /// Degrees east.
    pub longitude: f64,
}

/// Reads the places of stations; a station without coordinates is left out.
pub fn read_places(file: impl Read) -> Result<HashMap<String, Coordinates>> {
    let mut lines = NumberedLines::new(decompressed(file)?);
    let columns = Columns::of(lines.next()?.unwrap_or(""))?;
    let mut places = HashMap::new();
    while let Some(text) = lines.next()? {
        let text = text.to_owned();
        let record = LineFields::new(lines.number, text.split('\t').collect());
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
    fn read<'r>(&self, record: &'r LineFields<&str>) -> Result<(&'r str, Option<Coordinates>)> {
        record.check_length(self.count)?;
        let latitude = degrees(record, self.latitude, 90.0)?;
        let longitude = degrees(record, self.longitude, 180.0)?;
        let station = record.required(self.id, "the station's number")?;
        let place = latitude.zip(longitude).map(|(latitude, longitude)| Coordinates { latitude, longitude });
        Ok((station, place))
    }
}

fn no_column(name: &str) -> Error {
    Error::line(1, format!("no column {name}"))
        .with_hint("give Caltrans' station metadata, whose header starts with ID, Fwy, Dir")
}

fn degrees(record: &LineFields<&str>, field: usize, most: f64) -> Result<Option<f64>> {
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
    use std::io::Write;

    use super::*;

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
            ("sensor,vehicles\nA,1\nA,2\n", "line 3, field 1: A appears twice"),
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

    const HEADER: &str = "ID\tFwy\tDir\tLatitude\tLongitude\tType\n";

    #[test]
    fn places_are_found_by_the_header() {
        let text = format!("{HEADER}900001\t42\tN\t33.5\t-117.25\tML\r\n900002\t42\tN\t\t\tOR\r\n");
        let places = read_places(text.as_bytes()).unwrap();
        assert_eq!(places.len(), 1);
        assert_eq!(places["900001"], Coordinates { latitude: 33.5, longitude: -117.25 });
    }

    #[test]
    fn bad_metadata_is_refused_with_line_and_field() {
        for (text, part) in [
            ("".to_owned(), "line 1: no column id"),
            ("ID\tFwy\n".to_owned(), "line 1: no column latitude"),
            (format!("{HEADER}1\t42\tN\tnorth\t-117\tML\n"), "line 2, field 4: `north`"),
            (format!("{HEADER}1\t42\tN\t33\t-517\tML\n"), "line 2, field 5: -517"),
            (format!("{HEADER}1\t42\tN\n"), "line 2: 3 fields, but expected 6"),
            (format!("{HEADER}\t42\tN\t33\t-117\tML\n"), "line 2, field 1"),
        ] {
            let error = read_places(text.as_bytes()).unwrap_err().to_string();
            assert!(error.contains(part), "{error}");
        }
    }
}
