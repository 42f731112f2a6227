//! Rego rewritten, before it is compiled, where regorus reads it otherwise than OPA does.
//!
//! OPA takes the operands of a negated call out of the negation, so `not f(input.a)` is undefined where `input.a` is;
//! regorus leaves them in. Its interpreter loses the elements of a set rule when one of them is undefined, and stops at
//! `some x in null`; its RVM takes `x := input.a` for true when `input.a` is undefined. Each of these is written here
//! in a form that all of them read alike. A rewriting changes no line, so places in messages stay right by line.

use crate::ast::{modules_of, Module};
use serde_json::Value as Json;
use std::collections::HashSet;

/// Rewritings of rewritten text; each one takes a level of nesting.
const MOST_PASSES: usize = 64;

/// What a module is rewritten for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// Both engines; comes first.
    Common,
    /// The interpreter.
    Interpreter,
    /// The virtual machine.
    Rvm,
}

/// Rewrites parsed modules until nothing is left to rewrite.
///
/// # Errors
/// A message with path and line when a module cannot be rewritten.
pub fn desugar(mut modules: Vec<Module>, dialect: Dialect) -> Result<Vec<Module>, String> {
    let names = modules.iter().flat_map(global_names).collect::<HashSet<String>>();
    let mut fresh = 0;
    let mut open: Vec<usize> = (0..modules.len()).collect();
    for _ in 0..MOST_PASSES {
        let mut engine = regorus::Engine::new();
        let mut rewritten = Vec::new();
        for place in open {
            let module = &modules[place];
            let edits = collect(module, &names, dialect, &mut fresh)?;
            if !edits.is_empty() {
                let text = apply(&module.source, edits);
                engine.add_policy(module.path.clone(), text).map_err(|error| error.to_string())?;
                rewritten.push(place);
            }
        }
        if rewritten.is_empty() {
            return Ok(modules);
        }
        for (place, module) in rewritten.iter().zip(modules_of(&mut engine)?) {
            modules[*place] = module;
        }
        open = rewritten;
    }
    Err(format!("{}: comprehensions and negations nest too deep", modules[open[0]].path))
}

/// Names that may stand for a rule or an import, and so may be undefined.
fn global_names(module: &Module) -> Vec<String> {
    let heads = module.rules.as_array().into_iter().flatten().filter_map(|rule| head_name(rule));
    let imports = module.imports.as_array().into_iter().flatten().filter_map(|import| {
        let refr = &import["refr"];
        refr["RefDot"]["field"][1].as_str().map(str::to_owned)
    });
    heads.chain(imports).collect()
}

fn head_name(rule: &Json) -> Option<String> {
    let head = &rule["Spec"]["head"];
    let refr =
        ["Compr", "Set"].iter().find_map(|kind| head.get(*kind)).map_or(&rule["Default"]["refr"], |head| &head["refr"]);
    refr["Var"]["value"].as_str().map(str::to_owned)
}

/// Text to put in place of the bytes from `start` to `end`.
#[derive(Debug)]
struct Edit {
    start: usize,
    end: usize,
    text: String,
}

fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.start, edit.end));
    let mut text = String::with_capacity(source.len() + 32 * edits.len());
    let mut at = 0;
    for edit in edits {
        text.push_str(&source[at..edit.start]);
        text.push_str(&edit.text);
        at = edit.end;
    }
    text.push_str(&source[at..]);
    text
}

struct Collector<'a> {
    path: &'a str,
    source: &'a str,
    names: &'a HashSet<String>,
    dialect: Dialect,
    fresh: &'a mut usize,
    edits: Vec<Edit>,
}

fn collect(module: &Module, names: &HashSet<String>, dialect: Dialect, fresh: &mut usize) -> Result<Vec<Edit>, String> {
    let (path, source) = (module.path.as_str(), module.source.as_str());
    let mut collector = Collector { path, source, names, dialect, fresh, edits: Vec::new() };
    collector.brace(&module.rules);
    if collector.edits.is_empty() {
        collector.visit(&module.rules)?;
    }
    Ok(collector.edits)
}

