//! The types of a predicate's parts, before anything is evaluated.
//!
//! Owners answer *no* whenever an expression is not a plain *true*, even if it is a mistake, and nobody hears of it. So
//! a predicate is refused by everyone who reads it unless it is a yes/no expression, whatever the attributes are; analysts
//! who know the attributes' types check those too; and [`fit`](crate::fit) finds owners whose attributes do not fit.

use cel::{
    IdedExpr, Value,
    common::ast::{CallExpr, Expr, LiteralValue},
};
use std::{collections::BTreeMap, fmt};

use crate::error::{Error, Result};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Type {
    /// Text in quotation marks.
    Text,
    /// A whole number.
    Int,
    /// A whole number written with a `u`.
    UInt,
    /// A number with a decimal point.
    Double,
    /// True or false.
    Bool,
    /// A list of values.
    List,
    /// A map, bytes or null: nothing that an attribute can be.
    Other,
    /// Not known before it is evaluated.
    Unknown,
}

impl Type {
    fn named(name: &str) -> Option<Self> {
        Some(match name {
            "text" | "string" => Self::Text,
            "int" => Self::Int,
            "double" => Self::Double,
            "bool" => Self::Bool,
            "list" => Self::List,
            _ => return None,
        })
    }

    /// The type of an attribute's value.
    pub(crate) fn of_value(value: &Value) -> Self {
        match value {
            Value::String(_) => Self::Text,
            Value::Int(_) => Self::Int,
            Value::UInt(_) => Self::UInt,
            Value::Float(_) => Self::Double,
            Value::Bool(_) => Self::Bool,
            Value::List(_) => Self::List,
            _ => Self::Other,
        }
    }

    fn of_literal(literal: &LiteralValue) -> Self {
        match literal {
            LiteralValue::Boolean(_) => Self::Bool,
            LiteralValue::Double(_) => Self::Double,
            LiteralValue::Int(_) => Self::Int,
            LiteralValue::UInt(_) => Self::UInt,
            LiteralValue::String(_) => Self::Text,
            LiteralValue::Bytes(_) | LiteralValue::Null => Self::Other,
        }
    }

    fn is_number(self) -> bool {
        matches!(self, Self::Int | Self::UInt | Self::Double | Self::Unknown)
    }

    /// Whether some values of the type come before others.
    fn is_ordered(self) -> bool {
        self.is_number() || matches!(self, Self::Text | Self::Bool)
    }

    fn may_be(self, other: Self) -> bool {
        self == other || self == Self::Unknown
    }

    /// Whether values of the two types can be equal. Numbers are compared whatever their types.
    fn may_equal(self, other: Self) -> bool {
        self.may_be(other) || other == Self::Unknown || (self.is_number() && other.is_number())
    }

    /// Whether a value of the one type can come before one of the other.
    fn may_precede(self, other: Self) -> bool {
        self.may_equal(other) && self.is_ordered() && other.is_ordered()
    }
}

impl fmt::Display for Type {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Text => "text",
            Self::Int | Self::UInt => "a whole number",
            Self::Double => "a number",
            Self::Bool => "yes or no",
            Self::List => "a list",
            Self::Other => "something else",
            Self::Unknown => "a value of unknown type",
        })
    }
}

/// Which attributes owners have, and of which types. If it is empty, nothing is declared, and any name may be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Declared(BTreeMap<String, Type>);

impl Declared {
    /// Reads declarations: `station`, or with its type `station:text`, `lane:int`, `speed:double`, `taxi:bool`,
    /// `tags:list`.
    pub fn parse<'a>(items: impl IntoIterator<Item = &'a str>) -> Result<Self> {
        items.into_iter().map(declaration).collect::<Result<_>>().map(Self)
    }

    /// The types of attributes that are known.
    pub(crate) fn known(types: impl IntoIterator<Item = (String, Type)>) -> Self {
        Self(types.into_iter().collect())
    }

    /// The type that is declared for an attribute, if there is one.
    pub(crate) fn declared_as(&self, name: &str) -> Option<Type> {
        self.0.get(name).copied().filter(|kind| *kind != Type::Unknown)
    }

    /// The type of an attribute; an error if others are declared and it is not.
    fn of(&self, name: &str) -> Result<Type> {
        match self.0.get(name) {
            Some(kind) => Ok(*kind),
            None if self.0.is_empty() => Ok(Type::Unknown),
            None => {
                let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
                let declared = known.join(", ");
                Err(Error::Input(format!(
                    "the predicate reads `{name}`, which is not declared; declared are {declared}"
                )))
            }
        }
    }
}

