//! Caltrans' *station 5-minute* files as the PeMS clearinghouse publishes them.
//!
//! No header; comma-separated: time (`MM/DD/YYYY HH:MM:SS`, the start of the window), station, district, freeway,
//! direction, lane type, length, samples, % observed, total flow, average occupancy, average speed, then five fields
//! per lane (samples, flow, occupancy, speed, observed). An empty field is missing, which is not zero.

use std::collections::{BTreeMap, HashMap};

use super::records::{LineFields, NumberedLines, excerpt};
use super::{Flag, MOST_VEHICLES, Station, Traffic, observed_flag};
use crate::error::{Error, Result};

/// The paper's population.
const WANTED: u64 = 50_000;
/// The fields of the station itself, and those of each lane after them.
const STATION_FIELDS: usize = 12;
const LANE_FIELDS: usize = 5;
const TIME: usize = 0;
const STATION: usize = 1;
const OBSERVED: usize = 8;
const TOTAL_FLOW: usize = 9;
/// The flow among the fields of a lane.
const LANE_FLOW: usize = 1;

/// Whether the line starts with a time, as all of the clearinghouse's rows do.
pub(super) fn is_row(line: &str) -> bool {
    line.split(',').next().is_some_and(|field| parse_time(field).is_some())
}

/// One station in one window.
#[derive(Clone, Copy)]
struct StationCount {
    vehicles: u64,
    observed: Option<f64>,
}

/// The counts of one window by the numbers of the stations.
type WindowCounts = HashMap<usize, StationCount>;

/// Everything that was read. Stations are numbered in the order in which the file names them.
#[derive(Default)]
struct Day {
    date: String,
    /// The windows by their minute after midnight.
    windows: BTreeMap<u32, WindowCounts>,
    stations: Vec<String>,
    numbers: HashMap<String, usize>,
}

pub(super) fn read(first: &str, lines: &mut NumberedLines<'_>, window: Option<u32>) -> Result<Traffic> {
    let mut day = Day::default();
    day.add(&LineFields::new(1, first.split(',').collect()))?;
    while let Some(text) = lines.next()? {
        let text = text.to_owned();
        day.add(&LineFields::new(lines.number, text.split(',').collect()))?;
    }
    day.traffic(window)
}

impl Day {
    fn add(&mut self, record: &LineFields<&str>) -> Result<()> {
        check_shape(record)?;
        let minute = self.minute(record)?;
        let name = record.required(STATION, "the station's number")?;
        let observed = record.percentage(OBSERVED)?;
        let station = self.number(name);
        let Some(vehicles) = vehicles(record)? else { return Ok(()) };
        let window = self.windows.entry(minute).or_default();
        match window.insert(station, StationCount { vehicles, observed }) {
            Some(_) => Err(record.error(STATION, format!("station {name} appears twice in this window"))),
            None => Ok(()),
        }
    }

    /// The minutes after midnight of a row's time, which must be on the same day as the rows before it.
    fn minute(&mut self, record: &LineFields<&str>) -> Result<u32> {
        let (date, minute) = parse_time(record.text(TIME)).ok_or_else(|| not_a_time(record))?;
        if self.date.is_empty() {
            date.clone_into(&mut self.date);
        }
        if date != self.date {
            let message = format!("another day ({date}) than before ({})", self.date);
            return Err(record.error(TIME, message).with_hint("give one day's file at a time"));
        }
        Ok(minute)
    }

    fn number(&mut self, name: &str) -> usize {
        if let Some(&number) = self.numbers.get(name) {
            return number;
        }
        self.stations.push(name.to_owned());
        self.numbers.insert(name.to_owned(), self.stations.len() - 1);
        self.stations.len() - 1
    }

    fn traffic(&self, window: Option<u32>) -> Result<Traffic> {
        let minute = self.window(window)?;
        let stations = self.stations_at(minute);
        Ok(Traffic {
            origin: format!("Caltrans station 5-minute file, {} {}", self.date, clock(minute)),
            silent: (self.stations.len() - stations.len()) as u64,
            stations,
        })
    }

    /// The stations that report a count in this window.
    fn stations_at(&self, minute: u32) -> Vec<Station> {
        let window = &self.windows[&minute];
        let outage = is_outage(window);
        let restless = self.never_quiet();
        let station = |(number, name): (usize, &String)| {
            let count = window.get(&number)?;
            let never_quiet = restless.contains(&number).then_some(Flag::NeverQuiet);
            let flags = [observed_flag(count.observed), outage.then_some(Flag::Outage), never_quiet];
            let flags = flags.into_iter().flatten().collect();
            Some(Station { name: name.clone(), vehicles: count.vehicles, flags, place: None })
        };
        self.stations.iter().enumerate().filter_map(station).collect()
    }

