//! One thread's engines, and how they judge one pair.

use crate::bench::{Bench, Outcome, Pair};
use crate::fault::take_raised;
use crate::lanes::{copied, Lane};
use crate::policy::{InputForm, Role};
use crate::program::new_machine;
use crate::{admission, joined, memory, review, Fault, FaultKind};
use regorus::rvm::RegoVM;
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::{MemoryBudgetConfig, Value};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::num::{NonZeroU32, NonZeroU64};
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Instant;

/// Steps between two looks at the clock.
const CLOCK_STEPS: NonZeroU32 = NonZeroU32::new(64).unwrap();
/// A judging of so many pairs keeps its machines for the next one, with what they saw last: that is worth the memory
/// where little is judged at a time.
const FEW: usize = 256;
/// Elements and keys in what a rule may deny or leave unknown.
const LARGEST_FINDINGS: usize = 1 << 20;

/// The engines of one thread; an engine that failed is built anew for the next pair.
pub struct Worker<'a> {
    bench: Bench<'a>,
    lane: Lane,
    is_apart: bool,
    snapshot: Value,
    parameters: Vec<Value>,
    judged: usize,
    interpreter: Option<regorus::Engine>,
    keys: [Value; 5],
    as_of: Value,
}

impl<'a> Worker<'a> {
    /// A worker without engines; they are built when a pair needs them.
    #[must_use]
    pub fn new(bench: Bench<'a>) -> Self {
        let snapshot = bench.documents.snapshot.clone();
        Self::with(bench, false, snapshot, bench.parameters.to_vec())
    }

    /// A worker beside others, with copies of what all pairs touch.
    #[must_use]
    pub fn apart(bench: Bench<'a>) -> Self {
        // The snapshot, its lists and its indices are copied; resources are not.
        let snapshot = copied(&bench.documents.snapshot, 1);
        let parameters = bench.parameters.iter().map(|value| copied(value, usize::MAX)).collect();
        Self::with(bench, true, snapshot, parameters)
    }

    /// Ends the worker and keeps what it has for the next one.
    pub fn close(mut self) {
        if self.judged > FEW {
            self.lane.machines.fill_with(|| None);
        }
        self.bench.program.give_back(self.lane, self.is_apart);
    }

    fn with(bench: Bench<'a>, is_apart: bool, snapshot: Value, parameters: Vec<Value>) -> Self {
        Self {
            bench,
            lane: bench.program.lane(is_apart),
            is_apart,
            snapshot,
            parameters,
            judged: 0,
            interpreter: None,
            keys: ["resource", "workspace", "snapshot", "parameters", "as_of"].map(Value::from),
            as_of: Value::from(bench.as_of),
        }
    }

    /// Judges one pair; a fault stays with it.
    pub fn judge(&mut self, pair: Pair) -> Outcome {
        self.judged += 1;
        let mut outcome = memory::beside(|| self.attempt(pair));
        if matches!(&outcome, Outcome::Fault(fault) if fault.shared) {
            outcome = memory::alone(self.bench.limits.memory, || self.attempt(pair));
        }
        outcome
    }

    fn attempt(&mut self, pair: Pair) -> Outcome {
        take_raised();
        JUDGING.set(true);
        let judged = catch_unwind(AssertUnwindSafe(|| self.roles(pair)));
        JUDGING.set(false);
        let fault = match judged {
            Ok(Ok(outcome)) => return outcome,
            Ok(Err(fault)) => fault,
            Err(payload) => Fault::new(FaultKind::Panic, panic_text(payload.as_ref())),
        };
        self.lane.machines[pair.policy] = None;
        self.interpreter = None;
        Outcome::Fault(fault)
    }

