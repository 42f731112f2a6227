//! Calls that are refused because their answer would be out of proportion.
//!
//! Neither engine looks at a limit inside a builtin, so a single call could take all memory. Each guarded builtin is
//! asked here first, on both engines.

use crate::operands;
use regorus::Value;

/// The guarded builtins and their numbers of arguments.
pub const GUARDED: [(&str, u8); 58] = [
    ("array.slice", 3),
    ("bits.and", 2),
    ("bits.lsh", 2),
    ("bits.negate", 1),
    ("bits.or", 2),
    ("bits.rsh", 2),
    ("bits.xor", 2),
    ("concat", 2),
    ("count", 1),
    ("format_int", 2),
    ("glob.match", 3),
    ("glob.quote_meta", 1),
    ("graph.reachable_paths", 2),
    ("indexof", 2),
    ("indexof_n", 2),
    ("json.filter", 2),
    ("json.is_valid", 1),
    ("json.marshal", 1),
    ("json.marshal_with_options", 2),
    ("json.patch", 2),
    ("json.remove", 2),
    ("lower", 1),
    ("max", 1),
    ("min", 1),
    ("net.cidr_expand", 1),
    ("numbers.range", 2),
    ("numbers.range_step", 3),
    ("object.subset", 2),
    ("product", 1),
    ("regex.find_all_string_submatch_n", 3),
    ("regex.find_n", 3),
    ("regex.replace", 3),
    ("regex.split", 2),
    ("regex.template_match", 4),
    ("replace", 3),
    ("semver.compare", 2),
    ("semver.is_valid", 1),
    ("sort", 1),
    ("sprintf", 2),
    ("strings.count", 2),
    ("strings.replace_n", 2),
    ("substring", 3),
    ("time.add_date", 4),
    ("time.format", 1),
    ("time.parse_ns", 2),
    ("time.parse_rfc3339_ns", 1),
    ("to_number", 1),
    ("units.parse", 1),
    ("units.parse_bytes", 1),
    ("upper", 1),
    ("urlquery.decode", 1),
    ("urlquery.decode_object", 1),
    ("urlquery.encode", 1),
    ("urlquery.encode_object", 1),
    ("uuid.parse", 1),
    ("yaml.is_valid", 1),
    ("yaml.marshal", 1),
    ("yaml.unmarshal", 1),
];

/// Elements of a list, values of a document.
const LARGEST_COUNT: usize = 1 << 20;
/// Bytes of a string.
const LARGEST_TEXT: usize = 16 << 20;
/// Bits of a number; each product may double them.
const LARGEST_NUMBER: u64 = 1 << 17;
/// Bits of a shift, digits of a width.
const LARGEST_SHIFT: i64 = 1 << 16;

