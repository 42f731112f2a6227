//! Judges the cases on standard input, one JSON document a line, as the product would, and writes one answer a line.
//!
//! A case is `{"modules": [[path, source], ...], "facts": "...", "input": "...", "term": "...", "rule": "data.x.y",
//! "interpreter": false}`. Facts and input are JSON in a string, which keeps their numbers as they are; `term` is an
//! input that JSON cannot say, as Rego. An answer is `{"engine": "rvm"}` or `{"engine": "interpreter", "why": "..."}`
//! with `"value"`, JSON in a string too, without one when the rule is undefined, or with `"fault": [kind, message]`;
//! or it is `{"refused": message}`, when the bundle does not compile. `tools/run_conformance.py` writes the cases and
//! reads the answers.

use policyeng_native::fault::take_raised;
use policyeng_native::memory::Allowance;
use policyeng_native::policy::Engine;
use policyeng_native::program::new_machine;
use policyeng_native::stack::STACK_BYTES;
use policyeng_native::{Fault, Program, Role};
use regorus::utils::limits::ExecutionTimerConfig;
use regorus::Value;
use serde::Deserialize;
use serde_json::{json, Value as Json};
use std::error::Error;
use std::io::{BufRead, Write};
use std::num::NonZeroU32;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_secs(5);
const CLOCK_STEPS: NonZeroU32 = NonZeroU32::new(64).unwrap();
const MEMORY: u64 = 1 << 30;
const INSTRUCTIONS: usize = 50_000_000;

#[derive(Deserialize)]
struct Case {
    modules: Vec<(String, String)>,
    facts: String,
    input: Option<String>,
    term: Option<String>,
    rule: String,
    interpreter: bool,
}

fn main() -> Result<(), Box<dyn Error>> {
    std::panic::set_hook(Box::new(|_| ()));
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    let run = thread.spawn(|| answer_all().map_err(|error| error.to_string()))?;
    run.join().map_err(|_| "the engine panicked while it answered")??;
    Ok(())
}

fn answer_all() -> Result<(), Box<dyn Error>> {
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let case: Case = serde_json::from_str(&line?)?;
        let answered = catch_unwind(AssertUnwindSafe(|| answer(&case)));
        let answer = answered.unwrap_or_else(|_| Ok(json!({"fault": ["panic", "the engine panicked"]})));
        writeln!(out, "{}", answer.unwrap_or_else(|message| json!({"refused": message})))?;
        out.flush()?;
    }
    Ok(())
}

fn answer(case: &Case) -> Result<Json, String> {
    let policies = vec![("conformance".to_owned(), vec![(Role::Deny, case.rule.clone())])];
    let program = Program::compile(&case.modules, case.facts.as_bytes(), policies, case.interpreter)?;
    let (engine, why) = program.engines()[0];
    let input = input(case)?;
    take_raised();
    let _allowance = Allowance::new(MEMORY);
    let evaluated = evaluate(&program, &case.rule, input).and_then(|value| take_raised().map_or(Ok(value), Err));
    let mut answer = json!({"engine": engine, "why": why});
    match evaluated {
        Ok(Value::Undefined) => {}
        Ok(value) => answer["value"] = Json::from(serde_json::to_string(&value).map_err(|error| error.to_string())?),
        Err(fault) => answer["fault"] = json!([fault.kind.name(), fault.message]),
    }
    Ok(answer)
}

fn input(case: &Case) -> Result<Value, String> {
    match (&case.term, &case.input) {
        (Some(term), _) => {
            let found = regorus::Engine::new().eval_query(format!("x := {term}"), false);
            let found = found.map_err(|error| error.to_string())?;
            let row = found.result.first().ok_or("the term has no value")?;
            Ok(row.bindings[&Value::from("x")].clone())
        }
        (None, Some(input)) => Value::from_json_str(input).map_err(|error| error.to_string()),
        (None, None) => Ok(Value::Undefined),
    }
}

fn evaluate(program: &Program, rule: &str, input: Value) -> Result<Value, Fault> {
    let timer = ExecutionTimerConfig { limit: DEADLINE, check_interval: CLOCK_STEPS };
    match &program.policy(0).engine {
        Engine::Rvm(compiled) => {
            let mut machine = new_machine(Arc::clone(compiled), &program.lane(false).facts)?;
            machine.set_max_instructions(INSTRUCTIONS);
            machine.set_execution_timer_config(Some(timer));
            machine.set_input(input);
            machine.execute_entry_point_by_name(rule).map_err(|error| Fault::from_vm(&error))
        }
        Engine::Interpreter(_) => {
            let mut engine = program.interpreter();
            engine.set_execution_timer_config(timer);
            engine.set_input(input);
            engine.eval_rule(rule.to_owned()).map_err(|error| Fault::from_interpreter(&error))
        }
    }
}
