//! Operands that regorus takes and OPA does not, or takes otherwise: the call is an error instead.

use crate::corrections;
use regorus::Value;

/// Says whether a builtin takes these values as OPA does.
///
/// # Errors
/// What is wrong with them.
pub fn admit(name: &str, values: &[Value]) -> Result<(), String> {
    match (name, values) {
        ("object.subset", [whole, part]) => subset(whole, part),
        ("array.slice", [_, from, to]) => integers(&[from, to]),
        ("substring", [_, from, length]) => integers(&[from, length]),
        ("regex.find_n" | "regex.find_all_string_submatch_n", [_, _, count]) => integers(&[count]),
        ("regex.template_match", [_, _, Value::String(start), Value::String(end)]) if start.len() + end.len() != 2 => {
            Err("a delimiter must be one character".to_owned())
        }
        ("regex.split", [Value::String(pattern), _]) if pattern.is_empty() => Err("an empty pattern".to_owned()),
        ("indexof" | "indexof_n", [_, Value::String(part)]) if part.is_empty() => {
            Err("an empty string to look for".to_owned())
        }
        ("units.parse" | "units.parse_bytes", [Value::String(text)]) if text.contains('_') => {
            Err(format!("`{text}` is no number with a unit"))
        }
        ("to_number", [Value::String(text)]) if text.trim() != text.as_ref() => Err(format!("`{text}` is no number")),
        ("time.parse_rfc3339_ns", [Value::String(text)]) => instant(text),
        ("urlquery.decode" | "urlquery.decode_object", [text @ Value::String(_)])
            if corrections::answer(name, std::slice::from_ref(text)).is_none() =>
        {
            Err("an escape that is none".to_owned())
        }
        ("glob.match", [Value::String(pattern), ..]) => alternatives(pattern),
        ("yaml.is_valid" | "yaml.unmarshal", [Value::String(text)]) => one_document(text),
        ("sort" | "max" | "min", [Value::Array(items)]) => comparable(items.iter()),
        ("sort" | "max" | "min", [Value::Set(items)]) => comparable(items.iter()),
        _ => Ok(()),
    }
}

fn subset(whole: &Value, part: &Value) -> Result<(), String> {
    match (whole, part) {
        (Value::Object(_), Value::Object(_))
        | (Value::Set(_), Value::Set(_))
        | (Value::Array(_), Value::Array(_) | Value::Set(_)) => Ok(()),
        _ => Err("both operands must be of one type, or an array and a set".to_owned()),
    }
}

/// regorus rounds what must be an integer, and takes large ones for none.
fn integers(values: &[&Value]) -> Result<(), String> {
    let odd = values.iter().any(|value| value.as_number().is_ok_and(|number| number.as_i64().is_none()));
    if odd {
        return Err("a number that is no integer of 64 bits".to_owned());
    }
    Ok(())
}

/// OPA takes `2026-01-02T03:04:05.6Z` or an offset such as `+07:00`, and nothing that looks a little like it.
fn instant(text: &str) -> Result<(), String> {
    let shaped = |text: &str, shape: &str| {
        text.len() == shape.len()
            && text
                .bytes()
                .zip(shape.bytes())
                .all(|(byte, at)| if at == b'0' { byte.is_ascii_digit() } else { byte == at })
    };
    let (moment, rest) = text.split_at_checked(19).unwrap_or((text, ""));
    let fraction = rest.strip_prefix('.').map_or(0, |digits| digits.bytes().take_while(u8::is_ascii_digit).count());
    let zone = if fraction > 0 { &rest[fraction + 1..] } else { rest };
    let zoned = zone == "Z" || shaped(zone, "+00:00") || shaped(zone, "-00:00");
    if zoned && shaped(moment, "0000-00-00T00:00:00") {
        return Ok(());
    }
    Err(format!("`{text}` is not a time of RFC 3339"))
}

