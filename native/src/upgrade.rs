//! Rego v0 written as v1, so that everything behind this sees one language.
//!
//! `p[x] { ... }` is a set and becomes `p contains x if { ... }`, bodies get their `if`, imports of keywords go, and the
//! builtins that v1 dropped become what OPA names in their stead. No line changes, so places in messages stay right.

use crate::ast::{reference, Module};
use crate::desugar::edits::{apply, Edit, Rank};
use crate::desugar::{kind_of, offset};
use crate::names::rule_name;
use crate::outline::{parsed, parsed_v0};
use serde_json::Value as Json;
use std::collections::HashSet;

/// The path and the source of the module that answers for dropped builtins.
pub const DROPPED: (&str, &str) = ("policyeng_v0.rego", include_str!("upgrade.rego"));
/// Builtins of v0 and what is called in their stead.
const RENAMED: [(&str, &str); 5] = [
    ("re_match", "regex.match"),
    ("net.cidr_overlap", "net.cidr_contains"),
    ("any", "data.policyeng_v0.any"),
    ("all", "data.policyeng_v0.all"),
    ("set_diff", "data.policyeng_v0.set_diff"),
];
/// Builtins of v0 that nothing answers.
const GONE: [&str; 6] = ["cast_array", "cast_set", "cast_string", "cast_boolean", "cast_null", "cast_object"];

/// The modules with those in v0 written as v1.
///
/// # Errors
/// A message with path and line for what cannot be written as v1.
pub fn upgraded(modules: Vec<(String, String)>, v0: &HashSet<String>) -> Result<Vec<(String, String)>, String> {
    if v0.is_empty() {
        return Ok(modules);
    }
    let written = modules.into_iter().map(|(path, source)| match v0.contains(&path) {
        true => upgrade(&path, &source).map(|text| (path, text)),
        false => Ok((path, source)),
    });
    let mut written = written.collect::<Result<Vec<_>, String>>()?;
    written.push((DROPPED.0.to_owned(), DROPPED.1.to_owned()));
    Ok(written)
}

/// One module.
///
/// # Errors
/// As [`upgraded`].
pub fn upgrade(path: &str, source: &str) -> Result<String, String> {
    crate::ast::refuse_deep_nesting(path, source)?;
    let module = parsed_v0(path, source)?;
    let source = module.source.as_str();
    let own = module.rules.as_array().into_iter().flatten().filter_map(rule_name).collect();
    let mut writer = Writer { source, own, edits: Vec::new() };
    writer.imports(&module.imports);
    for rule in module.rules.as_array().into_iter().flatten() {
        writer.rule(&rule["Spec"]);
    }
    writer.calls(&module)?;
    let text = apply(source, writer.edits);
    parsed(path, &text, false).map_err(|error| format!("it cannot be read as Rego v1: {error}"))?;
    Ok(text)
}

struct Writer<'a> {
    source: &'a str,
    /// The names of the module's own rules, which hide builtins.
    own: HashSet<String>,
    edits: Vec<Edit>,
}

