//! A bundle, compiled once for both engines.

use crate::ast::Module;
use crate::desugar::{desugar, Dialect};
use crate::judge::STACK_BYTES;
use crate::lanes::{self, Lane};
use crate::{arguments, ast, builtins, calls, hazards, recursion, safety, storage, whole, Fault};
use regorus::languages::rego::compiler::{Compiler, SpannedCompilerError};
use regorus::rvm::RegoVM;
use regorus::{CompiledPolicy, Rc, Value};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

/// What a rule of a policy says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Role {
    /// Whether the policy applies at all.
    Applies,
    /// What is wrong.
    Deny,
    /// What cannot be decided.
    Unknown,
    /// Names of rules whose denials do not count; Conftest's.
    Exception,
}

/// What `input` is for a policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum InputForm {
    /// Resource, workspace, snapshot, parameters and time.
    #[default]
    Policy,
    /// The subject itself, as Conftest gives it.
    Document,
    /// The subject under review, and parameters, as Gatekeeper gives it.
    Review,
}

impl InputForm {
    /// Reads a form by its name in Python.
    ///
    /// # Errors
    /// A message for any other name.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "policy" => Ok(Self::Policy),
            "document" => Ok(Self::Document),
            "review" => Ok(Self::Review),
            _ => Err(format!("`{name}` is no form of input: use policy, document or review")),
        }
    }
}

impl Role {
    /// Reads a role by its name in Python.
    ///
    /// # Errors
    /// A message for any other name.
    pub fn parse(name: &str) -> Result<Self, String> {
        match name {
            "applies" => Ok(Self::Applies),
            "deny" => Ok(Self::Deny),
            "unknown" => Ok(Self::Unknown),
            "exception" => Ok(Self::Exception),
            _ => Err(format!("`{name}` is no role: use applies, deny, unknown or exception")),
        }
    }
}

/// The engine that judges a policy.
#[derive(Debug)]
pub enum Engine {
    /// The virtual machine, with the policy's own shielded program.
    Rvm(Arc<regorus::rvm::Program>),
    /// The interpreter, and why.
    Interpreter(String),
}

/// One policy: its rules in the order of [`Role`], and its engine.
#[derive(Debug)]
pub struct Policy {
    /// The id in findings.
    pub id: String,
    /// Roles and the paths of their rules.
    pub roles: Vec<(Role, String)>,
    /// What judges it.
    pub engine: Engine,
    /// What its input is.
    pub form: InputForm,
}

/// A compiled bundle.
#[derive(Debug)]
pub struct Program {
    policies: Vec<Policy>,
    interpreter: regorus::Engine,
    facts: Value,
    stored: Option<Vec<Vec<u8>>>,
    /// Copies for threads; never more than judged at once.
    lanes: Mutex<Vec<Lane>>,
}

/// The id of a policy and the paths of the rules that have a role in it.
pub type PolicyRules = (String, Vec<(Role, String)>);

impl Program {
    /// Compiles modules (path, source), facts (JSON that becomes `data`) and policies.
    ///
    /// # Errors
    /// The message of regorus, with path, line and column, when a module or the bundle does not compile, or a message
    /// that names file, line and builtin when a module reaches for the host.
    pub fn compile(
        modules: &[(String, String)],
        facts: &[u8],
        policies: Vec<PolicyRules>,
        interpreter_only: bool,
    ) -> Result<Self, String> {
        on_a_deep_stack(|| Self::compile_here(modules, facts, policies, interpreter_only))
    }

