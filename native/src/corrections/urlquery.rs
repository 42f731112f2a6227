//! Query strings as Go reads and writes them; regorus goes through a parser of whole URLs, which drops white space, takes
//! broken escapes as they are, and escapes other letters.

use regorus::Value;
use std::collections::BTreeMap;

/// OPA's answer to a builtin `urlquery.*`; `None` where it has an error or the operand is of another type.
#[must_use]
pub fn answer(name: &str, value: &Value) -> Option<Value> {
    match (name, value) {
        ("urlquery.encode", Value::String(text)) => Some(Value::from(encoded(text))),
        ("urlquery.decode", Value::String(text)) => decoded(text).map(Value::from),
        ("urlquery.encode_object", Value::Object(fields)) => {
            let pairs = fields.iter_sorted().map(|(key, value)| pairs(key.as_string().ok()?, value));
            let pairs: Vec<Vec<String>> = pairs.collect::<Option<_>>()?;
            Some(Value::from(pairs.concat().join("&")))
        }
        ("urlquery.decode_object", Value::String(text)) => {
            let mut fields = BTreeMap::<Value, Vec<Value>>::new();
            for part in text.split('&').filter(|part| !part.is_empty()) {
                let (key, value) = part.split_once('=').unwrap_or((part, ""));
                if part.contains(';') {
                    return None;
                }
                fields.entry(Value::from(decoded(key)?)).or_default().push(Value::from(decoded(value)?));
            }
            let fields = fields.into_iter().map(|(key, values)| (key, Value::from(values)));
            Some(Value::from(fields.collect::<BTreeMap<_, _>>()))
        }
        _ => None,
    }
}

fn pairs(key: &str, value: &Value) -> Option<Vec<String>> {
    let pair = |value: &Value| Some(format!("{}={}", encoded(key), encoded(value.as_string().ok()?)));
    match value {
        Value::Array(items) => items.iter().map(pair).collect(),
        Value::Set(items) => items.iter().map(pair).collect(),
        _ => Some(vec![pair(value)?]),
    }
}

fn encoded(text: &str) -> String {
    let letters = text.bytes().map(|byte| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        b' ' => "+".to_owned(),
        _ => format!("%{byte:02X}"),
    });
    letters.collect()
}

fn decoded(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
                rest = &rest[2..];
                if !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
                    return None;
                }
                u8::from_str_radix(digits, 16).ok()?
            }
            _ => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn query_strings_are_those_of_go() {
        for (name, value, expected) in [
            ("urlquery.encode", r#""a~b*c é+/""#, Some(r#""a~b%2Ac+%C3%A9%2B%2F""#)),
            ("urlquery.decode", r#"" x\t%C3%A9+""#, Some(r#"" x\té ""#)),
            ("urlquery.decode", r#""%v""#, None),
            ("urlquery.decode", r#""%+1""#, None),
            ("urlquery.decode", r#""%ff""#, None),
            ("urlquery.encode_object", r#"{"b": ["1", "2"], "a*": "x y"}"#, Some(r#""a%2A=x+y&b=1&b=2""#)),
            ("urlquery.encode_object", r#"{"a": 1}"#, None),
            ("urlquery.decode_object", r#""a=1&b&a=%20&""#, Some(r#"{"a": ["1", " "], "b": [""]}"#)),
            ("urlquery.decode_object", r#""a=1;b=2""#, None),
        ] {
            let expected = expected.map(|text| Value::from_json_str(text).unwrap());
            assert_eq!(answer(name, &Value::from_json_str(value).unwrap()), expected, "{name} {value}");
        }
    }
}