impl Writer<'_> {
    fn imports(&mut self, imports: &Json) {
        for import in imports.as_array().into_iter().flatten() {
            let keywords = reference(&import["refr"]).is_some_and(|(name, _)| name.starts_with("future.keywords"));
            if keywords {
                self.put(offset(import, "start"), offset(import, "end"), String::new());
            }
        }
    }

    fn rule(&mut self, rule: &Json) {
        let (kind, head) = kind_of(&rule["head"]);
        if kind == "Set" {
            self.set_head(head);
        }
        let bodies = rule["bodies"].as_array().map_or(&[][..], Vec::as_slice);
        bodies.iter().for_each(|body| self.body(body, rule));
        // `f("a")` alone is true.
        if matches!(kind, "Func" | "Compr") && bodies.is_empty() && head["assign"].is_null() {
            let end = offset(head, "end");
            self.put(end, end, " := true".to_owned());
        }
    }

    /// `p[x]` and `p.x`, which are one in v0.
    fn set_head(&mut self, head: &Json) {
        let refr = &head["refr"];
        let named = match refr.get("RefDot") {
            Some(dotted) => &dotted["refr"],
            None => refr,
        };
        let (from, to) = (offset(kind_of(named).1, "end"), offset(head, "end"));
        let Some(rest) = self.source.get(from..to).map(str::trim) else {
            return;
        };
        if let Some(field) = rest.strip_prefix('.') {
            self.put(from, to, format!(" contains \"{}\"", field.trim()));
        } else if let Some(key) = rest.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            self.put(from, to, format!(" contains {}", key.trim_start_matches([' ', '\t'])));
        }
    }

    /// Puts `if` before a body in braces that has none.
    fn body(&mut self, body: &Json, rule: &Json) {
        let first = &rule["bodies"][0] == body;
        let start = match (body["is_else"] == true, body["assign"].is_null()) {
            (false, _) if first => offset(body, "start"),
            // A second body in braces shares the `if` of the first.
            (false, _) => return,
            (true, true) => offset(body, "start") + "else".len(),
            (true, false) => offset(&body["assign"], "end"),
        };
        if let Some(brace) = self.brace_after(start) {
            self.put(brace, brace, "if ".to_owned());
        }
    }

    /// The brace that comes next, past spaces, comments and what closes a term.
    fn brace_after(&self, start: usize) -> Option<usize> {
        let mut at = start;
        loop {
            match self.source.as_bytes().get(at)? {
                b'{' => return Some(at),
                b'#' => at += self.source[at..].find('\n')?,
                byte if byte.is_ascii_whitespace() || matches!(byte, b'"' | b'`' | b')') => at += 1,
                _ => return None,
            }
        }
    }

    fn calls(&mut self, module: &Module) -> Result<(), String> {
        let mut called = Vec::new();
        calls(&module.rules, &mut called);
        for function in called {
            let Some((name, place)) = reference(function).filter(|(name, _)| !self.own.contains(name)) else {
                continue;
            };
            if GONE.contains(&name.as_str()) {
                let (line, column) = (&place["line"], &place["col"]);
                return Err(format!(
                    "{}:{line}:{column}: `{name}` is a builtin of Rego v0 that is not read",
                    module.path
                ));
            }
            if let Some((_, other)) = RENAMED.iter().find(|(old, _)| *old == name) {
                let (start, end) = (offset(kind_of(function).1, "start"), offset(kind_of(function).1, "end"));
                self.put(start, end, (*other).to_owned());
            }
        }
        Ok(())
    }

    fn put(&mut self, start: usize, end: usize, text: String) {
        self.edits.push(Edit { start, end, rank: Rank::Inside, text });
    }
}

fn calls<'a>(node: &'a Json, called: &mut Vec<&'a Json>) {
    match node {
        Json::Array(items) => items.iter().for_each(|item| calls(item, called)),
        Json::Object(fields) => {
            if let Some(call) = node.get("Call") {
                called.push(&call["fcn"]);
            }
            fields.values().for_each(|field| calls(field, called));
        }
        _ => (),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(body: &str) -> String {
        upgrade("p.rego", &format!("package p\n{body}")).unwrap().trim_start_matches("package p\n").to_owned()
    }

    #[test]
    fn sets_and_bodies_are_written_as_v1() {
        for (v0, v1) in [
            ("deny[msg] {\n\tmsg = \"a\"\n}", "deny contains msg if {\n\tmsg = \"a\"\n}"),
            ("deny[{\"msg\": m}] { m := 1 }", "deny contains {\"msg\": m} if { m := 1 }"),
            ("p[\"a\"]", "p contains \"a\""),
            ("p.a { true }", "p contains \"a\" if { true }"),
            ("p[x] = y { y = input[x] }", "p[x] = y if { y = input[x] }"),
            ("p { input.a } { input.b }", "p if { input.a } { input.b }"),
            ("f(x) = \"a\" { x } else = \"b\" { # c\n true }", "f(x) = \"a\" if { x } else = \"b\" if { # c\n true }"),
            ("p { input.a } else { input.b }", "p if { input.a } else if { input.b }"),
            ("p = 3", "p = 3"),
            (
                "p[x] { x = 1 } { x = 2 }\n{ x = 3 }",
                "p contains x if { x = 1 } p contains x if { x = 2 }\np contains x if { x = 3 }",
            ),
            ("f(\"a\", _)\ng(x) { x }", "f(\"a\", _) := true\ng(x) if { x }"),
            ("default p = false", "default p = false"),
            ("import future.keywords.in\np { 1 in [1] }", "\np if { 1 in [1] }"),
            ("import future.keywords\np contains x if x := 1", "\np contains x if x := 1"),
        ] {
            assert_eq!(written(v0), v1);
        }
    }

    #[test]
    fn dropped_builtins_get_their_successors() {
        assert_eq!(written("p { re_match(\"a\", input.b) }"), "p if { regex.match(\"a\", input.b) }");
        assert_eq!(
            written("p { any([1, all([])]) }"),
            "p if { data.policyeng_v0.any([1, data.policyeng_v0.all([])]) }"
        );
        assert_eq!(written("any(x) { x }\np { any(1) }"), "any(x) if { x }\np if { any(1) }");
        let error = upgrade("p.rego", "package p\nq { cast_set([1]) }").unwrap_err();
        assert!(error.starts_with("p.rego:2:5: `cast_set`"), "{error}");
    }

    #[test]
    fn what_is_no_v1_is_refused() {
        assert!(upgrade("p.rego", "package p\nq { if := 1; if > 0 }")
            .unwrap_err()
            .contains("cannot be read as Rego v1"));
    }
}
