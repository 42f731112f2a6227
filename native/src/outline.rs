//! What a module of somebody else's holds: its language version, package, rules, and what it reads.
//!
//! OPA decides the version of a module by its flags and manifests; where neither says, a module that reads as Rego v1 is
//! v1, and any other that reads as v0 is v0.

use crate::ast::{modules_of, parser, reference, refuse_deep_nesting, Module};
use crate::desugar::{kind_of, offset};
use crate::stack::on_a_deep_stack;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// What a rule gives: see [`Rule::form`].
pub type Form = &'static str;

/// One rule of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The first name of its head.
    pub name: String,
    /// `set`, `value`, `true` (a condition), `map` (more in the head than a name), `function` or `default`.
    pub form: Form,
    /// Its line, from 1.
    pub line: u64,
}

/// A module from outside.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outline {
    /// Whether it is Rego v0.
    pub v0: bool,
    /// Its package, without `data`.
    pub package: String,
    /// Its rules in their order.
    pub rules: Vec<Rule>,
    /// The references to `input` and `data` in it, as far as their parts are names.
    pub reads: BTreeSet<String>,
}

/// Reads a module; `v0` is its version where a manifest says it.
///
/// # Errors
/// The message of the parser, with path and line.
pub fn outline(path: &str, source: &str, v0: Option<bool>) -> Result<Outline, String> {
    refuse_deep_nesting(path, source)?;
    on_a_deep_stack(|| {
        let (module, v0) = match v0 {
            Some(true) => (parsed_v0(path, source)?, true),
            Some(false) => (parsed(path, source, false)?, false),
            None => match parsed(path, source, false) {
                Ok(module) => (module, false),
                Err(as_v1) => (parsed_v0(path, source).map_err(|as_v0| both(&as_v1, &as_v0))?, true),
            },
        };
        let mut reads = BTreeSet::new();
        visit(&module.imports, &mut reads);
        visit(&module.rules, &mut reads);
        let rules = module.rules.as_array().into_iter().flatten().filter_map(rule).collect();
        Ok(Outline { v0, package: module.package.trim_start_matches("data.").to_owned(), rules, reads })
    })
}

fn both(as_v1: &str, as_v0: &str) -> String {
    format!("it reads neither as Rego v1 ({}) nor as v0 ({})", as_v1.trim(), as_v0.trim())
}

/// The module, parsed in one of the two versions; `import rego.v1` makes it v1 in any case.
///
/// # Errors
/// The message of the parser.
pub fn parsed(path: &str, source: &str, v0: bool) -> Result<Module, String> {
    let mut engine = parser();
    engine.set_rego_v0(v0);
    engine
        .add_policy(path.to_owned(), source.to_owned())
        .map_err(|error| crate::fault::one_line(&error.to_string()))?;
    modules_of(&mut engine)?.pop().ok_or_else(|| format!("{path}: no module"))
}

/// A module in v0, in which a set rule with several bodies (`p[x] { ... } { ... }`), which regorus refuses, has become
/// several rules of one line each; its `source` is the text that was parsed.
///
/// # Errors
/// The message of the parser.
pub fn parsed_v0(path: &str, source: &str) -> Result<Module, String> {
    let mut text = source.to_owned();
    loop {
        let error = match parsed(path, &text, true) {
            Ok(module) => return Ok(module),
            Err(error) => error,
        };
        let brace = error.contains(SECOND_BODY).then(|| place_in(&text, path, &error)).flatten();
        let head = brace.and_then(|brace| last_head(path, &text[..brace]));
        match (brace, head) {
            (Some(brace), Some(head)) => text.insert_str(brace, &format!("{head} ")),
            _ => return Err(error),
        }
    }
}

/// How regorus refuses a set rule with a second body.
const SECOND_BODY: &str = "else cannot be used with set rules";

/// The byte at the place (`path:line:column: `) of a message, where a brace stands.
fn place_in(source: &str, path: &str, message: &str) -> Option<usize> {
    let mut place = message.strip_prefix(path)?.strip_prefix(':')?.splitn(3, ':');
    let (line, column) = (place.next()?.parse::<usize>().ok()?, place.next()?.parse::<usize>().ok()?);
    let before: usize = source.split_inclusive('\n').take(line.checked_sub(1)?).map(str::len).sum();
    let (within, _) = source[before..].char_indices().nth(column.checked_sub(1)?)?;
    source[before + within..].starts_with('{').then_some(before + within)
}