    fn compile_here(
        modules: &[(String, String)],
        facts: &[u8],
        policies: Vec<PolicyRules>,
        interpreter_only: bool,
    ) -> Result<Self, String> {
        for (path, source) in modules {
            ast::refuse_deep_nesting(path, source)?;
        }
        let parsed = ast::modules_of(&mut engine_of(modules.iter().cloned())?)?;
        ast::refuse_host_builtins(&parsed)?;
        calls::refuse_unknown(&parsed)?;
        recursion::refuse(&parsed)?;
        whole::refuse(&parsed)?;
        let known = rule_paths(&parsed);
        policies.iter().try_for_each(|(id, roles)| refuse_unknown_rules(id, roles, &known))?;
        let facts = facts_of(facts)?;
        let any = policies.iter().flat_map(|(_, roles)| roles).map(|(_, rule)| rule.as_str()).next();
        let machine = match any {
            Some(rule) if !interpreter_only => Some(compile_rule(&mut prepared(&parsed, &facts, Dialect::Rvm)?, rule)?),
            _ => None,
        };
        let mut interpreter = prepared(&parsed, &facts, Dialect::Interpreter)?;
        if let Some(rule) = any {
            compile_rule(&mut interpreter, rule)?;
        }
        let mut stored = Some(Vec::new());
        let policies = policies
            .into_iter()
            .map(|(id, mut roles)| {
                roles.sort();
                let (engine, bytes) = match &machine {
                    Some(compiled) => choose(compiled, &parsed, &facts, &roles)?,
                    None => (Engine::Interpreter("asked for".to_owned()), None),
                };
                match bytes {
                    Some(bytes) => stored.iter_mut().for_each(|programs| programs.push(bytes.clone())),
                    None => stored = None,
                }
                Ok(Policy { id, roles, engine, form: InputForm::Policy })
            })
            .collect::<Result<_, String>>()?;
        Ok(Self { policies, interpreter, facts, stored, lanes: Mutex::default() })
    }

    /// The programs of the policies as bytes that [`Program::load`] reads, or `None` when some policy cannot be stored:
    /// the interpreter judges it, or its program does not survive the way there and back.
    #[must_use]
    pub fn stored(&self) -> Option<&[Vec<u8>]> {
        self.stored.as_deref()
    }

    /// What [`Program::compile`] gave, from its stored programs and the facts and policies that it was given.
    ///
    /// Whoever can write the bytes decides what is judged: they must come from a place that only we write.
    ///
    /// # Errors
    /// A message when a program cannot be read, or does not have the rules of its policy.
    pub fn load(stored: &[impl AsRef<[u8]>], facts: &[u8], policies: Vec<PolicyRules>) -> Result<Self, String> {
        if stored.len() != policies.len() {
            return Err(format!("{} programs are stored for {} policies", stored.len(), policies.len()));
        }
        let facts = facts_of(facts)?;
        let policies = policies
            .into_iter()
            .zip(stored)
            .map(|((id, mut roles), bytes)| {
                roles.sort();
                let program = storage::read(bytes.as_ref())?;
                let program = shielded(program)?;
                if !roles.iter().map(|(_, rule)| rule).eq(program.entry_points.keys()) {
                    return Err(format!("the stored program of {id} has other rules"));
                }
                Ok(Policy { id, roles, engine: Engine::Rvm(Arc::new(program)), form: InputForm::Policy })
            })
            .collect::<Result<_, String>>()?;
        Ok(Self { policies, interpreter: ast::parser(), facts, stored: None, lanes: Mutex::default() })
    }

    /// The same program with what the input of each policy is; policies beyond the forms keep theirs.
    #[must_use]
    pub fn with_forms(mut self, forms: &[InputForm]) -> Self {
        self.policies.iter_mut().zip(forms).for_each(|(policy, form)| policy.form = *form);
        self
    }

    /// The number of policies.
    #[must_use]
    pub fn len(&self) -> usize {
        self.policies.len()
    }

    /// Whether there is no policy.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.policies.is_empty()
    }

    /// One policy; the index must be in range.
    #[must_use]
    pub fn policy(&self, index: usize) -> &Policy {
        &self.policies[index]
    }

    /// Per policy the name of its engine and, for the interpreter, the reason.
    #[must_use]
    pub fn engines(&self) -> Vec<(&'static str, &str)> {
        self.policies
            .iter()
            .map(|policy| match &policy.engine {
                Engine::Rvm(_) => ("rvm", ""),
                Engine::Interpreter(reason) => ("interpreter", reason.as_str()),
            })
            .collect()
    }

    /// Whether any policy is judged by the interpreter.
    #[must_use]
    pub fn uses_interpreter(&self) -> bool {
        self.policies.iter().any(|policy| matches!(policy.engine, Engine::Interpreter(_)))
    }

    /// A new interpreter; the compiled modules are shared.
    #[must_use]
    pub fn interpreter(&self) -> regorus::Engine {
        self.interpreter.clone()
    }

    /// Programs and facts for a thread that judges alone.
    #[must_use]
    pub fn shared_lane(&self) -> Lane {
        Lane::shared(&self.policies, &self.facts)
    }

    /// Programs and facts for one of several threads, kept for the next judging by [`Program::give_back`].
    #[must_use]
    pub fn own_lane(&self) -> Lane {
        let kept = self.lanes.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| self.shared_lane().copied())
    }

    /// Keeps a lane of [`Program::own_lane`].
    pub fn give_back(&self, lane: Lane) {
        self.lanes.lock().unwrap_or_else(PoisonError::into_inner).push(lane);
    }
}

