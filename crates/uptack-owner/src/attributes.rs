//! What a device knows about its owner, and the person's own answers. None of it ever leaves the device, and `Debug` does not show it.

use cel::Value;
use serde_json::Value as Json;
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
    sync::Arc,
};
use uptack::Truth;

use crate::{
    error::{Error, Result},
    typing::Type,
};

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

    /// The names of the attributes.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.values.keys().map(String::as_str)
    }

    /// The type of one attribute.
    pub(crate) fn type_of(&self, name: &str) -> Option<Type> {
        self.values.get(name).map(Type::of_value)
    }

    /// The value of one attribute.
    pub(crate) fn get(&self, name: &str) -> Option<Value> {
        self.values.get(name).cloned()
    }

    /// Notes the person's answer to the question of a query.
    pub fn set_answer(&mut self, query: &str, answer: Truth) {
        self.answers.by_query.insert(query.to_owned(), answer);
    }

    /// Has the person answer every question with the value of a yes-or-no attribute, or not at all if it is missing.
    fn answering_with(mut self, name: &str) -> Self {
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

/// The owners of a CSV file.
#[derive(Debug)]
pub struct Fleet {
    /// The owners, with their attributes.
    pub owners: Vec<Named>,
    /// Whether a column names the owners; otherwise they are numbered from 1, in the order of their lines.
    pub is_named: bool,
    columns: Vec<Column>,
}

impl Fleet {
    /// The names of the columns, without their types.
    pub fn columns(&self) -> Vec<&str> {
        self.columns.iter().map(|column| column.name.as_str()).collect()
    }

    /// The owners, where a person answers every question with the value of a column of type bool.
    pub fn answering_with(self, name: &str) -> Result<Vec<Named>> {
        match self.columns.iter().find(|column| column.name == name) {
            Some(column) if column.kind == ColumnType::Bool => {
                Ok(self.owners.into_iter().map(|(owner, known)| (owner, known.answering_with(name))).collect())
            }
            Some(_) => Err(at_line(
                1,
                format_args!("the column `{name}` is not of type bool; call it `{name}:bool` in the header"),
            )),
            None => {
                let columns = self.columns().join(", ");
                Err(at_line(1, format_args!("no column is called `{name}`; the columns are {columns}")))
            }
        }
    }
}

/// Reads the owners of a fleet from CSV with a header.
///
/// A column `owner` names the owners; without it they are numbered from 1. Every other column is an attribute, as
/// text unless its name ends in `:int`, `:double` or `:bool`. An empty field is a missing attribute. A byte order mark is
/// ignored. Without a `separator`, fields are separated by commas, and a header that looks as if another sign separated
/// them is refused: all owners would lack their attributes, and every count would be about zero.
pub fn fleet_from_csv(text: &str, separator: Option<char>) -> Result<Fleet> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let columns = read_header(lines.next().map(|(_, line)| line), separator)?;
    let mut owners = Vec::new();
    let mut names = BTreeSet::new();
    for (place, line) in lines {
        let (named, attributes) = read_owner(line, place, &columns, separator)?;
        let name = named.unwrap_or_else(|| (owners.len() + 1).to_string());
        if !names.insert(name.clone()) {
            return Err(at_line(place, "an owner of this name appears on an earlier line"));
        }
        owners.push((name, attributes));
    }
    if owners.is_empty() {
        return Err(at_line(2, "there are no owners below the header"));
    }
    Ok(Fleet { owners, is_named: columns.iter().any(Column::names_owners), columns })
}

/// The sign that seems to separate the fields of a CSV file, if that is not the comma: it appears in the name of a column,
/// where no attribute that a predicate can read has it.
pub fn suspected_separator(text: &str) -> Option<char> {
    let header = text.strip_prefix('\u{feff}').unwrap_or(text).lines().find(|line| !line.trim().is_empty())?;
    SEPARATORS.map(|(sign, _)| sign).into_iter().filter(|sign| *sign != COMMA).find(|sign| header.contains(*sign))
}

