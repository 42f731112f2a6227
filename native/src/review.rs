//! The input of a Gatekeeper policy: a document under review, as if it were about to be created.
//!
//! Source: <https://open-policy-agent.github.io/gatekeeper/website/docs/input>.

use regorus::Value;
use std::collections::BTreeMap;

/// `{"review": {"object": document, "kind": ..., "name": ..., "namespace": ..., "operation": "CREATE"}, "parameters": ...}`.
#[must_use]
pub fn of(document: &Value, parameters: &Value) -> Value {
    let (group, version) = group_and_version(text(&document[&Value::from("apiVersion")]));
    let metadata = &document[&Value::from("metadata")];
    let kind = object([
        ("group", Value::from(group)),
        ("version", Value::from(version)),
        ("kind", Value::from(text(&document[&Value::from("kind")]))),
    ]);
    let review = object([
        ("kind", kind),
        ("name", Value::from(text(&metadata[&Value::from("name")]))),
        ("namespace", Value::from(text(&metadata[&Value::from("namespace")]))),
        ("object", document.clone()),
        ("operation", Value::from("CREATE")),
    ]);
    object([("parameters", parameters.clone()), ("review", review)])
}

fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    Value::from(members.into_iter().map(|(key, value)| (Value::from(key), value)).collect::<BTreeMap<_, _>>())
}

fn text(value: &Value) -> &str {
    value.as_string().map_or("", |text| text.as_ref())
}

fn group_and_version(api_version: &str) -> (&str, &str) {
    api_version.split_once('/').unwrap_or(("", api_version))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_under_review() {
        let text = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"a","namespace":"b"}}"#;
        let document = Value::from_json_str(text).unwrap();
        let review = of(&document, &Value::from_json_str(r#"{"p":1}"#).unwrap());
        let expected = format!(
            r#"{{"parameters":{{"p":1}},"review":{{"kind":{{"group":"apps","kind":"Deployment","version":"v1"}},"name":"a","namespace":"b","object":{text},"operation":"CREATE"}}}}"#
        );
        assert_eq!(review, Value::from_json_str(&expected).unwrap());
    }

    #[test]
    fn what_is_no_kubernetes_object_is_reviewed_too() {
        let review = of(&Value::from(1_i64), &Value::Null);
        assert_eq!(review[&Value::from("review")][&Value::from("name")], Value::from(""));
    }
}