/// The head of the last rule, when it stands on one line.
fn last_head(path: &str, source: &str) -> Option<String> {
    let module = parsed(path, source, true).ok()?;
    let head = &module.rules.as_array()?.last()?["Spec"]["head"]["Set"];
    let text = source.get(offset(head, "start")..offset(head, "end"))?;
    (!text.is_empty() && !text.contains('\n')).then(|| text.to_owned())
}

fn rule(rule: &Json) -> Option<Rule> {
    let line = kind_of(rule).1["span"]["line"].as_u64().unwrap_or(1);
    if let Some(default) = rule.get("Default") {
        return Some(Rule { name: first_name(&default["refr"])?, form: "default", line });
    }
    let (kind, head) = kind_of(&rule["Spec"]["head"]);
    let refr = &head["refr"];
    let plain = refr.get("Var").is_some();
    let form = match kind {
        "Func" => "function",
        "Set" if plain => "set",
        "Compr" if plain && gives_a_value(&head["assign"]) => "value",
        "Compr" if plain => "true",
        _ => "map",
    };
    Some(Rule { name: first_name(refr)?, form, line })
}

fn gives_a_value(assign: &Json) -> bool {
    !assign.is_null() && assign["value"].get("Bool").is_none()
}

fn first_name(refr: &Json) -> Option<String> {
    let (kind, inner) = kind_of(refr);
    match kind {
        "Var" => inner["value"].as_str().map(str::to_owned),
        _ if inner.get("refr").is_some() => first_name(&inner["refr"]),
        _ => None,
    }
}

fn visit(node: &Json, reads: &mut BTreeSet<String>) {
    if let Some((name, _)) = reference(node) {
        if matches!(name.split('.').next(), Some("input" | "data")) {
            reads.insert(name);
        }
        return;
    }
    match node {
        Json::Array(items) => items.iter().for_each(|item| visit(item, reads)),
        Json::Object(fields) => fields.values().for_each(|field| visit(field, reads)),
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn forms(source: &str) -> (bool, Vec<(String, &'static str)>) {
        let outline = outline("p.rego", source, None).unwrap();
        (outline.v0, outline.rules.into_iter().map(|rule| (rule.name, rule.form)).collect())
    }

    fn named(forms: &[(&str, &'static str)]) -> Vec<(String, &'static str)> {
        forms.iter().map(|(name, form)| ((*name).to_owned(), *form)).collect()
    }

    #[test]
    fn the_version_is_found_and_the_forms_are_told_apart() {
        let v1 = "package a.b\ndeny contains x if { x := input.y }\nwarn := [1]\ndeny_z if input.q\nf(x) := x";
        let expected = named(&[("deny", "set"), ("warn", "value"), ("deny_z", "true"), ("f", "function")]);
        assert_eq!(forms(v1), (false, expected));
        let v0 =
            "package a\ndefault ok = false\ndeny[x] { x = input.y }\nm[k] = v { v = input[k] }\ndeny.z[x] { x = 1 }";
        let expected = named(&[("ok", "default"), ("deny", "set"), ("m", "map"), ("deny", "map")]);
        assert_eq!(forms(v0), (true, expected));
    }

    #[test]
    fn an_import_and_a_manifest_settle_the_version() {
        assert!(outline("p", "package a\nimport rego.v1\ndeny[x] { x = 1 }", None).unwrap_err().contains("neither"));
        assert!(outline("p", "package a\ndeny[x] { x = 1 }", Some(false)).unwrap_err().contains("`if` keyword"));
        assert!(outline("p", "package a\nx := 1", Some(true)).unwrap().v0);
    }

    #[test]
    fn reads_are_named_as_far_as_they_are_constant() {
        let source =
            "package a\nimport data.lib.x\ndeny contains m if { m := input.review.object.spec[_]; data.inventory[m] }";
        let reads = outline("p", source, None).unwrap().reads;
        let reads: Vec<&str> = reads.iter().map(String::as_str).collect();
        assert_eq!(reads, ["data.inventory", "data.lib.x", "input.review.object.spec"]);
    }
}
