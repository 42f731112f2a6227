//! Calls of builtins that this build does not have.
//!
//! OPA refuses a bundle that calls an unknown function. The interpreter of regorus finds out when it comes to the call,
//! and the RVM when it compiles the rule; here it is known before either, for every rule of every module.

use crate::ast::{reference, Module};
use serde_json::Value as Json;
use std::collections::HashSet;

/// The builtins of regorus as it is built here, those that [`crate::ast`] refuses left out.
pub const BUILTINS: [&str; 116] = [
    "abs",
    "array.concat",
    "array.reverse",
    "array.slice",
    "base64.decode",
    "base64.encode",
    "base64.is_valid",
    "base64url.decode",
    "base64url.encode",
    "base64url.encode_no_pad",
    "bits.and",
    "bits.lsh",
    "bits.negate",
    "bits.or",
    "bits.rsh",
    "bits.xor",
    "ceil",
    "concat",
    "contains",
    "count",
    "endswith",
    "floor",
    "format_int",
    "glob.match",
    "glob.quote_meta",
    "graph.reachable",
    "graph.reachable_paths",
    "hex.decode",
    "hex.encode",
    "indexof",
    "indexof_n",
    "intersection",
    "is_array",
    "is_boolean",
    "is_null",
    "is_number",
    "is_object",
    "is_set",
    "is_string",
    "json.filter",
    "json.is_valid",
    "json.marshal",
    "json.marshal_with_options",
    "json.match_schema",
    "json.patch",
    "json.remove",
    "json.unmarshal",
    "json.verify_schema",
    "lower",
    "max",
    "min",
    "net.cidr_contains",
    "net.cidr_expand",
    "net.cidr_is_valid",
    "numbers.range",
    "numbers.range_step",
    "object.filter",
    "object.get",
    "object.keys",
    "object.remove",
    "object.subset",
    "object.union",
    "object.union_n",
    "product",
    "regex.find_all_string_submatch_n",
    "regex.find_n",
    "regex.is_valid",
    "regex.match",
    "regex.replace",
    "regex.split",
    "regex.template_match",
    "replace",
    "round",
    "semver.compare",
    "semver.is_valid",
    "sort",
    "split",
    "sprintf",
    "startswith",
    "strings.any_prefix_match",
    "strings.any_suffix_match",
    "strings.count",
    "strings.replace_n",
    "strings.reverse",
    "substring",
    "sum",
    "time.add_date",
    "time.clock",
    "time.date",
    "time.diff",
    "time.format",
    "time.parse_duration_ns",
    "time.parse_ns",
    "time.parse_rfc3339_ns",
    "time.weekday",
    "to_number",
    "trim",
    "trim_left",
    "trim_prefix",
    "trim_right",
    "trim_space",
    "trim_suffix",
    "type_name",
    "union",
    "units.parse",
    "units.parse_bytes",
    "upper",
    "urlquery.decode",
    "urlquery.decode_object",
    "urlquery.encode",
    "urlquery.encode_object",
    "uuid.parse",
    "walk",
    "yaml.is_valid",
    "yaml.marshal",
    "yaml.unmarshal",
];

/// Refuses modules that call a function which is neither a builtin of this build nor a rule of the bundle.
///
/// # Errors
/// A message that names file, line, column and the function.
pub fn refuse_unknown(modules: &[Module]) -> Result<(), String> {
    modules.iter().try_for_each(|module| {
        let own = own_names(module, modules);
        visit(&module.path, &module.rules, &own)
    })
}

/// The names of the functions that are called anywhere.
#[must_use]
pub fn used(modules: &[Module]) -> HashSet<String> {
    let mut names = HashSet::new();
    modules.iter().for_each(|module| collect(&module.rules, &mut names));
    // A product may be written as this builtin when the modules are rewritten.
    names.insert("product".to_owned());
    names
}

