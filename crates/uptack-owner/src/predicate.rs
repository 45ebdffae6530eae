//! The question as an expression that only the device evaluates.
//!
//! Predicates are CEL, cut down to what ends by itself in a time that the text bounds: at most 1 KiB and 64 nested
//! brackets, operators, `in`, and a few functions on strings and numbers. Macros, comprehensions and regular expressions
//! are refused.
//!
//! Work is bounded by a count of steps and never by a clock, so that what an owner answers does not depend on how fast
//! its device is. Before a predicate is evaluated, [`Predicate::steps`] bounds from above what it can take with the
//! attributes at hand; beyond the limit it is not evaluated at all, and the truth is *no*.

use cel::{
    Context, IdedExpr, Program, Value,
    common::ast::{EntryExpr, Expr, IdedEntryExpr, LiteralValue},
};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    thread,
};
use uptack::Truth;

use crate::{
    attributes::Attributes,
    error::{Error, Result},
    spelling,
    typing::{self, Declared},
};

/// The longest predicate, in bytes.
pub const LONGEST: usize = 1024;

/// How deep brackets may be nested.
pub const DEEPEST: usize = 64;
/// The size, in bytes, of the stack for work whose recursion is as deep as a stranger's text makes it. Without
/// optimization, the parser takes 170 kB per nested bracket, and 40 kB per operator of a chain, which may be as long as
/// the text.
const STACK_SIZE: usize = 64 << 20;
/// How deep an expression may be for any thread's stack to suffice.
const SHALLOW: usize = 8;

/// The most steps of all predicates of one card together; each has an equal share.
///
/// With more, evaluation would outlast the [fixed delay](crate::schedule::FIXED_DELAY) on a slow device; with fewer, a
/// ballot of thousands of questions could not compare texts.
pub const MOST_STEPS: u64 = 1 << 24;
/// The longest time, in nanoseconds, that a step may take on a device for the fixed delay to hide it.
///
/// `docs/owner.md` states what steps were measured to take; a tenth of this leaves room for small devices.
pub const SLOWEST_STEP: u64 = 100;
/// The steps of visiting one node of the expression, in units of touching one byte. With fewer, expressions of many
/// small nodes would take longer per step than those that read long texts.
const NODE: u64 = 64;

/// A predicate that has been checked.
pub struct Predicate {
    program: Program,
    attributes: Vec<String>,
    /// The levels of operations below the outermost one.
    depth: usize,
}

impl Predicate {
    /// Parses a predicate; refuses what an owner should not have to evaluate, and what is not a yes/no expression.
    ///
    /// ```
    /// use uptack_owner::predicate::Predicate;
    /// let predicate = Predicate::parse(r#"station == "1203871" && speed > 50.0"#)?;
    /// assert_eq!(predicate.attributes(), ["speed", "station"]);
    /// assert!(Predicate::parse("[1, 2].exists(x, x == lane)").is_err());
    /// assert!(Predicate::parse("speed").is_err());
    /// # Ok::<(), uptack_owner::Error>(())
    /// ```
    pub fn parse(text: &str) -> Result<Self> {
        let predicate = Self::parse_unchecked(text)?;
        predicate.check_types(&Declared::default())?;
        Ok(predicate)
    }

    /// A predicate that can be read, and is probably meant by a text that cannot: with `==` for `=`, `&&` for `and`, and
    /// straight quotation marks.
    ///
    /// ```
    /// use uptack_owner::predicate::Predicate;
    /// let meant = Predicate::suggestion("station = '7' and not lane = 1").unwrap();
    /// assert_eq!(meant, r#"station == "7" && !(lane == 1)"#);
    /// assert_eq!(Predicate::suggestion("station =="), None);
    /// ```
    pub fn suggestion(text: &str) -> Option<String> {
        Some(spelling::corrected(text)).filter(|meant| meant != text && Self::parse(meant).is_ok())
    }

    /// Parses a predicate without asking whether it is a yes/no expression.
    pub(crate) fn parse_unchecked(text: &str) -> Result<Self> {
        if text.len() > LONGEST {
            return Err(refuse(format!("it has {} bytes, and {LONGEST} are allowed", text.len())));
        }
        if nested_brackets(text) > DEEPEST {
            return Err(refuse(format!("its brackets are nested more than {DEEPEST} deep")));
        }
        // The parser is somebody else's and reads what strangers wrote.
        with_room(|| Self::parse_here(text)).unwrap_or_else(|| Err(refuse("it cannot be parsed")))
    }