/// Says whether a builtin may be called with these values.
///
/// # Errors
/// What is out of proportion.
pub fn admit(name: &str, values: &[Value]) -> Result<(), String> {
    match (name, values) {
        ("numbers.range", [from, to]) => span(from, to, 1),
        ("numbers.range_step", [from, to, step]) => span(from, to, step.as_i64().unwrap_or(1)),
        ("bits.lsh", [_, shift]) if shift.as_i64().unwrap_or(i64::MAX) > LARGEST_SHIFT => {
            Err(format!("a shift by more than {LARGEST_SHIFT} bits"))
        }
        ("net.cidr_expand", [Value::String(network)]) => cidr(network),
        ("concat", [Value::String(delimiter), parts]) => joined(delimiter.len(), parts),
        ("replace", [Value::String(text), Value::String(old), Value::String(new)]) => {
            let found = text.matches(old.as_ref()).take(LARGEST_TEXT).count();
            text_of(text.len().saturating_add(found.saturating_mul(new.len())))
        }
        ("regex.replace", [Value::String(text), _, Value::String(new)]) => {
            text_of(text.len().saturating_add(1).saturating_mul(new.len().saturating_add(1)))
        }
        ("strings.replace_n", [Value::Object(pairs), _]) if pairs.keys().any(|old| *old == Value::from("")) => {
            Err("an empty string to replace".to_owned())
        }
        ("strings.replace_n", [Value::Object(pairs), Value::String(text)]) => {
            let grown = pairs.iter().map(|(old, new)| growth(old, new)).fold(text.len(), usize::saturating_mul);
            text_of(grown)
        }
        ("sprintf", [Value::String(format), arguments]) => {
            verbs(format)?;
            document(arguments)
        }
        ("json.marshal" | "json.marshal_with_options" | "yaml.marshal", [value, ..]) => document(value),
        ("product", [Value::Array(factors)]) => number_of(factors.iter().map(bits).sum()),
        ("product", [Value::Set(factors)]) => number_of(factors.iter().map(bits).sum()),
        ("units.parse" | "units.parse_bytes", [Value::String(text)]) => {
            exponent(text).and_then(|()| operands::admit(name, values))
        }
        ("graph.reachable_paths", [graph, _]) if larger_than(graph, 64) => {
            Err("a graph of more than 64 nodes and edges".to_owned())
        }
        _ => operands::admit(name, values),
    }
}

/// Says whether two numbers may be multiplied.
///
/// # Errors
/// What is out of proportion.
pub fn admit_product(left: &Value, right: &Value) -> Result<(), String> {
    number_of(bits(left) + bits(right))
}

fn bits(value: &Value) -> u64 {
    match value {
        Value::Number(number) if number.as_i64().is_none() => number.as_big().map_or(64, |number| number.bits()),
        _ => 64,
    }
}

fn number_of(bits: u64) -> Result<(), String> {
    if bits > LARGEST_NUMBER {
        return Err(format!("a number of more than {LARGEST_NUMBER} bits"));
    }
    Ok(())
}

/// Whether a document has more than `limit` values, those that it names twice counted twice.
#[must_use]
pub fn larger_than(value: &Value, limit: usize) -> bool {
    let mut left = limit;
    exhausts(value, &mut left)
}

fn exhausts(value: &Value, left: &mut usize) -> bool {
    let Some(less) = left.checked_sub(1) else {
        return true;
    };
    *left = less;
    match value {
        Value::Array(items) => items.iter().any(|item| exhausts(item, left)),
        Value::Set(items) => items.iter().any(|item| exhausts(item, left)),
        Value::Object(fields) => fields.iter().any(|(key, field)| exhausts(key, left) || exhausts(field, left)),
        _ => false,
    }
}

fn document(value: &Value) -> Result<(), String> {
    if larger_than(value, LARGEST_COUNT) {
        return Err(format!("a document of more than {LARGEST_COUNT} values"));
    }
    Ok(())
}

fn span(from: &Value, to: &Value, step: i64) -> Result<(), String> {
    let length = match (from.as_i64(), to.as_i64()) {
        (Ok(from), Ok(to)) => i128::from(to).abs_diff(i128::from(from)) / u128::from(step.unsigned_abs().max(1)),
        // Not integers: the builtin says so itself, unless they are too large to count.
        _ if from.as_number().is_ok_and(|from| from.is_integer()) && to.as_number().is_ok_and(|to| to.is_integer()) => {
            u128::MAX
        }
        _ => 0,
    };
    if usize::try_from(length).map_or(true, |length| length > LARGEST_COUNT) {
        return Err(format!("a range of more than {LARGEST_COUNT} numbers"));
    }
    Ok(())
}

fn cidr(network: &str) -> Result<(), String> {
    let (address, bits) = network.split_once('/').unwrap_or((network, ""));
    let width = if address.contains(':') { 128_u32 } else { 32 };
    if width.saturating_sub(bits.parse().unwrap_or(width)) > 16 {
        return Err("a network of more than 65536 addresses".to_owned());
    }
    Ok(())
}