/// Reads `name` or `name:type`.
fn declaration(item: &str) -> Result<(String, Type)> {
    let (name, kind) = match item.split_once(':') {
        None => (item, Type::Unknown),
        Some((name, kind)) => (name, declared_type(kind)?),
    };
    match name.trim() {
        "" => Err(Error::Input(format!("`{item}` has no name before its type"))),
        name => Ok((name.to_owned(), kind)),
    }
}

fn declared_type(kind: &str) -> Result<Type> {
    let unknown = || Error::Input(format!("`{kind}` is not a type; text, int, double, bool and list are"));
    Type::named(kind.trim()).ok_or_else(unknown)
}

/// Refuses an expression that is not true or false by its form, or that cannot be true of anybody because of its types.
pub(crate) fn check(expression: &IdedExpr, declared: &Declared) -> Result<()> {
    match (type_of(expression, declared)?, &expression.expr) {
        (Type::Bool, _) => Ok(()),
        (Type::Unknown, Expr::Ident(name)) => Err(by_itself(name)),
        (Type::Unknown, _) => Err(not_yes_or_no("a value of unknown type")),
        (kind, _) => Err(not_yes_or_no(&kind.to_string())),
    }
}

fn not_yes_or_no(what: &str) -> Error {
    Error::Input(format!(
        "the predicate is {what}, not a yes/no expression; compare it with something, as in `… == true` or `… > 0`"
    ))
}

/// An attribute where something true or false is needed. It might be a number or a text, which nobody would notice.
fn by_itself(name: &str) -> Error {
    Error::Input(format!(
        "the predicate uses `{name}` by itself, which is not a yes/no expression; compare it with something, as in \
         `{name} == true` or `{name} > 0`"
    ))
}

fn type_of(expression: &IdedExpr, declared: &Declared) -> Result<Type> {
    Ok(match &expression.expr {
        Expr::Literal(literal) => Type::of_literal(literal),
        Expr::Ident(name) => declared.of(name)?,
        Expr::List(list) => {
            types_of(&list.elements, declared)?;
            Type::List
        }
        Expr::Map(_) => Type::Other,
        Expr::Call(call) => type_of_call(call, declared)?,
        _ => Type::Unknown,
    })
}

fn type_of_call(call: &CallExpr, declared: &Declared) -> Result<Type> {
    let operands = Operands::of(call, declared)?;
    match (call.func_name.as_str(), operands.types.as_slice()) {
        (operator @ ("_&&_" | "_||_" | "!_"), _) => operands.all_are_yes_or_no(operator.trim_matches('_')),
        ("_==_" | "_!=_", &[left, right]) => operands.compared(left.may_equal(right)),
        ("_<_" | "_<=_" | "_>_" | "_>=_", &[left, right]) => operands.compared(left.may_precede(right)),
        ("@in", &[one, whole]) => operands.contained(one, whole, declared),
        ("_?_:_", &[_, yes, no]) => operands.chosen(yes, no),
        (operator @ ("_+_" | "_-_" | "_*_" | "_/_" | "_%_"), &[left, right]) => {
            operands.calculated(operator.trim_matches('_'), left, right)
        }
        ("-_", &[kind]) if kind.is_number() => Ok(kind),
        ("-_", _) => Err(refuse("`-` takes a number".to_owned())),
        ("startsWith" | "endsWith", _) => operands.all_are_text(&call.func_name),
        (function, _) => Ok(type_made_by(function)),
    }
}

/// What a function makes of anything that it takes.
fn type_made_by(function: &str) -> Type {
    match function {
        "contains" => Type::Bool,
        "size" | "int" => Type::Int,
        "uint" => Type::UInt,
        "double" => Type::Double,
        "string" => Type::Text,
        _ => Type::Unknown,
    }
}

/// The operands of a call, which errors name, and their types.
struct Operands<'a> {
    parts: Vec<&'a IdedExpr>,
    types: Vec<Type>,
}

impl<'a> Operands<'a> {
    fn of(call: &'a CallExpr, declared: &Declared) -> Result<Self> {
        let parts: Vec<&IdedExpr> = call.target.as_deref().into_iter().chain(&call.args).collect();
        let types = types_of(parts.iter().copied(), declared)?;
        Ok(Self { parts, types })
    }

