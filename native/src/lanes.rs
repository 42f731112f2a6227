//! What each thread has to itself, so that threads do not wait for one another's reference counts.
//!
//! Values, and the rules of a program, are counted references. Two threads that clone the same one all the time move
//! its counter between their caches, which costs more than the work itself; so each thread gets copies of what every
//! pair touches: programs, facts and the upper levels of the snapshot. The resources below stay shared. With the programs
//! go the machines that run them: to build one takes longer than to judge a pair.

use crate::policy::{Engine, Policy};
use regorus::rvm::program::RuleType;
use regorus::rvm::{Program, RegoVM};
use regorus::{Rc, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What one thread has to itself.
#[derive(Debug)]
pub struct Lane {
    /// The programs of the policies; none for those that the interpreter judges.
    pub programs: Vec<Option<Arc<Program>>>,
    /// The facts.
    pub facts: Value,
    /// The machines of the programs, as far as they are built.
    pub machines: Vec<Option<RegoVM>>,
}

impl Lane {
    /// A lane that shares programs and facts with the bundle.
    #[must_use]
    pub fn shared(policies: &[Policy], facts: &Value) -> Self {
        let programs = policies.iter().map(|policy| match &policy.engine {
            Engine::Rvm(program) => Some(Arc::clone(program)),
            Engine::Interpreter(_) => None,
        });
        Self::new(programs.collect(), facts.clone())
    }

    fn new(programs: Vec<Option<Arc<Program>>>, facts: Value) -> Self {
        let machines = programs.iter().map(|_| None).collect();
        Self { programs, facts, machines }
    }

    /// The same programs and facts, copied.
    #[must_use]
    pub fn copied(&self) -> Self {
        let programs = self.programs.iter().map(|program| program.as_deref().map(|program| Arc::new(copy(program))));
        Self::new(programs.collect(), copied(&self.facts, usize::MAX))
    }
}

fn copy(program: &Program) -> Program {
    let mut copy = program.clone();
    for literal in &mut copy.literals {
        *literal = copied(literal, usize::MAX);
    }
    for rule in &mut copy.rule_infos {
        rule.definitions = Rc::new((*rule.definitions).clone());
    }
    copy
}

/// A copy of a value, of its levels down to `depth`; what lies below is shared.
#[must_use]
pub fn copied(value: &Value, depth: usize) -> Value {
    let below = |part: &Value| if depth == 0 { part.clone() } else { copied(part, depth - 1) };
    match value {
        Value::String(text) => Value::from(&**text),
        Value::Array(items) => Value::from(items.iter().map(below).collect::<Vec<_>>()),
        Value::Set(items) => Value::from(items.iter().map(below).collect::<BTreeSet<_>>()),
        Value::Object(members) => {
            Value::from(members.iter().map(|(key, part)| (below(key), below(part))).collect::<BTreeMap<_, _>>())
        }
        other => other.clone(),
    }
}

/// Empties what the RVM copies with every call of a rule and never reads: names, and which bodies begin with `else`,
/// where a rule has one value and its first body that holds gives it.
pub fn lighten(program: &mut Program) {
    for rule in &mut program.rule_infos {
        rule.name = String::new();
        if let Some(function) = &mut rule.function_info {
            function.param_names = Vec::new();
        }
        if matches!(rule.rule_type, RuleType::Complete) {
            rule.else_bodies = Vec::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_shared(left: &Value, right: &Value, path: &[&str]) -> bool {
        let part = |value: &Value| path.iter().fold(value.clone(), |value, key| value[&Value::from(*key)].clone());
        match (part(left), part(right)) {
            (Value::Object(left), Value::Object(right)) => Rc::ptr_eq(&left, &right),
            (Value::String(left), Value::String(right)) => Rc::ptr_eq(&left, &right),
            _ => false,
        }
    }

    #[test]
    fn a_copy_is_equal_and_shares_only_what_lies_deeper() {
        let value = Value::from_json_str(r#"{"a":{"b":{"c":"d"}},"list":[1,null,true,"x"]}"#).unwrap();
        let (upper, whole) = (copied(&value, 1), copied(&value, usize::MAX));
        assert_eq!((&upper, &whole), (&value, &value));
        assert!(!is_shared(&value, &upper, &[]) && !is_shared(&value, &upper, &["a"]));
        assert!(is_shared(&value, &upper, &["a", "b"]));
        assert!(!is_shared(&value, &whole, &["a", "b", "c"]));
    }
}
