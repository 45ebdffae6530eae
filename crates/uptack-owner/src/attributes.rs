//! What a device knows about its owner, and the person's own answers. None of it ever leaves the device, and `Debug` does not show it.

use cel::Value;
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};
use uptack::Truth;

use crate::error::{Error, Result};

/// The largest text of one attribute, in bytes.
const LONGEST_TEXT: usize = 4096;

/// Named values: text, numbers, yes or no, and lists of them; and the person's own answers.
#[derive(Clone, Default)]
pub struct Attributes {
    values: BTreeMap<String, Value>,
    answers: PersonsAnswers,
}

/// The person's answers to questions that no device can answer.
#[derive(Clone, Default)]
struct PersonsAnswers {
    by_query: BTreeMap<String, Truth>,
    to_every_other: Option<Truth>,
}

impl Attributes {
    /// Reads a JSON object.
    pub fn from_json(text: &str) -> Result<Self> {
        let fields: serde_json::Map<String, Json> = serde_json::from_str(text).map_err(not_an_object)?;
        let values = fields.into_iter().map(|(name, value)| match convert(&value) {
            Some(value) => Ok((name, value)),
            None => Err(Error::Input(format!(
                "the attribute `{name}` is neither text, number, true, false nor a list of them"
            ))),
        });
        values.collect::<Result<_>>().map(|values| Self { values, answers: PersonsAnswers::default() })
    }

    /// How many bytes an attribute holds, at most; 0 if it is missing.
    pub(crate) fn size(&self, name: &str) -> u64 {
        self.values.get(name).map_or(0, size)
    }

    /// The value of one attribute.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.values.get(name).cloned()
    }

    /// Notes the person's answer to the question of a query.
    pub fn set_answer(&mut self, query: &str, answer: Truth) {
        self.answers.by_query.insert(query.to_owned(), answer);
    }

    /// Has the person answer every question with the value of a yes-or-no attribute, or not at all if it is missing: for fleets.
    #[must_use]
    pub fn answering_with(mut self, name: &str) -> Self {
        self.answers.to_every_other = match self.values.get(name) {
            Some(Value::Bool(yes)) => Some(Truth::from_bool(*yes)),
            _ => None,
        };
        self
    }

    /// The person's answer to the question of a query; `None` if the person was not asked or did not answer.
    pub(crate) fn answer(&self, query: &str) -> Option<Truth> {
        self.answers.by_query.get(query).copied().or(self.answers.to_every_other)
    }
}

impl fmt::Debug for Attributes {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Attributes(…)")
    }
}

/// The library's own message could quote a value.
fn not_an_object(error: serde_json::Error) -> Error {
    let place = format!("line {}, column {}", error.line(), error.column());
    Error::Input(format!("attributes are a JSON object of names and values ({place})"))
}

fn size(value: &Value) -> u64 {
    8 + match value {
        Value::String(text) => text.len() as u64,
        Value::List(items) => items.iter().map(size).sum(),
        _ => 0,
    }
}

fn convert(value: &Json) -> Option<Value> {
    match value {
        Json::String(text) if text.len() <= LONGEST_TEXT => Some(Value::from(text.as_str())),
        Json::Bool(truth) => Some(Value::Bool(*truth)),
        Json::Number(number) => number.as_i64().map(Value::Int).or_else(|| number.as_f64().map(Value::Float)),
        Json::Array(items) if items.len() <= LONGEST_TEXT => convert_list(items),
        _ => None,
    }
}

/// A list of anything but lists.
fn convert_list(items: &[Json]) -> Option<Value> {
    let scalar = |item: &Json| if item.is_array() { None } else { convert(item) };
    Some(Value::List(Arc::new(items.iter().map(scalar).collect::<Option<_>>()?)))
}

/// An owner's name and its attributes.
pub type Named = (String, Attributes);

/// Reads the owners of a fleet from CSV with a header.
///
/// A column `owner` names the owners; without it they are numbered from 1. Every other column is an attribute, as
/// text unless its name ends in `:int`, `:double` or `:bool`. An empty field is a missing attribute. A byte order mark is
/// ignored.
pub fn fleet_from_csv(text: &str) -> Result<Vec<Named>> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let columns = read_header(lines.next().map(|(_, line)| line))?;
    let mut owners = Vec::new();
    let mut names = BTreeSet::new();
    for (place, line) in lines {
        let (named, attributes) = read_owner(line, place, &columns)?;
        let name = named.unwrap_or_else(|| (owners.len() + 1).to_string());
        if !names.insert(name.clone()) {
            return Err(at_line(place, "an owner of this name appears on an earlier line"));
        }
        owners.push((name, attributes));
    }
    Ok(owners)
}