    /// `&&`, `||` and `!`.
    fn all_are_yes_or_no(&self, sign: &str) -> Result<Type> {
        (0..self.types.len()).try_for_each(|index| self.is_yes_or_no(index, sign))?;
        Ok(Type::Bool)
    }

    /// Refuses an operand that is not true or false, or that is not known to be.
    fn is_yes_or_no(&self, index: usize, sign: &str) -> Result<()> {
        match (self.types[index], &self.parts[index].expr) {
            (Type::Bool, _) => Ok(()),
            (Type::Unknown, Expr::Ident(name)) => Err(by_itself(name)),
            _ => Err(refuse(format!("`{sign}` takes yes/no expressions, not {}", self.name(index)))),
        }
    }

    /// Questions about texts.
    fn all_are_text(&self, function: &str) -> Result<Type> {
        match self.types.iter().position(|kind| !kind.may_be(Type::Text)) {
            None => Ok(Type::Bool),
            Some(index) => Err(refuse(format!("{function} takes text, not {}", self.name(index)))),
        }
    }

    /// `==`, `<` and the like.
    fn compared(&self, possible: bool) -> Result<Type> {
        possible.then_some(Type::Bool).ok_or_else(|| never_true(&self.name(0), &self.name(1)))
    }

    /// `x in […]`: if the list is written down, one of its values must be of the type of `x`.
    fn contained(&self, one: Type, whole: Type, declared: &Declared) -> Result<Type> {
        if !matches!(whole, Type::List | Type::Other | Type::Unknown) {
            return Err(refuse(format!("`in` looks into a list, not into {}", self.name(1))));
        }
        if let Expr::List(list) = &self.parts[1].expr {
            let kinds = types_of(&list.elements, declared)?;
            if let (false, Some(first)) = (kinds.iter().any(|kind| one.may_equal(*kind)), kinds.first()) {
                return Err(never_true(&self.name(0), &first.to_string()));
            }
        }
        Ok(Type::Bool)
    }

    /// `condition ? yes : no`.
    fn chosen(&self, yes: Type, no: Type) -> Result<Type> {
        self.is_yes_or_no(0, "?")?;
        Ok(if yes == no { yes } else { Type::Unknown })
    }

    /// `+` and the like: numbers of one type, and with `+` texts or lists.
    fn calculated(&self, sign: &str, left: Type, right: Type) -> Result<Type> {
        let sums = sign == "+" && matches!(left, Type::Text | Type::List);
        let known = if left == Type::Unknown { right } else { left };
        let alike = left.may_be(right) || right == Type::Unknown;
        if alike && (sums || known.is_number() || (left == Type::Unknown && sign == "+")) {
            return Ok(known);
        }
        let (left, right) = (self.name(0), self.name(1));
        Err(refuse(format!("`{sign}` cannot take {left} and {right}; int(), double() and string() convert")))
    }

    /// An operand in words: with its name if it is an attribute.
    fn name(&self, index: usize) -> String {
        let kind = self.types[index];
        match &self.parts[index].expr {
            Expr::Ident(name) => format!("`{name}` ({kind})"),
            _ => kind.to_string(),
        }
    }
}

fn types_of<'a>(parts: impl IntoIterator<Item = &'a IdedExpr>, declared: &Declared) -> Result<Vec<Type>> {
    parts.into_iter().map(|part| type_of(part, declared)).collect()
}

fn never_true(left: &str, right: &str) -> Error {
    refuse(format!("it compares {left} with {right}, which is never true"))
}

