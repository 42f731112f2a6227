//! The rewritings themselves; `desugar` says what they are for.

use super::edits::{Edit, Rank};
use super::terms::{braced, kind_of, offset, plain};
use super::Collector;
use serde_json::Value as Json;

impl Collector<'_> {
    /// Puts `name := operand; ` before the statement for each operand, and the names in their places.
    pub(super) fn hoist(&mut self, statement: &Json, operands: &[&Json], then: &str) -> Result<(), String> {
        let with = match statement["with_mods"].as_array() {
            Some(mods) if !mods.is_empty() => {
                let start = offset(&mods[0], "start");
                format!(" {}", self.source[start..self.range(statement, statement)?.1].trim())
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
            // regorus would take a name before a parenthesis for a call, even on another line.
            let called = self.source[to..].trim_start().starts_with('(');
            replaced.push((from, to, if called { format!("({name})") } else { name }));
        }
        if !before.is_empty() && !self.overlaps(start, start) {
            self.edit((start, start), Rank::Inside, before);
            replaced.into_iter().for_each(|(from, to, name)| self.edit((from, to), Rank::Inside, name));
        }
        Ok(())
    }

    /// Makes `x := operand` fail where the operand is undefined.
    pub(super) fn assert_defined(&mut self, statement: &Json, assignment: &Json) {
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

    /// Starts the query of a comprehension with a loop, which a condition can end instead of the loop around it.
    pub(super) fn looped(&mut self, query: &Json) {
        let Some(first) = query["stmts"].get(0) else {
            return;
        };
        let start = offset(first, "start");
        if first["literal"].get("SomeIn").is_none() && !self.overlaps(start, start) {
            let name = self.fresh_name();
            self.edit((start, start), Rank::Open, format!("some {name} in [0]; "));
        }
    }

    /// Writes `[E | Q]` as `[x | Q; x := E]`.
    pub(super) fn list(&mut self, list: &Json) {
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
    pub(super) fn set_rule(&mut self, rule: &Json) -> Result<(), String> {
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

    pub(super) fn end_body(&mut self, body: &Json, name: &str, element: &str, lines: &str) -> Result<(), String> {
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
    pub(super) fn brace(&mut self, rules: &Json) {
        let bodies = rules.as_array().into_iter().flatten().filter_map(|rule| rule["Spec"]["bodies"].as_array());
        for query in bodies.flatten().map(|body| &body["query"]) {
            if !braced(query) {
                let (start, end) = (self.start(query), self.end(query));
                self.edit((start, start), Rank::Open, "{ ".to_owned());
                self.edit((end, end), Rank::Close, " }".to_owned());
            }
        }
    }

    pub(super) fn edit(&mut self, (start, end): (usize, usize), rank: Rank, text: String) {
        self.edits.push(Edit { start, end, rank, text });
    }

    /// Writes `k, v in c` as `[k, v] in [[x, y] | some x, y in c]`, since the interpreter finds no key in a set.
    pub(super) fn keyed_membership(&mut self, membership: &Json) {
        let [key, value, collection] = ["key", "value", "collection"].map(|part| kind_of(&membership[part]).1);
        let (start, end) = (self.start(membership), self.end(membership));
        if key.is_null() || self.overlaps(start, end) {
            return;
        }
        let (from, to) = (self.start(collection), self.end(collection));
        let (Some(between), Some(before)) =
            (self.source.get(self.end(value)..from), self.source.get(start..self.start(key)))
        else {
            return;
        };
        // Parentheses around a part are not in its place.
        if between.trim() != "in" || !before.is_empty() || to != end {
            return;
        }
        let (name, other) = (self.fresh_name(), self.fresh_name());
        let value_end = self.end(value);
        self.edit((start, start), Rank::Inside, "[".to_owned());
        self.edit((value_end, value_end), Rank::Inside, "]".to_owned());
        self.edit((from, from), Rank::Inside, format!("[[{name}, {other}] | some {name}, {other} in "));
        self.edit((end, end), Rank::Tail, "]".to_owned());
        self.nested = true;
    }

    /// Writes `x * y` as `product([x, y])`, which has a limit in the interpreter.
    pub(super) fn product(&mut self, product: &Json) {
        let (left, right) = (kind_of(&product["lhs"]).1, kind_of(&product["rhs"]).1);
        let (from, to) = (self.end(left), offset(right, "start"));
        // regorus leaves the parentheses around an operand out of it.
        let between = &self.source[from..to];
        let (mut before, mut after) = (&self.source[..offset(left, "start")], &self.source[self.end(right)..]);
        for letter in between.chars() {
            let around = match letter {
                ')' => before.trim_end().strip_suffix('(').map(|rest| (rest, after)),
                '(' => after.trim_start().strip_prefix(')').map(|rest| (before, rest)),
                _ => Some((before, after)),
            };
            let Some(around) = around else {
                return;
            };
            (before, after) = around;
        }
        let (start, end) = (before.len(), self.source.len() - after.len());
        let Some(star) = between.find('*').map(|star| from + star) else {
            return;
        };
        if !plain(&product["lhs"]) && !plain(&product["rhs"]) && !self.overlaps(start, end) {
            self.edit((start, start), Rank::Inside, "product([".to_owned());
            self.edit((star, star + 1), Rank::Inside, ",".to_owned());
            self.edit((end, end), Rank::Tail, "])".to_owned());
        }
    }
}