    fn parse_here(text: &str) -> Result<Self> {
        let program = Program::compile(text).map_err(|errors| unreadable(text, &errors.to_string()))?;
        let mut attributes = Vec::new();
        let depth = walk(program.expression(), &mut attributes)?;
        attributes.sort();
        attributes.dedup();
        Ok(Self { program, attributes, depth })
    }

    /// The attributes that it reads, sorted.
    pub fn attributes(&self) -> &[String] {
        &self.attributes
    }

    /// Refuses a predicate that nobody could answer with *yes* because of its types, or that reads what nobody has.
    ///
    /// This is for analysts, who may know the attributes of owners. An owner's decision must not depend on its own
    /// attributes: for it, what cannot be evaluated is *no*.
    ///
    /// ```
    /// use uptack_owner::{predicate::Predicate, typing::Declared};
    /// let declared = Declared::parse(["lane:int"])?;
    /// assert!(Predicate::parse("lane == 3")?.check_types(&declared).is_ok());
    /// assert!(Predicate::parse("lane == \"3\"")?.check_types(&declared).is_err());
    /// # Ok::<(), uptack_owner::Error>(())
    /// ```
    pub fn check_types(&self, declared: &Declared) -> Result<()> {
        let check = || typing::check(self.program.expression(), declared);
        self.with_room(check).unwrap_or_else(|| Err(refuse("its types cannot be checked")))
    }

    /// The truth of an owner: anything but a plain *true* is *no*, including a missing attribute, an error and more than
    /// `most_steps` of work.
    pub fn truth(&self, subject: &Subject<'_>, most_steps: u64) -> Truth {
        if self.steps(subject) > most_steps {
            return Truth::No;
        }
        self.evaluate(subject).unwrap_or(Truth::No)
    }

    /// `None` if the evaluator panics.
    fn evaluate(&self, subject: &Subject<'_>) -> Option<Truth> {
        let is_true = || matches!(self.program.execute(&subject.context), Ok(Value::Bool(true)));
        self.with_room(|| Truth::from_bool(is_true()))
    }

    /// An upper bound on the steps that evaluation takes: every branch is counted as if it were taken.
    pub fn steps(&self, subject: &Subject<'_>) -> u64 {
        let count = || {
            let mut steps = 0;
            add_steps(self.program.expression(), subject.attributes, &mut steps);
            steps
        };
        self.with_room(count).unwrap_or(u64::MAX)
    }

    /// Runs work that recurses as deep as the predicate; `None` if it panics.
    fn with_room<T: Send>(&self, work: impl FnOnce() -> T + Send) -> Option<T> {
        if self.depth <= SHALLOW { catch_unwind(AssertUnwindSafe(work)).ok() } else { with_room(work) }
    }
}

/// Runs work on a large stack of its own; `None` if it panics or no thread can be started.
fn with_room<T: Send>(work: impl FnOnce() -> T + Send) -> Option<T> {
    thread::scope(|scope| thread::Builder::new().stack_size(STACK_SIZE).spawn_scoped(scope, work).ok()?.join().ok())
}

/// An owner as predicates see it: made once for all predicates of a card.
pub struct Subject<'a> {
    attributes: &'a Attributes,
    context: Context<'static, 'static>,
}

impl<'a> Subject<'a> {
    /// What predicates that read `names` see of an owner.
    pub fn new<'n>(attributes: &'a Attributes, names: impl IntoIterator<Item = &'n String>) -> Self {
        let mut context = Context::default();
        for name in names {
            if let Some(value) = attributes.get(name) {
                context.add_variable_from_value(name.clone(), value);
            }
        }
        Self { attributes, context }
    }
}

/// Adds the steps of an expression, and returns a bound on the size of its value in bytes.
fn add_steps(expression: &IdedExpr, attributes: &Attributes, steps: &mut u64) -> u64 {
    let parts = parts(expression);
    let operands = parts.fold(SCALAR, |sum, part| sum.saturating_add(add_steps(part, attributes, steps)));
    let (touched, size) = cost(expression, operands, attributes);
    *steps = steps.saturating_add(touched).saturating_add(NODE);
    size
}