    /// The window asked for, or else the one nearest to the paper's population.
    fn window(&self, asked: Option<u32>) -> Result<u32> {
        match asked {
            Some(minute) if self.windows.contains_key(&minute) => Ok(minute),
            Some(minute) => Err(Error::new(format!("no station reports a count in the window of {}", clock(minute)))
                .with_hint("windows start every five minutes from 00:00")),
            None => self.nearest().ok_or_else(|| Error::new("no station reports a count")),
        }
    }

    /// The window whose total is nearest to the paper's population.
    fn nearest(&self) -> Option<u32> {
        let total = |window: &WindowCounts| window.values().map(|count| count.vehicles).sum::<u64>();
        let windows = self.windows.iter().filter(|(_, window)| !window.is_empty());
        windows.min_by_key(|(minute, window)| (total(window).abs_diff(WANTED), **minute)).map(|(minute, _)| *minute)
    }

    /// The stations whose detectors never rest, outages apart.
    fn never_quiet(&self) -> Vec<usize> {
        let mut counts: Vec<Vec<u64>> = vec![Vec::new(); self.stations.len()];
        for window in self.windows.values().filter(|window| !is_outage(window)) {
            window.iter().for_each(|(station, count)| counts[*station].push(count.vehicles));
        }
        (0..counts.len()).filter(|&station| is_restless(&mut counts[station])).collect()
    }
}

/// Whether all stations say that none of their count was observed.
fn is_outage(window: &WindowCounts) -> bool {
    window.values().all(|count| count.observed == Some(0.0))
}

/// Whether a station's emptiest window of a whole day has more than 40 % of its median, and the median is at least 100:
/// roads rest at night, broken detectors do not.
fn is_restless(counts: &mut [u64]) -> bool {
    const DAY: usize = 200;
    counts.sort_unstable();
    let median = counts.get(counts.len() / 2).copied().unwrap_or(0);
    counts.len() >= DAY && median >= 100 && 10 * counts[0] > 4 * median
}

fn check_shape(record: &LineFields<&str>) -> Result<()> {
    let length = record.len();
    if length >= STATION_FIELDS && (length - STATION_FIELDS).is_multiple_of(LANE_FIELDS) {
        return Ok(());
    }
    let error = Error::line(record.line(), format!("{length} fields, but expected 12, and 5 more for each lane"));
    let raw = length == 26 && record.line() == 1;
    Err(if raw {
        error.with_hint("this looks like the 30-second `station raw` file; take `station 5-minute`")
    } else {
        error
    })
}

fn not_a_time(record: &LineFields<&str>) -> Error {
    record.error(TIME, format!("`{}` is not a time MM/DD/YYYY HH:MM:SS", excerpt(record.text(TIME))))
}

/// The total flow or, if it is missing, the sum over the lanes that have one.
fn vehicles(record: &LineFields<&str>) -> Result<Option<u64>> {
    if let Some(total) = flow(record, TOTAL_FLOW)? {
        return Ok(Some(total));
    }
    let mut sum = None;
    for lane in (STATION_FIELDS..record.len()).step_by(LANE_FIELDS) {
        if let Some(part) = flow(record, lane + LANE_FLOW)? {
            sum = Some(sum.unwrap_or(0) + part);
        }
    }
    Ok(sum)
}

fn flow(record: &LineFields<&str>, field: usize) -> Result<Option<u64>> {
    let value: Option<f64> = record.optional(field, "a number of vehicles")?;
    match value {
        None => Ok(None),
        Some(value) if !(value >= 0.0 && value <= MOST_VEHICLES as f64) => {
            Err(record.error(field, format!("{value} is not a number of vehicles")))
        }
        Some(value) if value.fract() != 0.0 => {
            Err(record.error(field, format!("{value} vehicles is not a whole number")))
        }
        Some(value) => Ok(Some(value as u64)),
    }
}

/// `MM/DD/YYYY HH:MM:SS` as the date and the minutes after midnight.
fn parse_time(text: &str) -> Option<(&str, u32)> {
    let (date, time) = text.trim().split_once(' ')?;
    let minute = parse_clock(time)?;
    is_date(date).then_some((date, minute))
}

fn is_date(text: &str) -> bool {
    let parts: Vec<(usize, Option<u32>)> = text.split('/').map(|part| (part.len(), part.parse().ok())).collect();
    matches!(parts[..], [(2, Some(1..=12)), (2, Some(1..=31)), (4, Some(_))])
}

/// `HH:MM:SS` as the minutes after midnight.
fn parse_clock(text: &str) -> Option<u32> {
    let two_digits = |part: &str| part.trim().parse().ok().filter(|_| part.len() == 2);
    let parts: Vec<u32> = text.split(':').map(two_digits).collect::<Option<_>>()?;
    match parts[..] {
        [hour @ 0..24, minute @ 0..60, 0..60] => Some(hour * 60 + minute),
        _ => None,
    }
}