const COMMA: char = ',';
/// The signs that separate fields, and their names.
pub const SEPARATORS: [(char, &str); 4] = [(COMMA, "comma"), (';', "semicolon"), ('\t', "tab"), ('|', "bar")];

fn read_header(line: Option<&str>, separator: Option<char>) -> Result<Vec<Column>> {
    let line = line.ok_or_else(|| at_line(1, "a header with the names of the attributes is missing"))?;
    let suspected = suspected_separator(line).filter(|_| separator.is_none());
    if let Some((_, name)) = SEPARATORS.iter().find(|(sign, _)| Some(*sign) == suspected) {
        let columns = fields(line, 1, COMMA)?.len();
        let found = if columns == 1 { "1 column".to_owned() } else { format!("{columns} columns") };
        return Err(at_line(
            1,
            format_args!("separated by commas, the header has {found}; is the separator a {name}?"),
        ));
    }
    let columns: Vec<Column> =
        fields(line, 1, separator.unwrap_or(COMMA))?.into_iter().map(Column::parse).collect::<Result<_>>()?;
    let mut names = BTreeSet::new();
    match columns.iter().find(|column| !names.insert(&column.name)) {
        Some(twice) => Err(at_line(1, format_args!("two columns are called `{}`", twice.name))),
        None => Ok(columns),
    }
}

