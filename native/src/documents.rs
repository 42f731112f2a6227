//! A snapshot, parsed once and shared by all pairs.

use crate::corrections::lowered;
use regorus::Value;
use serde::Deserialize;
use std::collections::BTreeMap;

/// How deep a snapshot may be nested: a document of 128 levels, and the levels that hold it in a snapshot.
pub const DEEPEST: usize = 132;

/// The collections whose members can be judged, in the order of their subject indices.
pub(crate) const SUBJECTS: [&str; 4] = ["resources", "workloads", "approvals", "documents"];

/// A parsed snapshot: the shared `input.snapshot` and the flat list of its subjects.
#[derive(Debug)]
pub struct Documents {
    pub(crate) snapshot: Value,
    pub(crate) subjects: Vec<Value>,
}

impl Documents {
    /// Parses a snapshot: a JSON object that holds at least the list `resources`.
    ///
    /// `input.snapshot` is that object, `by_id` (lower-case id to resource) and `by_type` (lower-case type to
    /// resources); the values are shared, not copied.
    ///
    /// # Errors
    /// A message when the bytes are not UTF-8, not JSON, nested deeper than [`DEEPEST`], or not such an object.
    pub fn parse(snapshot: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(snapshot).map_err(|error| format!("the snapshot is not UTF-8: {error}"))?;
        let mut value = read(text).map_err(|error| format!("the snapshot is not JSON: {error}"))?;
        if value.as_object().is_err() {
            return Err("the snapshot is not a JSON object".to_owned());
        }
        let resources = collection(&value, "resources")?;
        let (by_id, by_type) = indices(&resources);
        let subjects = subjects(&value)?;
        let root = value.as_object_mut().map_err(|error| error.to_string())?;
        root.insert(Value::from("by_id"), by_id);
        root.insert(Value::from("by_type"), by_type);
        Ok(Self { snapshot: value, subjects })
    }

    /// The number of subjects.
    #[must_use]
    pub fn len(&self) -> usize {
        self.subjects.len()
    }

    /// Whether there is no subject.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.subjects.is_empty()
    }
}

pub(crate) fn read(text: &str) -> anyhow::Result<Value> {
    crate::memory::unbounded(|| Value::from_json_str(text)).or_else(|error| deeper(text).ok_or(error))
}

pub(crate) fn subjects(snapshot: &Value) -> Result<Vec<Value>, String> {
    let mut subjects = Vec::new();
    for name in SUBJECTS {
        subjects.extend(collection(snapshot, name)?);
    }
    Ok(subjects)
}

/// Parses what is nested deeper than the parser's own limit of 127 levels and not deeper than ours.
fn deeper(text: &str) -> Option<Value> {
    if crate::check::check(text.as_bytes(), DEEPEST).is_some() {
        return None;
    }
    let parse = || {
        let mut reader = serde_json::Deserializer::from_str(text);
        reader.disable_recursion_limit();
        Ok(Value::deserialize(&mut reader)?)
    };
    crate::memory::unbounded(parse).ok()
}

pub(crate) fn collection(snapshot: &Value, name: &str) -> Result<Vec<Value>, String> {
    match &snapshot[&Value::from(name)] {
        Value::Undefined if name != "resources" => Ok(Vec::new()),
        Value::Array(items) => Ok(items.iter().cloned().collect()),
        _ => Err(format!("`{name}` of the snapshot is not a list")),
    }
}

fn indices(resources: &[Value]) -> (Value, Value) {
    let mut by_id = BTreeMap::new();
    let mut by_type: BTreeMap<Value, Vec<Value>> = BTreeMap::new();
    for resource in resources {
        if let Some(id) = lower(resource, "id") {
            by_id.insert(id, resource.clone());
        }
        if let Some(kind) = lower(resource, "type") {
            by_type.entry(kind).or_default().push(resource.clone());
        }
    }
    let by_type: BTreeMap<_, _> = by_type.into_iter().map(|(kind, members)| (kind, Value::from(members))).collect();
    (Value::from(by_id), Value::from(by_type))
}

pub(crate) fn lower(resource: &Value, key: &str) -> Option<Value> {
    resource[&Value::from(key)].as_string().ok().map(|text| Value::from(lowered(text)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resources_are_indexed_without_case_and_shared() {
        let text =
            br#"{"resources":[{"id":"/A","type":"T"},{"id":"/b","type":"t"}],"workloads":[1],"approvals":[2,3]}"#;
        let documents = Documents::parse(text).unwrap();
        assert_eq!(documents.len(), 5);
        let first = &documents.snapshot[&Value::from("by_id")][&Value::from("/a")];
        assert_eq!(first, &documents.subjects[0]);
        assert_eq!(documents.snapshot[&Value::from("by_type")][&Value::from("t")].as_array().unwrap().len(), 2);
    }

    #[test]
    fn anything_else_is_refused_with_its_reason() {
        for (text, reason) in [
            (&b"[]"[..], "not a JSON object"),
            (b"{}", "`resources`"),
            (b"{\"resources\":[],\"workloads\":1}", "`workloads`"),
            (b"{", "not JSON"),
            (b"\xff", "not UTF-8"),
        ] {
            assert!(Documents::parse(text).unwrap_err().contains(reason));
        }
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |levels: usize| format!("{{\"resources\":{}{}}}", "[".repeat(levels), "]".repeat(levels));
        assert!(Documents::parse(nested(DEEPEST - 1).as_bytes()).is_ok());
        assert!(Documents::parse(nested(DEEPEST).as_bytes()).is_err());
        assert!(Documents::parse(nested(1_000_000).as_bytes()).is_err());
    }
}