fn joined(delimiter: usize, parts: &Value) -> Result<(), String> {
    let lengths: Vec<usize> = match parts {
        Value::Array(parts) => parts.iter().map(text_length).collect(),
        Value::Set(parts) => parts.iter().map(text_length).collect(),
        _ => return Ok(()),
    };
    let delimiters = delimiter.saturating_mul(lengths.len());
    text_of(lengths.into_iter().fold(delimiters, usize::saturating_add))
}

fn text_length(value: &Value) -> usize {
    value.as_string().map_or(0, |text| text.len())
}

fn growth(old: &Value, new: &Value) -> usize {
    text_length(new).div_ceil(text_length(old).max(1)).max(1)
}

fn text_of(bytes: usize) -> Result<(), String> {
    if bytes > LARGEST_TEXT {
        return Err(format!("a string of more than {LARGEST_TEXT} bytes"));
    }
    Ok(())
}

/// Refuses absurd widths, and floats without a number of digits, which regorus writes otherwise than OPA.
fn verbs(format: &str) -> Result<(), String> {
    for verb in format.replace("%%", "").split('%').skip(1) {
        let digits = verb.trim_start_matches('.');
        let end = digits.find(|letter: char| !letter.is_numeric()).unwrap_or(digits.len());
        if end > 0 && digits[..end].parse::<i64>().map_or(true, |width| width > LARGEST_SHIFT) {
            return Err(format!("a width of more than {LARGEST_SHIFT}"));
        }
        if verb.starts_with(['e', 'E', 'f', 'F', 'g', 'G']) {
            return Err(format!("`%{}` without a number of digits, such as `%.2f`", &verb[..1]));
        }
    }
    Ok(())
}

fn exponent(text: &str) -> Result<(), String> {
    let digits = text
        .split(['e', 'E'])
        .nth(1)
        .map_or(0, |digits| digits.matches(|letter: char| letter.is_ascii_digit()).count());
    if digits > 3 {
        return Err("exponent too large".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::operands::tests::verdict;

    #[test]
    fn answers_out_of_proportion_are_refused() {
        for (name, arguments) in [
            ("numbers.range", "[0, 1e9]"),
            ("numbers.range", "[0, 1e30]"),
            ("numbers.range_step", "[0, 1e9, 2]"),
            ("bits.lsh", "[1, 1e9]"),
            ("net.cidr_expand", "[\"10.0.0.0/8\"]"),
            ("sprintf", "[\"%999999999d\", [1]]"),
            ("sprintf", "[\"%f\", [1]]"),
            ("strings.replace_n", "[{\"\": \"x\"}, \"abc\"]"),
            ("units.parse_bytes", "[\"10e10000000EiB\"]"),
        ] {
            assert!(!verdict(admit, name, arguments), "{name}{arguments}");
        }
        let long = "x".repeat(5_000);
        assert!(!verdict(admit, "replace", &format!("[\"{long}\", \"x\", \"{long}\"]")));
        assert!(!verdict(admit, "strings.replace_n", &format!("[{{\"x\": \"{long}\"}}, \"{long}\"]")));
    }

    #[test]
    fn usual_calls_pass() {
        for (name, arguments) in [
            ("numbers.range", "[0, 100000]"),
            ("numbers.range", "[\"a\", 1]"),
            ("bits.lsh", "[1, 8]"),
            ("net.cidr_expand", "[\"10.0.0.0/24\"]"),
            ("sprintf", "[\"%5d of 20260101, 100%% %.2f\", [1, 2]]"),
            ("units.parse_bytes", "[\"1e3KB\"]"),
            ("replace", "[\"abc\", \"b\", \"\"]"),
            ("concat", "[\",\", [\"a\", \"b\"]]"),
            ("count", "[[1]]"),
        ] {
            assert!(verdict(admit, name, arguments), "{name}{arguments}");
        }
    }
}
