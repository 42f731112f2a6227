//! A snapshot after a change: a copy that shares with the one of before all that stays.

use crate::corrections::lowered;
use crate::documents::{collection, lower, read, subjects, Documents, SUBJECTS};
use regorus::Value;
use std::collections::{BTreeMap, BTreeSet};

/// A part of a list that becomes another: `removed` members from `start` on go, and `added`, JSON each, take their
/// place.
#[derive(Debug, Clone)]
pub struct Splice<'a> {
    /// The collection, such as `resources`.
    pub name: &'a str,
    /// The position of the first member that goes, or in front of which the added ones come.
    pub start: usize,
    /// How many go.
    pub removed: usize,
    /// What comes.
    pub added: Vec<&'a [u8]>,
}

/// A member of an index, by the keys that lead to it from the snapshot: what it becomes as JSON, or `None` where it
/// goes. What it leaves empty below the first key goes with it.
pub type Entry<'a> = (Vec<&'a str>, Option<&'a [u8]>);

impl Documents {
    /// A changed copy, which shares with this one all that stays; `by_id` and `by_type` follow the resources.
    ///
    /// Splices are made one after the other. Other indices are the caller's to keep, by `entries`.
    ///
    /// # Errors
    /// A message when a splice is out of range, or what comes is not JSON or does not fit.
    pub fn changed(&self, splices: &[Splice<'_>], entries: &[Entry<'_>]) -> Result<Self, String> {
        let mut snapshot = self.snapshot.clone();
        let mut kinds = BTreeSet::new();
        for splice in splices {
            let added = splice.added.iter().map(|text| part(text)).collect::<Result<Vec<_>, _>>()?;
            let mut list = collection(&snapshot, splice.name)?;
            let end = splice.start.checked_add(splice.removed).filter(|end| *end <= list.len());
            let end = end.ok_or_else(|| format!("`{}` of the snapshot is not as long", splice.name))?;
            let removed: Vec<Value> = list.splice(splice.start..end, added.iter().cloned()).collect();
            *member(&mut snapshot, splice.name)? = Value::from(list);
            if splice.name == SUBJECTS[0] {
                kinds.extend(removed.iter().chain(&added).filter_map(|resource| lower(resource, "type")));
                let by_id = member(&mut snapshot, "by_id")?.as_object_mut().map_err(|error| error.to_string())?;
                for id in removed.iter().filter_map(|resource| lower(resource, "id")) {
                    by_id.remove(&id);
                }
                for (id, resource) in added.iter().filter_map(|resource| Some((lower(resource, "id")?, resource))) {
                    by_id.insert(id, resource.clone());
                }
            }
        }
        if !kinds.is_empty() {
            let resources = collection(&snapshot, SUBJECTS[0])?;
            let by_type = member(&mut snapshot, "by_type")?.as_object_mut().map_err(|error| error.to_string())?;
            let key = Value::from("type");
            for kind in kinds {
                let members: Vec<Value> =
                    resources.iter().filter(|resource| is_named(&resource[&key], &kind)).cloned().collect();
                if members.is_empty() {
                    by_type.remove(&kind);
                } else {
                    by_type.insert(kind, Value::from(members));
                }
            }
        }
        for (path, becomes) in entries {
            let index = member(&mut snapshot, path.first().unwrap_or(&""))?;
            put(index, path.get(1..).unwrap_or_default(), becomes.map(part).transpose()?)?;
        }
        let subjects = subjects(&snapshot)?;
        Ok(Self { snapshot, subjects })
    }
}

fn part(json: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(json).map_err(|error| format!("a part of the snapshot is not UTF-8: {error}"))?;
    read(text).map_err(|error| format!("a part of the snapshot is not JSON: {error}"))
}

fn member<'a>(snapshot: &'a mut Value, name: &str) -> Result<&'a mut Value, String> {
    let root = snapshot.as_object_mut().map_err(|error| error.to_string())?;
    root.get_mut(&Value::from(name)).ok_or_else(|| format!("the snapshot has no `{name}`"))
}

