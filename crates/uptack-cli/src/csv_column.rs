//! One column of a CSV file, read as the bytes come.

/// Reads the values of one column from CSV with a header. It understands quoted fields with commas, line ends and doubled
/// quotes, line ends of either kind, and a byte order mark.
pub(crate) struct CsvColumn<'a> {
    name: &'a str,
    /// Where the column is, once the header has been read.
    place: Option<ColumnPlace>,
    state: State,
    /// The fields of the header.
    header: Vec<Vec<u8>>,
    /// The value of the column in the current record.
    value: Vec<u8>,
    /// How many fields of the current record are complete.
    fields: usize,
    line: u64,
    /// The line on which the current record begins.
    record_line: u64,
    is_begun: bool,
}

/// The index of a column, and how many columns there are.
#[derive(Clone, Copy)]
struct ColumnPlace {
    index: usize,
    columns: usize,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nothing but blanks of the field has been seen.
    Before,
    Plain,
    Quoted,
    /// A quotation mark inside a quoted field: its end, or the first of two.
    Mark,
    /// After a quoted field.
    After,
}

/// What is wrong, and on which line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) line: u64,
    pub(crate) what: String,
}

/// Receives the line and the value of each record.
type Taker<'t, E> = &'t mut dyn FnMut(u64, &[u8]) -> Result<(), E>;

/// No value that is compared with another is as long as this.
const LONGEST_VALUE: usize = 4096;
const MARK: &[u8] = b"\xef\xbb\xbf";

impl<'a> CsvColumn<'a> {
    pub(crate) fn new(name: &'a str) -> Self {
        Self {
            name,
            place: None,
            state: State::Before,
            header: vec![Vec::new()],
            value: Vec::new(),
            fields: 0,
            line: 1,
            record_line: 1,
            is_begun: false,
        }
    }

    /// Takes the next bytes; `take` receives the line and the value of each record that ends in them.
    pub(crate) fn feed<E: From<Fault>>(&mut self, bytes: &[u8], take: Taker<'_, E>) -> Result<(), E> {
        for &byte in bytes {
            self.byte(byte, take)?;
        }
        Ok(())
    }

    /// Ends the file; its last record may lack a line end.
    pub(crate) fn finish<E: From<Fault>>(mut self, take: Taker<'_, E>) -> Result<(), E> {
        if self.state == State::Quoted {
            return Err(self.fault("a quotation mark is not closed").into());
        }
        if self.is_begun {
            self.end_record(take)?;
        }
        if self.place.is_none() {
            return Err(self.fault("there is no header").into());
        }
        Ok(())
    }

    fn byte<E: From<Fault>>(&mut self, byte: u8, take: Taker<'_, E>) -> Result<(), E> {
        match (self.state, byte) {
            (State::Quoted, _) => self.quoted_byte(byte)?,
            (State::Mark, b'"') => {
                self.push(byte)?;
                self.state = State::Quoted;
            }
            (_, b',') => self.end_field(),
            (_, b'\n') => self.end_record(take)?,
            (State::Before | State::Plain, _) => self.plain_byte(byte)?,
            (State::Mark | State::After, b' ' | b'\t' | b'\r') => self.state = State::After,
            (State::Mark | State::After, _) => return Err(self.fault("text behind a closing quotation mark").into()),
        }
        if byte == b'\n' {
            self.end_line();
        }
        Ok(())
    }

    fn quoted_byte(&mut self, byte: u8) -> Result<(), Fault> {
        if byte == b'"' {
            self.state = State::Mark;
            return Ok(());
        }
        self.push(byte)
    }

    fn plain_byte(&mut self, byte: u8) -> Result<(), Fault> {
        match (self.state, byte) {
            (State::Before, b'"') => {
                self.is_begun = true;
                self.state = State::Quoted;
                Ok(())
            }
            (State::Before, b' ' | b'\t' | b'\r') => Ok(()),
            _ => {
                self.state = State::Plain;
                self.push(byte)
            }
        }
    }

    fn end_line(&mut self) {
        self.line += 1;
        if self.state != State::Quoted {
            self.record_line = self.line;
        }
    }

    fn push(&mut self, byte: u8) -> Result<(), Fault> {
        self.is_begun = true;
        let Some(field) = self.kept_field() else { return Ok(()) };
        field.push(byte);
        if field.len() > LONGEST_VALUE {
            return Err(self.fault(&format!("a field of more than {LONGEST_VALUE} bytes")));
        }
        Ok(())
    }