fn read_header(line: Option<&str>) -> Result<Vec<Column>> {
    let line = line.ok_or_else(|| at_line(1, "a header with the names of the attributes is missing"))?;
    fields(line, 1)?.into_iter().map(Column::parse).collect()
}

/// The name of an owner, if there is a column for it, and its attributes.
fn read_owner(line: &str, place: usize, columns: &[Column]) -> Result<(Option<String>, Attributes)> {
    let values = fields(line, place)?;
    if values.len() != columns.len() {
        let (found, expected) = (values.len(), columns.len());
        return Err(at_line(place, format_args!("{found} fields, but the header has {expected}")));
    }
    let (mut name, mut attributes) = (None, Attributes::default());
    for (column, value) in columns.iter().zip(values) {
        if column.name == "owner" {
            name = Some(value);
        } else if !value.is_empty() {
            attributes.values.insert(column.name.clone(), column.read(&value, place)?);
        }
    }
    Ok((name, attributes))
}

fn at_line(line: usize, problem: impl fmt::Display) -> Error {
    Error::Input(format!("line {line}: {problem}"))
}

struct Column {
    name: String,
    kind: ColumnType,
}

#[derive(Clone, Copy)]
enum ColumnType {
    Text,
    Int,
    Double,
    Bool,
}

impl Column {
    fn parse(header: String) -> Result<Self> {
        let (name, kind) = match header.rsplit_once(':') {
            None => (header.as_str(), ColumnType::Text),
            Some((name, "int")) => (name, ColumnType::Int),
            Some((name, "double")) => (name, ColumnType::Double),
            Some((name, "bool")) => (name, ColumnType::Bool),
            Some((_, other)) => {
                return Err(at_line(1, format_args!("`{other}` is not a type; int, double and bool are")));
            }
        };
        if name.is_empty() {
            return Err(at_line(1, "a column has no name"));
        }
        Ok(Self { name: name.to_owned(), kind })
    }

    fn read(&self, text: &str, line: usize) -> Result<Value> {
        let value = match self.kind {
            ColumnType::Text => (text.len() <= LONGEST_TEXT).then(|| Value::from(text)),
            ColumnType::Int => text.parse().ok().map(Value::Int),
            ColumnType::Double => text.parse().ok().map(Value::Float),
            ColumnType::Bool => text.parse().ok().map(Value::Bool),
        };
        // The value itself is the owner's private matter and is not shown.
        value.ok_or_else(|| at_line(line, format_args!("`{}` does not have the type of its column", self.name)))
    }
}

/// The fields of a line; quoted ones may hold commas and doubled quotes.
fn fields(line: &str, place: usize) -> Result<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    let mut quoted = false;
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is always one");
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            ',' if !quoted => fields.push(String::new()),
            other => field.push(other),
        }
    }
    if quoted {
        return Err(at_line(place, "a quotation mark is not closed"));
    }
    Ok(fields.into_iter().map(|field| field.trim().to_owned()).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fleet_is_read_with_types_and_names() {
        let text = "owner,station,speed:double,lane:int,taxi:bool\r\na,\"12,\"\"x\"\"\",51.5,3,true\r\nb,,,,false\r\n";
        let owners = fleet_from_csv(text).unwrap();
        assert_eq!(owners.len(), 2);
        assert_eq!(owners[0].0, "a");
        assert_eq!(owners[0].1.get("station"), Some(Value::from("12,\"x\"")));
        assert_eq!(owners[0].1.get("speed"), Some(Value::Float(51.5)));
        assert_eq!(owners[1].1.get("station"), None);
        assert_eq!(owners[1].1.get("taxi"), Some(Value::Bool(false)));
        assert_eq!(fleet_from_csv("station\nx\ny\n").unwrap()[1].0, "2");
    }

    #[test]
    fn bad_fleets_name_the_line_and_not_the_value() {
        for (text, line) in [
            ("", "line 1"),
            ("a:float\n1\n", "line 1"),
            ("a,b\n1,2\nsecret\n", "line 3"),
            ("a:int\nsecret\n", "line 2"),
            ("owner,a\nx,1\nx,2\n", "line 3"),
            ("a\n\"secret\n", "line 2"),
        ] {
            let message = fleet_from_csv(text).unwrap_err().to_string();
            assert!(message.contains(line) && !message.contains("secret"), "{message}");
        }
    }

    #[test]
    fn attributes_do_not_show() {
        let attributes = Attributes::from_json(r#"{"station": "secret", "list": [1, "a", true]}"#).unwrap();
        assert!(!format!("{attributes:?}").contains("secret"));
        for bad in ["", "[]", "{\"a\": null}", "{\"a\": {\"b\": 1}}", "{\"a\": [[1]]}", "{\"a\": \"secret"] {
            let message = Attributes::from_json(bad).unwrap_err().to_string();
            assert!(!message.contains("secret"), "{message}");
        }
    }
}
