//! Rules that the RVM may be trusted with.
//!
//! Found by comparing the RVM with OPA, and not visible in its bytecode: defaults that are computed or of functions are
//! lost, and rules named by a reference are taken for others.

use crate::ast::Module;
use crate::desugar::{kind_of, offset};
use crate::names::rule_name;
use crate::whole;
use regorus::rvm::Program;
use regorus::Value;
use serde_json::Value as Json;
use std::collections::HashSet;

/// Says why the RVM must not judge the rules of a program, if it must not; the modules are those it was compiled from.
#[must_use]
pub fn find(program: &Program, modules: &[Module], facts: &Value) -> Option<String> {
    let reached: HashSet<&str> = program.rule_infos.iter().map(|rule| rule.name.as_str()).collect();
    modules.iter().find_map(|module| {
        module.rules.as_array()?.iter().find_map(|rule| {
            let name = rule_name(rule);
            let path = format!("{}.{}", module.package, name.as_deref().unwrap_or_default());
            let met = name.is_none() || reached.contains(path.as_str());
            let reason = if met { in_rule(rule, module, modules, facts) } else { None };
            reason.map(|reason| format!("{path} has {reason}"))
        })
    })
}

fn in_rule(rule: &Json, module: &Module, modules: &[Module], facts: &Value) -> Option<&'static str> {
    if let Some(default) = rule.get("Default") {
        if default["args"].as_array().is_some_and(|args| !args.is_empty()) {
            return Some("a default function");
        }
        let plain = matches!(kind_of(&default["value"]).0, "String" | "RawString" | "Number" | "Bool" | "Null");
        return (!plain).then_some("a default that is computed");
    }
    if rule_name(rule).is_none() {
        return Some("a reference for a name");
    }
    in_node(rule, &module.source).or_else(|| whole::find(module, rule, modules, facts))
}

fn in_node(node: &Json, source: &str) -> Option<&'static str> {
    match node {
        Json::Array(items) => items.iter().find_map(|item| in_node(item, source)),
        Json::Object(fields) => {
            let (kind, inner) = kind_of(node);
            in_expression(kind, inner, source).or_else(|| fields.values().find_map(|field| in_node(field, source)))
        }
        _ => None,
    }
}

fn in_expression(kind: &str, inner: &Json, source: &str) -> Option<&'static str> {
    match kind {
        "ArrayCompr" if !source[offset(inner, "start")..].starts_with('[') => Some("a list that is written oddly"),
        _ => None,
    }
}