/// Minutes after midnight as `HH:MM`.
fn clock(minute: u32) -> String {
    format!("{:02}:{:02}", minute / 60, minute % 60)
}

#[cfg(test)]
mod tests {
    use super::super::{Flag, Traffic};

    /// A row of the format with two lanes, made up.
    fn row(time: &str, station: &str, observed: &str, total: &str, lanes: [&str; 2]) -> String {
        let [first, second] = lanes;
        format!(
            "03/04/2031 {time},{station},9,42,N,ML,.5,20,{observed},{total},.01,65.1,10,{first},.01,66,1,10,{second},.01,64,0\r\n"
        )
    }

    fn read(text: &str, window: Option<u32>) -> Result<Traffic, String> {
        Traffic::read(text.as_bytes(), window).map_err(|error| error.to_string())
    }

    #[test]
    fn totals_lanes_and_missing_values_are_read() {
        let text = [
            row("00:00:00", "900001", "100", "30", ["10", "20"]),
            row("00:00:00", "900002", "0", "7", ["3", "4"]),
            row("00:00:00", "900003", "50", "", ["3", "4"]),
            row("00:00:00", "900004", "", "", ["", ""]),
            row("00:05:00", "900001", "100", "31", ["11", "20"]),
        ]
        .concat();
        let traffic = read(&text, Some(0)).unwrap();
        let counts = traffic.vehicles();
        assert_eq!((counts, traffic.silent), (vec![30, 7, 7], 1));
        assert_eq!(traffic.stations[1].flags, [Flag::Imputed]);
        assert_eq!(traffic.stations[2].flags, [Flag::PartlyObserved]);
        assert_eq!(traffic.origin, "Caltrans station 5-minute file, 03/04/2031 00:00");
        // By default the window nearest to the paper's population; here the first, with more vehicles.
        assert_eq!(read(&text, None).unwrap().total(), 44);
        assert!(read(&text, Some(10)).unwrap_err().contains("00:10"));
    }

    #[test]
    fn no_lanes_at_all_is_a_valid_row() {
        let text = "03/04/2031 00:00:00,1,9,42,N,ML,.5,20,100,5,.01,65\n";
        assert_eq!(read(text, None).unwrap().total(), 5);
    }

    #[test]
    fn outages_and_restless_detectors_are_flagged() {
        let mut text = String::new();
        for index in 0..288u32 {
            let time = format!("{:02}:{:02}:00", index / 12, index % 12 * 5);
            let outage = (100..110).contains(&index);
            let observed = if outage { "0" } else { "100" };
            let day = if index.abs_diff(144) < 90 { "400" } else { "20" };
            text += &row(&time, "900001", observed, day, ["1", "1"]);
            text += &row(&time, "900002", observed, "500", ["1", "1"]);
        }
        let flags = |window| {
            let traffic = read(&text, Some(window)).unwrap();
            traffic.stations.into_iter().map(|station| station.flags).collect::<Vec<_>>()
        };
        assert_eq!(flags(0), [vec![], vec![Flag::NeverQuiet]]);
        assert_eq!(flags(505)[0], [Flag::Imputed, Flag::Outage]);
    }

    #[test]
    fn bad_rows_are_refused_with_line_and_field() {
        let good = row("00:00:00", "900001", "100", "30", ["10", "20"]);
        for (bad, part) in [
            (row("00:00:00", "900002", "100", "-1", ["1", "2"]), "line 2, field 10"),
            (row("00:00:00", "900002", "100", "x", ["1", "2"]), "line 2, field 10: `x`"),
            (row("00:00:00", "900002", "100", "1.5", ["1", "2"]), "line 2, field 10: 1.5"),
            (row("00:00:00", "900002", "100", "", ["1", "y"]), "line 2, field 19: `y`"),
            (row("00:00:00", "900002", "170", "1", ["1", "2"]), "line 2, field 9"),
            (row("25:00:00", "900002", "100", "1", ["1", "2"]), "line 2, field 1"),
            (row("00:00:00", "", "100", "1", ["1", "2"]), "line 2, field 2"),
            (row("00:00:00", "900001", "100", "1", ["1", "2"]), "line 2, field 2: station 900001 appears twice"),
            ("03/04/2031 00:00:00,1,2,3\n".to_owned(), "line 2: 4 fields"),
            (good.replace("03/04", "03/05"), "line 2, field 1: another day"),
            ("sensor,vehicles\n".to_owned(), "line 2: 2 fields"),
        ] {
            let error = read(&(good.clone() + &bad), None).unwrap_err();
            assert!(error.contains(part), "{bad}: {error}");
        }
    }
}
