//! The question as an expression that only the device evaluates.
//!
//! Predicates are CEL, cut down to what ends by itself in a time that the text bounds: at most 1 KiB, operators,
//! `in`, and a few functions on strings and numbers. Macros, comprehensions and regular expressions are refused.

use cel::{
    Context, IdedExpr, Program, Value,
    common::ast::{EntryExpr, Expr},
};
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::{
    attributes::Attributes,
    error::{Error, Result},
};

/// The longest predicate, in bytes.
pub const LONGEST: usize = 1024;

/// A predicate that was checked.
pub struct Predicate {
    program: Program,
    attributes: Vec<String>,
}

impl Predicate {
    /// Parses a predicate and refuses what an owner should not have to evaluate.
    ///
    /// ```
    /// use uptack_owner::predicate::Predicate;
    /// let predicate = Predicate::parse(r#"station == "1203871" && speed > 50.0"#)?;
    /// assert_eq!(predicate.attributes(), ["speed", "station"]);
    /// assert!(Predicate::parse("[1, 2].exists(x, x == lane)").is_err());
    /// # Ok::<(), uptack_owner::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        if text.len() > LONGEST {
            return Err(refuse(format!("it has {} bytes, and {LONGEST} are allowed", text.len())));
        }
        // The parser is somebody else's and reads what strangers wrote.
        let parsed = catch_unwind(|| Program::compile(text)).map_err(|_| refuse("it cannot be parsed"))?;
        let program = parsed.map_err(|errors| {
            let first = errors.to_string();
            refuse(first.lines().next().unwrap_or("it cannot be parsed").to_owned())
        })?;
        let mut attributes = Vec::new();
        look(program.expression(), &mut attributes)?;
        attributes.sort();
        attributes.dedup();
        Ok(Self { program, attributes })
    }

    /// The attributes that it reads, sorted.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// The truth of an owner: anything but a plain *true* is *no*, a missing attribute and an error among them.
    pub fn is_true_of(&self, attributes: &Attributes) -> bool {
        let mut context = Context::default();
        for name in &self.attributes {
            if let Some(value) = attributes.get(name) {
                context.add_variable_from_value(name.clone(), value);
            }
        }
        let evaluated = catch_unwind(AssertUnwindSafe(|| self.program.execute(&context)));
        matches!(evaluated, Ok(Ok(Value::Bool(true))))
    }
}

/// Names the predicate without quoting it: it comes from a stranger and may be long.
fn refuse(reason: impl std::fmt::Display) -> Error {
    Error::Input(format!("the predicate is refused: {reason}"))
}

const OPERATORS: [&str; 18] = [
    "_?_:_", "_&&_", "_||_", "!_", "_-_", "_+_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_>=_", "_<=_", "_>_", "_<_",
    "-_", "_[_]", "@in",
];
const FUNCTIONS: [&str; 8] = ["startsWith", "endsWith", "contains", "size", "int", "uint", "double", "string"];

/// Walks the whole expression: notes what it reads, refuses what is not allowed.
fn look(expression: &IdedExpr, attributes: &mut Vec<String>) -> Result<()> {
    match &expression.expr {
        Expr::Literal(_) => Ok(()),
        Expr::Ident(name) => {
            attributes.push(name.clone());
            Ok(())
        }
        Expr::Call(call) => {
            let name = call.func_name.as_str();
            if !OPERATORS.contains(&name) && !FUNCTIONS.contains(&name) {
                return Err(refuse(format!("it calls `{name}`, which is not allowed")));
            }
            call.target.as_deref().into_iter().chain(&call.args).try_for_each(|part| look(part, attributes))
        }
        Expr::List(list) => list.elements.iter().try_for_each(|part| look(part, attributes)),
        Expr::Map(map) => map.entries.iter().try_for_each(|entry| match &entry.expr {
            EntryExpr::MapEntry(entry) => {
                look(&entry.key, attributes)?;
                look(&entry.value, attributes)
            }
            EntryExpr::StructField(_) => Err(refuse("it makes a structure")),
        }),
        Expr::Comprehension(_) => Err(refuse("it uses a macro, which is not allowed")),
        Expr::Select(_) => Err(refuse("it selects a field; attributes are plain names")),
        Expr::Struct(_) => Err(refuse("it makes a structure")),
        Expr::Unspecified => Err(refuse("it is empty")),
    }
}

impl std::fmt::Debug for Predicate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Predicate").field("attributes", &self.attributes).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn attributes() -> Attributes {
        Attributes::from_json(r#"{"station": "1203871", "speed": 51.5, "lane": 3, "taxi": true, "tags": ["a", "b"]}"#)
            .unwrap()
    }

    fn truth(text: &str) -> bool {
        Predicate::parse(text).unwrap().is_true_of(&attributes())
    }

    #[test]
    fn predicates_are_evaluated_on_attributes() {
        for yes in [
            r#"station == "1203871""#,
            r#"station in ["1", "1203871"] && speed > 50.0"#,
            "lane == 3 || speed > 100.0",
            "taxi",
            r#"!(station.startsWith("9")) && "b" in tags"#,
            "size(tags) == 2",
            "lane + 1 == 4 ? taxi : false",
        ] {
            assert!(truth(yes), "{yes}");
        }
        assert!(!truth("speed < 50.0"));
    }

    #[test]
    fn whatever_is_not_true_is_no() {
        for no in [
            "missing == 1",
            "lane",
            "station",
            r#"station < 5"#,
            "lane / 0 == 1",
            "9223372036854775807 + lane > 0",
            "tags[7] == \"a\"",
            "taxi && missing",
        ] {
            assert!(!truth(no), "{no}");
        }
    }

    #[test]
    fn macros_fields_and_strange_functions_are_refused() {
        for bad in [
            "tags.all(t, t == \"a\")",
            "has(a.b)",
            "tags.map(t, t)",
            "a.b == 1",
            "station.matches(\"1.*\")",
            "duration(\"1s\") == lane",
            "f(1)",
            "A{b: 1}",
            "",
            "station ==",
            "station = 1",
        ] {
            let error = Predicate::parse(bad).expect_err(bad).to_string();
            assert!(error.contains("predicate is refused"), "{error}");
        }
        let long = format!("station == \"{}\"", "x".repeat(LONGEST));
        assert!(Predicate::parse(&long).unwrap_err().to_string().contains("1024 are allowed"));
    }

    #[test]
    fn the_worst_kilobytes_neither_panic_nor_overflow() {
        for piece in
            ["(", "[", "{", "!", "-", "a.", "a?", "a[", "!(", "-(", "a+", "a&&", "a?a:", "[[", "\"", "'''", "0x"]
        {
            let text = piece.repeat(LONGEST / piece.len());
            let _ = Predicate::parse(&text);
            let closed = format!("{}a", piece.repeat(LONGEST / piece.len() - 1));
            if let Ok(predicate) = Predicate::parse(&closed) {
                predicate.is_true_of(&attributes());
            }
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            if let Ok(predicate) = Predicate::parse(&text) {
                predicate.is_true_of(&attributes());
            }
        }
    }
}
