//! Rego rewritten, before it is compiled, where regorus reads it otherwise than OPA does.
//!
//! OPA takes the operands of a negated call out of the negation, so `not f(input.a)` is undefined where `input.a` is;
//! regorus leaves them in. Its interpreter loses the elements of a set rule when one of them is undefined, and stops at
//! `some x in null`. Its RVM takes `x := input.a` for true when `input.a` is undefined, keeps undefined elements in
//! lists, and lets a condition in a comprehension end the loop around the comprehension when it has none of its own.
//! Each of these is written here in a form that means the same to all of them. A rewriting changes no line, so places in
//! messages stay right by line.

use crate::ast::{modules_of, parser, Module};
use edits::{apply, Edit};
use serde_json::Value as Json;
use std::collections::HashSet;
use terms::{generated, hoisted};
pub(crate) use terms::{kind_of, offset};

pub(crate) mod edits;
mod moves;
mod terms;

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
        let mut engine = parser();
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
                if let (Dialect::Interpreter, Some(membership)) = (self.dialect, node.get("Membership")) {
                    self.keyed_membership(membership);
                }
                if let (Dialect::Interpreter, Some(product)) = (self.dialect, node.get("ArithExpr")) {
                    if product["op"] == "Mul" {
                        self.product(product);
                    }
                }
                if let (Dialect::Rvm, "ArrayCompr" | "SetCompr") = (self.dialect, kind_of(node).0) {
                    self.looped(&kind_of(node).1["query"]);
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
        if is_balanced(text) {
            return Ok((start, end));
        }
        let line = &statement["span"]["line"];
        Err(format!("{}:{line}: cannot take this statement apart; give its operands names of their own", self.path))
    }

    /// The start of a node; regorus leaves the opening quote of a string out.
    fn start(&self, node: &Json) -> usize {
        let start = offset(node, "start");
        start - usize::from(start > 0 && matches!(self.source.as_bytes().get(start - 1), Some(b'"' | b'`')))
    }

    /// The end of a node; regorus leaves the closing quote of a string out.
    fn end(&self, node: &Json) -> usize {
        let end = offset(node, "end");
        end + usize::from(matches!(self.source.as_bytes().get(end), Some(b'"' | b'`')))
    }
}

/// Whether every bracket outside strings is closed, and every string.
fn is_balanced(text: &str) -> bool {
    let mut open = [0_i64; 3];
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'"' => loop {
                match bytes.next() {
                    Some(b'"') => break,
                    Some(b'\\') => drop(bytes.next()),
                    Some(_) => {}
                    None => return false,
                }
            },
            b'`' if !bytes.any(|next| next == b'`') => return false,
            b'(' => open[0] += 1,
            b')' => open[0] -= 1,
            b'[' => open[1] += 1,
            b']' => open[1] -= 1,
            b'{' => open[2] += 1,
            b'}' => open[2] -= 1,
            _ => {}
        }
    }
    open == [0; 3]
}

#[cfg(test)]
mod tests;
