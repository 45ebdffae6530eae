//! The one byte form of a card.

use serde_json::{Map, Value};

/// RFC 8785 for values without numbers: keys sorted, no blanks, the shortest escapes.
pub(super) fn write(value: &Value, text: &mut String) {
    match value {
        Value::Object(fields) => write_object(fields, text),
        Value::Array(items) => write_list(text, ['[', ']'], items, write),
        // Strings, true, false and null are written by serde_json as the RFC wants them.
        other => text.push_str(&other.to_string()),
    }
}

fn write_object(fields: &Map<String, Value>, text: &mut String) {
    let mut keys: Vec<&String> = fields.keys().collect();
    keys.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    write_list(text, ['{', '}'], keys, |key, text| {
        write(&Value::String(key.clone()), text);
        text.push(':');
        write(&fields[key], text);
    });
}

fn write_list<T>(
    text: &mut String,
    [open, close]: [char; 2],
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(T, &mut String),
) {
    text.push(open);
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            text.push(',');
        }
        write(item, text);
    }
    text.push(close);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_form_is_sorted_and_bare() {
        let value: Value = serde_json::from_str(r#"{"b": ["x", "\u0001é\n"], "a": {"d": "1", "c": "⊥"}}"#).unwrap();
        let mut text = String::new();
        write(&value, &mut text);
        assert_eq!(text, "{\"a\":{\"c\":\"⊥\",\"d\":\"1\"},\"b\":[\"x\",\"\\u0001é\\n\"]}");
    }
}