/// How many bytes the outermost operation touches, and the size of its value, given the size of its operands.
///
/// Every operation that is allowed passes over its operands at most once, and its value is no larger than all of them
/// together, except for numbers written as text, which have a longest form.
fn cost(expression: &IdedExpr, operands: u64, attributes: &Attributes) -> (u64, u64) {
    match &expression.expr {
        Expr::Literal(LiteralValue::String(text)) => alike(text.inner().len() as u64 + SCALAR),
        Expr::Literal(LiteralValue::Bytes(bytes)) => alike(bytes.inner().len() as u64 + SCALAR),
        Expr::Ident(name) => alike(attributes.size(name) + SCALAR),
        Expr::Call(call) => match call.func_name.as_str() {
            "_+_" | "_?_:_" | "_[_]" => alike(operands),
            "string" => alike(operands.max(LONGEST_NUMBER)),
            _ => (operands, SCALAR),
        },
        _ => alike(operands),
    }
}

/// The operands of a call, the elements of a list, the keys and values of a map.
fn parts(expression: &IdedExpr) -> Box<dyn Iterator<Item = &IdedExpr> + '_> {
    match &expression.expr {
        Expr::Call(call) => Box::new(call.target.as_deref().into_iter().chain(&call.args)),
        Expr::List(list) => Box::new(list.elements.iter()),
        Expr::Map(map) => Box::new(map.entries.iter().flat_map(key_and_value)),
        _ => Box::new(std::iter::empty()),
    }
}

fn key_and_value(entry: &IdedEntryExpr) -> Vec<&IdedExpr> {
    match &entry.expr {
        EntryExpr::MapEntry(entry) => vec![&entry.key, &entry.value],
        EntryExpr::StructField(_) => Vec::new(),
    }
}

/// The value is as large as the bytes that are touched.
fn alike(size: u64) -> (u64, u64) {
    (size, size)
}

/// The size of a number or a truth value, and what each value of a list takes in addition to its content.
const SCALAR: u64 = 8;
/// The length of the longest number as text: a double near the smallest one.
const LONGEST_NUMBER: u64 = 400;

/// Where a text stops being a predicate. The parser's own words name its tokens and quote the text, which comes from a
/// stranger; only its place is taken from them: `ERROR: <input>:LINE:COLUMN: …`.
fn unreadable(text: &str, errors: &str) -> Error {
    if text.trim().is_empty() {
        return refuse("it is empty");
    }
    let mut numbers = errors.split(':').skip(2).map_while(|number| number.parse::<usize>().ok());
    let place = match (numbers.next(), numbers.next()) {
        (Some(1), Some(column)) if column > text.chars().count() => "it is incomplete: it ends too early".to_owned(),
        (Some(1), Some(column)) => format!("it cannot be read at character {column}"),
        (Some(line), Some(column)) => format!("it cannot be read at line {line}, character {column}"),
        _ => "it cannot be read".to_owned(),
    };
    refuse(format!("{place}; write comparisons as in `station == \"7\" && speed > 50`"))
}

/// Names the predicate without quoting it: it comes from a stranger and may be long.
fn refuse(reason: impl std::fmt::Display) -> Error {
    Error::Input(format!("the predicate is refused: {reason}"))
}

