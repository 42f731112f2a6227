//! References to `data` whose meaning depends on what stands at the place: a whole package, or a number for a key.
//!
//! Both engines leave a function out of the value of its package where OPA leaves an empty object; the RVM has no value
//! for a package without rules, and no number for a key of an object.

use crate::ast::{reference, Module};
use crate::desugar::kind_of;
use crate::names::{aliases, first_name};
use regorus::Value;
use serde_json::Value as Json;
use std::collections::HashMap;

/// Refuses references to the whole of a package whose functions are named by references.
///
/// # Errors
/// A message that names file, line and column.
pub fn refuse(modules: &[Module]) -> Result<(), String> {
    let packages: Vec<&str> = modules.iter().filter(|module| has_named_function(module)).map(package).collect();
    modules.iter().try_for_each(|module| {
        let met = first(module, &module.rules, |path, _| covers(path, &packages));
        met.map_or(Ok(()), |(path, place)| {
            let (file, line, column) = (&module.path, &place["line"], &place["col"]);
            Err(format!(
                "{file}:{line}:{column}: `{path}` is a package with functions named by references: name a rule"
            ))
        })
    })
}

/// Says why the RVM must not judge a rule, if it must not.
#[must_use]
pub fn find(module: &Module, rule: &Json, modules: &[Module], facts: &Value) -> Option<&'static str> {
    let empty = modules.iter().filter(|module| module.rules.as_array().is_none_or(Vec::is_empty));
    let empty: Vec<&str> = empty.map(package).collect();
    if first(module, rule, |path, _| covers(path, &empty)).is_some() {
        return Some("a reference to a package without rules");
    }
    let numbered = first(module, rule, |path, next| !next.is_null() && has_number_keys(at(facts, path)));
    numbered.map(|_| "a computed reference into a part of `data` whose keys look like numbers")
}

/// The part of the facts that a path leads to.
fn at<'a>(facts: &'a Value, path: &str) -> &'a Value {
    path.split('.').skip(1).fold(facts, |value, name| &value[&Value::from(name)])
}

fn has_number_keys(value: &Value) -> bool {
    match value {
        Value::Array(items) => items.iter().any(has_number_keys),
        Value::Object(fields) => fields
            .iter()
            .any(|(key, field)| key.as_string().is_ok_and(|key| key.parse::<f64>().is_ok()) || has_number_keys(field)),
        _ => false,
    }
}

fn package(module: &Module) -> &str {
    &module.package
}

fn covers(path: &str, packages: &[&str]) -> bool {
    packages
        .iter()
        .any(|package| package.strip_prefix(path).is_some_and(|rest| rest.is_empty() || rest.starts_with('.')))
}

fn has_named_function(module: &Module) -> bool {
    module.rules.as_array().into_iter().flatten().any(|rule| {
        let head = &rule["Spec"]["head"]["Func"];
        let default = &rule["Default"];
        let is_function = default["args"].as_array().is_some_and(|args| !args.is_empty());
        head["refr"].get("RefDot").is_some() || is_function && default["refr"].get("RefDot").is_some()
    })
}

/// The first reference into `data` that is wanted, by its path and the index that follows it, and its place.
fn first<'a>(module: &Module, node: &'a Json, wanted: impl Fn(&str, &Json) -> bool) -> Option<(String, &'a Json)> {
    let aliases = aliases(module);
    search(&aliases, node, &Json::Null, &wanted)
}

fn search<'a>(
    aliases: &HashMap<String, String>,
    node: &'a Json,
    next: &Json,
    wanted: &impl Fn(&str, &Json) -> bool,
) -> Option<(String, &'a Json)> {
    if let Some((name, place)) = reference(node) {
        let path = resolved(aliases, &name)?;
        return wanted(&path, next).then_some((path, place));
    }
    match node {
        Json::Array(items) => items.iter().find_map(|item| search(aliases, item, &Json::Null, wanted)),
        Json::Object(fields) => {
            let (kind, inner) = kind_of(node);
            if matches!(kind, "RefBrack" | "RefDot") {
                let base = search(aliases, &inner["refr"], &inner["index"], wanted);
                return base.or_else(|| search(aliases, &inner["index"], &Json::Null, wanted));
            }
            // A head names its rule and is no use of it.
            let is_head = matches!(kind, "Compr" | "Set" | "Func" | "Default") && first_name(&inner["refr"]).is_some();
            fields.values().find_map(|field| match is_head {
                true => ["key", "assign", "args", "value"]
                    .iter()
                    .find_map(|part| search(aliases, &field[*part], &Json::Null, wanted)),
                false => search(aliases, field, &Json::Null, wanted),
            })
        }
        _ => None,
    }
}

/// The path in `data` that a name stands for, if it does.
fn resolved(aliases: &HashMap<String, String>, name: &str) -> Option<String> {
    let (first, rest) = name.split_once('.').map_or((name, ""), |(first, rest)| (first, rest));
    let path = match aliases.get(first) {
        Some(path) if rest.is_empty() => path.clone(),
        Some(path) => format!("{path}.{rest}"),
        None => name.to_owned(),
    };
    (path == "data" || path.starts_with("data.")).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{modules_of, parser};

    fn modules(rego: &str) -> Vec<Module> {
        let mut engine = parser();
        engine.add_policy("p.rego".to_owned(), format!("package p\n{rego}\n")).unwrap();
        engine.add_policy("e.rego".to_owned(), "package a.empty\n".to_owned()).unwrap();
        engine.add_policy("f.rego".to_owned(), "package f\nq.r(x) := x".to_owned()).unwrap();
        modules_of(&mut engine).unwrap()
    }

    #[test]
    fn a_package_with_functions_named_by_references_is_no_value() {
        for rego in ["x := data.f", "import data.f\nx := f", "x contains y if some y in data.f"] {
            assert!(refuse(&modules(rego)).unwrap_err().starts_with("p.rego:"), "{rego}");
        }
        for rego in ["x := data.f.q.r(1)", "import data.f\nx := f.q.r(1)", "x := data.facts", "x := input.f"] {
            assert_eq!(refuse(&modules(rego)), Ok(()), "{rego}");
        }
    }

    #[test]
    fn what_the_rvm_does_not_find_is_found_here() {
        let facts = Value::from_json_str(r#"{"years": {"a": [{"2": 1}]}, "list": [{"b": 1}]}"#).unwrap();
        for rego in
            ["x := data.a", "x := data.a.empty", "x := data.years[2]", "x if data.a[input.b]", "x := data.years[y]"]
        {
            let modules = modules(rego);
            assert!(find(&modules[0], &modules[0].rules, &modules, &facts).is_some(), "{rego}");
        }
        for rego in ["x := data.b", "x := input.years[2]", "x := data.years.a", "x := data.list[2]"] {
            let modules = modules(rego);
            assert_eq!(find(&modules[0], &modules[0].rules, &modules, &facts), None, "{rego}");
        }
    }
}