    /// The current field, if it is part of the header or of the column.
    fn kept_field(&mut self) -> Option<&mut Vec<u8>> {
        match self.place {
            None => self.header.last_mut(),
            Some(place) => (place.index == self.fields).then_some(&mut self.value),
        }
    }

    fn end_field(&mut self) {
        self.is_begun = true;
        self.fields += 1;
        self.state = State::Before;
        if self.place.is_none() {
            self.header.push(Vec::new());
        }
    }

    fn end_record<E: From<Fault>>(&mut self, take: Taker<'_, E>) -> Result<(), E> {
        match self.place {
            None => self.place = Some(self.find()?),
            Some(place) => {
                self.check_record(place)?;
                take(self.record_line, self.value.trim_ascii())?;
            }
        }
        self.value.clear();
        (self.fields, self.state, self.is_begun) = (0, State::Before, false);
        Ok(())
    }

    fn check_record(&self, place: ColumnPlace) -> Result<(), Fault> {
        let (found, expected) = (self.fields + 1, place.columns);
        if !self.is_begun {
            return Err(self.fault("an empty line"));
        }
        if found != expected {
            return Err(self.fault(&format!("{found} fields, but the header has {expected}")));
        }
        Ok(())
    }

    /// Looks for the column in the header.
    fn find(&self) -> Result<ColumnPlace, Fault> {
        let names = self.header_names();
        let mut places = (0..names.len()).filter(|&index| names[index] == self.name);
        match (places.next(), places.next()) {
            (Some(index), None) => Ok(ColumnPlace { index, columns: names.len() }),
            (Some(_), Some(_)) => Err(self.fault(&format!("two columns are called `{}`", self.name))),
            _ => Err(self.fault(&format!("no column is called `{}`; there are {}", self.name, names.join(", ")))),
        }
    }

    fn header_names(&self) -> Vec<String> {
        let mut names: Vec<&[u8]> = self.header.iter().map(Vec::as_slice).collect();
        names[0] = names[0].strip_prefix(MARK).unwrap_or(names[0]);
        names.into_iter().map(|name| String::from_utf8_lossy(name).trim().trim_matches('"').to_owned()).collect()
    }

    fn fault(&self, what: &str) -> Fault {
        Fault { line: self.record_line, what: what.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn values(text: &str, column: &str, chunk: usize) -> Result<Vec<(u64, String)>, Fault> {
        let mut found = Vec::new();
        let mut take = |line: u64, value: &[u8]| {
            found.push((line, String::from_utf8_lossy(value).into_owned()));
            Ok::<(), Fault>(())
        };
        let mut reader = CsvColumn::new(column);
        text.as_bytes().chunks(chunk).try_for_each(|bytes| reader.feed(bytes, &mut take))?;
        reader.finish(&mut take)?;
        Ok(found)
    }

    #[test]
    fn a_column_is_found_by_its_name_however_the_file_is_written() {
        let text = "\u{feff}name,road,note\r\n\"Ada, \"\"L.\"\"\",A1,\"two\nlines\"\r\nBob , A2 ,\r\nCy,\"A1\" ,x";
        for chunk in [1, 2, 7, 1000] {
            let roads = values(text, "road", chunk).unwrap();
            assert_eq!(roads, [(2, "A1".to_owned()), (4, "A2".to_owned()), (5, "A1".to_owned())]);
            let names = values(text, "name", chunk).unwrap();
            assert_eq!(names[0].1, "Ada, \"L.\"");
        }
        assert_eq!(values("\u{feff}\"a\"\nyes\n", "a", 1).unwrap(), [(2, "yes".to_owned())]);
        assert_eq!(values("a,b\n,\n", "b", 1).unwrap(), [(2, String::new())]);
    }

    #[test]
    fn what_is_wrong_is_named_with_its_line_and_without_a_value() {
        for (text, line, words) in [
            ("", 1, "there is no header"),
            ("a,b\n1,2\nsecret\n", 3, "1 fields, but the header has 2"),
            ("a,b\n\"x\ny\",1\n\nz,2\n", 4, "an empty line"),
            ("a,b\n\"secret", 2, "not closed"),
            ("a,b\n\"secret\"x,1\n", 2, "behind a closing quotation mark"),
            ("c,d\n", 1, "no column is called `a`; there are c, d"),
            ("a,a\n", 1, "two columns"),
        ] {
            let fault = values(text, "a", 3).unwrap_err();
            assert!(fault.line == line && fault.what.contains(words), "{text:?}: {fault:?}");
            assert!(!fault.what.contains("secret"));
        }
        assert!(values(&format!("a\n{}\n", "x".repeat(5000)), "a", 512).unwrap_err().what.contains("4096"));
    }
}