/// How deep brackets are nested, including those within texts.
fn nested_brackets(text: &str) -> usize {
    let (mut open, mut most) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' | b'[' | b'{' => open += 1,
            b')' | b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        most = most.max(open);
    }
    most
}

const OPERATORS: [&str; 18] = [
    "_?_:_", "_&&_", "_||_", "!_", "_-_", "_+_", "_*_", "_/_", "_%_", "_==_", "_!=_", "_>=_", "_<=_", "_>_", "_<_",
    "-_", "_[_]", "@in",
];
const FUNCTIONS: [&str; 8] = ["startsWith", "endsWith", "contains", "size", "int", "uint", "double", "string"];

/// Walks the whole expression: collects the attributes that it reads, refuses what is not allowed, and returns its depth.
fn walk(expression: &IdedExpr, attributes: &mut Vec<String>) -> Result<usize> {
    check_allowed(expression)?;
    if let Expr::Ident(name) = &expression.expr {
        attributes.push(name.clone());
    }
    parts(expression).try_fold(0, |depth, part| Ok(depth.max(1 + walk(part, attributes)?)))
}

/// Refuses what an owner does not evaluate; the parts of the expression are not looked at.
fn check_allowed(expression: &IdedExpr) -> Result<()> {
    match &expression.expr {
        Expr::Literal(_) | Expr::List(_) | Expr::Ident(_) => Ok(()),
        Expr::Call(call) => check_function(&call.func_name),
        Expr::Map(map) if !map.entries.iter().any(is_field) => Ok(()),
        Expr::Map(_) | Expr::Struct(_) => Err(refuse("it makes a structure")),
        Expr::Comprehension(_) => Err(refuse("it uses a macro, which is not allowed")),
        Expr::Select(_) => Err(refuse("it selects a field; attributes are plain names")),
        Expr::Unspecified => Err(refuse("it is empty")),
    }
}

fn check_function(name: &str) -> Result<()> {
    if OPERATORS.contains(&name) || FUNCTIONS.contains(&name) {
        return Ok(());
    }
    Err(refuse(format!("it calls `{name}`, which is not allowed; allowed are {}", FUNCTIONS.join(", "))))
}

fn is_field(entry: &IdedEntryExpr) -> bool {
    matches!(entry.expr, EntryExpr::StructField(_))
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

    fn is_yes(truth: Truth) -> bool {
        matches!(truth, Truth::Yes)
    }

    fn is_true(predicate: &Predicate, attributes: &Attributes) -> bool {
        is_yes(predicate.truth(&Subject::new(attributes, predicate.attributes()), MOST_STEPS))
    }

    fn truth(text: &str) -> bool {
        is_true(&Predicate::parse(text).unwrap(), &attributes())
    }

    #[test]
    fn predicates_are_evaluated_on_attributes() {
        for yes in [
            r#"station == "1203871""#,
            r#"station in ["1", "1203871"] && speed > 50.0"#,
            "lane == 3 || speed > 100.0",
            "taxi == true",
            r#"!(station.startsWith("9")) && "b" in tags"#,
            "size(tags) == 2",
            "lane + 1 == 4 ? taxi == true : false",
        ] {
            assert!(truth(yes), "{yes}");
        }
        assert!(!truth("speed < 50.0"));
    }

    #[test]
    fn whatever_is_not_true_is_no() {
        for no in [
            "missing == 1",
            "lane == true",
            "station == 3",
            r#"station < 5"#,
            "lane / 0 == 1",
            "9223372036854775807 + lane > 0",
            "tags[7] == \"a\"",
            "taxi == true && missing == 1",
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
    fn a_text_that_cannot_be_read_is_answered_with_its_place_and_not_with_the_parsers_tokens() {
        for (bad, words) in [
            ("", "it is empty"),
            (" ", "it is empty"),
            ("station ==", "it is incomplete"),
            ("station = '7'", "cannot be read at character 9; write comparisons as in `station == \"7\""),
            ("a == 1 &&\n b = 2", "line 2, character 4"),
        ] {
            let told = Predicate::parse(bad).unwrap_err().to_string();
            assert!(told.contains(words), "{bad}: {told}");
            for raw in ["<input>", "Syntax error", "token", "expecting", "'7'"] {
                assert!(!told.contains(raw), "{bad}: {told}");
            }
        }
    }

    #[test]
    fn what_was_meant_is_suggested_only_if_it_can_be_read() {
        for (bad, meant) in [
            ("station = '7'", r#"station == "7""#),
            ("station = 7", "station == 7"),
            ("lane = 1 AND speed >= 50", "lane == 1 && speed >= 50"),
            ("lane = 1 or not speed > 50", "lane == 1 || !(speed > 50)"),
            ("lane <> 1", "lane != 1"),
            ("lane === 1", "lane == 1"),
            ("station == “7”", r#"station == "7""#),
            ("road == 'and so = on' & lane ≥ 2", r#"road == "and so = on" && lane >= 2"#),
            ("mode is 3", "mode == 3"),
        ] {
            assert_eq!(Predicate::suggestion(bad).as_deref(), Some(meant), "{bad}");
        }
        for hopeless in ["", "station ==", "speed", "station = ", "f(1) = 2", "lane == 1"] {
            assert_eq!(Predicate::suggestion(hopeless), None, "{hopeless}");
        }
    }

    #[test]
    fn work_is_bounded_by_steps_and_beyond_them_the_truth_is_no() {
        let predicate = Predicate::parse(r#"station == "1203871" || station + station == "x""#).unwrap();
        let attributes = attributes();
        let subject = Subject::new(&attributes, predicate.attributes());
        let steps = predicate.steps(&subject);
        assert!(is_yes(predicate.truth(&subject, steps)));
        assert!(!is_yes(predicate.truth(&subject, steps - 1)));
        // The bound grows with what is read and with the text, not with the truth.
        let long = Attributes::from_json(&format!(r#"{{"station": "{}"}}"#, "1".repeat(4096))).unwrap();
        assert!(predicate.steps(&Subject::new(&long, predicate.attributes())) > steps + 3 * 4096);
    }

    #[test]
    fn the_most_expensive_text_is_within_the_steps_or_not_evaluated() {
        let long = Attributes::from_json(&format!(r#"{{"a": "{}"}}"#, "x".repeat(4096))).unwrap();
        // Each sum copies all that went before it: a quarter of a gigabyte.
        let sums = format!("size({}a) > 0", "a+".repeat(480));
        let predicate = Predicate::parse(&sums).unwrap();
        let subject = Subject::new(&long, predicate.attributes());
        assert!(predicate.steps(&subject) > MOST_STEPS);
        assert!(!is_yes(predicate.truth(&subject, MOST_STEPS)));
        let nested = Attributes::from_json(&format!(r#"{{"a": [{}"x"]}}"#, "\"x\",".repeat(4000))).unwrap();
        let searches = format!("{}\"y\" in a", "\"y\" in a||".repeat(80));
        let predicate = Predicate::parse(&searches).unwrap();
        let subject = Subject::new(&nested, predicate.attributes());
        assert!(predicate.steps(&subject) > 80 * 4000 * SCALAR);
    }

    /// Whether a text is a predicate. Fails if the parser, the check of types or the evaluator panics, which owners would not
    /// notice: for them it is a refusal, or a *no*.
    fn is_parsed_and_evaluated(text: &str) -> bool {
        if text.len() > LONGEST || nested_brackets(text) > DEEPEST {
            assert!(Predicate::parse(text).is_err());
            return false;
        }
        let Ok(predicate) = with_room(|| Predicate::parse_here(text)).expect("the parser does not panic") else {
            return false;
        };
        let (attributes, declared) = (attributes(), Declared::default());
        let subject = Subject::new(&attributes, predicate.attributes());
        let checked = predicate.with_room(|| typing::check(predicate.program.expression(), &declared));
        checked.expect("the check of types does not panic").ok();
        assert!(predicate.steps(&subject) < u64::MAX);
        predicate.evaluate(&subject).expect("the evaluator does not panic");
        true
    }

    /// As many repetitions as fit, as many as may be nested, and some in between; in a build without optimization, too,
    /// whose frames are the largest.
    #[test]
    fn the_worst_kilobytes_neither_panic_nor_overflow() {
        let pieces = [
            ["(", ")"],
            ["[", "]"],
            ["{", "}"],
            ["{a:", "}"],
            ["!", ""],
            ["-", ""],
            ["a.", ""],
            ["a?", ":a"],
            ["a[", "]"],
            ["!(", ")"],
            ["-(", ")"],
            ["a+", ""],
            ["a+(", ")"],
            ["a&&", ""],
            ["a==", ""],
            ["a?a:", ""],
            ["size(", ")"],
            ["[[", ""],
            ["\"", ""],
            ["'"; 2],
            ["'''", ""],
            ["0x", ""],
        ];
        let mut parsed = 0;
        for [piece, end] in pieces {
            let most = (LONGEST - 1) / (piece.len() + end.len());
            for times in [most, 200, DEEPEST + 1, DEEPEST, DEEPEST - 1, 20].map(|times| times.min(most)) {
                let open = piece.repeat(times);
                for text in [open.clone(), format!("{open}a"), format!("{open}a{}", end.repeat(times))] {
                    parsed += usize::from(is_parsed_and_evaluated(&text));
                }
            }
        }
        assert!(parsed > 40, "{parsed} of the texts are predicates");
    }

    #[test]
    fn brackets_are_nested_no_deeper_than_allowed() {
        let nested = |times: usize| format!("{}taxi == true{}", "(".repeat(times), ")".repeat(times));
        assert!(truth(&nested(DEEPEST)));
        let error = Predicate::parse(&nested(DEEPEST + 1)).unwrap_err().to_string();
        assert!(error.contains("nested more than 64 deep"), "{error}");
    }

    /// On a thread with a quarter of the usual stack: the longest chain of operators, and the longest without a stack of its own.
    #[test]
    fn a_small_stack_suffices() {
        let all = || {
            [508, SHALLOW - 1].into_iter().all(|count| {
                let predicate = Predicate::parse(&format!("{}1>0", "1+".repeat(count))).unwrap();
                predicate.check_types(&Declared::default()).unwrap();
                is_true(&predicate, &attributes())
            })
        };
        assert!(thread::Builder::new().stack_size(512 << 10).spawn(all).unwrap().join().unwrap());
    }

    proptest! {
        #[test]
        fn no_text_panics(text in ".{0,200}") {
            is_parsed_and_evaluated(&text);
        }
    }
}