impl Collector<'_> {
    fn visit(&mut self, node: &Json) -> Result<(), String> {
        match node {
            Json::Array(items) => items.iter().try_for_each(|item| self.visit(item)),
            Json::Object(fields) => {
                if node.get("sidx").is_some() {
                    self.statement(node)?;
                }
                if self.dialect == Dialect::Interpreter && node["Spec"]["head"].get("Set").is_some() {
                    self.set_rule(&node["Spec"])?;
                }
                if let (Dialect::Rvm, Some(list)) = (self.dialect, node.get("ArrayCompr")) {
                    self.list(list);
                }
                fields.values().try_for_each(|field| self.visit(field))
            }
            _ => Ok(()),
        }
    }

    fn statement(&mut self, statement: &Json) -> Result<(), String> {
        let literal = &statement["literal"];
        if let (Dialect::Common, Some(negated)) = (self.dialect, literal.get("NotExpr")) {
            let mut operands = Vec::new();
            hoisted(&negated["expr"], self.names, &mut operands);
            return self.hoist(statement, &operands, "");
        }
        if let (Dialect::Interpreter, Some(some)) = (self.dialect, literal.get("SomeIn")) {
            let collection = &some["collection"];
            let (kind, _) = kind_of(collection);
            if matches!(kind, "RefDot" | "RefBrack" | "Var" | "Call") && !generated(collection) {
                return self.hoist(statement, &[collection], "type_name(NAME) in {\"array\", \"object\", \"set\"}; ");
            }
        }
        if let (Dialect::Rvm, Some(assignment)) = (self.dialect, literal["Expr"]["expr"].get("AssignExpr")) {
            self.assert_defined(statement, assignment);
        }
        Ok(())
    }

    /// Puts `name := operand; ` before the statement for each operand, and the names in their places.
    fn hoist(&mut self, statement: &Json, operands: &[&Json], then: &str) -> Result<(), String> {
        let with = match statement["with_mods"].as_array() {
            Some(mods) if !mods.is_empty() => {
                let (_, end) = self.range(&statement["literal"], statement)?;
                format!(" {}", self.source[end..self.range(statement, statement)?.1].trim())
            }
            _ => String::new(),
        };
        let (start, _) = self.range(statement, statement)?;
        let mut before = String::new();
        let mut replaced = Vec::new();
        for operand in operands {
            let (from, to) = self.range(operand, statement)?;
            if self.overlaps(from, to) {
                return Ok(());
            }
            let name = self.fresh_name();
            before.push_str(&format!("{name} := {}{with}; {}", &self.source[from..to], then.replace("NAME", &name)));
            replaced.push(Edit { start: from, end: to, text: name });
        }
        if !before.is_empty() && !self.overlaps(start, start) {
            self.edits.push(Edit { start, end: start, text: before });
            self.edits.extend(replaced);
        }
        Ok(())
    }

    /// Makes `x := operand` fail where the operand is undefined.
    fn assert_defined(&mut self, statement: &Json, assignment: &Json) {
        let name = assignment["lhs"]["Var"]["value"].as_str().unwrap_or("_");
        let (kind, _) = kind_of(&assignment["rhs"]);
        let always = matches!(kind, "String" | "RawString" | "Number" | "Bool" | "Null" | "ArrayCompr" | "SetCompr");
        let declares = assignment["op"] == "ColEq";
        let end = self.end(statement);
        let text = format!("; {name} == {name}");
        if declares && !always && name != "_" && !self.source[end..].starts_with(&text) && !self.overlaps(end, end) {
            self.edits.push(Edit { start: end, end, text });
        }
    }

    /// Writes `[E | Q]` as `[x | Q; x := E]`.
    fn list(&mut self, list: &Json) {
        let (start, bar) = (offset(list, "start"), offset(&list["query"], "start"));
        let last = list["query"]["stmts"].as_array().and_then(|statements| statements.last());
        let (Some(last), Some(b'[')) = (last, self.source.as_bytes().get(start)) else {
            return;
        };
        let plain = matches!(kind_of(&list["term"]).0, "Var" | "String" | "RawString" | "Number" | "Bool" | "Null");
        if plain || self.overlaps(start, self.end(list)) {
            return;
        }
        let (name, end) = (self.fresh_name(), self.end(last));
        let term = self.source[start + 1..bar].trim().to_owned();
        self.edits.push(Edit { start: start + 1, end: bar, text: format!("{name} ") });
        self.edits.push(Edit { start: end, end, text: format!("; {name} := {term}") });
    }

    /// Writes `p contains E if Q` as `p contains x if { Q; x := E }`.
    fn set_rule(&mut self, rule: &Json) -> Result<(), String> {
        let head = &rule["head"]["Set"];
        let (kind, _) = kind_of(&head["key"]);
        if matches!(kind, "Var" | "String" | "RawString" | "Number" | "Bool" | "Null" | "") {
            return Ok(());
        }
        let end = self.end(head);
        let name_end = self.end(head.get("refr").map_or(head, |refr| kind_of(refr).1));
        let rest = &self.source[name_end..end];
        let Some(keyword) = rest.find("contains") else {
            return Ok(());
        };
        let from = name_end + keyword + "contains".len();
        if self.overlaps(from, end) {
            return Ok(());
        }
        let name = self.fresh_name();
        let element = self.source[from..end].trim().to_owned();
        let lines = "\n".repeat(element.matches('\n').count());
        self.edits.push(Edit { start: from, end, text: format!(" {name}") });
        let bodies = rule["bodies"].as_array().map_or(&[][..], Vec::as_slice);
        for body in bodies {
            self.end_body(body, &name, &element, &lines)?;
        }
        if bodies.is_empty() {
            self.edits.push(Edit { start: end, end, text: format!(" if {{ {name} := {element} }}") });
        }
        Ok(())
    }

    fn end_body(&mut self, body: &Json, name: &str, element: &str, lines: &str) -> Result<(), String> {
        let query = &body["query"];
        let (start, _) = self.range(query, query)?;
        let last = query["stmts"].as_array().and_then(|statements| statements.last());
        let end = last.map_or(start + 1, |last| self.end(last));
        self.edits.push(Edit { start: start + 1, end: start + 1, text: lines.to_owned() });
        self.edits.push(Edit { start: end, end, text: format!("; {name} := {element}") });
        Ok(())
    }

    /// Puts the bodies of rules in braces, so that statements can be added to them.
    fn brace(&mut self, rules: &Json) {
        let bodies = rules.as_array().into_iter().flatten().filter_map(|rule| rule["Spec"]["bodies"].as_array());
        for query in bodies.flatten().map(|body| &body["query"]) {
            let start = offset(query, "start");
            if query["stmts"].get(0).is_some_and(|first| offset(first, "start") == start) {
                let end = self.end(query);
                self.edits.push(Edit { start, end: start, text: "{ ".to_owned() });
                self.edits.push(Edit { start: end, end, text: " }".to_owned() });
            }
        }
    }

    fn fresh_name(&mut self) -> String {
        loop {
            *self.fresh += 1;
            let name = format!("__{}", self.fresh);
            if !self.source.contains(&name) {
                return name;
            }
        }
    }

    fn overlaps(&self, from: usize, to: usize) -> bool {
        self.edits.iter().any(|edit| edit.start < to.max(from + 1) && from < edit.end)
    }

    /// Where a node starts and ends; its text must stand alone.
    fn range(&self, node: &Json, statement: &Json) -> Result<(usize, usize), String> {
        let inner = if node.get("span").is_some() { node } else { kind_of(node).1 };
        let start = offset(inner, "start");
        let end = self.end(inner);
        let text = self.source.get(start..end).unwrap_or("(");
        let depth = |open: char, close: char| text.matches(open).count() == text.matches(close).count();
        if depth('(', ')') && depth('[', ']') && depth('{', '}') {
            return Ok((start, end));
        }
        let line = &statement["span"]["line"];
        Err(format!("{}:{line}: cannot take this statement apart; give its operands names of their own", self.path))
    }

    /// The end of a node; regorus leaves the closing quote of a string out.
    fn end(&self, node: &Json) -> usize {
        let end = offset(node, "end");
        end + usize::from(matches!(self.source.as_bytes().get(end), Some(b'"' | b'`')))
    }
}