/// regorus takes an empty alternative for one that fits nothing.
fn alternatives(pattern: &str) -> Result<(), String> {
    let empty = pattern.contains('{') && ["{,", ",,", ",}", "{}"].iter().any(|part| pattern.contains(part));
    if empty {
        return Err(format!("an empty alternative in `{pattern}`"));
    }
    Ok(())
}

/// OPA reads the first document of a text, regorus refuses a second.
fn one_document(text: &str) -> Result<(), String> {
    let marks = text.lines().filter(|line| line.starts_with("---") || line.starts_with("...")).count();
    if marks > usize::from(text.starts_with("---")) {
        return Err("more than one document".to_owned());
    }
    Ok(())
}

/// In regorus an object comes after a set, in OPA before it.
fn comparable<'a>(mut items: impl Iterator<Item = &'a Value> + Clone) -> Result<(), String> {
    let has_sets = items.clone().any(|item| matches!(item, Value::Set(_)));
    if has_sets && items.any(|item| matches!(item, Value::Object(_))) {
        return Err("objects and sets do not compare".to_owned());
    }
    Ok(())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Whether `admit` takes the arguments, a JSON array, of a builtin.
    pub(crate) fn verdict(admit: fn(&str, &[Value]) -> Result<(), String>, name: &str, arguments: &str) -> bool {
        let values = Value::from_json_str(arguments).unwrap();
        admit(name, values.as_array().unwrap().as_slice()).is_ok()
    }

    #[test]
    fn what_opa_reads_otherwise_is_refused() {
        for (name, arguments) in [
            ("glob.match", r#"["{a,}x", null, "x"]"#),
            ("object.subset", r#"[{}, []]"#),
            ("array.slice", "[[1], 0.5, 1]"),
            ("substring", r#"["abc", 1e21, 1]"#),
            ("regex.find_n", r#"["a", "a", 1.5]"#),
            ("regex.template_match", r#"["a", "a", "<<", ">"]"#),
            ("regex.split", r#"["", "a"]"#),
            ("to_number", r#"[" 1"]"#),
            ("indexof", r#"["a", ""]"#),
            ("indexof_n", r#"["a", ""]"#),
            ("units.parse", r#"["1_000"]"#),
            ("time.parse_rfc3339_ns", r#"["2026-01-02 03:04:05Z"]"#),
            ("time.parse_rfc3339_ns", r#"["2026-01-02T03:04:05z"]"#),
            ("time.parse_rfc3339_ns", r#"["2026-01-02T03:04:05"]"#),
            ("time.parse_rfc3339_ns", r#"["2026-01-02T03:04:05.Z"]"#),
            ("time.parse_rfc3339_ns", r#"["2026-01-02"]"#),
            ("urlquery.decode", r#"["%v"]"#),
            ("yaml.is_valid", r#"["a: 1\n---\nb: 2\n"]"#),
            ("yaml.unmarshal", r#"["---\na: 1\n---\n"]"#),
        ] {
            assert!(!verdict(admit, name, arguments), "{name}{arguments}");
        }
        let mixed = [Value::new_object(), Value::new_set()];
        assert!(admit("sort", &[Value::from(mixed.to_vec())]).is_err());
        assert!(admit("object.subset", &mixed).is_err());
    }

    #[test]
    fn what_both_read_alike_passes() {
        for (name, arguments) in [
            ("glob.match", r#"["{a,b}{{c}}", null, "x"]"#),
            ("yaml.unmarshal", r#"["---\na: 1\n# ---\n"]"#),
            ("sort", "[[{}, [], 1]]"),
            ("object.subset", "[{}, {}]"),
            ("array.slice", "[[1], 0, 1]"),
            ("to_number", r#"["1e3"]"#),
            ("indexof", r#"["a", "b"]"#),
            ("units.parse", r#"["1K"]"#),
            ("time.parse_rfc3339_ns", r#"["2026-01-02T03:04:05.678-07:00"]"#),
            ("time.parse_rfc3339_ns", r#"["2026-01-02T03:04:05Z"]"#),
            ("urlquery.decode", r#"["%20+"]"#),
        ] {
            assert!(verdict(admit, name, arguments), "{name}{arguments}");
        }
    }
}