    fn roles(&mut self, pair: Pair) -> Result<Outcome, Fault> {
        let start = Instant::now();
        let input = self.input(pair);
        let bench = self.bench;
        let policy = bench.program.policy(pair.policy);
        let mut lists = ["[]"; 3].map(String::from);
        let said = self.said(pair.policy, &input, start)?;
        for ((role, rule), value) in joined::in_one_run(&policy.roles).zip(&said) {
            match role {
                Role::Applies => match value {
                    Value::Bool(true) => (),
                    Value::Bool(false) | Value::Undefined => return Ok(Outcome::NotApplicable),
                    _ => return Err(Fault::new(FaultKind::Evaluation, format!("{rule} is not a boolean"))),
                },
                Role::Deny => lists[0] = findings(rule, value)?,
                Role::Unknown => lists[1] = findings(rule, value)?,
                Role::Exception => (),
            }
        }
        if let Some((Role::Exception, rule)) = policy.roles.last().filter(|_| lists[0] != "[]") {
            let value = self.evaluate(pair.policy, rule, &input, start)?;
            lists[2] = written(rule, &value)?;
        }
        let [deny, unknown, exception] = lists;
        if deny == "[]" && unknown == "[]" {
            return Ok(Outcome::Nothing);
        }
        if exception == "[]" {
            return Ok(Outcome::Findings(format!(r#"{{"deny":{deny},"unknown":{unknown}}}"#)));
        }
        Ok(Outcome::Findings(format!(r#"{{"deny":{deny},"unknown":{unknown},"exception":{exception}}}"#)))
    }

    fn input(&self, pair: Pair) -> Value {
        let documents = self.bench.documents;
        let subject = &documents.subjects[pair.subject];
        match self.bench.program.policy(pair.policy).form {
            InputForm::Policy => (),
            InputForm::Document => return subject.clone(),
            InputForm::Review => return review::of(subject, &self.parameters[pair.policy]),
        }
        let workspace = pair.workspace.map_or(Value::Null, |index| documents.subjects[index].clone());
        let values = [
            subject.clone(),
            workspace,
            self.snapshot.clone(),
            self.parameters[pair.policy].clone(),
            self.as_of.clone(),
        ];
        Value::from(self.keys.iter().cloned().zip(values).collect::<BTreeMap<_, _>>())
    }

    /// What the rules say, in the order of [`joined::in_one_run`], up to the one by which the policy does not apply.
    fn said(&mut self, policy: usize, input: &Value, start: Instant) -> Result<Vec<Value>, Fault> {
        let roles = &self.bench.program.policy(policy).roles;
        if self.lane.programs[policy].is_some() {
            let machine = self.machine(policy, input, start)?;
            let said = joined::run(machine, roles.len()).map_err(|error| Fault::from_vm(&error));
            return unless_raised(said?);
        }
        let mut said = Vec::new();
        for (role, rule) in joined::in_one_run(roles) {
            said.push(self.evaluate(policy, rule, input, start)?);
            if *role == Role::Applies && said.last() != Some(&Value::Bool(true)) {
                break;
            }
        }
        Ok(said)
    }

    fn evaluate(&mut self, policy: usize, rule: &str, input: &Value, start: Instant) -> Result<Value, Fault> {
        let value = if self.lane.programs[policy].is_some() {
            let machine = self.machine(policy, input, start)?;
            machine.execute_entry_point_by_name(rule).map_err(|error| Fault::from_vm(&error))
        } else {
            let timer = self.timer(start)?;
            let engine = self.interpreter.get_or_insert_with(|| self.bench.program.interpreter());
            engine.set_execution_timer_config(timer);
            engine.set_input(input.clone());
            engine.eval_rule(rule.to_owned()).map_err(|error| Fault::from_interpreter(&error))
        };
        unless_raised(value?)
    }

    /// The machine of a policy, ready to run.
    fn machine(&mut self, policy: usize, input: &Value, start: Instant) -> Result<&mut RegoVM, Fault> {
        let (limits, timer) = (self.bench.limits, self.timer(start)?);
        let machine = match (&mut self.lane.machines[policy], &self.lane.programs[policy]) {
            (Some(machine), _) => machine,
            (empty, Some(program)) => empty.insert(new_machine(Arc::clone(program), &self.lane.facts)?),
            (None, None) => return Err(Fault::new(FaultKind::Evaluation, "the policy has no program")),
        };
        machine.set_max_instructions(limits.instructions);
        machine.set_memory_budget_config(NonZeroU64::new(limits.memory).map(|limit| MemoryBudgetConfig { limit }));
        machine.set_execution_timer_config(Some(timer));
        machine.set_input(input.clone());
        Ok(machine)
    }

    fn timer(&self, start: Instant) -> Result<ExecutionTimerConfig, Fault> {
        let limit = self.bench.limits.deadline.saturating_sub(start.elapsed());
        if limit.is_zero() {
            return Err(Fault::new(FaultKind::Deadline, "no time left"));
        }
        Ok(ExecutionTimerConfig { limit, check_interval: CLOCK_STEPS })
    }
}

/// An engine may have absorbed the error of a shielded builtin; we do not.
fn unless_raised<T>(value: T) -> Result<T, Fault> {
    take_raised().map_or(Ok(value), Err)
}

fn findings(rule: &str, value: &Value) -> Result<String, Fault> {
    let is_reason = |item: &Value| matches!(item, Value::Object(_) | Value::String(_));
    let well_formed = match value {
        Value::Undefined => return Ok("[]".to_owned()),
        Value::Set(items) => items.iter().all(is_reason),
        Value::Array(items) => items.iter().all(is_reason),
        _ => false,
    };
    if !well_formed {
        return Err(Fault::new(FaultKind::Evaluation, format!("{rule} is not a set or list of objects or strings")));
    }
    written(rule, value)
}

fn written(rule: &str, value: &Value) -> Result<String, Fault> {
    if *value == Value::Undefined {
        return Ok("[]".to_owned());
    }
    if admission::larger_than(value, LARGEST_FINDINGS) {
        return Err(Fault::new(FaultKind::Memory, format!("{rule} gives more than {LARGEST_FINDINGS} values")));
    }
    serde_json::to_string(value).map_err(|error| Fault::new(FaultKind::Evaluation, format!("{rule}: {error}")))
}

fn panic_text(payload: &(dyn std::any::Any + Send)) -> String {
    let text = payload.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| payload.downcast_ref::<&str>().copied());
    text.unwrap_or("the engine panicked").to_owned()
}

thread_local! {
    static JUDGING: Cell<bool> = const { Cell::new(false) };
}

/// Keeps the panics of pairs, which become their faults, off standard error.
pub fn silence_panics() {
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        if !JUDGING.get() {
            usual(panic);
        }
    }));
}