fn offset(node: &Json, side: &str) -> usize {
    node["span"][side].as_u64().and_then(|offset| usize::try_from(offset).ok()).unwrap_or_default()
}

/// The kind of an expression or literal and what it is made of.
pub fn kind_of(node: &Json) -> (&str, &Json) {
    node.as_object()
        .and_then(|fields| fields.iter().next())
        .map_or(("", &Json::Null), |(kind, inner)| (kind.as_str(), inner))
}

fn generated(node: &Json) -> bool {
    node["Var"]["value"].as_str().is_some_and(|name| name.starts_with("__"))
}

/// The operands that OPA takes out of a negated expression: references and calls that it hands to a function.
fn hoisted<'a>(node: &'a Json, names: &HashSet<String>, operands: &mut Vec<&'a Json>) {
    let (kind, inner) = kind_of(node);
    let equality = kind == "AssignExpr" || kind == "BoolExpr" && inner["op"] == "Eq";
    let parts: Vec<&Json> = match kind {
        "Call" => inner["params"].as_array().map_or_else(Vec::new, |params| params.iter().collect()),
        "BoolExpr" | "ArithExpr" | "BinExpr" | "AssignExpr" => vec![&inner["lhs"], &inner["rhs"]],
        "Membership" => vec![&inner["key"], &inner["value"], &inner["collection"]],
        _ => return,
    };
    for part in parts {
        let (kind, inner) = kind_of(part);
        let take = match kind {
            "Call" | "ArithExpr" | "BinExpr" | "Membership" | "BoolExpr" => true,
            "RefDot" | "RefBrack" => !equality && !iterates(part),
            "Var" => !equality && inner["value"].as_str().is_some_and(|name| names.contains(name)),
            _ => false,
        };
        if take {
            operands.push(part);
        }
    }
}

/// Whether a reference runs over a collection by a wildcard.
fn iterates(node: &Json) -> bool {
    let (kind, inner) = kind_of(node);
    match kind {
        "RefBrack" => inner["index"]["Var"]["value"] == "_" || iterates(&inner["refr"]),
        "RefDot" => iterates(&inner["refr"]),
        _ => false,
    }
}
