//! What rules, references and imports are called.

use crate::ast::{reference, Module};
use crate::desugar::{kind_of, offset};
use serde_json::Value as Json;
use std::collections::HashMap;

/// The name of a rule, or none when its head is a longer reference.
#[must_use]
pub fn rule_name(rule: &Json) -> Option<String> {
    let head = kind_of(&rule["Spec"]["head"]).1;
    let refr = if rule.get("Default").is_some() { &rule["Default"]["refr"] } else { &head["refr"] };
    refr["Var"]["value"].as_str().map(str::to_owned)
}

/// The variable that a reference starts with.
pub(crate) fn first_name(refr: &Json) -> Option<&str> {
    let (kind, inner) = kind_of(refr);
    match kind {
        "Var" => inner["value"].as_str(),
        "RefDot" | "RefBrack" => first_name(&inner["refr"]),
        _ => None,
    }
}

/// What the imports of a module are called in it, and what they stand for.
pub(crate) fn aliases(module: &Module) -> HashMap<String, String> {
    let imports = module.imports.as_array().into_iter().flatten().filter_map(|import| {
        let (path, _) = reference(&import["refr"])?;
        let span = &import["as"];
        let alias = match span["start"].is_u64() {
            true => text(span, &module.source).to_owned(),
            false => path.rsplit('.').next()?.to_owned(),
        };
        Some((alias, path))
    });
    imports.collect()
}

/// What a span covers.
pub(crate) fn text<'a>(span: &Json, source: &'a str) -> &'a str {
    let wrapped = serde_json::json!({ "span": span });
    source.get(offset(&wrapped, "start")..offset(&wrapped, "end")).unwrap_or_default()
}
