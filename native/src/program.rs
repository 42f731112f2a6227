//! A bundle, compiled once for both engines.

use crate::compile::{choose, compile_rule, engine_of, machine, prepared, refuse_unknown_rules, rule_paths, shielded};
use crate::desugar::Dialect;
use crate::lanes::Lane;
use crate::policy::{Engine, InputForm, Policy, PolicyRules};
use crate::stack::on_a_deep_stack;
use crate::{ast, calls, recursion, storage, whole, Fault};
use regorus::rvm::RegoVM;
use regorus::Value;
use std::sync::{Arc, Mutex, PoisonError};

/// A compiled bundle.
#[derive(Debug)]
pub struct Program {
    policies: Vec<Policy>,
    interpreter: regorus::Engine,
    facts: Value,
    stored: Option<Vec<Vec<u8>>>,
    /// Lanes that no thread has now, of copies and those that share; never more of either than judged at once.
    apart: Mutex<Vec<Lane>>,
    shared: Mutex<Vec<Lane>>,
}

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
        Ok(Self { policies, interpreter, facts, stored, apart: Mutex::default(), shared: Mutex::default() })
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
                if !roles.iter().map(|(_, rule)| rule).eq(program.entry_points.keys()) {
                    return Err(format!("the stored program of {id} has other rules"));
                }
                let program = shielded(program, &roles)?;
                Ok(Policy { id, roles, engine: Engine::Rvm(Arc::new(program)), form: InputForm::Policy })
            })
            .collect::<Result<_, String>>()?;
        Ok(Self {
            policies,
            interpreter: ast::parser(),
            facts,
            stored: None,
            apart: Mutex::default(),
            shared: Mutex::default(),
        })
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

    /// Programs and facts for a thread: copies where it judges beside others (`apart`), else those of the bundle.
    #[must_use]
    pub fn lane(&self, apart: bool) -> Lane {
        let kept = self.lanes(apart).lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| {
            let lane = Lane::shared(&self.policies, &self.facts);
            if apart {
                lane.copied()
            } else {
                lane
            }
        })
    }

    /// Keeps a lane of [`Program::lane`] for the next judging.
    pub fn give_back(&self, lane: Lane, apart: bool) {
        self.lanes(apart).lock().unwrap_or_else(PoisonError::into_inner).push(lane);
    }

    fn lanes(&self, apart: bool) -> &Mutex<Vec<Lane>> {
        if apart {
            &self.apart
        } else {
            &self.shared
        }
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
