//! The types of a predicate's parts, before anything is evaluated.
//!
//! Owners answer *no* whenever an expression is not a plain *true*, even if it is a mistake, and nobody hears of it. So
//! analysts check the types first: a question that could never be answered with *yes* is refused before it is sent.

use cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, LiteralValue},
};
use std::{collections::BTreeMap, fmt};

use crate::error::{Error, Result};

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
            Self::Other | Self::Unknown => "something else",
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

    /// The type of an attribute; an error if others are declared and it is not.
    fn of(&self, name: &str) -> Result<Type> {
        match self.0.get(name) {
            Some(kind) => Ok(*kind),
            None if self.0.is_empty() => Ok(Type::Unknown),
            None => {
                let known: Vec<&str> = self.0.keys().map(String::as_str).collect();
                Err(Error::Input(format!("the predicate reads `{name}`; declared are {}", known.join(", "))))
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

/// Refuses an expression that cannot be true of anybody because of its types.
pub(crate) fn check(expression: &IdedExpr, declared: &Declared) -> Result<()> {
    let result = type_of(expression, declared)?;
    if result.may_be(Type::Bool) {
        return Ok(());
    }
    Err(Error::Input(format!("the predicate is {result}, not a yes/no expression")))
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
        (operator @ ("_&&_" | "_||_" | "!_"), _) => {
            operands.all_are(Type::Bool, &format!("`{}`", operator.trim_matches('_')))
        }
        ("_==_" | "_!=_", &[left, right]) => operands.compared(left.may_equal(right)),
        ("_<_" | "_<=_" | "_>_" | "_>=_", &[left, right]) => operands.compared(left.may_precede(right)),
        ("@in", &[one, whole]) => operands.contained(one, whole, declared),
        ("_?_:_", &[condition, yes, no]) => operands.chosen(condition, yes, no),
        (operator @ ("_+_" | "_-_" | "_*_" | "_/_" | "_%_"), &[left, right]) => {
            operands.calculated(operator.trim_matches('_'), left, right)
        }
        ("-_", &[kind]) if kind.is_number() => Ok(kind),
        ("-_", _) => Err(refuse("`-` takes a number".to_owned())),
        ("startsWith" | "endsWith", _) => operands.all_are(Type::Text, &call.func_name),
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

    /// `&&`, `||`, `!` and questions about texts: yes or no of operands that all have one type.
    fn all_are(&self, wanted: Type, what: &str) -> Result<Type> {
        match self.types.iter().position(|kind| !kind.may_be(wanted)) {
            None => Ok(Type::Bool),
            Some(index) => Err(refuse(format!("{what} takes {wanted}, not {}", self.name(index)))),
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
    fn chosen(&self, condition: Type, yes: Type, no: Type) -> Result<Type> {
        if !condition.may_be(Type::Bool) {
            return Err(refuse(format!("`?` asks a yes/no expression, not {}", self.name(0))));
        }
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
        Predicate::parse(text).unwrap().check_types(&Declared::parse(declared.iter().copied()).unwrap())
    }

    #[test]
    fn what_is_not_yes_or_no_is_refused() {
        for bad in ["3 + 4", "\"yes\"", "1", "[true]", "size(\"a\")", "string(lane)", "{}", "true ? 1 : 2"] {
            let told = check(bad, &[]).unwrap_err().to_string();
            assert!(told.contains("not a yes/no expression"), "{bad}: {told}");
        }
        for good in
            ["true", "taxi", "mode == 3", "a + b == c", "!(a in b)", "a ? b : c", "tags[0]", "a.contains(\"x\")"]
        {
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
            ("lane && taxi", "`&&` takes yes or no, not `lane` (a whole number)"),
            ("!station", "`!` takes yes or no"),
            ("lane + speed > 3.0", "int(), double() and string() convert"),
            ("station + 1 == \"a1\"", "convert"),
            ("station in [1, 2]", "never true"),
            ("taxi in station", "looks into a list"),
            ("lane.startsWith(\"1\")", "startsWith takes text"),
            ("lane ? true : false", "asks a yes/no expression"),
            ("station", "not a yes/no expression"),
            ("sped > 3.0", "reads `sped`; declared are lane, speed, station, tags, taxi"),
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
        let operators = ["==", "<", ">=", "in", "&&"];
        let (mut refused, mut taken) = (0, 0);
        let pairs = values.iter().flat_map(|left| values.iter().map(move |right| (left, right)));
        for (left, right) in pairs {
            let arithmetic = ["+", "-", "*"].map(|sign| format!("{left} {sign} {right} == {left} {sign} {right}"));
            let compared = operators.map(|operator| format!("{left} {operator} {right}"));
            for text in compared.into_iter().chain(arithmetic) {
                let predicate = Predicate::parse(&text).unwrap();
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
        assert!(refused > 300 && taken > 100, "{refused} refused, {taken} true of somebody");
    }
}
