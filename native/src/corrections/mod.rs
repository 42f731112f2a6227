//! Builtins whose answers in regorus differ from OPA's without an error.

use regorus::Value;

mod urlquery;

/// OPA's answer, for the builtins that regorus answers otherwise; `None` leaves the call to regorus.
#[must_use]
pub fn answer(name: &str, values: &[Value]) -> Option<Value> {
    match (name, values) {
        ("strings.count", [Value::String(text), Value::String(part)]) => {
            Some(Value::from(text.matches(part.as_ref()).count()))
        }
        ("strings.replace_n", [Value::Object(pairs), Value::String(text)]) => {
            let pairs = pairs.iter_sorted().map(|(old, new)| Some((old.as_string().ok()?, new.as_string().ok()?)));
            let pairs: Vec<(&str, &str)> =
                pairs.map(|pair| pair.map(|(old, new)| (&**old, &**new))).collect::<Option<_>>()?;
            Some(Value::from(replaced(text, &pairs)))
        }
        ("lower", [Value::String(text)]) if !text.is_ascii() => Some(Value::from(lowered(text))),
        ("upper", [Value::String(text)]) if !text.is_ascii() => {
            Some(Value::from(text.chars().map(upper).collect::<String>()))
        }
        ("glob.quote_meta", [Value::String(text)]) => {
            let special = |letter| matches!(letter, '*' | '?' | '\\' | '[' | ']' | '{' | '}');
            let parts = text.chars().map(|letter| if special(letter) { format!("\\{letter}") } else { letter.into() });
            Some(Value::from(parts.collect::<String>()))
        }
        (_, [value]) if name.starts_with("urlquery.") => urlquery::answer(name, value),
        // regorus counts the units of UTF-16.
        ("count", [Value::String(text)]) => Some(Value::from(text.chars().count())),
        ("json.is_valid" | "yaml.is_valid" | "semver.is_valid", [value]) if value.as_string().is_err() => {
            Some(Value::from(false))
        }
        _ => None,
    }
}

fn upper(letter: char) -> char {
    let mut letters = letter.to_uppercase();
    match (letters.next(), letters.next()) {
        (Some(only), None) => only,
        _ => letter,
    }
}

/// A text in lower case, letter by letter as Go has it: Rust maps a letter to several, and an S that ends a word to
/// another.
#[must_use]
pub fn lowered(text: &str) -> String {
    text.chars().filter_map(|letter| letter.to_lowercase().next()).collect()
}

/// What OPA makes of regorus's answer.
///
/// In the strings of JSON text, Go escapes letters that mean something in HTML; a time without a layout of its own has no
/// zeros at the end of its fraction.
#[must_use]
pub fn rewritten(name: &str, values: &[Value], answer: Value) -> Value {
    const SPECIAL: [char; 5] = ['&', '<', '>', '\u{2028}', '\u{2029}'];
    match (name, &answer) {
        ("json.marshal" | "json.marshal_with_options", Value::String(text)) if text.contains(SPECIAL) => {
            let (mut inside, mut escaped) = (false, false);
            let letters = text.chars().map(|letter| {
                inside ^= letter == '"' && !escaped;
                escaped = letter == '\\' && !escaped;
                match inside && SPECIAL.contains(&letter) {
                    true => format!("\\u{:04x}", u32::from(letter)),
                    false => letter.to_string(),
                }
            });
            Value::from(letters.collect::<String>())
        }
        ("time.format", Value::String(text)) if !has_layout(values) => Value::from(without_zeros(text)),
        _ => answer,
    }
}

fn has_layout(values: &[Value]) -> bool {
    values.first().is_some_and(|value| value.as_array().is_ok_and(|parts| parts.len() > 2))
}

fn without_zeros(time: &str) -> String {
    let Some((whole, rest)) = time.split_once('.') else {
        return time.to_owned();
    };
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let (fraction, zone) = rest.split_at(digits);
    match fraction.trim_end_matches('0') {
        "" => format!("{whole}{zone}"),
        fraction => format!("{whole}.{fraction}{zone}"),
    }
}

/// The operands to call a builtin with instead, for those that regorus reads otherwise.
#[must_use]
pub fn operands(name: &str, values: &[Value]) -> Option<Vec<Value>> {
    match (name, values) {
        // OPA takes what stands around an UUID of this length for braces without looking at it.
        ("uuid.parse", [Value::String(text)]) if text.len() == 38 => Some(vec![Value::from(text.get(1..37)?)]),
        ("semver.is_valid", [Value::String(text)]) => Some(vec![Value::from(without_v(text))]),
        ("semver.compare", [Value::String(left), Value::String(right)]) => {
            Some(vec![Value::from(without_v(left)), Value::from(without_v(right))])
        }
        _ => None,
    }
}