fn collect(node: &Json, names: &mut HashSet<String>) {
    match node {
        Json::Array(items) => items.iter().for_each(|item| collect(item, names)),
        Json::Object(fields) => {
            // A builtin may also stand for another by `with`.
            names.extend([&node["Call"]["fcn"], &node["as"]].iter().filter_map(|name| Some(reference(name)?.0)));
            fields.values().for_each(|field| collect(field, names));
        }
        _ => (),
    }
}

/// Names that a call may start with and not be one of a builtin: rules of the package, imports and `data`.
fn own_names(module: &Module, modules: &[Module]) -> HashSet<String> {
    let package = modules.iter().filter(|other| other.package == module.package);
    let rules = package.flat_map(|other| other.rules.as_array().into_iter().flatten()).filter_map(head_name);
    rules.chain(crate::names::aliases(module).into_keys()).chain(["data".to_owned()]).collect()
}

/// The first name of a rule's head.
fn head_name(rule: &Json) -> Option<String> {
    let head = crate::desugar::kind_of(&rule["Spec"]["head"]).1;
    let refr = if rule.get("Default").is_some() { &rule["Default"]["refr"] } else { &head["refr"] };
    crate::names::first_name(refr).map(str::to_owned)
}

fn visit(path: &str, node: &Json, own: &HashSet<String>) -> Result<(), String> {
    match node {
        Json::Array(items) => items.iter().try_for_each(|item| visit(path, item, own)),
        Json::Object(fields) => {
            if let Some((name, place)) = reference(&node["Call"]["fcn"]) {
                let first = name.split('.').next().unwrap_or_default();
                if !BUILTINS.contains(&name.as_str()) && !own.contains(first) {
                    let (line, column) = (&place["line"], &place["col"]);
                    return Err(format!("{path}:{line}:{column}: `{name}` is no function of this engine or bundle"));
                }
            }
            fields.values().try_for_each(|field| visit(path, field, own))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{modules_of, parser};
    use crate::{Program, Role};

    fn verdict(rego: &str) -> Result<(), String> {
        let mut engine = parser();
        engine.add_policy("p.rego".to_owned(), format!("package p\n{rego}\n")).unwrap();
        refuse_unknown(&modules_of(&mut engine).unwrap())
    }

    #[test]
    fn a_builtin_that_is_missing_is_named_with_its_place() {
        for (rego, name) in [
            ("x if not crypto.md5(input.a) == input.b", "crypto.md5"),
            ("x := [y | y := net.cidr_merge(input.a)]", "net.cidr_merge"),
            ("x if every y in input.a { graphql.is_valid(y, y) }", "graphql.is_valid"),
            ("x := countt([1])", "countt"),
        ] {
            let message = verdict(rego).unwrap_err();
            assert!(message.starts_with("p.rego:2:") && message.contains(&format!("`{name}`")), "{message}");
        }
    }

    #[test]
    fn rules_imports_and_builtins_are_functions() {
        for rego in [
            "f(x) := x\ny := f(1)",
            "p.q.f(x) := x\ny := p.q.f(1)",
            "import data.lib.arm\ny := arm.f(1)",
            "import data.lib.arm as other\ny := other.f(1)",
            "y := data.lib.arm.f(1)",
            "y if walk(input, [_, x])",
            "y := [1][count([])]",
        ] {
            assert_eq!(verdict(rego), Ok(()), "{rego}");
        }
    }

    #[test]
    fn the_engine_has_every_builtin_that_is_listed() {
        for name in BUILTINS {
            let source = format!("package p\nx if {name}(__arguments)\n__arguments := input.a");
            let roles = vec![("p".to_owned(), vec![(Role::Deny, "data.p.x".to_owned())])];
            let compiled = Program::compile(&[("p.rego".to_owned(), source)], b"{}", roles, false);
            let message = compiled.err().unwrap_or_default();
            assert!(!message.contains("no function") && !message.contains("Unknown function"), "{message}");
        }
    }
}
