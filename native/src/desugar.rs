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

/// The engine that a module is rewritten for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// The interpreter.
    Interpreter,
    /// The virtual machine.
    Rvm,
}

/// The paths and the rewritten texts of parsed modules.
///
/// # Errors
/// A message with path and line when a module cannot be rewritten.
pub fn desugar(modules: &[Module], dialect: Dialect) -> Result<Vec<(String, String)>, String> {
    let names = modules.iter().flat_map(global_names).collect::<HashSet<String>>();
    modules.iter().map(|module| Ok((module.path.clone(), rewrite(module, &names, dialect)?))).collect()
}

fn rewrite(module: &Module, names: &HashSet<String>, dialect: Dialect) -> Result<String, String> {
    let mut fresh = 0;
    let mut collected = collect(module, names, dialect, &mut fresh)?;
    let mut text = module.source.clone();
    for _ in 0..MOST_PASSES {
        let (edits, nested) = collected;
        text = apply(&text, edits);
        if !nested {
            return Ok(text);
        }
        let mut engine = regorus::Engine::new();
        engine.add_policy(module.path.clone(), text.clone()).map_err(|error| error.to_string())?;
        let parsed = modules_of(&mut engine)?;
        let [parsed] = parsed.as_slice() else {
            break;
        };
        collected = collect(parsed, names, dialect, &mut fresh)?;
    }
    Err(format!("{}: comprehensions and negations nest too deep", module.path))
}

/// Names that may stand for a rule or an import, and so may be undefined.
fn global_names(module: &Module) -> Vec<String> {
    let heads = module.rules.as_array().into_iter().flatten().filter_map(head_name);
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
    /// Which of the edits at one place comes first.
    rank: Rank,
    text: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Open,
    Inside,
    Close,
}

fn apply(source: &str, mut edits: Vec<Edit>) -> String {
    edits.sort_by_key(|edit| (edit.start, edit.rank, edit.end));
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
    /// Whether something inside moved text waits for the next pass.
    nested: bool,
}

fn collect(
    module: &Module,
    names: &HashSet<String>,
    dialect: Dialect,
    fresh: &mut usize,
) -> Result<(Vec<Edit>, bool), String> {
    let (path, source) = (module.path.as_str(), module.source.as_str());
    let mut collector = Collector { path, source, names, dialect, fresh, edits: Vec::new(), nested: false };
    collector.brace(&module.rules);
    collector.visit(&module.rules)?;
    Ok((collector.edits, collector.nested))
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
        if let Some(negated) = literal.get("NotExpr") {
            let mut operands = Vec::new();
            hoisted(&negated["expr"], self.names, &mut operands);
            let then = if self.dialect == Dialect::Rvm { "NAME == NAME; " } else { "" };
            return self.hoist(statement, &operands, then);
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
            replaced.push((from, to, name));
        }
        if !before.is_empty() && !self.overlaps(start, start) {
            self.edit((start, start), Rank::Inside, before);
            replaced.into_iter().for_each(|(from, to, name)| self.edit((from, to), Rank::Inside, name));
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
            self.edit((end, end), Rank::Inside, text);
        }
    }

    /// Writes `[E | Q]` as `[x | Q; x := E]`.
    fn list(&mut self, list: &Json) {
        let (start, bar) = (offset(list, "start"), offset(&list["query"], "start"));
        let last = list["query"]["stmts"].as_array().and_then(|statements| statements.last());
        let (Some(last), Some(b'[')) = (last, self.source.as_bytes().get(start)) else {
            return;
        };
        let (kind, inner) = kind_of(&list["term"]);
        let plain = match kind {
            "Var" => !inner["value"].as_str().is_some_and(|name| self.names.contains(name)),
            _ => matches!(kind, "String" | "RawString" | "Number" | "Bool" | "Null"),
        };
        if plain || self.overlaps(start, self.end(list)) {
            return;
        }
        let (name, end) = (self.fresh_name(), self.end(last));
        let term = self.source[start + 1..bar].trim().to_owned();
        self.edit((start + 1, bar), Rank::Inside, format!("{name} "));
        self.edit((end, end), Rank::Inside, format!("; {name} := {term}; {name} == {name}"));
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
        self.edit((from, end), Rank::Inside, format!(" {name}"));
        let bodies = rule["bodies"].as_array().map_or(&[][..], Vec::as_slice);
        for body in bodies {
            self.end_body(body, &name, &element, &lines)?;
        }
        if bodies.is_empty() {
            self.edit((end, end), Rank::Close, format!(" if {{ {name} := {element} }}"));
        }
        Ok(())
    }

    fn end_body(&mut self, body: &Json, name: &str, element: &str, lines: &str) -> Result<(), String> {
        let query = &body["query"];
        let (start, _) = self.range(query, query)?;
        let last = query["stmts"].as_array().and_then(|statements| statements.last());
        let end = last.map_or(start + 1, |last| self.end(last));
        let open = start + usize::from(braced(query));
        self.edit((open, open), Rank::Inside, lines.to_owned());
        self.edit((end, end), Rank::Inside, format!("; {name} := {element}"));
        Ok(())
    }

    /// Puts the bodies of rules in braces, so that statements can be added to them.
    fn brace(&mut self, rules: &Json) {
        let bodies = rules.as_array().into_iter().flatten().filter_map(|rule| rule["Spec"]["bodies"].as_array());
        for query in bodies.flatten().map(|body| &body["query"]) {
            if !braced(query) {
                let (start, end) = (offset(query, "start"), self.end(query));
                self.edit((start, start), Rank::Open, "{ ".to_owned());
                self.edit((end, end), Rank::Close, " }".to_owned());
            }
        }
    }

    fn edit(&mut self, (start, end): (usize, usize), rank: Rank, text: String) {
        self.edits.push(Edit { start, end, rank, text });
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

    /// Whether an edit is to move the text around this one, which then waits for the next pass.
    fn overlaps(&mut self, from: usize, to: usize) -> bool {
        let met = self.edits.iter().any(|edit| edit.start < to.max(from + 1) && from < edit.end);
        self.nested |= met;
        met
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

/// Whether a query stands in braces of its own.
fn braced(query: &Json) -> bool {
    query["stmts"].get(0).is_none_or(|first| offset(first, "start") != offset(query, "start"))
}

/// Where a node starts or ends in the text.
#[must_use]
pub fn offset(node: &Json, side: &str) -> usize {
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