fn without_v(version: &str) -> &str {
    version.strip_prefix('v').unwrap_or(version)
}

/// The text read once from left to right; at each place the first of the old strings that fits is replaced.
fn replaced(text: &str, pairs: &[(&str, &str)]) -> String {
    let mut answer = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(letter) = rest.chars().next() {
        match pairs.iter().find(|(old, _)| !old.is_empty() && rest.starts_with(old)) {
            Some((old, new)) => {
                answer.push_str(new);
                rest = &rest[old.len()..];
            }
            None => {
                answer.push(letter);
                rest = &rest[letter.len_utf8()..];
            }
        }
    }
    answer
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(name: &str, arguments: &str) -> Option<Value> {
        let values = Value::from_json_str(arguments).unwrap();
        answer(name, values.as_array().unwrap().as_slice())
    }

    #[test]
    fn occurrences_do_not_overlap() {
        assert_eq!(answered("strings.count", r#"["11111", "11"]"#), Some(Value::from(2_u64)));
        assert_eq!(answered("strings.count", r#"["dummy", ""]"#), Some(Value::from(6_u64)));
        assert_eq!(answered("strings.count", r#"[1, ""]"#), None);
    }

    #[test]
    fn letters_are_mapped_one_to_one() {
        assert_eq!(answered("lower", r#"["ΑΣ İA"]"#), Some(Value::from("ασ ia")));
        assert_eq!(answered("upper", r#"["ßŉé"]"#), Some(Value::from("ßŉÉ")));
        assert_eq!(answered("lower", r#"["ABC"]"#), None);
    }

    #[test]
    fn texts_are_escaped_as_go_escapes_them() {
        assert_eq!(answered("glob.quote_meta", r#"["a*?[]{}\\!"]"#), Some(Value::from("a\\*\\?\\[\\]\\{\\}\\\\!")));
        assert_eq!(rewritten("json.marshal", &[], Value::from("\"<&>\"")), Value::from("\"\\u003c\\u0026\\u003e\""));
        assert_eq!(rewritten("json.marshal", &[], Value::from("<\n\"a\\\\\"")), Value::from("<\n\"a\\\\\""));
        assert_eq!(rewritten("concat", &[], Value::from("<")), Value::from("<"));
    }

    #[test]
    fn fractions_of_a_second_end_without_zeros() {
        let formatted = |text: &str, values: &str| {
            let values = Value::from_json_str(values).unwrap();
            rewritten("time.format", values.as_array().unwrap().as_slice(), Value::from(text))
        };
        assert_eq!(formatted("1970-01-01T00:00:00.000000010Z", "[10]"), Value::from("1970-01-01T00:00:00.00000001Z"));
        assert_eq!(
            formatted("1970-01-01T00:00:00.500+01:00", "[[1, \"x\"]]"),
            Value::from("1970-01-01T00:00:00.5+01:00")
        );
        assert_eq!(formatted("00.500", "[[1, \"UTC\", \"05.000\"]]"), Value::from("00.500"));
    }

    #[test]
    fn versions_may_start_with_a_letter() {
        assert_eq!(operands("semver.is_valid", &[Value::from("v1.2.3")]), Some(vec![Value::from("1.2.3")]));
    }

    #[test]
    fn characters_are_counted_not_their_parts() {
        assert_eq!(answered("count", r#"["😀é"]"#), Some(Value::from(2_u64)));
        assert_eq!(answered("count", r#"[["😀"]]"#), None);
    }

    #[test]
    fn what_is_no_string_is_not_valid() {
        for name in ["json.is_valid", "yaml.is_valid", "semver.is_valid"] {
            assert_eq!(answered(name, "[1]"), Some(Value::from(false)));
            assert_eq!(answered(name, r#"["1"]"#), None);
        }
    }

    #[test]
    fn an_uuid_may_stand_in_anything() {
        let uuid = "00000000-0000-4000-8000-000000000000";
        let given = |text: &str| operands("uuid.parse", &[Value::from(text)]);
        assert_eq!(given(&format!("({uuid})")), Some(vec![Value::from(uuid)]));
        assert_eq!(given(uuid), None);
    }

    #[test]
    fn what_was_replaced_is_not_replaced_again() {
        for (arguments, expected) in [
            (r#"[{"a": "b", "b": "a"}, "abba"]"#, "baab"),
            (r#"[{"a": "YY", "bba": "bX"}, "bbab"]"#, "bXb"),
            (r#"[{"ab": "b", "b": "Y"}, "baaabbbba"]"#, "YaabYYYa"),
            (r#"[{"a": "Xa", "ab": "X", "ba": "bYa", "aaa": "X"}, "aaaaab"]"#, "XaXaXaXaXab"),
        ] {
            assert_eq!(answered("strings.replace_n", arguments), Some(Value::from(expected)));
        }
    }
}