fn refuse(reason: String) -> Error {
    Error::Input(format!("the predicate mixes up types: {reason}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        attributes::Attributes,
        predicate::{MOST_STEPS, Predicate, Subject},
    };
    use uptack::Truth;

    const DECLARED: [&str; 5] = ["station:text", "lane:int", "speed:double", "taxi:bool", "tags:list"];

    fn check(text: &str, declared: &[&str]) -> Result<()> {
        Predicate::parse(text)?.check_types(&Declared::parse(declared.iter().copied()).unwrap())
    }

    /// For everyone who reads a predicate: without knowing any attribute, it must be true or false by its form.
    #[test]
    fn a_predicate_that_is_not_a_yes_no_expression_is_refused_when_it_is_read() {
        for bad in [
            "3 + 4",
            "\"yes\"",
            "1",
            "[true]",
            "size(\"a\")",
            "string(lane)",
            "{}",
            "true ? 1 : 2",
            "speed",
            "tags[0]",
            "speed > 50 && lane",
            "!parked",
            "a ? b == c : d == e",
            "a == b ? c : d",
            "a || true",
            "(lane ? 1 : 2) == 1",
        ] {
            let told = Predicate::parse(bad).expect_err(bad).to_string();
            assert!(told.contains("yes/no expression"), "{bad}: {told}");
        }
        let told = Predicate::parse("speed").unwrap_err().to_string();
        assert!(told.contains("`speed == true` or `speed > 0`"), "{told}");
        for good in [
            "true",
            "taxi == true",
            "mode == 3",
            "a + b == c",
            "!(a in b)",
            "a == b ? c == d : e == f",
            "tags[0] == 1",
            "a.contains(\"x\")",
            "(lane in [1, 2] || taxi == true) && !(speed > 50)",
        ] {
            check(good, &[]).unwrap();
        }
    }

    #[test]
    fn declared_types_are_checked_and_undeclared_names_refused() {
        for (bad, words) in [
            ("station == 3", "compares `station` (text) with a whole number"),
            ("lane == \"3\"", "compares `lane` (a whole number) with text"),
            ("speed > \"fast\"", "with text"),
            ("taxi == \"yes\"", "`taxi` (yes or no)"),
            ("tags < 3", "`tags` (a list)"),
            ("taxi == true && size(tags)", "`&&` takes yes/no expressions, not a whole number"),
            ("!\"yes\"", "`!` takes yes/no expressions, not text"),
            ("lane + speed > 3.0", "int(), double() and string() convert"),
            ("station + 1 == 2", "convert"),
            ("station in [1, 2]", "never true"),
            ("taxi in station", "looks into a list"),
            ("lane.startsWith(\"1\")", "startsWith takes text"),
            ("3 ? true : false", "`?` takes yes/no expressions"),
            ("sped > 3.0", "reads `sped`, which is not declared; declared are lane, speed, station, tags, taxi"),
        ] {
            let told = check(bad, &DECLARED).unwrap_err().to_string();
            assert!(told.contains(words), "{bad}: {told}");
        }
    }

    #[test]
    fn declarations_have_names_and_known_types() {
        for bad in ["lane:float", ":int", "", "lane:"] {
            assert!(Declared::parse([bad]).is_err(), "{bad}");
        }
        assert_eq!(Declared::parse([]).unwrap(), Declared::default());
        assert!(Declared::parse(["a:string", " b : int"]).is_ok());
    }

    /// The checker against the evaluator: what is refused is true of nobody, and what is true of somebody is not refused. The
    /// one exception is `||`, of which CEL takes the side that is not at fault: such a question is refused all the same.
    #[test]
    fn nothing_that_is_true_of_somebody_is_refused() {
        let people = [
            r#"{"station": "3", "lane": 3, "speed": 3.0, "taxi": true, "tags": ["3", 3]}"#,
            r#"{"station": "", "lane": -1, "speed": 0.5, "taxi": false, "tags": []}"#,
        ];
        let people = people.map(|text| Attributes::from_json(text).unwrap());
        let values = ["station", "lane", "speed", "taxi", "tags", "3", "3.0", "3u", "\"3\"", "true", "[3]", "[\"3\"]"];
        let operators = ["==", "<", ">=", "in"];
        let (mut refused, mut taken) = (0, 0);
        let pairs = values.iter().flat_map(|left| values.iter().map(move |right| (left, right)));
        for (left, right) in pairs {
            let arithmetic = ["+", "-", "*"].map(|sign| format!("{left} {sign} {right} == {left} {sign} {right}"));
            let compared = operators.map(|operator| format!("{left} {operator} {right}"));
            for text in compared.into_iter().chain(arithmetic) {
                // Owners parse it the same way; it is evaluated also if they would refuse it.
                let predicate = Predicate::parse_unchecked(&text).unwrap();
                let is_true = |person: &Attributes| {
                    matches!(predicate.truth(&Subject::new(person, predicate.attributes()), MOST_STEPS), Truth::Yes)
                };
                match check(&text, &DECLARED) {
                    Err(error) => {
                        assert!(!people.iter().any(is_true), "{text}: {error}");
                        refused += 1;
                    }
                    Ok(()) => taken += usize::from(people.iter().any(is_true)),
                }
            }
        }
        assert!(refused > 250 && taken > 100, "{refused} refused, {taken} true of somebody");
    }
}