/// Puts a value where a path leads, or takes away what is there and what that leaves empty.
fn put(holder: &mut Value, path: &[&str], value: Option<Value>) -> Result<(), String> {
    let [key, further @ ..] = path else {
        return Err("an entry leads to no member of an index".to_owned());
    };
    let members = holder.as_object_mut().map_err(|error| error.to_string())?;
    let key = Value::from(*key);
    match value {
        Some(value) if further.is_empty() => drop(members.insert(key, value)),
        Some(value) => {
            let inner = members.get_or_insert_with(key, || Value::from(BTreeMap::new()));
            put(inner, further, Some(value))?;
        }
        None => {
            if let (Some(inner), false) = (members.get_mut(&key), further.is_empty()) {
                put(inner, further, None)?;
                if inner.as_object().is_ok_and(|left| !left.is_empty()) {
                    return Ok(());
                }
            }
            members.remove(&key);
        }
    }
    Ok(())
}

/// Whether a type is the one of this lower-case name.
fn is_named(kind: &Value, name: &Value) -> bool {
    let (Value::String(kind), Value::String(name)) = (kind, name) else {
        return false;
    };
    kind.eq_ignore_ascii_case(name) || (!kind.is_ascii() && lowered(kind) == **name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_copy_is_what_is_parsed_of_the_changed_snapshot() {
        let before = r#"{"resources":[{"id":"/A","type":"T"},{"id":"/b","type":"t"},{"id":"/c","type":"u"}],
            "workloads":[1,2],"approvals":[3],"by_host":{"/a":["/c"]},"by_scope":{"/s":{"t":["/a"],"u":["/c"]}}}"#;
        let after = r#"{"resources":[{"id":"/B","type":"t","n":1},{"id":"/c","type":"u"},{"id":"/d","type":"v"}],
            "workloads":[1,4,5],"approvals":[3],"by_host":{},"by_scope":{"/x":{"v":["/d"]}}}"#;
        let documents = Documents::parse(before.as_bytes()).unwrap();
        let splice = |name, start, removed, added: &[&'static str]| Splice {
            name,
            start,
            removed,
            added: added.iter().map(|text| text.as_bytes()).collect(),
        };
        let splices = [
            splice("resources", 3, 0, &[r#"{"id":"/d","type":"v"}"#]),
            splice("resources", 0, 2, &[r#"{"id":"/B","type":"t","n":1}"#]),
            splice("workloads", 1, 1, &["4", "5"]),
        ];
        let entries: [Entry<'_>; 5] = [
            (vec!["by_host", "/a"], None),
            (vec!["by_scope", "/s", "t"], None),
            (vec!["by_scope", "/s", "u"], None),
            (vec!["by_scope", "/nowhere", "u"], None),
            (vec!["by_scope", "/x", "v"], Some(br#"["/d"]"#)),
        ];
        let changed = documents.changed(&splices, &entries).unwrap();
        let expected = Documents::parse(after.as_bytes()).unwrap();
        assert_eq!((&changed.snapshot, &changed.subjects), (&expected.snapshot, &expected.subjects));
        assert_eq!(documents.snapshot, Documents::parse(before.as_bytes()).unwrap().snapshot);
    }

    #[test]
    fn a_change_that_does_not_fit_is_refused_with_its_reason() {
        let documents = Documents::parse(br#"{"resources":[{"id":"/a","type":"t"}]}"#).unwrap();
        let splice = |name, removed, added| Splice { name, start: 0, removed, added };
        for (splice, reason) in [
            (splice("resources", 2, vec![]), "not as long"),
            (splice("resources", usize::MAX, vec![]), "not as long"),
            (splice("others", 0, vec![]), "no `others`"),
            (splice("resources", 0, vec![&b"{"[..]]), "not JSON"),
            (splice("resources", 0, vec![&b"\xff"[..]]), "not UTF-8"),
        ] {
            assert!(documents.changed(&[splice], &[]).unwrap_err().contains(reason), "{reason}");
        }
        for path in [vec![], vec!["nothing", "x"], vec!["by_id"]] {
            assert!(documents.changed(&[], &[(path, Some(b"1"))]).is_err());
        }
    }
}