/// A new virtual machine for one policy's program.
///
/// # Errors
/// A fault when the facts conflict with a rule.
pub fn new_machine(program: Arc<regorus::rvm::Program>, facts: &Value) -> Result<RegoVM, Fault> {
    machine(program, facts).map_err(|error| Fault::from_vm(&error))
}

fn facts_of(json: &[u8]) -> Result<Value, String> {
    let text = std::str::from_utf8(json).map_err(|error| format!("the facts are not UTF-8: {error}"))?;
    crate::memory::unbounded(|| Value::from_json_str(text)).map_err(|error| format!("the facts are not JSON: {error}"))
}

fn machine(program: Arc<regorus::rvm::Program>, facts: &Value) -> Result<RegoVM, regorus::rvm::vm::VmError> {
    let mut machine = RegoVM::new();
    machine.load_program(program);
    machine.set_data(facts.clone())?;
    Ok(machine)
}

fn engine_of(modules: impl Iterator<Item = (String, String)>) -> Result<regorus::Engine, String> {
    let mut engine = ast::parser();
    for (path, source) in modules {
        engine.add_policy(path, source).map_err(|error| error.to_string())?;
    }
    Ok(engine)
}

/// An engine with the modules as it reads them best.
fn prepared(parsed: &[Module], facts: &Value, dialect: Dialect) -> Result<regorus::Engine, String> {
    let mut engine = engine_of(desugar(parsed, dialect)?.into_iter())?;
    engine.set_strict_builtin_errors(true);
    engine.set_gather_prints(true);
    engine.add_data(facts.clone()).map_err(|error| error.to_string())?;
    if dialect == Dialect::Interpreter {
        builtins::guard_interpreter(&mut engine, &calls::used(parsed)).map_err(|error| error.to_string())?;
    }
    Ok(engine)
}

fn compile_rule(engine: &mut regorus::Engine, rule: &str) -> Result<CompiledPolicy, String> {
    engine.compile_with_entrypoint(&Rc::from(rule)).map_err(|error| error.to_string())
}

fn rule_paths(modules: &[Module]) -> HashSet<String> {
    let rules = modules.iter().flat_map(|module| {
        let names = module.rules.as_array().into_iter().flatten().filter_map(safety::rule_name);
        names.map(|name| format!("{}.{name}", module.package))
    });
    rules.collect()
}

fn refuse_unknown_rules(id: &str, roles: &[(Role, String)], known: &HashSet<String>) -> Result<(), String> {
    match roles.iter().find(|(_, rule)| !known.contains(rule)) {
        Some((_, rule)) => Err(format!("policy {id}: there is no rule {rule}")),
        None if roles.is_empty() => Err(format!("policy {id} names no rule")),
        None => Ok(()),
    }
}

/// The RVM where it takes the policy and judges it as OPA does, else the interpreter; and what can be stored of it.
fn choose(
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
    let program = match shielded(program) {
        Ok(program) => Arc::new(program),
        Err(reason) => return Ok((Engine::Interpreter(reason), None)),
    };
    match machine(Arc::clone(&program), facts) {
        Ok(_) => Ok((Engine::Rvm(program), bytes)),
        Err(error) => Err(error.to_string()),
    }
}

/// The program as the machine runs it; the shield is made of functions, so it is put on anew when a program is loaded.
fn shielded(mut program: regorus::rvm::Program) -> Result<regorus::rvm::Program, String> {
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

/// Runs what may recurse deeply.
///
/// # Errors
/// Those of `run`, and a message when it panics.
pub(crate) fn on_a_deep_stack<R: Send>(run: impl FnOnce() -> Result<R, String> + Send) -> Result<R, String> {
    std::thread::scope(|scope| {
        let builder = std::thread::Builder::new().stack_size(STACK_BYTES);
        let thread = builder.spawn_scoped(scope, run).map_err(|error| format!("cannot start a thread: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("the compiler panicked".to_owned()))
    })
}