/// The name of an owner, if there is a column for it, and its attributes.
fn read_owner(
    line: &str,
    place: usize,
    columns: &[Column],
    separator: Option<char>,
) -> Result<(Option<String>, Attributes)> {
    let values = fields(line, place, separator.unwrap_or(COMMA))?;
    if values.len() != columns.len() {
        let (found, expected) = (values.len(), columns.len());
        return Err(at_line(place, format_args!("{found} fields, but the header has {expected}")));
    }
    let (mut name, mut attributes) = (None, Attributes::default());
    for (column, value) in columns.iter().zip(values) {
        if column.names_owners() {
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

#[derive(Debug)]
struct Column {
    name: String,
    kind: ColumnType,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

    fn names_owners(&self) -> bool {
        self.name == "owner"
    }

    fn read(&self, text: &str, line: usize) -> Result<Value> {
        let value = match self.kind {
            ColumnType::Text => (text.len() <= LONGEST_TEXT).then(|| Value::from(text)),
            ColumnType::Int => text.parse().ok().map(Value::Int),
            // A number that is not finite is neither above nor below any other, so every comparison would mean no.
            ColumnType::Double => text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float),
            ColumnType::Bool => text.to_ascii_lowercase().parse().ok().map(Value::Bool),
        };
        value.ok_or_else(|| at_line(line, self.misread(text)))
    }

    /// Why a value is not of the column's type. The value itself is the owner's private matter and is not shown.
    fn misread(&self, text: &str) -> String {
        let name = &self.name;
        let has_decimal_comma = text.replace(',', ".").parse::<f64>().is_ok();
        match self.kind {
            ColumnType::Text => format!("the text of `{name}` has more than {LONGEST_TEXT} bytes"),
            ColumnType::Bool => format!("`{name}` is neither true nor false, which its column's type `bool` says"),
            ColumnType::Int => format!("`{name}` is not a whole number, which its column's type `int` says"),
            ColumnType::Double if has_decimal_comma => {
                format!("`{name}` is written with a decimal comma; write a decimal point")
            }
            ColumnType::Double => format!("`{name}` is not a number, which its column's type `double` says"),
        }
    }
}

/// The fields of a line; quoted ones may hold separators and doubled quotes.
fn fields(line: &str, place: usize, separator: char) -> Result<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut characters = line.trim_end_matches('\r').chars().peekable();
    let mut quoted = false;
    while let Some(character) = characters.next() {
        let field = fields.last_mut().expect("there is always one");
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => field.extend(characters.next()),
            '"' if quoted => quoted = false,
            '"' if field.is_empty() => quoted = true,
            sign if sign == separator && !quoted => fields.push(String::new()),
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
        let Fleet { owners, is_named, .. } = fleet_from_csv(text, None).unwrap();
        assert!(is_named && owners.len() == 2);
        assert_eq!(owners[0].0, "a");
        assert_eq!(owners[0].1.get("station"), Some(Value::from("12,\"x\"")));
        assert_eq!(owners[0].1.get("speed"), Some(Value::Float(51.5)));
        assert_eq!(owners[1].1.get("station"), None);
        assert_eq!(owners[1].1.get("taxi"), Some(Value::Bool(false)));
        let unnamed = fleet_from_csv("station\nx\ny\n", None).unwrap();
        assert!(!unnamed.is_named && unnamed.owners[1].0 == "2");
        let spelled = fleet_from_csv("taxi:bool\nTrue\nFALSE\n", None).unwrap();
        assert_eq!(spelled.owners[0].1.get("taxi"), Some(Value::Bool(true)));
    }

    #[test]
    fn a_header_that_another_sign_separates_is_asked_about_and_never_read_as_one_column() {
        for (header, sign, name) in [
            ("owner;station", ';', "semicolon"),
            ("\u{feff}owner\tstation\r", '\t', "tab"),
            ("owner|station", '|', "bar"),
            ("owner;station,name;lane", ';', "semicolon"),
        ] {
            let text = format!("{header}\n{}\n", header.replace("owner", "a").replace("station", "7"));
            let told = fleet_from_csv(&text, None).unwrap_err().to_string();
            assert!(told.contains(&format!("is the separator a {name}?")), "{told}");
            assert_eq!(suspected_separator(&text), Some(sign));
        }
        assert_eq!(suspected_separator("owner,station\n"), None);
        let text = "owner;station;speed:double\na;\"7;8\";40.5\n";
        let fleet = fleet_from_csv(text, Some(';')).unwrap();
        assert_eq!(fleet.owners[0].1.get("station"), Some(Value::from("7;8")));
        // Whoever says that it is the comma is believed.
        assert_eq!(fleet_from_csv("owner;station\na;7\n", Some(',')).unwrap().columns(), ["owner;station"]);
    }

    #[test]
    fn a_decimal_comma_is_named_and_not_read() {
        let told = fleet_from_csv("owner;speed:double\na;40,5\n", Some(';')).unwrap_err().to_string();
        assert!(told.contains("line 2") && told.contains("decimal point") && !told.contains("40"), "{told}");
        for bad in ["NaN", "inf", "fast"] {
            assert!(fleet_from_csv(&format!("speed:double\n{bad}\n"), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn people_answer_by_a_column_that_exists_and_is_true_or_false() {
        let fleet = || fleet_from_csv("owner,likes:bool,name\na,true,x\n", None).unwrap();
        let owners = fleet().answering_with("likes").unwrap();
        assert!(matches!(owners[0].1.answer("any query"), Some(Truth::Yes)));
        assert!(fleet().answering_with("name").unwrap_err().to_string().contains("`name:bool`"));
        assert!(fleet().answering_with("like").unwrap_err().to_string().contains("owner, likes, name"));
    }

    #[test]
    fn bad_fleets_name_the_line_and_not_the_value() {
        for (text, line) in [
            ("", "line 1"),
            ("owner,a\n", "line 2"),
            ("a,b,a\n1,2,3\n", "line 1"),
            ("a:bool\nsecret\n", "line 2"),
            ("a:float\n1\n", "line 1"),
            ("a,b\n1,2\nsecret\n", "line 3"),
            ("a:int\nsecret\n", "line 2"),
            ("owner,a\nx,1\nx,2\n", "line 3"),
            ("a\n\"secret\n", "line 2"),
        ] {
            let message = fleet_from_csv(text, None).unwrap_err().to_string();
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
