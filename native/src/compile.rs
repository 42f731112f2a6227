//! From modules to what judges a policy: the program of the RVM where it is trusted, else the interpreter.

use crate::ast::Module;
use crate::desugar::{desugar, Dialect};
use crate::names::rule_name;
use crate::policy::{Engine, Role};
use crate::{arguments, ast, builtins, calls, hazards, joined, lanes, safety, storage};
use regorus::languages::rego::compiler::{Compiler, SpannedCompilerError};
use regorus::rvm::RegoVM;
use regorus::{CompiledPolicy, Rc, Value};
use std::collections::HashSet;
use std::sync::Arc;

/// An engine that has read the modules (path, source).
pub(crate) fn engine_of(modules: impl Iterator<Item = (String, String)>) -> Result<regorus::Engine, String> {
    let mut engine = ast::parser();
    for (path, source) in modules {
        engine.add_policy(path, source).map_err(|error| error.to_string())?;
    }
    Ok(engine)
}

/// An engine with the modules as it reads them best.
pub(crate) fn prepared(parsed: &[Module], facts: &Value, dialect: Dialect) -> Result<regorus::Engine, String> {
    let mut engine = engine_of(desugar(parsed, dialect)?.into_iter())?;
    engine.set_strict_builtin_errors(true);
    engine.set_gather_prints(true);
    engine.add_data(facts.clone()).map_err(|error| error.to_string())?;
    if dialect == Dialect::Interpreter {
        builtins::guard_interpreter(&mut engine, &calls::used(parsed)).map_err(|error| error.to_string())?;
    }
    Ok(engine)
}

/// All modules, compiled for one rule and what it reaches.
pub(crate) fn compile_rule(engine: &mut regorus::Engine, rule: &str) -> Result<CompiledPolicy, String> {
    engine.compile_with_entrypoint(&Rc::from(rule)).map_err(|error| error.to_string())
}

/// The paths in `data` of all rules with a plain name.
pub(crate) fn rule_paths(modules: &[Module]) -> HashSet<String> {
    let rules = modules.iter().flat_map(|module| {
        let names = module.rules.as_array().into_iter().flatten().filter_map(rule_name);
        names.map(|name| format!("{}.{name}", module.package))
    });
    rules.collect()
}

/// Refuses a policy without rules, or with one that no module has.
pub(crate) fn refuse_unknown_rules(id: &str, roles: &[(Role, String)], known: &HashSet<String>) -> Result<(), String> {
    match roles.iter().find(|(_, rule)| !known.contains(rule)) {
        Some((_, rule)) => Err(format!("policy {id}: there is no rule {rule}")),
        None if roles.is_empty() => Err(format!("policy {id} names no rule")),
        None => Ok(()),
    }
}

/// The RVM where it takes the policy and judges it as OPA does, else the interpreter; and what can be stored of it.
pub(crate) fn choose(
    compiled: &CompiledPolicy,
    parsed: &[Module],
    facts: &Value,
    roles: &[(Role, String)],
) -> Result<(Engine, Option<Vec<u8>>), String> {
    let rules: Vec<&str> = roles.iter().map(|(_, rule)| rule.as_str()).collect();
    let mut program = match Compiler::compile_from_policy(compiled, &rules) {
        Ok(program) => Arc::unwrap_or_clone(program),
        Err(error) => return Ok((refused(&error)?, None)),
    };
    if let Some(reason) = hazards::find(&program).or_else(|| safety::find(&program, parsed, facts)) {
        return Ok((Engine::Interpreter(reason), None));
    }
    // Each policy has a program of its own; the text of all modules in each would only cost memory.
    program.sources.clear();
    let bytes = storage::written(&program);
    let program = match shielded(program, roles) {
        Ok(program) => Arc::new(program),
        Err(reason) => return Ok((Engine::Interpreter(reason), None)),
    };
    match machine(Arc::clone(&program), facts) {
        Ok(_) => Ok((Engine::Rvm(program), bytes)),
        Err(error) => Err(error.to_string()),
    }
}

/// The program as the machine runs it; the shield is made of functions, so it is put on anew when a program is loaded.
pub(crate) fn shielded(
    mut program: regorus::rvm::Program,
    roles: &[(Role, String)],
) -> Result<regorus::rvm::Program, String> {
    joined::join(&mut program, roles)?;
    arguments::guard(&mut program)?;
    builtins::shield(&mut program)?;
    lanes::lighten(&mut program);
    Ok(program)
}

/// A policy that calls an unknown function fails in either engine; anything else the interpreter may take.
fn refused(error: &SpannedCompilerError) -> Result<Engine, String> {
    let text = error.to_string();
    if text.contains("Unknown function") || text.contains("recursion") {
        return Err(text);
    }
    Ok(Engine::Interpreter(crate::fault::one_line(&text)))
}

/// A virtual machine with a program and the facts.
pub(crate) fn machine(program: Arc<regorus::rvm::Program>, facts: &Value) -> Result<RegoVM, regorus::rvm::vm::VmError> {
    let mut machine = RegoVM::new();
    machine.load_program(program);
    machine.set_data(facts.clone())?;
    Ok(machine)
}
