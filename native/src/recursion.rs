//! Rules that depend on themselves, which OPA refuses and neither engine survives.

use crate::ast::{reference, Module};
use crate::desugar::kind_of;
use crate::names::{aliases, first_name, rule_name, text};
use serde_json::Value as Json;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

type Graph = BTreeMap<String, BTreeSet<String>>;

/// Refuses modules whose rules are recursive.
///
/// # Errors
/// A message that names the rules of a circle.
pub fn refuse(modules: &[Module]) -> Result<(), String> {
    let mut graph = Graph::new();
    for_each_rule(modules, |_, path, _| {
        graph.entry(path).or_default();
    });
    let known: BTreeSet<String> = graph.keys().cloned().collect();
    for_each_rule(modules, |module, path, rule| {
        let mut locals = HashSet::new();
        declared(rule, &module.source, &mut locals);
        let mut reader = Reader { module, aliases: aliases(module), locals, known: &known, met: BTreeSet::new() };
        reader.visit(rule);
        graph.entry(path).or_default().append(&mut reader.met);
    });
    let mut done = HashSet::new();
    graph.keys().try_for_each(|rule| follow(rule, &graph, &mut Vec::new(), &mut done))
}

fn for_each_rule(modules: &[Module], mut visit: impl FnMut(&Module, String, &Json)) {
    for module in modules {
        for rule in module.rules.as_array().into_iter().flatten() {
            let name = rule_name(rule).or_else(|| {
                let refr = &kind_of(&rule["Spec"]["head"]).1["refr"];
                first_name(refr).map(str::to_owned)
            });
            if let Some(name) = name {
                visit(module, format!("{}.{name}", module.package), rule);
            }
        }
    }
}

/// Names that a rule declares for itself: arguments, `some`, `every` and `:=`.
fn declared(node: &Json, source: &str, locals: &mut HashSet<String>) {
    match node {
        Json::Array(items) => items.iter().for_each(|item| declared(item, source, locals)),
        Json::Object(fields) => {
            let (kind, inner) = kind_of(node);
            match kind {
                "SomeVars" => spans(&inner["vars"], source, locals),
                "SomeIn" => [&inner["key"], &inner["value"]].iter().for_each(|part| variables(part, locals)),
                "Every" => [&inner["key"], &inner["value"]].iter().for_each(|part| spans(part, source, locals)),
                "AssignExpr" if inner["op"] == "ColEq" => variables(&inner["lhs"], locals),
                "Func" => variables(&inner["args"], locals),
                _ => (),
            }
            fields.values().for_each(|field| declared(field, source, locals));
        }
        _ => (),
    }
}

fn spans(node: &Json, source: &str, locals: &mut HashSet<String>) {
    match node {
        Json::Array(items) => items.iter().for_each(|item| spans(item, source, locals)),
        Json::Object(_) => {
            locals.insert(text(node, source).to_owned());
        }
        _ => (),
    }
}

fn variables(node: &Json, locals: &mut HashSet<String>) {
    match node {
        Json::Array(items) => items.iter().for_each(|item| variables(item, locals)),
        Json::Object(fields) => match node["Var"]["value"].as_str() {
            Some(name) => {
                locals.insert(name.to_owned());
            }
            None => fields.values().for_each(|field| variables(field, locals)),
        },
        _ => (),
    }
}

struct Reader<'a> {
    module: &'a Module,
    aliases: HashMap<String, String>,
    locals: HashSet<String>,
    known: &'a BTreeSet<String>,
    met: BTreeSet<String>,
}

impl Reader<'_> {
    fn visit(&mut self, node: &Json) {
        if let Some((name, _)) = reference(node) {
            return self.name(&name);
        }
        match node {
            Json::Array(items) => items.iter().for_each(|item| self.visit(item)),
            // A rule's own head names it and is no use of it; what is computed in the head is.
            Json::Object(fields) => {
                let (kind, inner) = kind_of(node);
                if matches!(kind, "Compr" | "Set" | "Func" | "Default") && inner.get("refr").is_some() {
                    ["key", "assign", "args", "value"].iter().for_each(|part| self.visit(&inner[*part]));
                } else {
                    fields.values().for_each(|field| self.visit(field));
                }
            }
            _ => (),
        }
    }

    fn name(&mut self, name: &str) {
        let (first, rest) = name.split_once('.').map_or((name, ""), |(first, rest)| (first, rest));
        if self.locals.contains(first) {
            return;
        }
        let root = match self.aliases.get(first) {
            Some(path) => path.clone(),
            None if first == "data" => first.to_owned(),
            None => format!("{}.{first}", self.module.package),
        };
        let path = if rest.is_empty() { root } else { format!("{root}.{rest}") };
        let ends = path.match_indices('.').map(|(end, _)| end).chain([path.len()]);
        if let Some(rule) = ends.map(|end| &path[..end]).find(|prefix| self.known.contains(*prefix)) {
            self.met.insert(rule.to_owned());
        } else if path.starts_with("data") {
            let below = format!("{path}.");
            self.met.extend(self.known.iter().filter(|rule| rule.starts_with(&below)).cloned());
        }
    }
}

fn follow<'a>(
    rule: &'a str,
    graph: &'a Graph,
    trail: &mut Vec<&'a str>,
    done: &mut HashSet<&'a str>,
) -> Result<(), String> {
    if let Some(start) = trail.iter().position(|met| *met == rule) {
        return Err(format!("recursive rules: {} -> {rule}", trail[start..].join(" -> ")));
    }
    if !done.contains(rule) {
        trail.push(rule);
        graph.get(rule).into_iter().flatten().try_for_each(|next| follow(next, graph, trail, done))?;
        trail.pop();
        done.insert(rule);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ast::{modules_of, parser};

    fn verdict(rego: &str) -> Result<(), String> {
        let mut engine = parser();
        engine.add_policy("p.rego".to_owned(), format!("package p\n{rego}\n")).unwrap();
        engine.add_policy("o.rego".to_owned(), "package o\nf(x) if x == data.other".to_owned()).unwrap();
        refuse(&modules_of(&mut engine).unwrap())
    }

    #[test]
    fn circles_are_refused() {
        for rego in [
            "a if b\nb if a",
            "a if count(a) > 0",
            "f(x) if g(x)\ng(x) if f(x)",
            "f(x) := y if y := f(x - 1)",
            "a if data.p.b\nb if data.p[\"a\"].c",
            "a if data.p[input.x]",
            "import data.p as q\na if q.b\nb if q.a",
            "a if data[input.x].b",
            "a := [x | some x in b]\nb if not a",
            "a := {b, 1}\nb if a[1]",
        ] {
            assert!(verdict(rego).unwrap_err().contains("recursive"), "{rego}");
        }
    }

    #[test]
    fn local_names_and_other_packages_are_no_circle() {
        for rego in [
            "a contains a if some a in input.x",
            "a if { some b, a; input.x[b] == a }",
            "a if every a in input.x { a > 1 }",
            "f(a) := a\na := f(1)",
            "a := b if b := 1\nb := a",
            "import data.o\na if o.f(1)\nb if a",
            "default a := false\na if input.b\ndefault f(_) := 1",
            "a if input.a\nb if data.facts.b[a]",
        ] {
            assert_eq!(verdict(rego), Ok(()), "{rego}");
        }
    }
}
